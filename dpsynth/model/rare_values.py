"""Domain compression: rare values of a column are measured in groups of neighbours.

A value that few rows have makes cells of a marginal that hold less than their noise. A group of neighbouring
values costs one line of cells in place of many. The counts of the single values are not lost: after the fit,
a group's rows are spread over its values by the column's own noisy counts. Only neighbours are grouped, so
that a group of ages is a range of ages.

Invariant: all of it is public arithmetic on noisy answers that were paid for before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Compression, Domain, rare_when_ordered
from dpsynth.columns.measurement import Observation, pooled_counts
from dpsynth.model.denoising import smoothed

MOST_CELLS = 1 << 40
"""More cells than any column's groups have beside its values."""
_COARSEST = 64
"""Largest factor on ``least`` for lack of room. Beyond, single values tell more than groups so coarse."""
_CODES, _AMPLE = 24, 4.0
"""Values of a column of numbers up to which these may be codes; and their rows, on average, over ``rare``."""
_STEPS, _UNLIKE, _SPREAD = (1, 2, 5, 10, 12), 0.45, 3.0
"""Steps between values whose counts are compared, the ratio from which they differ, and the deviations of
noise and chance below which a count, or the distance between the counts' quartiles, tells nothing."""
_PLAIN = 2
"""Number of places up to which a column is not compressed."""
_ROUNDS = 3
"""Times that the rows of rare values are counted, each time without the values that stand alone."""


@dataclass(frozen=True)
class Numbers:
    """The columns of numbers and dates; those of which each place is one value; and the rows of the table."""

    columns: Collection[str]
    single: Collection[str]
    rows: float


def rare_groups(
    domain: Domain,
    singles: Sequence[Observation],
    least: float,
    others: Sequence[Observation] = (),
    values: Mapping[str, int] | None = None,
    numbers: Numbers = Numbers((), (), 0.0),
    most: int = MOST_CELLS,
) -> Compression:
    """Groups of neighbouring rare values, for each column that has any.

    A value is rare if its noisy count, smoothed over its neighbours (``model.denoising``), is below ``least``
    rows. A run of rare values is cut into groups of at least ``least`` rows, as far as it has so many. If a
    column would become one group, it becomes two groups of neighbours of about the same count. A place of
    missing cells has no neighbours. If it is rare, it joins the most frequent value: so a place that nobody
    uses makes no cell of a marginal.

    Args:
        singles: one-way answers. A column without a noisy answer is not compressed.
        others: more one-way answers. A column's counts averaged with them have less noise,
            and ``least`` falls in proportion, as the noise of columns measured together will.
        values: for some columns, the number of places that are values; the others are of missing cells.
        numbers: more values are rare there (``rare_when_ordered``), unless they are likely codes.
        most: bound on the cells of all groups beside their values. In a column that would have too many
            groups for it, ``least`` is doubled until it hasn't, up to 64 times ``least``; else it has none.
    """
    found: dict[str, NDArray[np.intp]] = {}
    known = pooled_counts([*singles, *others])
    noisy = [m for m in singles if len(m.clique) == 1 and m.variance > 0 and least > 0]
    noisy = sorted((m for m in noisy if m.values.size > _PLAIN), key=lambda m: m.values.size)
    for at, m in enumerate(noisy):
        (column,) = m.clique
        counts, variance = known[m.clique]
        room = most // (len(noisy) - at) // counts.size
        if room < _PLAIN:
            continue
        own = counts[: (values or {}).get(column, counts.size)]
        smooth, rare = smoothed(own, variance), least * sqrt(variance / m.variance)
        alike = column in numbers.columns and not (column in numbers.single and unlike(own, variance))
        most_rare = _COARSEST * rare
        while True:
            # So few numbers with ample rows each may be codes, whose neighbours are not alike.
            codes = smooth.size <= _CODES and smooth.sum() >= _AMPLE * rare * smooth.size
            bound = _rare(smooth, rare, numbers.rows) if alike and not codes else rare
            groups = _with_missing(_groups(smooth, bound), counts, rare)
            if not room <= groups.max() < groups.size - 1 or rare >= most_rare:
                break
            rare *= 2
        if groups.max() < min(room, groups.size - 1):
            found[column] = groups
            most -= (int(groups.max()) + 1) * groups.size
    return Compression({c: found[c] for c in domain.sizes if c in found})


def unlike(counts: NDArray[np.float64], variance: float) -> bool:
    """True if counts of neighbours are no more alike than those of any two values, as codes have them.

    Von Neumann's ratio (1941) of logarithms: the mean square of the difference of neighbours over twice the
    variance, near 1 for values in no order. Numbers that people round, or that come in some years only, are
    alike at a larger step. Few values can't tell, nor can counts that differ by noise and chance alone.
    """
    clear = _SPREAD * sqrt(variance + max(float(counts.mean()), 0.0))
    quarter, most = np.quantile(counts, (0.25, 0.75))
    if counts.size <= _CODES or most - quarter < clear:
        return False
    logs = np.log(np.maximum(counts, clear))
    squares = [float(np.square(logs[s:] - logs[:-s]).mean()) for s in _STEPS]
    return min(squares) >= _UNLIKE * 2 * float(logs.var())


def _rare(smooth: NDArray[np.float64], least: float, rows: float) -> float:
    """Rows below which a value of an ordered column is rare, after values that stand alone were taken out."""
    bound = np.inf
    for _ in range(_ROUNDS):
        rest = float(smooth[(smooth > 0) & (smooth < bound)].sum())
        bound = rare_when_ordered(rest, least, rows)
    return bound


def _with_missing(of_values: NDArray[np.intp], counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Group of each place, from those of the values; a rare place of missing cells joins the largest one."""
    found = np.concatenate([of_values, np.full(counts.size - of_values.size, -1, dtype=np.intp)])
    number = int(of_values.max()) + 1
    for place in range(of_values.size, counts.size):
        if counts[place] < least:
            found[place] = of_values[counts[: of_values.size].argmax()]
        else:
            found[place] = number
            number += 1
    return found


def _groups(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    if counts.size <= _PLAIN:
        return np.arange(counts.size)
    rare = counts < least
    starts = [0, *(np.flatnonzero(~(rare[1:] & rare[:-1])) + 1), counts.size]
    found, number = np.zeros(counts.size, dtype=np.intp), 0
    for start, stop in pairwise(starts):
        found[start:stop] = number + _pieces(counts[start:stop], least)
        number = found[stop - 1] + 1
    return found if number > 1 else _halves(np.maximum(counts, 0))


def _pieces(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Piece of each value of a run. A piece ends at ``least`` rows; the rest belongs to the last piece."""
    found, piece, rows = np.zeros(counts.size, dtype=np.intp), 0, 0.0
    for i, count in enumerate(counts.tolist()):
        found[i] = piece
        rows += count
        if rows >= least:
            piece, rows = piece + 1, 0.0
    return np.minimum(found, max(piece - 1, 0))


def _halves(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    reach = np.cumsum(counts[:-1])
    last = int(np.abs(2 * reach - counts.sum()).argmin()) if counts.any() else counts.size // 2 - 1
    return (np.arange(counts.size) > last).astype(np.intp)
