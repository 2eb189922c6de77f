"""Denoising of a noisy marginal by empirical Bayes: a spike at zero, and a slab about an estimate.

Many cells of a marginal of several columns are empty, and noise would give them rows. The other cells lie
about an estimate that is known before, such as that of a model without this answer. So a cell's count is
taken to be 0 with probability p, and otherwise normal about its estimate m, with variance k (m + a little of
independence). Both p and k are learnt from the answer itself (Johnstone and Silverman 2004 for the spike;
Efron and Morris 1973 for the slab). The posterior median has the least expected L1 error.

Invariant: post-processing of a noisy answer and public estimates. Statistics that are published as measured
come from the answer itself, never from here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from dpsynth.model.factor import Array

_ROUNDS = 40
_INDEPENDENCE, _LEAST_ROWS = 0.1, 1e-3
"""Part of independence in the slab's variance, and rows added to it: so no cell is thought impossible."""
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class Denoised:
    """The posterior of a marginal.

    Attributes:
        counts: float64, shape of the marginal: the posterior median of each cell, not negative.
        variance: mean posterior variance of a cell, in rows squared.
        empty: the learnt share of empty cells, p above.
        spread: k above.
    """

    counts: Array
    variance: float
    empty: float
    spread: float


def denoised(noisy: NDArray[np.integer] | Array, variance: float, estimate: Array) -> Denoised:
    """The posterior of a marginal, given its noisy counts and an estimate.

    A cell whose estimate is below the noise can't tell empty from full, so it counts little for p.

    Args:
        noisy: noisy counts of each cell.
        variance: variance of their noise, above 0.
        estimate: estimated counts, of the same shape, not negative.
    """
    shape = noisy.shape
    y, m = noisy.astype(np.float64).reshape(-1), estimate.reshape(-1)
    scale = (1 - _INDEPENDENCE) * m + _INDEPENDENCE * independent(estimate).reshape(-1) + _LEAST_ROWS
    squared = np.square(y - m)
    telling = np.square(m) / (np.square(m) + variance)
    empty, share, spread = np.zeros(y.size), 0.5, 1.0
    at_zero = -0.5 * np.log(variance) - 0.5 * np.square(y) / variance
    for _ in range(_ROUNDS):
        weights = (1 - empty) / np.square(spread * scale + variance)
        found = (weights * scale * (squared - variance)).sum()
        spread = max(float(found / max((weights * np.square(scale)).sum(), 1e-300)), 1e-9)
        total = spread * scale + variance
        odds = at_zero + 0.5 * np.log(total) + 0.5 * squared / total
        empty = expit(odds + np.log(share) - np.log1p(-share))
        share = float((telling * empty).sum() / max(telling.sum(), 1e-300))
        share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    prior = spread * scale
    mean = m + prior / total * (y - m)
    error = np.sqrt(prior * variance / total)
    full = 1 - empty
    level = np.clip((0.5 - empty) / np.maximum(full, 0.5), 1e-12, 0.5)
    median = np.where(empty < 0.5, np.maximum(mean + error * ndtri(level), 0.0), 0.0)
    posterior = full * np.square(error) + empty * full * np.square(mean)
    return Denoised(median.reshape(shape), float(posterior.mean()), share, spread)


def independent(counts: Array) -> Array:
    """The marginal with the same sums of each axis that is the product of them."""
    total = counts.sum()
    found = np.full((1,) * counts.ndim, max(float(total), 1e-300))
    for axis in range(counts.ndim):
        others = tuple(i for i in range(counts.ndim) if i != axis)
        found = found * (counts.sum(axis=others, keepdims=True) / max(float(total), 1e-300))
    return np.asarray(np.broadcast_to(found, counts.shape))
