"""Releases as they are made, with scales whose losses have a unit in common, so that the truth is known."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import spent
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent, RecordedEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.ledger.views import Composed

OWN_DELTA = Fraction(1, 10**9)


def release(measure: Measure, events: Sequence[RecordedEvent]) -> Composed:
    """One that has ended, at what its answers come to."""
    total = sum((measure.cost(e) for e in events), Fraction(0))
    delta = Fraction(0) if measure == PURE else OWN_DELTA
    amount = Amount(measure.epsilon(total, delta or None), delta)
    return Composed(spent(events, amount), tuple(events))


def gaussian(size: float = 1.0) -> Composed:
    """Gaussian noise and choices; a size of 1 is about epsilon 1 at 1e-9."""
    wide, narrow = GaussianEvent(60.0 / size, 2), GaussianEvent(45.0 / size, 2)
    return release(GDP, [wide] * 8 + [ExponentialEvent(50.0 / size, 1)] * 6 + [narrow] * 6)


def laplace(size: float = 1.0) -> Composed:
    """Laplace noise and choices, counted by rho."""
    return release(ZCDP, [LaplaceEvent(25.0 / size, 1)] * 10 + [ExponentialEvent(50.0 / size, 1)] * 5)


def pure(size: float = 1.0) -> Composed:
    """Laplace noise and choices, counted by epsilon: 1 for a size of 1."""
    return release(PURE, [LaplaceEvent(12.5 / size, 1)] * 10 + [ExponentialEvent(50.0 / size, 1)] * 5)


def mixed(times: int, size: float = 1.0) -> list[Composed]:
    """So many releases, a third of each kind in turn."""
    kinds = (gaussian(size), laplace(size), pure(size))
    return [kinds[n % 3] for n in range(times)]


def all_events(releases: Sequence[Composed]) -> Counter[RecordedEvent]:
    """How often each answer was given."""
    return Counter(event for release in releases for event in release.events)
