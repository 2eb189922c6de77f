"""Amplification by shuffling: held against exact divergences of small shuffles."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import comb, exp, inf, log

import mpmath
import pytest
from scipy.stats import binom

from dpsynth.wings.local.shuffling import central_epsilon, closed_form, delta_of

Law = Mapping[object, float]


def divergence(one: Law, two: Law, epsilon: float) -> float:
    """The hockey-stick divergence of two laws, exactly but for floats."""
    return sum(max(p - exp(epsilon) * two.get(x, 0.0), 0.0) for x, p in one.items())


def clones(local: float, n: int, *, first: bool) -> dict[object, float]:
    """The law that the reduction of Feldman, McMillan and Talwar ends in, by enumeration."""
    clone, heads = exp(-local), exp(local) / (exp(local) + 1)
    found: dict[object, float] = {}
    for c in range(n):
        of_c = comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        for a, d in product(range(c + 1), (0, 1)):
            mass = of_c * comb(c, a) / 2**c * (heads if d == first else 1 - heads)
            found[a + d, c - a + 1 - d] = found.get((a + d, c - a + 1 - d), 0.0) + mass
    return found


@pytest.mark.parametrize("local", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_delta_is_the_exact_divergence_of_the_clones(local: float, n: int) -> None:
    one, two = clones(local, n, first=True), clones(local, n, first=False)
    for epsilon in (0.0, 0.1, 0.5 * local, 0.9 * local):
        exact = divergence(one, two, epsilon)
        assert exact <= delta_of(epsilon, local, n) <= exact * (1 + 1e-6) + 1e-12


def shuffled(keep: Fraction, n: int, own: int) -> dict[object, float]:
    """The law of the number of ones among n shuffled binary reports, the other respondents having 0."""
    p, q = float(keep), float(1 - keep)
    mine = p if own else q
    others = [comb(n - 1, k) * q**k * p ** (n - 1 - k) for k in range(n)]
    return {
        k: mine * (others[k - 1] if k else 0.0) + (1 - mine) * (others[k] if k < n else 0.0)
        for k in range(n + 1)
    }


@pytest.mark.parametrize("n", [2, 10, 200])
def test_real_shuffled_reports_lose_no_more(n: int) -> None:
    """Randomised response of a worst-case respondent among equal ones, at ln 3, both ways."""
    one, two = shuffled(Fraction(3, 4), n, 1), shuffled(Fraction(3, 4), n, 0)
    for epsilon in (0.05, 0.2, 0.5, 1.0):
        bound = delta_of(epsilon, log(3), n)
        assert divergence(one, two, epsilon) <= bound
        assert divergence(two, one, epsilon) <= bound


def test_a_bound_for_twice_as_many_reports_would_be_noticed() -> None:
    one, two = clones(1.0, 40, first=True), clones(1.0, 40, first=False)
    assert delta_of(0.3, 1.0, 80) < divergence(one, two, 0.3)


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1_000, 20_000])
def test_the_numerical_bound_is_below_the_closed_form(local: float, n: int) -> None:
    form, tight = closed_form(local, n, 1e-6), central_epsilon(local, n, 1e-6)
    assert tight <= min(form, local)
    assert delta_of(tight, local, n) <= 1e-6 < delta_of(tight * 0.98, local, n)


def test_the_closed_form_holds_under_its_condition_alone() -> None:
    assert closed_form(8.0, 1_000, 1e-6) == inf
    expected = log(
        1 + (exp(1) - 1) / (exp(1) + 1) * (8 * (exp(1) * log(4e6) / 1e5) ** 0.5 + 8 * exp(1) / 1e5)
    )
    assert closed_form(1.0, 100_000, 1e-6) == pytest.approx(expected)


def test_shuffling_never_costs_more_than_the_local_loss() -> None:
    assert central_epsilon(1.0, 1, 1e-9) == pytest.approx(1.0)
    assert central_epsilon(1.0, 0, 1e-9) == 1.0


@pytest.mark.parametrize("n", [0, 1, 700, 100_000])
def test_the_condition_of_the_closed_form_is_that_of_the_theorem(n: int) -> None:
    most = log(max(n, 1e-9) / (16 * log(2e6)))
    assert closed_form(most + 1e-6, n, 1e-6) == inf
    if most > 0:
        assert closed_form(most - 1e-6, n, 1e-6) < inf


def test_the_closed_form_is_rounded_up_by_its_margin_and_no_more() -> None:
    with mpmath.workdps(30):
        odds, n = mpmath.exp(1), mpmath.mpf(100_000)
        blanket = 8 * mpmath.sqrt(odds * mpmath.log(4e6) / n) + 8 * odds / n
        exact = mpmath.log1p((odds - 1) / (odds + 1) * blanket)
        assert 0.9e-9 < closed_form(1.0, 100_000, 1e-6) / exact - 1 < 1.1e-9


def test_what_the_sum_over_clones_leaves_out_is_added_to_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    local, n, epsilon = 1.0, 40, 0.3
    whole = delta_of(epsilon, local, n)
    monkeypatch.setattr(binom, "ppf", lambda levels, n, p: [16.0 for _ in levels])
    seen = float(binom.pmf([15, 16, 17], n - 1, exp(-local)).sum())
    assert whole + 0.1 < delta_of(epsilon, local, n)
    assert 1 - seen <= delta_of(epsilon, local, n) <= 1 - seen + whole


def test_reports_that_tell_nothing_or_less_than_is_asked_for_have_no_delta() -> None:
    assert delta_of(0.0, 0.0, 5) == delta_of(2.0, 1.0, 5) == 0.0
