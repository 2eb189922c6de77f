"""Residuals of a table: for each target of a refinement, how far the table's own counts are from it.

Invariant: residuals are whole numbers far below 2^53, times whole weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.cell_places import cells_of
from dpsynth.columns.clique_unions import unions
from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array

WIDEST = 3
"""Largest number of columns of a target."""
_HEAVIEST = 1 << 10
"""The largest weight as a whole number."""
UNIT = 16
"""Parts of a row to which targets are rounded."""
_MOST = 1 << 27
"""Bound on the rows of a cell: 2^27 x 16 x 2^10 is 2^41, so sums of 16 views and more stay below 2^45."""
_MOST_SHARED = 1 << 14
"""Largest number of cells of targets that are counted together: the result stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class TableTarget:
    """The wanted counts of a marginal.

    Attributes:
        clique: one to three columns.
        counts: float64, shape ``domain.shape(clique)``: rows of each cell.
        weight: weight of a squared difference of rows, above 0; only ratios of weights matter.
        variance: mean squared error of a cell of the counts, in rows squared; None if it is not known.
        below: rows below 0 that a count of 0 stands for: so few rows stray into cells that should be empty,
            where the square of a few rows would hardly count.
    """

    clique: Clique
    counts: Array
    weight: float
    variance: float | None = None
    below: float = 0.0


def whole_weight(target: TableTarget, heaviest: float) -> float:
    """The weight of a target as a whole number, relative to the heaviest one's."""
    return float(max(1, round(target.weight / heaviest * _HEAVIEST)))


def below_zero(target: TableTarget) -> Array:
    """Distance below 0 of each cell of a target, in parts of a row; 0 for cells with a count."""
    return np.where(target.counts > 0, 0.0, round(UNIT * target.below))


def residuals_of(
    domain: Domain, target: TableTarget, rows: NDArray[np.int64], weight: float
) -> tuple[tuple[int, ...], Array]:
    """The places of a target's columns, and weight x (rows - target) in parts of a row."""
    clique, counts = target.clique, target.counts
    if not (counts.min() >= 0 and max(counts.max(), rows.sum()) < _MOST):
        raise ValueError(
            f"the target of {clique} must have counts from 0 to {_MOST - 1}, no more rows either"
        )
    members = tuple(domain.columns.index(c) for c in clique)
    return members, np.asarray(weight * (UNIT * rows - np.rint(UNIT * counts)), dtype=np.float64)


def counts_of(
    domain: Domain, codes: Mapping[str, NDArray[np.unsignedinteger]], wanted: Sequence[TableTarget]
) -> dict[Clique, NDArray[np.int64]]:
    """The rows of each cell of the targets' cliques, int64 of shape ``domain.shape(clique)``."""
    for target in wanted:
        clique, shape = target.clique, domain.shape(target.clique)
        if not 1 <= len(clique) <= WIDEST or target.counts.shape != shape:
            raise ValueError(f"the target of {clique} must have one to three columns and the shape {shape}")
    found = {}
    cliques = list(dict.fromkeys(target.clique for target in wanted))
    for union, members in unions(domain, cliques, _MOST_SHARED):
        number = len(codes[union[0]])
        cells = np.bincount(cells_of(codes, domain, union, number), minlength=domain.cells(union))
        whole = cells.reshape(domain.shape(union))
        for clique in members:
            left = tuple(c for c in union if c in clique)
            part = whole.sum(axis=tuple(i for i, c in enumerate(union) if c not in clique))
            found[clique] = part.transpose([left.index(c) for c in clique])
    return found
