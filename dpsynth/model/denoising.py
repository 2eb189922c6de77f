"""Denoising: noisy counts of one column by flat steps, and marginals of several columns by empirical Bayes.

Neighbouring values of a column often have about the same frequency, and the mean of k noisy counts has a k-th
of their variance. So its counts are fitted by steps (``smoothed``).

Most cells of a marginal of several columns are empty, and noise would give them rows. Most other cells lie
near an estimate that is known before, such as that of a model without this answer. So a cell's count is taken
to be 0 (the spike), or normal about its estimate m with variance k (m + a little of independence), for a
small k or a large one (two slabs). The shares of the three kinds, and both k, are learnt from the answer
itself (Johnstone and Silverman 2004 for the spike; Stephens 2016 for several slabs); in ordered columns the
spike's share in a cell follows the cells around it. A model is fitted to posterior means, which keep the
number of rows, and a table to posterior medians, which have the least expected L1 error.

A trend that is small in each cell, such as a rank correlation, would be lost with the noise of the cells. But
it is precise in their sum: all cells above the diagonal have a few rows more. So the estimate gets the
answer's trends first (``with_trends``), and the cells are denoised about it.

Invariant: post-processing of a noisy answer and public estimates. Statistics that are published as measured
come from the answer itself, never from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import pi, prod, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import DenoisedCounts, Measurement, Observation, pooled_counts
from dpsynth.model.factor import Array, one_thread
from dpsynth.model.markov_random_field import MarkovRandomField

STEP = 4.0
"""Price of a step, in variances; 2 would be unbiased if the place of the step were given."""

NOBODY = 2.0
"""Standard deviations of its noise up to which the sum of a step tells of no rows."""


def smoothed(counts: Array, variance: float, step: float = STEP) -> Array:
    """The piecewise constant fit of noisy counts, float64[values]; ``counts`` are in the order of the values.

    It has the least sum of squared deviations, in units of the noise's variance, plus a price for each step
    (the merging of bins of Xu et al. 2013, with the partition found exactly by dynamic programming as in
    Jagadish et al. 1998). Counts that differ from their neighbours by more than their noise keep a step of
    their own. The time grows as the square of the number of values: about 0.1 s for 10 000.

    Args:
        variance: of each count's noise.
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


def outside(smooth: Array, variance: float, out_of: float = 20.0) -> NDArray[np.bool_]:
    """Values that nobody is told to have at the ends of a smoothed column, bool[values].

    Noise cut off at zero would give rows to values that nobody has, and far ones move means the most. A step
    surely has rows if its sum is above what noise alone gives any step, but for one column in ``out_of``.
    Inside are all from the first to the last such step, and beyond them one after another of more than two
    standard deviations above zero; without a sure one, all from the first to the last above these.
    """
    starts = np.flatnonzero(np.diff(smooth, prepend=np.nan))
    ends = np.append(starts[1:], len(smooth))[: starts.size]
    told = smooth[starts] * np.sqrt((ends - starts) / variance)
    found, some = np.ones(len(smooth), dtype=np.bool_), np.flatnonzero(told > NOBODY)
    if not some.size:
        return found
    sure = np.flatnonzero(told > NormalDist().inv_cdf(1 - 1 / (out_of * len(smooth))))
    first, last = (sure if sure.size else some)[[0, -1]]
    while first > 0 and told[first - 1] > NOBODY:
        first -= 1
    while last + 1 < told.size and told[last + 1] > NOBODY:
        last += 1
    found[starts[first] : ends[last]] = False
    # The two ends hold all that lies beyond them.
    for end, alone in ((0, ends[0] == 1), (-1, starts[-1] == len(smooth) - 1)):
        found[end] &= not alone or told[end] <= NOBODY
    return found


_ROUNDS, _HALVINGS = 25, 30

_INDEPENDENCE, _LEAST_ROWS = 0.1, 1e-3
"""Part of independence in the slabs' variance, and rows added to it: so no cell is thought impossible."""

_APART = (0.1, 10.0)
"""The slabs' k at the start, relative to that of one slab alone."""

_LEAST = 1e-9

_SHARES = (0.5, 0.45, 0.05)
"""Shares of the spike and of the two slabs at the start."""

_LEAST_SHARE = 1e-6

_LEAST_LOCAL, _APPROACH = 1e-4, 5
"""Least probability that one cell is empty or not; rounds after which the cells around are looked at."""

_HIGHEST = 8
"""Largest product of the frequencies of a trend."""

_ROUGH = 1.5
"""Power of the frequencies by which a trend's deviation falls."""

_TOGETHER = 3
"""Largest number of columns of a trend."""

_FACTORS = np.array([0.0, *4.0 ** np.arange(-8, 5)])
"""Factors of the coefficients' variance, of which one is chosen."""

_DECIMALS = 9
"""Decimals of a coefficient."""

_LEAST_DEVIATION = 0.5
"""Smallest standard deviation of a denoised count, in rows, which is a whole number."""


@dataclass(frozen=True, eq=False)
class Denoised:
    """The posterior of a marginal: each cell is 0, or normal in one of several ways, cut off below 0.

    Attributes:
        mean: float64, shape of the marginal: posterior mean of each cell, not negative.
        variance: mean posterior variance of a cell, in rows squared.
        kinds: float64[1 + slabs, cells], probabilities of 0 and of each slab; the sum of a cell is 1.
        centres, errors: float64[slabs, cells], mean and standard deviation of each slab before it is cut off.
    """

    mean: Array
    variance: float
    kinds: Array
    centres: Array
    errors: Array

    @cached_property
    def median(self) -> Array:
        """Posterior median of each cell, in the shape of ``mean``: 0 where the cell is likelier empty."""
        whole = self.kinds, self.centres, np.maximum(self.errors, 1e-12)
        likely = np.flatnonzero(_below(0.0, *whole) < 0.5)
        kinds, centres, errors = (values.take(likely, axis=1) for values in whole)
        low, high = np.zeros(likely.size), np.maximum((centres + 8 * self.errors[:, likely]).max(axis=0), 1.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            more = _below(middle, kinds, centres, errors) < 0.5
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        found = np.zeros(self.mean.size)
        found[likely] = (low + high) / 2
        return found.reshape(self.mean.shape)

    def target(self, estimate: Array) -> Array:
        """The median; values of a column that lose most rows of ``estimate`` by it keep these."""
        found = self.median
        for axis in range(found.ndim):
            others = tuple(i for i in range(found.ndim) if i != axis)
            before, now = (counts.sum(axis=others, keepdims=True) for counts in (estimate, found))
            found = np.where(now < before / 2, estimate, found)
        return found


def _below(level: Array | float, kinds: Array, centres: Array, errors: Array) -> Array:
    """Probability that each cell is at most ``level``."""
    shares = normal_shares((level - centres) / errors)
    return np.asarray(kinds[0] + (kinds[1:] * shares).sum(axis=0))


LEAST_CELLS = 33
"""Cells of a marginal from which on its shares and spreads can be learnt from itself."""


def posteriors(answers: Iterable[Observation], model: MarkovRandomField) -> dict[Clique, Denoised]:
    """The posterior of each clique of several columns that has cells enough, about independent columns.

    A release's own answers about one clique count together. Evidence has no posterior.
    """
    plain = (a for a in answers if _plain(a) and a.values.size >= LEAST_CELLS)
    return {
        clique: denoised(mean, variance, independent(model.marginal(clique)))
        for clique, (mean, variance) in pooled_counts(plain, joint=True).items()
    }


def margins(answers: Iterable[Observation]) -> Iterator[Observation]:
    """The counts of single columns in a release's own answers about several columns."""
    for answer in filter(_plain, answers):
        for axis, column in enumerate(answer.clique):
            cells = np.moveaxis(answer.values, axis, 0).reshape(answer.values.shape[axis], -1)
            deviation = answer.stddev * sqrt(cells.shape[1])
            yield DenoisedCounts((column,), cells.sum(axis=1), "gaussian", deviation)


def denoised_answers(answers: Iterable[Observation], known: Mapping[Clique, Denoised]) -> list[Observation]:
    """The answers, with posterior means in place of those that have a posterior."""
    found = [a for a in answers if not _plain(a) or a.clique not in known]
    for clique, posterior in known.items():
        counts = np.rint(posterior.mean).astype(np.int64)
        deviation = max(sqrt(posterior.variance), _LEAST_DEVIATION)
        found.append(DenoisedCounts(clique, counts, "gaussian", deviation))
    return found


def _plain(answer: Observation) -> bool:
    noisy = answer.summed is None and answer.noise != "none"
    return noisy and isinstance(answer, Measurement) and len(answer.clique) > 1


def denoised(noisy: NDArray[np.integer] | Array, variance: float, estimate: Array) -> Denoised:
    """The posterior of a marginal, given its noisy counts and an estimate of them, not negative.

    The slabs are about the estimate with its trends, and as wide as the estimate says. A cell whose estimate
    is below the noise can't tell empty from full, so it counts little for the shares.
    """
    scale, alone = slab = _one_slab(noisy, variance, estimate)
    y, m = noisy.astype(np.float64).reshape(-1), with_trends(noisy, variance, estimate, slab).reshape(-1)
    excess, telling = np.square(y - m) - variance, np.square(estimate).reshape(-1)
    telling = telling / (telling + variance) + _LEAST
    spreads = alone * np.array(_APART)
    shares = np.array(_SHARES)
    kinds = np.empty((1 + len(spreads), y.size))
    empty = np.full(y.size, shares[0])
    if_empty, far = -0.5 * np.log(variance) - 0.5 * np.square(y) / variance, 0.5 * np.square(y - m)
    for number in range(_ROUNDS):
        total = spreads[:, None] * scale + variance
        kinds[0] = if_empty + np.log(empty)
        kinds[1:] = -0.5 * np.log(total) - far / total + np.log1p(-empty)
        kinds[1:] += np.log(shares[1:] / shares[1:].sum())[:, None]
        kinds -= kinds.max(axis=0)
        np.exp(kinds, out=kinds)
        kinds /= kinds.sum(axis=0)
        spreads = _spreads(kinds[1:], spreads, scale, excess, variance)
        shares = np.maximum((kinds * telling).sum(axis=1) / telling.sum(), _LEAST_SHARE)
        shares /= shares.sum()
        if number % _APPROACH == 0:
            apart = _around(kinds[0], telling, shares[0], noisy.shape)
        empty = np.clip(shares[0] + apart, _LEAST_LOCAL, 1 - _LEAST_LOCAL)
    prior = spreads[:, None] * scale
    # No cell has more rows than there are, however large the noise is.
    mean = np.minimum(m + prior / (prior + variance) * (y - m), estimate.sum())
    error = np.sqrt(prior * variance / (prior + variance))
    whole = (kinds[1:] * np.maximum(mean, 0.0)).sum(axis=0)
    squares = (kinds[1:] * (np.square(error) + np.square(np.maximum(mean, 0.0)))).sum(axis=0)
    spread = float(np.maximum(squares - np.square(whole), 0.0).mean())
    return Denoised(whole.reshape(noisy.shape), spread, kinds, mean, error)


def _around(empty: Array, telling: Array, share: float, shape: tuple[int, ...]) -> Array:
    """The probability that each cell is empty, above the mean ``share``, by the cells around it.

    A weighted regression of the cells on the mean of those around them, flat where order means nothing.
    """
    whole = both = np.stack([empty * telling, telling]).reshape(2, *shape)
    for axis in range(1, both.ndim):
        lines, whole = whole.swapaxes(0, axis), whole.copy()
        whole.swapaxes(0, axis)[1:] += lines[:-1]
        whole.swapaxes(0, axis)[:-1] += lines[1:]
    around, room = (whole - both).reshape(2, -1)
    near = (around + share) / (room + 1)
    weights = telling / telling.sum()
    centred = near - near @ weights
    slope = float(weights @ (centred * empty)) / max(float(weights @ np.square(centred)), _LEAST)
    return np.asarray(min(max(slope, 0.0), 1.0) * centred)


def with_trends(
    noisy: NDArray[np.integer] | Array,
    variance: float,
    estimate: Array,
    slab: tuple[Array, float] | None = None,
) -> Array:
    """The estimate of a marginal, with the trends in which its noisy counts deviate from it.

    A cell of m rows deviates by m f, where f is a sum of products of cosines over the ranks of two or three
    columns. That is smooth if the columns have an order. The coefficients are normal, with deviations that
    fall with the frequencies, times a factor that has the largest evidence (MacKay 1992); it is 0 where the
    answer has no trend.
    """
    total, waves = max(float(estimate.sum()), 1e-300), []
    cosines = []
    for axis, size in enumerate(estimate.shape):
        others = tuple(i for i in range(estimate.ndim) if i != axis)
        shares = estimate.sum(axis=others) / total
        own = [np.cos(pi * f * (np.cumsum(shares) - shares / 2)) for f in range(min(size, _HIGHEST + 1))]
        cosines.append([np.expand_dims(w - (w * shares).sum(), others) for w in own])
    for frequencies in product(*(range(len(own)) for own in cosines)):
        above = [f for f in frequencies if f]
        if 2 <= len(above) <= _TOGETHER and prod(above) <= _HIGHEST:
            wave = estimate * (sqrt(2) ** len(above) * prod(above) ** -_ROUGH)
            for own, f in zip(cosines, frequencies, strict=True):
                if f:
                    wave *= own[f]
            waves.append(wave.reshape(-1))
    if not waves:
        return estimate
    scale, spread = slab or _one_slab(noisy, variance, estimate)
    off = (noisy - estimate).reshape(-1)
    every, weights = np.stack(waves), 1 / (spread * scale + variance)
    with one_thread():
        precisions, turned = np.linalg.eigh((every * weights) @ every.T)
        along = turned.T @ (every * weights * off).sum(axis=1)
        known = 1 + _FACTORS[:, None] * np.maximum(precisions, 0.0)
        evidence = (np.square(along) * _FACTORS[:, None] / known - np.log(known)).sum(axis=1)
        best = int(evidence.argmax())
        # Rounded, as the last bits of a matrix product are not the same everywhere.
        coefficients = np.round(turned @ (along * _FACTORS[best] / known[best]), _DECIMALS)
    trend = (coefficients[:, None] * every).sum(axis=0)
    return np.maximum(estimate + trend.reshape(estimate.shape), 0.0)


def _one_slab(noisy: NDArray[np.integer] | Array, variance: float, estimate: Array) -> tuple[Array, float]:
    """The scale of a slab's variance, float64[cells], and the k of one slab that all cells are in."""
    whole = (1 - _INDEPENDENCE) * estimate + _INDEPENDENCE * independent(estimate) + _LEAST_ROWS
    scale, excess = whole.reshape(-1), np.square(noisy - estimate).reshape(-1) - variance
    found, of = np.ones(1), np.ones((1, scale.size))
    for _ in range(_ROUNDS // 2):
        found = _spreads(of, found, scale, excess, variance)
    return np.asarray(scale), float(found[0])


def _spreads(of: Array, before: Array, scale: Array, excess: Array, variance: float) -> Array:
    """The k of each slab, from the probabilities float64[slabs, cells] and the k before."""
    weights = of * scale / np.square(before[:, None] * scale + variance)
    least = np.maximum((weights * scale).sum(axis=1), 1e-300)
    return np.maximum((weights * excess).sum(axis=1) / least, _LEAST)


def normal_shares(levels: Array) -> Array:
    """The share of a standard normal distribution below some levels, to 10^-7.

    Abramowitz and Stegun 1964, 26.2.17: sums and products in a fixed order, alike on every machine but for
    the exponential.
    """
    near = 1 / (1 + 0.2316419 * np.abs(levels))
    series = 1.330274429 * near
    for factor in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        series += factor
        series *= near
    tail = np.exp(-0.5 * np.square(levels)) * series / sqrt(2 * pi)
    return np.where(levels > 0, 1 - tail, tail)


def independent(counts: Array) -> Array:
    """The marginal with the same sums of each axis that is the product of them."""
    total = counts.sum()
    found = np.full((1,) * counts.ndim, max(float(total), 1e-300))
    for axis in range(counts.ndim):
        others = tuple(i for i in range(counts.ndim) if i != axis)
        found = found * (counts.sum(axis=others, keepdims=True) / max(float(total), 1e-300))
    return np.asarray(np.broadcast_to(found, counts.shape))
