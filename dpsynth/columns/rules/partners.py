"""Partners of tied values: the one value of a column that goes with each value of another.

A model of noisy counts gives a number of rows to each pair of values. The partner of a value is the value
that most of its rows have. If partners must differ, all are chosen together so that as many rows as possible
keep theirs (the assignment problem, Kuhn 1955). This is post-processing of public numbers.

Invariant: a value never has two partners. If a tie holds both ways, no two values have the same partner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.grids import Grid
from dpsynth.columns.rules.rule import Rules, Tie

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
