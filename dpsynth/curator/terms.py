"""The terms of a curator's answers: neighbours, measure, budget and noise.

Invariant: noise is calibrated so that its cost is at most the price that was paid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import CalibratedNoise, Calibration
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.noises import GAUSSIAN, LAPLACE, Noise, NoiseName, noise_named
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent
from dpsynth.curator import noise
from dpsynth.errors import ConfigError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Noised:
    """Integers with noise at a price.

    Attributes:
        bought: the noise that the price buys.
    """

    bought: CalibratedNoise

    @property
    def event(self) -> GaussianEvent | LaplaceEvent:
        """The charge."""
        return self.bought.event

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise, in rows."""
        return self.bought.stddev

    def draw(self, exact: Counts) -> Counts:
        """The integers plus noise."""
        adding: dict[Noise, Callable[[Counts, float], Counts]]
        adding = {GAUSSIAN: noise.add_gaussian, LAPLACE: noise.add_laplace}
        return adding[self.bought.noise](exact, self.bought.scale)


@dataclass(frozen=True)
class Terms:
    """The terms of a curator's answers.

    Attributes:
        neighbours: relation and unit, which decide every sensitivity.
        measure: the measure of losses.
        budget: total cost allowed, under the measure.
        noise: "gaussian" or "laplace", for counts.
        delta: total delta allowed for partition selection, in addition to the measure's delta.
        kept: the part of the budget that is kept for later questions.

    Raises:
        ConfigError: the noise has no cost under the measure.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    noise: NoiseName
    delta: Fraction = Fraction(0)
    kept: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse noise that the measure can't account for."""
        if self.noise not in self.measure.noises:
            (allowed,) = self.measure.noises
            raise ConfigError(
                f"privacy.noise {self.noise} has no cost under the accounting in force "
                f"({self.measure.name}), which counts {allowed} noise only. Use privacy.noise {allowed}, or "
                "zCDP, which counts both: privacy.delta with privacy.accountant zcdp."
            )

    @property
    def calibration(self) -> Calibration:
        """The calibration of noise to prices."""
        return Calibration(self.neighbours, self.measure, noise_named(self.noise))

    def counts(self, price: Fraction) -> Noised:
        """The noise that a price buys for the counts of a marginal."""
        return Noised(self.calibration.counts(price))

    def distances(self, price: Fraction, number: int) -> Noised:
        """The noise that a price buys for so many distances."""
        return Noised(self.calibration.distances(price, number))

    def sums(self, price: Fraction, limit: int) -> Noised:
        """The noise that a price buys for sums to which a row adds at most a limit."""
        return Noised(self.calibration.sums(price, limit))

    def persons(self, price: Fraction) -> Noised:
        """The noise that a price buys for counts of units, each counted once."""
        return Noised(self.calibration.counted_once.counts(price))

    def choosing(self, price: Fraction, sensitivity: int) -> ExponentialEvent:
        """The exponential mechanism that a price buys for scores of a sensitivity."""
        return self.calibration.choices(price, sensitivity).event

    def quantiles(self, price: Fraction) -> ExponentialEvent:
        """The exponential mechanism that a price buys for quantiles of disjoint runs of values."""
        return self.calibration.quantiles(price).event

    def selection(self, price: Fraction, delta: Fraction) -> SelectionEvent | ThresholdEvent:
        """The partition selection that a price and a delta buy."""
        return self.calibration.values(price, delta).event
