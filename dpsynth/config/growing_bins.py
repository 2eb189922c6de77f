"""Bins whose widths grow by a constant factor, for amounts of money, counts and sizes.

Invariant: the edges follow from the declaration alone. They are numbers of few digits, so that they
don't depend on a machine's rounding.
"""

from __future__ import annotations

from math import ceil, log10

_PART = 1000
"""Start of the first growing bin: one unit, or this part of the largest value if that is less."""


def growing_edges(low: int, high: int, bins: int, one: int) -> list[int]:
    """Rising edges, in units of a column's last decimal; fewer than asked for where there are few units.

    >>> growing_edges(0, 1000, 8, one=1)
    [0, 1, 3, 7, 19, 52, 140, 370, 1000]
    >>> growing_edges(0, 100_000, 8, one=100)
    [0, 1, 100, 320, 1000, 3200, 10000, 32000, 100000]

    Args:
        low: the least value, at least 0; 0 is a bin of its own.
        high: the largest value, above ``low``.
        bins: number of bins, at least 3.
        one: the value 1 in these units.
    """
    edges = [low]
    if low == 0:
        edges.append(1)
        first = min(one, high // _PART)
        if first > 1:
            edges.append(first)
    aim, more = float(edges[-1]), bins + 1 - len(edges)
    # Enough digits to distinguish tenths of a bin.
    digits = max(1, ceil(1 - log10(max((high / aim) ** (1 / max(more, 1)) - 1, 1e-15))))
    for left in range(more, 1, -1):
        aim = max(aim * (high / aim) ** (1 / left), edges[-1] + 1)
        edges.append(max(round(float(f"{aim:.{digits}e}")), edges[-1] + 1))
    return [*(edge for edge in edges if edge < high), high]
