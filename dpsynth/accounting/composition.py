"""Composition: from journalled events to a guarantee, to the cost in a ledger, and to groups of units.

Accountants are strangers to mechanisms and to data.

Invariant: every epsilon leaves here rounded up, no figure of a cost is below the true one, and a release
whose answers keep to its plan never costs more than ``planned`` gave.

Group privacy: the guarantee for several units that change together. A group has k units where one person has
k rows, or k ids: between the table with all of them and the table with none lie k steps. Only epsilon without
delta grows by the factor k.

Without an approximate delta the bound follows from the events. Let k units change: the counts of a Gaussian
answer move by k times the sensitivity, and so do scores and the counts of a Laplace answer. The noise stays.
So epsilon grows by k, mu by k, and rho by k^2, for each event and for their sum (Bun and Steinke 2016,
proposition 1.9; Dong, Roth and Su 2022, theorem 2.14). The proof for discrete noise in ``measures`` holds of
k units as it stands, with k Delta for Delta. Epsilon is then taken at the same delta.

With an approximate delta the outcomes without failure differ at every step, so rho and mu don't grow that
way. The bound that always holds follows from (epsilon, delta)-DP alone, step by step:
(k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))) (Vadhan 2017, lemma 2.2). Under pure accounting
that is k epsilon, and the delta, if there is any, grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import exp

from dpsynth.accounting.amount import Amount, decimal_of, float_up
from dpsynth.accounting.calibration import noise_named
from dpsynth.accounting.events import Event, Guarantee, RecordedEvent, approximate_delta_of
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure, needed
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.subsampling import Sampling


@dataclass(frozen=True)
class Cost:
    """A release's cost.

    Attributes:
        half_mu_squared: mu^2/2 of Gaussian DP; None where the release is not bounded by it.
        approximate_delta: the probability of a larger loss (``dpsynth.accounting.events``), a
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
        Amount(self.rho, Fraction(0) if self.half_mu_squared is None else self.half_mu_squared)
        if not Amount(delta=self.approximate_delta).within(self.amount):
            raise ValueError("an approximate delta is a part of delta")

    @property
    def epsilon(self) -> Fraction:
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
        budget: epsilon, rho or mu^2/2.
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
        amount: the (epsilon, delta) that they add up to.
    """
    found = list(events)
    rho = sum((ZCDP.cost(e) for e in found), Fraction(0))
    approximate_delta = approximate_delta_of(found)
    if any(e.half_mu_squared is None for e in found):
        return Cost(amount, rho, None, approximate_delta)
    return Cost(amount, rho, sum((GDP.cost(e) for e in found), Fraction(0)), approximate_delta)


def amount_of(
    events: Iterable[Event], measure: Measure, delta: Fraction | None, set_aside: Fraction = Fraction(0)
) -> Amount:
    """The (epsilon, delta) that events add up to, epsilon rounded up.

    Epsilon is taken at delta less the deltas of the events; the sum of both holds (proof in
    ``dpsynth.accounting.events``). Under pure accounting the deltas of the events are all of
    delta.

    Args:
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


def cost_of(
    found: Sequence[RecordedEvent],
    measure: Measure,
    most: Fraction,
    delta: Fraction | None,
    sampling: Sampling | None = None,
) -> Cost:
    """The cost of a journal's events, wherever its release ends.

    Args:
        most: the epsilon of its plan, which rounding may exceed.
        delta: of the release on the sample, where there is one.
    """
    if not found:
        return NOTHING
    amount = amount_of(found, measure, delta)
    if sampling is not None:
        amount = sampling.whole(amount)
    return spent(found, Amount(min(amount.epsilon, most), amount.delta))


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


GROUPS = (2, 5, 10, 20)
"""Sizes of groups whose guarantee is stated: a pair, a household, and larger ones."""


PROFILE = tuple(Fraction(1, 10**power) for power in (1, 2, 3, 4, 5, 6, 8, 10))
"""Deltas of the privacy profile."""

FALSE_ALARMS = (0.001, 0.01, 0.05, 0.2)
"""Shares of false alarms for which the chance to recognise a unit is stated."""


_EXACT = Context(prec=80)


_MARGIN = 1 + Fraction(1, 10**40)
"""Margin above the rounding error of 80 digits: epsilon is at least 1e-6."""


_FAR = 2000
"""An exponent of e beyond which no delta keeps the sum below 1."""


@lru_cache(maxsize=256)
def group_amount(guarantee: Guarantee, units: int) -> Amount | None:
    """The (epsilon, delta) of a group of units; None where delta would be 1 or more, which promises nothing.

    Kept: the manifest, the report and the README of a bundle each ask for the same ones.

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


@lru_cache(maxsize=64)
def privacy_profile(guarantee: Guarantee) -> tuple[Amount, ...]:
    """The guarantee at several falling deltas, of which the approximate one is a part; or its own alone."""
    own = Amount(Fraction(guarantee.epsilon), Fraction(repr(guarantee.delta)))
    if guarantee.rho is None or not guarantee.delta:
        return (own,)
    total: Fraction = Fraction(guarantee.rho)
    measure: Measure = ZCDP
    if guarantee.mu is not None:
        total, measure = Fraction(guarantee.mu) ** 2 / 2, GDP
    aside = Fraction(guarantee.approximate_delta)
    at = {delta: Amount(measure.epsilon(total, delta - aside), delta) for delta in PROFILE if delta > aside}
    return tuple(sorted({**at, own.delta: own}.values(), key=lambda point: point.delta, reverse=True))


def hits_at_most(curve: Iterable[tuple[float, float]], false_alarms: float) -> float:
    """The largest chance to recognise one of two neighbours, at a chance of taking the other for it.

    One minus the trade-off function. Each (epsilon, delta) of a curve lets it be at most delta + e^epsilon x,
    and 1 - e^-epsilon (1 - delta - x) (Dong, Roth and Su 2022, proposition 2.12).
    """
    x = min(max(false_alarms, 0.0), 1.0)
    bounds = (min(d + exp(e) * x, 1 - exp(-e) * (1 - d - x)) for e, d in curve)
    return min(1.0, max(x, min(bounds)))


@lru_cache(maxsize=256)
def recognised_at_most(guarantee: Guarantee, false_alarms: float) -> float:
    """The largest chance to find out that a unit is in the table, for a share of false alarms, rounded up."""
    curve = [(min(float_up(a.epsilon), _FAR / 4), float_up(a.delta)) for a in privacy_profile(guarantee)]
    return min(1.0, hits_at_most(curve, false_alarms) * (1 + 1e-12))


def of_other_deltas(guarantee: Guarantee) -> list[dict[str, float]]:
    """The privacy profile, as JSON values."""
    return [
        {"epsilon": float_up(one.epsilon), "delta": float_up(one.delta)} for one in privacy_profile(guarantee)
    ]


def of_recognition(guarantee: Guarantee) -> list[dict[str, float]]:
    """Chances to recognise a unit, by how many false alarms are accepted, as JSON values."""
    return [{"false_alarms": x, "at_most": recognised_at_most(guarantee, x)} for x in FALSE_ALARMS]


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
    return {"epsilon": float_up(amount.epsilon), "delta": guarantee.delta if same else float_up(amount.delta)}


def _powers(epsilon: Fraction, units: int) -> Fraction:
    """(e^(units epsilon) - 1)/(e^epsilon - 1), rounded up; capped where epsilon is extreme."""
    if not epsilon:
        return Fraction(units)
    with localcontext(_EXACT):
        base = decimal_of(epsilon)
        first, last = (Fraction(min(base * k, Decimal(_FAR)).exp()) - 1 for k in (1, units))
    return Fraction(units) if units == 1 else last / first * _MARGIN
