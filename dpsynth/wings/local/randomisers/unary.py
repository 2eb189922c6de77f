"""Optimised unary encoding: a bit for each cell, each randomised by itself (Wang, Blocki, Li and Jha 2017).

The own cell's bit is a fair coin, and each other cell's bit is set with probability q. Of all ways to
randomise bits one by one this has the least variance for a rare cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.local.randomisers.randomiser import Answer, Codes, coins

_STEP = 2**48
_BITS_A_BATCH = 2**22
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class UnaryEncoding:
    """A bit for each of k cells; an answer is the bits in hexadecimal, the first cell's first.

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

    def __post_init__(self) -> None:
        """Reject a randomiser that hides nothing, or says nothing."""
        if self.cells < 2 or not 0 < self.other < Fraction(1, 2):
            raise ValueError("unary encoding has two cells or more, and q between 0 and 1/2")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> UnaryEncoding:
        """The most accurate one whose odds are at most so much: q >= 1/(odds + 1)."""
        return cls(cells, Fraction(ceil(_STEP / (odds + 1)), _STEP))

    @property
    def name(self) -> str:
        """Its name for people."""
        return "optimised unary encoding"

    @property
    def own(self) -> Fraction:
        """1/2."""
        return Fraction(1, 2)

    @property
    def odds(self) -> Fraction:
        """(1 - q)/q."""
        return (1 - self.other) / self.other

    @property
    def one_hot(self) -> bool:
        """False: each bit is drawn by itself."""
        return False

    @cached_property
    def _digits(self) -> int:
        return 2 * ((self.cells + 7) // 8)

    def randomise(self, codes: Codes) -> list[Answer]:
        """Randomised bits for each code."""
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
