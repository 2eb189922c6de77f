"""Kinds of noise of counts: their distributions and their calibration to a price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, pi, sqrt
from statistics import NormalDist
from typing import Literal

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent
from dpsynth.accounting.scales import gaussian_within, laplace_within, selection_within, threshold_within

NoiseName = Literal["gaussian", "laplace"]
"""Written in configs; stored in measurement files."""


class Noise(ABC):
    """A kind of noise.

    Attributes:
        name: its name as written in configs and stored.
        mechanism: its name for people.
        by_l2: true if its cost goes by the squared L2 distance of all numbers that get it together.
        mu_by_rho: true if mu^2/2 of an answer is at most pi/2 times its rho, whatever its scale.
    """

    name: NoiseName
    mechanism: str
    by_l2: bool
    mu_by_rho: bool

    @abstractmethod
    def variance(self, scale: float) -> float:
        """Variance of one draw."""

    @abstractmethod
    def mean_absolute_error(self, scale: float) -> float:
        """Expected |x| of one draw."""

    @abstractmethod
    def deviations(self, cells: int, chance: float) -> float:
        """The number of standard deviations that all of so many draws stay below, but for a small chance."""

    @abstractmethod
    def moved(self, l1: int, l2_squared: int) -> str:
        """The sensitivity of counts that its cost goes by, in words."""

    @abstractmethod
    def within(
        self, price: Fraction, measure: Measure, l1: int, l2_squared: int
    ) -> GaussianEvent | LaplaceEvent:
        """The least noise within a price for integers of two sensitivities."""

    @abstractmethod
    def selection_within(
        self, price: Fraction, delta: Fraction, measure: Measure, partitions: int
    ) -> SelectionEvent | ThresholdEvent:
        """The partition selection that goes with this noise, within a price and a delta."""


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """The discrete Gaussian; its scale is sigma.

    Its variance is at most sigma^2, and equal to it within 1e-6 from sigma = 1 on (Canonne, Kamath and
    Steinke 2020, fact 18); sigma^2 is used.
    """

    name = "gaussian"
    mechanism = "discrete Gaussian"
    by_l2 = True
    mu_by_rho = False

    def variance(self, scale: float) -> float:
        """sigma^2."""
        return scale**2

    def mean_absolute_error(self, scale: float) -> float:
        """sigma sqrt(2/pi), its continuous value."""
        return sqrt(scale**2 * 2 / pi)

    def deviations(self, cells: int, chance: float) -> float:
        """The normal's quantile at chance/cells."""
        return -NormalDist().inv_cdf(chance / cells)

    def moved(self, l1: int, l2_squared: int) -> str:
        """The L2 distance."""
        return f"L2 distance of counts at most {sqrt(l2_squared):.6g}"

    def within(self, price: Fraction, measure: Measure, l1: int, l2_squared: int) -> GaussianEvent:
        """``gaussian_within``."""
        return gaussian_within(price, l2_squared, measure)

    def selection_within(
        self, price: Fraction, delta: Fraction, measure: Measure, partitions: int
    ) -> ThresholdEvent:
        """``threshold_within``."""
        return threshold_within(price, delta, measure, partitions)


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """The discrete Laplace, P(x) ~ t^|x| with t = exp(-1/b); its scale is b."""

    name = "laplace"
    mechanism = "discrete Laplace"
    by_l2 = False
    mu_by_rho = True

    def variance(self, scale: float) -> float:
        """2t/(1-t)^2."""
        t = exp(-1.0 / scale)
        return 2.0 * t / (1.0 - t) ** 2

    def mean_absolute_error(self, scale: float) -> float:
        """2t/(1 - t^2)."""
        t = exp(-1.0 / scale)
        return 2.0 * t / (1.0 - t * t)

    def deviations(self, cells: int, chance: float) -> float:
        """The bound from P[x > d] = exp(-d/b)/2, where the standard deviation is sqrt(2) b.

        A sum of several Laplace noises has lighter tails than one, so the number holds for sums too.
        """
        return log(cells / (2 * chance)) / sqrt(2)

    def moved(self, l1: int, l2_squared: int) -> str:
        """The L1 distance."""
        return f"L1 distance of counts at most {l1}"

    def within(self, price: Fraction, measure: Measure, l1: int, l2_squared: int) -> LaplaceEvent:
        """``laplace_within``."""
        return laplace_within(price, measure, l1)

    def selection_within(
        self, price: Fraction, delta: Fraction, measure: Measure, partitions: int
    ) -> SelectionEvent:
        """``selection_within``."""
        return selection_within(price, delta, measure, partitions)


GAUSSIAN, LAPLACE = GaussianNoise(), LaplaceNoise()

NOISES: tuple[Noise, ...] = (GAUSSIAN, LAPLACE)
"""All kinds."""


def noise_named(name: str) -> Noise:
    """The noise of a name; ValueError where there is none."""
    for noise in NOISES:
        if noise.name == name:
            return noise
    raise ValueError(f"unknown noise {name!r}")
