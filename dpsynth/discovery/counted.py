"""Noisy rows between cuts, and what several answers say together.

Invariant: each answer is about parts of the cells of the one before, so all of them tell of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.discovery.questions import Door
from dpsynth.discovery.steps import Cuts, codec_of
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch

_LEAST_VARIANCE = 1e-6
"""Of a count, in rows squared: weights by inverse variance need one."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows of the bins between cuts, told with noise.

    Attributes:
        cuts: int64[bins + 1] in steps.
        rows: float64[bins].
        variances: float64[bins], of the noise in them.
    """

    cuts: Cuts
    rows: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def asked(cls, door: Door, column: Column, search: NumberSearch, cuts: Cuts, price: Fraction) -> Counted:
        """Ask a door for the rows of some bins."""
        counts, stddev = door.counts_under(column, codec_of(search, cuts), price)
        variance = max(stddev**2, _LEAST_VARIANCE)
        return cls(cuts, counts.astype(np.float64), np.full(counts.size, variance))

    @property
    def widths(self) -> NDArray[np.int64]:
        """Steps in each bin."""
        return np.diff(self.cuts)

    @property
    def mirrored(self) -> Counted:
        """The bins in falling order, with their signs turned."""
        return Counted(-self.cuts[::-1], self.rows[::-1], self.variances[::-1])

    def gathered(self, cuts: Cuts) -> Counted:
        """The bins between fewer cuts of the same range."""
        starts = np.searchsorted(self.cuts, cuts[:-1])
        return Counted(cuts, np.add.reduceat(self.rows, starts), np.add.reduceat(self.variances, starts))

    def between(self, low: int, end: int) -> Counted:
        """The bins from one cut to another."""
        first, last = np.searchsorted(self.cuts, (low, end)).tolist()
        return Counted(self.cuts[first : last + 1], self.rows[first:last], self.variances[first:last])


def averaged(answers: Sequence[Counted]) -> Counted:
    """The best estimate of the rows of each bin of the last answer.

    Weighted least squares on a tree (Hay, Rastogi, Miklau and Suciu 2010), by inverse variance. Upwards a
    bin's own answer is averaged with the sum of its parts; downwards what it has more than they is shared
    among them by their variances.

    Args:
        answers: at least one; each about parts of the bins of the one before.
    """
    upwards = [answers[-1]]
    for answer in reversed(answers[:-1]):
        upwards.append(_average(answer, upwards[-1].gathered(answer.cuts)))
    found = upwards.pop()
    while upwards:
        parts = upwards.pop()
        found = _shared(found, parts)
    return found


def _average(a: Counted, b: Counted) -> Counted:
    weight = b.variances / (a.variances + b.variances)
    return Counted(a.cuts, weight * a.rows + (1 - weight) * b.rows, weight * a.variances)


def _shared(whole: Counted, parts: Counted) -> Counted:
    """The parts, made to add up to their wholes."""
    place = np.searchsorted(whole.cuts, parts.cuts[:-1], side="right") - 1
    summed = parts.gathered(whole.cuts)
    share = parts.variances / summed.variances[place]
    rows = parts.rows + share * (whole.rows - summed.rows)[place]
    variances = parts.variances - share**2 * (summed.variances - whole.variances)[place]
    return Counted(parts.cuts, rows, variances)
