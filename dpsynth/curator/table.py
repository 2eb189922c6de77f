"""The private table in memory: one small integer for each cell, or its text if the domain is to be found.

Invariant: the table is exact and private; every code is inside the public domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import cells_of
from dpsynth.columns.column import Column, codes_of, domain_of
from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finer_counts import Pieces
from dpsynth.columns.sums import Centring
from dpsynth.curator.coded_columns import ALL_IN_MEMORY, Room, TextCounts, Texts, looked_up
from dpsynth.curator.counting import added_up, counted


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows. Its repr shows nothing, and only the curator holds one.

    Attributes:
        domain: the public domain of the columns that are coded.
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: number of rows after contribution bounding. Private unless the relation makes it public.
        texts: the cells of each column whose domain is to be found.
        unit: int32[rows], a number for the person of each row, if there are such columns and persons.
        steps: column to int32[rows], the number of each row in steps, for columns that are summed and coded.
        summed: names of the columns that are summed.
        groups: the group of each code, for columns whose domain is compressed.
        room: where coded columns may lie.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int
    texts: Mapping[str, Texts] = field(default_factory=dict)
    unit: NDArray[np.int32] | None = None
    steps: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    summed: frozenset[str] = frozenset()
    groups: Mapping[str, NDArray[np.unsignedinteger]] = field(default_factory=dict)
    room: Room = ALL_IN_MEMORY

    @property
    def texts_kept(self) -> frozenset[str]:
        """Names of the columns that keep their texts."""
        return frozenset(self.texts)

    @property
    def numbers_kept(self) -> frozenset[str]:
        """Names of the columns whose numbers can be summed."""
        return frozenset(self.steps)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the coded rows."""
        held = [*self.codes.values(), *self.steps.values(), *(t.index for t in self.texts.values())]
        return sum(array.nbytes for array in held)

    def counts_of(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Exact marginals, int64 of shape ``domain.shape(clique)``, from one pass over the rows. Private."""
        return counted(self._codes_in, self.domain, self.rows, cliques)

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64 of shape ``domain.shape(clique)``. Private."""
        return self.counts_of([clique])[0]

    def sums(self, column: str, by: Clique, centring: Centring) -> NDArray[np.int64]:
        """Exact sums of bounded distances by group, int64 of shape ``domain.shape(by)``. Private."""
        cells, bins = self.domain.cells(by), len(centring.offsets)
        offsets = np.array([*centring.offsets, 0], dtype=np.int64)

        def figures(block: slice) -> list[NDArray[np.int64]]:
            code = np.minimum(self._codes_in(column, block).astype(np.int64), bins)
            distance = np.clip(self.steps[column][block] - offsets[code], -centring.limit, centring.limit)
            columns = {c: self._codes_in(c, block) for c in by}
            cell = cells_of(columns, self.domain, by, len(code))
            # Floats are exact here: a block's sum of distances is below 2^53.
            return [np.bincount(cell, weights=distance, minlength=cells).astype(np.int64)]

        return added_up(figures, self.rows, [cells])[0].reshape(self.domain.shape(by))

    def finer_counts(self, column: str, by: Clique, pieces: Pieces) -> NDArray[np.int64]:
        """Exact counts of pieces by group, int64 of shape (*``domain.shape(by)``, pieces). Private."""
        number, groups = len(pieces.first), self.domain.cells(by)

        def figures(block: slice) -> list[NDArray[np.int64]]:
            code = self._codes_in(column, block)
            piece = np.searchsorted(pieces.array, self.steps[column][block], side="right") - 1
            columns = {c: self._codes_in(c, block) for c in by}
            cell = cells_of(columns, self.domain, by, len(code)).astype(np.int64) * number + piece
            return [np.bincount(cell[code < pieces.bins], minlength=groups * number).astype(np.int64)]

        shape = (*self.domain.shape(by), number)
        return added_up(figures, self.rows, [groups * number])[0].reshape(shape)

    def texts_of(self, column: str) -> TextCounts:
        """Exact numbers of rows and units of the texts of a column that keeps them. Private."""
        return self.texts[column].counts(self.unit)

    def _codes_in(self, column: str, block: slice) -> NDArray[np.unsignedinteger]:
        codes = self.codes[column][block]
        return self.groups[column][codes] if column in self.groups else codes

    def recoded(self, compression: Compression) -> PrivateTable:
        """The same rows with groups in place of values; a code's group is looked up when rows are counted.

        Raises:
            ValueError: the compression is not of this table's domain, or its values are grouped already.
        """
        if self.groups:
            raise ValueError("groups can't be grouped again")
        domain = compression.coarse(self.domain)
        groups = {
            column: groups.astype(np.min_scalar_type(domain.sizes[column] - 1))
            for column, groups in compression.groups.items()
        }
        return PrivateTable(domain, self.codes, self.rows, groups=groups)

    def coded(self, columns: Sequence[Column]) -> PrivateTable:
        """The same rows with codes for all columns, after all domains are found; no texts are kept.

        Args:
            columns: the columns of this table, in their final order.

        Raises:
            ValueError: the domain of a column is not found yet.
        """
        codes, steps = dict(self.codes), dict(self.steps)
        for column in columns:
            if column.name in self.texts:
                texts = self.texts[column.name]
                read = texts.each(partial(codes_of, column))
                codes[column.name] = looked_up(read, texts.index, self.room)
                if column.name in self.summed:
                    numbers = texts.each(partial(steps_in, column))
                    steps[column.name] = looked_up(numbers, texts.index, self.room)
        own = {c.name: codes[c.name] for c in columns}
        return PrivateTable(
            domain_of(columns), own, self.rows, steps=steps, summed=self.summed, room=self.room
        )


def steps_in(column: Column, texts: pa.StringArray) -> NDArray[np.int32]:
    """The number of each text in steps, within the bin of its code; 0 for a text without a bin.

    Raises:
        ValueError: the column has no numbers to be summed.
    """
    steps = column.codec.steps
    if steps is None:
        raise ValueError(f"column {column.name} has no numbers to be summed")
    codes = column.encode(texts)
    bins = len(steps.low)
    low, high = (
        np.append(steps.low, 0)[np.minimum(codes, bins)],
        np.append(steps.high, 0)[np.minimum(codes, bins)],
    )
    return np.clip(steps.of(column.values_of(texts)), low, high).astype(np.int32)
