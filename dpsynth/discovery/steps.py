"""Numbers as whole steps of a column's last decimal, and bins between cuts of them.

Cuts are rising whole numbers: bin i holds the steps from cuts[i] to cuts[i + 1] - 1. So a bin for one value,
and where a bin ends, are exact whatever the decimals.

Invariant: any cuts of two or more steps make bins that ``NumericCodec`` takes, each of them with a value.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from math import ceil, floor, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.numeric_codec import NumericCodec
from dpsynth.domain.search import NumberSearch

Cuts = NDArray[np.int64]

LARGEST = 10**15
"""The largest step that is looked for: as many digits as a double keeps."""
_ROUND = [digit * 10**k for k in range(17) for digit in (1, 2, 5)]
"""Widths, and magnitudes: finer ones would hold less of a thin tail each."""


def codec_of(search: NumberSearch, cuts: Cuts) -> NumericCodec:
    """The bins between cuts; values outside count in the first and last."""
    *starts, end = cuts.tolist()
    unit = 10**search.decimals
    edges = [start / unit for start in starts]
    # The last bin is closed: half a step more where its upper edge would be its lower one, or is no value.
    halves = 2 * end - (1 if search.integer or end - 1 == starts[-1] else 2)
    edges.append(max(halves / (2 * unit), nextafter(edges[-1], inf)))
    return NumericCodec(tuple(edges), search.decimals, search.integer, search.form)


def public_ends(search: NumberSearch) -> tuple[int, int]:
    """First and last step between ends that are public.

    Raises:
        ValueError: they aren't.
    """
    if search.low is None or search.high is None:
        raise ValueError("the ends of the column are still to be found")
    low, high = (Decimal(repr(float(end))).scaleb(search.decimals) for end in (search.low, search.high))
    return ceil(low), max(ceil(low), floor(high))


def magnitudes() -> Cuts:
    """Cuts at 1, 2 and 5 times the powers of ten, and at zero, which is a bin of its own."""
    above = np.array([width for width in _ROUND if width <= LARGEST], dtype=np.int64)
    return np.concatenate((-above[::-1], [0], above))


def round_cuts(low: int, high: int, most: int) -> Cuts:
    """Steps strictly between two that are multiples of one width: 1, 2 or 5 times a power of ten.

    Args:
        low: a step.
        high: another above it.
        most: parts of that width between them, at most; the width is the least for which it holds.
    """
    width = next(w for w in _ROUND if w * most >= high - low)
    return np.arange((low // width + 1) * width, high, width, dtype=np.int64)


def within(low: int, high: int, *cuts: Cuts) -> Cuts:
    """Cuts of several kinds that lie between two steps, with the cuts before the first and after the last."""
    inner: Cuts = reduce(np.union1d, cuts, np.zeros(0, dtype=np.int64)).astype(np.int64)
    return np.concatenate(([low], inner[(inner > low) & (inner <= high)], [high + 1])).astype(np.int64)


def even(low: int, high: int, bins: int) -> Cuts:
    """Bins of one width, but for rounding to whole steps; one a value where there are no more than that."""
    count = high - low + 1
    bins = min(bins, count)
    return np.array([low + i * count // bins for i in range(bins + 1)], dtype=np.int64)
