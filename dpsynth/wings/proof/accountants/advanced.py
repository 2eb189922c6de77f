"""Advanced, optimal and textbook composition: many small epsilons add up by about the root of their squares.

Invariant: results are rounded up. They hold for answers whose questions depend on earlier answers, if every
epsilon and delta was fixed before the first; ``adaptive_epsilon`` holds without that condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_expit

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.measures import EXACT

_SLACK = Decimal("1e-45")

_MOST_LOSSES = 200_000
"""Largest number of distinct losses that are added up one by one."""
_MARGIN = 1e-9
"""Margin of delta, relative: its terms are positive, and each has ten correct digits."""


def optimal_epsilon(parts: Sequence[Amount], delta: Fraction) -> Fraction | None:
    """The least epsilon, rounded up, at which any parts of (epsilon_i, delta_i) are (epsilon, delta)-DP.

    The worst such parts are randomised responses that reveal all with probability delta_i (Kairouz, Oh and
    Viswanath 2015, theorems 3.2 and 3.3), so with d = 1 - (1 - delta)/product of (1 - delta_i) epsilon is the
    least with E[(1 - e^(epsilon - L))_+] <= d, L the sum of their losses. The sum runs over the numbers of
    responses of each epsilon that lie; where there are too many of these, the bound of theorem 3.5 is taken.

    Returns:
        None where the deltas of the parts leave no d above 0.
    """
    bound = advanced_epsilon(parts, delta)
    if bound is None:
        return None
    whole = sum((part.epsilon for part in parts), Fraction(0))
    each = Counter(float_up(part.epsilon) for part in parts if part.epsilon)
    if not each or prod(times + 1 for times in each.values()) > _MOST_LOSSES:
        return bound
    kept = prod((1 - part.delta for part in parts), start=Fraction(1))
    allowed = float(1 - (1 - delta) / kept) * (1 - _MARGIN)
    losses, weights = _sums_of_responses(each)

    def spent(epsilon: float) -> float:
        over = losses > epsilon
        return float((weights[over] * -np.expm1(epsilon - losses[over])).sum())

    low, high = 0.0, float(bound)
    if allowed <= 0 or spent(high) > allowed:
        return bound
    if spent(low) <= allowed:
        return Fraction(0)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > allowed else (low, middle)
    return min(Fraction(high) * (1 + Fraction(_MARGIN) / 1000), bound, whole)


def _sums_of_responses(each: Mapping[float, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The losses of so many randomised responses of each epsilon together, and their probabilities."""
    losses, weights = np.zeros(1), np.zeros(1)
    for epsilon, times in each.items():
        lies = np.arange(times + 1, dtype=np.float64)
        chosen = gammaln(times + 1.0) - gammaln(lies + 1) - gammaln(times - lies + 1)
        if times < 60:
            chosen = np.log([float(comb(times, int(n))) for n in lies])
        logs = chosen + (times - lies) * log_expit(epsilon) + lies * log_expit(-epsilon)
        losses = np.add.outer(losses, epsilon * (times - 2 * lies)).ravel()
        weights = np.add.outer(weights, logs).ravel()
    return losses, np.exp(weights)


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


def adaptive_epsilon(squares: Fraction, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, of answers whose epsilons may follow from earlier answers.

    s + 2 sqrt(s ln(1/delta)), s half the sum of the squares of epsilon, stopped at a bound that was fixed
    before the first answer (Whitehouse, Ramdas, Rogers and Wu 2023, theorem 1). It is never above theorem
    3.20 of Dwork and Roth (2014).

    Args:
        squares: the sum of the squares.
        delta: above 0.
    """
    if not squares:
        return Fraction(0)
    with localcontext(EXACT):
        half = _decimal(squares) / 2
        found = half + 2 * (-half * _decimal(delta).ln()).sqrt()
        return Fraction(found * (1 + _SLACK))


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
