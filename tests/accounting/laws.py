"""Exact laws of answers on two neighbours, and how far they can be told apart by Gaussian DP's measure."""

from fractions import Fraction
from math import exp

import numpy as np
from scipy.special import ndtri_exp
from scipy.stats import binom

from dpsynth.accounting.measures import gdp_epsilon

Laws = tuple[np.ndarray, np.ndarray]
"""The probabilities of all outcomes on one table, and on the other."""


def noise(sigma: float) -> np.ndarray:
    """Discrete Gaussian noise, as far out as doubles tell."""
    reach = int(13 * sigma) + 13
    p = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return p / p.sum()


def run(sigma: float, shift: int, times: int) -> Laws:
    """The sum of so many answers, which decides the likelihood ratio; exact but for rounding."""
    total = noise(sigma)
    for _ in range(times - 1):
        total = np.convolve(total, noise(sigma))
    nothing = np.zeros(shift * times)
    return np.concatenate([nothing, total]), np.concatenate([total, nothing])


def two_points(epsilon: float, middle: float) -> Laws:
    """One choice of two that tells most: probabilities whose logits lie epsilon apart about a middle."""
    p, q = (
        [1 / (1 + exp(-logit)), 1 / (1 + exp(logit))]
        for logit in (middle + epsilon / 2, middle - epsilon / 2)
    )
    return np.array(p), np.array(q)


def laplace(scale: float, shift: int) -> Laws:
    """Discrete Laplace noise, and the same moved by so much; outcomes beyond either centre are one."""
    step = exp(-1 / scale)
    inside = np.exp(-np.arange(1, shift) / scale) * (1 - step) / (1 + step)
    near, far = 1 / (1 + step), exp(-shift / scale) / (1 + step)
    p = np.array([near, *inside, far])
    return p, p[::-1].copy()


def repeated(laws: Laws, times: int) -> Laws:
    """Two outcomes, drawn so many times; how often each came decides the likelihood ratio."""
    (p, _), (q, _) = laws
    counts = np.arange(times + 1)
    return binom.pmf(counts, times, p), binom.pmf(counts, times, q)


def both(*parts: Laws) -> Laws:
    """All outcomes of several answers, none of which depends on another."""
    p, q = parts[0]
    for r, s in parts[1:]:
        p, q = np.outer(p, r).ravel(), np.outer(q, s).ravel()
    return p, q


def branching(first: Laws, later: list[Laws]) -> Laws:
    """An answer, then one of as many as there are parts of the first's outcomes, by the part it falls in."""
    parts = np.array_split(np.arange(len(first[0])), len(later))
    pieces = [both((first[0][at], first[1][at]), then) for at, then in zip(parts, later, strict=True)]
    return np.concatenate([p for p, _ in pieces]), np.concatenate([q for _, q in pieces])


def understated(laws: Laws, total: Fraction) -> int:
    """How often, over a grid of epsilon, a total of mu^2/2 claims less than the exact delta shows."""
    p, q = laws
    grid = np.linspace(0.0, 12 * float(2 * total) ** 0.5, 120 if p.size > 10**4 else 1200)
    deltas = [float(np.maximum(0, p - exp(e) * q).sum()) for e in grid]
    pairs = [(e, d) for e, d in zip(grid, deltas, strict=True) if 1e-11 < d < 1]
    chosen = [pairs[i] for i in np.linspace(0, len(pairs) - 1, 24).astype(int)]
    return sum(gdp_epsilon(total, Fraction(d * (1 - 1e-9))) < Fraction(e) for e, d in chosen)


def least_mu(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The least mu of which the trade-off function of N(0, 1) against N(mu, 1) lies below that of two laws.

    The latter is piecewise linear and the former convex, so it is enough to look at its corners:
    the tests that reject at the k outcomes most likely under q.

    Args:
        p, q: log-probabilities of the same outcomes, along the last axis.
    """
    order = np.argsort(p - q, axis=-1)
    p, q = (np.take_along_axis(logs, order, axis=-1) for logs in (p, q))
    return (_quantiles(q) - _quantiles(p)).max(axis=-1)


def _quantiles(logs: np.ndarray) -> np.ndarray:
    """Phi^-1 of the probability of the first k outcomes, for each k, from logarithms of either side."""
    below = np.logaddexp.accumulate(logs, axis=-1)[..., :-1]
    above = np.logaddexp.accumulate(logs[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
