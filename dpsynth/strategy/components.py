"""Connected components of a graph of columns that grows edge by edge.

Invariant: two columns have the same number exactly if a path of edges joins them.
"""

from __future__ import annotations

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
