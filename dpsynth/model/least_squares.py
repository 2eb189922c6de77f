"""Best linear unbiased estimates of measured marginals, with their exact variances.

Each marginal is split into orthogonal residuals, one for each subset of its columns (total, main
effects, interactions). Each residual is averaged over all measurements that contain it, and the residuals
are added up (Xiao et al. 2023; Mullins et al. 2024). In contrast to the fitted model, an estimate may be
negative in a cell, has no bias, and has a variance in closed form.

Invariant: the estimates of all covered cliques agree with each other.

Residuals of a table: for each target of a refinement, how far the table's own counts are from it.

Invariant: residuals are whole numbers far below 2^53, times whole weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import cells_of
from dpsynth.columns.domain import Clique, Domain, subsets
from dpsynth.columns.measurement import Observation
from dpsynth.columns.workload import unions
from dpsynth.model.factor import Array, spread, sum_to

WIDEST = 3
"""Largest number of columns of a target."""

_HEAVIEST = 1 << 10
"""The largest weight as a whole number."""

UNIT = 16
"""Parts of a row to which targets are rounded."""

_MOST = 1 << 27
"""Bound on the rows of a cell: 2^27 x 16 x 2^10 is 2^41, so sums of 16 views and more stay below 2^45."""

_MOST_SHARED = 1 << 14
"""Largest number of cells of targets that are counted together: the result stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class TableTarget:
    """The wanted counts of a marginal.

    Attributes:
        clique: one to three columns.
        counts: float64, shape ``domain.shape(clique)``: rows of each cell.
        weight: weight of a squared difference of rows, above 0; only ratios of weights matter.
        variance: mean squared error of a cell of the counts, in rows squared; None if it is not known.
        below: rows below 0 that a count of 0 stands for: so few rows stray into cells that should be empty,
            where the square of a few rows would hardly count.
    """

    clique: Clique
    counts: Array
    weight: float
    variance: float | None = None
    below: float = 0.0


def whole_weight(target: TableTarget, heaviest: float) -> float:
    """The weight of a target as a whole number, relative to the heaviest one's."""
    return float(max(1, round(target.weight / heaviest * _HEAVIEST)))


def below_zero(target: TableTarget) -> Array:
    """Distance below 0 of each cell of a target, in parts of a row; 0 for cells with a count."""
    return np.where(target.counts > 0, 0.0, round(UNIT * target.below))


def residuals_of(
    domain: Domain, target: TableTarget, rows: NDArray[np.int64], weight: float
) -> tuple[tuple[int, ...], Array]:
    """The places of a target's columns, and weight x (rows - target) in parts of a row."""
    clique, counts = target.clique, target.counts
    if not (counts.min() >= 0 and max(counts.max(), rows.sum()) < _MOST):
        raise ValueError(
            f"the target of {clique} must have counts from 0 to {_MOST - 1}, no more rows either"
        )
    members = tuple(domain.columns.index(c) for c in clique)
    return members, np.asarray(weight * (UNIT * rows - np.rint(UNIT * counts)), dtype=np.float64)


def counts_of(
    domain: Domain, codes: Mapping[str, NDArray[np.unsignedinteger]], wanted: Sequence[TableTarget]
) -> dict[Clique, NDArray[np.int64]]:
    """The rows of each cell of the targets' cliques, int64 of shape ``domain.shape(clique)``."""
    for target in wanted:
        clique, shape = target.clique, domain.shape(target.clique)
        if not 1 <= len(clique) <= WIDEST or target.counts.shape != shape:
            raise ValueError(f"the target of {clique} must have one to three columns and the shape {shape}")
    found = {}
    cliques = list(dict.fromkeys(target.clique for target in wanted))
    for union, members in unions(domain, cliques, _MOST_SHARED):
        number = len(codes[union[0]])
        cells = np.bincount(cells_of(codes, domain, union, number), minlength=domain.cells(union))
        whole = cells.reshape(domain.shape(union))
        for clique in members:
            left = tuple(c for c in union if c in clique)
            part = whole.sum(axis=tuple(i for i, c in enumerate(union) if c not in clique))
            found[clique] = part.transpose([left.index(c) for c in clique])
    return found


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
