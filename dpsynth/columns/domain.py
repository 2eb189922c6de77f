"""Discrete domains: the number of codes of each column of a table.

Invariant: a domain is a public fact. It comes from the config or from a private
answer that was paid for, never read off the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
"""An ordered set of column names; () is the clique of the total count."""


def subsets(clique: Clique, most: int | None = None) -> Iterator[Clique]:
    """The subsets of a clique by size, the empty one first, of at most so many columns."""
    for size in range((len(clique) if most is None else most) + 1):
        yield from combinations(clique, size)


@dataclass(frozen=True)
class Domain:
    """Names and sizes of discrete columns, in table order.

    >>> d = Domain({"sex": 2, "age": 100})
    >>> d.shape(("age", "sex"))
    (100, 2)
    >>> d.cells(("age", "sex"))
    200
    """

    sizes: Mapping[str, int]

    @property
    def columns(self) -> Clique:
        """Column names in table order."""
        return tuple(self.sizes)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Sizes of a clique's columns, in the clique's order; () for the empty clique."""
        sizes = self.sizes
        return tuple([sizes[c] for c in clique])

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells of the marginal over a clique; 1 for the empty clique."""
        # A wide table has some hundred thousand pairs, and a loop is several times as fast as ``shape``.
        sizes, found = self.sizes, 1
        for c in clique:
            found *= sizes[c]
        return found

    def batches(self, cliques: Iterable[Clique], most: int) -> Iterator[list[Clique]]:
        """Batches of cliques in the order given, each of at most so many cells, or of one larger clique."""
        batch: list[Clique] = []
        cells = 0
        for clique in cliques:
            size = self.cells(clique)
            if batch and cells + size > most:
                yield batch
                batch, cells = [], 0
            batch.append(clique)
            cells += size
        if batch:
            yield batch

    def canonical(self, clique: Iterable[str]) -> Clique:
        """The clique's columns in table order, each once."""
        places = self._places
        return tuple(sorted({c for c in clique if c in places}, key=places.__getitem__))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {c: i for i, c in enumerate(self.sizes)}


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
