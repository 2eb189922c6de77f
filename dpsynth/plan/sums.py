"""Means that are asked for: which are measured by sums, at what price, with which offsets and limit.

A mean follows from the counts of a column's bins, or from a noisy sum beside these counts. Counts have noise
in every bin and don't say where in its bin a number lies; a sum has noise once, times the limit of what a row
adds. The better of the two is chosen before anything is spent, by the half-width of a 95 % interval to be
expected: noise, and what bins or limits leave unknown. Offsets and limit of a sum are chosen when the single
columns are measured, by the same forecast, with their noisy counts.

Invariant: choices, prices, offsets and limits follow from the config and from answers that are paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import Calibration
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.sums import MOST_STEPS, Centring, Steps, variance_of_unknown

Numbers = NDArray[np.float64]

ASSUMED_ROWS = 10_000
"""Number of rows of a forecast, where the config doesn't say it."""
Z95 = 1.96
_LIMITS = 60
"""Number of limits that are compared."""
_FAINT = 2.0
"""Standard deviations of noise below which a bin's count is taken to be none."""
CLEARLY = 0.8
"""Part of the half-width by counts that a question must be expected to fall below: it costs all others."""
_REFERENCE = 1 << 20
"""Limit at which the noise of a step of limit is computed."""


@dataclass(frozen=True)
class PlannedMean:
    """A mean that is asked for, with the way in which it is measured.

    Attributes:
        column: the column averaged.
        by: the columns of the groups; () is all rows.
        price: the price of its sum, under the plan's measure; 0 if it follows from counts.
        by_sums: expected half-width of a 95 % interval in a group of average size, by a sum; in the column's
            unit, with rows spread evenly over the bins and groups.
        by_counts: the same, by the counts of the bins alone.
        found: true if the column's bins are to be found: the half-widths are then parts of its range.
        rows: the number of rows of the forecast, over all groups.
    """

    column: str
    by: Clique
    price: Fraction
    by_sums: float
    by_counts: float
    found: bool
    rows: int

    @property
    def summed(self) -> bool:
        """True if a sum is measured."""
        return self.price > 0


@dataclass(frozen=True)
class NoiseOfMeans:
    """The noise of the answers that a mean may rest on.

    Attributes:
        cell: standard deviation of a bin's count in a group, in rows.
        step: standard deviation of a sum for each step of its limit, in rows.
        groups: number of groups.
    """

    cell: float
    step: float
    groups: int


@dataclass(frozen=True)
class Allowances:
    """The parts of a budget for the answers that means and quantiles may rest on.

    Attributes:
        one_way: the price of a single column on average.
        pair: the price of two columns together; 0 where none are measured.
        each: the price of a question of their own.
        rows: the number of rows of the forecast.
    """

    one_way: Fraction
    pair: Fraction
    each: Fraction
    rows: float


@dataclass(frozen=True, eq=False)
class BinnedNumbers:
    """Knowledge of a column's numbers before its sums are measured.

    Attributes:
        steps: the column's bins.
        centres: float64[bins], the expected number of each bin, in steps.
        counts: float64[bins], expected rows, none negative and some positive.
    """

    steps: Steps
    centres: Numbers
    counts: Numbers

    @property
    def total(self) -> float:
        """Expected number of rows."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """Expected mean, in steps."""
        return float(self.counts @ self.centres / self.total)

    def variance_of_unknown(self, distances: Numbers) -> float:
        """Variance of a mean because numbers lie anywhere within some distances; in steps squared."""
        return float(variance_of_unknown(self.counts / self.total, distances))


def planned_means(
    asked: Sequence[tuple[str, Clique]],
    columns: Sequence[Column],
    domain: Domain,
    bought: Calibration,
    prices: Allowances,
) -> tuple[PlannedMean, ...]:
    """The means in order, each with the better way to measure it.

    Args:
        asked: the columns and groups that sums could measure.
        columns: the table's columns.
        domain: the columns with their numbers of cells.
        bought: the calibration of noise.
        prices: the prices of their answers.
    """
    named = {column.name: column for column in columns}
    return tuple(_planned(named[of], by, domain, bought, prices) for of, by in asked)


def _planned(
    column: Column, by: Clique, domain: Domain, bought: Calibration, prices: Allowances
) -> PlannedMean:
    counted = prices.pair if by else prices.one_way
    noise = NoiseOfMeans(bought.counts(counted).stddev, noise_of_step(bought, prices.each), domain.cells(by))
    bins, unit = evenly_spread(column, prices.rows)
    by_sums, by_counts = best_centring(bins, noise)[1] * unit, by_counts_alone(bins, noise) * unit
    price = prices.each if by_sums < CLEARLY * by_counts else Fraction(0)
    return PlannedMean(
        column.name, by, price, by_sums, by_counts, column.search is not None, int(prices.rows)
    )


def evenly_spread(column: Column, rows: float) -> tuple[BinnedNumbers, float]:
    """A column's bins with equal rows in each, and the size of a step, of a range of 1 if it is unknown."""
    steps = column.codec.steps
    assert steps is not None
    unit = steps.unit if column.search is None else 1.0 / max(steps.last, 1)
    return BinnedNumbers(steps, steps.middles, np.full(steps.bins, rows / steps.bins)), unit


def noise_of_step(bought: Calibration, price: Fraction) -> float:
    """Standard deviation of a sum's noise for each step of its limit."""
    return bought.sums(price, _REFERENCE).stddev / _REFERENCE


def by_counts_alone(bins: BinnedNumbers, noise: NoiseOfMeans) -> float:
    """Expected half-width of a mean's interval by counts of bins, in steps."""
    rows = bins.total / noise.groups
    spread = noise.cell**2 * float(((bins.centres - bins.mean) ** 2).sum()) / rows**2
    return Z95 * sqrt(spread + bins.variance_of_unknown(bins.steps.half_widths))


def best_centring(bins: BinnedNumbers, noise: NoiseOfMeans) -> tuple[Centring, float]:
    """The offsets and the limit of the narrowest interval of a mean, and its expected half-width in steps.

    For each limit, the offset of a bin is as near to the mean as the limit allows while it reaches both ends
    of the bin: the less offsets differ, the less noise of counts they bring in. In a bin wider than twice
    the limit it is the expected number, and what lies beyond the limit is lost.
    """
    rows = bins.total / noise.groups
    found: tuple[Centring, float] | None = None
    for limit in _limits(bins.steps):
        centring = Centring(_offsets(bins, limit), limit)
        spread = float(((np.array(centring.offsets) - bins.mean) ** 2).sum())
        of_noise = ((noise.step * limit) ** 2 + noise.cell**2 * spread) / rows**2
        half_width = Z95 * sqrt(of_noise + bins.variance_of_unknown(centring.beyond(bins.steps)))
        if found is None or half_width < found[1]:
            found = centring, half_width
    assert found is not None
    return found


def _limits(steps: Steps) -> list[int]:
    """Rising limits from a step to half of the column's range."""
    largest = max(1, ceil(steps.last / 2))
    grid = np.geomspace(1, largest, _LIMITS)
    ends = np.ceil(steps.half_widths[steps.half_widths > 0])
    several = np.unique(np.concatenate([grid, np.unique(ends)[:: max(1, len(ends) // _LIMITS)], [largest]]))
    return sorted({min(max(1, ceil(limit)), MOST_STEPS) for limit in several.tolist()})


def _offsets(bins: BinnedNumbers, limit: int) -> tuple[int, ...]:
    low, high = bins.steps.low, bins.steps.high
    whole = high - low <= 2 * limit
    nearest = np.clip(bins.mean, high - limit, low + limit)
    return tuple(np.floor(np.where(whole, nearest, bins.centres)).astype(np.int64).tolist())


def without_noise(values: NDArray[np.int64], deviation: float) -> Numbers:
    """Counts of bins for a forecast: those that noise alone could make are none; even if all are."""
    counts = np.where(values > _FAINT * deviation, values, 0).astype(np.float64)
    return counts if counts.any() else np.ones(len(values))
