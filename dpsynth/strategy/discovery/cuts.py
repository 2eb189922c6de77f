"""Cuts of a numeric column into bins, and noisy histograms over them.

Numbers are whole steps of a column's last decimal. Cuts are rising whole numbers: bin i holds the steps from
cuts[i] to cuts[i + 1] - 1. So bins of one value, and ends of bins, are exact for all numbers of decimals.

Invariant: all cuts of two or more steps make bins that ``NumericCodec`` takes, each of them with a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import ceil, floor, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.numeric_codec import NumericCodec
from dpsynth.columns.search import NumberSearch
from dpsynth.plan.questions import Door

Cuts = NDArray[np.int64]

LARGEST = 10**15
"""The largest step that is searched: it has as many digits as a double keeps."""
_ROUND = [digit * 10**k for k in range(17) for digit in (1, 2, 5)]
"""Widths and magnitudes, in multiples of powers of ten: finer ones would each hold less of a thin tail."""
_LEAST_VARIANCE = 1e-6
"""Smallest variance of a count, in rows squared: weights by inverse variance need a positive one."""


def codec_of(search: NumberSearch, cuts: Cuts) -> NumericCodec:
    """The bins between cuts; values outside count in the first and last."""
    *starts, end = cuts.tolist()
    unit = 10**search.decimals
    edges = [start / unit for start in starts]
    # The last bin is closed: half a step more if its upper edge would be its lower edge, or is no value.
    halves = 2 * end - (1 if search.integer or end - 1 == starts[-1] else 2)
    edges.append(max(halves / (2 * unit), nextafter(edges[-1], inf)))
    return NumericCodec(tuple(edges), search.decimals, search.integer, search.form)


def public_ends(search: NumberSearch) -> tuple[int, int]:
    """First and last step between public ends.

    Raises:
        ValueError: the ends aren't public.
    """
    if search.low is None or search.high is None:
        raise ValueError("the ends of the column are still to be found")
    low, high = (Decimal(repr(float(end))).scaleb(search.decimals) for end in (search.low, search.high))
    return ceil(low), max(ceil(low), floor(high))


def magnitudes() -> Cuts:
    """Cuts at 1, 2 and 5 times the powers of ten, and at zero, which has a bin of its own."""
    above = np.array([width for width in _ROUND if width <= LARGEST], dtype=np.int64)
    return np.concatenate((-above[::-1], [0], above))


def round_cuts(low: int, high: int, most: int) -> Cuts:
    """Steps strictly between two that are multiples of one width: 1, 2 or 5 times a power of ten.

    Args:
        low: a step.
        high: a step above ``low``.
        most: largest number of parts between them; the width is the least that keeps to it.
    """
    width = next(w for w in _ROUND if w * most >= high - low)
    return np.arange((low // width + 1) * width, high, width, dtype=np.int64)


def within(low: int, high: int, *cuts: Cuts) -> Cuts:
    """Union of several cuts that lie between two steps, with the cuts before the first and after the last."""
    inner: Cuts = reduce(np.union1d, cuts, np.zeros(0, dtype=np.int64)).astype(np.int64)
    return np.concatenate(([low], inner[(inner > low) & (inner <= high)], [high + 1])).astype(np.int64)


def equal_widths(low: int, high: int, bins: int) -> Cuts:
    """Bins of one width, up to rounding to whole steps; one bin for each value if the values are no more."""
    count = high - low + 1
    bins = min(bins, count)
    return np.array([low + i * count // bins for i in range(bins + 1)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """A noisy histogram: rows of the bins between cuts.

    Attributes:
        cuts: int64[bins + 1] in steps.
        rows: float64[bins].
        variances: float64[bins], of the noise in ``rows``.
    """

    cuts: Cuts
    rows: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def asked(
        cls, door: Door, column: Column, search: NumberSearch, cuts: Cuts, price: Fraction
    ) -> NoisyHistogram:
        """The answer to a question for the rows of some bins."""
        counts, stddev = door.counts_under(column, codec_of(search, cuts), price)
        variance = max(stddev**2, _LEAST_VARIANCE)
        return cls(cuts, counts.astype(np.float64), np.full(counts.size, variance))

    @property
    def widths(self) -> NDArray[np.int64]:
        """Steps in each bin."""
        return np.diff(self.cuts)

    @property
    def mirrored(self) -> NoisyHistogram:
        """The histogram of the negated numbers."""
        return NoisyHistogram(-self.cuts[::-1], self.rows[::-1], self.variances[::-1])

    def coarsened(self, cuts: Cuts) -> NoisyHistogram:
        """The histogram over fewer cuts of the same range."""
        starts = np.searchsorted(self.cuts, cuts[:-1])
        return NoisyHistogram(
            cuts, np.add.reduceat(self.rows, starts), np.add.reduceat(self.variances, starts)
        )

    def between(self, low: int, end: int) -> NoisyHistogram:
        """The part of the histogram from one cut to another."""
        first, last = np.searchsorted(self.cuts, (low, end)).tolist()
        return NoisyHistogram(self.cuts[first : last + 1], self.rows[first:last], self.variances[first:last])


def averaged(answers: Sequence[NoisyHistogram]) -> NoisyHistogram:
    """The best estimate of the rows of each bin of the last answer.

    Weighted least squares on a tree (Hay, Rastogi, Miklau and Suciu 2010), by inverse variance. Upwards a
    bin's own answer is averaged with the sum of its parts; downwards the difference between the two is
    shared among the parts by their variances.

    Args:
        answers: one or more; each about parts of the bins of the one before.
    """
    upwards = [answers[-1]]
    for answer in reversed(answers[:-1]):
        upwards.append(_average(answer, upwards[-1].coarsened(answer.cuts)))
    found = upwards.pop()
    while upwards:
        parts = upwards.pop()
        found = _shared(found, parts)
    return found


def _average(a: NoisyHistogram, b: NoisyHistogram) -> NoisyHistogram:
    weight = b.variances / (a.variances + b.variances)
    return NoisyHistogram(a.cuts, weight * a.rows + (1 - weight) * b.rows, weight * a.variances)


def _shared(whole: NoisyHistogram, parts: NoisyHistogram) -> NoisyHistogram:
    """The parts, adjusted so that they add up to their wholes."""
    at = np.searchsorted(whole.cuts, parts.cuts[:-1], side="right") - 1
    summed = parts.coarsened(whole.cuts)
    share = parts.variances / summed.variances[at]
    rows = parts.rows + share * (whole.rows - summed.rows)[at]
    variances = parts.variances - share**2 * (summed.variances - whole.variances)[at]
    return NoisyHistogram(parts.cuts, rows, variances)
