"""Structural zeros: cells that no row can have, as many as a model has capacity for.

Invariant: the junction tree of the measured cliques and of the kept zeros has at most ``max_cells`` cells,
and zeros alone never make it more than ``_GROWTH`` times as large, beyond a free size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.triangulation import Triangulation

Zeros = Mapping[Clique, NDArray[np.bool_]]
"""Structural zeros by clique: True for cells that no row can have, axes in the clique's order."""

_FREE = 1 << 18
"""Cells up to which a tree may grow for its zeros in any case."""
_GROWTH = 2
"""Largest factor by which a larger tree may grow for its zeros."""


def zeros_within(domain: Domain, measured: Iterable[Clique], zeros: Zeros, max_cells: int) -> Zeros:
    """The structural zeros that a junction tree has capacity for, those of fewest cells first.

    Args:
        domain: the columns.
        measured: the cliques that the tree holds in any case.
        zeros: the structural zeros.
        max_cells: largest number of cells of the tree.
    """
    cliques = list(measured)
    cells = Triangulation.of(domain, cliques).cells
    capacity = min(max_cells, max(_GROWTH * cells, _FREE))
    kept: dict[Clique, NDArray[np.bool_]] = {}
    for clique in sorted(zeros, key=lambda c: (domain.cells(c), c)):
        if Triangulation.of(domain, [*cliques, clique]).cells <= max(capacity, cells):
            cliques.append(clique)
            kept[clique] = zeros[clique]
    return kept
