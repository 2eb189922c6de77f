"""Smoothing of a noisy histogram by a few flat steps.

Neighbouring values often have about the same frequency, and the mean of k noisy counts has a k-th of
their variance. So the counts are fitted by steps: the least sum of squared deviations, in units of the
noise's variance, plus a price for each step (the merging of bins of Xu et al. 2013, with the partition
found exactly by dynamic programming as in Jagadish et al. 1998). Counts that differ from their neighbours
by more than their noise keep a step of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.factor import Array

STEP = 4.0
"""Price of a step, in variances; 2 would be unbiased if the place of the step were given."""

NOBODY = 2.0
"""Least sum of a significant step, in standard deviations of its noise."""


def smoothed(counts: Array, variance: float, step: float = STEP) -> Array:
    """The piecewise constant fit of noisy counts, float64[values].

    The time grows as the square of the number of values: about 0.1 s for 10 000.

    Args:
        counts: noisy counts, in the order of the values.
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


def outside(smooth: Array, variance: float, least: float = NOBODY) -> NDArray[np.bool_]:
    """Values before the first or after the last significant step, bool[values].

    A step is significant if its sum is more than ``least`` standard deviations above zero. Outside of the
    significant steps, noise cut off at zero would give rows to values that nobody has, and at the end of a
    long tail a few rows are a large part of a mean. Without a significant step all values are outside.

    Args:
        smooth: the result of ``smoothed``.
        variance: variance of the noise of each count.
        least: least sum of a significant step, in standard deviations of its noise.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(smooth)) + 1, [len(smooth)]])
    lengths = np.repeat(np.diff(starts), np.diff(starts))
    stands = np.flatnonzero(smooth * np.sqrt(lengths / variance) > least)
    found = np.ones(len(smooth), dtype=np.bool_)
    if stands.size:
        found[stands[0] : stands[-1] + 1] = False
    return found
