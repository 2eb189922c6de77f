"""The verbs by which strategies ask a curator, and the questions of their own that means and quantiles get.

Invariant: every answer is noisy and paid for, or follows from public facts, so any use of answers is post-
processing. ``dpsynth.curator`` holds the one implementation of each verb, with its sensitivity, distribution
and cost. Choices, prices, offsets, limits and pieces follow from the config and from answers that are paid
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import Measure
from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Estimates, Measurement, Observation
from dpsynth.columns.sums import (
    MOST_STEPS,
    Centring,
    FinerCounts,
    MeasuredSums,
    Pieces,
    Steps,
    variance_of_unknown,
)

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
class PlannedStatistic:
    """A mean, or quantiles, that are asked for, with the way in which they are measured.

    A mean follows from the counts of a column's bins, or from a noisy sum beside these counts. Counts have
    noise in every bin and don't say where in its bin a number lies; a sum has noise once, times the limit of
    what a row adds. A quantile follows from the counts of a column's bins up to each; then its interval is as
    wide as bins at least. Or it follows from counts of pieces of these bins beside them. Narrow pieces tell
    better where in a bin it lies; but each has noise of its own, so that many add up to more.

    Attributes:
        by: the columns of the groups; () is all rows.
        levels: of quantiles, the parts of the rows below them, rising; () for a mean.
        price: the price of its sum or finer counts, under the plan's measure; 0 if bins alone measure it.
        by_own: expected half-width of a 95 % interval in a group of average size, by a sum or finer counts,
            on average over the levels; in the column's unit, with rows spread evenly over bins and groups.
        by_counts: the same, by the counts of the bins alone.
        found: true if the column's bins are to be found: the half-widths are then parts of its range.
    """

    column: str
    by: Clique
    levels: tuple[float, ...]
    price: Fraction
    by_own: float
    by_counts: float
    found: bool
    rows: int

    def to_json(self) -> dict[str, object]:
        own = "finer counts" if self.levels else "sums"
        return {
            "column": self.column,
            "by": list(self.by),
            "half_width_in": "the column's range" if self.found else "the column's unit",
            "rows": self.rows,
            **({"at": list(self.levels)} if self.levels else {}),
            "measured_by": own if self.price else "counts",
            f"half_width_by_{own.replace(' ', '_')}": self.by_own,
            "half_width_by_counts": self.by_counts,
        }


@dataclass(frozen=True)
class GroupNoise:
    """The noise of the answers that a statistic may rest on, as standard deviations in rows.

    Attributes:
        cell: of a bin's count in a group.
        own: of a sum in a group for each step of its limit, or of a piece's count in a group.
    """

    cell: float
    own: float
    groups: int


@dataclass(frozen=True)
class Allowances:
    """Prices of the answers that means and quantiles may rest on.

    Attributes:
        one_way: of a single column on average.
        pair: of two columns together; 0 where none are measured.
        each: of a question of their own.
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
        centres: float64[bins], the expected number of each bin, in steps.
        counts: float64[bins], expected rows, none negative and some positive.
    """

    steps: Steps
    centres: Numbers
    counts: Numbers

    @classmethod
    def of(cls, column: Column, counted: Observation) -> BinnedNumbers:
        """A column's bins by its noisy counts, with the densities inside them that follow.

        Counts that noise alone could make are taken to be none, even if all are.
        """
        steps, values = column.codec.steps, counted.values
        assert steps is not None
        dense = column.with_density(values.astype(np.float64), counted.stddev or 1.0)
        assert dense.centres is not None
        centres = np.clip(dense.centres / steps.unit - steps.origin, steps.low, steps.high)
        return cls(steps, centres, without_noise(values[: steps.bins], counted.stddev))

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """Expected mean, in steps."""
        return float(self.counts @ self.centres / self.total)

    def variance_of_unknown(self, distances: Numbers) -> float:
        """Variance of a mean because numbers lie anywhere within some distances; in steps squared."""
        return float(variance_of_unknown(self.counts / self.total, distances))


def planned_statistics(
    asked: Sequence[tuple[str, Clique, tuple[float, ...]]],
    columns: Sequence[Column],
    domain: Domain,
    bought: Calibration,
    prices: Allowances,
) -> tuple[PlannedStatistic, ...]:
    """The statistics in order, each with the better way to measure it.

    The better of the two ways is chosen before anything is spent, by the half-width of a 95 % interval to be
    expected: noise, and what bins, limits or pieces leave unknown. The offsets and the limit of a sum, and
    the number of pieces of each bin, are chosen when the single columns are measured, by the same forecast,
    with their noisy counts.

    The forecast is about a group of average size, whose rows are spread over the bins as those of the whole
    column are. In the middle of a bin of K pieces, the noise is that of the bins up to there, whose counts
    are measured beside, and of K/2 pieces, made to agree with the count of the bin.
    """
    named = {column.name: column for column in columns}
    found = []
    for of, by, levels in asked:
        cell = bought.counts(prices.pair if by else prices.one_way).stddev
        noise = GroupNoise(cell, own_noise(bought, prices.each, levels), domain.cells(by))
        bins, unit = evenly_spread(named[of], prices.rows)
        if levels:
            by_own, by_counts = best_pieces(bins, noise, levels)[1], by_bins_alone(bins, noise, levels)
        else:
            by_own, by_counts = best_centring(bins, noise)[1], by_counts_alone(bins, noise)
        by_own, by_counts = by_own * unit, by_counts * unit
        price = prices.each if by_own < CLEARLY * by_counts else Fraction(0)
        searched, rows = named[of].search is not None, int(prices.rows)
        found.append(PlannedStatistic(of, by, levels, price, by_own, by_counts, searched, rows))
    return tuple(found)


def evenly_spread(column: Column, rows: float) -> tuple[BinnedNumbers, float]:
    """A column's bins with equal rows in each, and the size of a step, of a range of 1 if it is unknown."""
    steps = column.codec.steps
    assert steps is not None
    unit = steps.unit if column.search is None else 1.0 / max(steps.last, 1)
    return BinnedNumbers(steps, steps.middles, np.full(steps.bins, rows / steps.bins)), unit


def own_noise(bought: Calibration, price: Fraction, levels: Sequence[float]) -> float:
    """Noise of finer counts for levels, or of a sum without levels, at a price; see ``GroupNoise``."""
    return bought.counts(price).stddev if levels else bought.sums(price, _REFERENCE).stddev / _REFERENCE


def by_counts_alone(bins: BinnedNumbers, noise: GroupNoise) -> float:
    """Expected half-width of a mean's interval by counts of bins, in steps."""
    rows = bins.total / noise.groups
    spread = noise.cell**2 * float(((bins.centres - bins.mean) ** 2).sum()) / rows**2
    return Z95 * sqrt(spread + bins.variance_of_unknown(bins.steps.half_widths))


def best_centring(bins: BinnedNumbers, noise: GroupNoise) -> tuple[Centring, float]:
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
        of_noise = ((noise.own * limit) ** 2 + noise.cell**2 * spread) / rows**2
        half_width = Z95 * sqrt(of_noise + bins.variance_of_unknown(centring.beyond(bins.steps)))
        if found is None or half_width < found[1]:
            found = centring, half_width
    assert found is not None
    return found


def _limits(steps: Steps) -> list[int]:
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
    """Counts of bins, those that noise alone could make as none; even if all are."""
    counts = np.where(values > _FAINT * deviation, values, 0).astype(np.float64)
    return counts if counts.any() else np.ones(len(values))


_MOST_PIECES = 256
"""Most pieces of a bin."""

_MOST_COUNTS = 1 << 20
"""Most counts of all groups and pieces together, unless bins alone have more."""

_FEWEST_ROWS = 1e-9
"""Rows of a bin that is taken to be empty."""


def by_bins_alone(bins: BinnedNumbers, noise: GroupNoise, levels: Sequence[float]) -> float:
    """Expected half-width of a quantile's interval by counts of bins, in steps, averaged over levels."""
    at = _at(bins, levels)
    inside = np.full((1, len(at)), noise.cell**2 / 4)
    return float(_half_widths(bins, noise, at, np.array(levels), inside).mean())


def best_pieces(bins: BinnedNumbers, noise: GroupNoise, levels: Sequence[float]) -> tuple[Pieces, float]:
    """The pieces of the narrowest intervals, and the expected half-width in steps, averaged over levels.

    In each bin it is the number of pieces that is best for a quantile in the middle of the bin.
    """
    most = max(1, min(_MOST_PIECES, _MOST_COUNTS // (noise.groups * bins.steps.bins)))
    number = 2 ** np.arange(most.bit_length())
    own = number * noise.own**2
    inside = (own / 2 - own**2 / (4 * (own + noise.cell**2)))[:, None]
    shares = bins.counts / bins.total
    every = np.arange(bins.steps.bins)
    width = bins.steps.high - bins.steps.low + 1
    halves = _half_widths(bins, noise, every, np.cumsum(shares) - shares / 2, inside, number[:, None])
    best = np.where(number[:, None] <= width, halves, np.inf).argmin(axis=0)
    at = _at(bins, levels)
    expected = _half_widths(bins, noise, at, np.array(levels), inside[best[at], 0], number[best[at]])
    return Pieces.of(bins.steps, number[best]), float(expected.mean())


def _at(bins: BinnedNumbers, levels: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    reached = np.searchsorted(np.cumsum(bins.counts) / bins.total, levels)
    return np.minimum(reached, bins.steps.bins - 1)


def _half_widths(
    bins: BinnedNumbers,
    noise: GroupNoise,
    at: np.ndarray[tuple[int], np.dtype[np.intp]],
    levels: Numbers,
    inside: Numbers,
    number: Numbers | np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int = 1,
) -> Numbers:
    """Half of the width of a piece, and the steps that the noise of the rows so far is worth.

    Args:
        at: the bins of the quantiles.
        inside: variance of the noise of the pieces so far.
        number: number of pieces of the bin.
    """
    width = (bins.steps.high - bins.steps.low + 1)[at]
    density = np.maximum(bins.counts[at] / noise.groups, _FEWEST_ROWS) / width
    after = bins.steps.bins - 1 - at
    before = noise.cell**2 * (at * (1 - levels) ** 2 + after * levels**2)
    return np.asarray((width / number - 1) / 2 + Z95 * np.sqrt(before + inside) / density)


SHARE_OF_ONE, LARGEST_SHARE = Fraction(1, 20), Fraction(3, 20)
"""Default share of the budget for one such question, and for all together."""


def share_of_statistics(number: int) -> Fraction:
    """The default share of the budget for so many questions of statistics."""
    return min(SHARE_OF_ONE * number, LARGEST_SHARE)


@dataclass(frozen=True)
class OwnQuestions:
    """The statistics that questions of their own could measure: means, then quantiles."""

    statistics: tuple[PlannedStatistic, ...] = ()

    @property
    def asked(self) -> tuple[PlannedStatistic, ...]:
        """Those that are measured so: sums, then finer counts."""
        return tuple(each for each in self.statistics if each.price)

    @property
    def sums(self) -> int:
        """Number of sums; the others of ``asked`` are finer counts."""
        return sum(not each.levels for each in self.asked)

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose numbers are kept."""
        return frozenset(each.column for each in self.asked)

    @property
    def price(self) -> Fraction:
        return sum((each.price for each in self.asked), Fraction(0))

    def at(self, price: Fraction) -> OwnQuestions:
        return OwnQuestions(
            tuple(replace(each, price=price) if each.price else each for each in self.statistics)
        )

    def to_json(self) -> dict[str, object]:
        return {
            "means": [each.to_json() for each in self.statistics if not each.levels],
            "quantiles": [each.to_json() for each in self.statistics if each.levels],
        }


class Door(Protocol):
    """The part of a curator that strategies and searches see. Prices are in its measure.

    A search of a column's domain asks ``counts_under``, ``medians`` and ``values_of``, before the table is
    coded; a structure strategy asks the other verbs, after it.
    """

    @property
    def measure(self) -> Measure:
        """Measure of costs."""

    @property
    def noise(self) -> str:
        """Noise of counts: "gaussian" or "laplace"."""

    @property
    def remaining(self) -> Fraction:
        """Rest of the release's budget."""

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique, the allowance shared by weight.

        None stands for an answer that was lost to an interruption, with no budget left to ask again.
        """

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """As ``marginals``, of single columns over the whole domain, also where it is compressed."""

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        """Noisy sums of a column's distances from its bins' offsets, each within the limit, by group."""

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        """Noisy counts of rows by group and by the piece of a bin that holds their number."""

    def parity_error(self, price: Fraction, number: int) -> float:
        """Standard deviation, in rows, of each of so many parities at a price for all of them. Public."""

    def parities(self, columns: Sequence[str], most: int, price: Fraction) -> tuple[NDArray[np.int64], float]:
        """Noisy parities int64[sets] of three to ``most`` columns of two places, and their noise's deviation.

        The sets stand in the order of ``parity_sets``. A lost question is asked again from the rest of the
        budget.
        """

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        """Index of a candidate whose estimate is far from the truth, by the exponential mechanism.

        Scores are L1 distances in rows, less the penalties, times the weights. A lost choice is made again
        from the rest of the budget.

        Args:
            penalties: rows to take off each distance, at most 2^40; left out: none.
            weights: whole numbers from 0 to 2^20; left out: all 1.
        """

    def choose_in_turn(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        most: int,
        admissible: Callable[[Sequence[int]], NDArray[np.bool_]],
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> list[int]:
        """Indices of several candidates, each chosen by ``choose`` at the price, none twice.

        Args:
            admissible: from the choices so far to the candidates, bool[candidates], that may come next;
                choosing ends if there are none.
        """

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[NDArray[np.int64], float]:
        """Noisy L1 distances int64[candidates] in rows, and the standard deviation of their noise.

        The estimates are rounded to integers first. A lost question is asked again from the rest of the
        budget.
        """

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        """Noisy rows of each cell of a public partition, int64[cells], and the noise's standard deviation.

        Unusable and missing cells count nowhere.
        """

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        """For each run the index of a cut near the median of the values in it, int64[runs].

        A run [start, stop) has the values from cuts[start] to cuts[stop - 1]. Cuts are public and rise, and
        the ends may be infinite; no two runs share a value, but two may share an end. The price is that of
        all runs together.
        """

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Values that many units have, without those known, sorted; by partition selection."""
