"""Estimated counts: the words that are used of them, and what gives them.

Estimates of columns that were measured together come from the noisy answers, averaged by least squares. They
are linear in the answers, so they have no bias and a variance in closed form. The fitted model's estimates
are cut at zero and smoothed by its independences, so their bias is unknown. The drawback of the linear
estimates: a cell may be below zero. It stays so, because sums of cells then have no bias either.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique

Z95 = 1.96
"""Half the width of a 95 % interval, in standard errors."""

LEAST_ROWS = 0.5
"""Least estimated number of rows that has a mean."""

LEAST_ERRORS = 3.0
"""Least measured number of rows that has a mean, in standard errors of that number."""

HOLDS, NOISE_ONLY, NONE = "95 %", "noise only", "none"
"""The claims of intervals: to hold in 95 of 100 releases; to cover the noise but not the model; nothing."""

Numbers = NDArray[np.float64]
Place = tuple[int, int]
"""A group's number, and the number of groups: the cells of a group lie together."""
ALL: Place = (0, 1)
"""The place of all cells as one group."""


class Counted(Protocol):
    """Estimated counts of cliques, by the answers or by a model."""

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a clique, axes in its order."""
        ...


class Marginals(Protocol):
    """The marginals of a fitted model."""

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        ...

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a clique, axes in its order, summing to ``total``."""
        ...


class Unbiased(Protocol):
    """Unbiased estimates of measured marginals, with the variance of linear functions of them.

    Invariant: marginals of all covered cliques agree on their common columns, and the covariance of a
        clique's
    cells is invariant to permutations of a column's codes.
    """

    def covers(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together; () is the number of rows."""
        ...

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a covered clique, axes in its order; may be negative."""
        ...

    def variance(self, clique: Clique, weights: Numbers) -> float:
        """Variance of the sum of a covered clique's cells times weights of the same shape."""
        ...

    def cell_variance(self, clique: Clique) -> float:
        """Variance of any one cell of a covered clique, in rows squared."""
        ...


@dataclass(frozen=True, eq=False)
class Counts:
    """Estimated rows of each cell of a clique, cells in the order of its flat array.

    Attributes:
        rows: estimated number of rows.
        error: its standard error; NaN where unknown.
        share: part of all rows; NaN where there are none.
        share_error: standard error of the share.
    """

    rows: Numbers
    error: Numbers
    share: Numbers
    share_error: Numbers


def ratio(above: Numbers, below: Numbers | float, least: float) -> Numbers:
    """Quotients of sums by counts, NaN where the count is below ``least``."""
    quotients = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotients, where=np.asarray(below) >= least)
    return quotients


def of_two_cells(cell: float, whole: float, cells: int) -> tuple[float, float]:
    """The covariance of two of some cells, and a cell's variance less that; ``whole`` is their sum's."""
    shared = (whole - cells * cell) / (cells * (cells - 1)) if cells > 1 else 0.0
    return shared, cell - shared
