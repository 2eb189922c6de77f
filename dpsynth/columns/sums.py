"""Sums and finer counts of a column's numbers by group, over the whole steps of its last decimal.

A row adds the distance of its number from an offset that is public for each bin, bounded by a limit. Numbers
are whole steps, so sums are integers. Where the limit reaches to both ends of a bin, nothing is lost: the sum
of the numbers is that of the distances, plus each bin's rows times its offset.

A bin says that so many rows are in it, but not where. Counts of its pieces say more, for what is read off
inside of a bin, such as a quantile.

Invariant: steps, offsets, limits and pieces are public; a limit bounds what a row adds, whatever its cell
holds. Each number lies in one piece, and each piece within one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Noisy
from dpsynth.columns.number_texts import NumberFormat

Integers = NDArray[np.int64]

MOST_STEPS = 2**31 - 1
"""Largest step: sums of 2^32 rows stay within 64 bits."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The whole steps of a column's numbers: a number is (origin + step) 10^exponent.

    Attributes:
        exponent: power of ten of a step; minus the column's decimals unless there would be too many steps.
        origin: the smallest number, in units of a step.
        low, high: int64[bins], first and last step of each bin; ``low[0]`` is 0.
        cut: true if fractions of a step are cut off, as for whole numbers; otherwise steps are the nearest.
    """

    form: NumberFormat
    exponent: int
    origin: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    cut: bool

    @property
    def unit(self) -> float:
        return float(10.0**self.exponent)

    @property
    def bins(self) -> int:
        return len(self.low)

    @property
    def last(self) -> int:
        return int(self.high[-1])

    @property
    def half_widths(self) -> NDArray[np.float64]:
        return np.asarray((self.high - self.low) / 2.0)

    @property
    def middles(self) -> NDArray[np.float64]:
        return np.asarray((self.high + self.low) / 2.0)

    def number(self, step: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((step + self.origin) * self.unit)

    def of(self, texts: pa.StringArray) -> NDArray[np.int32]:
        """The step of each stripped text: clipped to the first and last, 0 for no number."""
        # A step beyond each end, so that nothing which is scaled is too large for a float.
        ends = (self.number(np.array(step, np.float64)) for step in (-1, self.last + 1))
        numbers = np.clip(np.nan_to_num(self.form.read(texts), nan=0.0), *ends)
        # Powers of ten with a negative exponent have no exact float.
        scaled = numbers * 10.0**-self.exponent if self.exponent <= 0 else numbers / 10.0**self.exponent
        whole = np.floor(scaled) if self.cut else np.rint(scaled)
        return np.clip(whole - self.origin, 0, self.last).astype(np.int32)


def steps_of(
    form: NumberFormat, decimals: int, low: NDArray[np.int64], high: NDArray[np.int64], *, cut: bool
) -> Steps:
    """The steps of bins.

    Args:
        low: int64[bins], first multiple of 10^-decimals in each bin, rising.
        high: int64[bins], last multiple in each bin.
        cut: true if fractions of a step are cut off.
    """
    power = 0
    while (int(high[-1]) - int(low[0])) // 10**power > MOST_STEPS - 1:
        power += 1
    origin = int(low[0]) // 10**power
    first, last = (
        np.array([int(end) // 10**power - origin for end in ends], np.int64) for ends in (low, high)
    )
    return Steps(form, power - decimals, origin, first, np.maximum(last, first), cut)


def variance_of_unknown(shares: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of means because numbers lie anywhere in their bins, in units of the distances squared.

    The mean of a bin's numbers is taken to lie anywhere in the middle half of what is possible, evenly, and
    independently a bin: a standard deviation of the distance over sqrt(12).

    Args:
        shares: float64[..., bins], the share of rows in each bin.
        distances: float64[bins], the largest distance of the mean of a bin's numbers from the one assumed.
    """
    return np.asarray(((shares * distances) ** 2).sum(axis=-1) / 12.0)


@dataclass(frozen=True)
class Centring:
    """The offsets and the limit of a sum.

    A row of bin b with step s adds s - offsets[b], cut at the limit to both sides.

    Attributes:
        offsets: one a bin, in steps.
        limit: largest distance that a row adds or takes, in steps; at least 1.
    """

    offsets: tuple[int, ...]
    limit: int

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_STEPS:
            raise ValueError(f"the limit of a sum lies between 1 and {MOST_STEPS}")

    @cached_property
    def digest(self) -> str:
        return sha256(np.array(self.offsets, dtype="<i8").tobytes()).hexdigest()

    def beyond(self, steps: Steps) -> NDArray[np.float64]:
        """Largest distance that the limit cuts off a number of each bin, in steps."""
        offsets = np.array(self.offsets)
        furthest = np.maximum(steps.high - offsets, offsets - steps.low)
        return np.asarray(np.maximum(furthest - self.limit, 0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class MeasuredSums(Noisy):
    """Noisy sums of a column by group, charged and drawn by the curator.

    Attributes:
        by: the columns of the groups, in the order of the array's axes; () is all rows.
        values: int64, shape of the groups: bounded distances plus noise, in steps.
        noise: "gaussian" or "laplace".
        scale: sigma, or b, in steps.
    """

    column: str
    by: Clique
    values: NDArray[np.int64]
    noise: str
    scale: float
    centring: Centring

    @property
    def clique(self) -> Clique:
        return (*self.by, self.column)


@dataclass(frozen=True)
class Pieces:
    """The pieces of a column's bins.

    Attributes:
        first: the first step of each piece, rising; the first steps of all bins are among them.
    """

    first: tuple[int, ...]
    bins: int

    def __post_init__(self) -> None:
        if not self.first or self.first[0] != 0 or any(np.diff(self.first) <= 0):
            raise ValueError("pieces begin at step 0, and rise")

    @classmethod
    def of(cls, steps: Steps, number: Integers) -> Pieces:
        """Pieces of equal width. Bins that begin at one step, being narrower than it, have one in common.

        Args:
            number: int64[bins], the number of pieces of each, at least 1; at most one a step.
        """
        width = steps.high - steps.low + 1
        each = np.minimum(np.maximum(number, 1), width)
        bins, index = np.repeat(np.arange(steps.bins), each), np.arange(int(each.sum()))
        turn = index - np.repeat(np.cumsum(each) - each, each)
        return cls(tuple(np.unique(steps.low[bins] + width[bins] * turn // each[bins]).tolist()), steps.bins)

    @cached_property
    def array(self) -> Integers:
        return np.array(self.first, dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        return sha256(self.array.astype("<i8").tobytes()).hexdigest()

    def bin_of(self, steps: Steps) -> NDArray[np.intp]:
        return np.searchsorted(steps.low, self.array, side="right") - 1

    def last(self, steps: Steps) -> Integers:
        """The last step of each piece, int64[pieces]."""
        following = np.append(self.array[1:] - 1, steps.last)
        return np.minimum(following, steps.high[self.bin_of(steps)])


@dataclass(frozen=True, eq=False)
class FinerCounts(Noisy):
    """Noisy counts of the pieces of a column's bins by group, charged and drawn by the curator.

    Attributes:
        by: the columns of the groups, in the order of the array's axes; () is all rows.
        values: int64, shape of the groups and then of the pieces: rows plus noise.
        noise: "gaussian" or "laplace".
        scale: sigma, or b, in rows.
    """

    column: str
    by: Clique
    values: Integers
    noise: str
    scale: float
    pieces: Pieces

    @property
    def clique(self) -> Clique:
        return (*self.by, self.column)
