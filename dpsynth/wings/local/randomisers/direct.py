"""Direct randomised response: the own cell, or now and then a cell drawn at random.

With two cells it is Warner's (1965) randomised response: the truth with probability 1/2 + gamma. With two
fair coins, the first of which says whether the second answers, gamma is 1/4. With k cells it is k-ary
randomised response (Kairouz, Bonawitz and Ramage 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.local.randomisers.randomiser import Answer, Codes, coins, dice

TWO = 2
_STEP = 2**48


@dataclass(frozen=True)
class DirectResponse:
    """The truth, or with probability ``lie`` a uniform cell, which may be the true one.

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

    def __post_init__(self) -> None:
        """Reject a randomiser that hides nothing, or says nothing."""
        if self.cells < TWO or not 0 < self.lie < 1:
            raise ValueError("randomised response has two cells or more, and lies sometimes")

    @classmethod
    def within(cls, cells: int, odds: Fraction) -> DirectResponse:
        """The most accurate one whose odds are at most so much: lie >= k/(odds - 1 + k)."""
        least = Fraction(cells) / (odds - 1 + cells)
        return cls(cells, Fraction(ceil(least * _STEP), _STEP))

    @classmethod
    def warner(cls, gamma: Fraction) -> DirectResponse:
        """Warner's: the truth with probability 1/2 + gamma, for gamma between 0 and 1/2."""
        return cls(TWO, 1 - 2 * gamma, "Warner's randomised response")

    @classmethod
    def two_coin(cls) -> DirectResponse:
        """The two-coin protocol: heads, the truth; tails, a second coin answers. Its odds are 3."""
        return cls(TWO, Fraction(1, 2), "two-coin protocol")

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

    @property
    def one_hot(self) -> bool:
        """True: a report names one cell."""
        return True

    def drawn(self, codes: Codes) -> Codes:
        """The randomised code of each code."""
        return np.where(coins(self.lie, codes.size), dice(self.cells, codes.size), codes)

    def randomise(self, codes: Codes) -> list[Answer]:
        """The number of a cell for each code."""
        return list(self.drawn(codes).tolist())

    def probability(self, answer: Answer, code: int) -> Fraction:
        """P or q."""
        return self.own if answer == code else self.other

    def well_formed(self, answer: object) -> bool:
        """True for the number of a cell."""
        return type(answer) is int and 0 <= answer < self.cells

    def support(self, answers: Sequence[Answer]) -> NDArray[np.int64]:
        """Number of answers that name each cell."""
        return np.bincount(np.array(answers, dtype=np.int64), minlength=self.cells).astype(np.int64)
