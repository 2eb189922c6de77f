"""Grids: the states of rules by combinations of cells, and the structural zeros among these.

Invariant: a combination is a structural zero only if every row in it violates a rule, and is marked as obeyed
only if no row in it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.possible import MOST_CELLS, possible
from dpsynth.columns.rules.ranges import Truth
from dpsynth.columns.rules.rule import Condition, Rules

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
