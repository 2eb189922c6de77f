"""Amounts and costs: exact, never negative, and compared figure by figure."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import NOTHING, Cost

ONE, TWO, THREE = Fraction(1), Fraction(2), Fraction(3)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (Fraction(0), "0", "0"),
        (Fraction(1, 3), "0.333334", "0.333333"),
        (Fraction(999_999), "999999", "999999"),
        (Fraction(1_000_000), "1e+6", "1e+6"),
        (Fraction(1_234_567), "1.23457e+6", "1.23456e+6"),
        (Fraction(1, 10_000), "0.0001", "0.0001"),
        (Fraction(1, 100_000), "1e-5", "1e-5"),
        (Fraction(2_345_678, 10**7), "0.234568", "0.234567"),
    ],
)
def test_six_digits_are_shown_rounded_the_way_that_is_asked_for(value: Fraction, up: str, down: str) -> None:
    assert (digits(value, up=True), digits(value, up=False)) == (up, down)


def test_an_amount_is_shown_rounded_up_unless_it_is_a_cap() -> None:
    third = Amount(Fraction(1, 3), Fraction(1, 3))
    assert third.shown() == "ε = 0.333334, δ = 0.333334"
    assert third.shown(up=False) == "ε = 0.333333, δ = 0.333333"


@pytest.mark.parametrize("figures", [(0.5, ONE), (ONE, 0.5)])
def test_an_amount_that_may_have_been_rounded_is_refused(figures: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(TypeError, match="exact fraction, not float"):
        Amount(*figures)


@pytest.mark.parametrize("figures", [(-ONE, ONE), (ONE, -ONE)])
def test_a_negative_amount_is_refused(figures: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Amount(*figures)


def test_an_amount_of_which_nothing_is_said_is_nothing() -> None:
    assert Amount() == Amount(Fraction(0), Fraction(0))


def test_an_amount_is_within_a_cap_that_it_equals_and_capped_figure_by_figure() -> None:
    assert Amount(ONE, TWO).within(Amount(ONE, TWO))
    assert not Amount(TWO, ONE).within(Amount(ONE, TWO)) and not Amount(ONE, TWO).within(Amount(TWO, ONE))
    assert Amount(ONE, THREE).capped(Amount(TWO, TWO)) == Amount(ONE, TWO)
    assert Amount(THREE, ONE).capped(Amount(TWO, TWO)) == Amount(TWO, ONE)


COST = Cost(Amount(ONE, ONE / 2), TWO, THREE, ONE / 4)
MORE = Fraction(1, 10**12)


def test_a_cost_is_within_one_that_it_equals_and_within_none_that_any_figure_exceeds() -> None:
    assert COST.within(COST) and NOTHING.within(COST) and not COST.within(NOTHING)
    larger = [
        replace(COST, amount=Amount(ONE + MORE, ONE / 2)),
        replace(COST, amount=Amount(ONE, ONE / 2 + MORE)),
        replace(COST, rho=TWO + MORE),
        replace(COST, half_mu_squared=THREE + MORE),
        replace(COST, approximate_delta=ONE / 4 + MORE),
    ]
    for cost in larger:
        assert COST.within(cost) and not cost.within(COST)


def test_a_cost_without_mu_exceeds_every_mu_and_is_exceeded_by_none() -> None:
    without = replace(COST, half_mu_squared=None)
    assert COST.within(without) and without.within(without) and not without.within(COST)


@pytest.mark.parametrize("figures", [{"rho": 0.5}, {"half_mu_squared": 0.5}, {"approximate_delta": 0.1}])
def test_a_cost_that_may_have_been_rounded_is_refused(figures: dict[str, float]) -> None:
    with pytest.raises(TypeError):
        replace(COST, **figures)


@pytest.mark.parametrize("figures", [{"rho": -ONE}, {"half_mu_squared": -ONE}, {"approximate_delta": ONE}])
def test_a_cost_below_nothing_or_with_more_approximate_delta_than_delta_is_refused(
    figures: dict[str, Fraction],
) -> None:
    with pytest.raises(ValueError):
        replace(COST, **figures)


def test_nothing_costs_nothing() -> None:
    assert (NOTHING.amount, NOTHING.rho, NOTHING.half_mu_squared, NOTHING.approximate_delta) == (
        Amount(),
        0,
        0,
        0,
    )
    assert Cost(Amount(ONE, ONE), ONE, None).half_mu_squared is None
