"""Events cost what their formulas say, prices are never overspent, and records keep every bit."""

import json
from fractions import Fraction
from math import nextafter, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.calibration import exponential_within, gaussian_within, laplace_within
from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    ThresholdEvent,
    from_json,
    mechanism_of,
    to_json,
)
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from tests.examples import examples

SETTING = examples(300)
PRICES = st.one_of(
    st.fractions(Fraction(1, 10**9), 100),
    st.floats(-200, 6).map(lambda e: Fraction(10**e)),
    st.integers(1, 10**6).map(lambda n: Fraction(1, n)),
)
SENSITIVITIES = st.integers(1, 20_000)
MEASURES = st.sampled_from([PURE, ZCDP])
KINDS = ["laplace", "laplace run", "gaussian", "gaussian run", "exponential", "exponential run"]
EVENTS = [
    LaplaceEvent(0.1, 3),
    GaussianEvent(1 / 3, 2),
    ExponentialEvent(5e-324, 1),
    LaplaceEvent(1e308, 7),
    SelectionEvent(0.1, 5e-324, 3),
    ThresholdEvent(1 / 3, 10**30, 2),
]


def priced(kind, price, measure, sensitivity):
    """The event that fits a price, and its cost under the measure; that of a run is Gaussian DP."""
    if kind in ("gaussian", "gaussian run"):
        gaussian = ZCDP if kind == "gaussian" else GDP
        event = gaussian_within(price, sensitivity, gaussian)
        return event, gaussian.cost(event)
    if kind.endswith(" run"):
        kind, measure = kind.removesuffix(" run"), GDP
    event = {"laplace": laplace_within, "exponential": exponential_within}[kind](price, measure, sensitivity)
    return event, measure.cost(event)


@pytest.mark.parametrize("kind", KINDS)
@given(price=PRICES, measure=MEASURES, sensitivity=SENSITIVITIES)
@SETTING
def test_a_price_is_never_exceeded_and_missed_by_at_most_its_twelfth_digit(kind, price, measure, sensitivity):
    _, spent = priced(kind, price, measure, sensitivity)
    # Where the noise is nearly all that hides the steps between integers, sigma's last digit costs more.
    steep = 1 + price / sensitivity if kind == "gaussian run" else 1
    assert price * (1 - steep * Fraction(1, 10**12)) <= spent <= price


@pytest.mark.parametrize("kind", KINDS)
@given(whole=PRICES, parts=st.integers(1, 200), measure=MEASURES, sensitivity=st.integers(1, 50))
@examples(100)
def test_parts_of_a_split_sum_to_no_more_than_the_whole(kind, whole, parts, measure, sensitivity):
    _, each = priced(kind, whole / parts, measure, sensitivity)
    steep = 1 + whole / parts / sensitivity if kind == "gaussian run" else 1
    assert whole * (1 - steep * Fraction(1, 10**12)) <= parts * each <= whole


def test_a_split_in_floats_would_be_caught_exceeding_the_whole():
    whole = 1.0
    over = [n for n in range(1, 201) if sum([Fraction(whole / n)] * n) > 1]
    assert over


@pytest.mark.parametrize("price", [Fraction(0), Fraction(-1, 3)])
def test_a_price_of_nothing_is_refused(price):
    for kind in KINDS:
        with pytest.raises(ValueError, match="positive"):
            priced(kind, price, ZCDP, 1)


def test_costs_are_the_formulas():
    assert LaplaceEvent(4.0, 2).epsilon == Fraction(1, 2) and LaplaceEvent(4.0, 2).rho == Fraction(1, 8)
    assert GaussianEvent(4.0, 2).rho == Fraction(1, 16) and GaussianEvent(4.0, 2).epsilon is None
    assert ExponentialEvent(4.0, 2).epsilon == 1 and ExponentialEvent(4.0, 2).rho == Fraction(1, 8)
    assert all(e.delta == 0 for e in EVENTS[:4])
    selection, threshold = SelectionEvent(0.25, 0.125, 3), ThresholdEvent(4.0, 20, 2)
    assert (selection.epsilon, selection.delta) == (Fraction(3, 4), Fraction(3, 8))
    assert selection.rho == Fraction(3, 32) and selection.half_mu_squared == Fraction(355, 113) * 3 / 64
    assert threshold.rho == Fraction(1, 16) and threshold.epsilon is None
    assert threshold.half_mu_squared == GaussianEvent(4.0, 2).half_mu_squared


@given(st.floats(1e-3, 1e6), SENSITIVITIES)
@SETTING
def test_costs_are_exact_rationals_of_the_noise_really_drawn(scale, sensitivity):
    exactly = Fraction(scale)
    assert LaplaceEvent(scale, sensitivity).epsilon == sensitivity / exactly
    assert GaussianEvent(scale, sensitivity).rho == Fraction(sensitivity) / (2 * exactly**2)
    assert ExponentialEvent(scale, sensitivity).epsilon == 2 * sensitivity / exactly
    assert GaussianEvent(nextafter(scale, 0), 1).rho > GaussianEvent(scale, 1).rho


def test_a_person_of_k_rows_needs_k_times_the_noise_of_a_row():
    row, person = (gaussian_within(Fraction(1, 10), squared, ZCDP) for squared in (1, 25))
    assert person.sigma == pytest.approx(5 * row.sigma)
    assert laplace_within(Fraction(1), PURE, 5).scale == 5.0
    assert gaussian_within(Fraction(1, 10), 2, ZCDP).sigma == pytest.approx(sqrt(2) * row.sigma)


@given(PRICES, SENSITIVITIES)
@SETTING
def test_gaussian_runs_pay_a_little_noise_for_being_discrete_and_never_go_below_a_floor(price, sensitivity):
    plain, run = (gaussian_within(price, sensitivity, measure).sigma for measure in (ZCDP, GDP))
    assert run > max(plain, 0.77)
    assert run**2 == pytest.approx((plain**2 + 0.6) / 0.999)


def test_gaussian_dp_has_a_cost_for_all_but_little_noise_and_pure_for_all_but_gaussian_noise():
    gaussian, choice, laplace = GaussianEvent(4.0, 2), ExponentialEvent(4.0, 2), LaplaceEvent(4.0, 2)
    assert gaussian.half_mu_squared == Fraction(2) / (2 * (Fraction("0.999") * 16 - Fraction("0.6")))
    assert choice.half_mu_squared == laplace.half_mu_squared == Fraction(355, 113) / 16
    for event in (gaussian, choice, laplace):
        assert event.half_mu_squared <= GDP.cost(event) <= event.half_mu_squared * (1 + Fraction(1, 10**15))
    with pytest.raises(ValueError, match=r"a sigma of at least 0.78 only"):
        GDP.cost(GaussianEvent(0.77, 1))
    with pytest.raises(ValueError, match="no cost under pure"):
        gaussian_within(Fraction(1), 1, PURE)
    with pytest.raises(ValueError, match="no cost under pure"):
        PURE.cost(gaussian)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_survives_json_bit_by_bit(event):
    record = json.loads(json.dumps(to_json(event)))
    assert from_json(record) == event and type(from_json(record)) is type(event)


@given(
    st.sampled_from([LaplaceEvent, GaussianEvent, ExponentialEvent]), st.floats(5e-324, 1e308), SENSITIVITIES
)
@SETTING
def test_any_event_survives_json(kind, scale, sensitivity):
    event = kind(scale, sensitivity)
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_mechanisms_are_named_and_an_unknown_one_is_refused():
    names = {mechanism_of(e) for e in EVENTS}
    assert names == {
        "discrete Laplace",
        "discrete Gaussian",
        "exponential mechanism",
        "partition selection",
        "discrete Gaussian threshold",
    }
    with pytest.raises(KeyError):
        from_json({"mechanism": "discrete Lagrange", "scale": 1.0, "l1": 1})
    with pytest.raises(TypeError):
        from_json({"mechanism": "discrete Laplace", "scale": 1.0})
