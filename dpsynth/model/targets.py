"""Targets: noisy measurements in the form in which a model is fitted to them.

Invariant: measurements of one clique count once, by their precision-weighted mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Observation
from dpsynth.model.factor import Array, sum_to

_LEAST = 1e-6
"""Least variance of a fitted whole number; less noise than that counts as none."""


@dataclass(frozen=True, eq=False)
class Target:
    """The combined measurements of one clique, or one measurement of linear queries on it.

    Attributes:
        clique: columns, in the order of the cells' axes.
        values: float64[answers], noisy counts.
        variance: variance of each answer; float64[answers] if they differ, as those of sums do.
        query: float64[answers, cells], or None if the answers are the cells themselves.
    """

    clique: Clique
    values: Array
    variance: float | Array
    query: Array | None = None

    @property
    def alike(self) -> bool:
        """True if the answers are the cells themselves, all of one variance."""
        return self.query is None and np.ndim(self.variance) == 0


def estimated_total(measurements: Sequence[Observation]) -> float:
    """Number of rows: the public number if there is one, else the minimum-variance estimate.

    The variance of a full marginal's sum is the sum of its values' variances. The result is at least 1, so
    that proportions are defined for an empty table too.
    """
    full = [m for m in measurements if m.query is None]
    public = [float(m.values.sum()) for m in full if m.noise == "none"]
    if public:
        return max(1.0, public[0])
    sums = np.array([float(m.values.sum()) for m in full])
    weights = np.array([1.0 / max(m.variance_of_sum, _LEAST) for m in full])
    return max(1.0, float((sums * weights).sum() / weights.sum())) if len(sums) else 1.0


def error_of_total(measurements: Sequence[Observation]) -> float:
    """Standard error of ``estimated_total``; 0 for a public number."""
    full = [m for m in measurements if m.query is None]
    if any(m.noise == "none" for m in full):
        return 0.0
    return 1.0 / sqrt(sum(1.0 / max(m.variance_of_sum, _LEAST) for m in full)) if full else 0.0


def targets(measurements: Sequence[Observation], order: Mapping[str, int]) -> tuple[Target, ...]:
    """The targets of some measurements, one for each clique; public counts and totals are left out.

    Args:
        measurements: noisy marginals or queries on them.
        order: rank of each column, which decides the order of the cells' axes.
    """
    sums: dict[Clique, tuple[Array, float | Array]] = {}
    queries: list[Target] = []
    for m in measurements:
        if not m.clique or m.noise == "none":
            continue
        clique = tuple(sorted(m.clique, key=order.__getitem__))
        if m.query is not None:
            transposed = m.query.transpose([0, *(1 + m.clique.index(c) for c in clique)])
            matrix = transposed.reshape(len(m.query), -1).astype(np.float64)
            queries.append(Target(clique, m.values.astype(np.float64), max(m.variance, _LEAST), matrix))
            continue
        values = sum_to(m.values.astype(np.float64), m.clique, clique).reshape(-1)
        precision: float | Array = 1.0 / max(m.variance, _LEAST)
        if m.summed is not None:
            precision = 1.0 / np.maximum(sum_to(m.variances, m.clique, clique).reshape(-1), _LEAST)
        before, weight = sums.get(clique, (np.zeros(values.size), 0.0))
        sums[clique] = before + values * precision, weight + precision
    full = [
        Target(clique, weighted / precision, 1.0 / precision)
        for clique, (weighted, precision) in sums.items()
    ]
    return (*full, *queries)


def one_way_logarithms(domain: Domain, found: Sequence[Target], rows: float) -> dict[Clique, Array]:
    """Log-probabilities of each column's values, from all full marginals that hold it.

    Sums of marginals are averaged by precision, projected on the simplex, and kept above their error.
    The result is a starting point and a centre, not an estimate to publish.
    """
    guesses: dict[Clique, Array] = {}
    for column, size in domain.sizes.items():
        weighted, precision = np.zeros(size), np.zeros(size)
        for target in found:
            if target.query is None and column in target.clique:
                shape = domain.shape(target.clique)
                variances = np.broadcast_to(target.variance, target.values.shape).reshape(shape)
                share = 1.0 / sum_to(variances, target.clique, (column,))
                counts = target.values.reshape(shape)
                weighted += share * sum_to(counts, target.clique, (column,))
                precision += share
        if not precision.any():
            guesses[(column,)] = np.full(size, -log(size))
            continue
        floor = np.minimum(np.sqrt(1.0 / precision) / 4, 0.1 * rows / size)
        kept = np.maximum(on_simplex(weighted / precision, rows), floor)
        guesses[(column,)] = np.log(kept / kept.sum())
    return guesses


def on_simplex(values: Array, total: float) -> Array:
    """The nearest non-negative array with a given sum (Held, Wolfe and Crowder 1974)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    level = over[np.nonzero(falling > over)[0][-1]]
    return np.maximum(values - level, 0.0)
