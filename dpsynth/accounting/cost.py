"""What a release counts for in a ledger, under each way of adding up.

Invariant: every figure is an exact rational that is not below the true cost, and a release whose
answers keep to what was planned never comes to more than ``planned`` said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.events import Event, Measure, cost, lapse_of
from dpsynth.accounting.rounding import PI

_ROUNDING = 1 + Fraction(1, 1 << 40)
"""Costs of events are rounded up to doubles one by one; their sum may pass a bound by this factor."""


@dataclass(frozen=True)
class Cost:
    """A release's cost.

    Attributes:
        amount: (epsilon, delta).
        rho: of zCDP.
        half_mu_squared: mu^2/2 of Gaussian DP; None where the release is not bounded by it.
        lapse: probability of telling more than that (``dpsynth.accounting.partition_selection``), a part
            of the amount's delta: but for it the release is (epsilon, delta - lapse)-DP.

    Raises:
        TypeError, ValueError: a figure is a float, or negative, or the lapse is above the amount's delta.
    """

    amount: Amount
    rho: Fraction
    half_mu_squared: Fraction | None
    lapse: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Reject inexact figures."""
        Amount(self.rho, Fraction(0) if self.half_mu_squared is None else self.half_mu_squared)
        if not Amount(delta=self.lapse).within(self.amount):
            raise ValueError("a lapse is a part of delta")

    @property
    def pure(self) -> bool:
        """Whether it is epsilon-DP, but for its lapse."""
        return self.amount.delta == self.lapse

    def within(self, other: Cost) -> bool:
        """Whether no figure exceeds another's; a missing figure is above all."""
        if not self.amount.within(other.amount) or self.rho > other.rho or self.lapse > other.lapse:
            return False
        if other.half_mu_squared is None:
            return True
        return self.half_mu_squared is not None and self.half_mu_squared <= other.half_mu_squared


NOTHING = Cost(Amount(), Fraction(0), Fraction(0))


def planned(
    measure: Measure, noise: str, budget: Fraction, amount: Amount, lapse: Fraction = Fraction(0)
) -> Cost:
    """What a release counts for that may spend a budget under a measure.

    Args:
        measure: how it adds up its own losses.
        noise: "gaussian" or "laplace".
        budget: epsilon, rho or mu^2/2.
        amount: (epsilon, delta) that it states for itself.
        lapse: what its events may have of delta, all together.

    Pure: epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke 2016, proposition 1.4) and has a mu^2/2 of
    at most pi epsilon^2/4 (``events.LaplaceEvent``). zCDP with Laplace noise: mu^2/2 is at most
    pi/2 times rho for each event; with Gaussian noise there is no such bound for small sigma.
    Gaussian DP: rho is at most mu^2/2 for each event.
    """
    if measure == "pure":
        rho = budget**2 / 2 * _ROUNDING
        return Cost(amount, rho, PI / 2 * rho * _ROUNDING, lapse)
    if measure == "gdp":
        return Cost(amount, budget * _ROUNDING, budget, lapse)
    return Cost(amount, budget, PI / 2 * budget * _ROUNDING if noise == "laplace" else None, lapse)


def spent(events: Iterable[Event], amount: Amount) -> Cost:
    """What a release counts for whose journal holds these events.

    Args:
        events: every charge.
        amount: (epsilon, delta) that they add up to.
    """
    found = list(events)
    rho = sum((cost(e, "zcdp") for e in found), Fraction(0))
    lapse = lapse_of(found)
    if any(e.half_mu_squared is None for e in found):
        return Cost(amount, rho, None, lapse)
    return Cost(amount, rho, sum((cost(e, "gdp") for e in found), Fraction(0)), lapse)
