"""Exact bounds between a privacy loss and the odds that it allows.

The odds of a randomiser are the largest ratio of the probabilities of one report under two answers. They are
a rational number, e to the privacy loss is not: so a loss is turned into odds by rounding down, and odds into
a loss by rounding up.

Invariant: ``odds_within(epsilon) <= exp(epsilon)``, and ``exp(log_above(odds)) >= odds``, both proved by
partial sums of the exponential series, which lie below it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import count
from math import floor, log

LARGEST = 30
"""Largest privacy loss that is turned into odds; the odds are 10^13 there."""
_STEP = Fraction(1, 2**32)
_PRECISION = Fraction(1, 2**60)


def _exp_below(value: Fraction) -> Fraction:
    """A rational below exp of a positive rational, by less than 2^-60 of it."""
    total = term = Fraction(1)
    for k in count(1):
        term = term * value / k
        total += term
        # From k > 2 value on, the rest of the series is below its last term.
        if k > 2 * value and term < _PRECISION:
            return total
    raise AssertionError


@cache
def odds_within(epsilon: Fraction) -> Fraction:
    """The largest multiple of 2^-32 that is proved to be at most exp(epsilon).

    >>> float(odds_within(Fraction(1)))
    2.7182818283...

    Raises:
        ValueError: epsilon is not above 0, or above 30.
    """
    if not 0 < epsilon <= LARGEST:
        raise ValueError(f"a local privacy loss is above 0 and at most {LARGEST}")
    return floor(_exp_below(Fraction(epsilon)) / _STEP) * _STEP


@cache
def log_above(odds: Fraction) -> Fraction:
    """A rational that is proved to be at least ln(odds), and exceeds it by less than 1e-12.

    >>> float(log_above(Fraction(3)))
    1.0986122886...

    Raises:
        ValueError: the odds are not above 1.
    """
    if odds <= 1:
        raise ValueError("odds are above 1")
    found = Fraction(log(odds))
    while _exp_below(found) < odds:
        found += Fraction(1, 2**42)
    return found
