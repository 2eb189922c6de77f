"""The private table in memory: one small integer for each cell, or its text if the domain is to be found.

Invariant: the table is exact and private; every code is inside the public domain. Texts are kept whole, so
coding them later gives the same codes as coding on loading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.domain.column import Column, codes_of, domain_of
from dpsynth.domain.compression import Compression
from dpsynth.domain.domain import Clique, Domain

_CHUNK = 1 << 18
_BLOCK = 1 << 12
"""Number of texts that are read at once: together they stay far below Arrow's limit."""

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
        """The texts of some rows; texts without any row left stay among the distinct ones."""
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
        """Results of a function for each distinct text; it is called on some thousands of texts at a time."""
        found = [read(pa.array([], pa.string()))]
        for start in range(0, len(self.distinct), _BLOCK):
            # A slice keeps its offset in the whole array, which may exceed 32 bits.
            spots = pa.array(np.arange(start, min(start + _BLOCK, len(self.distinct))))
            found.append(read(pc.cast(self.distinct.take(spots), pa.string())))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows. Its repr shows nothing, and only the curator holds one.

    Attributes:
        domain: the public domain of the columns that are coded.
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: number of rows after contribution bounding. Private unless the relation makes it public.
        texts: the cells of each column whose domain is to be found.
        unit: int32[rows], a number for the person of each row, if there are such columns and persons.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int
    texts: Mapping[str, Texts] = field(default_factory=dict)
    unit: NDArray[np.int32] | None = None

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64 of shape ``domain.shape(clique)``. Private."""
        cells = self.domain.cells(clique)
        total = np.zeros(cells, dtype=np.int64)
        # Narrow integers for cells are faster to compute.
        number = np.min_scalar_type(cells) if cells < 1 << 32 else np.dtype(np.int64)
        for start in range(0, self.rows, _CHUNK):
            stop = min(start + _CHUNK, self.rows)
            cell = np.zeros(stop - start, dtype=number)
            for i, column in enumerate(clique):
                if i > 0:
                    np.multiply(cell, number.type(self.domain.sizes[column]), out=cell)
                np.add(cell, self.codes[column][start:stop], out=cell, casting="unsafe")
            total += np.bincount(cell, minlength=cells)
        return total.reshape(self.domain.shape(clique))

    def recoded(self, compression: Compression) -> PrivateTable:
        """The same rows with groups in place of values.

        Raises:
            ValueError: the compression is not of this table's domain.
        """
        domain, codes = compression.coarse(self.domain), dict(self.codes)
        for column, groups in compression.groups.items():
            codes[column] = groups.astype(np.min_scalar_type(domain.sizes[column] - 1))[codes[column]]
        return PrivateTable(domain, codes, self.rows)

    def coded(self, columns: Sequence[Column]) -> PrivateTable:
        """The same rows with codes for all columns, after all domains are found; no texts are kept.

        Args:
            columns: the columns of this table, in their final order.

        Raises:
            ValueError: the domain of a column is not found yet.
        """
        codes = dict(self.codes)
        for column in columns:
            if column.name in self.texts:
                texts = self.texts[column.name]
                codes[column.name] = texts.each(partial(codes_of, column))[texts.index]
        return PrivateTable(domain_of(columns), {c.name: codes[c.name] for c in columns}, self.rows)
