"""Typed rows of the private table, as rules see them, and a sample of them that fits into memory.

Invariant: values are as the table has them, read by the columns' own codecs and not clipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.expression import references
from dpsynth.columns.formulas import LARGEST, Operand
from dpsynth.columns.layout import Layout
from dpsynth.columns.search import PrefixSearch, ValueSearch
from dpsynth.wings.owner.assess.tallies import codec_of

Numbers = NDArray[np.float64]

_MOST = 30_000
"""Rows of a sample: all of a smaller table."""
_SEED = 11


@dataclass(frozen=True, eq=False)
class TypedRows:
    """Some rows, with the typed values of each column that is read from the table.

    Attributes:
        layout: the layout of the synthetic table, for the kinds of columns.
        texts: the cells of each column.
    """

    layout: Layout
    texts: Mapping[str, pa.StringArray]

    @cached_property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.texts.values())))

    @cached_property
    def _columns(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.layout.columns}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table: those of the layout without parts of moments."""
        return tuple(column for column in self.layout.columns if not column.part_of)

    @cached_property
    def _read(self) -> dict[str, Operand]:
        return {}

    def operand(self, name: str) -> Operand:
        """The values of a column, each distinct text of which is read once."""
        if name not in self._read:
            column = self._columns[name]
            coded = pc.dictionary_encode(column.values_of(self.texts[column.source]))
            texts = coded.dictionary
            found = texts if isinstance(column.search, ValueSearch) else codec_of(column).parsed(texts)
            values = found.take(coded.indices)
            written = pc.if_else(values.is_valid(), texts.take(coded.indices), pa.scalar(None, pa.string()))
            self._read[name] = Operand(self.layout.kinds[name], values, written)
        return self._read[name]

    def operands(self, names: Sequence[str]) -> dict[str, Operand]:
        """The values of some columns, and of the derived columns that are computed from them."""
        found = {name: self.operand(name) for name in names}
        for derived in self.layout.in_turn():
            if found.keys() >= set(references(derived.formula)):
                found[derived.name] = derived.operand(found, self.rows)
        return found

    def keys(self, name: str) -> pa.Array:
        """The cells of a column's values, as ties see them; null where missing.

        Of codes with levels the first level decides, since a release may tell no more of them.
        """
        column = self._columns[name]
        if column.search is not None:
            texts = self.operand(name).texts
            levels = column.search.levels if isinstance(column.search, PrefixSearch) else ()
            return pc.utf8_slice_codeunits(texts, 0, levels[0]) if levels else texts
        coded = pc.dictionary_encode(self.texts[column.source], null_encoding="encode")
        codes = column.encode(coded.dictionary)
        cells = pa.array(codes, mask=codes >= len(column.codec.labels))
        return cells.take(coded.indices)

    def codes(self, name: str) -> NDArray[np.int64]:
        """Numbers from 0 on for the keys of a column, -1 where missing."""
        indices = pc.dictionary_encode(self.keys(name)).indices
        return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


class RowSample:
    """Rows of a table at random, all of a small one, in one pass and bounded memory."""

    def __init__(self, layout: Layout) -> None:
        """No row."""
        self._layout = layout
        self._rng = np.random.default_rng(_SEED)
        self._share = 1.0
        self._parts: list[tuple[Numbers, pa.Table]] = []
        self._rows = 0

    @property
    def whole(self) -> bool:
        """True if no row was left out."""
        return self._share == 1.0

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        """Some rows more. Each has a random number, and the rows of the least numbers are kept."""
        names = [column.source for column in self._layout.columns if not column.part_of]
        table = pa.table({name: batch[name] for name in names})
        numbers = self._rng.random(len(table))
        if self._share < 1.0:
            numbers, table = _below(self._share, numbers, table)
        self._parts.append((numbers, table))
        self._rows += len(table)
        while self._rows > 2 * _MOST:
            self._share /= 2
            self._parts = [_below(self._share, *part) for part in self._parts]
            self._rows = sum(len(numbers) for numbers, _ in self._parts)

    def sampled(self) -> TypedRows:
        """The rows of the sample."""
        names = [column.source for column in self._layout.columns if not column.part_of]
        schema = pa.schema([(name, pa.string()) for name in names])
        tables = [table.cast(schema) for _, table in self._parts] or [schema.empty_table()]
        table = pa.concat_tables(tables).combine_chunks()
        chunks = {name: table.column(name).chunks for name in names}
        empty = pa.array([], pa.string())
        return TypedRows(self._layout, {n: c[0] if c else empty for n, c in chunks.items()})


def _below(share: float, numbers: Numbers, table: pa.Table) -> tuple[Numbers, pa.Table]:
    kept = numbers < share
    return numbers[kept], table.filter(pa.array(kept))


def as_numbers(values: pa.Array) -> Numbers:
    """Values as doubles, NaN where missing, or too large for formulas."""
    found = np.asarray(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.abs(found) <= LARGEST, found, np.nan)
