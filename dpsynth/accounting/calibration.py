"""Calibration: kinds of noise, and the noise that a price buys for each kind of answer.

Plans and the curator use the same calibration, so a forecast names the noise that is drawn.

Invariant: every price buys noise that costs at most that price, by the sensitivities of the neighbours. A
scale is rounded towards more noise: the cost of the event, rounded up, is at most the price.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, log, nextafter, pi, sqrt
from statistics import NormalDist
from typing import Generic, Literal, TypeVar

from dpsynth.accounting.amount import float_down, float_up
from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    SelectionEvent,
    ThresholdEvent,
    mechanism_of,
)
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours

_Kind = TypeVar("_Kind", LaplaceEvent, GaussianEvent, ExponentialEvent, SelectionEvent)


@lru_cache(maxsize=4096)
def laplace_within(price: Fraction, measure: Measure, l1: int) -> LaplaceEvent:
    """The least discrete Laplace noise whose cost does not exceed a price."""
    guess = l1 / measure.laplace_epsilon(float(_positive(price)))
    return _within(price, measure, guess, lambda scale: LaplaceEvent(scale, l1))


@lru_cache(maxsize=4096)
def gaussian_within(price: Fraction, l2_squared: int, measure: Measure) -> GaussianEvent:
    """The least discrete Gaussian noise whose cost does not exceed a price; ValueError where none has one."""
    guess = measure.gaussian_sigma(l2_squared / (2 * float(_positive(price))))
    return _within(price, measure, guess, lambda sigma: GaussianEvent(sigma, l2_squared))


def exponential_within(price: Fraction, measure: Measure, sensitivity: int) -> ExponentialEvent:
    """The sharpest exponential mechanism whose cost does not exceed a price."""
    guess = 2 * sensitivity / measure.exponential_epsilon(float(_positive(price)))
    return _within(price, measure, guess, lambda scale: ExponentialEvent(scale, sensitivity))


def selection_within(price: Fraction, delta: Fraction, measure: Measure, partitions: int) -> SelectionEvent:
    """The most likely partition selection whose cost does not exceed a price and a delta.

    Raises:
        ValueError: the price is not positive, or the delta not between 0 and 1.
    """
    spend, delta0 = float(_positive(price)), float_down(_proper(delta) / partitions)
    # Each partition has an even part of the price.
    guess = measure.laplace_epsilon(spend / partitions)
    return _within(price, measure, guess, lambda epsilon0: SelectionEvent(epsilon0, delta0, partitions), 0.0)


def threshold_within(price: Fraction, delta: Fraction, measure: Measure, partitions: int) -> ThresholdEvent:
    """The least discrete Gaussian noise and threshold within a price and a delta.

    Raises:
        ValueError: the price is not positive, the delta is not between 0 and 1 or is too small for
            doubles, or Gaussian noise has no cost under the measure.
    """
    sigma = gaussian_within(price, partitions, measure).sigma
    # Beyond 40 deviations the bound on the tail falls no further.
    low, high = 1, 2 + ceil(40 * Fraction(sigma) + 1)
    if ThresholdEvent(sigma, high, partitions).delta > _proper(delta):
        raise ValueError("no threshold keeps to a delta as small as this")
    while high - low > 1:
        middle = (low + high) // 2
        over = ThresholdEvent(sigma, middle, partitions).delta > delta
        low, high = (middle, high) if over else (low, middle)
    return ThresholdEvent(sigma, high, partitions)


def _within(
    price: Fraction, measure: Measure, guess: float, event_of: Callable[[float], _Kind], cheaper: float = inf
) -> _Kind:
    """The event of the first scale, from just before ``guess`` to ``cheaper``, within the price."""
    scale = guess * (1 - 1e-15 if cheaper else 1 + 1e-15)
    while True:
        event = event_of(scale)
        exact = measure.exact_cost(event)
        if exact is not None and float_up(exact) <= price:
            return event
        scale = nextafter(scale, cheaper)


def _positive(price: Fraction) -> Fraction:
    if price <= 0:
        raise ValueError("a price must be positive")
    return price


def _proper(delta: Fraction) -> Fraction:
    if not 0 < delta < 1:
        raise ValueError("the delta of a selection lies between 0 and 1")
    return delta


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
        return scale**2

    def mean_absolute_error(self, scale: float) -> float:
        """sigma sqrt(2/pi), its continuous value."""
        return sqrt(scale**2 * 2 / pi)

    def deviations(self, cells: int, chance: float) -> float:
        """The normal's quantile at chance/cells."""
        return -NormalDist().inv_cdf(chance / cells)

    def moved(self, l1: int, l2_squared: int) -> str:
        return f"L2 distance of counts at most {sqrt(l2_squared):.6g}"

    def within(self, price: Fraction, measure: Measure, l1: int, l2_squared: int) -> GaussianEvent:
        return gaussian_within(price, l2_squared, measure)

    def selection_within(
        self, price: Fraction, delta: Fraction, measure: Measure, partitions: int
    ) -> ThresholdEvent:
        return threshold_within(price, delta, measure, partitions)


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """The discrete Laplace, P(x) ~ t^|x| with t = exp(-1/b); its scale is b."""

    name = "laplace"
    mechanism = "discrete Laplace"
    by_l2 = False
    mu_by_rho = True

    def variance(self, scale: float) -> float:
        t = exp(-1.0 / scale)
        return 2.0 * t / (1.0 - t) ** 2

    def mean_absolute_error(self, scale: float) -> float:
        t = exp(-1.0 / scale)
        return 2.0 * t / (1.0 - t * t)

    def deviations(self, cells: int, chance: float) -> float:
        """The bound from P[x > d] = exp(-d/b)/2, where the standard deviation is sqrt(2) b.

        A sum of several Laplace noises has lighter tails than one, so the number holds for sums too.
        """
        return log(cells / (2 * chance)) / sqrt(2)

    def moved(self, l1: int, l2_squared: int) -> str:
        return f"L1 distance of counts at most {l1}"

    def within(self, price: Fraction, measure: Measure, l1: int, l2_squared: int) -> LaplaceEvent:
        return laplace_within(price, measure, l1)

    def selection_within(
        self, price: Fraction, delta: Fraction, measure: Measure, partitions: int
    ) -> SelectionEvent:
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


RANDOMISED = "randomised response"
"""Noise of answers that respondents randomise themselves: about normal, as a sum over many respondents."""


def noise_variance(noise: str, scale: float) -> float:
    """Variance of one draw of discrete noise.

    Args:
        noise: "gaussian" (discrete Gaussian, scale = sigma), "laplace" (discrete Laplace,
            scale = b), "randomised response" (scale = standard deviation of a cell on average) or "none"
            (an exact public number).
        scale: the distribution's parameter, in counts.
    """
    if noise == RANDOMISED:
        return scale**2
    return 0.0 if noise == "none" else noise_named(noise).variance(scale)


@lru_cache(maxsize=256)
def mean_absolute_error(noise: str, scale: float) -> float:
    """Expected |x| of one draw of discrete noise, in counts; arguments as of ``noise_variance``."""
    if noise == RANDOMISED:
        return sqrt(2 / pi) * scale
    return 0.0 if noise == "none" else noise_named(noise).mean_absolute_error(scale)


OUTSIDE = 0.05
"""Chance that a distance lies outside of its limits; each pair of limits holds by itself."""


def reach(noise: str, scale: float) -> float:
    """Half the width of the 95 % interval of a noisy distance, in rows."""
    return noise_named(noise).deviations(1, OUTSIDE / 2) * sqrt(noise_variance(noise, scale))


E_co = TypeVar("E_co", bound=RecordedEvent, covariant=True)


@dataclass(frozen=True)
class Calibrated(Generic[E_co]):
    """A mechanism calibrated to a price.

    Attributes:
        moved: the sensitivity, in words with its value.
    """

    event: E_co
    moved: str

    @property
    def mechanism(self) -> str:
        if isinstance(self.event, ThresholdEvent):
            return f"threshold of {self.event.threshold:,} units"
        return mechanism_of(self.event)

    @property
    def scale(self) -> float:
        """Sigma, b, or the divisor of the exponential mechanism's scores, in rows."""
        return self.event.scale


@dataclass(frozen=True)
class CalibratedNoise(Calibrated[GaussianEvent | LaplaceEvent]):
    """Noise of integers calibrated to a price."""

    noise: Noise

    @property
    def stddev(self) -> float:
        return sqrt(self.noise.variance(self.scale))

    @property
    def expected_error(self) -> float:
        """Mean absolute error of one number, in rows."""
        return self.noise.mean_absolute_error(self.scale)


@dataclass(frozen=True)
class Calibration:
    """The calibration of mechanisms to prices under a measure."""

    near: Neighbours
    measure: Measure
    noise: Noise

    @property
    def counted_once(self) -> Calibration:
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

    def parities(self, price: Fraction, number: int) -> CalibratedNoise:
        """Noise of so many parities, to each of which one row adds 1 or takes 1, at a price for all of them.

        One unit changes each by ``near.l1`` rows at most, and all of these may move it in one direction.
        """
        each = self.near.l1
        return self._noise(price, number * each, number * each**2, f"a parity moves by at most {each}")

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
