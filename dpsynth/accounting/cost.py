"""The cost of a release in a ledger, under each measure.

Invariant: every figure is an exact rational that is not below the true cost, and a release whose
answers keep to its plan never costs more than ``planned`` gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth.accounting.amount import Amount
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


def charge(reserved: Cost, journal: Cost) -> Cost:
    """The cost of a release that has ended, of its reservation and the cost of its journal.

    A release may be ended after its answers were seen, so what it is charged must add up answer by answer.
    Rho, mu^2/2, approximate deltas and pure epsilons do. An epsilon at a delta doesn't: that of all answers
    up to an end holds only for an end that was fixed beforehand. To end a release at the first answer at
    which its loss exceeds its epsilon so far has a probability of several deltas. But a release that keeps
    to its budget has the (epsilon, delta) that it reserved wherever it ends. So that is its amount, unless
    it is pure. Amounts that are fixed as releases begin add up, whatever the outputs (Rogers, Roth, Ullman
    and Vadhan 2016), also where releases run at the same time (Haney, Shoemate, Tian, Vadhan, Vyrros and Xu
    2023).
    """
    return journal if journal.pure else replace(journal, amount=reserved.amount)


def spent(events: Iterable[RecordedEvent], amount: Amount) -> Cost:
    """The cost of a release whose journal holds these events.

    Args:
        events: every charge.
        amount: the (epsilon, delta) that they add up to.
    """
    found = list(events)
    rho = sum((ZCDP.cost(e) for e in found), Fraction(0))
    approximate_delta = approximate_delta_of(found)
    if any(e.half_mu_squared is None for e in found):
        return Cost(amount, rho, None, approximate_delta)
    return Cost(amount, rho, sum((GDP.cost(e) for e in found), Fraction(0)), approximate_delta)
