"""The averaging attack: one question, asked again and again.

The secret is whether a person is in the table; the question is a count that she would raise. If each
repetition drew noise anew, the mean of the answers would come as near to the truth as anyone likes. A release
answers a question once: the journal keeps the answer, and whoever asks again, or makes the release go on
after a crash, gets the same number.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.attacks.noise_draws import noise_draws
from dpsynth.wings.proof.attacks.success import Success, of_games, presence_bound
from dpsynth.wings.proof.attacks.world import World

_DRAWN = 64
"""Repetitions of which each is drawn; the mean of more is normal, but for an error that nobody could see."""
_POINTS = 9
_SURE = 4.0
"""Twice the number of standard errors of the mean in half a row, at the last number of repetitions."""

Curve = tuple[tuple[int, float, float], ...]


def averaging(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """The success against noise that is drawn anew each time, and against the one answer of the release.

    Args:
        world: the world of the games.
        games: number of games.
        rng: any generator.
    """
    most = _most(world)
    secret = rng.integers(0, 2, games).astype(np.bool_)
    fresh = _right(world, secret, most, rng)
    once = _right(world, secret, 1, rng)
    return (
        of_games("fresh noise", f"the mean of {most:,} answers, each with noise of its own", fresh),
        of_games(
            "release", f"the release's answer, {most:,} times the same", once, presence_bound(world.guarantee)
        ),
    )


def averaging_curve(world: World, games: int, rng: np.random.Generator) -> Curve:
    """The success by the number of repetitions: repetitions, with fresh noise, with one answer."""
    most = _most(world)
    found = []
    for repetitions in dict.fromkeys(round(most ** (point / (_POINTS - 1))) for point in range(_POINTS)):
        secret = rng.integers(0, 2, games).astype(np.bool_)
        fresh, once = (_right(world, secret, n, rng).mean() for n in (repetitions, 1))
        found.append((repetitions, float(fresh), float(once)))
    return tuple(found)


def _counted(world: World) -> tuple[str, float]:
    """The noise of the count: that of the table with the least noise."""
    least = min(world.counted, key=lambda c: c.scale)
    return least.noise, least.scale


def _most(world: World) -> int:
    """Repetitions after which the mean is nearly always on the right side."""
    noise, scale = _counted(world)
    deviation = scale * (2**0.5 if noise == "laplace" else 1.0)
    return max(1, ceil((_SURE * deviation / world.unit_rows) ** 2))


def _right(
    world: World, secret: NDArray[np.bool_], repetitions: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """True for each game in which the mean of the answers is on the right side of the middle."""
    noise, scale = _counted(world)
    if repetitions <= _DRAWN:
        mean = noise_draws(noise, scale, (len(secret), repetitions), rng).mean(axis=1)
    else:
        deviation = scale * (2**0.5 if noise == "laplace" else 1.0)
        mean = rng.normal(0.0, deviation / repetitions**0.5, len(secret))
    rows = world.unit_rows
    return np.asarray((mean + rows * secret > rows / 2) == secret)
