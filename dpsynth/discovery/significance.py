"""Which noisy counts are too large to be noise.

Invariant: of cells without rows, all counted at once, any is taken with a small probability only.
"""

from __future__ import annotations

from math import log, sqrt
from statistics import NormalDist


def deviations(cells: int, noise: str, chance: float) -> float:
    """How many standard deviations all of so many noises stay below, but for a small chance.

    Gaussian: the normal's quantile at chance/cells. Laplace of scale b and standard deviation sqrt(2) b:
    P[x > t] = exp(-t/b)/2. A sum of several Laplace noises has lighter tails than one, so the number holds
    for sums too.

    Args:
        cells: how many counts are held against it.
        noise: "gaussian" or "laplace".
        chance: that one or more of them is above.
    """
    if noise == "laplace":
        return log(cells / (2 * chance)) / sqrt(2)
    return -NormalDist().inv_cdf(chance / cells)
