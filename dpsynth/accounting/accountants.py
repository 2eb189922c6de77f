"""Composition: from journalled events to the guarantee that they add up to.

Accountants are strangers to mechanisms and to data. Every epsilon leaves here rounded up
and every budget rounded down: any alpha gives a valid bound, and the bound at the alpha found
is evaluated with 50 digits. What is spent within a budget never comes to more than was asked for,
for epsilon is taken at the best alpha, to more digits than a budget is rounded by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import exp, inf, log, log1p, nextafter, sqrt

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.events import Event, Measure, cost, lapse_of
from dpsynth.accounting.gaussian_dp import gdp_budget, gdp_epsilon
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.rounding import float_down, float_up

_EXACT = Context(prec=60)
_SLACK = Decimal("1e-45")


def _decimal(value: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _penalty(alpha: Decimal, delta: Fraction) -> Decimal:
    """The part of epsilon(alpha) that does not depend on rho, not below its true value."""
    one = Decimal(1)
    above = _EXACT.subtract(alpha, one)
    terms = _EXACT.multiply(alpha, _EXACT.ln(_EXACT.divide(above, alpha)))
    terms = _EXACT.subtract(terms, _EXACT.ln(above))
    terms = _EXACT.subtract(terms, _EXACT.ln(_decimal(delta)))
    return _EXACT.add(_EXACT.divide(terms, above), _SLACK)


def _best_alpha(objective: Callable[[float], float]) -> float:
    """Alpha that minimises an objective unimodal in log(alpha - 1); golden section."""
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

    It is where the derivative of alpha rho + penalty(alpha) is 0, and so (alpha - 1)^2 rho +
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
    """Epsilon, rounded up, such that rho-zCDP implies (epsilon, delta)-DP.

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
    epsilon = _EXACT.add(_EXACT.multiply(alpha, _decimal(rho)), _penalty(alpha, delta))
    return max(Fraction(0), Fraction(_EXACT.add(epsilon, _SLACK)))


def zcdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down to a float, that still implies (epsilon, delta)-DP.

    rho = sup over alpha > 1 of (epsilon - penalty(alpha))/alpha, the inverse of
    ``zcdp_epsilon``.
    """
    log_delta, target = log(delta), float(epsilon)
    alpha = Decimal(_best_alpha(lambda a: (_float_penalty(a, log_delta) - target) / a))
    rho = _EXACT.divide(_EXACT.subtract(_decimal(epsilon), _penalty(alpha, delta)), alpha)
    budget = Fraction(float_down(Fraction(_EXACT.subtract(rho, _SLACK))))
    while budget > 0 and zcdp_epsilon(budget, delta) > epsilon:
        budget = Fraction(nextafter(float(budget), 0.0))
    return max(budget, Fraction(0))


def budget_of(measure: Measure, epsilon: Fraction, delta: Fraction | None) -> Fraction:
    """What may be spent under a measure so that (epsilon, delta) holds in the end."""
    if measure == "pure":
        return epsilon
    given = _needed(delta)
    return zcdp_budget(epsilon, given) if measure == "zcdp" else gdp_budget(epsilon, given)


def epsilon_of(measure: Measure, total: Fraction, delta: Fraction | None) -> Fraction:
    """Epsilon, rounded up, that a total of costs under a measure comes to."""
    if measure == "pure":
        return total
    given = _needed(delta)
    return zcdp_epsilon(total, given) if measure == "zcdp" else gdp_epsilon(total, given)


def _needed(delta: Fraction | None) -> Fraction:
    if delta is None:
        raise ValueError("accounting other than pure needs a delta")
    return delta


def amount_of(
    events: Iterable[Event], measure: Measure, delta: Fraction | None, apart: Fraction = Fraction(0)
) -> Amount:
    """(epsilon, delta) that events add up to, epsilon rounded up.

    The deltas of the events themselves are taken out of delta before epsilon is taken at the rest; the
    sum of both holds (proof in ``dpsynth.accounting.partition_selection``). Under pure accounting they are
    all of it.

    Args:
        events: every charge.
        measure: how losses add up.
        delta: the total asked for; nothing of it is needed under pure accounting.
        apart: what was set apart of it for the deltas of the events; it counts whole, if they have less too.

    Raises:
        ValueError: an event has no cost under the measure, there is no delta where the measure needs
            one, or the events leave nothing of it.
    """
    found = list(events)
    total, lapse = sum((cost(e, measure) for e in found), Fraction(0)), max(apart, lapse_of(found))
    if measure == "pure":
        return Amount(total, lapse)
    given = _needed(delta)
    if lapse >= given:
        raise ValueError("the deltas of the events leave nothing of the delta asked for")
    return Amount(epsilon_of(measure, total, given - lapse), given)


def compose(
    events: Iterable[Event],
    measure: Measure,
    delta: Fraction | None,
    neighbours: Neighbours,
    apart: Fraction = Fraction(0),
) -> Guarantee:
    """The guarantee that a sequence of adaptively chosen events adds up to; arguments as ``amount_of``.

    Costs add up under every measure (sequential composition), also when each event was
    chosen from earlier answers within a fixed total (Feldman and Zrnic 2021 for zCDP; Smith
    and Thakurta 2022 and Koskela, Tobaben and Honkela 2023 for Gaussian DP).

    A guarantee is what was fixed beforehand. So of a release that counts by mu the sum of the events' own
    rho is not told: it depends on how many choices were made, and no bound below mu^2/2 was set to it. Nor is
    the part of ``apart`` that the events took.

    Raises:
        ValueError: as ``amount_of``.
    """
    found = list(events)
    amount, lapse = amount_of(found, measure, delta, apart), float_up(lapse_of(found))
    if lapse_of(found) <= apart:
        # The float nearest to the config's decimal, which is how it is printed.
        lapse = float(apart)
    elif delta is not None and lapse_of(found) <= delta:
        lapse = min(lapse, float(delta))
    epsilon = float_up(amount.epsilon)
    if measure == "pure":
        return Guarantee(
            epsilon, lapse, None, neighbours.unit, neighbours.relation, "sequential", lapse=lapse
        )
    # Each event's rho is at most its mu^2/2, so under either measure the total bounds rho.
    total = sum((cost(e, measure) for e in found), Fraction(0))
    return Guarantee(
        epsilon=epsilon,
        # The float nearest to the config's decimal, which is how it is printed.
        delta=float(amount.delta),
        rho=float_up(total),
        unit=neighbours.unit,
        neighbours=neighbours.relation,
        accountant=measure,
        mu=_root_up(2 * total) if measure == "gdp" else None,
        lapse=lapse,
    )


def _root_up(square: Fraction) -> float:
    root = sqrt(square)
    while Fraction(root) ** 2 < square:
        root = nextafter(root, inf)
    return root
