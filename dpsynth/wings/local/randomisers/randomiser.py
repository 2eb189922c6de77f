"""The protocol of local randomisers, and the variance that they share.

Each report *supports* some cells. A report supports the respondent's own cell with probability p, and each
other cell with probability q < p (Wang, Blocki, Li and Jha 2017: a pure protocol). So if C of n reports
support a cell, n (C/n - q)/(p - q) respondents are in it, without bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
