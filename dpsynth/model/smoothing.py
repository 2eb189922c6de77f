"""Smoothing: a noisy histogram as the few flat steps that explain it.

Values of about the same frequency stand next to each other more often than not, and the mean of k
noisy counts has a k-th of their variance. So the counts are fitted by steps, each new one paying for
itself: the least sum of squared deviations, in units of the noise's variance, plus a price a
step (the merging of bins of Xu et al. 2013, with the partition found exactly by dynamic programming
as in Jagadish et al. 1998). Counts that stand out by more than their noise keep a step of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.factor import Array

STEP = 4.0
"""What one more step must explain, in variances; 2 would be unbiased if its place were given."""

NOBODY = 2.0
"""What the sum of a step must be, in standard deviations of its noise, for it to be anybody's rows."""


def smoothed(counts: Array, variance: float, step: float = STEP) -> Array:
    """The piecewise constant fit of noisy counts, float64[values].

    Time grows as the square of the number of values: about 0.1 s for 10 000.

    Args:
        counts: noisy counts, in the order in which values are neighbours.
        variance: of each count's noise, above 0.
        step: price of a step, in variances; 0 leaves the counts as they are.

    Raises:
        ValueError: the variance is not above 0.
    """
    if not variance > 0:
        raise ValueError("noisy counts have a variance above 0")
    n = len(counts)
    if n < 2 or step <= 0:
        return np.array(counts, dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    squares = np.concatenate([[0.0], np.cumsum(np.square(counts, dtype=np.float64))])
    best, begun = np.zeros(n + 1), np.zeros(n + 1, dtype=np.intp)
    lengths = np.arange(n, 0, -1, dtype=np.float64)
    for end in range(1, n + 1):
        within = sums[end] - sums[:end]
        deviation = squares[end] - squares[:end] - within * within / lengths[n - end :]
        costs = best[:end] + deviation / variance + step
        begun[end] = costs.argmin()
        best[end] = costs[begun[end]]
    found, end = np.empty(n), n
    while end > 0:
        begin = int(begun[end])
        found[begin:end] = (sums[end] - sums[begin]) / (end - begin)
        end = begin
    return found


def outside(smooth: Array, variance: float) -> NDArray[np.bool_]:
    """Which values come before the first step that stands out of its noise, or behind the last; bool[values].

    A step does whose sum is more than ``NOBODY`` standard deviations above zero. Beyond, noise cut off at
    zero would leave rows where nobody is, and at the end of a long tail few rows are a large part of a mean.
    Where no step stands out, all values are outside.

    Args:
        smooth: what ``smoothed`` gave.
        variance: of the noise of each count that went in.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(smooth)) + 1, [len(smooth)]])
    lengths = np.repeat(np.diff(starts), np.diff(starts))
    stands = np.flatnonzero(smooth * np.sqrt(lengths / variance) > NOBODY)
    found = np.ones(len(smooth), dtype=np.bool_)
    if stands.size:
        found[stands[0] : stands[-1] + 1] = False
    return found
