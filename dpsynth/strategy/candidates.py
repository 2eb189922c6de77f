"""Candidate cliques of a strategy, their weights and penalties, and those that fit in the model.

Invariant: all of it is made of public facts, so a list of candidates reveals nothing of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation

_FARTHEST = 1 << 40
"""The largest penalty in rows. A door takes no larger one, and a larger one could not matter."""
_FINEST = 1000
"""The largest whole weight; the other weights are rounded to thousandths of it."""


def whole_weights(weights: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """Weights as whole numbers, so that a weighted score has an exact sensitivity: the largest of them.

    Equal weights become 1. Otherwise a weight becomes thousandths of the largest, and 0 only if it was 0.
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
    """The cliques that lie within a marginal of the workload, by size, single columns first.

    Cliques of a size at which there could be more than ``limit`` in all are left out, and so are larger
    ones. Single columns and pairs are never left out.
    """
    found: list[Clique] = []
    columns = workload.columns
    for size in range(1, workload.widest + 1):
        if size > 2 and len(found) + comb(len(columns), size) > limit:
            break
        found += [c for c in combinations(columns, size) if workload.weight(c) > 0]
    return found


def overlap(workload: Workload, cliques: Sequence[Clique]) -> list[float]:
    """The sum over the workload's marginals s of their weight times |r n s|, for each clique r.

    It equals the sum over r's columns of the weight of all marginals that hold the column.
    """
    of_column = {c: workload.weight((c,)) for c in workload.columns}
    return [sum(of_column[c] for c in clique) for clique in cliques]


def fitting(tree: Triangulation, candidates: Iterable[Clique], max_cells: int) -> list[Clique]:
    """The candidates with which the junction tree would have at most ``max_cells`` cells."""
    return [c for c in candidates if tree.cells_with(c) <= max_cells]


def most_cells(sizes: Iterable[int]) -> int:
    """An upper bound on the cells of any junction tree over columns of these sizes.

    All cliques of a tree together have no more cells than the joint table of all columns, if
    each column has two places or more: a leaf of s x r cells, s of them its separator's, hangs on a rest
    of R >= 2 s cells, and R + s r <= r R.
    """
    return prod(max(size, 2) for size in sizes)
