"""Figures from answers whose cells have different variances, as those of randomised reports have.

Invariant: the number of rows is public, so only the cells have errors.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.statistics.estimates import LEAST_ROWS, Counts, Numbers, Unbiased


@runtime_checkable
class Uneven(Unbiased, Protocol):
    """Unbiased estimates with a variance for each cell, and a number of rows without one."""

    def cell_variances(self, clique: Clique) -> Numbers:
        """Variance of each cell of a covered clique, shape of the marginal."""
        ...

    def variances(self, clique: Clique, weights: Numbers) -> Numbers:
        """Variance of each weighted sum of a covered clique's cells; weights of shape (sums, *marginal)."""
        ...


def uneven_counts(direct: Uneven, clique: Clique) -> Counts:
    """Counts and shares of the public number of rows, with their errors."""
    rows = direct.marginal(clique).ravel()
    error = np.sqrt(direct.cell_variances(clique).ravel())
    total = float(direct.marginal(()))
    if total < LEAST_ROWS:
        nothing = np.full(rows.shape, np.nan)
        return Counts(rows, error, nothing, nothing)
    return Counts(rows, error, rows / total, error / total)
