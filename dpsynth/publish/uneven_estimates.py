"""Figures from answers whose cells have different variances, as those of randomised reports have.

Invariant: the number of rows is public, so only the cells have errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.publish.estimates import LEAST_ERRORS, LEAST_ROWS, Counts, Means, Numbers, Unbiased


@runtime_checkable
class Uneven(Unbiased, Protocol):
    """Unbiased estimates with a variance for each cell, and a number of rows without one."""

    def cell_variances(self, clique: Clique) -> Numbers:
        """Variance of each cell of a covered clique, shape of the marginal."""
        ...

    def variances(self, clique: Clique, weights: Numbers) -> Numbers:
        """Variance of each weighted sum of a covered clique's cells; weights of shape (sums, *marginal)."""
        ...


@dataclass(frozen=True, eq=False)
class MeasuredUnevenly:
    """Figures from such answers alone."""

    direct: Uneven

    def counts(self, clique: Clique) -> Counts:
        """Counts and shares of the public number of rows, with their errors."""
        rows = self.direct.marginal(clique).ravel()
        error = np.sqrt(self.direct.cell_variances(clique).ravel())
        total = float(self.direct.marginal(()))
        if total < LEAST_ROWS:
            nothing = np.full(rows.shape, np.nan)
            return Counts(rows, error, nothing, nothing)
        return Counts(rows, error, rows / total, error / total)

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means as ratios of sums, their errors to first order; none where the rows are mostly noise.

        The mean m of a group of n rows moves with the sum of its cells times (centre - m)/n.
        """
        marginal = self.direct.marginal(clique)
        cells = np.atleast_2d(marginal)[:, : len(centres)]
        groups = len(cells)
        weights = np.zeros((groups, *np.atleast_2d(marginal).shape))
        each = np.arange(groups)
        weights[each, each, : len(centres)] = 1.0
        rows = cells.sum(axis=1)
        of_rows = np.sqrt(self.direct.variances(clique, weights.reshape(groups, *marginal.shape)))
        told = rows >= np.maximum(LEAST_ROWS, LEAST_ERRORS * of_rows)
        size = np.where(told, rows, np.nan)
        mean = cells @ centres / size
        weights[each, each, : len(centres)] = np.nan_to_num((centres - mean[:, None]) / size[:, None])
        error = np.sqrt(self.direct.variances(clique, weights.reshape(groups, *marginal.shape)))
        inside = np.maximum(cells, 0.0) @ half_widths / size
        grouping_error = np.clip(inside, 0.0, half_widths.max())
        return Means(mean, np.where(told, error, np.nan), rows, grouping_error)
