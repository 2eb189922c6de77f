"""The exponential mechanism: its frequencies, and its exact privacy loss (hazard 9)."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from scipy.stats import chisquare

from dpsynth.accounting.calibration import exponential_within
from dpsynth.accounting.events import ExponentialEvent
from dpsynth.accounting.measures import PURE
from dpsynth.curator import samplers
from tests.accounting.laws import least_mu
from tests.thinned import some

DRAWS = [5_000, pytest.param(40_000, marks=pytest.mark.slow)]
SCORES = np.array([0, 3, 5, 6, 11], dtype=np.int64)


def distribution(scores: np.ndarray, scale: float) -> np.ndarray:
    weight = np.exp((scores - scores.max()) / scale)
    return weight / weight.sum()


def frequencies_fit(scale: float, claimed: float, draws: int) -> bool:
    seen = np.bincount([samplers.choose_index(SCORES, scale) for _ in range(draws)], minlength=len(SCORES))
    return chisquare(seen, draws * distribution(SCORES, claimed)).pvalue > 1e-6


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("scale", some([2.0, 10.0], 1))
def test_choices_follow_the_exponential_mechanism(scale: float, draws: int) -> None:
    assert frequencies_fit(scale, scale, draws)


@pytest.mark.parametrize("draws", DRAWS)
def test_choices_sharper_than_charged_for_would_be_seen(draws: int) -> None:
    assert not frequencies_fit(0.7 * 4.0, 4.0, draws)
    assert not frequencies_fit(4.0 / 2, 4.0, draws)


def worst_losses(event: ExponentialEvent) -> tuple[float, float, float]:
    """Largest log ratio, D_alpha/alpha and mu^2/2 over neighbours that move scores either way."""
    loss, rho, half_mu_squared = 0.0, 0.0, 0.0
    moves = (-event.sensitivity, 0, event.sensitivity)
    for size, spread in product((2, 3, 8), (0, 1, 50)):
        base = np.zeros(size, dtype=np.int64)
        base[0] = spread
        for move in product(moves, repeat=3):
            other = base + np.r_[move[0], move[1], np.full(size - 2, move[2])][:size]
            for one, two in ((base, other), (other, base)):
                p, q = distribution(one, event.scale), distribution(two, event.scale)
                loss = max(loss, float(np.log(p / q).max()))
                half_mu_squared = max(half_mu_squared, float(least_mu(np.log(p), np.log(q))) ** 2 / 2)
                for alpha in (1.01, 1.5, 2.0, 4.0, 16.0, 64.0, 500.0):
                    terms = alpha * np.log(p) + (1 - alpha) * np.log(q)
                    peak = terms.max()
                    divergence = (peak + log(np.exp(terms - peak).sum())) / (alpha - 1)
                    rho = max(rho, divergence / alpha)
    return loss, rho, half_mu_squared


@pytest.mark.parametrize("sensitivity", [1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_no_neighbour_loses_more_than_the_event_charges(sensitivity: int, epsilon: Fraction) -> None:
    event = exponential_within(epsilon, PURE, sensitivity)
    loss, rho, half_mu_squared = worst_losses(event)
    assert loss <= float(event.epsilon) * (1 + 1e-9)
    assert rho <= float(event.rho) * (1 + 1e-9)
    assert half_mu_squared <= float(event.half_mu_squared) * (1 + 1e-9)
    # And the charge is no idle one: some neighbour comes close to it.
    assert loss > 0.75 * float(event.epsilon)


class Monotone(ExponentialEvent):
    """The fault of a real system: an L1 distance taken for a monotone score."""

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.sensitivity) / Fraction(self.scale)


def test_a_dropped_factor_of_two_would_be_caught() -> None:
    faulty = Monotone(10.0, 1)
    loss, rho, half_mu_squared = worst_losses(faulty)
    assert loss > float(faulty.epsilon)
    assert rho > float(faulty.rho)
    assert half_mu_squared > float(faulty.half_mu_squared)
