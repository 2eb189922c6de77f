"""Columns joined by pairs without a cycle, and how large their junction tree is.

Invariant: the junction tree of a forest is its pairs and its lone columns, so its cells are known
without any search. Nor is one needed where other cliques were there before: a pair that joins two parts
is a clique of its own, whatever the parts are. Columns are places here, and all pairs are looked at
together: a choice is made among thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.structure.components import Parts, Places


class Forest:
    """At first each column is a tree of its own."""

    def __init__(self, sizes: Sequence[int], given: Sequence[Sequence[int]] = (), cells: int = 0) -> None:
        """No pairs yet.

        Args:
            sizes: places of each column.
            given: cliques that were there before, none empty.
            cells: of a junction tree of these, and of the columns in none; needed if there are any.
        """
        self._sizes = np.array(sizes, dtype=np.int64)
        self._alone = self._sizes.copy()
        self._parts = Parts(len(sizes))
        self._cells = cells if given else int(self._sizes.sum())
        for first, *others in given:
            for column in others:
                self._alone[[first, column]] = 0
                self._parts.join(first, column)

    def join(self, a: int, b: int) -> None:
        """Add a pair of columns."""
        self._cells = int(self.grown(a, b))
        self._alone[[a, b]] = 0
        self._parts.join(a, b)

    def apart(self, first: Places | int, second: Places | int) -> NDArray[np.bool_]:
        """For each pair of columns whether no path joins them."""
        return self._parts.apart(first, second)

    def grown(self, first: Places | int, second: Places | int) -> NDArray[np.int64]:
        """For each pair of columns that is apart, the cells that the junction tree would have with it."""
        added = self._sizes[first] * self._sizes[second]
        return np.asarray(self._cells + added - self._alone[first] - self._alone[second])
