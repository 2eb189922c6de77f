"""Laplace noise, and all that is epsilon-DP, is as private as Gaussian DP says: alone and composed."""

from fractions import Fraction
from math import exp, nextafter

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.amount import PI, Amount
from dpsynth.accounting.calibration import laplace_within
from dpsynth.accounting.composition import planned
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE
from tests.accounting.laws import both, laplace, least_mu, repeated, run, two_points, understated
from tests.examples import examples
from tests.thinned import some

ROUNDING = 1 + 1e-12
EPSILONS = [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 40.0]


def share(scale, l1):
    """How much of its charge the exact laws of an answer take."""
    p, q = (np.log(law) for law in laplace(scale, l1))
    return least_mu(p, q) / float(2 * GDP.cost(LaplaceEvent(scale, l1))) ** 0.5


def test_laws_sum_to_one_and_those_of_a_move_by_one_are_randomised_response():
    for scale, l1 in [(0.3, 1), (2.0, 1), (10.0, 7)]:
        p, q = laplace(scale, l1)
        assert p.sum() == pytest.approx(1) and p[0] / q[0] == pytest.approx(exp(l1 / scale))
    assert np.array(laplace(2.0, 1)) == pytest.approx(np.array(two_points(1.0, 0.0)))


@pytest.mark.parametrize("l1", [1, 2, 3, 10, 200])
def test_no_answer_tells_more_than_its_charge_and_a_small_one_of_l1_one_nearly_all(l1):
    assert max(share(l1 / epsilon, l1) for epsilon in EPSILONS) <= ROUNDING
    if l1 == 1:
        assert share(1000.0, 1) > 1 - 1e-6 and share(1.0, 1) > 0.98


@given(st.floats(-3, 2.4).map(lambda e: 10**e), st.integers(1, 300))
@examples(200)
def test_no_epsilon_and_sensitivity_tells_more_than_its_charge(epsilon, l1):
    assert share(l1 / epsilon, l1) <= ROUNDING


@given(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=9), st.floats(-2, 1.5).map(lambda e: 10**e), st.data()
)
@examples(200)
def test_no_mechanism_that_is_epsilon_dp_tells_more_than_randomised_response_is_charged(
    weights, epsilon, data
):
    p = np.array(weights) / sum(weights)
    tilt = data.draw(st.lists(st.floats(-1, 1), min_size=len(p), max_size=len(p)))
    q = p * np.exp(np.array(tilt) * epsilon / 2)
    q /= q.sum()
    assert np.abs(np.log(p / q)).max() <= epsilon * ROUNDING
    charged = float(2 * GDP.cost(LaplaceEvent(1 / epsilon, 1))) ** 0.5
    assert least_mu(np.log(p), np.log(q)) <= charged * ROUNDING


def test_randomised_response_of_fifty_digits_tells_a_part_of_pi_less_than_the_charge():
    with mpmath.workdps(50):
        for epsilon in (Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(9)):
            e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 / (1 + mpmath.exp(-e)) - 1)
            half = LaplaceEvent(float(1 / epsilon), 1).half_mu_squared
            assert mu**2 / 2 < mpmath.mpf(half.numerator) / half.denominator
            if epsilon < Fraction(1, 100):
                assert mu**2 / 2 > mpmath.pi * e**2 / 4 * (1 - mpmath.mpf(10) ** -6)


FAULTS = {
    "the cost of a choice": lambda e: PI * e.epsilon**2 / 16,
    "rho": lambda e: e.epsilon**2 / 2,
    "mu of nine tenths": lambda e: Fraction(81, 100) * PI * e.epsilon**2 / 4,
    "pi rounded down": lambda e: Fraction(314, 100) * e.epsilon**2 / 4,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_noise_charged_too_little_would_be_seen_in_its_trade_off(monkeypatch, fault):
    monkeypatch.setattr(LaplaceEvent, "half_mu_squared", property(FAULTS[fault]))
    assert share(100.0, 1) > 1.0001


# Compositions: the exact delta of Laplace noise and other answers together.

COMPOSED = {
    "one": (laplace(2.0, 1), {LaplaceEvent(2.0, 1): 1}),
    "one of many counts": (laplace(5.0, 20), {LaplaceEvent(5.0, 20): 1}),
    "six of two counts": (both(*[laplace(20.0, 2)] * 6), {LaplaceEvent(20.0, 2): 6}),
    "120": (repeated(laplace(25.0, 1), 120), {LaplaceEvent(25.0, 1): 120}),
    "120 large ones": (repeated(laplace(2.0, 1), 120), {LaplaceEvent(2.0, 1): 120}),
    "beside choices and Gaussian noise": (
        both(repeated(laplace(10.0, 1), 60), repeated(two_points(0.1, 0.0), 8), run(20.0, 1, 1)),
        {LaplaceEvent(10.0, 1): 60, ExponentialEvent(20.0, 1): 8, GaussianEvent(20.0, 1): 1},
    ),
}


def either_way(laws, asked):
    total = sum(times * GDP.cost(event) for event, times in asked.items())
    return understated(laws, total) + understated(laws[::-1], total)


@pytest.mark.parametrize(("laws", "asked"), some(list(COMPOSED.values()), 1), ids=list(COMPOSED))
def test_the_exact_delta_of_composed_noise_is_never_above_that_of_its_charge(laws, asked):
    assert either_way(laws, asked) == 0


@pytest.mark.parametrize(
    "name", some(["one", "six of two counts", "120", "beside choices and Gaussian noise"], 2)
)
def test_noise_charged_like_a_choice_would_be_seen_in_compositions(monkeypatch, name):
    monkeypatch.setattr(LaplaceEvent, "half_mu_squared", property(FAULTS["the cost of a choice"]))
    assert either_way(*COMPOSED[name]) > 0


def test_a_release_known_to_be_epsilon_dp_is_charged_no_less_than_its_answers_in_any_split():
    whole = planned(PURE, "laplace", Fraction(1), Amount(Fraction(1))).half_mu_squared
    for parts in (1, 2, 7, 100):
        answers = [laplace_within(Fraction(1, parts), PURE, 1)] * parts
        assert sum(GDP.cost(event) for event in answers) <= whole
    assert whole < PI / 4 * (1 + Fraction(1, 10**9))


@given(st.floats(-12, 6).map(lambda e: Fraction(10**e)), st.integers(1, 20_000))
@examples(200)
def test_a_price_buys_the_least_noise_that_it_pays_for(price, l1):
    event = laplace_within(price, GDP, l1)
    assert GDP.cost(event) <= price < GDP.cost(LaplaceEvent(nextafter(event.scale, 0), l1))
