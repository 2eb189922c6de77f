"""Tables to compare in released cells: the private table as the release read it, and the synthetic one.

Invariant: both tables are read by the same codecs. The private table is exact, and stays in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.bundle import restore
from dpsynth.bundle.row_files import table_names
from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import companion
from dpsynth.columns.numeric_codec import NumericCodec
from dpsynth.config.files import FileForm
from dpsynth.config.files.form import named_form
from dpsynth.config.files.place import Place
from dpsynth.curator import MemoryTable, as_texts, read_batches
from dpsynth.curator.contribution_bounding import nobody, rows_kept
from dpsynth.curator.loading import rows_within, unit_codes
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.assess.owned_bundle import OwnedBundle

Cells = NDArray[np.unsignedinteger]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class CodedTable:
    """Rows in released cells, with the numbers themselves where a column has numbers. Its repr shows nothing.

    Attributes:
        columns: the released columns.
        codes: column to unsigned codes[rows].
        numbers: column of numbers to float64[rows] in raw units; NaN for a cell without a number.
        units: uint64[rows], the person of each row; None where rows are the units.
    """

    columns: tuple[Column, ...]
    codes: Mapping[str, Cells]
    numbers: Mapping[str, Numbers]
    units: NDArray[np.uint64] | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.codes.values())))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of codes of each column."""
        return {column.name: column.size for column in self.columns}

    def take(self, spots: NDArray[np.int64]) -> CodedTable:
        """The rows at some positions."""
        return CodedTable(
            self.columns,
            {name: codes[spots] for name, codes in self.codes.items()},
            {name: numbers[spots] for name, numbers in self.numbers.items()},
            None if self.units is None else self.units[spots],
        )

    def cells(self, clique: Clique) -> NDArray[np.int64]:
        """The cell of each row in a marginal, int64[rows], in row-major order."""
        cell = np.zeros(self.rows, np.int64)
        for name in clique:
            cell = cell * self.sizes[name] + self.codes[name]
        return cell

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """The exact marginal, int64[cells], in row-major order."""
        cells = int(np.prod([self.sizes[name] for name in clique], dtype=np.int64))
        return np.bincount(self.cells(clique), minlength=cells)


def private_table(bundle: OwnedBundle, table: Place | MemoryTable, form: FileForm) -> CodedTable:
    """The private table as the release read it: its rows of the slice, after contribution bounding.

    Args:
        bundle: the bundle.
        table: the table in memory, or the place of its file.
        form: the form of the file.

    Raises:
        SourceError: the table can't be read, or lacks a column.
    """
    near, part = bundle.neighbours, bundle.part
    names = [column.source for column in bundle.columns]
    more = [*near.columns, *([] if part is None else [part.column])]
    wanted, broken = list(dict.fromkeys([*names, *more])), near.person is None
    if isinstance(table, MemoryTable):
        read = as_texts(table.batches(wanted))
    else:
        read = read_batches(table, wanted, form, keep_broken=broken, keep_empty=near.rows_public)
    batches = (dict(batch) if part is None else rows_within(batch, part) for batch in read)
    if near.person is None:
        return _coded(bundle.columns, batches)
    key, people = bundle.key(), list[NDArray[np.uint64]]()

    def named() -> Iterator[Mapping[str, pa.StringArray]]:
        for batch in batches:
            persons = unit_codes(batch, near, key)
            used = np.ones(len(persons), np.bool_)
            if near.nameless == "left_out":
                used = persons != nobody(key)
            people.append(persons[used])
            yield {name: cells.filter(pa.array(used)) for name, cells in batch.items()}

    coded = _coded(bundle.columns, named())
    units = np.concatenate([np.zeros(0, np.uint64), *people])
    whole = CodedTable(coded.columns, coded.codes, coded.numbers, units)
    return whole.take(np.flatnonzero(rows_kept(units, near.max_rows, key)))


def synthetic_table(bundle: OwnedBundle) -> CodedTable:
    """The synthetic table of a bundle.

    Raises:
        ConfigError: the bundle has none.
    """
    columns = bundle.columns
    names = [column.name for column in columns if not column.part_of]
    found = table_names(sorted(path.name for path in bundle.public.iterdir()))
    if not found:
        raise ConfigError(
            f"{bundle.public} has no synthetic table: neither synthetic.parquet nor synthetic.csv."
        )
    # The Parquet file or folder is the last; it has types.
    text = bundle.public / found[-1]
    if text.suffix == ".parquet":
        wanted = [*names, *(companion(c.name) for c in columns if c.distinct)]
        files = sorted(text.glob("*.parquet")) if text.is_dir() else [text]
        batches = (b for file in files for b in pq.ParquetFile(file).iter_batches(columns=wanted))
        return _coded(columns, (_texts(columns, batch) for batch in batches))
    # Names, too, may have an apostrophe in front.
    header = pa.array(names, pa.string())
    from dpsynth.bundle import neutralise

    written = dict(zip(neutralise(header).to_pylist(), names, strict=True))
    form = FileForm(compression=named_form(text.name)[1])
    read = read_batches(text, list(written), form, keep_broken=True)
    return _coded(columns, ({written[n]: restore(c) for n, c in batch.items()} for batch in read))


def _texts(columns: Sequence[Column], batch: pa.RecordBatch) -> dict[str, pa.StringArray]:
    return {
        c.name: c.text(
            batch.column(batch.schema.get_field_index(c.name)),
            batch.column(batch.schema.get_field_index(companion(c.name))) if c.distinct else None,
        )
        for c in columns
        if not c.part_of
    }


def _coded(columns: tuple[Column, ...], batches: Iterable[Mapping[str, pa.StringArray]]) -> CodedTable:
    codes: dict[str, list[Cells]] = {c.name: [np.zeros(0, np.min_scalar_type(c.size - 1))] for c in columns}
    numbers: dict[str, list[Numbers]] = {
        c.name: [np.zeros(0)] for c in columns if isinstance(c.codec, NumericCodec)
    }
    for batch in batches:
        for column in columns:
            coded = batch[column.source].dictionary_encode(null_encoding="encode")
            spots = coded.indices.to_numpy(zero_copy_only=False)
            codes[column.name].append(codes_of(column, coded.dictionary)[spots])
            if isinstance(column.codec, NumericCodec):
                read = column.codec.form.read(column.values_of(coded.dictionary))
                numbers[column.name].append(np.asarray(read, np.float64)[spots])
    return CodedTable(
        columns,
        {name: np.concatenate(parts) for name, parts in codes.items()},
        {name: np.concatenate(parts) for name, parts in numbers.items()},
    )
