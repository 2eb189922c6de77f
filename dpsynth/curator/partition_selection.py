"""Optimal partition selection: values that may be published, by the number of units that hold each.

OpenDP has no such mechanism, so this one is our own. Invariant: a value is selected with an exact
probability, a multiple of 2^-128; no float and no seed decides it, every bit comes from the
operating system's generator.

The probabilities are those of Desfontaines, Voss and Gipson (2022), theorem 1, rounded to the safe side.
With p(0) = 0, p(n + 1) is the largest probability that keeps the outcomes for one value, of n and of n + 1
units, within (epsilon0, delta0) of each other, in both directions, selected or not:

    p(n + 1) <= e^epsilon0 p(n) + delta0,    1 - p(n) <= e^epsilon0 (1 - p(n + 1)) + delta0,

and at most 1. A rational number just below replaces e^epsilon0, and delta0, p(n + 1) and
the numbers subtracted from 1 are rounded so that both hold for the multiples of 2^-128 themselves. The
other two inequalities hold as p rises.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.partition_selection import SelectionEvent

BITS = 128
"""A probability is a whole number of 2^-128."""
_ONE = 1 << BITS
_LARGEST_EPSILON = 64
"""Largest epsilon0 that is used; beyond it nearly every value of two units is selected anyway."""


def select(units: NDArray[np.int64], event: SelectionEvent) -> NDArray[np.bool_]:
    """Mask of the values that are selected, each independently.

    Sensitivity: given by the caller in ``event.partitions``, the most values whose number of units
    changes, each by one.
    Distribution: a value of n units is selected with probability p(n), see above; one of none never.
    Cost: ``accounting.partition_selection.SelectionEvent``.

    Args:
        units: int64[values], the number of units of each, at least 0.
        event: the event with epsilon0 and delta0.
    """
    levels, which = np.unique(units, return_inverse=True)
    chances = list(chances_at(levels.tolist(), event))
    found = (secrets.randbits(BITS) < chances[level] for level in which.tolist())
    return np.fromiter(found, np.bool_, len(units))


def chances_at(levels: list[int], event: SelectionEvent) -> Iterator[int]:
    """The probability of selection at each of some rising numbers of units, in units of 2^-128."""
    growth = _exponential_below(min(Fraction(event.epsilon0), Fraction(_LARGEST_EPSILON)))
    delta = min(int(Fraction(event.delta0) * _ONE), _ONE)
    n, chance, settled = 0, 0, False
    for level in levels:
        while n < level and not settled:
            n, before = n + 1, chance
            chance = _next(chance, growth, delta)
            settled = chance == before
        yield chance


def _next(chance: int, growth: int, delta: int) -> int:
    left = _ONE - chance - delta
    if left <= 0:
        return _ONE
    return min((growth * chance >> BITS) + delta, _ONE + (-left << BITS) // growth)


def _exponential_below(x: Fraction) -> int:
    """A whole number of 2^-128 at most e^x and hardly below it, for x from 0: the exponential series.

    All terms are positive and each is rounded down, so their sum is below that of the series.
    """
    total, term, k = _ONE, _ONE, 0
    while term:
        k += 1
        term = term * x.numerator // (x.denominator * k)
        total += term
    return total
