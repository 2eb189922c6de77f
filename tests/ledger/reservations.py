"""Reservations of a release of pure noise, of which ten fill a cap, and what tests ask of their account."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, planned
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.slices import Slice, span_of
from dpsynth.ledger.balance import Balance, Reservation
from dpsynth.ledger.filters import Filter
from dpsynth.ledger.ledger import Ledger

EVENTS = [{"mechanism": "discrete Laplace", "scale": 10.0, "l1": 1}]


def cost(epsilon: str | Fraction, delta: str | Fraction = "0") -> Cost:
    """Of a release of pure noise, but for its delta."""
    return planned(PURE, "laplace", Fraction(epsilon), Amount(Fraction(epsilon), Fraction(delta)))


ASK = Reservation(
    release_id="r1",
    dataset="people",
    unit="one row",
    neighbours="add_remove",
    cap=Amount(Fraction(1), Fraction(1, 10**6)),
    filter=None,
    suits=PURE,
    cost=cost("0.1", "1e-7"),
    release="yearly",
    spec="0" * 64,
)

LARGE_CAP = Amount(Fraction(3), Fraction(1, 10**5))
HALF, TENTH, NONE = Fraction(1, 2), Fraction(1, 10), Fraction(0)


def asking(release_id: str, epsilon: str = "0.1", delta: str = "0", **other: object) -> Reservation:
    """Another release, and what is not as usual of it."""
    return replace(ASK, release_id=release_id, cost=cost(epsilon, delta), **other)  # type: ignore[arg-type]


def sought_cost(
    epsilon: Fraction = Fraction(1),
    delta: Fraction = Fraction(1, 10**7),
    share: Fraction = HALF,
    measure: Measure = GDP,
) -> Cost:
    """Of a release that plans with a share of its delta for lapses."""
    approximate_delta = delta if measure == PURE and share else delta * share
    if measure == PURE:
        return planned(measure, "laplace", epsilon, Amount(epsilon, approximate_delta), approximate_delta)
    noise = "laplace" if measure == ZCDP else "gaussian"
    budget = measure.budget(epsilon, delta - approximate_delta)
    return planned(measure, noise, budget, Amount(epsilon, delta), approximate_delta)


def seeking(release_id: str, by: Filter = GDP, **terms: object) -> Reservation:
    """A release that finds values."""
    asked = sought_cost(**terms)  # type: ignore[arg-type]
    return replace(ASK, release_id=release_id, cap=LARGE_CAP, filter=by, cost=asked)


def month(label: str, column: str = "visited") -> Slice:
    """The slice of a year, quarter, month, week or day."""
    span = span_of(label)
    assert span is not None
    return Slice(column, label, *span)


def account(ledger: Ledger, dataset: str = "people") -> Balance:
    """A dataset's account, which is there."""
    found = ledger.balance(dataset)
    assert found is not None
    return found


def left(ledger: Ledger) -> Fraction:
    """The largest epsilon that still fits."""
    return account(ledger).largest_epsilon(Fraction(0), PURE)


USES: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.reserve(asking("new")),
    lambda ledger: ledger.settle("r1", cost("0.1"), EVENTS),
    lambda ledger: ledger.abandon("r1", None, []),
    lambda ledger: ledger.change_cap("people", Amount(), "a test"),
    lambda ledger: ledger.reserve(asking("r1")),
    lambda ledger: ledger.balance("people"),
    lambda ledger: ledger.balances(),
    lambda ledger: ledger.release("r1"),
    lambda ledger: ledger.state("r1"),
    lambda ledger: ledger.rows(),
    lambda ledger: ledger.read().clock_behind,
    lambda ledger: ledger.read().foreseen(asking("new")),
]
"""All that can be done with a ledger in which r1 is reserved; the first four change it."""
