"""Gaussian DP's epsilons are never below the exact trade-off's, its budgets never above, both tight."""

from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting import measures as gaussian_dp
from dpsynth.accounting import measures as normal_tail
from dpsynth.accounting.amount import float_up
from dpsynth.accounting.measures import (
    TAIL_ERROR,
    density,
    gdp_budget,
    gdp_epsilon,
    mills_ratio,
    zcdp_budget,
    zcdp_epsilon,
)
from tests.examples import examples

HALF, DELTA = Fraction(5, 100), Fraction(1, 10**6)
TOTALS = st.floats(-9, 4).map(lambda e: Fraction(10**e))
DELTAS = st.floats(-280, -0.1).map(lambda e: Fraction(10**e))
EPSILONS = st.floats(-6, 4).map(lambda e: Fraction(10**e))
SLOW = examples(60)
DIGITS = 200


def exact(value):
    return mpmath.mpf(value.numerator) / value.denominator


def true_delta(epsilon, half_mu_squared):
    """The exact trade-off at 200 digits, with error functions of another library."""
    e, mu = exact(epsilon), mpmath.sqrt(2 * exact(half_mu_squared))
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def growth(half_mu_squared):
    """The factor on delta that discrete noise costs."""
    return mpmath.exp(exact(half_mu_squared) * 2 * 3 / 10**4)


@pytest.mark.parametrize("x", ["0", "1e-9", "0.3", "1", "4", "9.999999", "10", "10.01", "25", "70"])
def test_tails_of_the_normal_distribution_have_eighty_digits(x):
    with mpmath.workdps(DIGITS):
        at = mpmath.mpf(x)
        tail = mpmath.erfc(at / mpmath.sqrt(2)) / 2
        for found, truth in (
            (density(Decimal(x)), mpmath.npdf(at)),
            (mills_ratio(Decimal(x)), tail / mpmath.npdf(at)),
        ):
            assert abs(mpmath.mpf(str(found)) / truth - 1) < mpmath.mpf(str(TAIL_ERROR)) / 100


def test_a_fraction_cut_short_would_be_seen_in_the_tail(monkeypatch):
    monkeypatch.setattr(normal_tail, "_DEPTH", 120)
    with mpmath.workdps(DIGITS):
        truth = mpmath.erfc(10 / mpmath.sqrt(2)) / 2 / mpmath.npdf(10)
        assert abs(mpmath.mpf(str(mills_ratio(Decimal(10)))) / truth - 1) > mpmath.mpf(str(TAIL_ERROR)) / 100


def test_there_is_no_ratio_left_of_the_middle():
    with pytest.raises(ValueError, match="at least 0"):
        mills_ratio(Decimal("-0.1"))


def test_the_reference_value_is_the_exact_gaussians():
    assert f"{float(gdp_epsilon(HALF, DELTA)):.4f}" == "1.3676"


@given(TOTALS, DELTAS)
@SLOW
def test_the_epsilon_is_never_below_the_exact_one_with_its_factor_and_tight(total, delta):
    found = gdp_epsilon(total, delta)
    with mpmath.workdps(DIGITS):
        assert true_delta(found, total) * growth(total) <= exact(delta)
        assert true_delta(Fraction(float_up(found)), total) < exact(delta)
        if found > 0:
            less = found * (1 - Fraction(1, 10**15)) - Fraction(1, 10**18)
            assert true_delta(less, total) * growth(total) > exact(delta)


@given(EPSILONS, DELTAS)
@SLOW
def test_the_budget_is_never_above_the_exact_one_with_its_factor_and_tight(epsilon, delta):
    found = gdp_budget(epsilon, delta)
    assert found > 0 and Fraction(float(found)) == found
    with mpmath.workdps(DIGITS):
        assert true_delta(epsilon, found) * growth(found) <= exact(delta)
        more = found * (1 + Fraction(1, 10**14))
        assert true_delta(epsilon, more) * growth(more) > exact(delta)


@given(EPSILONS, DELTAS)
@SLOW
def test_a_budget_spent_in_full_comes_to_no_more_than_the_epsilon_asked_for(epsilon, delta):
    assert gdp_epsilon(gdp_budget(epsilon, delta), delta) <= epsilon


@pytest.mark.parametrize("mu", ["1e-3", "0.7", "6"])
@pytest.mark.parametrize("x", [None, "0", "0.4", "9"])
def test_a_difference_of_tails_is_not_below_its_true_value(mu, x):
    at = -Decimal(mu) / 2 if x is None else Decimal(x)
    with mpmath.workdps(DIGITS), localcontext(normal_tail.EXACT):
        a, m = mpmath.mpf(str(at)), mpmath.mpf(mu)
        tail, beyond = mpmath.ncdf(-a), mpmath.exp(m * a + m**2 / 2) * mpmath.ncdf(-a - m)
        above = mpmath.mpf(str(gaussian_dp._delta(at, Decimal(mu)))) - (tail - beyond)
        assert 0 < above < 10 * mpmath.mpf(str(TAIL_ERROR)) * tail


def test_an_epsilon_low_by_its_fourteenth_digit_would_be_seen():
    found = gdp_epsilon(HALF, DELTA)
    with mpmath.workdps(DIGITS):
        low = found * (1 - Fraction(1, 10**14))
        assert true_delta(low, HALF) * growth(HALF) > exact(DELTA)


def test_a_factor_on_delta_left_out_would_be_seen(monkeypatch):
    monkeypatch.setattr(gaussian_dp, "DELTA_GROWTH", Decimal(0))
    with mpmath.workdps(DIGITS):
        # Past the cache, which may know the right epsilon, and would keep the wrong one.
        low = gdp_epsilon.__wrapped__(HALF, DELTA)
        assert true_delta(low, HALF) * growth(HALF) > exact(DELTA)


@given(TOTALS, TOTALS, DELTAS)
@SLOW
def test_epsilon_grows_with_the_total_and_falls_with_delta(total, more, delta):
    assert gdp_epsilon(total + more, delta) >= gdp_epsilon(total, delta)
    assert gdp_epsilon(total, delta / 2) >= gdp_epsilon(total, delta)


@given(st.floats(-9, 1.5).map(lambda e: Fraction(10**e)), st.floats(-280, -3).map(lambda e: Fraction(10**e)))
@SLOW
def test_gaussian_dp_is_never_worse_than_zcdp_at_any_epsilon_in_use(total, delta):
    assert gdp_epsilon(total, delta) <= zcdp_epsilon(total, delta)


@pytest.mark.parametrize(("epsilon", "gain"), [("0.1", 1.058), ("1", 1.051), ("10", 1.041)])
def test_gaussian_dp_buys_the_stated_part_of_noise_over_zcdp(epsilon, gain):
    asked, delta = Fraction(epsilon), Fraction(1, 10**9)
    assert float(gdp_budget(asked, delta) / zcdp_budget(asked, delta)) ** 0.5 == pytest.approx(gain, abs=1e-3)


def test_nothing_spent_is_nothing_and_little_spent_with_a_large_delta_too():
    assert gdp_epsilon(Fraction(0), DELTA) == 0
    assert gdp_epsilon(Fraction(1, 10**9), Fraction(1, 2)) == 0


@pytest.mark.parametrize("delta", [Fraction(1, 10**290), Fraction(1, 10**9), 1 - Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(10**9)])
def test_the_ends_of_what_a_config_allows_have_a_budget(epsilon, delta):
    budget = gdp_budget(epsilon, delta)
    assert budget > 0
    assert epsilon * (1 - Fraction(1, 10**8)) <= gdp_epsilon(budget, delta) <= epsilon


@pytest.mark.parametrize(("sigma", "count"), [(10.0, 1), (20.0, 10), (50.0, 100)])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_gaussian_runs_cost_what_the_privacy_loss_distribution_says(sigma, count, delta):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    from dp_accounting.pld import PLDAccountant

    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(sigma), count)
    numeric = PLDAccountant().compose(event).get_epsilon(delta)
    ours = float(gdp_epsilon(Fraction(count) / (2 * Fraction(sigma) ** 2), Fraction(delta)))
    assert ours == pytest.approx(numeric, rel=2e-3)


def test_no_total_but_zero_is_free():
    """Whole numbers are where a condition that is off by one would show."""
    assert gdp_epsilon(Fraction(0), Fraction(1, 10**6)) == 0
    found = [gdp_epsilon(Fraction(total), Fraction(1, 10**6)) for total in (1, 2, 3)]
    assert 6 < found[0] < found[1] < found[2]


@pytest.mark.parametrize("total", [Fraction(1, 100), Fraction(5, 100), Fraction(2)])
def test_the_margin_makes_delta_smaller_and_epsilon_larger(monkeypatch, total):
    """The margin is below the last digit of a float; widened, it shows that it goes to the safe side."""
    delta, margin = Fraction(1, 10**6), Decimal("1e-4")
    mu = (2 * Decimal(float(total))).sqrt()
    allowed = Decimal(float(delta)).ln() - gaussian_dp.DELTA_GROWTH * mu * mu
    smaller = float(gdp_epsilon(total, Fraction(float((allowed * margin).exp()) * float(delta))))
    x = (Decimal(smaller) - mu * mu / 2) / mu
    monkeypatch.setattr(gaussian_dp, "_MARGIN", margin)
    found = float(gaussian_dp.gdp_epsilon.__wrapped__(total, delta))
    assert found == pytest.approx(smaller + float(margin * (abs(mu * x) + mu * mu)), rel=1e-8)
