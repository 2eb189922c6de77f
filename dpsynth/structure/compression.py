"""Rare values: which values of a column are measured together with those next to them, as one group.

A value that few rows have shows up in a marginal as cells that hold less than their noise. A group
of such neighbours as have rows enough together costs one line of cells in place of many, and what was
learnt of each from its own column is kept: after the fit, a group's rows are spread over its values by
these. Values are put together with those next to them, so that a group of ages is a range of ages.

Invariant: public arithmetic on noisy answers that are paid for already.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.compression import Grouping
from dpsynth.domain.domain import Domain
from dpsynth.domain.measurement import Observation
from dpsynth.evidence.drift import pooled_counts
from dpsynth.model.smoothing import smoothed

_PLAIN = 2
"""A column of so few places is left as it is."""


def rare_groups(
    domain: Domain,
    singles: Sequence[Observation],
    least: float,
    keep: Collection[str] = (),
    evidence: Sequence[Observation] = (),
) -> Grouping:
    """Put the rare values of each column in groups of neighbours.

    A value is rare that fewer than ``least`` rows have, by its noisy count smoothed over its
    neighbours (``model.smoothing``). Rare values in a row are cut into groups of ``least`` rows or
    more each, as far as they have as many. Where that makes one group of all values, two runs of
    neighbours are left, of about the same count.

    Args:
        domain: the columns.
        singles: one-way answers over it; a column without one is left as it is, and so are
            columns whose answer is exact.
        least: rows; 0 or less merges nothing.
        keep: columns never merged.
        evidence: one-way answers of earlier releases. Averaged with them a column's counts have less noise,
            and ``least`` falls in proportion: so it will be where columns are measured together.
    """
    found: dict[str, NDArray[np.intp]] = {}
    known = pooled_counts([*singles, *evidence])
    for m in singles:
        if len(m.clique) != 1 or m.query is not None or m.variance == 0 or least <= 0:
            continue
        (column,) = m.clique
        if column not in keep and domain.sizes[column] > _PLAIN:
            counts, variance = known[m.clique]
            groups = _groups(smoothed(counts, variance), least * sqrt(variance / m.variance))
            if groups.max() + 1 < groups.size:
                found[column] = groups
    return Grouping(found)


def _groups(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Group of each place, numbered in order, from counts and the least that stands."""
    rare = counts < least
    starts = [0, *(np.flatnonzero(~(rare[1:] & rare[:-1])) + 1), counts.size]
    found, number = np.zeros(counts.size, dtype=np.intp), 0
    for start, stop in pairwise(starts):
        found[start:stop] = number + _pieces(counts[start:stop], least)
        number = found[stop - 1] + 1
    return found if number > 1 else _halves(np.maximum(counts, 0))


def _pieces(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """A run cut where its pieces have enough rows; what is left at the end belongs to the last piece."""
    found, piece, rows = np.zeros(counts.size, dtype=np.intp), 0, 0.0
    for i, count in enumerate(counts.tolist()):
        found[i] = piece
        rows += count
        if rows >= least:
            piece, rows = piece + 1, 0.0
    return np.minimum(found, max(piece - 1, 0))


def _halves(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Two runs of neighbours, none empty, of about the same sum."""
    reach = np.cumsum(counts[:-1])
    last = int(np.abs(2 * reach - counts.sum()).argmin()) if counts.any() else counts.size // 2 - 1
    return (np.arange(counts.size) > last).astype(np.intp)
