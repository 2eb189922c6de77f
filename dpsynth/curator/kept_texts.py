"""The texts of a column whose domain is to be found, and their exact counts.

Invariant: private. Texts are kept whole, so coding them later gives the same codes as coding on loading.
Counts of texts add up over parts of the rows, as long as all rows of a unit are in one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.curator.coded_columns import Room, rows_of

_BLOCK = 1 << 12
"""Number of texts that are read at once: together they stay far below Arrow's limit."""

Counts = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """The cells of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], without blanks around them, each once; a missing cell is empty.
        index: int32[rows], the text of each row.
    """

    distinct: pa.LargeStringArray
    index: NDArray[np.int32]

    def of_rows(self, kept: NDArray[np.bool_], room: Room) -> Texts:
        """The texts of some rows; texts without any row left stay among the distinct ones."""
        return Texts(self.distinct, rows_of({"": self.index}, kept, room)[""])

    @property
    def trimmed(self) -> Texts:
        """The same rows, without texts that none of them has."""
        used, index = np.unique(self.index, return_inverse=True)
        return Texts(self.distinct.take(pa.array(used, pa.int32())), index.astype(np.int32, copy=False))

    def counts(self, unit: NDArray[np.int32] | None) -> TextCounts:
        """Number of rows and of units of each distinct text. Private.

        Args:
            unit: int32[rows], the unit of each row, numbered from 0; None where each row is one.
        """
        texts = len(self.distinct)
        rows = np.bincount(self.index, minlength=texts).astype(np.int64, copy=False)
        if unit is None:
            return TextCounts(self.distinct, rows, rows)
        units = int(unit.max(initial=0)) + 1
        pairs = np.unique(self.index.astype(np.int64) * units + unit)
        each = np.bincount(pairs // units, minlength=texts).astype(np.int64, copy=False)
        return TextCounts(self.distinct, rows, each)

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function for each distinct text; see ``TextCounts.each``."""
        return _each(self.distinct, read)


@dataclass(frozen=True, eq=False, repr=False)
class TextCounts:
    """Exact numbers of rows and of units of the texts of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], each once.
        rows: int64[texts], rows of each.
        units: int64[texts], units with rows of each.
    """

    distinct: pa.LargeStringArray
    rows: Counts
    units: Counts

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function for each distinct text; it is called on some thousands of texts at a time."""
        return _each(self.distinct, read)

    @classmethod
    def added(cls, parts: Sequence[TextCounts]) -> TextCounts:
        """The counts of all parts of the rows, of which no two share a unit."""
        together = pa.chunked_array([part.distinct for part in parts], pa.large_string())
        coded = together.combine_chunks().dictionary_encode()
        at, texts = coded.indices.to_numpy(), len(coded.dictionary)
        rows, units = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        np.add.at(rows, at, np.concatenate([part.rows for part in parts]))
        np.add.at(units, at, np.concatenate([part.units for part in parts]))
        return cls(coded.dictionary, rows, units)


def _each(distinct: pa.LargeStringArray, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
    found = [read(pa.array([], pa.string()))]
    for start in range(0, len(distinct), _BLOCK):
        # A slice keeps its offset in the whole array, which may exceed 32 bits.
        spots = pa.array(np.arange(start, min(start + _BLOCK, len(distinct))))
        found.append(read(pc.cast(distinct.take(spots), pa.string())))
    return np.concatenate(found)
