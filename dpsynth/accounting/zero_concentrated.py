"""Zero-concentrated differential privacy of a release: from rho to (epsilon, delta), and back.

Invariant: epsilons are rounded up and budgets down. Any alpha gives a valid bound, and the bound at the
alpha found is evaluated with 50 digits. Costs within a budget never come to more than the epsilon asked
for: epsilon is taken at the best alpha, to more digits than a budget is rounded by.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import exp, log, log1p, nextafter

from dpsynth.accounting.rounding import float_down

_EXACT = Context(prec=60)
_SLACK = Decimal("1e-45")


def _decimal(value: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def penalty(alpha: Decimal, delta: Fraction) -> Decimal:
    """The part of epsilon(alpha) that does not depend on rho, not below its true value."""
    one = Decimal(1)
    above = _EXACT.subtract(alpha, one)
    terms = _EXACT.multiply(alpha, _EXACT.ln(_EXACT.divide(above, alpha)))
    terms = _EXACT.subtract(terms, _EXACT.ln(above))
    terms = _EXACT.subtract(terms, _EXACT.ln(_decimal(delta)))
    return _EXACT.add(_EXACT.divide(terms, above), _SLACK)


def _best_alpha(objective: Callable[[float], float]) -> float:
    """The alpha that minimises an objective unimodal in log(alpha - 1), by golden section."""
    ratio = (5**0.5 - 1) / 2
    low, high = -25.0, 40.0
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = objective(1 + exp(a)), objective(1 + exp(b))
    for _ in range(120):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = objective(1 + exp(a))
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = objective(1 + exp(b))
    return 1 + exp((low + high) / 2)


def _polished(alpha: Decimal, rho: Fraction, delta: Fraction) -> Decimal:
    """The best alpha, from one that is good to the digits of a float.

    At the best alpha the derivative of alpha rho + penalty(alpha) is 0, and so is (alpha - 1)^2 rho +
    ln(alpha) + ln(delta). Each of Newton's steps doubles the digits, and an error in alpha counts
    squared in epsilon.
    """
    one, spend, log_delta = Decimal(1), _decimal(rho), _EXACT.ln(_decimal(delta))
    with localcontext(_EXACT):
        for _ in range(3):
            above = alpha - one
            step = (above * above * spend + alpha.ln() + log_delta) / (2 * above * spend + one / alpha)
            if abs(step) >= above / 2:
                break
            alpha -= step
    return alpha


def _float_penalty(alpha: float, log_delta: float) -> float:
    return (alpha * log1p(-1 / alpha) - log(alpha - 1) - log_delta) / (alpha - 1)


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, at which rho-zCDP implies (epsilon, delta)-DP.

    epsilon = inf over alpha > 1 of alpha rho + [alpha ln(1 - 1/alpha) - ln(alpha - 1) -
    ln delta]/(alpha - 1) (Canonne, Kamath and Steinke 2020, proposition 12).

    >>> f"{float(zcdp_epsilon(Fraction(5, 100), Fraction(1, 10**6))):.4f}"
    '1.4716'
    """
    if rho == 0:
        return Fraction(0)
    log_delta, spend = log(delta), float(rho)
    near = Decimal(_best_alpha(lambda a: a * spend + _float_penalty(a, log_delta)))
    alpha = _polished(near, rho, delta)
    epsilon = _EXACT.add(_EXACT.multiply(alpha, _decimal(rho)), penalty(alpha, delta))
    return max(Fraction(0), Fraction(_EXACT.add(epsilon, _SLACK)))


def best_order(epsilon: Fraction, delta: Fraction) -> float:
    """The order alpha at which (epsilon, delta) allows the largest rho, to the nearest."""
    log_delta, target = log(delta), float(epsilon)
    return _best_alpha(lambda a: (_float_penalty(a, log_delta) - target) / a)


def zcdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down to a float, that still implies (epsilon, delta)-DP.

    rho = sup over alpha > 1 of (epsilon - penalty(alpha))/alpha, the inverse of
    ``zcdp_epsilon``.
    """
    alpha = Decimal(best_order(epsilon, delta))
    rho = _EXACT.divide(_EXACT.subtract(_decimal(epsilon), penalty(alpha, delta)), alpha)
    budget = Fraction(float_down(Fraction(_EXACT.subtract(rho, _SLACK))))
    while budget > 0 and zcdp_epsilon(budget, delta) > epsilon:
        budget = Fraction(nextafter(float(budget), 0.0))
    return max(budget, Fraction(0))
