"""Places of rows in the array of a clique, by their codes.

Invariant: places are those of a flat array in C order, in an integer type that holds them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain


def cells_of(
    columns: Mapping[str, NDArray[np.unsignedinteger]], domain: Domain, clique: Clique, rows: int
) -> NDArray[np.integer]:
    """The cell of every row in the flat array of a clique.

    Args:
        columns: the codes of some rows, by column.
        domain: the domain of the columns.
        clique: the clique.
        rows: number of rows.
    """
    if len(clique) == 1:
        return columns[clique[0]]
    cells = domain.cells(clique)
    # Narrow integers are faster to compute.
    number = np.min_scalar_type(cells) if cells < 1 << 32 else np.dtype(np.int64)
    cell = np.zeros(rows, dtype=number)
    for i, column in enumerate(clique):
        if i > 0:
            np.multiply(cell, number.type(domain.sizes[column]), out=cell)
        np.add(cell, columns[column], out=cell, casting="unsafe")
    return cell
