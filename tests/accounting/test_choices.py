"""A choice is as private as Gaussian DP says: its exact trade-off function, alone and composed."""

from fractions import Fraction
from math import nextafter, pi, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting import calibration, events, measures
from dpsynth.accounting.calibration import exponential_within, gaussian_within
from dpsynth.accounting.composition import compose
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, gdp_epsilon
from dpsynth.accounting.neighbours import Neighbours
from tests.accounting.laws import both, branching, least_mu, run, two_points, understated
from tests.examples import examples
from tests.thinned import some

ROUNDING = 1 + 1e-12


def log_law(scores, scale):
    weights = np.asarray(scores) / scale
    weights = weights - weights.max()
    return weights - np.log(np.exp(weights).sum())


def charged(event):
    """The mu that an event is charged."""
    return sqrt(2 * GDP.cost(event))


MECHANISMS = st.integers(2, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-60, 60), min_size=n, max_size=n),
        st.lists(st.sampled_from([-1, 1]) | st.floats(-1, 1), min_size=n, max_size=n),
        st.integers(1, 9),
        st.floats(-1, 3).map(lambda e: 10**e),
    )
)


@given(MECHANISMS)
@examples(500)
def test_no_mechanism_on_neighbours_that_move_scores_either_way_tells_more_than_its_charge(mechanism):
    scores, moves, sensitivity, scale = mechanism
    moved = np.array(scores) + np.round(np.array(moves) * sensitivity)
    p, q = log_law(scores, scale), log_law(moved, scale)
    allowed = charged(ExponentialEvent(scale, sensitivity)) * ROUNDING
    assert least_mu(p, q) <= allowed and least_mu(q, p) <= allowed


EPSILONS = [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 40.0]
MIDDLES = np.r_[0, np.geomspace(1e-3, 200, 60)]


def shares(epsilon):
    """How much of its charge each pair of two-point laws takes, over all middles either way."""
    allowed = charged(ExponentialEvent(2 / epsilon, 1))

    def logs(logit):
        return np.array([-np.logaddexp(0, -logit), -np.logaddexp(0, logit)])

    ends = [(logs(m + epsilon / 2), logs(m - epsilon / 2)) for m in (*MIDDLES, *-MIDDLES)]
    return [least_mu(*pair) / allowed for p, q in ends for pair in ((p, q), (q, p))]


def test_no_pair_at_the_ends_of_a_bounded_range_tells_more_and_the_even_one_nearly_all():
    for epsilon in EPSILONS:
        assert max(shares(epsilon)) <= ROUNDING
    assert shares(1e-3)[0] > 1 - 1e-6 and shares(0.1)[0] > 0.999 and shares(1.0)[0] > 0.99


def test_the_even_pair_of_fifty_digits_tells_a_part_of_pi_less_than_the_charge():
    """Phi(mu/2) is the larger probability, so mu is known to any number of digits."""
    with mpmath.workdps(50):
        for epsilon in (Fraction(1, 1000), Fraction(1, 10), Fraction(1)):
            e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 / (1 + mpmath.exp(-e / 2)) - 1)
            half = ExponentialEvent(float(2 / epsilon), 1).half_mu_squared
            assert mu**2 / 2 < mpmath.mpf(half.numerator) / half.denominator
            if epsilon < Fraction(1, 100):
                # Not even pi may be rounded down.
                assert mu**2 / 2 > mpmath.pi * e**2 / 16 * (1 - mpmath.mpf(10) ** -6)
    assert 0 < events.PI - Fraction(pi) < Fraction(3, 10**7)


FAULTS = {
    "mu of nine tenths": lambda e: Fraction(81, 100) * Fraction(355, 113) * e.epsilon**2 / 16,
    "the divisor of rho": lambda e: e.epsilon**2 / 8,
    "sensitivity halved": lambda e: Fraction(355, 113) * (e.epsilon / 2) ** 2 / 16,
    "pi rounded down": lambda e: Fraction(314, 100) * e.epsilon**2 / 16,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_choice_charged_too_little_would_be_seen_in_its_trade_off(monkeypatch, fault):
    monkeypatch.setattr(ExponentialEvent, "half_mu_squared", property(FAULTS[fault]))
    assert max(shares(0.01)) > 1.0001


# Compositions: the exact delta of choices and noise together.

CHOICES = [(0.5, 0.0), (1.0, 1.5), (3.0, 0.0), (6.0, -3.0)]


def choosing(*pairs):
    """Laws and events of choices in turn."""
    return both(*(two_points(*pair) for pair in pairs)), [ExponentialEvent(2 / e, 1) for e, _ in pairs]


def with_noise(pairs, sigma, squared, times=1):
    laws, asked = choosing(*pairs)
    noisy = run(sigma, round(squared**0.5), times)
    return both(laws, noisy), [*asked, *[GaussianEvent(sigma, squared)] * times]


COMPOSED = {
    "one": choosing((1.0, 0.0)),
    "two": choosing((0.2, 0.0), (0.2, 0.0)),
    "of different ranges": choosing(*CHOICES),
    "a dozen": choosing(*[(0.3, 0.1)] * 12),
    "a choice and noise": with_noise([(0.5, 0.0)], 3.0, 1),
    "a wide choice and little noise": with_noise([(4.0, 1.0)], 0.9, 1),
    "a choice and a run": with_noise([(0.2, 0.0)], 20.0, 4, 3),
    "choices and noise": with_noise(CHOICES, 5.0, 9),
}


def either_way(laws, total):
    return understated(laws, total) + understated(laws[::-1], total)


@pytest.mark.parametrize(("laws", "asked"), some(list(COMPOSED.values()), 2), ids=list(COMPOSED))
def test_the_exact_delta_of_choices_and_noise_is_never_above_what_they_are_charged_together(laws, asked):
    assert either_way(laws, sum(GDP.cost(e) for e in asked)) == 0


@pytest.mark.parametrize("name", some(["one", "two", "a choice and noise", "a choice and a run"], 1))
def test_choices_charged_a_quarter_would_be_seen_in_compositions(monkeypatch, name):
    laws, asked = COMPOSED[name]
    monkeypatch.setattr(ExponentialEvent, "half_mu_squared", property(FAULTS["sensitivity halved"]))
    assert either_way(laws, sum(GDP.cost(e) for e in asked)) > 0


@pytest.mark.parametrize("fault", some(["mu of nine tenths", "the divisor of rho", "sensitivity halved"], 1))
def test_a_single_choice_charged_too_little_would_be_seen_in_its_delta(monkeypatch, fault):
    laws, asked = COMPOSED["one"]
    monkeypatch.setattr(ExponentialEvent, "half_mu_squared", property(FAULTS[fault]))
    assert either_way(laws, GDP.cost(asked[0])) > 0


def adaptive(total):
    """Noise; by its sign a choice or two, or more noise; after the choices noise again, within a total."""
    third = total / 3
    sigma = gaussian_within(third, 1, GDP).sigma
    one, half = (exponential_within(third / n, GDP, 1) for n in (1, 2))
    alone, twice = (two_points(float(e.epsilon), 0.0) for e in (one, half))
    noisy = run(sigma, 1, 1)
    chosen = branching(alone, [noisy, both(twice, twice)])
    return branching(noisy, [chosen, both(twice, twice, noisy), run(sigma, 1, 2)])


def test_choices_and_noise_chosen_from_earlier_answers_within_a_fixed_total_stay_within_it():
    total = Fraction(3, 10)
    assert either_way(adaptive(total), total) == 0
    assert either_way(adaptive(total), total * Fraction(3, 4)) > 0


# Prices.

PRICES = st.floats(-12, 6).map(lambda e: Fraction(10**e)) | st.fractions(Fraction(1, 10**6), 100)


@given(PRICES, st.integers(1, 20_000))
@examples(300)
def test_a_price_buys_the_sharpest_choice_that_it_pays_for(price, sensitivity):
    event = exponential_within(price, GDP, sensitivity)
    assert GDP.cost(event) <= price
    assert GDP.cost(ExponentialEvent(nextafter(event.scale, 0), sensitivity)) > price


@given(PRICES, st.integers(1, 20_000), st.sampled_from([PURE, ZCDP, GDP]))
@examples(100)
def test_a_scale_is_found_within_a_few_steps_under_every_measure(price, sensitivity, measure):
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "nextafter", lambda *at: steps.append(at) or nextafter(*at))
        exponential_within(price, measure, sensitivity)
    assert len(steps) < 40


def test_a_guess_by_another_pi_than_the_charge_would_be_seen_in_its_steps(monkeypatch):
    steps = []

    def counted(*at):
        steps.append(at)
        if len(steps) > 40:
            raise TimeoutError
        return nextafter(*at)

    monkeypatch.setattr(calibration, "nextafter", counted)
    for room in (events, measures):
        monkeypatch.setattr(room, "PI", Fraction(pi))
    sound = ExponentialEvent.half_mu_squared.fget
    monkeypatch.setattr(
        ExponentialEvent, "half_mu_squared", property(lambda e: sound(e) * Fraction(355, 113) / Fraction(pi))
    )
    with pytest.raises(TimeoutError):
        exponential_within(Fraction(1), GDP, 1)


def test_a_guarantee_with_choices_states_mu_and_half_its_square_for_rho():
    asked = [ExponentialEvent(20.0, 1), GaussianEvent(10.0, 1)]
    delta = Fraction(1, 10**9)
    found = compose(asked, GDP, delta, Neighbours("add_remove"))
    total = sum(GDP.cost(e) for e in asked)
    assert found.accountant == "gdp" and Fraction(found.mu) ** 2 >= 2 * total
    assert found.mu == pytest.approx(float(2 * total) ** 0.5)
    assert sum(e.rho for e in asked) < total <= found.rho == pytest.approx(float(total))
    assert Fraction(found.epsilon) >= gdp_epsilon(total, delta)
