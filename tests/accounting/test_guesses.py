"""Limits of an observed chance, and the largest chance that a guarantee allows, by their definitions."""

from fractions import Fraction
from math import comb

import mpmath
import pytest

from dpsynth.wings.proof.loss_pairs import limits, right_at_most


def at_least(right: int, games: int, chance: float) -> float:
    """The probability of so many right guesses or more."""
    p = Fraction(chance)
    return float(sum(comb(games, k) * p**k * (1 - p) ** (games - k) for k in range(right, games + 1)))


@pytest.mark.parametrize(("right", "games"), [(0, 7), (1, 7), (5, 12), (6, 7), (7, 7), (0, 0)])
def test_at_each_limit_what_was_seen_has_a_chance_of_one_in_forty(right: int, games: int) -> None:
    low, high = limits(right, games)
    if right:
        assert at_least(right, games, low) == pytest.approx(0.025, rel=1e-9)
    else:
        assert low == 0
    if right < games:
        assert 1 - at_least(right + 1, games, high) == pytest.approx(0.025, rel=1e-9)
    else:
        assert high == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0, 30.0, 800.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5, 1.0])
def test_the_largest_chance_is_rounded_up(epsilon: float, delta: float) -> None:
    with mpmath.workdps(400):
        grown = mpmath.exp(epsilon)
        true = (grown + mpmath.mpf(delta)) / (1 + grown)
        found = right_at_most(epsilon, delta)
        assert true <= found <= 1 or found == 1 == float(true)
        assert found <= float(true) * (1 + 1e-15)
