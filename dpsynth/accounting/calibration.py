"""Calibration: the noise that a price buys for each kind of answer.

Plans and the curator use the same calibration, so a forecast names the noise that is drawn.
Invariant: every price buys noise that costs at most that price, by the sensitivities of the neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Generic, TypeVar

from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    mechanism_of,
)
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.noises import Noise
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent
from dpsynth.accounting.scales import exponential_within

E_co = TypeVar("E_co", bound=RecordedEvent, covariant=True)


@dataclass(frozen=True)
class Calibrated(Generic[E_co]):
    """A mechanism calibrated to a price.

    Attributes:
        event: the event that is charged.
        moved: the sensitivity, in words with its value.
    """

    event: E_co
    moved: str

    @property
    def mechanism(self) -> str:
        """The mechanism's name, for people."""
        if isinstance(self.event, ThresholdEvent):
            return f"threshold of {self.event.threshold:,} units"
        return mechanism_of(self.event)

    @property
    def scale(self) -> float:
        """Sigma, b, or the divisor of the exponential mechanism's scores, in rows."""
        return self.event.scale


@dataclass(frozen=True)
class CalibratedNoise(Calibrated[GaussianEvent | LaplaceEvent]):
    """Noise of integers calibrated to a price.

    Attributes:
        noise: its kind.
    """

    noise: Noise

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise, in rows."""
        return sqrt(self.noise.variance(self.scale))

    @property
    def expected_error(self) -> float:
        """Mean absolute error of one number, in rows."""
        return self.noise.mean_absolute_error(self.scale)


@dataclass(frozen=True)
class Calibration:
    """The calibration of mechanisms to prices under a measure.

    Attributes:
        near: the neighbour relation and the unit, which decide every sensitivity.
        measure: the measure of the prices.
        noise: the kind of noise of counts and distances.
    """

    near: Neighbours
    measure: Measure
    noise: Noise

    @property
    def counted_once(self) -> Calibration:
        """The calibration for counts of units, each counted once and in one cell."""
        return replace(self, near=self.near.counted_once)

    def counts(self, price: Fraction) -> CalibratedNoise:
        """Noise of the counts of one marginal, or of any counts in which each row falls into one cell."""
        moved = self.noise.moved(self.near.l1, self.near.l2_squared)
        return self._noise(price, self.near.l1, self.near.l2_squared, moved)

    def distances(self, price: Fraction, number: int = 1) -> CalibratedNoise:
        """Noise of so many L1 distances of marginals, at a price for all of them.

        One unit moves each by at most ``near.l1``, either way: all of them by at most number l1 in L1 and
        number l1^2 in squared L2.
        """
        each = self.near.l1
        return self._noise(price, number * each, number * each**2, _distance_moved(each))

    def sums(self, price: Fraction, limit: int) -> CalibratedNoise:
        """Noise of sums by group, to which one row adds or takes at most a limit, in steps.

        One unit changes sums by ``near.l1`` rows at most, and all of these rows may move one sum in one
        direction.
        """
        moved = self.near.l1 * limit
        return self._noise(
            price, moved, moved**2, f"sums move by at most {self.near.l1} times the limit of a row"
        )

    def choices(self, price: Fraction, sensitivity: int | None = None) -> Calibrated[ExponentialEvent]:
        """An exponential mechanism whose scores move by a sensitivity; by that of a distance if left out."""
        moves = self.near.l1 if sensitivity is None else sensitivity
        return Calibrated(exponential_within(price, self.measure, moves), _distance_moved(moves))

    def quantiles(self, price: Fraction) -> Calibrated[ExponentialEvent]:
        """An exponential mechanism over ranks of values; one for all quantiles of disjoint runs of values."""
        event = exponential_within(price, self.measure, self.near.l1)
        return Calibrated(event, f"ranks move by at most {self.near.l1}")

    def values(self, price: Fraction, delta: Fraction) -> Calibrated[SelectionEvent | ThresholdEvent]:
        """The partition selection of values at a price and a delta.

        A unit moves the number of units of at most ``near.l1`` values, each by one: a person counts once
        for a value, and has at most ``max_rows`` of them, or twice as many when exchanged.
        """
        event = self.noise.selection_within(price, delta, self.measure, self.near.l1)
        return Calibrated(event, f"at most {self.near.l1} values' numbers of units move, each by 1")

    def _noise(self, price: Fraction, l1: int, l2_squared: int, moved: str) -> CalibratedNoise:
        return CalibratedNoise(self.noise.within(price, self.measure, l1, l2_squared), moved, self.noise)


def _distance_moved(by: int) -> str:
    return f"L1 distance of counts moves by at most {by}"
