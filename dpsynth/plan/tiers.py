"""Tiers: the parts of a release that are asked for one audience after the other.

The first tier is asked for the audience of the smallest epsilon, within its budget. Each further tier has
what the next audience's budget has beyond that, and the answers so far besides. So an audience's guarantee is
that of all answers up to the end of its tier, and all audiences together bear the last one's.

To answer the larger audience first and to add noise for the smaller one would give the same variances of a
marginal that both get: under Gaussian DP precisions add up. But then what is chosen for the smaller audience
would depend on choices at the larger one's epsilon. In this order each bundle is a function of what its own
audience pays for, and needs no argument but composition.

Invariant: budgets are exact, and rise from tier to tier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.subsampling import Sampling
from dpsynth.config.audiences import Promise


@dataclass(frozen=True)
class Tier:
    """One audience's part of a release; the only one where there are no audiences.

    Attributes:
        audience: the name of the audience; "" where there are none.
        epsilon, delta: its guarantee, for all answers up to the end of the tier.
        budget: the budget of all these answers, under the measure.
    """

    audience: str
    epsilon: Fraction
    delta: Fraction | None
    budget: Fraction

    def spent_delta(self, measure: Measure, selection: Fraction) -> Fraction:
        """The delta of the guarantee; under pure accounting only that of partition selection."""
        if not measure.needs_delta:
            return selection
        return Fraction(0) if self.delta is None else self.delta


def tiers_of(
    promises: Sequence[Promise], measure: Measure, selection: Fraction, sampling: Sampling | None = None
) -> tuple[Tier, ...]:
    """The tiers of a release, in the order in which they are asked.

    Args:
        promises: the guarantee of each audience, in rising order.
        measure: the measure of losses, the same for all tiers.
        selection: the part of each delta for partition selection, which the first tier asks.
        sampling: the sample of units; the budget is then that of the release on the sample.
    """
    found = []
    for promise in promises:
        epsilon, delta = promise.epsilon, promise.delta
        if sampling is not None:
            of_sample = sampling.of_sample(Amount(epsilon, delta or Fraction(0)))
            epsilon, delta = of_sample.epsilon, None if delta is None else of_sample.delta
        budget = measure.budget(epsilon, _beside(delta, selection))
        found.append(Tier(promise.audience, promise.epsilon, promise.delta, budget))
    return tuple(found)


def part_of(tiers: Sequence[Tier], place: int) -> Fraction:
    """The budget of one tier by itself: what its audience's has beyond that of the tier before."""
    return tiers[place].budget - (tiers[place - 1].budget if place else 0)


def _beside(delta: Fraction | None, selection: Fraction) -> Fraction | None:
    return None if delta is None else delta - selection
