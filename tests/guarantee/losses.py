"""How much two exact distributions give away: largest log ratio, rho, mu^2/2, and delta at an epsilon."""

import numpy as np

from dpsynth.accounting.measures import GDP, PURE, ZCDP
from tests.accounting.laws import least_mu

ALPHAS = (1.001, 1.5, 2.0, 4.0, 16.0, 64.0, 500.0)


def log_distribution(scores: np.ndarray, scale: float) -> np.ndarray:
    """Log-probabilities of the exponential mechanism."""
    weights = scores / scale
    return weights - weights.max() - np.log(np.exp(weights - weights.max()).sum())


def renyi(p: np.ndarray, q: np.ndarray) -> float:
    """Largest D_alpha/alpha, from log-probabilities [pairs, outcomes]."""
    found = 0.0
    for alpha in ALPHAS:
        terms = alpha * p + (1 - alpha) * q
        peak = terms.max(axis=1, keepdims=True)
        divergence = (peak[:, 0] + np.log(np.exp(terms - peak).sum(axis=1))) / (alpha - 1)
        found = max(found, float(divergence.max()) / alpha)
    return found


LOSS = {
    PURE: lambda p, q: float((p - q).max()),
    ZCDP: renyi,
    GDP: lambda p, q: float(least_mu(p, q).max() ** 2 / 2),
}
"""Largest log ratio, rho, or mu^2/2 of the exact trade-off functions, over pairs of log-probabilities."""


def excess_delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The least delta for which these probabilities [pairs, outcomes] are (epsilon, delta)-close."""
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum(axis=-1).max())
