"""Units chosen among more than a table needs, so that its counts are near to those that are known.

A chain fits single rows and steps only as far as its model holds them together. So more units are drawn, and
each has a weight, which grows for rows in cells with too few rows, and falls for rows in cells with too many
(generalised raking, Deville, Särndal and Sautory 1993; of rows and their units, Ye and others 2009). The
weight is the probability with which the unit is chosen, by order sampling of a fixed number (Rosén 1997).

Invariant: no unit is chosen twice, and of each number of rows as many units as are needed. Post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Domain
from dpsynth.model.factor import Array
from dpsynth.model.refinement import TableTarget
from dpsynth.model.rounding import position_of

_PASSES, _PACE, _ROUNDS = 30, 0.5, 4
"""Passes over all counts, the power of a pass's correction, and rounds of scaling with weights up to 1."""
_LEAST, _LEAST_ERROR = 1e-9, 0.5


@dataclass(frozen=True, eq=False)
class Counted:
    """Known counts of rows, and the cells of the rows that are drawn.

    Attributes:
        cells: int64[rows], the cell of each row.
        counts: float64[cells], as of the table that is chosen.
        error: the error of a count, in rows; above 0.
        weight: importance beside other counts.
    """

    cells: Codes
    counts: Array
    error: float
    weight: float

    @classmethod
    def of(cls, target: TableTarget, codes: Mapping[str, Codes], domain: Domain, share: float) -> Counted:
        """A share of the counts of a target, with the cells of drawn rows."""
        cells = position_of(codes, target.clique, domain, len(codes[target.clique[0]]))
        error = max(sqrt(target.variance or 0.0) * share, _LEAST_ERROR)
        return cls(cells, target.counts.reshape(-1) * share, error, target.weight)


def chosen(unit: Codes, known: Sequence[Counted], times: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The rows of chosen units, bool[rows].

    Args:
        unit: the unit of each row, which never falls, from 0; there are some.
        times: one of so many units of each number of rows is chosen.
    """
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    lengths = np.diff(begins, append=unit.size)
    logs, pace = np.zeros(len(begins)), _PACE / sqrt(sum(m.weight for m in known))
    for _ in range(_PASSES):
        of_rows, pull = np.repeat(_weights(logs, lengths, times), lengths), np.zeros(unit.size)
        for m in known:
            held = np.bincount(m.cells, of_rows, m.counts.size)
            pull += m.weight * np.log((m.counts + m.error) / (held + m.error))[m.cells]
        logs += pace * np.add.reduceat(pull, begins) / lengths
    weights, at = np.clip(_weights(logs, lengths, times), _LEAST, 1 - _LEAST), rng.random(len(begins))
    order = np.lexsort((at * (1 - weights) / ((1 - at) * weights), lengths))
    first = np.searchsorted(lengths[order], lengths[order])
    taken = np.zeros(len(begins), np.bool_)
    taken[order] = np.arange(len(order)) - first < (np.bincount(lengths) // times)[lengths[order]]
    return np.repeat(taken, lengths)


def _weights(logs: Array, lengths: Codes, times: int) -> Array:
    """Weights up to 1; those of units with equal numbers of rows have one of ``times`` as their mean."""
    found, wanted = np.exp(logs - logs.max()), np.bincount(lengths) / times
    for _ in range(_ROUNDS):
        held = np.bincount(lengths, found)
        found = np.minimum(found * (wanted / np.maximum(held, _LEAST))[lengths], 1.0)
    return np.asarray(found, np.float64)
