"""Tallies of the private table as a release reads it, for its owner's eyes: exact counts of cells by reading.

Invariant: a table is tallied in one pass and bounded memory, but for eight bytes for each row with a person.
Cells are read by the columns' own codecs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category_codec import CategoryCodec
from dpsynth.columns.codec import Codec, Reading
from dpsynth.columns.column import Column
from dpsynth.columns.numeric_codec import NumericCodec
from dpsynth.columns.search import NumberSearch, PrefixSearch
from dpsynth.columns.text_codec import TextCodec
from dpsynth.curator.contribution_bounding import nobody
from dpsynth.curator.loading import unit_codes

_MOST_TEXTS = 20_000
_LARGEST = 10.0**15
_LONGEST = 200


@dataclass
class Misread:
    """Texts of one reading that is not VALUE.

    Attributes:
        cells: number of cells.
        texts: cells of each text, for the first 20 000 different texts.
    """

    cells: int = 0
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, texts: pa.StringArray, counts: NDArray[np.int64]) -> None:
        """Count the distinct texts of a batch."""
        self.cells += int(counts.sum())
        short = pc.utf8_slice_codeunits(texts, 0, _LONGEST).to_pylist()
        for text, count in zip(short, counts.tolist(), strict=True):
            if text in self.texts or len(self.texts) < _MOST_TEXTS:
                self.texts[text] = self.texts.get(text, 0) + count


@dataclass(eq=False)
class ColumnTally:
    """Cells of one column by reading.

    Attributes:
        column: the column.
        codec: the codec that reads its cells.
        missing: cells that are empty or hold a marker of missing cells.
        values: cells that are read as the value that they say.
        misread: the texts of every other reading.
        places: int64[cells of the domain], cells of each code; empty where the domain is to be found.
    """

    column: Column
    missing: int = 0
    values: int = 0
    misread: dict[Reading, Misread] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with no cell."""
        self.codec = codec_of(self.column)
        self.places = np.zeros(0 if self.column.search else self.column.size, np.int64)

    @property
    def cells(self) -> int:
        """Number of all cells."""
        return self.missing + self.values + sum(m.cells for m in self.misread.values())

    def count(self, *readings: Reading) -> int:
        """Number of cells of some readings that are not VALUE."""
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

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        """Count the rows of a batch."""
        self.codes.append(unit_codes(batch, self.near, self.key))

    def rows(self) -> tuple[NDArray[np.int64], int]:
        """Rows of each person with an id, int64[persons], and the number of rows without an id."""
        everyone = np.concatenate([np.zeros(0, np.uint64), *self.codes])
        persons, rows = np.unique(everyone, return_counts=True)
        named = persons != nobody(self.key)
        return rows[named].astype(np.int64), int(rows[~named].sum())
