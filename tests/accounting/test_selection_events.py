"""Partition selection costs what its events say: tails by sums of 60 digits, and exact laws on neighbours."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, exp

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting import events
from dpsynth.accounting.amount import Amount
from dpsynth.accounting.calibration import gaussian_within, selection_within, threshold_within
from dpsynth.accounting.composition import amount_of, compose, planned, spent
from dpsynth.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    SelectionEvent,
    ThresholdEvent,
    tail_above,
)
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from tests.accounting.exact import optimal_epsilon
from tests.accounting.laws import Laws, both, noise
from tests.examples import examples
from tests.thinned import some, thinned

NEAR = Neighbours("add_remove")
SIGMAS = [0.1, 0.3, 0.5, 0.8, 1.0, 1.7, 2.5, 6.0, 19.3, 100.0]
DELTAS = [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**10)]


@cache
def true_tails(sigma: float) -> list[mpmath.mpf]:
    """P[N >= least] of the discrete Gaussian for least = 0, 1, 2, ..., to 60 digits."""
    with mpmath.workdps(80):
        spread = 2 * mpmath.mpf(sigma) ** 2
        tails = [mpmath.mpf(0)]
        for k in range(int(20 * sigma) + 40, -1, -1):
            tails.append(tails[-1] + mpmath.exp(-(mpmath.mpf(k) ** 2) / spread))
        return [tail / (2 * tails[-1] - 1) for tail in reversed(tails)]


def true_tail(sigma: float, least: int) -> mpmath.mpf:
    with mpmath.workdps(80):
        return true_tails(sigma)[least] if least >= 0 else 1 - true_tails(sigma)[1 - least]


def exact(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def understates(bound: object, sigma: float) -> bool:
    """Whether a bound is ever below the tail, as far out as six deviations."""
    assert callable(bound)
    with mpmath.workdps(60):
        points = range(-3, int(6 * sigma) + 6)
        return any(exact(bound(sigma, least)) < true_tail(sigma, least) for least in points)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_bound_on_the_tail_is_never_below_it(sigma: float) -> None:
    assert not understates(tail_above, sigma)


@pytest.mark.parametrize("sigma", [2.5, 6.0, 19.3, 100.0])
def test_the_bound_on_the_tail_is_close_where_it_matters(sigma: float) -> None:
    least = int(5 * sigma)
    assert float(tail_above(sigma, least)) == pytest.approx(float(true_tail(sigma, least)), rel=5 / sigma**2)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_tail_from_a_step_further_out_is_caught(sigma: float) -> None:
    """The planted fault: P[noise >= T] in the place of P[1 + noise >= T]."""
    assert understates(lambda s, least: tail_above(s, least + 1), sigma)


@pytest.mark.parametrize("sigma", [0.8, 1.7, 6.0, 19.3])
def test_the_tail_of_continuous_noise_is_caught(sigma: float) -> None:
    assert understates(lambda s, least: tail_above(s, least) if least < 1 else shifted(s, least), sigma)


def shifted(sigma: float, least: int) -> Fraction:
    with mpmath.workdps(60):
        return Fraction(float(mpmath.erfc(mpmath.mpf(least) / sigma / mpmath.sqrt(2)) / 2))


def test_a_tail_beyond_all_doubles_is_the_least_of_them() -> None:
    for event in (ThresholdEvent(1e-300, 5, 1), ThresholdEvent(2.0, 10**30, 7)):
        assert 0 < event.delta <= Fraction(5e-324)
    assert ThresholdEvent(1e300, 5, 3).delta == 3


@examples(60)
@given(
    st.floats(-6, 2).map(lambda e: Fraction(10**e)),
    st.floats(-15, -0.1).map(lambda e: Fraction(10**e)),
    st.integers(1, 50),
    st.sampled_from([ZCDP, GDP]),
)
def test_the_threshold_is_the_least_whole_one_that_keeps_to_delta(
    price: Fraction, delta: Fraction, partitions: int, measure: Measure
) -> None:
    event = threshold_within(price, delta, measure, partitions)
    assert event.delta <= delta and measure.cost(event) <= price
    assert replace(event, threshold=event.threshold - 1).delta > delta
    assert event.sigma == gaussian_within(price, partitions, measure).sigma
    assert event.rho == GaussianEvent(event.sigma, partitions).rho
    assert event.half_mu_squared == GaussianEvent(event.sigma, partitions).half_mu_squared


@examples(150)
@given(
    st.floats(-9, 3).map(lambda e: Fraction(10**e)),
    st.floats(-15, -0.1).map(lambda e: Fraction(10**e)),
    st.integers(1, 500),
    st.sampled_from([PURE, ZCDP, GDP]),
)
def test_a_selection_keeps_to_its_price_and_delta_and_uses_nearly_all(
    price: Fraction, delta: Fraction, partitions: int, measure: Measure
) -> None:
    event = selection_within(price, delta, measure, partitions)
    assert price * (1 - Fraction(1, 10**12)) <= measure.cost(event) <= price
    assert delta * (1 - Fraction(1, 10**12)) <= event.delta <= delta


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1, 10), Fraction(1)])
def test_a_delta_that_is_none_is_refused(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        selection_within(Fraction(1), delta, PURE, 1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        threshold_within(Fraction(1), delta, ZCDP, 1)
    with pytest.raises(ValueError, match="as small as this"):
        threshold_within(Fraction(1), Fraction(1, 10**330), ZCDP, 1)
    with pytest.raises(ValueError, match="no cost under pure"):
        threshold_within(Fraction(1), Fraction(1, 10**6), PURE, 1)


# Exact laws: what is named, on a table and on its neighbour.


@cache
def told_of(events: tuple[RecordedEvent, ...], measure: Measure, delta: Fraction) -> Amount:
    return amount_of(events, measure, delta)


def understated(events: Sequence[RecordedEvent], laws: Laws, measure: Measure) -> int:
    """How often, over some deltas, what events add up to is less than the exact laws show."""
    p, q = laws
    approximate_delta = float(sum(e.delta for e in events))
    found = 0
    for factor in (1.01, 1.5, 4.0, 100.0):
        delta = min(approximate_delta * factor, 0.5)
        amount = told_of(tuple(events), measure, Fraction(delta))
        growth, allowed = exp(float(amount.epsilon)), float(amount.delta) * (1 + 1e-9) + 1e-15
        found += any(float(np.maximum(0, a - growth * b).sum()) > allowed for a, b in ((p, q), (q, p)))
    return found


@cache
def named(sigma: float, threshold: int, units: int) -> np.ndarray:
    """The probabilities that a value of so many units is not named, and that it is."""
    law = noise(sigma)
    reach = len(law) // 2
    above = float(law[max(0, min(len(law), threshold - units + reach)) :].sum()) if units else 0.0
    return np.array([1 - above, above])


def a_unit_more(event: ThresholdEvent, alone: int, others: int) -> Laws:
    """What is named with a unit and without, who has ``alone`` values to herself and shares the others."""
    pairs = []
    for units in [0] * alone + [others] * (event.partitions - alone):
        with_her, without = (named(event.sigma, event.threshold, n) for n in (units + 1, units))
        pairs.append((with_her, without))
    return both(*pairs)


def least_threshold(sigma: float, partitions: int) -> ThresholdEvent:
    threshold = next(t for t in range(1, 99) if ThresholdEvent(sigma, t, partitions).delta < 0.02)
    return ThresholdEvent(sigma, threshold, partitions)


THRESHOLDS = [least_threshold(sigma, partitions) for sigma in (0.9, 1.5, 3.0) for partitions in (1, 2, 4)]


def caught(event: ThresholdEvent, told: RecordedEvent) -> int:
    """How often one event's laws tell more than what is told of it, over all worst neighbours."""
    measures: list[Measure] = [ZCDP, GDP]
    shared = range(1, 2 * event.threshold, 2)
    return sum(
        understated([told], a_unit_more(event, alone, others), measure)
        for measure, alone, others in product(measures, range(event.partitions + 1), shared)
    )


@pytest.mark.parametrize("event", THRESHOLDS, ids=repr)
def test_a_threshold_tells_no_more_than_its_event_says(event: ThresholdEvent) -> None:
    assert caught(event, event) == 0


@pytest.mark.parametrize("event", [e for e in THRESHOLDS if e.partitions > 1], ids=repr)
def test_partitions_forgotten_would_be_seen(event: ThresholdEvent) -> None:
    assert caught(event, replace(event, partitions=1)) > 0


@pytest.mark.parametrize("event", THRESHOLDS, ids=repr)
def test_a_threshold_one_step_lower_than_recorded_would_be_seen(event: ThresholdEvent) -> None:
    assert caught(replace(event, threshold=event.threshold - 1), event) > 0


@pytest.mark.parametrize("fault", ["no delta", "a tail one step out"])
def test_a_delta_understated_would_be_seen(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    event = THRESHOLDS[4]
    if fault == "no delta":
        told: RecordedEvent = GaussianEvent(event.sigma, event.partitions)
        assert tells_more_than_gaussian(event, told)
        return
    sound = tail_above
    told_of.cache_clear()
    monkeypatch.setattr(events, "tail_above", lambda sigma, least: sound(sigma, least + 1))
    assert caught(event, event) > 0
    told_of.cache_clear()


def tells_more_than_gaussian(event: ThresholdEvent, told: RecordedEvent) -> bool:
    """At a delta of half its lapse, a value that only she has gives her away."""
    p, q = a_unit_more(event, event.partitions, 1)
    delta = float(event.delta) / 2
    epsilon = float(amount_of([told], ZCDP, Fraction(delta)).epsilon)
    return float(np.maximum(0, p - exp(epsilon) * q).sum()) > delta


# Selections: the worst (epsilon0, delta0)-DP answers, by the theorem that says what they add up to.


@pytest.mark.parametrize(
    ("delta", "measure", "crowd"), thinned(DELTAS, [PURE, ZCDP, GDP], [(1, 1), (1, 30), (4, 5), (40, 2)])
)
def test_selections_add_up_to_at_least_the_optimal_composition(
    measure: Measure, delta: Fraction, crowd: tuple[int, int]
) -> None:
    partitions, times = crowd
    event = selection_within(
        Fraction(1, 10) if measure == PURE else Fraction(1, 50), delta / 100, measure, partitions
    )
    amount = amount_of([event] * times, measure, delta)
    truth = optimal_epsilon(
        partitions * times,
        Fraction(event.epsilon0),
        amount.delta * (1 + Fraction(1, 10**9)),
        Fraction(event.delta0),
    )
    assert truth <= amount.epsilon * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("measure", some([ZCDP, GDP], 1))
def test_lapses_or_partitions_forgotten_would_be_below_the_optimal_composition(measure: Measure) -> None:
    delta = Fraction(1, 10**6)
    event = selection_within(Fraction(1, 50), delta / 50, measure, 40)
    truth = optimal_epsilon(40 * 30, Fraction(event.epsilon0), delta, Fraction(event.delta0))
    assert truth <= amount_of([event] * 30, measure, delta).epsilon
    forgotten = [replace(event, delta0=0.0)] * 60
    assert optimal_epsilon(40 * 60, Fraction(event.epsilon0), delta, Fraction(event.delta0)) == float("inf")
    assert amount_of(forgotten, measure, delta).epsilon < 10
    with pytest.raises(ValueError, match="leave nothing"):
        amount_of([event] * 60, measure, delta)
    assert amount_of([replace(event, partitions=1)] * 30, measure, delta).epsilon < truth


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_leaky_coin_is_composed_as_all_its_outcomes_say(times: int) -> None:
    """The pair that (epsilon0, delta0)-DP is post-processing of, multiplied out."""
    epsilon0, delta0 = 0.7, 0.004
    heads = exp(epsilon0) / (1 + exp(epsilon0))
    leaky = (
        np.array([delta0, (1 - delta0) * heads, (1 - delta0) * (1 - heads), 0]),
        np.array([0, (1 - delta0) * (1 - heads), (1 - delta0) * heads, delta0]),
    )
    events = [SelectionEvent(epsilon0, delta0, 1)] * times
    assert understated(events, both(*[leaky] * times), ZCDP) == 0
    assert understated(events, both(*[leaky] * times), GDP) == 0
    assert understated(events, both(*[leaky] * (times + 1)), ZCDP) > 0


# Composition.


def test_the_guarantee_states_the_delta_asked_for_and_the_part_of_it_for_lapses() -> None:
    delta = Fraction(1, 10**6)
    sought = selection_within(Fraction(1, 100), delta / 2, ZCDP, 1)
    plain = [GaussianEvent(20.0, 1), LaplaceEvent(30.0, 1)]
    found = compose([*plain, sought], ZCDP, delta, NEAR)
    assert (
        found.delta == 1e-6 and found.approximate_delta == float(sought.delta) and found.accountant == "zcdp"
    )
    same = LaplaceEvent(1 / sought.epsilon0, 1)
    bare = compose([*plain, same], ZCDP, delta, NEAR)
    assert bare.approximate_delta == 0.0 and bare.epsilon < found.epsilon
    assert compose([*plain, same], ZCDP, delta - sought.delta, NEAR).epsilon == pytest.approx(
        found.epsilon, rel=1e-12
    )


def test_pure_accounting_adds_up_epsilon_and_the_lapses() -> None:
    events = [selection_within(Fraction(1, 2), Fraction(1, 10**7), PURE, 3)] * 2
    for delta in (None, Fraction(2, 10**7)):
        found = compose(events, PURE, delta, NEAR)
        assert found.epsilon == pytest.approx(
            1.0
        ) and found.delta == found.approximate_delta == pytest.approx(2e-7)
        assert found.rho is None and found.accountant == "sequential"
    assert found.delta <= 2e-7
    assert compose([LaplaceEvent(1.0, 1)], PURE, Fraction(1, 10**7), NEAR).delta == 0.0


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP])
def test_what_a_release_spends_is_within_what_it_planned(measure: Measure) -> None:
    delta, epsilon = Fraction(1, 10**6), Fraction(1)
    approximate_delta = delta if measure == PURE else delta / 2
    budget = {PURE: Fraction(1), ZCDP: Fraction(1, 50), GDP: Fraction(1, 50)}[measure]
    parts = [selection_within(budget / 7, approximate_delta / 3, measure, p) for p in (1, 3, 11)]
    if measure != PURE:
        parts[0:1] = [threshold_within(budget / 7, approximate_delta / 3, measure, 2)]  # type: ignore[list-item]
    whole = planned(measure, "laplace", budget, Amount(epsilon, delta), approximate_delta)
    now = spent(parts, amount_of(parts, measure, delta))
    assert now.approximate_delta == sum(e.delta for e in parts) and now.approximate_delta <= approximate_delta
    assert now.within(replace(whole, amount=Amount(Fraction(10), delta)))
    assert now.pure == (measure == PURE)
    wide = Amount(Fraction(10), delta)
    assert not replace(now, amount=wide, approximate_delta=delta).within(
        replace(whole, amount=wide, approximate_delta=delta / 2)
    )


def test_a_lapse_beyond_its_delta_is_no_cost() -> None:
    with pytest.raises(ValueError, match="a part of delta"):
        planned(ZCDP, "laplace", Fraction(1), Amount(Fraction(1), Fraction(1, 9)), Fraction(1, 8))


def test_a_person_of_more_partitions_is_more_likely_to_be_given_away() -> None:
    """All her values together: 1 - (1 - d)^k is below k d, and above half of it here."""
    one, many = (ThresholdEvent(3.0, 12, p).delta for p in (1, 9))
    assert many <= 9 * one * (1 + Fraction(1, 10**15))
    assert sum(comb(9, k) * one**k * (1 - one) ** (9 - k) for k in range(1, 10)) <= many


@pytest.mark.parametrize("sigma", [6.0, 19.3])
def test_a_delta_that_is_exactly_that_of_a_threshold_buys_it(sigma: float) -> None:
    price = ZCDP.cost(ThresholdEvent(sigma, 9, 2))
    found = threshold_within(price, Fraction(1, 10**6), ZCDP, 2)
    assert threshold_within(price, found.delta, ZCDP, 2) == found
    assert (
        threshold_within(price, found.delta * (1 - Fraction(1, 10**9)), ZCDP, 2).threshold
        == found.threshold + 1
    )


def test_near_its_middle_a_tail_is_bounded_by_itself_and_not_by_certainty() -> None:
    """From one standard deviation on the bound is the continuous tail, which is far below 1."""
    assert tail_above(2.0, 2) == 1
    for least in (3, 4, 5):
        true = float(true_tail(2.0, least))
        assert true < float(tail_above(2.0, least)) < 1.1 * true


def test_the_bound_on_a_tail_begins_at_sigma_and_a_half() -> None:
    assert tail_above(1.5, 1) == 1
    assert float(tail_above(1.5, 2)) == pytest.approx(0.158655253931457, abs=1e-12)
