"""Rows of units that follow each other, as far as their drawing has to know of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique


class Sequences(Protocol):
    """Rows of which those of a unit stand together and in order, with columns that never change or fall."""

    @property
    def steady(self) -> Clique:
        """The columns that never change or fall, whose values no rule changes."""

    @property
    def kept(self) -> Clique:
        """These, and the column that rows are ordered by: no rule changes their cells."""

    def cells(self, codes: Mapping[str, Codes], columns: Iterable[Column]) -> dict[str, Codes]:
        """Codes, int64[rows] of some columns, that never change or fall; missing cells stay missing."""

    def values(
        self, codes: Mapping[str, Codes], values: Mapping[str, pa.Array], rng: np.random.Generator
    ) -> dict[str, pa.Array]:
        """Values in these cells that follow the row before, and never change or fall where cells don't."""

    def replaced(
        self,
        codes: Mapping[str, Codes],
        values: Mapping[str, pa.Array],
        bad: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> Codes:
        """For each row itself, or if its unit has a bad row or step, one of a unit without, int64[rows]."""
