"""Values of the cells of a column's partition, as rules use them.

Invariant: a value that a cell decodes to is among the values given for it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Intervals:
    """Numbers, or moments and durations in microseconds, between two ends.

    Attributes:
        low, high: float64[cells], the ends, which are values themselves.
        spacing: of moments, the distance of neighbouring values in microseconds; None of all others.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    spacing: float | None = None

    @property
    def single(self) -> bool:
        """True if each cell has one value."""
        return bool((self.low == self.high).all())


@dataclass(frozen=True, eq=False)
class Truths:
    """Truth values, one a cell.

    Attributes:
        true: bool[cells].
    """

    true: NDArray[np.bool_]

    @property
    def single(self) -> bool:
        """True: each cell has one value."""
        return True


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts.

    Attributes:
        holding: for a text, the cells that may hold it, bool[cells].
        exact: the one text of each cell, where each has but one.
    """

    holding: Callable[[str], NDArray[np.bool_]]
    exact: tuple[str, ...] | None = None

    @property
    def single(self) -> bool:
        """True if each cell has one value."""
        return self.exact is not None


CellValues = Intervals | Truths | Texts


def exact_texts(texts: tuple[str, ...]) -> Texts:
    """One text a cell.

    >>> exact_texts(("F", "M")).holding("M").tolist()
    [False, True]
    """
    return Texts(lambda text: np.array([own == text for own in texts], dtype=np.bool_), texts)
