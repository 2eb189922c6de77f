"""Where rules are decided by cells alone: combinations of cells that no row may have.

Invariant: a combination is shut only if every row in it violates a rule, and open for good only if none does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.codec import Codes
from dpsynth.domain.domain import Clique
from dpsynth.domain.layout import Layout
from dpsynth.rules.possible import MOST_CELLS, possible
from dpsynth.rules.ranges import Truth
from dpsynth.rules.rule import Condition, Rules

OBEYED, VIOLATED, DEPENDS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Grid:
    """What a condition says of each combination of cells.

    Attributes:
        number: of the rule.
        columns: in table order.
        state: int8, OBEYED, VIOLATED or DEPENDS (on the values), axes as ``columns``.
    """

    number: int
    columns: Clique
    state: NDArray[np.int8]

    @property
    def shut(self) -> NDArray[np.bool_]:
        """Combinations that violate the rule whatever the values."""
        return self.state == VIOLATED

    @property
    def decided(self) -> bool:
        """Whether cells decide in every row."""
        return not (self.state == DEPENDS).any()

    def of(self, codes: Mapping[str, Codes]) -> NDArray[np.int8]:
        """The state of each row, int8[rows]."""
        spots = np.ravel_multi_index([codes[c] for c in self.columns], self.state.shape)
        return self.state.reshape(-1)[spots]


def grid_of(condition: Condition, rules: Rules, layout: Layout) -> Grid | None:
    """The grid of a condition; None where its columns have too many combinations, or a sum is among them."""
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
    state = np.where(found.no, np.where(found.yes | found.gone, DEPENDS, VIOLATED), OBEYED)
    return Grid(condition.number, clique, np.broadcast_to(state, sizes).astype(np.int8))


def grids_of(rules: Rules, layout: Layout) -> tuple[Grid, ...]:
    """The grids of all conditions that have one."""
    found = (grid_of(condition, rules, layout) for condition in rules.conditions)
    return tuple(grid for grid in found if grid is not None)


def zeros_of(
    grids: Sequence[Grid], groups: Mapping[str, NDArray[np.integer]]
) -> dict[Clique, NDArray[np.bool_]]:
    """The cells that no row may have, by columns: True each, over groups where values are merged.

    A group is shut only where all its values are.

    Args:
        grids: of conditions.
        groups: the group of each value of columns that have merged ones.
    """
    found: dict[Clique, NDArray[np.bool_]] = {}
    for grid in grids:
        shut = grid.shut
        for axis, name in enumerate(grid.columns):
            if name in groups:
                shut = _merged(shut, axis, groups[name])
        if shut.any():
            found[grid.columns] = found.get(grid.columns, False) | shut
    return found


def _merged(shut: NDArray[np.bool_], axis: int, groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    turned = np.moveaxis(shut, axis, 0)
    found = np.ones((int(groups.max()) + 1, *turned.shape[1:]), dtype=np.bool_)
    np.logical_and.at(found, groups, turned)
    return np.moveaxis(found, 0, axis)
