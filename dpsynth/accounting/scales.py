"""The least noise within a price.

Invariant: a scale is rounded towards more noise: the cost of the event, rounded up, is at most the price.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, nextafter
from typing import TypeVar

from dpsynth.accounting.amount import float_down, float_up
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent

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
