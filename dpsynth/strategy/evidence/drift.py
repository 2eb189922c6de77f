"""Drift: the change of a table between two periods, by the noisy counts of single columns.

With n rows now, n' then and r = n/n', counts y now and y' then, both noisy, the squares (y - r y')^2 sum
over the cells of a column to the variance of both noises and a drift K n. Two samples of one population
differ too: a difference of counts of mean m has a variance of (1 + r) m, so K is at least 1 + r. The rest of
K is taken to grow with the time between the periods:

    K = 1 + r + D x periods between,  D >= 0 fitted to all periods by weighted least squares.

A marginal of m cells is taken to have the drift of a column, K n/m a cell.

Invariant: public arithmetic on noisy answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Observation
from dpsynth.model.factor import Array
from dpsynth.model.targets import estimated_total

Counts = Mapping[Clique, tuple[Array, float]]
"""Counts of each column's values, and their noise's variance."""


@dataclass(frozen=True)
class Drift:
    """The factor and the variance that turn counts of an earlier period into estimates of now.

    Attributes:
        ratio: r, rows now over rows then.
        squared: K n, the variance of all cells of a marginal together, in rows squared.
    """

    ratio: float
    squared: float


def drifts(
    now: Sequence[Observation],
    earlier: Sequence[tuple[int, Sequence[Observation]]],
    shrinkage: float = 0.0,
) -> tuple[Drift, ...]:
    """The drift from each earlier period.

    Args:
        now: the total and one-way answers.
        earlier: each earlier period's age in periods, at least 1, with its total and one-way answers.
        shrinkage: number of standard errors that are subtracted from the estimate of D.
    """
    rows, counts = estimated_total(now), pooled_counts(now)
    ratios = [rows / estimated_total(then) for _, then in earlier]
    above = below = 0.0
    for (periods, then), ratio in zip(earlier, ratios, strict=True):
        squares, error = _squares(counts, pooled_counts(then), ratio)
        if error > 0:
            above += periods * (squares - (1 + ratio) * rows) / error**2
            below += (periods / error) ** 2
    growth = max(above / below - shrinkage / sqrt(below), 0.0) if below > 0 else 0.0
    return tuple(
        Drift(ratio, (1 + ratio) * rows + growth * periods)
        for (periods, _), ratio in zip(earlier, ratios, strict=True)
    )


def discrepancy(singles: Sequence[Observation], others: Sequence[Observation]) -> float:
    """The distance of two releases' one-way answers beyond that of noise, in standard deviations.

    Squared differences over their variance have a mean of 1 and a variance of at most 5, which is that of
    Laplace noise; of Gaussian noise it is 2.
    """
    one, two = pooled_counts(singles), pooled_counts(others)
    distance, cells = 0.0, 0
    for clique in one.keys() & two.keys():
        (values, variance), (again, noise) = one[clique], two[clique]
        distance += float(np.square(values - again).sum()) / (variance + noise)
        cells += values.size
    return (distance - cells) / sqrt(5 * cells) if cells else 0.0


def pooled_counts(singles: Iterable[Observation]) -> Counts:
    """Counts of each column's values by all noisy answers, averaged by precision."""
    sums: dict[Clique, tuple[Array, float]] = {}
    for m in singles:
        if len(m.clique) == 1 and m.query is None and m.variance > 0:
            before, precision = sums.get(m.clique, (np.zeros(m.values.size), 0.0))
            sums[m.clique] = before + m.values / m.variance, precision + 1 / m.variance
    return {clique: (values / precision, 1 / precision) for clique, (values, precision) in sums.items()}


def _squares(now: Counts, then: Counts, ratio: float) -> tuple[float, float]:
    """The mean over columns of their squared change, in rows squared, and its standard error."""
    excess = spread = 0.0
    both = now.keys() & then.keys()
    for clique in both:
        (values, variance), (before, noise) = now[clique], then[clique]
        moved, each = values - ratio * before, variance + ratio * ratio * noise
        excess += float(np.square(moved).sum()) - moved.size * each
        spread += 2 * moved.size * each * each
    return (excess / len(both), sqrt(spread) / len(both)) if both else (0.0, 0.0)
