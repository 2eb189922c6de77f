"""The protocol of local randomisers, with the coins and the odds that they share.

Each report *supports* some cells. A report supports the respondent's own cell with probability p, and each
other cell with probability q < p (Wang, Blocki, Li and Jha 2017: a pure protocol). So if C of n reports
support a cell, n (C/n - q)/(p - q) respondents are in it, without bias.

The odds are the largest ratio of the probabilities of one report under two answers: a rational number, which
e to the privacy loss is not. Partial sums of the exponential series lie below it, so that
``odds_within(epsilon) <= exp(epsilon)`` and ``exp(log_above(odds)) >= odds``.

Invariant: a draw has exactly the rational probability asked for, from the operating system's cryptographic
generator; there is no seed. Draws are by rejection, so their number of steps depends on the random bits, and
never on what they are drawn for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import count
from math import floor, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LARGEST_DIE = 2**62

_BITS = 64


def dice(sides: int, number: int) -> NDArray[np.int64]:
    """Independent uniform integers in 0..sides-1.

    A 64-bit word is cut to the bits that ``sides - 1`` needs, and drawn again if it is too large: so each
    side has the same probability, whatever their number.

    Raises:
        ValueError: there is no such die.
    """
    if not 1 <= sides <= LARGEST_DIE:
        raise ValueError("a die has 1 to 2^62 sides")
    bits = (sides - 1).bit_length()
    found = np.zeros(number, dtype=np.int64)
    if not bits:
        return found
    left = np.arange(number)
    while left.size:
        words = np.frombuffer(os.urandom(8 * left.size), dtype=np.uint64) >> np.uint64(_BITS - bits)
        found[left] = words.astype(np.int64)
        left = left[found[left] >= sides]
    return found


def coins(heads: Fraction, number: int) -> NDArray[np.bool_]:
    """Independent coins that come up True with exactly this probability.

    Raises:
        ValueError: no probability, or its denominator is above 2^62.
    """
    if not 0 <= heads <= 1:
        raise ValueError("a probability lies between 0 and 1")
    return np.asarray(dice(heads.denominator, number) < heads.numerator)


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


Answer = int | str
"""A randomised answer as it stands in a report: a number, or a text of letters and digits."""

Codes = NDArray[np.int64]


class Randomiser(Protocol):
    """A randomiser of one cell among several.

    Invariant: for any two cells and any answer, the ratio of its probabilities is at most ``odds``, and for
    some it is exactly that.
    """

    @property
    def name(self) -> str:
        """Its name for people."""
        ...

    @property
    def cells(self) -> int:
        """Number of cells."""
        ...

    @property
    def own(self) -> Fraction:
        """p: the probability that a report supports the respondent's own cell."""
        ...

    @property
    def other(self) -> Fraction:
        """q: the probability that a report supports another given cell."""
        ...

    @property
    def odds(self) -> Fraction:
        """The largest ratio of the probabilities of one answer under two cells, exactly."""
        ...

    @property
    def one_hot(self) -> bool:
        """True if a report supports exactly one cell; otherwise it supports each independently."""
        ...

    def randomise(self, codes: Codes) -> list[Answer]:
        """An independent randomised answer for each code in 0..cells-1."""
        ...

    def probability(self, answer: Answer, code: int) -> Fraction:
        """The exact probability of a well-formed answer, given the code and all public randomness in it."""
        ...

    def well_formed(self, answer: object) -> bool:
        """True if ``randomise`` could have returned the answer."""
        ...

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        """Number of well-formed answers that support each cell, int64[cells]."""
        ...


def cell_variance(randomiser: Randomiser, share: float) -> float:
    """Variance of the estimated share of a cell by one report, given the respondents.

    (s p(1-p) + (1-s) q(1-q))/(p-q)^2 for a cell with a share s; by n reports it is 1/n of that. For Warner's
    randomiser it is 1/(16 gamma^2) - 1/4, whatever s is, which with the share's own sampling variance
    s(1-s) is at most 1/(16 gamma^2).
    """
    p, q = float(randomiser.own), float(randomiser.other)
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


def mean_variance(randomiser: Randomiser) -> float:
    """The mean of ``cell_variance`` over the cells; their shares add up to 1, so it depends on no data."""
    return cell_variance(randomiser, 1.0 / randomiser.cells)
