"""Group privacy: the guarantee for several units that change together.

A group has k units where one person has k rows, or k ids: between the table with all of them and the table
with none lie k steps. Only epsilon without delta grows by the factor k. Invariant: results are rounded up.

Without an approximate delta the bound follows from the events. Let k units change: the counts of a Gaussian
answer move by k times the sensitivity, and so do scores and the counts of a Laplace answer. The noise stays.
So epsilon grows by k, mu by k, and rho by k^2, for each event and for their sum (Bun and Steinke 2016,
proposition 1.9; Dong, Roth and Su 2022, theorem 2.14). The proof for discrete noise in ``gaussian_dp`` holds
of k units as it stands, with k Delta for Delta. Epsilon is then taken at the same delta. Where choices were
counted by their loss distribution (``beside_noise``), mu is that of the release as a whole, and it is the
theorem of Dong, Roth and Su that makes it k mu. Under Renyi DP, optimal and advanced composition rho is the
bound that the measure implies.

With an approximate delta the outcomes without failure differ at every step, so rho and mu don't grow that
way. The bound that always holds follows from (epsilon, delta)-DP alone, step by step:
(k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))) (Vadhan 2017, lemma 2.2). Under pure accounting
that is k epsilon, and the delta, if there is any, grows.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import Cost
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.rounding import float_up

GROUPS = (2, 5, 10, 20)
"""Sizes of groups whose guarantee is stated: a pair, a household, and larger ones."""
_EXACT = Context(prec=80)
_MARGIN = 1 + Fraction(1, 10**40)
"""Margin above the rounding error of 80 digits: epsilon is at least 1e-6."""
_FAR = 2000
"""An exponent of e beyond which no delta keeps the sum below 1."""


@lru_cache(maxsize=256)
def group_amount(guarantee: Guarantee, units: int) -> Amount | None:
    """The (epsilon, delta) of a group of units; None where delta would be 1 or more, which promises nothing.

    Kept: the manifest, the report and the README of a bundle each ask for the same ones.

    Args:
        guarantee: the guarantee of one unit.
        units: number of units that change together, at least 1.

    Raises:
        ValueError: there are no units.
    """
    if units < 1:
        raise ValueError("a group has at least one unit")
    epsilon, delta = Fraction(guarantee.epsilon), Fraction(repr(guarantee.delta))
    if units == 1:
        return Amount(epsilon, delta)
    if guarantee.mu is not None and not guarantee.approximate_delta:
        return Amount(GDP.epsilon((units * Fraction(guarantee.mu)) ** 2 / 2, delta), delta)
    if guarantee.rho is not None and not guarantee.approximate_delta:
        return Amount(ZCDP.epsilon(units**2 * Fraction(guarantee.rho), delta), delta)
    grown = delta * _powers(epsilon, units)
    return Amount(units * epsilon, grown) if grown < 1 else None


@lru_cache(maxsize=4096)
def group_cost(cost: Cost, units: int) -> Cost | None:
    """The cost of a release for a group of units; None where delta would be 1 or more.

    Without an approximate delta rho and mu^2/2 grow by units^2, and epsilon is that of the lesser of the two
    at the same delta; without any delta it grows by units. With an approximate delta, nothing but the grown
    (epsilon, delta) holds. But for outcomes of probability delta, its losses are those of an answer of pure
    epsilon (Kairouz, Oh and Viswanath 2015). So rho and mu^2/2 follow from epsilon, and all of delta is
    approximate.

    Args:
        cost: the cost for one unit.
        units: number of units that change together, at least 1.

    Raises:
        ValueError: there are no units.
    """
    if units < 1:
        raise ValueError("a group has at least one unit")
    if units == 1:
        return cost
    epsilon, delta = cost.amount.epsilon, cost.amount.delta
    if cost.approximate_delta:
        grown = Amount(units * epsilon, delta * _powers(epsilon, units))
        if grown.delta >= 1:
            return None
        return Cost(grown, *PURE.implied(grown.epsilon, mu_by_rho=True), grown.delta)
    rho, half = units**2 * cost.rho, cost.half_mu_squared
    half = None if half is None else units**2 * half
    if not delta:
        return Cost(Amount(units * epsilon), rho, half)
    least = ZCDP.epsilon(rho, delta)
    return Cost(Amount(least if half is None else min(least, GDP.epsilon(half, delta)), delta), rho, half)


def of_groups(guarantee: Guarantee) -> list[dict[str, float | None]]:
    """The guarantees of groups of several sizes, as JSON values; null where nothing is promised."""
    return [{"units": units, **_shown(guarantee, units)} for units in GROUPS]


def other_relation(guarantee: Guarantee) -> dict[str, object]:
    """The guarantee under the other relation, as JSON values: to exchange is to remove one and add another.

    Nothing follows for units that come or go from a guarantee for units that are exchanged: their number is
    taken to be public there.
    """
    if guarantee.neighbours == "replace_one":
        return {"neighbours": "add_remove", "epsilon": None, "delta": None}
    return {"neighbours": "replace_one", **_shown(guarantee, 2)}


def _shown(guarantee: Guarantee, units: int) -> dict[str, float | None]:
    amount = group_amount(guarantee, units)
    if amount is None:
        return {"epsilon": None, "delta": None}
    # The same delta as that of one unit is written as the config has it.
    same = amount.delta == Fraction(repr(guarantee.delta))
    return {
        "epsilon": float_up(amount.epsilon),
        "delta": guarantee.delta if same else float_up(amount.delta),
    }


def _powers(epsilon: Fraction, units: int) -> Fraction:
    """(e^(units epsilon) - 1)/(e^epsilon - 1), rounded up; capped where epsilon is extreme."""
    base = _EXACT.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    if not base:
        return Fraction(units)
    first, last = (Fraction(_EXACT.exp(min(base * k, Decimal(_FAR)))) - 1 for k in (1, units))
    return Fraction(units) if units == 1 else last / first * _MARGIN
