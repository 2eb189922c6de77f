"""Which columns are joined by chosen pairs: the parts of a graph that grows edge by edge.

Invariant: two columns have the same number exactly if a path of edges joins them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


class Parts:
    """Columns by place, at first each a part of its own."""

    def __init__(self, columns: int) -> None:
        """No edges."""
        self._part = np.arange(columns)

    def join(self, a: int, b: int) -> None:
        """Add an edge."""
        self._part[self._part == self._part[b]] = self._part[a]

    def apart(self, first: Places | int, second: Places | int) -> NDArray[np.bool_]:
        """For each pair of columns whether no path joins them."""
        return np.asarray(self._part[first] != self._part[second])
