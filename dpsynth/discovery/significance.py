"""Which noisy counts are too large to be noise.

Invariant: of cells without rows, all counted at once, any is taken with a small probability only.
"""

from __future__ import annotations

from dpsynth.accounting.noises import noise_named


def deviations(cells: int, noise: str, chance: float) -> float:
    """How many standard deviations all of so many noises stay below, but for a small chance.

    Args:
        cells: how many counts are held against it.
        noise: "gaussian" or "laplace".
        chance: that one or more of them is above.
    """
    return noise_named(noise).deviations(cells, chance)
