"""Structural zeros: cells that no row can have, as many as a model has room for.

Invariant: the junction tree of what is measured and of the zeros that are kept has at most as many cells as
it may, and zeros alone never make it more than some times as large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique, Domain
from dpsynth.model.triangulation import Triangulation

Zeros = Mapping[Clique, NDArray[np.bool_]]
"""For some cliques the cells that no row can have, True each, axes in the clique's order."""

_FREE = 1 << 18
"""Cells that a tree may come to for its zeros, however few it has without."""
_GROWTH = 2
"""How many times as large a tree may become for its zeros."""


def zeros_within(domain: Domain, measured: Iterable[Clique], zeros: Zeros, max_cells: int) -> Zeros:
    """The zeros that a junction tree has room for, those of fewest cells first.

    Args:
        domain: the columns.
        measured: what the tree holds in any case.
        zeros: cells that no row can have.
        max_cells: most cells of the tree.
    """
    cliques = list(measured)
    cells = Triangulation.of(domain, cliques).cells
    room = min(max_cells, max(_GROWTH * cells, _FREE))
    kept: dict[Clique, NDArray[np.bool_]] = {}
    for clique in sorted(zeros, key=lambda c: (domain.cells(c), c)):
        if Triangulation.of(domain, [*cliques, clique]).cells <= max(room, cells):
            cliques.append(clique)
            kept[clique] = zeros[clique]
    return kept
