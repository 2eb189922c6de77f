"""A column: its name, its places, and where missing and unusable cells go.

Invariant: every cell has a code, whatever it holds; which codes exist depends on the
config alone, so a first missing or malformed cell changes no schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.domain.domain import Domain
from dpsynth.domain.places import NOWHERE, Codes, Places

MISSING_LABEL = "(missing)"


@dataclass(frozen=True)
class Column:
    """One column of the private and of the synthetic table.

    Attributes:
        name: as in the header of the source.
        places: what its values may be.
        missing: whether missing is a place of its own, the last code. It then also takes
            malformed and unknown cells.
        markers: texts that mean missing, besides the empty one. The first is written back.
        fallback: code that takes unusable cells where ``missing`` is False.
    """

    name: str
    places: Places
    missing: bool = True
    markers: tuple[str, ...] = ()
    fallback: int = 0

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.places.labels) + self.missing

    @property
    def labels(self) -> tuple[str, ...]:
        """One public name a code."""
        return (*self.places.labels, MISSING_LABEL) if self.missing else self.places.labels

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected value of each code that is not missing, or None if not numeric."""
        return self.places.centres

    def encode(self, texts: pa.StringArray) -> Codes:
        """Codes in 0..size-1 of the cells' texts; null means missing."""
        stripped = pc.utf8_trim_whitespace(texts)
        absent = pc.is_in(stripped, pa.array(["", *self.markers], pa.string()))
        values = pc.if_else(absent, pa.scalar(None, pa.string()), stripped)
        codes = self.places.encode(values)
        unusable = len(self.places.labels) if self.missing else self.fallback
        return np.where(codes == NOWHERE, unusable, codes)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A typed value for each code, null for missing."""
        gone = codes >= len(self.places.labels)
        values = self.places.decode(np.where(gone, 0, codes), rng)
        return pc.if_else(pa.array(gone), pa.scalar(None, values.type), values) if gone.any() else values

    def text(self, values: pa.Array) -> pa.StringArray:
        """Decoded values as they stand in a CSV file: missing as its first marker."""
        return pc.fill_null(self.places.text(values), self.markers[0] if self.markers else "")


def domain_of(columns: Iterable[Column]) -> Domain:
    """The discrete domain of some columns."""
    return Domain({c.name: c.size for c in columns})
