"""Composition: from journalled events to the guarantee that they add up to.

Accountants are strangers to mechanisms and to data. Every epsilon leaves here rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.events import Event, lapse_of
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.measures import ZCDP, Measure, needed
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.rounding import float_up


def amount_of(events: Iterable[Event], measure: Measure, delta: Fraction | None) -> Amount:
    """(epsilon, delta) that events add up to, epsilon rounded up.

    The deltas of the events themselves are taken out of delta before epsilon is taken at the rest; the
    sum of both holds (proof in ``dpsynth.accounting.partition_selection``). Under pure accounting they are
    all of it.

    Args:
        events: every charge.
        measure: how losses add up.
        delta: the total asked for; nothing of it is needed under pure accounting.

    Raises:
        ValueError: an event has no cost under the measure, there is no delta where the measure needs
            one, or the events leave nothing of it.
    """
    found = list(events)
    total, lapse = sum((measure.cost(e) for e in found), Fraction(0)), lapse_of(found)
    if not measure.needs_delta:
        return Amount(total, lapse)
    given = needed(delta)
    if lapse >= given:
        raise ValueError("the deltas of the events leave nothing of the delta asked for")
    return Amount(measure.epsilon(total, given - lapse), given)


def compose(
    events: Iterable[Event], measure: Measure, delta: Fraction | None, neighbours: Neighbours
) -> Guarantee:
    """The guarantee that a sequence of adaptively chosen events adds up to.

    Costs add up under every measure (sequential composition), also when each event was
    chosen from earlier answers within a fixed total (Feldman and Zrnic 2021 for zCDP; Smith
    and Thakurta 2022 and Koskela, Tobaben and Honkela 2023 for Gaussian DP).

    Raises:
        ValueError: as ``amount_of``.
    """
    found = list(events)
    amount, lapse = amount_of(found, measure, delta), float_up(lapse_of(found))
    if delta is not None and lapse_of(found) <= delta:
        # Not above the float nearest to the config's decimal, which is how it is printed.
        lapse = min(lapse, float(delta))
    epsilon = float_up(amount.epsilon)
    if not measure.needs_delta:
        return Guarantee(
            epsilon, lapse, None, neighbours.unit, neighbours.relation, measure.accountant, lapse=lapse
        )
    return Guarantee(
        epsilon=epsilon,
        # The float nearest to the config's decimal, which is how it is printed.
        delta=float(amount.delta),
        rho=float_up(sum((ZCDP.cost(e) for e in found), Fraction(0))),
        unit=neighbours.unit,
        neighbours=neighbours.relation,
        accountant=measure.accountant,
        mu=measure.mu(sum((measure.cost(e) for e in found), Fraction(0))),
        lapse=lapse,
    )
