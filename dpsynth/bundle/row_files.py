"""Files of rows, written piece by piece: CSV, compressed or not, and Parquet, in one file or several.

Invariant: memory is that of one piece. The content of a file follows from its rows and from the pieces in
which they come.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.bundle.csv_files import csv_header, csv_lines
from dpsynth.bundle.row_source import PIECE, RowSource
from dpsynth.columns.codec import Codes
from dpsynth.columns.finished_table import CodedRows, Reading
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules import RuledRows, RuleRepairs

SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".parquet")
"""Ends of file names, which say how rows are written."""
NO_CODES: Mapping[str, Codes] = MappingProxyType({})
TABLE = "synthetic"
"""Name of the synthetic table's files, without suffix."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class RowFile(Protocol):
    """A file of rows under way."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the files so far, relative to their folder."""
        ...

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
        """Write rows after those that are there; codes of columns from which they were made spare work."""
        ...

    def close(self) -> None:
        """End the file."""
        ...


class CsvFile:
    """A CSV file; compressed with gzip or zstd if its name ends so."""

    def __init__(self, path: Path, layout: Layout) -> None:
        """Begin a new file."""
        self.names = (path.name,)
        self._layout = layout
        self._begun = False
        self._raw = path.open("xb")
        compression = _COMPRESSIONS.get(path.suffix)
        self._file: IO[bytes] | pa.CompressedOutputStream = (
            pa.CompressedOutputStream(pa.PythonFile(self._raw, "w"), compression)
            if compression
            else self._raw
        )

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
        """Write rows; the header before the first ones."""
        texts = self._layout.written(table, codes)
        if not self._begun:
            self._file.write(csv_header(list(texts)))
            self._begun = True
        for lines in csv_lines(list(texts.values())):
            self._file.write(lines)

    def close(self) -> None:
        """End the file."""
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()


class ParquetFile:
    """A Parquet file; or a folder of that name with files of so many rows each."""

    def __init__(self, path: Path, rows_a_file: int | None = None) -> None:
        """Begin a new file or folder."""
        self.names: tuple[str, ...] = ()
        self._path, self._most = path, rows_a_file
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        if rows_a_file is not None:
            path.mkdir()

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
        """Write rows."""
        del codes
        plain, begin = table.replace_schema_metadata(None), 0
        while begin < plain.num_rows or self._writer is None:
            room = plain.num_rows if self._most is None else self._most - self._rows
            if self._writer is None or not room:
                self._begin(plain.schema)
                room = plain.num_rows if self._most is None else self._most
            part = plain.slice(begin, room)
            assert self._writer is not None
            self._writer.write_table(part)
            self._rows += part.num_rows
            begin += part.num_rows

    def _begin(self, schema: pa.Schema) -> None:
        self.close()
        path = self._path
        if self._most is not None:
            path = path / f"part-{len(self.names):05}.parquet"
        self.names = (*self.names, str(path.relative_to(self._path.parent)))
        self._writer, self._rows = pq.ParquetWriter(path, schema, compression="zstd"), 0

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()


def row_file(path: Path, layout: Layout, rows_a_file: int | None = None) -> RowFile:
    """A new file of rows, by the end of its name, one of ``SUFFIXES``.

    Args:
        path: the file.
        layout: the rows' columns.
        rows_a_file: for Parquet, the number of rows of each file of a folder; None: one file.
    """
    return ParquetFile(path, rows_a_file) if path.suffix == ".parquet" else CsvFile(path, layout)


def table_names(files: Iterable[str]) -> tuple[str, ...]:
    """The synthetic table among the files of a bundle, a name a format, sorted: of a file, or of a folder.

    >>> table_names(["synthetic.csv", "synthetic.parquet/part-00000.parquet", "model.npz"])
    ('synthetic.csv', 'synthetic.parquet')
    """
    first = {name.split("/")[0] for name in files}
    return tuple(sorted(name for name in first if name.startswith(f"{TABLE}.")))


@dataclass(frozen=True)
class TableFiles:
    """The files of a synthetic table that are written.

    Attributes:
        names: their names, relative to their folder.
        rows: the number of rows.
    """

    names: tuple[str, ...]
    rows: int


class TableWriter:
    """The synthetic table written in several formats at once."""

    def __init__(
        self, folder: Path, layout: Layout, formats: Sequence[str], rows_a_file: int | None = None
    ) -> None:
        """Begin new files in a folder, one for each format."""
        self.folder, self._rows = folder, 0
        self._files = [
            row_file(folder / f"{TABLE}{suffix}", layout, rows_a_file)
            for suffix in SUFFIXES
            if suffix[1:] in formats
        ]

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
        """Write rows to all of them; ``codes`` as for ``Layout.written``."""
        self._rows += table.num_rows
        for file in self._files:
            file.write(table, codes)

    @property
    def written(self) -> TableFiles:
        """The files, after they are closed."""
        return TableFiles(tuple(name for file in self._files for name in file.names), self._rows)

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all files."""
        with ExitStack() as stack:
            for file in self._files:
                stack.callback(file.close)


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """The synthetic table of a release.

    Attributes:
        source: the source of its rows.
        rows, columns: their numbers.
        coded: its codes.
        files: its files; without names if it was published before.
        generator: the generator as it was before the rows were drawn.
        piece: all rows, if they are one piece.
        repairs: the rows that broke rules as they were drawn, and what was changed so that all obey.
    """

    source: RowSource
    rows: int
    columns: int
    coded: CodedRows
    files: TableFiles
    generator: np.random.Generator
    piece: pa.Table | None = None
    repairs: RuleRepairs = field(default_factory=RuleRepairs)

    @classmethod
    def drawn(
        cls,
        source: RowSource,
        number: int,
        rng: np.random.Generator,
        advanced: Callable[[int, int], None],
        writer: TableWriter | None = None,
    ) -> SyntheticTable:
        """A table of so many rows; what is written is what is coded, piece by piece.

        Args:
            advanced: takes the number of rows that are drawn, and their whole number.
            writer: takes the rows, into the public folder; None if they are published already.
        """
        before, repairs = copy.deepcopy(rng), RuleRepairs()
        readings = [Reading(column) for column in source.layout.columns]
        coded, done, whole = CodedRows(None if writer is None else writer.folder.parent), 0, []
        for rows in source.pieces(number, rng):
            coded.add({reading.column.name: reading.codes(rows) for reading in readings})
            if writer is not None:
                writer.write(rows.table, rows.codes)
            done += rows.table.num_rows
            if isinstance(rows, RuledRows):
                repairs = repairs.with_more(rows.repairs)
            if number <= PIECE:
                whole.append(rows.table)
            columns = rows.table.num_columns
            advanced(done, number)
        files = TableFiles((), number) if writer is None else writer.written
        return cls(source, number, columns, coded, files, before, whole[0] if whole else None, repairs)

    @cached_property
    def table(self) -> pa.Table:
        """All rows in memory; if they are several pieces, drawn once more, which gives the same rows."""
        if self.piece is not None:
            return self.piece
        return self.source.table(self.rows, copy.deepcopy(self.generator))
