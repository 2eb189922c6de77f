"""Answers to a recipient's questions, each with estimate, interval and basis.

Means come from measured sums where there are some. Counts, and all that follows from them, come from public
marginals or measured answers where they cover all columns of a question, otherwise from the model. Answering
costs nothing: it is post-processing of what is published.

Invariant: a question is parsed, never run, and an answer says what it rests on. A number by the model has an
interval only where the exam has measured how far the synthetic table is from the private one in its columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from itertools import product
from math import exp, floor, inf, isnan, log10
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.row_files import neutralise
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression, Literal, Reader, Reference
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_parts import of_parts
from dpsynth.columns.rules.rule import RuleRefused, check_condition
from dpsynth.errors import DpsynthError, spelt_out
from dpsynth.model import MarkovRandomField
from dpsynth.statistics.estimates import HOLDS, ModelCells
from dpsynth.statistics.group_figures import UNDEFINED, Estimate
from dpsynth.statistics.grouped_counts import (
    EVERY_ROW,
    Condition,
    ConditionRefused,
    GroupedCounts,
    Measure,
    condition_of,
)
from dpsynth.statistics.sampled_estimates import of_all_rows
from dpsynth.statistics.sources import MeasuredFigures
from dpsynth.wing import Point

if TYPE_CHECKING:
    import pandas as pd


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
        measure: "count", "share", "sum", "mean", "quantile" or "correlation".
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
    """The question in a text: ``mean(cost) by sex where age >= 65``.

        question = measure ("by" column ("," column)*)? ("where" condition)?
        measure  = count | share | share(condition) | sum(column) | mean(column) | median(column)
                 | quantile(column, level) | correlation(column, column)

    Conditions are formulas of ``dpsynth.columns.expression``, the grammar of constraints.

    Raises:
        QuestionRefused: it is none, or not about this table.
    """
    if len(text) > LONGEST:
        raise QuestionRefused(f"The question is longer than {LONGEST:,} characters.")
    try:
        measured, by, where = parts_in(text)
    except ValueError as error:
        raise QuestionRefused(f"The question {error}. {_ADVICE}") from None
    columns = layout.modelled
    for name in by:
        _known(name, columns, "by")
    found = _measured(text, _with_parts(measured, layout), layout, columns)
    condition = None if where is None else checked_condition(where, layout)
    if found.measure == "share" and found.part is None and not by:
        raise QuestionRefused("share needs groups, share by sex, or a condition, share(age >= 65).")
    return Question(text, found.measure, found.of, found.level, found.part, by, condition)


def parts_in(text: str) -> tuple[Expression, tuple[str, ...], Expression | None]:
    """The measure, the columns of groups and the condition of a question; ValueError if it has others."""
    reader, by = Reader(text), list[str]()
    measured = reader.factor()
    if reader.step("by"):
        by.append(reader.column())
        while reader.step(","):
            by.append(reader.column())
    where = reader.formula() if reader.step("where") else None
    reader.end()
    if len(set(by)) < len(by):
        raise QuestionRefused("The question names a column twice after by; name each once.")
    return measured, tuple(by), where


_ADVICE = (
    "A question has the form: mean(cost) by sex where age >= 65. Measures are "
    + ", ".join(MEASURES)
    + ". ` ` stand around a column's name of several words, ' ' around a text."
)


def _measured(text: str, measured: Expression, layout: Layout, columns: Mapping[str, Column]) -> Question:
    if isinstance(measured, Reference) and measured.column in ("count", "share"):
        return Question(text, measured.column)
    if not isinstance(measured, Call):
        raise QuestionRefused(f"The question doesn't say what it measures. {_ADVICE}")
    name, operands = measured.operation, measured.operands
    if name == "share" and len(operands) == 1:
        return Question(text, "share", part=checked_condition(operands[0], layout))
    level = 0.5
    if name == "quantile":
        operands, level = operands[:1], level_of(operands)
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
    if not isinstance(measured, Call):
        return measured
    return replace(measured, operands=tuple(of_parts(operand, layout.named) for operand in measured.operands))


def level_of(operands: tuple[Expression, ...]) -> float:
    """The level of a quantile, its second operand; refused if it is none."""
    value = operands[1].value if len(operands) == 2 and isinstance(operands[1], Literal) else None
    if not isinstance(value, Decimal) or not 0 <= value <= 1:
        raise QuestionRefused("quantile needs a column and a level from 0 to 1, such as quantile(cost, 0.9).")
    return float(value)


def _known(name: str, columns: Mapping[str, Column], where: str) -> Column:
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


MOST_GROUPS = 10_000
"""Largest number of rows of an answer."""

MOST_CELLS = 20_000_000
"""Largest number of cells of a table that an answer is made from."""

FIGURES = ("estimate", "low", "high", "rows", "basis")


@dataclass(frozen=True)
class AnswerRow:
    """The answer for one group.

    Attributes:
        estimate: the number, with the ends of its 95 % interval; NaN where undefined or withheld.
        rows: estimated rows that it rests on; None where withheld.
        basis: "public", "measured", "measured sum", "model" or "synthetic"; "withheld" where the owner's
            minimum set size is not met.
    """

    labels: tuple[str, ...]
    estimate: Estimate
    rows: float | None
    basis: str


_OF_ROWS = ("count", "sum")
"""Measures that grow with the number of rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question.

    Attributes:
        interval: a sentence on what the intervals cover, or why there is none.
        verdict: the worst verdict of the release on the columns that it is about, as a sentence with its
            reason; "" without one.
        too_low: of counts and sums, a sentence if rows were cut off for sure; otherwise "".
        notices: what its owner made known of the bundle since.
        terms: the owner's terms of use; "" without any.
    """

    question: Question
    rows: tuple[AnswerRow, ...]
    interval: str
    minimum_set_size: int | None = None
    verdict: str = ""
    too_low: str = ""
    notices: tuple[str, ...] = ()
    terms: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """The answer as a pandas table: columns of the groups, estimate, low, high, rows, basis."""
        import pandas as pd

        return pd.DataFrame(list(self._lines()), columns=[*self.question.by, *FIGURES])

    def _lines(self) -> Iterator[tuple[object, ...]]:
        for row in self.rows:
            found = row.estimate
            ends = (None if isnan(x) else x for x in (found.value, found.low, found.high))
            yield (*row.labels, *ends, row.rows, row.basis)

    def __repr__(self) -> str:
        """The words of ``dpsynth query``: notices, a line a group, what the intervals and the verdict say."""
        lines = [[*self.question.by, *FIGURES]]
        for row in self.rows:
            figures = (row.estimate.value, row.estimate.low, row.estimate.high, row.rows)
            lines.append([*row.labels, *map(_figure, figures), row.basis])
        texts = [[spelt_out(cell) for cell in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        left = len(self.question.by)
        shown = [*self.notices]
        for line in texts:
            cells = [
                cell.ljust(width) if place < left or place == len(line) - 1 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            shown.append("  ".join(cells).rstrip())
        shown.append(f"Interval: {self.interval}")
        if self.too_low:
            shown.append(self.too_low)
        if self.verdict:
            shown.append(f"Verdict on the synthetic table: {spelt_out(self.verdict)}")
        if self.minimum_set_size is not None:
            shown.append(f"Answers on fewer than {self.minimum_set_size:,} rows, by estimate, are withheld.")
        if self.terms:
            shown.append(f"Terms of use: {spelt_out(self.terms)}")
        return "\n".join(shown)

    def to_json(self) -> dict[str, object]:
        by = self.question.by
        return {
            **({"notices": list(self.notices)} if self.notices else {}),
            **({"terms": self.terms} if self.terms else {}),
            "question": self.question.written,
            "measure": self.question.measure,
            "by": list(by),
            "interval": self.interval,
            "verdict": self.verdict,
            "too_low": self.too_low,
            "minimum_set_size": self.minimum_set_size,
            "rows": [
                {
                    "group": dict(zip(by, row.labels, strict=True)),
                    **dict(zip(FIGURES, line[len(by) :], strict=True)),
                }
                for row, line in zip(self.rows, self._lines(), strict=True)
            ],
        }

    def to_csv(self) -> str:
        """The answer as CSV; texts that a spreadsheet might run have an apostrophe in front."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow([*_neutral(self.question.by), *FIGURES])
        for row, line in zip(self.rows, self._lines(), strict=True):
            figures = ["" if cell is None else cell for cell in line[len(row.labels) :]]
            writer.writerow([*_neutral(row.labels), *figures])
        return written.getvalue()


def _figure(value: float | None) -> str:
    """A number with up to six digits, and all digits before the point."""
    if value is None or isnan(value):
        return ""
    digits = 6 if value == 0 else max(0, 5 - floor(log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def _neutral(texts: tuple[str, ...]) -> list[str]:
    found: list[str] = neutralise(pa.array(texts, pa.string())).to_pylist()
    return found


def answered(bundle: OpenedBundle, text: str) -> Answer:
    """The answer to a question.

    Raises:
        QuestionRefused: the question can't be read, or asks for too many cells.
        BundleRefused: a file of the bundle can't be used.
    """
    by_tables = None if bundle.facts.tables is None else BY_TABLES.filled()
    found = None if by_tables is None else bundle._read("tables", lambda: by_tables(bundle, text))
    return found or answer_to(bundle, question_in(text, bundle.rows.layout))


BY_TABLES: Point[Callable[[OpenedBundle, str], Answer | None]] = Point("questions of tables", "tables")
"""The answer to a question in words of linked tables; None of one in words of the table beside."""


def answer_to(bundle: OpenedBundle, question: Question) -> Answer:
    """The answer to a question that was read; it is refused as by ``answered``."""
    try:
        where, part = (condition_of(f, bundle.rows.layout) for f in (question.where, question.part))
    except ConditionRefused as refused:
        raise QuestionRefused(str(refused)) from None
    measure = Measure(question.measure, question.of, question.level, part if question.part else None)
    own = _measured_figures(bundle, question, measure, where)
    figures = grouped_counts(bundle, question, where, part) if own is None else own
    named = (*_kept(question, where, part), *where.columns)
    by = bundle.sources.members(question.by)
    return answer_from(bundle, question, by, figures, measure, where, named)


@dataclass(frozen=True)
class FiguresOfRows:
    """Figures of groups of synthetic rows."""

    groups: int
    of: Callable[[int], tuple[Estimate, float]]
    basis: str = "synthetic"
    limits: str = ""

    def figure(self, number: int, measure: Measure) -> tuple[Estimate, float]:
        return self.of(number)


Figures = GroupedCounts | MeasuredFigures | FiguresOfRows


def answer_from(
    bundle: OpenedBundle,
    question: Question,
    by: Sequence[Column],
    figures: Figures,
    measure: Measure,
    where: Condition,
    named: Clique,
) -> Answer:
    """The answer by figures of groups that ``by`` makes, to a question about the named columns."""
    if figures.groups > MOST_GROUPS:
        raise QuestionRefused(
            f"The question asks for {figures.groups:,} groups, and {MOST_GROUPS:,} are allowed. Name fewer "
            "columns after by."
        )
    least = bundle.facts.minimum_set_size
    rows = tuple(_rows(by, where, figures, measure, least))
    covers = _interval(figures, measure) if isinstance(figures, GroupedCounts) else _MEASURED[figures.basis]
    too_low = bundle.facts.too_low if question.measure in _OF_ROWS else ""
    said = bundle.verdict.on(named)
    return Answer(question, rows, covers, least, verdict=said, too_low=too_low)


def grouped_counts(
    bundle: OpenedBundle, question: Question, where: Condition = EVERY_ROW, part: Condition = EVERY_ROW
) -> GroupedCounts:
    """The counts that a question is answered from.

    Masks of columns that the question doesn't name otherwise are taken out before the model is asked, unless
    the exam has all columns.

    Raises:
        QuestionRefused: the columns have too many cells together.
    """
    kept = _kept(question, where, part)
    clique = tuple(dict.fromkeys((*kept, *where.columns)))
    sources = bundle.sources
    counted = sources.known(clique)
    if counted is None:
        clique, counted = kept, by_the_model(bundle.model, kept, where)
    counted = of_all_rows(counted, sources.sampled)
    return GroupedCounts(sources.members(clique), len(question.by), counted, where)


_MEASURED = {
    "measured sum": "95 %: noise, and numbers beyond the limit of a row, which were cut off.",
    "measured": "95 %: noise, and values that are unknown inside pieces of bins.",
    "synthetic": "None: the number is counted in the synthetic tables. How far it may be from that of the "
    "private ones is not known.",
}
"""The claim of intervals of figures with a question of their own, by their basis."""


def _measured_figures(
    bundle: OpenedBundle, question: Question, measure: Measure, where: Condition
) -> MeasuredFigures | None:
    """The figures of a mean, a sum or a quantile with a question of its own; None for any other question."""
    if where.factors or not set(where.masks) <= set(question.by):
        return None
    return bundle.sources.measured_figures(measure, question.by)


def _kept(question: Question, where: Condition, part: Condition) -> Clique:
    """The columns whose cells an answer is made from, those of the groups first."""
    of_factors = (c for factor in where.factors for c in factor.columns)
    return tuple(dict.fromkeys((*question.by, *question.of, *part.columns, *of_factors)))


def by_the_model(model: MarkovRandomField, kept: Clique, where: Condition) -> ModelCells:
    """The model's counts of the cells of some columns, among rows that the masks of a condition allow.

    Raises:
        QuestionRefused: the columns have too many cells together.
    """
    cells = model.tree.domain.cells(kept)
    if cells > MOST_CELLS:
        raise QuestionRefused(
            f"The question joins columns with {cells:,} combinations of values ({', '.join(kept)}); "
            f"{MOST_CELLS:,} are allowed. Name fewer of them."
        )
    masks = {column: mask for column, mask in where.masks.items() if not mask.all()}
    log_share = model.log_probability(masks)
    if log_share == -inf:
        return ModelCells(np.zeros(model.tree.domain.shape(kept)))
    rows = model.total * exp(log_share)
    return ModelCells(rows * np.asarray(model.conditional(kept, masks, limit=MOST_CELLS)))


def _rows(
    by: Sequence[Column], where: Condition, figures: Figures, measure: Measure, least: int | None
) -> Iterator[AnswerRow]:
    for number, labels in enumerate(product(*(column.labels for column in by))):
        if isinstance(figures, GroupedCounts):
            possible = figures.possible(number)
        else:
            possible = all(mask[number] for mask in where.masks.values())
        if by and not possible:
            continue
        found, rows = figures.figure(number, measure)
        if least is not None and rows < least:
            yield AnswerRow(labels, UNDEFINED, None, "withheld")
            continue
        shown = found if found.sound and figures.limits == HOLDS else Estimate(found.value)
        # No row satisfies a condition that the declared values exclude.
        yield AnswerRow(labels, shown, rows, figures.basis if possible else "public")


def _interval(table: GroupedCounts, measure: Measure) -> str:
    if table.counted.limits != HOLDS:
        return (
            "None: the number is the model's, as its columns were not measured together. How far the model "
            "may be from the private table is not known for it, because exam.csv doesn't have these columns."
        )
    if table.where.cut and measure.kind != "count":
        return f"None: the condition cuts through bins of {', '.join(table.where.cut)}."
    wide = [c.name for c in table.columns if c.name in measure.of and np.any(c.codec.half_widths)]
    if measure.kind == "correlation" and wide:
        return f"None: it is the correlation of bins, and those of {', '.join(wide)} hold several values."
    if table.counted.basis == "model":
        return (
            "95 %: the measured distance of the synthetic table in these columns (exam.csv), and values "
            "that are unknown inside bins."
        )
    return "95 %: noise, and values that are unknown inside bins."
