"""Draws of the noise of simulated answers.

These are simulations: nothing of them is released, so a usual generator will do.
Invariant: each draw has the law of the discrete Gaussian or the discrete Laplace distribution, cut off where
the chance of a larger draw is below 1e-15.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

_TAIL = 36.0
"""Largest distance in scales: e^-36 is below 1e-15."""


def two_of(cells: int, games: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Two different cells for each game, each pair as likely, int64[games, 2]."""
    first = rng.integers(0, cells, games)
    return np.column_stack([first, (first + rng.integers(1, cells, games)) % cells])


def noise_draws(
    noise: str, scale: float, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draws of discrete noise.

    Args:
        noise: "gaussian", with a chance of x that goes by exp(-x^2/(2 scale^2)); or "laplace", by
            exp(-|x|/scale).
        scale: above 0.
        shape: of the result.
        rng: any generator.
    """
    reach = ceil(_TAIL * scale if noise == "laplace" else 9 * scale) + 1
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / scale) ** 2) / 2 if noise == "gaussian" else -np.abs(values) / scale)
    cumulated = np.cumsum(weights)
    found = np.searchsorted(cumulated, rng.random(shape) * cumulated[-1], side="right")
    return values[np.minimum(found, len(values) - 1)]
