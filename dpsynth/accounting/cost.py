"""The cost of a release in a ledger, under each measure.

Invariant: every figure is an exact rational that is not below the true cost, and a release whose
answers keep to its plan never costs more than ``planned`` gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.beside_noise import PLD, admitted
from dpsynth.accounting.events import RecordedEvent, approximate_delta_of
from dpsynth.accounting.measures import GDP, ZCDP, Measure
from dpsynth.accounting.noises import noise_named


@dataclass(frozen=True)
class Cost:
    """A release's cost.

    Attributes:
        amount: (epsilon, delta).
        rho: rho of zCDP.
        half_mu_squared: mu^2/2 of Gaussian DP; None where the release is not bounded by it.
        approximate_delta: the probability of a larger loss (``dpsynth.accounting.partition_selection``), a
            part of the amount's delta: but for it the release is (epsilon, delta - approximate delta)-DP.

    Raises:
        TypeError: a figure is a float.
        ValueError: a figure is negative, or the approximate delta is above the amount's delta.
    """

    amount: Amount
    rho: Fraction
    half_mu_squared: Fraction | None
    approximate_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Reject inexact figures."""
        Amount(self.rho, Fraction(0) if self.half_mu_squared is None else self.half_mu_squared)
        if not Amount(delta=self.approximate_delta).within(self.amount):
            raise ValueError("an approximate delta is a part of delta")

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of the amount."""
        return self.amount.epsilon

    @property
    def pure(self) -> bool:
        """True if it is epsilon-DP, but for its approximate delta."""
        return self.amount.delta == self.approximate_delta

    def within(self, other: Cost) -> bool:
        """True if no figure exceeds the other cost's; a missing figure exceeds every number."""
        if (
            not self.amount.within(other.amount)
            or self.rho > other.rho
            or self.approximate_delta > other.approximate_delta
        ):
            return False
        if other.half_mu_squared is None:
            return True
        return self.half_mu_squared is not None and self.half_mu_squared <= other.half_mu_squared


NOTHING = Cost(Amount(), Fraction(0), Fraction(0))


def planned(
    measure: Measure, noise: str, budget: Fraction, amount: Amount, approximate_delta: Fraction = Fraction(0)
) -> Cost:
    """The cost of a release that may spend a budget under a measure.

    Args:
        measure: the measure in which it adds up its own losses.
        noise: "gaussian" or "laplace".
        budget: epsilon, rho or mu^2/2.
        amount: the (epsilon, delta) of its own guarantee.
        approximate_delta: the part of delta that its events may take together.
    """
    return Cost(amount, *measure.implied(budget, noise_named(noise).mu_by_rho), approximate_delta)


def spent(events: Iterable[RecordedEvent], amount: Amount, measure: Measure = GDP) -> Cost:
    """The cost of a release whose journal holds these events.

    Args:
        events: every charge.
        amount: the (epsilon, delta) that they add up to.
        measure: the measure of the release. Where choices were counted beside Gaussian noise, they count so
            in a ledger too, if they have it in the journal; those of a release that ended early may not.
    """
    found = list(events)
    counted = PLD if measure == PLD and admitted(found) else GDP
    rho = sum((ZCDP.cost(e) for e in found), Fraction(0))
    approximate_delta = approximate_delta_of(found)
    if any(e.half_mu_squared is None for e in found):
        return Cost(amount, rho, None, approximate_delta)
    return Cost(amount, rho, sum((counted.cost(e) for e in found), Fraction(0)), approximate_delta)
