"""Noisy numbers of units by their number of rows: whom the contribution bound cuts off, and by how much.

The cells are public ranges of numbers of rows. A unit stands in one cell, so the counts have the noise of
single rows, however many rows a unit may have.

Invariant: public. The ranges follow from the configuration, and the counts are a paid, noisy answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.measurement import Noisy

_FINE = 4
"""Up to this multiple of the bound a cell begins a quarter above the one before; beyond, at its double."""
_FARTHEST = 64
"""The last cell, which is open, begins at this multiple of the bound, or before."""


def ranges_of_rows(bound: int, *, each: bool) -> tuple[int, ...]:
    """The least number of rows of each cell, rising from 1; the last cell has no end.

    Above the bound, cells widen with the number of rows: up to four times the bound each begins a quarter
    above the one before, and beyond at its double. Narrower cells would tell less: each adds noise to sums.

    Args:
        bound: the contribution bound, or the largest one that may be found.
        each: True if every number up to the bound has a cell of its own, False if one cell has them all.

    >>> ranges_of_rows(4, each=False)
    (1, 5, 6, 7, 8, 10, 12, 15, 18, 36, 72, 144)
    >>> ranges_of_rows(3, each=True)
    (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 24, 48, 96, 192)
    """
    first = list(range(1, bound + 1)) if each else [1]
    start = bound + 1
    while start <= _FARTHEST * bound or start == bound + 1:
        first.append(start)
        start += max(start // 4, 1) if start < _FINE * bound else start
    return tuple(first)


@dataclass(frozen=True, eq=False)
class UnitsByRows(Noisy):
    """Noisy numbers of units by their number of rows, charged and drawn by the curator.

    Attributes:
        first: the least number of rows of each cell, rising from 1; the last cell has no end.
        values: int64[cells], numbers of units plus noise.
        noise: "gaussian" or "laplace".
        scale: sigma or b, in units.
    """

    first: tuple[int, ...]
    values: NDArray[np.int64]
    noise: str
    scale: float

    def up_to(self, most: int) -> NDArray[np.int64]:
        """Noisy numbers of units with 1, 2, ... rows, int64[most]; the last one is of all with more, too.

        Raises:
            ValueError: a number of rows up to ``most`` has no cell of its own.
        """
        if self.first[:most] != tuple(range(1, most + 1)):
            raise ValueError("these numbers of rows have no cells of their own")
        return np.append(self.values[: most - 1], self.values[most - 1 :].sum())
