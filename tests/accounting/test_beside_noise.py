"""Choices beside Gaussian noise, once more without the proof: the worst that may follow, step by step.

An opponent picks the ends of each choice's ratios from what came out before. The largest hockey-stick
divergence that n choices may leave follows from that of n - 1. Nothing of ``beside_noise``'s argument is
used: no Brownian motion, no scaling, no interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from dpsynth.accounting import beside_noise
from dpsynth.accounting.beside_noise import PLD
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent
from dpsynth.accounting.numerical import Composition, pld_epsilon

REACH, POINTS = 14.0, 6001
ENDS = np.linspace(0.02, 0.98, 13)
"""The share of a choice's range that lies above a ratio of 1."""


def normal(mu: float, logs: np.ndarray) -> np.ndarray:
    """E_Q[(P/Q - e^k)_+] of normal laws at distance mu, for each k."""
    return np.asarray(ndtr(mu / 2 - logs / mu) - np.exp(logs) * ndtr(-mu / 2 - logs / mu))


def worst(epsilons: Sequence[float], mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms k, and the largest divergence at each of choices in turn, then noise at distance mu."""
    logs = np.linspace(-REACH, REACH, POINTS)
    found = normal(mu, logs)
    for epsilon in reversed(epsilons):
        best = np.zeros(POINTS)
        for share in ENDS:
            high, low = share * epsilon, (share - 1) * epsilon
            above = -np.expm1(low) / (np.exp(high) - np.exp(low))
            parts = [
                chance * np.exp(end) * _at(logs, found, logs - end)
                for chance, end in ((above, high), (1 - above, low))
            ]
            best = np.maximum(best, parts[0] + parts[1])
        found = best
    return logs, found


def _at(logs: np.ndarray, found: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The divergence between grid points, of which the logarithm of its time value is nearly a parabola."""
    # Less what it is without any noise, it falls to zero on both sides, and is smooth but at 0.
    value = np.log(np.maximum(found - np.maximum(-np.expm1(logs), 0.0), 1e-300))
    left, right = logs <= 0, logs >= 0
    below = np.interp(where, logs[left], value[left], left=-690.0)
    above = np.interp(where, logs[right], value[right], right=-690.0)
    return np.asarray(np.exp(np.where(where < 0, below, above)) + np.maximum(-np.expm1(where), 0.0))


def excess(epsilons: Sequence[float], half: float, cost: float) -> float:
    """The worst divergence over that of normal laws with mu^2/2 = half and the choices' cost, at most."""
    logs, found = worst(epsilons, (2 * half) ** 0.5)
    whole = normal((2 * (half + cost * sum(e * e for e in epsilons))) ** 0.5, logs)
    inside = (whole > 1e-13) & (np.abs(logs) < REACH / 2)
    return float((found[inside] / whole[inside]).max())


COST = float(beside_noise.CHOICE)
CASES = [([1.0], 0.5), ([0.4] * 5, 0.08), ([0.2, 1.0, 0.5], 0.5), ([0.1] * 8, 0.005), ([1.0] * 3, 2.0)]


@pytest.mark.parametrize(("epsilons", "half"), CASES)
def test_the_worst_adaptive_choices_before_noise_are_within_the_claim(epsilons, half) -> None:
    assert excess(epsilons, half, COST) <= 1 + 1e-5


@pytest.mark.parametrize(("epsilons", "half"), [([0.4] * 5, 0.08), ([1.0], 0.5)])
def test_choices_that_count_as_an_eighth_would_be_seen_without_the_proof_too(epsilons, half) -> None:
    assert excess(epsilons, half, 0.125) > 1 + 1e-3


@pytest.mark.slow
def test_random_compositions_are_within_the_claim_and_the_librarys_distribution_agrees() -> None:
    """dp-accounting's distribution has a pair for a choice that stands for all ends: it says no less."""
    rng, delta = np.random.default_rng(16), Fraction(1, 10**6)
    for _ in range(60):
        epsilons = [float(e) for e in rng.uniform(0.05, 1.0, rng.integers(1, 7)).round(2)]
        half = max(epsilons) ** 2 / 2 * float(rng.choice([1, 1.5, 4]))
        assert excess(epsilons, half, COST) <= 1 + 1e-5, (epsilons, half)
        events = [ExponentialEvent(2 / e, 1) for e in epsilons]
        noise = GaussianEvent(float(np.sqrt(1 / (2 * half))) + 0.7, 1)
        assert noise.half_mu_squared is not None
        left = float(noise.half_mu_squared)
        if left < max(epsilons) ** 2 / 2:
            continue
        total = sum((PLD.cost(event) for event in (*events, noise)), Fraction(0))
        stated = float(PLD.epsilon(total, delta))
        counts = {event: events.count(event) for event in events}
        library = float(pld_epsilon(Composition({**counts, noise: 1}, {}), delta) or 0)
        logs, found = worst(epsilons, (2 * left) ** 0.5)
        exact = float(np.interp(-float(delta), -found, logs))
        assert exact <= library * 1.001 + 1e-3
        assert exact <= stated * 1.001 + 1e-3, (epsilons, half, stated, exact)


def test_a_choice_is_admitted_up_to_its_limits_and_no_further() -> None:
    """Written out: 14/100 of a squared epsilon of at most 1, with at least half of it left for noise."""
    whole = ExponentialEvent(2.0, 1)
    assert whole.epsilon == 1 and PLD.exact_cost(whole) == Fraction(14, 100)
    assert PLD.admits(whole, Fraction(1, 2)) and not PLD.admits(whole, Fraction(499_999, 10**6))
    assert not PLD.admits(ExponentialEvent(1.999, 1), Fraction(9))
    half = ExponentialEvent(4.0, 1)
    assert PLD.admits(half, Fraction(1, 8)) and not PLD.admits(half, Fraction(124_999, 10**6))
    assert PLD.admits(GaussianEvent(5.0, 1), Fraction(0))
    steps = beside_noise.admits_steps
    assert steps(Fraction(14, 100), Fraction(1, 2)) and not steps(Fraction(14, 100), Fraction(49, 100))
    assert not steps(Fraction(141, 1000), Fraction(9))
    assert steps(Fraction(7, 100), Fraction(1, 4)) and not steps(Fraction(7, 100), Fraction(24, 100))
