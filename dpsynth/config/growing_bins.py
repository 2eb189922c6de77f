"""Bins of numbers that nobody declared: of one width, or growing by a constant factor away from zero.

Amounts of money, counts and sizes differ by factors, so bins of one width between 0 and a large number
would put nearly all of them into the first. Growing bins have room for all sizes: each is as many times as
wide as the one before. Zero and both ends have bins of their own: zero because many amounts are zero, the
ends because all values beyond them count as the ends.

Bins are given by their starts, in units of a column's last decimal; the last start is the largest value,
alone in its bin.

Invariant: the starts follow from the declaration alone. They are numbers of few digits, so that they
don't depend on a machine's rounding.
"""

from __future__ import annotations

from math import ceil, log10

WIDE = 500
"""Bins grow from this ratio of the largest size to the smallest on; sizes below 1 count as 1."""
FEWEST_GROWING = 3
FEWEST_ON_BOTH_SIDES = 5

_PART = 100_000
"""Start of the growth: one unit, or this part of the largest size if that is more."""


def grows(low: float, high: float) -> bool:
    """True if bins between two ends grow unless something else is declared.

    >>> grows(0, 100), grows(0, 2_500_000), grows(1900, 2100), grows(-1000, 50)
    (False, True, False, True)
    """
    nearest = 0 if low < 0 < high else min(abs(low), abs(high))
    return max(abs(low), abs(high)) >= WIDE * max(nearest, 1)


def growing_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins that grow away from zero; fewer than asked for where there are few units.

    >>> growing_starts(0, 1000, 8)
    [0, 1, 3, 10, 32, 100, 320, 1000]
    >>> growing_starts(-100, 1000, 9)
    [-100, -99, -9, 0, 1, 6, 32, 180, 1000]

    Args:
        low: the least value.
        high: the largest value, above ``low``.
        bins: number of bins, at least 3; at least 5 with zero between the ends.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    if high <= 0:
        return _mirrored(growing_starts(-high, -low, bins))
    if low >= 0:
        return [low, *_inner(low + 1, high, bins - 2), high]
    sizes = log10(high + 1), log10(1 - low)
    above = min(max(2, round((bins - 1) * sizes[0] / sum(sizes))), bins - 3)
    below = growing_starts(0, -low, bins - above)
    return [*_mirrored(below), *growing_starts(0, high, above + 1)[1:]]


def _inner(first: int, end: int, bins: int) -> list[int]:
    """Starts of bins from a number above zero to one below ``end``."""
    starts, aim = [first], float(max(first, end // _PART))
    if aim > first and bins > 1:
        starts.append(round(aim))
    more = bins - len(starts)
    # Enough digits to distinguish tenths of a bin.
    digits = max(1, ceil(1 - log10(max((end / aim) ** (1 / (more + 1)) - 1, 1e-15))))
    for left in range(more, 0, -1):
        aim = max(aim * (end / aim) ** (1 / (left + 1)), starts[-1] + 1)
        starts.append(max(round(float(f"{aim:.{digits}e}")), starts[-1] + 1))
    return [start for start in starts if start < end]


def _mirrored(starts: list[int]) -> list[int]:
    """Starts of the bins of the negated values."""
    return [-starts[-1], *(1 - start for start in reversed(starts[1:]))]


def equal_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins of one width, up to rounding, between ends that have bins of their own.

    >>> equal_starts(0, 100, 6)
    [0, 1, 25, 50, 75, 100]

    Args:
        low: the least value.
        high: the largest value, above ``low``.
        bins: number of bins, at least 3.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    inner = [low + i * (high - low) // (bins - 2) for i in range(1, bins - 2)]
    return [low, low + 1, *(start for start in inner if start > low + 1), high]
