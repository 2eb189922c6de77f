"""The rows of the private table for its owner's eyes: exact tallies of how cells are read, and a sample.

Invariant: a table is passed through once, in bounded memory, but for eight bytes for each row with a person.
Cells are read by the columns' own codecs; the values of the sample are as the table has them, not clipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.codec import Codec, Reading
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.expression import LARGEST, Operand, references
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.text import TextCodec
from dpsynth.curator.units import nobody, unit_codes

MOST_TEXTS = 20_000

_LARGEST = 10.0**15

_LONGEST = 200


@dataclass
class Misread:
    """Texts of one reading; of values, those of whole numbers alone.

    Attributes:
        cells: number of cells.
        texts: cells of each text, for the first 20 000 different texts.
    """

    cells: int = 0
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, texts: pa.StringArray, counts: NDArray[np.int64]) -> None:
        self.cells += int(counts.sum())
        short = pc.utf8_slice_codeunits(texts, 0, _LONGEST).to_pylist()
        for text, count in zip(short, counts.tolist(), strict=True):
            if text in self.texts or len(self.texts) < MOST_TEXTS:
                self.texts[text] = self.texts.get(text, 0) + count


@dataclass(eq=False)
class ColumnTally:
    """Cells of one column by reading.

    Attributes:
        column: the column.
        lists: true if its declaration may list ``values``.
        codec: the codec that reads its cells.
        missing: cells that are empty or hold a marker of missing cells.
        values: cells that are read as the value that they say.
        misread: the texts of every other reading.
        numbers: the texts of values that are whole numbers, where a cell of the model may hold several.
        places: int64[cells of the domain], cells of each code; empty where the domain is to be found.
    """

    column: Column
    lists: bool = True
    missing: int = 0
    values: int = 0
    misread: dict[Reading, Misread] = field(default_factory=dict)
    numbers: Misread = field(default_factory=Misread)

    def __post_init__(self) -> None:
        self.codec = codec_of(self.column)
        self._whole = (
            isinstance(self.codec, NumericCodec) and self.codec.integer and bool(self.codec.half_widths.any())
        )
        self.places = np.zeros(0 if self.column.search else self.column.size, np.int64)

    @property
    def cells(self) -> int:
        return self.missing + self.values + sum(m.cells for m in self.misread.values())

    def count(self, *readings: Reading) -> int:
        return sum(self.misread[r].cells for r in readings if r in self.misread)

    def add(self, cells: pa.StringArray) -> None:
        """Count the cells of a batch; each distinct text is read once."""
        coded = pc.dictionary_encode(cells, null_encoding="encode")
        texts, spots = coded.dictionary, coded.indices.to_numpy(zero_copy_only=False)
        counts = np.bincount(spots, minlength=len(texts)).astype(np.int64)
        values = self.column.values_of(texts)
        here = np.asarray(values.is_valid())
        self.missing += int(counts[~here].sum())
        if len(self.places):
            found = np.bincount(self.column.encode(texts), weights=counts, minlength=len(self.places))
            self.places += found.astype(np.int64)
        values, counts = values.filter(pa.array(here)), counts[here]
        readings = self.codec.readings(values)
        if self.column.search is not None:
            # Values outside the list are what is searched for.
            readings[readings == Reading.OTHER] = Reading.VALUE
        for reading in Reading:
            hit = readings == reading
            if reading is Reading.VALUE:
                self.values += int(counts[hit].sum())
                if self._whole and len(self.numbers.texts) < MOST_TEXTS:
                    self.numbers.add(values.filter(pa.array(hit)), counts[hit])
            elif hit.any():
                told = self.misread.setdefault(reading, Misread())
                told.add(values.filter(pa.array(hit)), counts[hit])


def codec_of(column: Column) -> Codec:
    """The codec that reads the cells of a column; where a domain is to be found, one of all that may be."""
    search = column.search
    if search is None:
        return column.codec
    if isinstance(search, NumberSearch):
        low = -_LARGEST if search.low is None else search.low
        high = _LARGEST if search.high is None else search.high
        return NumericCodec((low, high + search.integer / 2), search.decimals, search.integer, search.form)
    if isinstance(search, PrefixSearch):
        return TextCodec(search.pattern, ("",))
    return CategoryCodec((search.other,), search.other)


@dataclass
class PersonTally:
    """Rows of each person.

    Attributes:
        near: relation and unit.
        codes: the codes of the persons of each batch, uint64[rows].
    """

    near: Neighbours
    key: bytes
    codes: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, batch: Mapping[str, pa.StringArray]) -> NDArray[np.uint64]:
        """The codes of the persons of a batch's rows, which are counted."""
        self.codes.append(unit_codes(batch, self.near, self.key))
        return self.codes[-1]

    def rows(self) -> tuple[NDArray[np.int64], int]:
        """Rows of each person with an id, int64[persons], and the number of rows without an id."""
        everyone = np.concatenate([np.zeros(0, np.uint64), *self.codes])
        persons, rows = np.unique(everyone, return_counts=True)
        named = persons != nobody(self.key)
        return rows[named].astype(np.int64), int(rows[~named].sum())


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
        self._layout = layout
        self._rng = np.random.default_rng(_SEED)
        self._share = 1.0
        self._parts: list[tuple[Numbers, pa.Table]] = []
        self._rows = 0

    @property
    def whole(self) -> bool:
        return self._share == 1.0

    @property
    def numbers(self) -> Numbers:
        """The random number of each row of the sample."""
        return np.concatenate([np.zeros(0), *(numbers for numbers, _ in self._parts)])

    def add(self, batch: Mapping[str, pa.StringArray], numbers: Numbers | None = None) -> None:
        """Some rows more. Each has a random number below 1, and the rows of the least numbers are kept.

        Args:
            numbers: those of the rows, if some belong together.
        """
        names = [column.source for column in self._layout.columns if not column.part_of]
        table = pa.table({name: batch[name] for name in names})
        numbers = self._rng.random(len(table)) if numbers is None else numbers
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
