"""Questions in words of linked tables: ``share(households) where count(persons.age < 18) >= 2``.

    question = measure ("by" column ("," column)*)? ("where" condition)?
    measure  = (count | share)(table) | (sum | mean | median)(table.column) | quantile(table.column, level)

A condition is about a row of the measure's table, and names its columns and those of the rows above.
Aggregates of rows below (count, any, min, max, mean, sum) are columns of the row that these belong to.

Where the wide table's columns answer it, a row of a child is any of the rows beside its parent's, whose
counts are put together. Other questions are answered from the synthetic tables.

Invariant: post-processing. What is counted in synthetic rows has no interval, as its error isn't known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, partial, reduce
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.bundle.recipient import query
from dpsynth.bundle.recipient.more_rows import wish_of
from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.recipient.query import Answer, Question, QuestionRefused
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import (
    MOMENTS,
    QUOTED,
    Call,
    Expression,
    Literal,
    Operand,
    Reference,
    kind_of,
    parse,
    plain,
    references,
    unquoted,
    value_of,
)
from dpsynth.columns.layout import Layout
from dpsynth.errors import nearest
from dpsynth.figures import listed
from dpsynth.statistics.estimates import ALL, HOLDS, CountedCells, ModelCells, Numbers, Place
from dpsynth.statistics.group_figures import Estimate
from dpsynth.statistics.grouped_counts import Condition, ConditionRefused, Factor, Measure, condition_of
from dpsynth.wings.tables.database import shape_of, wide_rows
from dpsynth.wings.tables.keys import DOTTED, slot, undotted
from dpsynth.wings.tables.splitting import Split, aggregated, met, split
from dpsynth.wings.tables.widened import presence

_AGGREGATES = ("count", "any", "min", "max", "mean", "sum")
_MEASURES = {"": ("count", "share"), ".": ("sum", "mean", "median", "quantile")}
_PAIR = re.compile(rf"((?>{QUOTED}|[^=<>!'\"(])+)=(?!=)(.*)", re.DOTALL)
_ADVICE = (
    "A question about tables has the form: share(households) where count(persons.age < 18) >= 2, or "
    "mean(persons.age) by households.region. Measures are count(table), share(table), sum(table.column), "
    "mean(table.column), median(table.column) and quantile(table.column, level)."
)


class NotBeside(Exception):
    """The wide table's columns don't answer the question."""


@dataclass(frozen=True, eq=False)
class _Together(ModelCells):
    """Counts of the same cells in several places, put together.

    Half-widths add up, so the interval holds whatever the errors have to do with each other.
    """

    parts: Sequence[CountedCells] = ()

    @property
    def limits(self) -> str:
        return next((part.limits for part in self.parts if part.limits != HOLDS), HOLDS)

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        return sum(part.reach(weights, place) for part in self.parts)


class Asked:
    """A question about the rows of a table of a bundle.

    Columns are named as the wide table has them for the first row of each parent's row.

    Attributes:
        named: by such a name, the table and the column.
        made: by name, the table whose rows have a column that is computed, and its values in synthetic rows;
            ``layout`` has a column of the same kind.
        numbers: by name, the columns among these that are numbers of all rows of one below: its table.
        table, of, by, where: the table, the column of numbers, those of groups, and the condition, if any.
    """

    table: str
    of: tuple[Expression, ...] = ()
    by: tuple[Expression, ...] = ()
    where: tuple[Expression, ...] = ()

    def __init__(self, bundle: OpenedBundle) -> None:
        self.bundle, self.root, self.layout = bundle, shape_of(bundle), bundle.rows.layout
        self.shapes = {shape.name: shape for shape in self.root.all}
        self.above = {child.name: shape.name for shape in self.root.all for child in shape.children}
        self.named: dict[str, tuple[str, str]] = {}
        self.made: dict[str, tuple[str, Callable[[], pa.Array]]] = {}
        self.numbers: dict[str, str] = {}

    def tables_named(self, text: str) -> list[str]:
        """The tables whose names stand before a dot in a text; QuestionRefused where one is no table."""
        found = [name for one in DOTTED.finditer(text) if (name := one[1])]
        for name in found:
            self.check_table(name)
        return found

    def check_table(self, name: str) -> None:
        if name not in self.shapes:
            known = ", ".join(self.shapes)
            raise QuestionRefused(f"'{name}' is no table{nearest(name, self.shapes)}. Those are: {known}.")

    def path(self, table: str) -> list[str]:
        """The tables from the root down to one."""
        return [*(self.path(self.above[table]) if table in self.above else []), table]

    def places(self, table: str) -> Iterator[dict[str, str]]:
        """For each row of a table beside a root's row, what stands before its columns and those above."""
        if table == self.root.name:
            yield {table: ""}
            return
        for own in self.places(self.above[table]):
            for label, _ in self.shapes[table].slots:
                yield {**own, table: slot(own[self.above[table]], table, label)}

    def read(self, formula: Expression, table: str) -> Expression:
        """A formula about a row of a table, by the names that columns have here."""
        if isinstance(formula, Reference):
            return self._column(formula.column, table)
        if not isinstance(formula, Call):
            return formula
        if formula.operation in _AGGREGATES and len(formula.operands) == 1:
            return self._aggregate(formula.operation, formula.operands[0], table)
        return Call(formula.operation, tuple(self.read(operand, table) for operand in formula.operands))

    def _column(self, name: str, table: str) -> Expression:
        path, known = self.path(table), dict[str, None]()
        owner, _, column = name.partition(".")
        if owner not in self.shapes or not column:
            owner, column = "", name
        elif owner not in path:
            raise QuestionRefused(
                f"'{name}' is of other rows than those of {table}. Write what of these rows counts, such as "
                f"count({name} == …)."
            )
        for at in [owner] if owner else reversed(path):
            shape, wide = self.shapes[at], next(self.places(at))[at] + column
            own = (*shape.columns, *(child.name for child in shape.children))
            if column in own:
                self.named[wide] = at, column
                return Reference(wide)
            if column in shape.derived:
                below, kind, where, *of = shape.derived[column]
                if of:
                    like = parse("1.000000") if kind == "mean" else self._column(of[0], below)
                    values = partial(self._derived, at, column)
                    return self._made(f"{at}.{column}", at, like, values)
                made = self._add(at, kind, below, self.read(parse(where), below) if where else None)
                return made if kind == "count" else Call("if", (made, Literal("yes"), Literal("no")))
            numbers = (shape.number, *shape.key[len(shape.above) :]) if shape.above else ()
            if column in numbers:
                return self._made(f"{at}.{column}", at, None, partial(self._number, at))
            known |= dict.fromkeys(filter(None, (*own, *shape.derived, *numbers)))
        others = (t for t, shape in self.shapes.items() if not owner and column in shape.columns)
        other = next((f" (of {t} there is one: {t}.{column})" for t in others), nearest(column, known))
        raise QuestionRefused(
            f"'{column}' is no column of {owner or listed(path)}{other}. Those are: {', '.join(known)}."
        )

    def _aggregate(self, kind: str, operand: Expression, table: str) -> Expression:
        tables = {*self._tables_in(operand)}
        of = max(tables, key=lambda name: len(self.path(name)), default="")
        whole = isinstance(operand, Reference) and operand.column == of
        common = [at for at in self.path(table) if of and at in self.path(of)[:-1]]
        if not common or not tables <= {*self.path(of)} or (whole and kind not in ("count", "any")):
            raise QuestionRefused(
                f"{kind} must be about columns of one table below another, such as {kind}(persons.age)."
            )
        return self._add(common[-1], kind, of, None if whole else self.read(operand, of))

    def _tables_in(self, formula: Expression) -> Iterator[str]:
        """The tables whose rows a formula is about, but for those of aggregates in it."""
        if isinstance(formula, Reference) and (name := formula.column.partition(".")[0]) in self.shapes:
            yield name
        elif isinstance(formula, Call) and (
            formula.operation not in _AGGREGATES or len(formula.operands) > 1
        ):
            for operand in formula.operands:
                yield from self._tables_in(operand)

    def _add(self, at: str, kind: str, of: str, value: Expression | None) -> Reference:
        """A column of the rows of a table that is computed from the rows of another which belong to them."""
        if value is not None and kind in ("count", "any"):
            value = self.condition(value)
        elif value is not None and self.word(value) != "number":
            raise QuestionRefused(f"{kind} is of numbers, and here of a {self.word(value)}.")
        name = f"{kind} of {of} at {at}: {value}"
        self._column(f"{self.above[of]}.{of}", self.above[of])
        if value is None and self.above[of] == at:
            self.numbers[name] = of
        like = {"any": parse("1 == 1"), "count": parse("1"), "mean": parse("1.000000")}
        return self._made(name, at, like.get(kind, value), partial(self._computed, at, kind, of, value))

    def _derived(self, table: str, column: str) -> pa.Array:
        return self.split.derived[table][column]

    def _number(self, table: str) -> pa.Array:
        return pa.array(self.split.placed[table].number)

    def _made(self, name: str, at: str, like: Expression | None, values: Callable[[], pa.Array]) -> Reference:
        self.made[name] = at, values
        if name not in self.layout.named:
            read = self.layout.named.get(like.column) if isinstance(like, Reference) else None
            made: Column | Derived = Derived(name, "", like or parse("1"))
            if isinstance(read, Column) and read.codec.kind.word in MOMENTS:
                made = replace(read, name=name)
            self.layout = Layout((*self.layout.parts, made))
        return Reference(name)

    def word(self, formula: Expression) -> str:
        """The kind of a formula's values."""
        try:
            return kind_of(formula, self.layout.kinds).word
        except ValueError as error:
            raise QuestionRefused(f"The question {error}.") from None

    def condition(self, formula: Expression) -> Expression:
        """A condition, or a refusal in words of the tables."""
        with self._in_words():
            return query.checked_condition(formula, self.layout)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except QuestionRefused as refused:
            words = str(refused)
            for name, parts in self.named.items():
                words = words.replace(f"'{name}'", f"'{'.'.join(parts)}'")
            raise QuestionRefused(words) from None

    def table_of(self, name: str) -> str:
        """The table whose rows have a column."""
        return self.named[name][0] if name in self.named else self.made[name][0]

    def beside(self, formula: Expression, place: Mapping[str, str]) -> Expression:
        """A formula over the wide table's columns, about a row beside a root's row, if they can say it."""
        if isinstance(formula, Call):
            return replace(formula, operands=tuple(self.beside(o, place) for o in formula.operands))
        if not isinstance(formula, Reference):
            return formula
        if formula.column in self.named:
            table, column = self.named[formula.column]
            return Reference(place[table] + column)
        if formula.column not in self.numbers:
            raise NotBeside
        below = self.numbers[formula.column]
        number = plain(place[self.above[below]] + below)
        counted = self.word(formula) == "number"
        return parse(f"min({number}, {self.shapes[below].most})" if counted else f"{number} > 0")

    def required(self, given: str | tuple[str, object]) -> Expression:
        """A condition on rows at the root: about their columns, or about those of some row below each.

        Args:
            given: a condition, a text such as ``persons.sex=f``, or a column's name and its value.

        Raises:
            QuestionRefused: it can't be read, or names what no table has.
        """
        root, _ = self.root.name, self.tables_named(given if isinstance(given, str) else given[0])
        if isinstance(given, str):
            pair = _PAIR.fullmatch(given)
            if pair is not None:
                return self.required((pair[1].strip(), pair[2].strip()))
        else:
            owner, dot, column = unquoted(given[0]).partition(".")
            table, name = owner if owner in self.shapes else root, Reference(owner + dot + unquoted(column))
            return self._of_root(self._equal(self.read(name, table), given[1]), table)
        try:
            formula = parse(undotted(given))
        except ValueError as error:
            raise QuestionRefused(f"What is given, '{given}', {error}.") from None
        below = {*self._tables_in(formula)} - {root}
        table = max(sorted(below), key=lambda name: len(self.path(name)), default=root)
        other = next((name for name in sorted(below) if name not in self.path(table)), None)
        if other is not None:
            raise QuestionRefused(
                f"What is given, '{given}', is about rows of {other} and of {table}, and no row of one "
                f"belongs to a row of the other. Give a condition on each, or write any({other}.…) and "
                f"any({table}.…)."
            )
        return self._of_root(self.read(formula, table), table)

    def _of_root(self, formula: Expression, table: str) -> Expression:
        """The condition that a row at the root, or any below of a table, meets one."""
        found = self.condition(formula)
        if all(name in self.named for name in references(found)):
            with suppress(ConditionRefused):
                if not all(mask.any() for mask in condition_of(found, self.layout).masks.values()):
                    words = "No row can have what is given. Ask `dpsynth query` for what there is."
                    raise QuestionRefused(words)
        return found if table == self.root.name else self._add(self.root.name, "any", table, found)

    def _equal(self, found: Expression, value: object) -> Expression:
        """The condition that a column has a value, or one of a bin."""
        if isinstance(found, Reference) and found.column in self.named:
            own, column = self.named[found.column], self.layout.modelled[found.column]
            with self._in_words():
                wish = wish_of({found.column: value}, self.bundle)
            if wish.formula is not None:
                return wish.formula
            mask = wish.codes[found.column]

            def having() -> pa.Array:
                return pa.array(mask[column.encode(self.split.operand(*own).texts)])

            return self._made(f"{found.column} is {value}", own[0], parse("1 == 1"), having)
        try:
            number = self.word(found) == "number"
            return self.condition(Call("==", (found, Literal(Decimal(str(value)) if number else str(value)))))
        except InvalidOperation:
            raise QuestionRefused(f"What is given, '{value}', must be a number.") from None

    @cached_property
    def split(self) -> Split:
        return split(wide_rows(self.bundle), self.root, self.bundle.layout)

    def values(self, formula: Expression, table: str) -> pa.Array:
        """The values of a formula, one a synthetic row of a table."""
        operands = {name: self.operand(name, table) for name in references(formula)}
        return value_of(formula, operands, len(self.split.placed[table].row))

    def operand(self, name: str, table: str) -> Operand:
        """A column in the synthetic rows of a table that has it, or is below."""
        spots = self.split.up(table, self.table_of(name))
        if name in self.named:
            return self.split.operand(*self.named[name], spots)
        values = self.made[name][1]().take(pa.array(spots))
        return Operand(self.layout.kinds[name], values, values.cast(pa.string()))

    def _computed(self, at: str, kind: str, of: str, value: Expression | None) -> pa.Array:
        owner, values = self.split.up(of, at), None if value is None else self.values(value, of)
        if values is not None and kind in ("count", "any"):
            owner, values = owner[met(values)], None
        return aggregated(kind, owner, values, len(self.split.placed[at].row))


def answered(bundle: OpenedBundle, text: str) -> Answer | None:
    """The answer to a question in words of tables; None of any other.

    Raises:
        QuestionRefused: it can't be read, or names what no table has.
    """
    asked = Asked(bundle)
    question = _question_in(text, asked)
    if question is None:
        return None
    try:
        found = _by_columns(asked, question)
    except (NotBeside, ConditionRefused, QuestionRefused):
        found = _by_rows(asked, question)
    return replace(found, question=question)


def _question_in(text: str, asked: Asked) -> Question | None:
    dotted = asked.tables_named(text)
    try:
        measured, by, where = query.parts_in(undotted(text))
    except ValueError as error:
        if not dotted:
            return None
        raise QuestionRefused(f"The question {error}. {_ADVICE}") from None
    name, operands = (measured.operation, measured.operands) if isinstance(measured, Call) else ("", ())
    first = operands[0].column if operands and isinstance(operands[0], Reference) else ""
    table, dot, _ = first.partition(".")
    if name == "count" and first and not dot:
        asked.check_table(table)
    if name not in _MEASURES[dot] or table not in asked.shapes or len(operands) > 1 + (name == "quantile"):
        if not dotted:
            return None
        raise QuestionRefused(f"The question doesn't say what it measures of which table. {_ADVICE}")
    level, asked.table = query.level_of(operands) if name == "quantile" else 0.5, table
    if dot:
        asked.of = (asked.read(operands[0], table),)
    if dot and asked.word(asked.of[0]) != "number":
        raise QuestionRefused(f"{name} can't be made of '{first}': its values are not numbers.")
    if name == "share" and where is None and not by:
        raise QuestionRefused(f"share needs a condition or groups, such as share({table}) where ….")
    asked.by = tuple(asked.read(_group(column), table) for column in by)
    if where is not None:
        asked.where = (asked.condition(asked.read(where, table)),)
    return Question(text, "quantile" if name == "median" else name, level=level, by=by)


def _group(name: str) -> Expression:
    kind, called, inner = name.partition("(")
    return Call(kind, (Reference(inner.removesuffix(")")),)) if called else Reference(name)


def _by_columns(asked: Asked, question: Question) -> Answer:
    """The answer by columns of the wide table, if it has all of them."""
    table, measured = asked.table, asked.layout.modelled
    names = {name for formula in (*asked.of, *asked.by, *asked.where) for name in references(formula)}
    if any(not isinstance(f, Reference) or f.column not in measured for f in (*asked.of, *asked.by)):
        raise NotBeside
    # Without columns of its own, rows are counted by the numbers of them that the rows above have.
    own = table == asked.root.name or any(asked.table_of(name) == table for name in names)
    counted = table if own else asked.above[table]
    places = [*asked.places(counted)]
    if any(asked.shapes[name].roles < asked.shapes[name].most for name in asked.path(counted)):
        raise NotBeside
    if table == asked.root.name:
        return query.answer_to(asked.bundle, _question(asked, question, places[0], None))
    found, named = [], dict[str, None]()
    for place in places:
        here = _question(asked, question, place, _present(asked, place) if own else None)
        where, part = (condition_of(f, asked.layout) for f in (here.where, here.part))
        if not own:
            number = measured[place[counted] + table]
            times = np.zeros(number.size)
            assert number.centres is not None
            times[: len(number.centres)] = np.minimum(number.centres, asked.shapes[table].most)
            where = replace(where, factors=(*where.factors, Factor((number.name,), times, times, times)))
        counts = query.grouped_counts(asked.bundle, here, where, part)
        measure = Measure(here.measure, here.of, here.level, part if here.part else None)
        found.append((counts, measure))
        named |= dict.fromkeys((*(c.name for c in counts.columns), *where.columns))
    first, measure = found[0]
    alike = {tuple((column.size, column.labels) for column in counts.columns) for counts, _ in found}
    bases = {counts.basis for counts, _ in found}
    if len(alike) > 1:
        raise NotBeside
    cells = np.sum([counts.counted.cells for counts, _ in found], axis=0)
    together = _Together(
        cells, (), [*bases, "model"][len(bases) > 1], [counts.counted for counts, _ in found]
    )
    whole, by = replace(first, counted=together), first.columns[: first.by]
    return query.answer_from(asked.bundle, question, by, whole, measure, first.where, tuple(named))


def _question(
    asked: Asked, question: Question, place: Mapping[str, str], present: Expression | None
) -> Question:
    """The question about the rows in one place beside the root's."""
    of, by, where = (
        [asked.beside(f, place) for f in formulas] for formulas in (asked.of, asked.by, asked.where)
    )
    named = [tuple(f.column for f in formulas if isinstance(f, Reference)) for formulas in (of, by)]
    part = where.pop() if question.measure == "share" and where else None
    every = [*([present] if present else []), *where]
    condition = reduce(lambda a, b: Call("and", (a, b)), every) if every else None
    return replace(question, of=named[0], by=named[1], where=condition, part=part)


def _present(asked: Asked, place: Mapping[str, str]) -> Expression:
    """The condition that a row is there, by a column that it needs, of those that are used if one is.

    A measure of numbers is about rows that have one.
    """
    number = place[asked.above[asked.table]] + asked.table
    least = place[asked.table][len(number) :].strip("_")
    rules = {stated.rule for stated in asked.bundle.facts.constraints.rules}
    there, below = (plain(number), least), len(asked.path(asked.table)) > 2
    used = [c for f in (*asked.of, *asked.by, *asked.where) for c in references(asked.beside(f, place))]
    for column in (*used, *(place[asked.table] + c for c in asked.shapes[asked.table].columns)):
        if asked.of or presence(column, there, needed=True, below=below) in rules:
            return parse(f"{plain(column)} is not missing")
    raise NotBeside


def _by_rows(asked: Asked, question: Question) -> Answer:
    """The answer by the synthetic rows."""
    table, measure = asked.table, Measure(question.measure, (), question.level)
    counted = np.ones(len(asked.split.placed[table].row), np.bool_)
    for where in asked.where:
        counted = met(asked.values(where, table))
    base, numbers = counted | (measure.kind == "share"), counted.astype(np.float64)
    for of in asked.of:
        numbers = np.asarray(pc.fill_null(pc.cast(asked.values(of, table), pa.float64()), np.nan))
        base = base & ~np.isnan(numbers)
    coded = [_coded(asked, formula, table) for formula in asked.by]
    group = reduce(lambda codes, one: codes * one[0].size + one[1], coded, np.zeros(len(base), np.int64))
    # Without a condition a share is that of a group among all rows.
    share_of = len(base) if measure.kind == "share" and not asked.where else None

    def figure(number: int) -> tuple[Estimate, float]:
        mine = numbers[base & (group == number)]
        rows = float(len(mine))
        if measure.kind == "quantile":
            value = float(np.quantile(mine, measure.level, method="inverted_cdf")) if rows else np.nan
        else:
            value = float(mine.sum())
            if measure.kind in ("mean", "share"):
                value /= share_of or rows or np.nan
        return Estimate(value, sound=False), rows

    by = [column for column, _ in coded]
    groups = prod(column.size for column in by)
    figures = query.FiguresOfRows(groups, figure)
    there = Condition({"": np.bincount(group[base], minlength=groups) > 0} if by else {})
    named = tuple(start + c for t, c in asked.named.values() for start in asked.split.placed[t].starts)
    return query.answer_from(asked.bundle, question, by, figures, measure, there, named)


def _coded(asked: Asked, formula: Expression, table: str) -> tuple[Column, NDArray[np.int64]]:
    """A column of groups, and the code of each row."""
    values = asked.values(formula, table)
    if isinstance(formula, Reference) and formula.column in asked.layout.modelled:
        column, texts = asked.layout.modelled[formula.column], asked.operand(formula.column, table).texts
    else:
        labels = pc.unique(values).drop_null().sort().cast(pa.string()).to_pylist()
        column = Column("", CategoryCodec(tuple(labels)), missing=bool(values.null_count))
        texts = values.cast(pa.string())
    return column, np.asarray(column.encode(texts), np.int64)
