"""Reported guarantees are golden, never below the truth, never above what was asked, and tight."""

from fractions import Fraction
from math import inf, log, nextafter, sqrt

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting import measures as gaussian_dp
from dpsynth.accounting import measures as zero_concentrated
from dpsynth.accounting.amount import float_down, float_up
from dpsynth.accounting.calibration import exponential_within, gaussian_within
from dpsynth.accounting.composition import compose
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, gdp_budget, gdp_epsilon, zcdp_budget, zcdp_epsilon
from dpsynth.accounting.neighbours import Neighbours
from tests.examples import examples

NEAR = Neighbours("add_remove", "id", 4)
RHO, DELTA = Fraction(5, 100), Fraction(1, 10**6)
EXACT_GAUSSIAN, TEXTBOOK = 1.3676, 1.7123

RHOS = st.floats(1e-9, 1e4).map(Fraction)
DELTAS = st.floats(-280, -0.3).map(lambda e: Fraction(10**e))
EPSILONS = st.floats(1e-3, 1e3).map(Fraction)
SLOW = examples(60)


def true_epsilon(rho, delta):
    """The infimum over alpha, at 50 digits: a root of the derivative by Newton's method in log(alpha - 1)."""
    with mpmath.workdps(50):
        r, d = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, delta))

        def at(t):
            above = mpmath.exp(t)
            alpha = above + 1
            return alpha * r + (alpha * (t - mpmath.log(alpha)) - t - mpmath.log(d)) / above

        def slope(t):
            above = mpmath.exp(t)
            # From (alpha ln(above/alpha) - ln above - ln delta)/above, by the quotient rule.
            return above * r + mpmath.log(above + 1) / above + mpmath.log(d) / above

        low, high = mpmath.mpf(-60), mpmath.mpf(60)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return max(mpmath.mpf(0), at(mpmath.findroot(slope, (low + high) / 2)))


def exact(value):
    return mpmath.mpf(value.numerator) / value.denominator


def test_the_reference_values_lie_between_the_exact_gaussian_and_the_textbook():
    epsilon = float(zcdp_epsilon(RHO, DELTA))
    assert f"{epsilon:.4f}" == "1.4716"
    assert EXACT_GAUSSIAN < epsilon < TEXTBOOK


@given(RHOS, DELTAS)
@SLOW
def test_the_reported_epsilon_is_never_below_the_true_one_and_tight(rho, delta):
    found, truth = zcdp_epsilon(rho, delta), true_epsilon(rho, delta)
    with mpmath.workdps(50):
        assert exact(found) >= truth - mpmath.mpf(10) ** -44 * (1 + truth)
        assert exact(found) <= truth * (1 + mpmath.mpf(10) ** -12) + mpmath.mpf(10) ** -12
        assert exact(Fraction(float_up(found))) >= truth


def test_the_check_against_fifty_digits_sees_an_epsilon_low_by_its_fourteenth_digit():
    found = zcdp_epsilon(RHO, DELTA)
    with mpmath.workdps(50):
        assert exact(found) * (1 - mpmath.mpf(10) ** -14) < true_epsilon(RHO, DELTA) <= exact(found)


@given(RHOS, DELTAS)
@SLOW
def test_the_reported_epsilon_is_never_above_the_textbooks(rho, delta):
    textbook = float(rho) + 2 * sqrt(float(rho) * -log(delta))
    assert float(zcdp_epsilon(rho, delta)) <= textbook * (1 + 1e-12)


@given(EPSILONS, DELTAS)
@SLOW
def test_a_budget_never_implies_more_than_the_epsilon_asked_for_and_nearly_all_of_it(epsilon, delta):
    budget = zcdp_budget(epsilon, delta)
    assert budget > 0 and Fraction(float(budget)) == budget
    implied = zcdp_epsilon(budget, delta)
    assert epsilon * (1 - Fraction(1, 10**9)) <= implied <= epsilon


def spent_in_parts(measure, epsilon, delta, parts):
    """Epsilon of a budget spent on so many answers and then a choice, which takes what is left of it."""
    budget = measure.budget(epsilon, delta)
    spent = [gaussian_within(budget / parts, 1, measure)] * (parts - 1)
    left = budget - sum((measure.cost(e) for e in spent), Fraction(0))
    return compose([*spent, exponential_within(left, measure, 1)], measure, delta, NEAR).epsilon


@given(EPSILONS, DELTAS, st.integers(1, 9), st.sampled_from([ZCDP, GDP]))
@examples(300)
def test_a_release_that_spends_its_whole_budget_reports_no_more_than_was_asked(
    epsilon, delta, parts, measure
):
    found = spent_in_parts(measure, epsilon, delta, parts)
    assert float(epsilon) * (1 - 1e-9) <= found <= float_up(epsilon)


NARROW = [
    (Fraction(1, 2), Fraction(3.5292630014000157e-06), 3),
    (Fraction(0.1), Fraction(0.0004817223999263796), 2),
    (Fraction(2), Fraction(2.5043129462861466e-11), 2),
]


def test_the_best_alpha_to_the_digits_of_a_float_would_report_more_than_was_asked(monkeypatch):
    """A release would spend all, and be refused in the end for a sixteenth digit."""

    def over():
        return [e for e, delta, parts in NARROW if spent_in_parts(ZCDP, e, delta, parts) > float_up(e)]

    assert over() == []
    monkeypatch.setattr(zero_concentrated, "_polished", lambda alpha, rho, delta: alpha)
    assert over() != []


@given(RHOS, DELTAS)
@SLOW
def test_no_alpha_near_the_one_found_implies_less_in_forty_digits(rho, delta):
    found, truth = zcdp_epsilon(rho, delta), true_epsilon(rho, delta)
    with mpmath.workdps(50):
        assert abs(exact(found) - truth) <= mpmath.mpf(10) ** -40 * (1 + truth)


def test_nothing_asked_costs_nothing():
    assert zcdp_epsilon(Fraction(0), DELTA) == 0
    for measure in (PURE, ZCDP, GDP):
        nothing = compose([], measure, DELTA, NEAR)
        assert nothing.epsilon == 0.0 and nothing.rho in (None, 0.0) and nothing.mu in (None, 0.0)


@given(st.floats(1e-6, 1e-2).map(Fraction), st.floats(0.9, 0.999999).map(Fraction))
@SLOW
def test_a_delta_near_one_gives_an_epsilon_of_at_least_zero(rho, delta):
    assert zcdp_epsilon(rho, delta) >= 0


@given(RHOS, RHOS, DELTAS)
@SLOW
def test_epsilon_grows_with_rho_and_falls_with_delta(rho, more, delta):
    assert zcdp_epsilon(rho + more, delta) >= zcdp_epsilon(rho, delta)
    assert zcdp_epsilon(rho, delta / 2) >= zcdp_epsilon(rho, delta)


EVENTS = st.one_of(
    st.builds(LaplaceEvent, st.floats(0.05, 1e6), st.integers(1, 20)),
    st.builds(GaussianEvent, st.floats(0.05, 1e6), st.integers(1, 200)),
    st.builds(ExponentialEvent, st.floats(0.05, 1e6), st.integers(1, 20)),
)


def measures(events):
    """Those under which all events have a cost."""
    pure, gdp = ([getattr(e, kind) is not None for e in events] for kind in ("epsilon", "half_mu_squared"))
    return [ZCDP] + [PURE] * all(pure) + [GDP] * all(gdp)


@given(EVENTS, st.integers(0, 60))
@SLOW
def test_k_equal_events_cost_k_times_one(event, k):
    for measure in measures([event]):
        total = k * measure.cost(event)
        found = compose([event] * k, measure, DELTA, NEAR)
        if measure == PURE:
            assert found.epsilon == float_up(total) and found.rho is None
        else:
            assert found.epsilon == float_up(measure.epsilon(total, DELTA))
            assert found.rho == float_up(total) >= k * event.rho


@given(st.lists(EVENTS, max_size=12), st.randoms(use_true_random=False))
@SLOW
def test_the_order_of_events_changes_nothing_and_another_event_never_costs_less(events, rng):
    shuffled = list(events)
    rng.shuffle(shuffled)
    for measure in measures(events):
        found = compose(events, measure, DELTA, NEAR)
        assert compose(iter(shuffled), measure, DELTA, NEAR) == found
        if events:
            assert compose(events[1:], measure, DELTA, NEAR).epsilon <= found.epsilon


def test_a_guarantee_states_its_unit_relation_and_accountant():
    events = [LaplaceEvent(2.0, 4)]
    pure, zcdp = (compose(events, m, DELTA, NEAR) for m in (PURE, ZCDP))
    for found in (pure, zcdp):
        assert found.unit == "one person: all rows with the same id, at most 4"
        assert found.neighbours == "add_remove"
    assert (pure.accountant, pure.delta, pure.epsilon) == ("sequential", 0.0, 2.0)
    assert (zcdp.accountant, zcdp.rho, zcdp.mu) == ("zcdp", 2.0, None)
    assert Fraction(repr(zcdp.delta)) == DELTA


def test_gaussian_noise_is_refused_under_pure_accounting_and_zcdp_without_delta():
    with pytest.raises(ValueError, match="no cost under pure"):
        compose([GaussianEvent(1.0, 1)], PURE, None, NEAR)
    for measure in (ZCDP, GDP):
        with pytest.raises(ValueError, match="needs a delta"):
            compose([], measure, None, NEAR)
        with pytest.raises(ValueError, match="needs a delta"):
            measure.budget(Fraction(1), None)


def test_little_noise_is_refused_under_gaussian_dp_and_choices_and_laplace_noise_are_not():
    with pytest.raises(ValueError, match="Gaussian noise"):
        compose([GaussianEvent(9.0, 1), GaussianEvent(0.5, 1)], GDP, DELTA, NEAR)
    events = [GaussianEvent(9.0, 1), ExponentialEvent(9.0, 1), LaplaceEvent(9.0, 1)]
    epsilons = [compose(events[:n], GDP, DELTA, NEAR).epsilon for n in (1, 2, 3)]
    assert 0 < epsilons[0] < epsilons[1] < epsilons[2]


def test_each_measure_has_its_budget_and_its_epsilon():
    assert PURE.budget(Fraction(1, 3), None) == PURE.epsilon(Fraction(1, 3), None) == Fraction(1, 3)
    assert ZCDP.budget(Fraction(1), DELTA) == zcdp_budget(Fraction(1), DELTA)
    assert GDP.budget(Fraction(1), DELTA) == gdp_budget(Fraction(1), DELTA)
    assert ZCDP.epsilon(RHO, DELTA) == zcdp_epsilon(RHO, DELTA)
    assert GDP.epsilon(RHO, DELTA) == gdp_epsilon(RHO, DELTA) < zcdp_epsilon(RHO, DELTA)


@given(st.fractions(Fraction(1, 10**9), 10**9))
@examples(300)
def test_rounding_goes_the_stated_way_by_at_most_one_step(value):
    up, down = float_up(value), float_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up == down == value or nextafter(down, inf) == up


@pytest.mark.parametrize("value", [0.5, 1.0, 0.1, 3e-9])
def test_a_float_is_rounded_to_itself(value):
    assert float_up(Fraction(value)) == value == float_down(Fraction(value))


@pytest.mark.parametrize(("sigma", "count"), [(10.0, 1), (20.0, 10), (50.0, 100), (3.0, 2)])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
def test_on_gaussian_runs_the_guarantee_lies_between_pld_and_rdp(sigma, count, delta):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    ours = compose([GaussianEvent(sigma, 1)] * count, ZCDP, Fraction(delta), NEAR).epsilon
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(sigma), count)
    exactly = PLDAccountant().compose(event).get_epsilon(delta)
    renyi = RdpAccountant().compose(event).get_epsilon(delta)
    assert exactly < ours
    assert ours <= renyi * (1 + 1e-9) and ours == pytest.approx(renyi, rel=0.02)


def test_no_total_but_zero_is_free_under_zcdp():
    found = [zcdp_epsilon(Fraction(total), Fraction(1, 10**6)) for total in (0, 1, 2, 3)]
    assert found[0] == 0 and 6 < found[1] < found[2] < found[3]


@pytest.mark.parametrize("module", [zero_concentrated, gaussian_dp])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(30)])
def test_a_budget_that_comes_out_a_little_too_large_is_taken_down(monkeypatch, module, epsilon):
    """The search ends within a float or two of the right budget; what it finds is checked, and lowered."""
    short = "zcdp" if module is zero_concentrated else "gdp"
    search = getattr(module, f"{short}_budget")
    search = getattr(search, "__wrapped__", search)
    found = search(epsilon, Fraction(1, 10**6))
    most = Fraction(nextafter(nextafter(float(found), 0.0), 0.0))
    monkeypatch.setattr(module, f"{short}_epsilon", lambda budget, _: epsilon + (budget > most))
    assert search(epsilon, Fraction(1, 10**6)) == most
