"""Counts of a column by group, over bins that are cut into pieces.

A bin says that so many rows are in it, but not where. Its pieces say more, for what is read off inside of a
bin, such as a quantile. Numbers are whole steps of the column's last decimal (``dpsynth.columns.sums``).

Invariant: pieces are public. Each number lies in one piece, and each piece within one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Noisy
from dpsynth.columns.sums import Steps

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """The pieces of a column's bins.

    Attributes:
        first: the first step of each piece, rising; the first steps of all bins are among them.
        bins: number of bins.
    """

    first: tuple[int, ...]
    bins: int

    def __post_init__(self) -> None:
        """Refuse pieces that don't rise from 0."""
        if not self.first or self.first[0] != 0 or any(np.diff(self.first) <= 0):
            raise ValueError("pieces begin at step 0, and rise")

    @classmethod
    def of(cls, steps: Steps, number: Integers) -> Pieces:
        """Pieces of equal width.

        Args:
            steps: the bins.
            number: int64[bins], the number of pieces of each, at least 1; at most one a step.
        """
        width = steps.high - steps.low + 1
        each = np.minimum(np.maximum(number, 1), width)
        bins, index = np.repeat(np.arange(steps.bins), each), np.arange(int(each.sum()))
        turn = index - np.repeat(np.cumsum(each) - each, each)
        return cls(tuple((steps.low[bins] + width[bins] * turn // each[bins]).tolist()), steps.bins)

    @cached_property
    def array(self) -> Integers:
        """The first steps as int64[pieces]."""
        return np.array(self.first, dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hex of the first steps."""
        return sha256(self.array.astype("<i8").tobytes()).hexdigest()

    def bin_of(self, steps: Steps) -> NDArray[np.intp]:
        """The bin of each piece, intp[pieces]."""
        return np.searchsorted(steps.low, self.array, side="right") - 1

    def last(self, steps: Steps) -> Integers:
        """The last step of each piece, int64[pieces]."""
        following = np.append(self.array[1:] - 1, steps.last)
        return np.minimum(following, steps.high[self.bin_of(steps)])


@dataclass(frozen=True, eq=False)
class FinerCounts(Noisy):
    """Noisy counts of the pieces of a column's bins by group, charged and drawn by the curator.

    Attributes:
        column: the column counted.
        by: the columns of the groups, in the order of the array's axes; () is all rows.
        values: int64, shape of the groups and then of the pieces: rows plus noise.
        noise: "gaussian" or "laplace".
        scale: sigma, or b, in rows.
        pieces: the pieces.
    """

    column: str
    by: Clique
    values: Integers
    noise: str
    scale: float
    pieces: Pieces

    @property
    def clique(self) -> Clique:
        """The columns of the groups, then the column counted."""
        return (*self.by, self.column)
