"""Best linear unbiased estimates of measured marginals, with their exact variances.

Each marginal is split into orthogonal residuals, one for each subset of its columns (total, main
effects, interactions). Each residual is averaged over all measurements that contain it, and the residuals
are added up (Xiao et al. 2023; Mullins et al. 2024). In contrast to the fitted model, an estimate may be
negative in a cell, has no bias, and has a variance in closed form.

Invariant: the estimates of all covered cliques agree with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.columns.domain import Clique, Domain, subsets
from dpsynth.columns.measurement import Observation
from dpsynth.model.factor import Array, spread, sum_to


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual of one subset of columns: the part of its marginal that is not in smaller subsets.

    Attributes:
        values: precision-weighted mean over all measurements; sums to 0 along every axis.
        variance: v such that the covariance of ``values`` is v times a projection.
    """

    values: Array
    variance: float


def centred(values: Array, first: int = 0) -> Array:
    """Values less the mean along each axis, but for ``first`` axes: the highest interaction."""
    for axis in range(first, values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


class LeastSquares:
    """Estimates of every marginal that lies inside a measured clique."""

    def __init__(self, domain: Domain, measurements: Sequence[Observation]) -> None:
        """The residuals of full marginals; an exact public count has no error.

        Queries are left out, and so are marginals whose values have different variances.
        """
        self._domain = domain
        sums: dict[Clique, tuple[Array, float]] = {}
        exact: dict[Clique, Array] = {}
        for m in measurements:
            summed = 1 if m.summed is None else int(m.summed.flat[0])
            if m.query is not None or (m.summed is not None and (m.summed != summed).any()):
                continue
            variance = summed * m.variance
            clique = domain.canonical(m.clique)
            values = sum_to(m.values.astype(np.float64), m.clique, clique)
            for subset in subsets(clique):
                residual = centred(sum_to(values, clique, subset))
                if variance == 0:
                    exact[subset] = residual
                    continue
                weight = domain.cells(subset) / (variance * domain.cells(clique))
                before, known = sums.get(subset, (np.zeros(residual.shape), 0.0))
                sums[subset] = before + weight * residual, known + weight
        self._residuals = {s: Residual(v / w, 1.0 / w) for s, (v, w) in sums.items()}
        self._residuals |= {s: Residual(v, 0.0) for s, v in exact.items()}

    def covers(self, clique: Clique) -> bool:
        """True if every residual of a clique was measured."""
        return all(s in self._residuals for s in subsets(self._domain.canonical(clique)))

    def _share(self, subset: Clique, clique: Clique) -> float:
        return self._domain.cells(subset) / self._domain.cells(clique)

    def marginal(self, clique: Clique) -> Array:
        """Estimated counts of a covered clique, axes in the clique's order."""
        ordered = self._domain.canonical(clique)
        found = np.zeros(self._domain.shape(ordered))
        for subset in subsets(ordered):
            values = self._residuals[subset].values * self._share(subset, ordered)
            found = found + spread(values, subset, ordered)
        return sum_to(found, ordered, clique)

    def variance(self, clique: Clique, weights: Array) -> float:
        """Variance of a weighted sum of a covered clique's cells.

        Args:
            clique: columns, in the order of the weights' axes.
            weights: one weight for each cell, shape ``domain.shape(clique)``.
        """
        ordered = self._domain.canonical(clique)
        arranged = sum_to(np.asarray(weights, dtype=np.float64), clique, ordered)
        total = 0.0
        for subset in subsets(ordered):
            part = centred(sum_to(arranged, ordered, subset)) * self._share(subset, ordered)
            total += self._residuals[subset].variance * float((part * part).sum())
        return total

    def cell_variance(self, clique: Clique) -> float:
        """Variance of each cell of a covered clique; the same for all of its cells."""
        weights = np.zeros(self._domain.shape(clique))
        weights.reshape(-1)[:1] = 1.0
        return self.variance(clique, weights)
