"""Advanced composition: many small epsilons add up by about the root of the sum of their squares.

Invariant: results are rounded up. It holds for answers whose questions depend on earlier
answers, if every epsilon and delta was fixed before the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.normal_tail import EXACT

_SLACK = Decimal("1e-45")


def advanced_epsilon(parts: Sequence[Amount], delta: Fraction) -> Fraction | None:
    """The epsilon, rounded up, at which parts of (epsilon_i, delta_i) are together (epsilon, delta)-DP.

    The least of three (Kairouz, Oh and Viswanath 2015, theorem 3.5), with d = delta - sum delta_i,
    S = sum epsilon_i^2 and A = sum epsilon_i tanh(epsilon_i/2): sum epsilon_i, A + sqrt(2 S ln(1/d)) and
    A + sqrt(2 S ln(e + sqrt(S)/d)). None of them is above theorem 3.20 of Dwork and Roth (2014).

    Returns:
        None where the deltas of the parts leave no d above 0.
    """
    left = delta - sum((part.delta for part in parts), Fraction(0))
    if left <= 0:
        return None
    whole = sum((part.epsilon for part in parts), Fraction(0))
    with localcontext(EXACT):
        slack = _decimal(left)
        each = [(_decimal(epsilon), times) for epsilon, times in Counter(p.epsilon for p in parts).items()]
        squares = sum((times * epsilon**2 for epsilon, times in each), Decimal(0))
        mean = sum((times * _mean_loss(epsilon) for epsilon, times in each), Decimal(0))
        tail = min(-slack.ln(), (Decimal(1).exp() + squares.sqrt() / slack).ln())
        found = mean + (2 * squares * max(tail, Decimal(0))).sqrt()
        return min(whole, Fraction(found * (1 + _SLACK) + _SLACK))


def textbook_epsilon(epsilon: Fraction, times: int, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, of a number of epsilon-DP answers by the textbook's advanced composition.

    epsilon sqrt(2 k ln(1/delta)) + k epsilon (e^epsilon - 1) (Dwork and Roth 2014, theorem 3.20). It is
    valid and never below ``advanced_epsilon``; it stands here to be compared with it.
    """
    with localcontext(EXACT):
        each = _decimal(epsilon)
        found = each * (-2 * times * _decimal(delta).ln()).sqrt() + times * each * (each.exp() - 1)
        return Fraction(found * (1 + _SLACK) + _SLACK)


def largest_each(total: Fraction, times: int, spent: Callable[[Fraction], Fraction]) -> Fraction:
    """The largest epsilon, to ten digits and rounded down, of each of some answers within a total.

    Args:
        total: the epsilon of all answers together.
        times: their number.
        spent: the epsilon of all for the epsilon of each, growing.
    """
    low, high = Fraction(0), total
    while high - low > high / 10**10:
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if spent(middle) <= total else (low, middle)
    return max(low, total / times)


def _mean_loss(epsilon: Decimal) -> Decimal:
    """Epsilon tanh(epsilon/2), the mean loss of randomised response and the largest that epsilon allows."""
    other = (-epsilon).exp()
    return epsilon * (1 - other) / (1 + other)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
