"""Quantiles that are asked for: which are measured by finer counts, at what price, and over which pieces.

A quantile follows from the counts of a column's bins up to each; then its interval is as wide as bins at
least. Or it follows from counts of pieces of these bins beside them. Narrow pieces tell better where in a bin
it lies; but each has noise of its own, so that many add up to more. The better of the two is chosen before
anything is spent, by the half-width of a 95 % interval to be expected: noise, and the widths of bins and
pieces. The number of pieces of each bin is chosen when the single columns are measured, by the same forecast,
with their noisy counts.

The forecast is about a group of average size, whose rows are spread over the bins as those of the whole
column are. In the middle of a bin of K pieces, the noise is that of the bins up to there, whose counts are
measured beside, and of K/2 pieces, made to agree with the count of the bin.

Invariant: choices, prices and pieces follow from the config and from answers that are paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth.accounting.calibration import Calibration
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finer_counts import Pieces
from dpsynth.plan.sums import CLEARLY, Z95, Allowances, BinnedNumbers, Numbers, evenly_spread

_MOST_PIECES = 256
"""Most pieces of a bin."""
_MOST_COUNTS = 1 << 20
"""Most counts of all groups and pieces together, unless bins alone have more."""
_FEWEST_ROWS = 1e-9
"""Rows of a bin that is taken to be empty."""


@dataclass(frozen=True)
class PlannedQuantiles:
    """Quantiles that are asked for, with the way in which they are measured.

    Attributes:
        column: the column whose quantiles they are.
        by: the columns of the groups; () is all rows.
        levels: the parts of the rows below them, rising.
        price: the price of its finer counts, under the plan's measure; 0 if they follow from bins alone.
        by_finer: expected half-width of a 95 % interval in a group of average size, by finer counts, on
            average over the levels; in the column's unit, with rows spread evenly over bins and groups.
        by_counts: the same, by the counts of the bins alone.
        found: true if the column's bins are to be found: the half-widths are then parts of its range.
        rows: the number of rows of the forecast, over all groups.
    """

    column: str
    by: Clique
    levels: tuple[float, ...]
    price: Fraction
    by_finer: float
    by_counts: float
    found: bool
    rows: int


@dataclass(frozen=True)
class NoiseOfQuantiles:
    """The noise of the answers that a quantile may rest on, as standard deviations in rows.

    Attributes:
        cell: of a bin's count in a group.
        piece: of a piece's count in a group.
        groups: number of groups.
    """

    cell: float
    piece: float
    groups: int


def planned_quantiles(
    asked: Sequence[tuple[str, Clique, tuple[float, ...]]],
    columns: Sequence[Column],
    domain: Domain,
    bought: Calibration,
    prices: Allowances,
) -> tuple[PlannedQuantiles, ...]:
    """The quantiles in order, each with the better way to measure it.

    Args:
        asked: the columns, groups and levels that finer counts could measure.
        columns: the table's columns.
        domain: the columns with their numbers of cells.
        bought: the calibration of noise.
        prices: the prices of their answers.
    """
    named = {column.name: column for column in columns}
    found = []
    for of, by, levels in asked:
        bins, unit = evenly_spread(named[of], prices.rows)
        counted = prices.pair if by else prices.one_way
        noise = NoiseOfQuantiles(
            bought.counts(counted).stddev, bought.counts(prices.each).stddev, domain.cells(by)
        )
        by_finer = best_pieces(bins, noise, levels)[1] * unit
        by_counts = by_bins_alone(bins, noise, levels) * unit
        price = prices.each if by_finer < CLEARLY * by_counts else Fraction(0)
        searched = named[of].search is not None
        found.append(PlannedQuantiles(of, by, levels, price, by_finer, by_counts, searched, int(prices.rows)))
    return tuple(found)


def by_bins_alone(bins: BinnedNumbers, noise: NoiseOfQuantiles, levels: Sequence[float]) -> float:
    """Expected half-width of a quantile's interval by counts of bins, in steps, averaged over levels."""
    at = _at(bins, levels)
    inside = np.full((1, len(at)), noise.cell**2 / 4)
    return float(_half_widths(bins, noise, at, np.array(levels), inside).mean())


def best_pieces(
    bins: BinnedNumbers, noise: NoiseOfQuantiles, levels: Sequence[float]
) -> tuple[Pieces, float]:
    """The pieces of the narrowest intervals, and the expected half-width in steps, averaged over levels.

    In each bin it is the number of pieces that is best for a quantile in the middle of the bin.
    """
    most = max(1, min(_MOST_PIECES, _MOST_COUNTS // (noise.groups * bins.steps.bins)))
    number = 2 ** np.arange(most.bit_length())
    own = number * noise.piece**2
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
    """The bin of each level's quantile."""
    reached = np.searchsorted(np.cumsum(bins.counts) / bins.total, levels)
    return np.minimum(reached, bins.steps.bins - 1)


def _half_widths(
    bins: BinnedNumbers,
    noise: NoiseOfQuantiles,
    at: np.ndarray[tuple[int], np.dtype[np.intp]],
    levels: Numbers,
    inside: Numbers,
    number: Numbers | np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int = 1,
) -> Numbers:
    """Half of the width of a piece, and the steps that the noise of the rows so far is worth.

    Args:
        bins: the bins.
        noise: the noise.
        at: the bins of the quantiles.
        levels: the levels of the quantiles.
        inside: variance of the noise of the pieces so far.
        number: number of pieces of the bin.
    """
    width = (bins.steps.high - bins.steps.low + 1)[at]
    density = np.maximum(bins.counts[at] / noise.groups, _FEWEST_ROWS) / width
    after = bins.steps.bins - 1 - at
    before = noise.cell**2 * (at * (1 - levels) ** 2 + after * levels**2)
    return np.asarray((width / number - 1) / 2 + Z95 * np.sqrt(before + inside) / density)
