"""Search for a row that obeys all rules, among all possible rows and without any table.

Rows are drawn uniformly. In a row that violates a rule, a column of the rule is drawn again, some hundred
times (the random walk of Papadimitriou 1991, from many rows at once). Cells are missing in the search only in
columns of which a rule says ``is missing``: rules that only rows without values obey are refused too.

Invariant: the row that is found obeys all rules. A row may exist and not be found; then the configuration is
refused, and the remedy is a weaker rule or a narrower column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.expression import Call, Expression
from dpsynth.columns.rules.checking import Checks
from dpsynth.columns.rules.rule import Rules

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

    Groups of rules that share no column, directly or through other rules, are searched separately.
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
    """Connected components of the rules: numbers of rules that share columns."""
    left = {
        number: set(columns) for number in range(len(rules.written)) if (columns := rules.columns(number))
    }
    while left:
        first = next(iter(left))
        part, columns_of_part = [first], left.pop(first)
        while more := [number for number, others in left.items() if others & columns_of_part]:
            part += more
            columns_of_part = columns_of_part.union(*(left.pop(number) for number in more))
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
    """A row that obeys all rules, if the walk finds one."""
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
        """The rows, with some of them as in an earlier state."""
        codes = {n: np.where(back, old.codes[n], c) for n, c in self.codes.items()}
        count = np.where(back, old.count, self.count)
        return _State(codes, np.where(back, old.broken, self.broken), count)

    def take(self, spots: Codes) -> _State:
        """The rows at some positions."""
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
