"""The reconstruction attack: every secret bit from many counts, by linear algebra.

Dinur and Nissim (2003): too accurate answers to too many questions give everything away. Each of n people has
a secret bit. A question is the number of ones among a random half of them. Answers to 4n questions make a
system of linear equations, which the attacker solves by least squares; a bit is one where the solution is
above a half. Errors far below the root of n don't help: the solution is right all the same. Noise that keeps
all answers together within the release's guarantee does.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.attacks.noise_draws import noise_draws
from dpsynth.wings.proof.attacks.success import Success, of_worlds, presence_bound
from dpsynth.wings.proof.attacks.world import World

PEOPLE = 96
_QUESTIONS = 4 * PEOPLE
_EACH = 20
"""Games a world counts for: many bits share the noise of one world."""
_LEAST_WORLDS = 20
_POINTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)

Curve = tuple[tuple[float, float], ...]


def reconstruction(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """The success against exact counts, counts with small errors, and counts within the release's guarantee.

    Args:
        world: the world of the games; its guarantee sets the noise.
        games: number of games, of which a world of people counts for several.
        rng: any generator.
    """
    worlds = max(_LEAST_WORLDS, games // _EACH)
    asked = f"{_QUESTIONS} counts of random halves of {PEOPLE} people"
    small = sqrt(PEOPLE) / 8
    noise, scale = scale_within(world)
    return (
        of_worlds("exact", f"{asked}, exact", _found(worlds, None, 0.0, rng), PEOPLE),
        of_worlds(
            "small errors",
            f"{asked}, with errors of a standard deviation of {small:.1f}",
            _found(worlds, "gaussian", small, rng),
            PEOPLE,
        ),
        of_worlds(
            "release",
            f"{asked}, with noise that keeps them together within the release's guarantee",
            _found(worlds, noise, scale, rng),
            PEOPLE,
            presence_bound(world.guarantee),
        ),
    )


def reconstruction_curve(world: World, games: int, rng: np.random.Generator) -> Curve:
    """The success by the standard deviation of the noise, in roots of the number of people."""
    del world
    worlds = max(_LEAST_WORLDS // 2, games // (4 * _EACH))
    return tuple(
        (point, float(_found(worlds, "gaussian", point * sqrt(PEOPLE), rng).mean())) for point in _POINTS
    )


def scale_within(world: World) -> tuple[str, float]:
    """The noise with which all counts together keep within the release's guarantee.

    A bit that changes moves each count by 1 at most. So sigma is sqrt(m)/mu under Gaussian DP, sqrt(m/(2
    rho)) under zCDP, and the scale m/epsilon under pure accounting, for m counts.
    """
    guarantee = world.guarantee
    if guarantee.mu:
        return "gaussian", sqrt(_QUESTIONS) / guarantee.mu
    if guarantee.rho:
        return "gaussian", sqrt(_QUESTIONS / (2 * guarantee.rho))
    return "laplace", _QUESTIONS / guarantee.epsilon


def _found(worlds: int, noise: str | None, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The share of bits that are found in each world."""
    shares = np.empty(worlds)
    for number in range(worlds):
        bits = rng.integers(0, 2, PEOPLE)
        halves = rng.integers(0, 2, (_QUESTIONS, PEOPLE)).astype(np.float64)
        answers = halves @ bits
        if noise is not None:
            answers += noise_draws(noise, scale, answers.shape, rng)
        # Least squares by the normal equations: random halves, four times as many, are far from singular.
        solution = np.linalg.solve(halves.T @ halves, halves.T @ answers)
        shares[number] = np.mean((solution > 0.5) == bits)
    return shares
