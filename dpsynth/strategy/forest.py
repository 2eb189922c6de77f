"""A forest of column pairs, and the size of its junction tree.

Columns are given by their places, and all pairs are treated at once, because a choice is made among
thousands of them.

Invariant: the junction tree of a forest consists of its pairs and its lone columns, so its cells are known
without a search. The same holds beside other cliques: a pair that joins two components is a clique of its
own, whatever the components are.

Connected components of a graph of columns that grows edge by edge.

Invariant: two columns have the same number exactly if a path of edges joins them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]
"""Columns, each by its place in the table."""


class Components:
    """Connected components; at first each column is a component of its own."""

    def __init__(self, columns: int) -> None:
        """A graph of so many columns without edges."""
        self._component = np.arange(columns)

    def join(self, a: int, b: int) -> None:
        """Add an edge."""
        self._component[self._component == self._component[b]] = self._component[a]

    def disconnected(self, first: Positions | int, second: Positions | int) -> NDArray[np.bool_]:
        """Pairs of columns that no path joins: one truth value for each pair (first, second)."""
        return np.asarray(self._component[first] != self._component[second])


class Forest:
    """A graph of columns without cycles; at first it has no pairs."""

    def __init__(self, sizes: Sequence[int], given: Sequence[Sequence[int]] = (), cells: int = 0) -> None:
        """The forest without pairs.

        Args:
            sizes: number of places of each column.
            given: cliques that the junction tree holds besides, none empty.
            cells: cells of a junction tree of these cliques and of all columns in none of them. It is
                needed only if there are such cliques.
        """
        self._sizes = np.array(sizes, dtype=np.int64)
        self._alone = self._sizes.copy()
        self._components = Components(len(sizes))
        self._cells = cells if given else int(self._sizes.sum())
        for first, *others in given:
            for column in others:
                self._alone[[first, column]] = 0
                self._components.join(first, column)

    def join(self, a: int, b: int) -> None:
        """Add a pair of columns."""
        self._cells = int(self.cells_with(a, b))
        self._alone[[a, b]] = 0
        self._components.join(a, b)

    def disconnected(self, first: Positions | int, second: Positions | int) -> NDArray[np.bool_]:
        """Pairs of columns that no path joins: one truth value for each pair (first, second)."""
        return self._components.disconnected(first, second)

    def cells_with(self, first: Positions | int, second: Positions | int) -> NDArray[np.int64]:
        """Cells of the junction tree with one more pair, for each disconnected pair (first, second)."""
        added = self._sizes[first] * self._sizes[second]
        return np.asarray(self._cells + added - self._alone[first] - self._alone[second])
