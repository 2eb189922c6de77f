"""Optimised local hashing: the cell is hashed to few values, and the hash is randomised.

Each respondent draws a hash function of her own, hashes her cell to one of g values, and gives the function
with the k-ary randomised response of the value (Wang, Blocki, Li and Jha 2017). A report stays short however
many cells there are, and g near e^epsilon + 1 has the same variance as optimised unary encoding.

Hash functions are polynomials of degree 2 with random coefficients modulo the prime 2^31 - 1, taken modulo g.
So the hashes of any three cells are independent, and uniform but for g/2^31. That alone makes estimates
unbiased and gives their variance; privacy doesn't rest on the hash at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.local.randomisers.direct import DirectResponse
from dpsynth.wings.local.randomisers.randomiser import Answer, Codes, dice

PRIME = 2**31 - 1
"""Modulus of the hash functions; no domain has as many cells."""
MOST_VALUES = 2**16
_HASHES_A_BATCH = 2**21
_DIGITS = 8
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class LocalHashing:
    """Randomised response on the hash of the cell; an answer is three coefficients and a value, in hex.

    Sensitivity: one respondent has one cell, hence one hash under the function that she drew.
    Distribution: the function is uniform and independent of the cell; the value is that of ``response``.
    Cost: epsilon of ``response``: given the function, the cell moves only which value is the own one.

    Attributes:
        cells: number of cells, at least 2.
        response: randomised response among g values.
    """

    cells: int
    response: DirectResponse

    def __post_init__(self) -> None:
        """Reject more cells or values than there are hashes for."""
        if not 2 <= self.cells < PRIME or self.response.cells > MOST_VALUES:
            raise ValueError("local hashing has 2 to 2^31 - 2 cells, and hashes them to at most 2^16 values")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> LocalHashing:
        """The one whose odds are at most so much, with g nearest to odds + 1."""
        values = min(max(round(odds) + 1, 2), MOST_VALUES)
        return cls(cells, DirectResponse.within(values, odds))

    @property
    def name(self) -> str:
        """Its name for people."""
        return "optimised local hashing"

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

    @property
    def one_hot(self) -> bool:
        """False: the hashes of cells are independent."""
        return False

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
