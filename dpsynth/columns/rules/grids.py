"""Grids: the states of rules by combinations of cells, and the structural zeros among these.

Invariant: a combination is a structural zero only if every row in it violates a rule, and is marked as obeyed
only if no row in it does.

Partners of tied values: the one value of a column that goes with each value of another.

A model of noisy counts gives a number of rows to each pair of values. The partner of a value is the value
that most of its rows have. If partners must differ, all are chosen together so that as many rows as possible
keep theirs (the assignment problem, Kuhn 1955). This is post-processing of public numbers.

Invariant: a value never has two partners. If a tie holds both ways, no two values have the same partner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.ranges import MOST_CELLS, Truth, possible
from dpsynth.columns.rules.rule import Condition, Rules, Tie

OBEYED, VIOLATED, DEPENDS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Grid:
    """State of a condition in each combination of cells.

    Attributes:
        number: number of the rule.
        columns: columns of the condition, in table order.
        state: int8, OBEYED, VIOLATED or DEPENDS (on the values), axes as ``columns``.
    """

    number: int
    columns: Clique
    state: NDArray[np.int8]

    @property
    def zeros(self) -> NDArray[np.bool_]:
        """Structural zeros: combinations that violate the rule for all values."""
        return self.state == VIOLATED

    @property
    def decided(self) -> bool:
        """True if cells decide the rule in every row."""
        return not (self.state == DEPENDS).any()

    def of(self, codes: Mapping[str, Codes]) -> NDArray[np.int8]:
        """The state of each row, int8[rows]."""
        spots = np.ravel_multi_index([codes[c] for c in self.columns], self.state.shape)
        return self.state.reshape(-1)[spots]


def grid_of(condition: Condition, rules: Rules, layout: Layout) -> Grid | None:
    """The grid of a condition; None if its columns have too many combinations or include a sum."""
    names = rules.names(condition.formula, into_sums=False)
    columns = tuple(c for c in layout.columns if c.name in names)
    if not columns or not rules.sums.keys().isdisjoint(names) or any(c.search is not None for c in columns):
        return None
    sizes = [c.size for c in columns]
    if prod(sizes) > MOST_CELLS:
        return None
    clique = tuple(c.name for c in columns)
    found = possible(condition.formula, layout, clique)
    assert isinstance(found, Truth)
    state = np.where(found.no, np.where(found.yes | found.missing, DEPENDS, VIOLATED), OBEYED)
    return Grid(condition.number, clique, np.broadcast_to(state, sizes).astype(np.int8))


def grids_of(rules: Rules, layout: Layout) -> tuple[Grid, ...]:
    """The grids of all conditions that have one."""
    found = (grid_of(condition, rules, layout) for condition in rules.conditions)
    return tuple(grid for grid in found if grid is not None)


def zeros_of(
    grids: Sequence[Grid], groups: Mapping[str, NDArray[np.integer]]
) -> dict[Clique, NDArray[np.bool_]]:
    """Structural zeros by clique: True for cells that no row may have, over groups of compressed columns.

    A group is a zero only if all its values are.

    Args:
        grids: the grids of conditions.
        groups: for each compressed column, the group of each value.
    """
    found: dict[Clique, NDArray[np.bool_]] = {}
    for grid in grids:
        zeros = grid.zeros
        for axis, name in enumerate(grid.columns):
            if name in groups:
                zeros = _merged(zeros, axis, groups[name])
        if zeros.any():
            found[grid.columns] = found.get(grid.columns, False) | zeros
    return found


def _merged(zeros: NDArray[np.bool_], axis: int, groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    transposed = np.moveaxis(zeros, axis, 0)
    found = np.ones((int(groups.max()) + 1, *transposed.shape[1:]), dtype=np.bool_)
    np.logical_and.at(found, groups, transposed)
    return np.moveaxis(found, 0, axis)


NONE = -1
"""The partner of a value that has none."""

Marginal = Callable[[Clique], NDArray[np.float64]]
"""A function from columns to expected rows over them, axes in the order of the columns."""


def partners(rows: NDArray[np.float64], zeros: NDArray[np.bool_], both: bool) -> Codes:
    """Partner of each value on the left, int64[left]; NONE if there is none.

    Args:
        rows: float64[left, right], expected numbers of rows.
        zeros: bool[left, right], pairs that another rule forbids.
        both: True if no two values may have the same partner.

    >>> partners(np.array([[5.0, 4.0], [3.0, 0.0]]), np.zeros((2, 2), bool), both=True)
    array([1, 0])
    """
    rows_kept = np.where(zeros, -1.0 - rows.sum(), rows)
    found = np.full(len(rows), NONE, dtype=np.int64)
    if both:
        # Slow to load, and not needed to read a configuration.
        from scipy.optimize import linear_sum_assignment

        left, right = linear_sum_assignment(rows_kept, maximize=True)
    else:
        left, right = np.arange(len(rows)), rows_kept.argmax(axis=1)
    found[left] = right
    found[left[zeros[left, right]]] = NONE
    return found


def partners_of(
    rules: Rules, layout: Layout, grids: Sequence[Grid], marginal: Marginal
) -> tuple[tuple[Tie, Codes], ...]:
    """Ties with the partners of their left columns' cells, in the order of the rules' ties."""
    sizes = {c.name: len(c.codec.labels) for c in layout.columns}
    found = []
    for tie in rules.ties:
        pair = (tie.left, tie.right)
        rows = marginal(pair)[: sizes[tie.left], : sizes[tie.right]]
        zeros = np.zeros(rows.shape, dtype=np.bool_)
        for grid in grids:
            if set(grid.columns) <= set(pair):
                zeros |= _over(grid, pair)[: sizes[tie.left], : sizes[tie.right]]
        found.append((tie, partners(rows, zeros, tie.both)))
    return tuple(found)


def _over(grid: Grid, pair: Clique) -> NDArray[np.bool_]:
    """Structural zeros of a grid, over a pair that holds its columns."""
    transposed = grid.zeros.transpose([grid.columns.index(c) for c in pair if c in grid.columns])
    return (
        transposed
        if transposed.ndim == 2
        else transposed[:, None]
        if grid.columns == pair[:1]
        else transposed[None, :]
    )
