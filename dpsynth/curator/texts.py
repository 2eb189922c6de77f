"""The cells of a column whose places are still to be found: each distinct text once, and a number a row.

Invariant: exact and private. A text is kept whole whatever it is, so that the coding to come reads what a
coding on loading would have read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_BLOCK = 1 << 12
"""Texts that are read at once: what they take together stays far below Arrow's limit."""

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

    def of_rows(self, kept: NDArray[np.bool_]) -> Texts:
        """The texts of some rows; those of no row left stay among the distinct ones."""
        return Texts(self.distinct, self.index[kept])

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Number of rows of each distinct text. Private."""
        return np.bincount(self.index, minlength=len(self.distinct)).astype(np.int64, copy=False)

    def units(self, unit: NDArray[np.int32] | None) -> NDArray[np.int64]:
        """Number of units with rows of each distinct text. Private.

        Args:
            unit: int32[rows], the unit of each row, numbered from 0; None where each row is one.
        """
        if unit is None:
            return self.rows
        units = int(unit.max(initial=0)) + 1
        pairs = np.unique(self.index.astype(np.int64) * units + unit)
        return np.bincount(pairs // units, minlength=len(self.distinct)).astype(np.int64, copy=False)

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """What a function of texts makes of each distinct one, called on some thousands of them at a time."""
        found = [read(pa.array([], pa.string()))]
        for start in range(0, len(self.distinct), _BLOCK):
            # A slice keeps its place in the whole, which may be beyond what a short offset can tell.
            spots = pa.array(np.arange(start, min(start + _BLOCK, len(self.distinct))))
            found.append(read(pc.cast(self.distinct.take(spots), pa.string())))
        return np.concatenate(found)


def coded_texts(cells: pa.StringArray) -> pa.DictionaryArray:
    """The cells of a batch without blanks around them, each distinct text once."""
    stripped = pc.fill_null(pc.utf8_trim_whitespace(cells), "")
    return pc.dictionary_encode(pc.cast(stripped, pa.large_string()))


def gathered(batches: Iterable[pa.DictionaryArray]) -> Texts:
    """The texts of all batches, in their order."""
    kind = pa.dictionary(pa.int32(), pa.large_string())
    whole = pa.chunked_array([*batches, pa.array([], kind)], kind).unify_dictionaries()
    index = np.concatenate([part.indices.to_numpy() for part in whole.chunks])
    return Texts(whole.chunks[0].dictionary, index.astype(np.int32, copy=False))
