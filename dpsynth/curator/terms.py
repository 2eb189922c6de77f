"""On what terms a curator answers: what is protected, how costs add up, which noise counts get.

Invariant: every price that is turned into noise here buys at most what was paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Measure,
    exponential_within,
    gaussian_within,
    laplace_within,
    selection_within,
    threshold_within,
)
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent
from dpsynth.curator import noise
from dpsynth.domain.measurement import mean_absolute_error, noise_variance
from dpsynth.errors import ConfigError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Noised:
    """Integers with noise at a price.

    Attributes:
        event: what is charged.
        kind: "gaussian" or "laplace".
        scale: sigma or b, in rows.
    """

    event: GaussianEvent | LaplaceEvent
    kind: Literal["gaussian", "laplace"]
    scale: float

    def draw(self, exact: Counts) -> Counts:
        """The integers plus noise."""
        add: Callable[[Counts, float], Counts]
        add = noise.add_gaussian if self.kind == "gaussian" else noise.add_laplace
        return add(exact, self.scale)

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise, in rows."""
        return float(np.sqrt(noise_variance(self.kind, self.scale)))

    @property
    def mean_absolute_error(self) -> float:
        """Expected absolute value of the noise, in rows."""
        return mean_absolute_error(self.kind, self.scale)


@dataclass(frozen=True)
class Terms:
    """On what terms a curator answers.

    Attributes:
        neighbours: relation and unit, which decide every sensitivity.
        measure: "pure", "zcdp" or "gdp".
        budget: total cost allowed, under the measure.
        noise: "gaussian" or "laplace", for counts.
        delta: total delta allowed for naming values that nobody knew, beside that of the measure.

    Raises:
        ConfigError: the noise has no cost under the measure.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    noise: Literal["gaussian", "laplace"]
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse noise that the measure can't account for."""
        if (self.measure, self.noise) in {("pure", "gaussian"), ("gdp", "laplace")}:
            allowed = "laplace" if self.measure == "pure" else "gaussian"
            raise ConfigError(
                f"privacy.noise {self.noise} has no cost under the accounting in force ({self.measure}), "
                f"which counts {allowed} noise only. Use privacy.noise {allowed}, or zCDP, which counts "
                "both: privacy.delta with privacy.accountant zcdp."
            )

    def noised(self, price: Fraction, l1: int, l2_squared: int) -> Noised:
        """The noise that a price buys for integers.

        Args:
            price: what the answer may cost, under the measure.
            l1: their sensitivity in L1.
            l2_squared: their sensitivity in squared L2.
        """
        if self.noise == "gaussian":
            event = gaussian_within(price, l2_squared, self.measure)
            return Noised(event, "gaussian", event.sigma)
        spread = laplace_within(price, self.measure, l1)
        return Noised(spread, "laplace", spread.scale)

    def choosing(self, price: Fraction, sensitivity: int) -> ExponentialEvent:
        """The exponential mechanism that a price buys for scores of a sensitivity."""
        return exponential_within(price, self.measure, sensitivity)

    def naming(self, price: Fraction, delta: Fraction) -> SelectionEvent | ThresholdEvent:
        """The partition selection that a price and a delta buy.

        A unit moves the number of units of at most ``neighbours.l1`` values, each by one: a person
        counts once for a value, and has at most ``max_rows`` of them, or twice as many when exchanged.
        """
        within = threshold_within if self.noise == "gaussian" else selection_within
        return within(price, delta, self.measure, self.neighbours.l1)
