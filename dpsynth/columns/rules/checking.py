"""Checks of the rules on rows, and the search for a row that obeys all of them, without any table.

Rows are checked by cells if these decide, otherwise by values.

Invariant: a row that passes both checks, such as the row that is found, violates no rule in the published
files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes, Intervals
from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived, rounded
from dpsynth.columns.expression import (
    MOMENTS,
    Call,
    Expression,
    Operand,
    Reference,
    microseconds,
    references,
    value_of,
)
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.grids import DEPENDS, VIOLATED, Grid, grids_of
from dpsynth.columns.rules.rule import Condition, Rules, Sum, connected

Arrays = Mapping[str, pa.Array]
"""Typed values of columns, null for missing."""

Bad = NDArray[np.bool_]

_MOST_TAKEN = 0.5
"""Share of the rows up to which it pays to check these rows alone."""

_CLOSE = 1e-9
"""Distance of a number from the end of its cell that arithmetic alone may make."""


@dataclass(frozen=True, eq=False)
class Checks:
    """The checks of a table's rules on many rows at once."""

    rules: Rules
    layout: Layout

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        return grids_of(self.rules, self.layout)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.layout.columns}

    @cached_property
    def by_value(self) -> tuple[tuple[Condition, Grid | None], ...]:
        """Conditions that cells do not decide in every row, with their grids."""
        of = {grid.number: grid for grid in self.grids}
        pairs = ((c, of.get(c.number)) for c in self.rules.conditions)
        return tuple((c, grid) for c, grid in pairs if grid is None or not grid.decided)

    def violating_cells(self, codes: Mapping[str, Codes]) -> Bad:
        """Rows whose cells violate a condition for all values, bool[rows]."""
        bad = np.zeros(len(next(iter(codes.values()))), dtype=np.bool_)
        for grid in self.grids:
            if grid.zeros.any():
                bad |= grid.of(codes) == VIOLATED
        return bad

    @cached_property
    def undecided(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for condition, _ in self.by_value:
            found |= dict.fromkeys(self.rules.names(condition.formula))
        for total in self.rules.sums.values():
            found |= dict.fromkeys(self.rules.names(total.formula))
        return tuple(c for c in found if c not in self.rules.sums)

    def summed(self, drawn: Arrays) -> tuple[dict[str, pa.Array], dict[int, Bad]]:
        """The values, with sums computed in every row that has the sum's column and all of its parts.

        Returns:
            The values; and for each sum's number the rows whose sum is no valid value of its column: it lies
            outside of the column's ends, would be read as missing, or does not fit in a double.
        """
        arrays = dict(drawn)
        operands = {n: self._operand(n, drawn[n]) for n in self._for_sums if n in self.columns}
        bad: dict[int, Bad] = {}
        for turn in self.rules.turns:
            if isinstance(turn, Derived):
                if turn.name in self._for_sums:
                    operands[turn.name] = turn.operand(operands, self._rows(drawn))
                continue
            column, old = self.columns[turn.target], arrays[turn.target]
            decimals = column.codec.kind.decimals
            value = rounded(value_of(turn.formula, operands, self._rows(drawn)), decimals)
            value = value.cast(old.type)
            parts = np.logical_and.reduce([operands[n].values.is_valid() for n in references(turn.formula)])
            new = pc.if_else(pc.and_(value.is_valid(), old.is_valid()), value, old)
            lost = parts & np.asarray(pc.and_(value.is_null(), old.is_valid()))
            bad[turn.number] = lost | ~self.fits(column, new)
            arrays[turn.target] = new
            operands[turn.target] = self._operand(turn.target, new)
        return arrays, bad

    def computed(self, turn: Sum, values: Arrays) -> pa.Array:
        """The value of a sum in each row, of its column's type and decimals; null where a part is missing."""
        operands = self._operands(values, set(references(turn.formula)))
        column = self.columns[turn.target]
        value = rounded(value_of(turn.formula, operands, self._rows(values)), column.codec.kind.decimals)
        return value.cast(values[turn.target].type)

    def outside(self, codes: Mapping[str, Codes], summed: Arrays) -> Bad:
        found = np.zeros(self._rows(summed), dtype=np.bool_)
        for target in self.rules.sums:
            cells, own = self.columns[target].codec.cell_values, codes[target]
            assert isinstance(cells, Intervals), "the column of a sum is continuous"
            has = np.asarray(summed[target].is_valid()) & (own < len(cells.low))
            value = np.asarray(pc.fill_null(summed[target].cast(pa.float64()), 0.0))
            spot = np.where(has, own, 0)
            found |= has & ((value < cells.low[spot] - _CLOSE) | (value > cells.high[spot] + _CLOSE))
        return found

    def cells(self, name: str, values: pa.Array, before: Codes) -> Codes:
        """The cell of each value of a column of ordered cells; of missing ones that which they had."""
        ends = self.columns[name].codec.cell_values
        assert isinstance(ends, Intervals), "a part of a sum is a number or a moment"
        moments = self.layout.kinds[name].word in MOMENTS
        numbers = microseconds(values) if moments else values.cast(pa.float64())
        found = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False))
        places = np.searchsorted(ends.low, found + (0 if moments else _CLOSE), side="right") - 1
        return np.where(
            (before < len(ends.low)) & np.asarray(values.is_valid()), np.maximum(places, 0), before
        )

    def violating_values(self, codes: Mapping[str, Codes], summed: Arrays) -> Bad:
        """Rows that violate a condition, bool[rows]; those in which cells decide may be left out."""
        bad = np.zeros(self._rows(summed), dtype=np.bool_)
        whole: list[Condition] = []
        for condition, grid in self.by_value:
            if grid is None:
                whole.append(condition)
                continue
            depends = grid.of(codes) == DEPENDS
            if depends.mean() > _MOST_TAKEN:
                whole.append(condition)
            elif depends.any():
                spots = np.flatnonzero(depends)
                few = {name: summed[name].take(pa.array(spots)) for name in grid.columns}
                bad[spots] |= self._violated([condition], few)
        return bad | self._violated(whole, summed) if whole else bad

    def each(self, summed: Arrays) -> dict[int, Bad]:
        """Rows that violate each condition, by its number."""
        return {c.number: self._violated([c], summed) for c in self.rules.conditions}

    @staticmethod
    def _rows(values: Arrays) -> int:
        return len(next(iter(values.values())))

    def _violated(self, conditions: list[Condition], summed: Arrays) -> Bad:
        wanted = {name for condition in conditions for name in references(condition.formula)}
        rows, operands = self._rows(summed), self._operands(summed, wanted)
        bad = np.zeros(rows, dtype=np.bool_)
        for condition in conditions:
            obeyed = pc.fill_null(value_of(condition.formula, operands, rows), True)
            bad |= ~np.asarray(obeyed)
        return bad

    def fits(self, column: Column, values: pa.Array) -> Bad:
        """Valid values of a column, bool[rows]: missing, or between its ends and not written like missing."""
        numbers = column.codec.cell_values
        assert isinstance(numbers, Intervals), "the column of a sum is continuous"
        low, high = numbers.low[0].item(), numbers.high[-1].item()
        within = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        fits = np.asarray(pc.fill_null(within, True))
        if column.markers_may_be_drawn:
            marks = pa.array([*column.markers, *column.distinct], pa.string())
            fits = fits & ~np.asarray(pc.is_in(column.codec.text(values), marks))
        return fits

    def _operands(self, values: Arrays, wanted: set[str]) -> dict[str, Operand]:
        needed = self._derived(wanted)
        operands = {name: self._operand(name, values[name]) for name in needed if name in self.columns}
        for turn in self.rules.turns:
            if isinstance(turn, Derived) and turn.name in needed:
                operands[turn.name] = turn.operand(operands, self._rows(values))
        return operands

    def _derived(self, wanted: set[str]) -> set[str]:
        needed = set(wanted)
        for turn in reversed(self.rules.turns):
            if isinstance(turn, Derived) and turn.name in needed:
                needed |= set(references(turn.formula))
        return needed

    @cached_property
    def _for_sums(self) -> set[str]:
        parts = {name for total in self.rules.sums.values() for name in references(total.formula)}
        return self._derived(parts)

    def _operand(self, name: str, values: pa.Array) -> Operand:
        kind, codec = self.layout.kinds[name], self.columns[name].codec
        read = kind.word == "text" or name in self._spelt
        return Operand(kind, values, codec.text(values) if read else pa.nulls(len(values), pa.string()))

    @cached_property
    def _spelt(self) -> frozenset[str]:
        """Columns whose texts formulas use, whatever their kind."""
        found: set[str] = set()
        for formula in (*(c.formula for c in self.rules.conditions), *(t.formula for t in self.rules.turns)):
            found |= set(_spelt(formula))
        for turn in self.rules.turns:
            if isinstance(turn, Derived) and turn.map:
                found |= set(references(turn.formula))
        return frozenset(found)


def _spelt(formula: Expression) -> Iterator[str]:
    if isinstance(formula, Call):
        for operand in formula.operands:
            if isinstance(operand, Reference) and formula.operation in ("first", "last", "join"):
                yield operand.column
            yield from _spelt(operand)


_ROWS = 2048

_FEWER = 512
"""Number of rows that are kept if the first rounds found none."""

_PATIENCE = 120
"""Rounds without progress after which the search ends; in a round of progress, some row breaks fewer rules
than any row before."""

_MOST_PAIRS = 100
"""Largest number of pairs of rules that are tested to name two that contradict each other."""

_GREED = 0.9
"""Probability that a change is undone which breaks more rules than it repairs."""


@dataclass(frozen=True, eq=False)
class Witness:
    """A row that obeys all rules: its cells and values in the columns that rules name."""

    codes: Mapping[str, int]
    values: Mapping[str, pa.Scalar]


@dataclass(frozen=True)
class Unobeyed:
    """Numbers of rules that no row was found to obey together: one, two or more."""

    numbers: tuple[int, ...]


def witness_of(checks: Checks) -> Witness | Unobeyed:
    """A row that obeys all rules, or rules for which none was found; the result is deterministic.

    Groups of rules that share no column, directly or through other rules, are searched separately. A row may
    exist and not be found; then the configuration is refused, and the remedy is a weaker rule or a narrower
    column.
    """
    codes: dict[str, int] = {}
    values: dict[str, pa.Scalar] = {}
    for numbers in _components(checks.rules):
        found = _walk(_only(checks, numbers))
        if found is None:
            return _narrowed(checks, numbers)
        codes |= found.codes
        values |= found.values
    return Witness(codes, values)


def _only(checks: Checks, numbers: Collection[int]) -> Checks:
    return Checks(checks.rules.only(numbers), checks.layout)


def _components(rules: Rules) -> Iterator[tuple[int, ...]]:
    numbers = [number for number in range(len(rules.written)) if rules.columns(number)]
    for part in connected(numbers, rules.columns):
        yield tuple(sorted(part))


def _narrowed(checks: Checks, numbers: tuple[int, ...]) -> Unobeyed:
    """One rule or two for which no row was found, of rules for which none was found together."""
    for number in numbers:
        if _walk(_only(checks, (number,))) is None:
            return Unobeyed((number,))
    of = {n: set(checks.rules.columns(n)) for n in numbers}
    pairs = (pair for pair in combinations(numbers, 2) if of[pair[0]] & of[pair[1]])
    tried = islice(pairs, _MOST_PAIRS)
    return Unobeyed(next((pair for pair in tried if _walk(_only(checks, pair)) is None), numbers))


def _walk(checks: Checks) -> Witness | None:
    """A row that obeys all rules, if the walk finds one.

    Rows are drawn uniformly. In a row that violates a rule, a column of the rule is drawn again, some hundred
    times (the random walk of Papadimitriou 1991, from many rows at once). Cells are missing in the search
    only in columns of which a rule says ``is missing``: rules that only rows without values obey are refused
    too.
    """
    rules, rng = checks.rules, np.random.default_rng(0)
    names, vague = rules.named, set(_may_be_missing(rules))
    of = [[c for c in rules.columns(n) if c not in rules.sums] for n in range(len(rules.written))]

    def drawn(name: str, where: NDArray[np.float64]) -> Codes:
        """Cells of a column at relative positions in [0, 1); missing in a third of the rows if allowed."""
        column = checks.columns[name]
        codes = (where * len(column.codec.labels)).astype(np.int64)
        if name in vague and column.size > len(column.codec.labels):
            codes[rng.random(len(where)) < 1 / 3] = len(column.codec.labels)
        return codes

    # In half of the rows all columns stand at about the same height, in some order: so do those of orders.
    height, steps = rng.random(_ROWS), rng.random(_ROWS) / len(names)
    even = rng.random(_ROWS) < 1 / 2
    codes: dict[str, Codes] = {}
    for i, name in enumerate(names):
        slope = np.where(rng.random(_ROWS) < 1 / 2, steps * i, 0.0)
        codes[name] = drawn(name, np.where(even, rng.random(_ROWS), (height + slope) % 1.0))
        if name in vague:
            # In a sixteenth of the rows all of these are missing, as those of linked rows that aren't there.
            column = checks.columns[name]
            codes[name][::16] = min(len(column.codec.labels), column.size - 1)
    best: _State | None = None
    least, since = len(of) + 1, 0
    while since < _PATIENCE:
        tried = {name: checks.columns[name].decode(c, rng) for name, c in codes.items()}
        values, unfit = checks.summed(tried)
        broken = np.zeros((len(of), len(codes[names[0]])), dtype=np.bool_)
        for number, bad in [*checks.each(values).items(), *unfit.items()]:
            broken[number] |= bad
        state = _State(codes, broken, broken.sum(axis=0))
        obeying = np.flatnonzero(state.count == 0)
        if obeying.size:
            spot = int(obeying[0])
            return Witness({n: int(c[spot]) for n, c in codes.items()}, {n: values[n][spot] for n in names})
        if best is not None:
            # Worse rows go back to what they were, mostly.
            state = state.back_to(best, (state.count > best.count) & (rng.random(best.count.size) < _GREED))
        if since == _PATIENCE // 4 and state.count.size > _FEWER:
            state = state.take(np.argsort(state.count, kind="stable")[:_FEWER])
        best = state
        since = 0 if state.count.min() < least else since + 1
        least = min(least, int(state.count.min()))
        rule = np.where(best.broken, rng.random(best.broken.shape), -1.0).argmax(axis=0)
        codes = {n: c.copy() for n, c in best.codes.items()}
        for number, columns in enumerate(of):
            rows = np.flatnonzero(rule == number)
            which = rng.integers(0, max(len(columns), 1), rows.size)
            for i, name in enumerate(columns):
                spots = rows[which == i]
                codes[name][spots] = drawn(name, rng.random(spots.size))
    return None


@dataclass(frozen=True, eq=False)
class _State:
    """Rows of the walk: their cells, the broken rules, bool[rules, rows], and the number of these."""

    codes: dict[str, Codes]
    broken: NDArray[np.bool_]
    count: NDArray[np.int64]

    def back_to(self, old: _State, back: NDArray[np.bool_]) -> _State:
        codes = {n: np.where(back, old.codes[n], c) for n, c in self.codes.items()}
        count = np.where(back, old.count, self.count)
        return _State(codes, np.where(back, old.broken, self.broken), count)

    def take(self, spots: Codes) -> _State:
        codes = {n: c[spots] for n, c in self.codes.items()}
        return _State(codes, self.broken[:, spots], self.count[spots])


def _may_be_missing(rules: Rules) -> Iterable[str]:
    """Columns of which a rule says ``is missing``, and the columns from which these are computed."""
    for condition in rules.conditions:
        for formula in _asked(condition.formula):
            yield from rules.names(formula)


def _asked(formula: Expression) -> Iterable[Expression]:
    if isinstance(formula, Call):
        if formula.operation == "missing":
            yield formula.operands[0]
        for operand in formula.operands:
            yield from _asked(operand)
