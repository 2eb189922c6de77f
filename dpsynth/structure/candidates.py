"""Cliques that a strategy may choose from: which there are, which fit, and what each counts.

Invariant: made of public facts alone; a list of candidates tells nothing of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique
from dpsynth.domain.workload import Workload
from dpsynth.model import Triangulation

_FARTHEST = 1 << 40
"""The largest penalty in rows: a door takes no larger one, nor could it matter."""
_FINEST = 1000
"""The largest whole weight: others are rounded to thousandths of it."""


def whole_weights(weights: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """Weights as whole numbers, so that a weighted score has an exact sensitivity: the largest.

    All 1 if they are alike, else in thousandths of the largest, and 0 for those alone that were 0.
    """
    given = np.asarray(weights, dtype=np.float64)
    most = given.max(initial=0.0)
    if most <= 0 or given.min() == most:
        return [1] * len(given)
    rounded = np.maximum(np.rint(given * (_FINEST / most)), given > 0)
    return [int(w) for w in rounded]


def penalty(error: float, cells: int) -> int:
    """The expected L1 error, in whole rows, of a marginal whose cells have this error each."""
    return round(min(error * cells, _FARTHEST))


def closure(workload: Workload, limit: int) -> list[Clique]:
    """The cliques that lie within a marginal of the workload, single columns first, then by size.

    From the size on at which there could be more than ``limit`` of them, they are left out;
    single columns and pairs are always there.
    """
    found: list[Clique] = []
    columns = workload.columns
    for size in range(1, workload.widest + 1):
        if size > 2 and len(found) + comb(len(columns), size) > limit:
            break
        found += [c for c in combinations(columns, size) if workload.weight(c) > 0]
    return found


def overlap(workload: Workload, cliques: Sequence[Clique]) -> list[float]:
    """For each clique r the sum over the workload's marginals s of their weight times |r n s|.

    That is the sum over r's columns of the weight of all marginals that hold the column.
    """
    of_column = {c: workload.weight((c,)) for c in workload.columns}
    return [sum(of_column[c] for c in clique) for clique in cliques]


def fitting(tree: Triangulation, candidates: Iterable[Clique], max_cells: int) -> list[Clique]:
    """Those candidates with which the junction tree would have at most so many cells."""
    return [c for c in candidates if tree.cells_with(c) <= max_cells]


def most_cells(sizes: Iterable[int]) -> int:
    """An upper bound of a junction tree's cells, whatever is measured.

    Cliques of a tree have together no more cells than all columns have jointly, where
    each column has two places or more: a leaf of s x r cells, s of them its separator's, hangs on a rest
    of R >= 2 s cells, and R + s r <= r R.
    """
    return prod(max(size, 2) for size in sizes)
