"""Guesses from which of two tables a release was made: the largest chance, and limits of an observed one."""

from __future__ import annotations

from math import exp, nextafter

from scipy.stats import beta

LEVEL = 0.95
"""Confidence of limits."""


def limits(right: int, games: int) -> tuple[float, float]:
    """The 95 % limits of a chance by Clopper and Pearson.

    >>> [round(end, 4) for end in limits(8, 10)]
    [0.4439, 0.9748]
    """
    tail = (1 - LEVEL) / 2
    low = float(beta.ppf(tail, right, games - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - tail, right + 1, games - right)) if right < games else 1.0
    return low, high


def right_at_most(epsilon: float, delta: float) -> float:
    """The largest chance of telling two equally likely tables apart: (e^epsilon + delta)/(1 + e^epsilon).

    Rounded up. Kairouz, Oh and Viswanath 2015, as in ``presentation.figures.guess_percent``.

    >>> round(right_at_most(1.0, 0.0), 6)
    0.731059
    """
    return min(nextafter((1 + delta * exp(-epsilon)) / (1 + exp(-epsilon)), 2.0), 1.0)
