"""Local randomisers: what a respondent does to one answer before it leaves her side.

Each report *supports* some cells. A report supports the respondent's own cell with probability p, and each
other cell with probability q < p (Wang, Blocki, Li and Jha 2017: a pure protocol). So if C of n reports
support a cell, n (C/n - q)/(p - q) respondents are in it, without bias.

The odds are the largest ratio of the probabilities of one report under two answers: a rational number, which
e to the privacy loss is not. Partial sums of the exponential series lie below it, so that
``odds_within(epsilon) <= exp(epsilon)`` and ``exp(log_above(odds)) >= odds``.

Invariant: pure arithmetic on one code and on random bits. A draw has exactly the rational probability asked
for, from the operating system's cryptographic generator; there is no seed, and no float decides a report.
Draws are by rejection, so their number of steps depends on the random bits, and never on what they are drawn
for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import count
from math import ceil, floor, log
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

LARGEST_DIE = 2**62
LARGEST = 30
"""Largest privacy loss that is turned into odds; the odds are 10^13 there."""
UNARY_CELLS = 1024
"""Most cells of a unary encoding that is chosen: it has a bit for each, and local hashing is as accurate."""
PRIME = 2**31 - 1
"""Modulus of the hash functions; no domain has as many cells."""
MOST_VALUES = 2**16
_STEP = Fraction(1, 2**32)
_PRECISION = Fraction(1, 2**60)
_UNIT = 2**48
_BITS_A_BATCH = 2**22
_HASHES_A_BATCH = 2**21
_DIGITS = 8
_HEX = frozenset("0123456789abcdef")

Answer = int | str
"""A randomised answer as it stands in a report: a number, or a text of letters and digits."""
Codes = NDArray[np.int64]


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
        words = np.frombuffer(os.urandom(8 * left.size), dtype=np.uint64) >> np.uint64(64 - bits)
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


class Randomiser(Protocol):
    """A randomiser of one cell among several.

    Invariant: for any two cells and any answer, the ratio of its probabilities is at most ``odds``, and for
    some it is exactly that.
    """

    @property
    def name(self) -> str:
        """Its name for people."""

    @property
    def cells(self) -> int:
        """Number of cells."""

    @property
    def own(self) -> Fraction:
        """p: the probability that a report supports the respondent's own cell."""

    @property
    def other(self) -> Fraction:
        """q: the probability that a report supports another given cell."""

    @property
    def odds(self) -> Fraction:
        """The largest ratio of the probabilities of one answer under two cells, exactly."""

    @property
    def one_hot(self) -> bool:
        """True if a report supports exactly one cell; otherwise it supports each independently."""

    def randomise(self, codes: Codes) -> list[Answer]:
        """An independent randomised answer for each code in 0..cells-1."""

    def probability(self, answer: Answer, code: int) -> Fraction:
        """The exact probability of a well-formed answer, given the code and all public randomness in it."""

    def well_formed(self, answer: object) -> bool:
        """True if ``randomise`` could have returned the answer."""

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        """Number of well-formed answers that support each cell, int64[cells]."""


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


@dataclass(frozen=True)
class DirectResponse:
    """Direct randomised response: the truth, or with probability ``lie`` a uniform cell, maybe the true one.

    With two cells it is Warner's (1965) randomised response: the truth with probability 1/2 + gamma. With two
    fair coins, the first of which says whether the second answers, gamma is 1/4. With k cells it is k-ary
    randomised response (Kairouz, Bonawitz and Ramage 2016).

    Sensitivity: one respondent has one cell.
    Distribution: the own cell with probability 1 - lie + lie/k, each other one with lie/k, exactly.
    Cost: epsilon = ln(1 + k (1 - lie)/lie), the ratio of the two.

    Attributes:
        cells: k, at least 2.
        lie: between 0 and 1, neither of them.
        name: its name for people.
    """

    cells: int
    lie: Fraction
    name: str = "k-ary randomised response"
    one_hot: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.cells < 2 or not 0 < self.lie < 1:
            raise ValueError("randomised response has two cells or more, and lies sometimes")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> DirectResponse:
        """The most accurate one whose odds are at most so much: lie >= k/(odds - 1 + k)."""
        least = Fraction(cells) / (odds - 1 + cells)
        return cls(cells, Fraction(ceil(least * _UNIT), _UNIT))

    @classmethod
    def warner(cls, gamma: Fraction) -> DirectResponse:
        """Warner's: the truth with probability 1/2 + gamma, for gamma between 0 and 1/2."""
        return cls(2, 1 - 2 * gamma, "Warner's randomised response")

    @classmethod
    def two_coin(cls) -> DirectResponse:
        """The two-coin protocol: heads, the truth; tails, a second coin answers. Its odds are 3."""
        return cls(2, Fraction(1, 2), "two-coin protocol")

    @property
    def own(self) -> Fraction:
        """1 - lie + lie/k."""
        return 1 - self.lie + self.lie / self.cells

    @property
    def other(self) -> Fraction:
        """lie/k."""
        return self.lie / self.cells

    @property
    def odds(self) -> Fraction:
        """p/q."""
        return self.own / self.other

    def drawn(self, codes: Codes) -> Codes:
        return np.where(coins(self.lie, codes.size), dice(self.cells, codes.size), codes)

    def randomise(self, codes: Codes) -> list[Answer]:
        return list(self.drawn(codes).tolist())

    def probability(self, answer: Answer, code: int) -> Fraction:
        """P or q."""
        return self.own if answer == code else self.other

    def well_formed(self, answer: object) -> bool:
        return type(answer) is int and 0 <= answer < self.cells

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        return np.bincount(np.array(answers, dtype=np.int64), minlength=self.cells).astype(np.int64)


@dataclass(frozen=True)
class UnaryEncoding:
    """Optimised unary encoding: a bit for each of k cells (Wang, Blocki, Li and Jha 2017).

    An answer is the bits in hexadecimal, the first cell's first. The own cell's bit is a fair coin: of all
    ways to randomise bits one by one this has the least variance for a rare cell.

    Sensitivity: one respondent has one cell; another cell changes two bits.
    Distribution: independent bits, set with probability 1/2 (own cell) or ``other``, exactly.
    Cost: epsilon = ln((1 - other)/other): the ratio is largest where the own bit is set and that of the
        cell that it is compared with is not, 1/2 (1 - other) against other 1/2.

    Attributes:
        cells: k, at least 2.
        other: q, between 0 and 1/2, neither of them.
    """

    cells: int
    other: Fraction
    name: ClassVar[str] = "optimised unary encoding"
    own: ClassVar[Fraction] = Fraction(1, 2)
    one_hot: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.cells < 2 or not 0 < self.other < Fraction(1, 2):
            raise ValueError("unary encoding has two cells or more, and q between 0 and 1/2")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> UnaryEncoding:
        """The most accurate one whose odds are at most so much: q >= 1/(odds + 1)."""
        return cls(cells, Fraction(ceil(_UNIT / (odds + 1)), _UNIT))

    @property
    def odds(self) -> Fraction:
        """(1 - q)/q."""
        return (1 - self.other) / self.other

    @cached_property
    def _digits(self) -> int:
        return 2 * ((self.cells + 7) // 8)

    def randomise(self, codes: Codes) -> list[Answer]:
        found: list[Answer] = []
        batch = max(_BITS_A_BATCH // self.cells, 1)
        for start in range(0, codes.size, batch):
            part = codes[start : start + batch]
            bits = coins(self.other, part.size * self.cells).reshape(part.size, self.cells)
            bits[np.arange(part.size), part] = coins(self.own, part.size)
            found += [line.tobytes().hex() for line in np.packbits(bits, axis=1)]
        return found

    def probability(self, answer: Answer, code: int) -> Fraction:
        """The product over the bits."""
        found = Fraction(1)
        for cell, bit in enumerate(self._bits([answer])[0].tolist()):
            heads = self.own if cell == code else self.other
            found *= heads if bit else 1 - heads
        return found

    def well_formed(self, answer: object) -> bool:
        """True for hexadecimal digits of so many bits, with nothing beyond the last cell."""
        if not isinstance(answer, str) or len(answer) != self._digits or not _HEX.issuperset(answer):
            return False
        beyond = -self.cells % 8
        return not int(answer[-2:], 16) & ((1 << beyond) - 1)

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        """Number of answers in which each bit is set."""
        found = np.zeros(self.cells, dtype=np.int64)
        batch = max(_BITS_A_BATCH // self.cells, 1)
        for start in range(0, len(answers), batch):
            found += self._bits(answers[start : start + batch]).sum(axis=0, dtype=np.int64)
        return found

    def _bits(self, answers: Sequence[Answer]) -> NDArray[np.uint8]:
        packed = np.frombuffer(bytes.fromhex("".join(map(str, answers))), dtype=np.uint8)
        return np.unpackbits(packed.reshape(len(answers), -1), axis=1, count=self.cells)


@dataclass(frozen=True)
class LocalHashing:
    """Optimised local hashing: k-ary randomised response on a hash of the cell (Wang and others 2017).

    An answer is the three coefficients of the hash function and the value, in hex: short however many cells
    there are. With g near e^epsilon + 1 values the variance is that of optimised unary encoding. Hash
    functions are polynomials of degree 2 with random coefficients modulo the prime 2^31 - 1, taken modulo g.
    So the hashes of any three cells are independent, and uniform but for g/2^31. That alone makes estimates
    unbiased and gives their variance; privacy doesn't rest on the hash at all.

    Sensitivity: one respondent has one cell, hence one hash under the function that she drew.
    Distribution: the function is uniform and independent of the cell; the value is that of ``response``.
    Cost: epsilon of ``response``: given the function, the cell moves only which value is the own one.

    Attributes:
        cells: number of cells, at least 2.
        response: randomised response among g values.
    """

    cells: int
    response: DirectResponse
    name: ClassVar[str] = "optimised local hashing"
    one_hot: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 2 <= self.cells < PRIME or self.response.cells > MOST_VALUES:
            raise ValueError("local hashing has 2 to 2^31 - 2 cells, and hashes them to at most 2^16 values")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> LocalHashing:
        """The one whose odds are at most so much, with g nearest to odds + 1."""
        values = min(max(round(odds) + 1, 2), MOST_VALUES)
        return cls(cells, DirectResponse.within(values, odds))

    @property
    def own(self) -> Fraction:
        """The probability that the response is the own hash."""
        return self.response.own

    @property
    def other(self) -> Fraction:
        """1/g, but for g/2^31 of it."""
        return Fraction(1, self.response.cells)

    @property
    def odds(self) -> Fraction:
        """The odds of the response."""
        return self.response.odds

    def randomise(self, codes: Codes) -> list[Answer]:
        """A function and a randomised hash for each code."""
        functions = dice(PRIME, 3 * codes.size).reshape(3, codes.size)
        values = self.response.drawn(self._hashed(functions, codes))
        return [
            f"{a:08x}{b:08x}{c:08x}{v:04x}" for a, b, c, v in zip(*functions.tolist(), values, strict=True)
        ]

    def probability(self, answer: Answer, code: int) -> Fraction:
        """The probability of the value, given the function."""
        functions, values = self._read([answer])
        own = self._hashed(functions, np.array([code], dtype=np.int64))
        return self.response.probability(int(values[0]), int(own[0]))

    def well_formed(self, answer: object) -> bool:
        """True for three coefficients below the prime, and a value."""
        if not isinstance(answer, str) or len(answer) != 3 * _DIGITS + 4 or not _HEX.issuperset(answer):
            return False
        ends = range(0, 3 * _DIGITS, _DIGITS)
        below = all(int(answer[start : start + _DIGITS], 16) < PRIME for start in ends)
        return below and int(answer[3 * _DIGITS :], 16) < self.response.cells

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        """Number of answers whose value is the hash of each cell under the answer's own function."""
        functions, values = self._read(answers)
        found = np.zeros(self.cells, dtype=np.int64)
        cells = np.arange(self.cells, dtype=np.int64)
        batch = max(_HASHES_A_BATCH // self.cells, 1)
        for start in range(0, values.size, batch):
            some = functions[:, start : start + batch, None]
            hashed = self._hashed(some, cells[None, :])
            found += (hashed == values[start : start + batch, None]).sum(axis=0)
        return found

    def _read(self, answers: Sequence[Answer]) -> tuple[Codes, Codes]:
        texts = [str(answer) for answer in answers]
        starts = range(0, 3 * _DIGITS, _DIGITS)
        functions = [[int(text[start : start + _DIGITS], 16) for text in texts] for start in starts]
        values = [int(text[3 * _DIGITS :], 16) for text in texts]
        return np.array(functions, dtype=np.int64).reshape(3, -1), np.array(values, dtype=np.int64)

    def _hashed(self, functions: Codes, codes: Codes) -> Codes:
        """(a x + b) x + c modulo the prime, modulo g; no product exceeds 2^62."""
        a, b, c = functions
        inner = (a * codes + b) % PRIME
        return np.asarray(((inner * codes + c) % PRIME) % self.response.cells)


@cache
def best(cells: int, odds: Fraction) -> Randomiser:
    """The randomiser of least predicted variance within odds; the one with shorter reports among equals.

    The mean variance over all cells doesn't depend on the data, so it is known beforehand.
    """
    found: list[Randomiser] = [DirectResponse.within(cells, odds), LocalHashing.within(cells, odds)]
    if cells <= UNARY_CELLS:
        found.append(UnaryEncoding.within(cells, odds))
    return min(found, key=mean_variance)


def protocol(name: str, cells: int, odds: Fraction, gamma: Fraction | None = None) -> Randomiser:
    """The randomiser that a config names, for a number of cells.

    Args:
        name: "auto", "warner", "two_coin", "k_ary", "unary" or "hashing".
        cells: number of cells.
        odds: the largest odds allowed; "two_coin", and "warner" with a gamma, have their own.
        gamma: for "warner": the truth with probability 1/2 + gamma; None: the largest within the odds.

    Raises:
        ValueError: the protocol is for two cells, and there are more.
    """
    if name in ("warner", "two_coin") and cells != 2:
        raise ValueError(f"{name} is for two cells")
    if name == "two_coin":
        return DirectResponse.two_coin()
    if name == "warner":
        largest = (odds - 1) / (2 * (odds + 1))
        return DirectResponse.warner(largest if gamma is None else gamma)
    if name == "k_ary":
        return DirectResponse.within(cells, odds)
    if name == "unary":
        return UnaryEncoding.within(cells, odds)
    return LocalHashing.within(cells, odds) if name == "hashing" else best(cells, odds)
