"""Advanced and optimal composition: the formulas of the theorems to forty digits, each rounded up."""

from fractions import Fraction

import mpmath
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost
from dpsynth.ledger.views import Composed
from dpsynth.wings.proof.accountants.advanced import advanced_epsilon, optimal_epsilon, textbook_epsilon
from dpsynth.wings.proof.accountants.comparison import statements

CASES = [
    (400, Fraction(1, 10), Fraction(1, 10**6)),
    (100, Fraction(1, 20), Fraction(1, 10)),
    (100, Fraction(1, 10), Fraction(9, 10)),
]
"""The last part of theorem 3.5, the one before it, and a tail below 1."""


def mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def margins(found: Fraction, truth: mpmath.mpf) -> float:
    """Distance above the truth, in units of 1e-45 of it and 1e-45 more."""
    return float((mp(found) - truth) / (truth + 1) * mpmath.mpf(10) ** 45)


@pytest.mark.parametrize(("times", "epsilon", "delta"), CASES)
def test_advanced_composition_is_the_least_of_three_and_above_it_by_its_margin(
    times: int, epsilon: Fraction, delta: Fraction
) -> None:
    with mpmath.workdps(90):
        e, d = mp(epsilon), mp(delta)
        squares, mean = times * e**2, times * e * mpmath.tanh(e / 2)
        tails = -mpmath.log(d), mpmath.log(mpmath.e + mpmath.sqrt(squares) / d)
        truth = mean + mpmath.sqrt(2 * squares * min(tails))
        found = advanced_epsilon([Amount(epsilon)] * times, delta)
        assert found is not None and 0.9 < margins(found, truth) < 1.1
        textbook = e * mpmath.sqrt(-2 * times * mpmath.log(d)) + times * e * mpmath.expm1(e)
        assert 0.9 < margins(textbook_epsilon(epsilon, times, delta), textbook) < 1.1


def test_the_cases_are_of_either_tail() -> None:
    each = [float(times * epsilon**2) ** 0.5 + 2.72 * float(delta) for times, epsilon, delta in CASES]
    assert [found < 1 for found in each] == [False, True, False]


def test_a_delta_above_that_of_all_answers_together_needs_no_epsilon() -> None:
    assert optimal_epsilon([Amount(Fraction(1, 10))] * 3, Fraction(9, 10)) == 0


def test_no_answers_and_answers_without_a_loss_come_to_nothing() -> None:
    for parts in ([], [Amount(Fraction(0))] * 3):
        assert optimal_epsilon(parts, Fraction(1, 10**6)) == 0


def test_deltas_that_leave_nothing_are_stated_rounded_up() -> None:
    delta = Fraction(1, 10**6)
    release = Composed(Cost(Amount(Fraction(1), delta * 2 / 3), Fraction(1), Fraction(1)))
    for found in statements([release] * 2, delta):
        if found.accountant in ("advanced", "optimal"):
            assert found.epsilon is None and "add up to 1.33334e-6" in found.why
