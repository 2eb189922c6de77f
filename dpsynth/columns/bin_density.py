"""Density of the values inside a bin, estimated from the counts of the neighbouring bins.

Wide bins hold more small values than large ones, or more large values than small ones; amounts of money above
all. The density inside a bin continues the trend from bin to bin. It is linear on logarithmic axes: a
straight line through the densities of neighbours, so a power of the value, x^slope. A bin whose neighbours
both hold less, or both more, has a uniform density, and so has a bin on both sides of zero.

The rows of bins at either end in which there is nothing but noise lie near the other bins.

Bins are given as runs of whole steps, a step being the last decimal of the column.

Invariant: the counts are public ones, of noisy answers; a value stays in its bin whatever they are.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Steps = NDArray[np.int64]

_STEEPEST = 10.0
"""A density changes by a factor of at most e^10 within a bin."""
_NOISE = 4.0
"""Bins at an end have nothing but noise if each of them has less than so many times the least number of rows,
and k of them together less than sqrt(k) times as many."""
_FROM_ZERO = (-0.9, 5.0)
"""Least and largest slope of a bin that begins at zero; at -1 a density has no end there."""
_SMOOTH_FROM = 256
"""Steps from a bin's end after which the density hardly changes within a step."""
_FLATTEST = 1e-6
_NARROWEST = 1e-3
"""Width, relative to the distance from zero, below which a bin is uniform: powers hardly differ there."""


def slopes(low: Steps, high: Steps, counts: Numbers, least: float) -> Numbers:
    """The exponent of each bin's density, float64[bins]; 0 is uniform.

    In a bin with two neighbours it is the harmonic mean of the slopes to both, 0 if they differ in sign (the
    limiter of Fritsch and Butland 1984: it follows a fall, and no single peak); at the far end, the slope to
    the one neighbour; at the end near zero, see ``_towards_zero``. Bins of one value have no density and are
    left out. Outer bins with nothing but noise have the steepest density, towards the other bins.

    Args:
        low: first step of each bin, rising.
        high: last step of each bin, at least ``low``.
        counts: rows of each bin, possibly noisy.
        least: lower bound on the rows of a bin, above 0; half a standard deviation of their noise.
    """
    first, end, mirrored = _distances(low, high)
    inner = _with_rows(counts, least)
    density = np.log(np.maximum(counts, least) / (end - first))
    position = np.log((first + end) / 2)
    found = np.zeros(len(low))
    wide = (low < high) & ((low >= 0) | mirrored) & (end - first > _NARROWEST * end)
    for side in (np.flatnonzero(wide & ~mirrored), np.flatnonzero(wide & mirrored)[::-1]):
        between = [(density[b] - density[a]) / (position[b] - position[a]) for a, b in pairwise(side)]
        if between:
            first_between = _towards_zero(between, position[side])
            before, after = np.array([first_between, *between]), np.array([*between, between[-1]])
            agree = before * after > 0
            found[side[agree]] = 2 / (1 / before[agree] + 1 / after[agree])
    zero = first == 0
    most = _STEEPEST / np.log(np.where(zero, np.e, end / np.where(zero, 1, first)))
    if inner.any():
        before = np.arange(len(low)) < inner.argmax()
        outer = wide & ~inner
        found[outer] = np.where(before ^ mirrored, np.inf, -np.inf)[outer]
    bounded = np.clip(found, np.where(zero, _FROM_ZERO[0], -most), np.where(zero, _FROM_ZERO[1], most))
    return np.where(np.abs(bounded) < _FLATTEST, 0.0, bounded)


def _with_rows(counts: Numbers, least: float) -> NDArray[np.bool_]:
    """All bins but those at either end in which there is nothing but noise, bool[bins]."""
    found = np.ones(len(counts), dtype=np.bool_)
    bounds = _NOISE * least * np.sqrt(np.arange(1, len(counts) + 1))
    for ordered, kept in ((counts, found), (counts[::-1], found[::-1])):
        more = (ordered > bounds[0]) | (np.cumsum(ordered) > bounds)
        kept[: more.argmax() if more.any() else len(counts)] = False
    return found


def _towards_zero(between: list[float], position: Numbers) -> float:
    """The slope on the near side of the bin nearest to zero, which has no neighbour there.

    The slopes between the next bins are continued on a straight line, no further than to uniform and no
    steeper than the first: where counts fall ever faster, as those of incomes do, they peak near the first
    bin, and its values don't crowd at its near end. A power law has one slope, which is kept.
    """
    if len(between) < 2:
        return between[0]
    middle = (position[:2] + position[1:3]) / 2
    change = (between[1] - between[0]) / (middle[1] - middle[0])
    continued = 2 * (between[0] + change * (position[0] - middle[0])) - between[0]
    return min(max(continued, 0.0), between[0]) if between[0] > 0 else max(min(continued, 0.0), between[0])


def drawn(low: Steps, high: Steps, slope: Numbers, rng: np.random.Generator) -> Steps:
    """A step of each bin, int64[bins]: the whole part of a draw from its density; slopes are not 0."""
    first, end, mirrored = _distances(low, high)
    power, ratio = _power(first, end, slope)
    # x = end (r + u (1 - r))^(1/power) with r = (first/end)^power is the inverse of the share below x.
    inverse = end * (ratio + rng.random(len(low)) * (1 - ratio)) ** (1 / power)
    steps = np.floor(inverse).astype(np.int64)
    return np.clip(np.where(mirrored, -steps, steps), low, high)


def means(low: Steps, high: Steps, slope: Numbers) -> Numbers:
    """The mean of ``drawn``, to a thousandth of a bin; float64[bins], slopes not 0.

    The mean of the density less that of the parts of a step that are cut off. Those are summed
    over the steps near zero, and a half each where the density hardly changes within one.
    """
    first, end, mirrored = _distances(low, high)
    near = np.minimum(first[:, None] + np.arange(_SMOOTH_FROM + 1), end[:, None])
    shares, moments = _shares(near, first, end, slope), _moments(near, first, end, slope)
    cut = (np.diff(moments) - near[:, :-1] * np.diff(shares)).sum(axis=1) + (1 - shares[:, -1]) / 2
    whole = _moments(end[:, None], first, end, slope)[:, 0]
    return np.where(mirrored, -1.0, 1.0) * (whole - cut)


def _distances(low: Steps, high: Steps) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Each bin as distances from zero, [first, end), and true where it lies below zero."""
    mirrored = (low < 0) & (high <= 0)
    first = np.where(mirrored, -high, np.maximum(low, 0)).astype(np.float64)
    return first, np.where(mirrored, -low, high) + 1.0, mirrored


def _power(first: Numbers, end: Numbers, slope: Numbers) -> tuple[Numbers, Numbers]:
    """One more than the slope, never quite 0, and (first/end) to it."""
    power = np.where(np.abs(slope + 1) < _FLATTEST, _FLATTEST, slope + 1)
    return power, (first / end) ** power


def _shares(at: Numbers, first: Numbers, end: Numbers, slope: Numbers) -> Numbers:
    """The part of each bin's rows below some distances, float64[bins, distances]."""
    power, ratio = _power(first, end, slope)
    return np.asarray(((at / end[:, None]) ** power[:, None] - ratio[:, None]) / (1 - ratio)[:, None])


def _moments(at: Numbers, first: Numbers, end: Numbers, slope: Numbers) -> Numbers:
    """The sum of the distances of all rows below some, over the number of rows; float64[bins, distances]."""
    power, ratio = _power(first, end, slope)
    further, beyond = _power(first, end, slope + 1)
    scale = end * power / further / (1 - ratio)
    return np.asarray(scale[:, None] * ((at / end[:, None]) ** further[:, None] - beyond[:, None]))
