"""Conditions on rows: their possible truth values by cells, and the rows that satisfy them by values.

Every value within a cell is taken into account: numbers and moments lie between the cell's ends, and
arithmetic is interval arithmetic on these ends (Moore 1966). If each cell of all columns is one value, the
formula itself is computed. Columns are assumed to be independent of each other within their cells, so the
result may hold too many values, never too few.

Invariant: each value that a formula takes in some row is among the values found for the row's cells. A row
satisfies a formula if it is true, as in SQL; where it is missing, it doesn't.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes, Intervals, Truths
from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import (
    COMPARISONS,
    LARGEST,
    MOMENTS,
    MOST_DECIMALS,
    SPANS,
    Expression,
    Kind,
    Literal,
    Operand,
    Reference,
    kind_of,
    microseconds,
    moment_of,
    references,
    value_of,
    whole_literal,
)
from dpsynth.columns.layout import Layout

Array = NDArray[np.float64]

Mask = NDArray[np.bool_]

YES: Mask = np.array(True)

NO: Mask = np.array(False)


@dataclass(frozen=True, eq=False)
class Range:
    """Numbers, or moments and durations in microseconds; arrays that broadcast to the cells.

    Attributes:
        low, high: float64, the ends.
    """

    low: Array
    high: Array
    present: Mask
    missing: Mask


@dataclass(frozen=True, eq=False)
class Truth:
    """Truth values: masks of cells that may be true, false, or missing."""

    yes: Mask
    no: Mask
    missing: Mask

    @property
    def present(self) -> Mask:
        return self.yes | self.no


@dataclass(frozen=True, eq=False)
class Word:
    """Texts.

    Attributes:
        may: a function from a text to the cells that may hold it, and the cells that may hold another.
        exact: the one text of each cell, if it is known.
    """

    may: Callable[[str], tuple[Mask, Mask]]
    present: Mask
    missing: Mask
    exact: NDArray[np.object_] | None = None


Possible = Range | Truth | Word


def exactly(texts: NDArray[np.object_], present: Mask) -> Word:
    """Texts of which each cell has one."""
    return Word(lambda text: (present & (texts == text), present & (texts != text)), present, ~present, texts)


def any_word(parts: Sequence[Possible]) -> Word:
    """Any text, present if all its parts are."""
    present, missing = np.array(True), np.array(not parts)
    for part in parts:
        present, missing = present & part.present, missing | part.missing
    return Word(lambda _: (present, present), present, missing)


def order(sign: str, a: Array, b: Array, c: Array, d: Array) -> tuple[Mask, Mask]:
    """Cells where a value of [a, b] may compare so to one of [c, d], and cells where it may not."""
    if sign in ("==", "!="):
        same, other = (a <= d) & (c <= b), ~((a == b) & (c == d) & (a == c))
        return (same, other) if sign == "==" else (other, same)
    if sign in (">", ">="):
        return order({">": "<", ">=": "<="}[sign], c, d, a, b)
    return (a < d, b >= c) if sign == "<" else (a <= d, b > c)


def logic(name: str, parts: Sequence[Truth]) -> Truth:
    """Possible results of ``and``, ``or``, ``not`` and ``implies``, in three-valued logic."""
    a = parts[0]
    if name == "not":
        return Truth(a.no, a.yes, a.missing)
    b = parts[1]
    if name == "and":
        missing = (a.missing & (b.missing | b.yes)) | (b.missing & (a.missing | a.yes))
        return Truth(
            a.yes & b.yes, (a.no & (b.present | b.missing)) | (b.no & (a.present | a.missing)), missing
        )
    # By De Morgan.
    left = a if name == "implies" else Truth(a.no, a.yes, a.missing)
    neither = logic("and", [left, Truth(b.no, b.yes, b.missing)])
    return Truth(neither.no, neither.yes, neither.missing)


def chosen(test: Truth, a: Possible, b: Possible) -> Possible:
    """Possible results of ``if``."""
    missing = test.missing | (test.yes & a.missing) | (test.no & b.missing)
    present = (test.yes & a.present) | (test.no & b.present)
    if isinstance(a, Range) and isinstance(b, Range):
        low = np.minimum(
            np.where(test.yes & a.present, a.low, np.inf), np.where(test.no & b.present, b.low, np.inf)
        )
        high = np.maximum(
            np.where(test.yes & a.present, a.high, -np.inf), np.where(test.no & b.present, b.high, -np.inf)
        )
        return Range(np.where(present, low, 0.0), np.where(present, high, 0.0), present, missing)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return Truth((test.yes & a.yes) | (test.no & b.yes), (test.yes & a.no) | (test.no & b.no), missing)
    assert isinstance(a, Word) and isinstance(b, Word)

    def may(text: str) -> tuple[Mask, Mask]:
        (this, other), (there, elsewhere) = a.may(text), b.may(text)
        return (test.yes & this) | (test.no & there), (test.yes & other) | (test.no & elsewhere)

    return Word(may, present, missing)


def arithmetic(name: str, parts: tuple[Expression, ...], ranges: Sequence[Range]) -> Range:
    """Possible results of an operation on numbers, by interval arithmetic."""
    a = ranges[0]
    present, missing = np.array(True), np.array(False)
    for part in ranges:
        present, missing = present & part.present, missing | part.missing
    # A result of infinite ends may be any number.
    with np.errstate(all="ignore"):
        if name in ("min", "max"):
            pick = np.minimum if name == "min" else np.maximum
            low, high = a.low, a.high
            for part in ranges[1:]:
                low, high = pick(low, part.low), pick(high, part.high)
        elif name == "round":
            decimals = whole_literal(parts[1], "round", MOST_DECIMALS)
            low, high = rounded(a.low, decimals), rounded(a.high, decimals)
        elif name == "negative":
            low, high = -a.high, -a.low
        else:
            b = ranges[1]
            work = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[name]
            corners = [work(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
            low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
            if name == "/":
                zero = (b.low <= 0) & (b.high >= 0)
                low, high = np.where(zero, -np.inf, low), np.where(zero, np.inf, high)
        unknown = np.isnan(low) | np.isnan(high)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
        missing = missing | (present & (np.maximum(np.abs(low), np.abs(high)) > LARGEST))
    return Range(low, high, present, missing)


def span(name: str, ranges: Sequence[Range]) -> Range:
    """Whole units of time; the quotient is truncated towards zero, which keeps the order."""
    unit = SPANS[name] * 1e6
    if len(ranges) == 1:
        (taken,) = ranges
        return Range(np.trunc(taken.low / unit), np.trunc(taken.high / unit), taken.present, taken.missing)
    start, end = ranges
    low, high = np.trunc((end.low - start.high) / unit), np.trunc((end.high - start.low) / unit)
    return Range(low, high, start.present & end.present, start.missing | end.missing)


def year(micros: Array) -> Array:
    """The year of each moment."""
    return (
        np.asarray(micros).astype(np.int64).astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970
    ).astype(np.float64)


def rounded(values: Array, decimals: int) -> Array:
    """Values rounded in the way of formulas."""
    flat = np.asarray(values, dtype=np.float64)
    return np.asarray(pc.round(pa.array(flat.reshape(-1)), decimals)).reshape(flat.shape)


MOST_CELLS = 1 << 20
"""Largest number of cells for which a formula is evaluated."""

D = TypeVar("D", bound=np.generic)

_FIELDS = {"month": (1.0, 12.0), "day": (1.0, 31.0), "weekday": (1.0, 7.0), "hour": (0.0, 23.0),
           "minute": (0.0, 59.0)}  # fmt: skip


def possible(formula: Expression, layout: Layout, names: Sequence[str]) -> Possible:
    """Possible values of a formula in each cell, that is in each combination of cells.

    Args:
        formula: a formula over modelled columns, and derived ones computed from these.
        names: columns, one for each axis: those of the formula, or more.
    """
    return _Cells(layout, names).of(formula)


class _Cells:
    def __init__(self, layout: Layout, names: Sequence[str]) -> None:
        self._layout = layout
        self._names = tuple(names)
        parts = layout.named
        self._columns = {n: p for n in names if isinstance(p := parts[n], Column)}
        self._derived = {n: p for n, p in parts.items() if isinstance(p, Derived)}
        self._axes = len(self._names)
        self._values = {n: column.codec.cell_values for n, column in self._columns.items()}
        self._single = {n for n, values in self._values.items() if values.single}

    def _kind(self, formula: Expression) -> Kind:
        return kind_of(formula, self._layout.kinds)

    def _on_axis(self, name: str, values: NDArray[D]) -> NDArray[D]:
        shape = [1] * len(self._names)
        shape[self._names.index(name)] = len(values)
        return values.reshape(shape)

    def of(self, formula: Expression) -> Possible:
        roots = self._layout.roots(formula)
        sizes = [self._columns[name].size for name in roots]
        if isinstance(formula, Literal):
            return _literal(formula)
        if self._single.issuperset(roots) and prod(sizes) <= MOST_CELLS:
            return self._computed(formula, roots)
        if isinstance(formula, Reference):
            return self._referred(formula.column)
        name, parts = formula.operation, formula.operands
        if name in COMPARISONS:
            return self._compared(name, parts)
        found = [self.of(part) for part in parts]
        if name == "missing":
            return Truth(found[0].missing, found[0].present, NO)
        truths = [f for f in found if isinstance(f, Truth)]
        if name in ("and", "or", "not", "implies"):
            return logic(name, truths)
        if name == "if":
            return chosen(truths[0], found[1], found[2])
        if self._kind(formula).word != "number":
            return any_word(found)
        ranges = [f for f in found if isinstance(f, Range)]
        if name in SPANS:
            return span(name, ranges)
        if name == "year":
            years = [year(a) for a in (ranges[0].low, ranges[0].high)]
            return Range(years[0], years[1], ranges[0].present, ranges[0].missing)
        if name in _FIELDS:
            low, high = (np.full(ranges[0].low.shape, end) for end in _FIELDS[name])
            return Range(low, high, ranges[0].present, ranges[0].missing)
        return arithmetic(name, parts, ranges)

    def _computed(self, formula: Expression, roots: tuple[str, ...]) -> Possible:
        sizes = [self._columns[name].size for name in roots]
        rows = prod(sizes)
        grid = np.indices(sizes).reshape(len(roots), rows)
        operands: dict[str, Operand] = {}
        for name, codes in zip(roots, grid, strict=True):
            column = self._columns[name]
            values = column.decode(np.arange(column.size), np.random.default_rng(0))
            texts = column.codec.text(values)
            spots = pa.array(codes)
            operands[name] = Operand(self._layout.kinds[name], values.take(spots), texts.take(spots))
        for derived in self._layout.in_turn():
            if operands.keys() >= set(references(derived.formula)):
                operands[derived.name] = derived.operand(operands, rows)
        kind = self._kind(formula)
        values = value_of(formula, operands, rows)
        shape = (
            [self._columns[n].size if n in roots else 1 for n in self._names] if roots else [1] * self._axes
        )
        # The grid's axes stand in the order of mention.
        order = np.argsort([self._names.index(n) for n in roots])

        def placed(flat: NDArray[D]) -> NDArray[D]:
            axes = flat.reshape([self._columns[n].size for n in roots] or [1] * self._axes)
            return (axes.transpose(order) if roots else axes).reshape(shape)

        present = placed(np.asarray(values.is_valid()))
        if kind.word == "truth":
            yes = placed(np.asarray(pc.fill_null(values, False)))
            return Truth(present & yes, present & ~yes, ~present)
        if kind.word == "text":
            return exactly(placed(np.array(pc.fill_null(values, "").to_pylist(), dtype=object)), present)
        numbers = values if kind.word == "number" else microseconds(values)
        plain = placed(np.asarray(pc.fill_null(numbers, 0)).astype(np.float64))
        return Range(plain, plain, present, ~present)

    def _referred(self, name: str) -> Possible:
        if name in self._derived:
            return self._derived_range(self._derived[name])
        column = self._columns[name]
        size, cells = column.size, len(column.codec.labels)
        values = np.arange(size) < cells
        present = self._on_axis(name, values)
        missing = self._on_axis(name, ~values | (values & column.markers_may_be_drawn))
        found = self._values[name]

        def padded(of_cells: NDArray[D]) -> NDArray[D]:
            return self._on_axis(name, np.concatenate([of_cells, np.zeros(size - cells, of_cells.dtype)]))

        if isinstance(found, Intervals):
            return Range(padded(found.low), padded(found.high), present, missing)
        if isinstance(found, Truths):
            return Truth(padded(found.true), padded(~found.true), missing)
        if found.exact is not None:
            texts = np.array([*found.exact, *[""] * (size - cells)], dtype=object)
            return exactly(self._on_axis(name, texts), present)
        return Word(lambda text: (present & padded(found.holding(text)), present), present, missing)

    def _derived_range(self, derived: Derived) -> Possible:
        found = self.of(derived.formula)
        kind = self._layout.kinds[derived.name]
        if derived.map:
            unknown = np.ones((1,) * self._axes, dtype=np.bool_)
            infinite = np.full(unknown.shape, np.inf)
            return Range(-infinite, infinite, unknown, unknown) if kind.word == "number" else any_word([])
        if not isinstance(found, Range):
            return found
        # A number too large to be exact is missing.
        low, high = (rounded(end, kind.decimals) for end in (found.low, found.high))
        large = np.maximum(np.abs(low), np.abs(high)) > 2.0**53 / 10.0**kind.decimals
        return Range(low, high, found.present, found.missing | (found.present & large))

    def _compared(self, sign: str, parts: tuple[Expression, ...]) -> Truth:
        kinds = [self._kind(part) for part in parts]
        sides: list[Possible] = []
        for part, kind in zip(parts, reversed(kinds), strict=True):
            if isinstance(part, Literal) and isinstance(part.value, str) and kind.word in MOMENTS:
                moment = moment_of(part.value, kind.word).astype("M8[us]").astype(np.float64)
                sides.append(Range(moment, moment, YES, NO))
            elif isinstance(part, Literal) and isinstance(part.value, str):
                sides.append(_literal(part))
            else:
                sides.append(self.of(part))
        a, b = sides
        present, missing = a.present & b.present, a.missing | b.missing
        if isinstance(a, Range) and isinstance(b, Range):
            exact = all(kind.word != "number" or not kind.decimals for kind in kinds)
            ends = [end if exact else rounded(end, MOST_DECIMALS) for end in (a.low, a.high, b.low, b.high)]
            yes, no = order(sign, *ends)
        elif isinstance(a, Truth) and isinstance(b, Truth):
            yes = (a.yes & b.yes) | (a.no & b.no)
            no = (a.yes & b.no) | (a.no & b.yes)
        else:
            yes, no = _same_word(a, b, parts)
        if sign == "!=" and not isinstance(a, Range):
            yes, no = no, yes
        return Truth(present & yes, present & no, missing)


class CellsOfRows(_Cells):
    """Possible values of formulas in rows of which the cells are known, for more columns than have a grid."""

    def __init__(self, layout: Layout, names: Sequence[str]) -> None:
        super().__init__(layout, names)
        self._single, self._axes = set(), 2
        self._codes: Mapping[str, Codes] = {}
        self._moving: str | None = None

    def cells(self, name: str) -> int:
        return self._columns[name].size

    def possible(self, formula: Expression, codes: Mapping[str, Codes], moving: str | None) -> Possible:
        """Possible values of a formula, arrays that broadcast to (rows, 1), or (rows, cells of one column).

        Args:
            codes: int64[rows] of each column.
            moving: the column that takes each of its cells in turn, if any.
        """
        # A copy, since pieces of a table are made by several threads.
        own = copy(self)
        own._codes, own._moving = codes, moving
        return own.of(formula)

    def _on_axis(self, name: str, values: NDArray[D]) -> NDArray[D]:
        return values[None, :] if name == self._moving else values[self._codes[name]][:, None]


def _literal(formula: Literal) -> Possible:
    if isinstance(formula.value, str):
        return exactly(np.array(formula.value, dtype=object), YES)
    number = np.array(float(formula.value))
    return Range(number, number, YES, NO)


def _same_word(a: Possible, b: Possible, parts: tuple[Expression, ...]) -> tuple[Mask, Mask]:
    assert isinstance(a, Word) and isinstance(b, Word)
    for word, part in ((a, parts[1]), (b, parts[0])):
        if isinstance(part, Literal):
            return word.may(str(part.value))
    if a.exact is not None and b.exact is not None:
        return a.exact == b.exact, a.exact != b.exact
    return YES, YES


def satisfied(
    formula: Expression, layout: Layout, codes: Mapping[str, Codes], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Rows with given cells, and values drawn inside them, for which a formula is true, bool[rows].

    Args:
        formula: a formula over these columns, and over derived ones that are computed from them.
        codes: int64[rows] of each of the columns.
    """
    columns = {c.name: c for c in layout.columns}
    operands: dict[str, Operand] = {}
    for name, code in codes.items():
        values = columns[name].decode(code.astype(np.int64), rng)
        operands[name] = Operand(layout.kinds[name], values, columns[name].codec.text(values))
    return true_rows(formula, layout, operands, len(next(iter(codes.values()))))


def true_rows(
    formula: Expression, layout: Layout, operands: dict[str, Operand], rows: int
) -> NDArray[np.bool_]:
    """Rows for which a formula is true, bool[rows]; operands of derived columns are added."""
    for derived in layout.in_turn():
        if operands.keys() >= set(references(derived.formula)):
            operands[derived.name] = derived.operand(operands, rows)
    values: pa.Array = value_of(formula, operands, rows)
    return np.asarray(pc.fill_null(values, False)).astype(np.bool_)
