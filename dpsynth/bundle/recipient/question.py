"""Questions in their written form: ``mean(cost) by sex where age >= 65``.

    question = measure ("by" column ("," column)*)? ("where" condition)?
    measure  = count | share | share(condition) | sum(column) | mean(column) | median(column)
             | quantile(column, level) | correlation(column, column)

Conditions are formulas of ``dpsynth.columns.expression``, the grammar of constraints.

Invariant: a question is parsed, never run; it names columns of the table that the model holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches

from dpsynth.columns.calendar_parts import of_parts
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression, Literal, Reader, Reference
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.reading import check_condition
from dpsynth.columns.rules.rule import RuleRefused
from dpsynth.errors import DpsynthError

LONGEST = 10_000
MEASURES = (
    "count",
    "share",
    "share(condition)",
    "sum(column)",
    "mean(column)",
    "median(column)",
    "quantile(column, level)",
    "correlation(column, column)",
)
_OF_ONE = ("sum", "mean", "median", "quantile")


class QuestionRefused(DpsynthError):
    """A question that can't be answered; the message gives the reason, and what is allowed."""

    exit_code = 2


@dataclass(frozen=True)
class Question:
    """A question about the private table, by what was published.

    Attributes:
        written: the text.
        measure: "count", "share", "sum", "mean", "quantile" or "correlation".
        of: the columns of numbers that it measures.
        level: the level of a quantile.
        part: the condition of a share; None for the share of each group.
        by: the columns whose values make the groups.
        where: the condition on rows; None for all rows.
    """

    written: str
    measure: str
    of: Clique = ()
    level: float = 0.5
    part: Expression | None = None
    by: Clique = ()
    where: Expression | None = None


def question_in(text: str, layout: Layout) -> Question:
    """The question in a text.

    Raises:
        QuestionRefused: it is none, or not about this table.
    """
    if len(text) > LONGEST:
        raise QuestionRefused(f"The question is longer than {LONGEST:,} characters.")
    try:
        reader = Reader(text)
        measured = _with_parts(reader.factor(), layout)
        by: list[str] = []
        if reader.step("by"):
            by.append(reader.column())
            while reader.step(","):
                by.append(reader.column())
        where = reader.formula() if reader.step("where") else None
        reader.end()
    except ValueError as error:
        raise QuestionRefused(f"The question {error}. {_ADVICE}") from None
    columns = {column.name: column for column in layout.columns}
    for name in by:
        _known(name, columns, "by")
    if len(set(by)) < len(by):
        raise QuestionRefused("The question names a column twice after by; name each once.")
    found = _measured(text, measured, layout, columns)
    condition = None if where is None else checked_condition(where, layout)
    if found.measure == "share" and found.part is None and not by:
        raise QuestionRefused("share needs groups, share by sex, or a condition, share(age >= 65).")
    return Question(text, found.measure, found.of, found.level, found.part, tuple(by), condition)


_ADVICE = (
    "A question has the form: mean(cost) by sex where age >= 65. Measures are "
    + ", ".join(MEASURES)
    + ". ` ` stand around a column's name of several words, ' ' around a text."
)


def _measured(text: str, measured: Expression, layout: Layout, columns: dict[str, Column]) -> Question:
    if isinstance(measured, Reference) and measured.column in ("count", "share"):
        return Question(text, measured.column)
    if not isinstance(measured, Call):
        raise QuestionRefused(f"The question doesn't say what it measures. {_ADVICE}")
    name, operands = measured.operation, measured.operands
    if name == "share" and len(operands) == 1:
        return Question(text, "share", part=checked_condition(operands[0], layout))
    level = 0.5
    if name == "quantile":
        operands, level = operands[:1], _level(operands)
    wanted = 1 if name in _OF_ONE else 2 if name == "correlation" else 0
    if not wanted:
        raise QuestionRefused(f"'{name}' is no measure. {_ADVICE}")
    named = [o.column for o in operands if isinstance(o, Reference)]
    if len(operands) != wanted or len(named) != wanted:
        what = "one column" if wanted == 1 else "two columns"
        raise QuestionRefused(f"{name} needs {what} in parentheses. {_ADVICE}")
    for column in named:
        if _known(column, columns, name).centres is None:
            raise QuestionRefused(f"{name} can't be made of '{column}': its values are not numbers.")
    if len(set(named)) < len(named):
        raise QuestionRefused("correlation needs two different columns.")
    return Question(text, "quantile" if name == "median" else name, tuple(named), level)


def _with_parts(measured: Expression, layout: Layout) -> Expression:
    """What is measured, with measured parts of moments as columns: mean(hour(seen))."""
    if not isinstance(measured, Call):
        return measured
    return replace(measured, operands=tuple(of_parts(operand, layout.named) for operand in measured.operands))


def _level(operands: tuple[Expression, ...]) -> float:
    value = operands[1].value if len(operands) == 2 and isinstance(operands[1], Literal) else None
    if not isinstance(value, Decimal) or not 0 <= value <= 1:
        raise QuestionRefused("quantile needs a column and a level from 0 to 1, such as quantile(cost, 0.9).")
    return float(value)


def _known(name: str, columns: dict[str, Column], where: str) -> Column:
    if name in columns:
        return columns[name]
    close = get_close_matches(name, columns, n=1)
    guess = f" (did you mean '{close[0]}'?)" if close else ""
    raise QuestionRefused(
        f"'{name}' after {where} is no column that the model holds{guess}. Those are: {', '.join(columns)}."
    )


def checked_condition(formula: Expression, layout: Layout) -> Expression:
    """A condition on rows; a comparison of truth values with one of their texts becomes the column itself.

    Raises:
        QuestionRefused: the formula is no condition on the rows of this table.
    """
    truths = {c.name: c.codec.labels for c in layout.columns if c.codec.kind.word == "truth"}
    found = _plain(formula, truths)
    try:
        check_condition(0, found, layout)
    except RuleRefused as error:
        close = get_close_matches(error.unknown, error.known, n=1) if error.unknown else []
        guess = f" (did you mean '{close[0]}'?)" if close else ""
        raise QuestionRefused(f"The condition {error}{guess}.") from None
    return found


def _plain(formula: Expression, truths: Mapping[str, tuple[str, ...]]) -> Expression:
    if not isinstance(formula, Call):
        return formula
    if formula.operation in ("==", "!="):
        for one, other in (formula.operands, formula.operands[::-1]):
            labels = truths.get(one.column, ()) if isinstance(one, Reference) else ()
            if isinstance(other, Literal) and str(other.value) in labels:
                true = (str(other.value) == labels[1]) is (formula.operation == "==")
                return one if true else Call("not", (one,))
    return Call(formula.operation, tuple(_plain(operand, truths) for operand in formula.operands))
