"""Composition: from journalled events to the guarantee that they add up to.

Accountants are strangers to mechanisms and to data. Every epsilon leaves here rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.events import Event, Guarantee, approximate_delta_of
from dpsynth.accounting.measures import Measure, needed
from dpsynth.accounting.neighbours import Neighbours


def amount_of(
    events: Iterable[Event], measure: Measure, delta: Fraction | None, set_aside: Fraction = Fraction(0)
) -> Amount:
    """The (epsilon, delta) that events add up to, epsilon rounded up.

    Epsilon is taken at delta less the deltas of the events; the sum of both holds (proof in
    ``dpsynth.accounting.partition_selection``). Under pure accounting the deltas of the events are all of
    delta.

    Args:
        events: every charge.
        measure: the measure in which losses add up.
        delta: the total asked for; not needed under pure accounting.
        set_aside: the part of delta that was set aside for the deltas of the events; it counts in full, even
            if they sum to less.

    Raises:
        ValueError: an event has no cost under the measure, there is no delta where the measure needs
            one, or the events leave nothing of it.
    """
    found = list(events)
    total, approximate_delta = (
        sum((measure.cost(e) for e in found), Fraction(0)),
        max(set_aside, approximate_delta_of(found)),
    )
    if not measure.needs_delta:
        return Amount(total, approximate_delta)
    given = needed(delta)
    if approximate_delta >= given:
        raise ValueError("the deltas of the events leave nothing of the delta asked for")
    return Amount(measure.epsilon(total, given - approximate_delta), given)


def compose(
    events: Iterable[Event],
    measure: Measure,
    delta: Fraction | None,
    neighbours: Neighbours,
    set_aside: Fraction = Fraction(0),
) -> Guarantee:
    """The guarantee that a sequence of adaptively chosen events adds up to; arguments as ``amount_of``.

    Costs add up under every measure (sequential composition), also when each event was
    chosen from earlier answers within a fixed total (Feldman and Zrnic 2021 for zCDP; Smith
    and Thakurta 2022 and Koskela, Tobaben and Honkela 2023 for Gaussian DP).

    A guarantee holds figures that were fixed beforehand. So a release that counts by mu does not publish the
    sum of the events' own rho: it depends on the number of choices, and no bound below mu^2/2 was set to
    it. The part of ``set_aside`` that the events took is not published either.

    Raises:
        ValueError: as ``amount_of``.
    """
    found = list(events)
    amount, approximate_delta = (
        amount_of(found, measure, delta, set_aside),
        float_up(approximate_delta_of(found)),
    )
    if approximate_delta_of(found) <= set_aside:
        # The float nearest to the config's decimal, which is how it is printed.
        approximate_delta = float(set_aside)
    elif delta is not None and approximate_delta_of(found) <= delta:
        approximate_delta = min(approximate_delta, float(delta))
    epsilon = float_up(amount.epsilon)
    if not measure.needs_delta:
        return Guarantee(
            epsilon,
            approximate_delta,
            None,
            neighbours.unit,
            neighbours.relation,
            measure.accountant,
            approximate_delta=approximate_delta,
        )
    # A total bounds rho, not the sum of the events' own rho, which would tell how many choices there were.
    total = sum((measure.cost(e) for e in found), Fraction(0))
    return Guarantee(
        epsilon=epsilon,
        # The float nearest to the config's decimal, which is how it is printed.
        delta=float(amount.delta),
        rho=float_up(measure.rho(total)),
        unit=neighbours.unit,
        neighbours=neighbours.relation,
        accountant=measure.accountant,
        mu=measure.mu(total),
        approximate_delta=approximate_delta,
    )
