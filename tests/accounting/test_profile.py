"""The privacy profile of a guarantee, and what it leaves to whoever wants to recognise a unit."""

from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.accounting.composition import (
    FALSE_ALARMS,
    PROFILE,
    of_other_deltas,
    of_recognition,
    privacy_profile,
    recognised_at_most,
)
from dpsynth.accounting.events import Guarantee

PURE = Guarantee(1.0, 0.0, None, "one row", "add_remove", "sequential")
MU = Guarantee(1.0, 1e-6, 0.02, "one row", "add_remove", "gdp", mu=0.2)
RHO = Guarantee(1.0, 1e-9, 0.02, "one row", "add_remove", "zcdp")


def of_normal(mu: float, epsilon: float) -> float:
    """The exact delta of two normal laws at a distance."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("guarantee", [MU, RHO])
def test_each_point_of_a_profile_holds_for_gaussian_noise_and_the_points_of_mu_are_tight(guarantee):
    profile = privacy_profile(guarantee)
    assert [point.delta for point in profile] == sorted({*PROFILE, Fraction(repr(guarantee.delta))})[::-1]
    # Its own epsilon is made up.
    epsilons = [float(p.epsilon) for p in profile if p.delta != Fraction(repr(guarantee.delta))]
    assert epsilons == sorted(epsilons)
    for point in profile:
        if point.delta == Fraction(repr(guarantee.delta)):
            continue
        exact = of_normal(0.2, float(point.epsilon))
        assert exact <= float(point.delta)
        if guarantee is MU and point.epsilon:
            assert exact > 0.999 * float(point.delta)


def test_what_is_set_aside_comes_off_every_delta():
    aside = replace(RHO, approximate_delta=1e-7)
    found = {point.delta: point.epsilon for point in privacy_profile(aside)}
    plain = {point.delta: point.epsilon for point in privacy_profile(RHO)}
    assert min(found) == Fraction(repr(RHO.delta)) and Fraction(1, 10**8) not in found
    assert all(found[delta] > plain[delta] for delta in found if delta >= Fraction(1, 10**6))


def test_a_pure_guarantee_or_one_of_a_sample_has_one_point():
    sampled = replace(MU, rho=None, mu=None, sample_rate=0.1)
    assert [len(privacy_profile(one)) for one in (PURE, sampled)] == [1, 1]
    assert of_other_deltas(PURE) == [{"epsilon": 1.0, "delta": 0.0}]


@pytest.mark.parametrize("x", [0.0, 0.001, 0.1, 0.3, 0.9, 1.0])
def test_randomised_response_attains_what_pure_epsilon_leaves(x):
    # It says the truth with probability e/(1 + e); the best attacker also guesses on one of the outcomes.
    truth = exp(1) / (1 + exp(1))
    best = truth / (1 - truth) * x if x <= 1 - truth else truth + (1 - truth) * (x - 1 + truth) / truth
    assert recognised_at_most(PURE, x) == pytest.approx(best)


@pytest.mark.parametrize("guarantee", [MU, RHO])
def test_no_attacker_on_gaussian_noise_does_better_and_the_bound_is_near(guarantee):
    for x in FALSE_ALARMS:
        best = float(norm.cdf(norm.ppf(x) + 0.2))
        told = recognised_at_most(replace(guarantee, epsilon=5.0), x)
        assert best <= told < (1.6 if guarantee is MU else 2.0) * best


def test_more_false_alarms_never_mean_fewer_hits():
    hits = [recognised_at_most(RHO, x) for x in np.linspace(0, 1, 50)]
    assert hits == sorted(hits) and hits[-1] == 1.0
    assert [one["false_alarms"] for one in of_recognition(RHO)] == list(FALSE_ALARMS)
