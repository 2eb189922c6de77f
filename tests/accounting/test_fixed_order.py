"""Measures at a fixed order: their formulas to fifty digits, each rounded to its safe side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

import mpmath
import pytest

from dpsynth.accounting.fixed_order import (
    Advanced,
    Optimal,
    Pure,
    Renyi,
    _of_coin,
    advanced_for,
    optimal_for,
    renyi_for,
)
from dpsynth.accounting.known_measures import ACCOUNTANTS, measure_for
from dpsynth.accounting.measures import Measure

DELTA = Fraction(1, 10**6)
E = Fraction(3, 10)
ORDERS = [Optimal("7.25"), Renyi("7.25")]


def mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def excess(found: Fraction | None, truth: mpmath.mpf) -> float:
    """A figure's distance above the truth, relatively, in units of the margin that it should have."""
    assert found is not None
    return float((mp(found) / truth - 1) * mpmath.mpf(10) ** 30)


def test_every_figure_is_above_the_formula_by_its_margin_and_no_more() -> None:
    with mpmath.workdps(80):
        e, a, total = mp(E), mpmath.mpf("7.25"), mp(Fraction(1, 7))
        tail = mpmath.log(10**6)
        coin = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
        figures = [
            (Advanced().epsilon(Fraction(1, 7), DELTA), total + 2 * mpmath.sqrt(total * tail)),
            (Optimal("7.25")._added(DELTA), tail / a),
            (Optimal("7.25").of_one(Pure(E, E**2 / 2)), e * mpmath.tanh(e / 2) + a * e**2 / 2),
            (_of_coin(E, Fraction("7.25")), coin),
        ]
        assert [0.9 < excess(*figure) < 1.1 for figure in figures] == [True] * 4


@pytest.mark.parametrize("accountant", ["advanced", "optimal", "rdp"])
def test_nothing_costs_nothing_and_there_is_no_such_guarantee_without_a_delta(accountant: str) -> None:
    measure = measure_for(accountant, Fraction(1), DELTA)
    assert measure.needs_delta and measure.epsilon(Fraction(0), DELTA) == 0
    if accountant != "advanced":
        assert measure.epsilon(Fraction(1, 10**9), DELTA) == Fraction(1, 10**9) + measure._added(DELTA)  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        measure_for(accountant, Fraction(1), None)


@pytest.mark.parametrize("measure", [Advanced(), Optimal("7.25")], ids=["advanced", "optimal"])
def test_gaussian_noise_has_no_scale_where_it_is_not_counted(measure: Measure) -> None:
    with pytest.raises(ValueError, match="no epsilon"):
        measure.gaussian_sigma(1.0)


def test_a_rho_that_a_cost_implies_is_not_below_that_of_the_answer() -> None:
    assert Optimal("7.25").rho(Fraction(29)) == 4
    assert Renyi("7.25").rho(Fraction(29)) == 6
    for measure in ORDERS:
        for e in (Fraction(1, 1000), E, Fraction(4)):
            cost = measure.of_one(Pure(e, e**2 / 2))
            assert cost is not None and e**2 / 2 <= measure.rho(cost)


@pytest.mark.parametrize("measure", [Advanced(), *ORDERS], ids=["advanced", "optimal", "rdp"])
def test_the_mu_that_a_budget_implies_is_half_pi_times_its_rho_and_rounded_up(measure: Measure) -> None:
    budget, up = Fraction(1, 7), 1 + Fraction(1, 2**40)
    rho = measure.rho(budget) * up
    assert measure.implied(budget, False) == (rho, None)
    assert measure.implied(budget, True) == (rho, Fraction(355, 226) * rho * up)


@dataclass(frozen=True)
class Near(Advanced):
    """Advanced composition whose first guess of a budget is too large."""

    def _near(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        return super()._near(epsilon, delta) * (1 + Fraction(5, 2**53))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(50)])
def test_a_budget_is_lowered_until_its_epsilon_is_within(epsilon: Fraction) -> None:
    found, sound = Near().budget(epsilon, DELTA), Advanced().budget(epsilon, DELTA)
    assert Near()._near(epsilon, DELTA) > sound == found
    assert Advanced().epsilon(found, DELTA) <= epsilon


def test_orders_are_those_at_which_small_answers_may_have_the_largest_squares() -> None:
    assert advanced_for(Fraction(2), DELTA) == Advanced()
    tail = log(10**6)
    order = float(optimal_for(Fraction(2), DELTA).order)  # type: ignore[attr-defined]

    def most(multiplier: float) -> float:
        return (2 - tail / multiplier) / (1 + multiplier)

    assert most(order) > max(most(order * 1.001), most(order / 1.001))
    renyi = renyi_for(Fraction(2), DELTA)
    order = float(renyi.order)  # type: ignore[attr-defined]
    rhos = [
        float(Renyi(f"{o:.9f}").budget(Fraction(2), DELTA)) / o for o in (order, 1.01 * order, order / 1.01)
    ]
    assert rhos[0] == max(rhos)


def test_every_accountant_but_the_sum_of_epsilons_needs_a_delta() -> None:
    made = {name: measure_for(name, Fraction(1), DELTA).needs_delta for name in ACCOUNTANTS}
    assert made == {name: name != "sequential" for name in ACCOUNTANTS}
