"""Cramer's V of a table of counts.

Invariant: post-processing.
"""

from __future__ import annotations

import numpy as np

from dpsynth.statistics.estimates import LEAST_ROWS, Numbers


def cramers_v(counts: Numbers, cell_variance: float) -> float:
    """Cramer's V of a table of counts, less what its noise is expected to add; NaN without rows.

    Args:
        counts: float64[one, two]; cells below zero count as zero.
        cell_variance: variance of the noise of a cell; 0 for a model's.
    """
    positive = np.maximum(counts, 0.0)
    total, one, two = positive.sum(), positive.sum(axis=1), positive.sum(axis=0)
    positive = positive[one > 0][:, two > 0]
    one, two = one[one > 0], two[two > 0]
    least = min(len(one), len(two)) - 1
    if total < LEAST_ROWS or least < 1:
        return float("nan")
    expected = one[:, None] * two / total
    excess = (positive - expected) ** 2 - cell_variance * (1 - one[:, None] / total) * (1 - two / total)
    square = float((excess / expected).sum()) / total / least
    return float(np.sqrt(np.clip(square, 0.0, 1.0)))
