"""Files of rows and of figures: CSV by RFC 4180, compressed or not, and Parquet, in one file or several.

CSV is UTF-8 with commas and LF, and has quotes only where a cell needs them. The writer of pyarrow.csv would
quote every text or none; a synthetic table should look like the private table.

Invariant: every text and every column name of a CSV file has passed ``neutralise``, and ``restore`` gives it
back. Memory is that of one piece. The content of a file follows from its rows and from the pieces in which
they come.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import floor, log10
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, TYPE_CHECKING, Literal, Protocol, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth.bundle.row_source import PIECE, RowSource
from dpsynth.columns.codec import Codes
from dpsynth.columns.column import domain_of
from dpsynth.columns.domain import with_rows_before
from dpsynth.columns.finished_table import CodedRows, Reading
from dpsynth.columns.layout import Layout
from dpsynth.columns.number_texts import parse_numbers
from dpsynth.columns.rules import RuledRows, RuleRepairs

if TYPE_CHECKING:
    import pandas as pd

Library = Literal["pandas", "polars", "pyarrow"]
"""Libraries whose tables come back as their own; all others get frames of pandas."""


def frame_of(table: pa.Table, library: Library = "pandas") -> pd.DataFrame:
    """A table as a frame of a library; by its annotation, one of pandas.

    In pandas types are nullable if cells may be missing, dates are datetime64, ordered categories an ordered
    Categorical, times of day datetime.time.
    """
    if library == "pyarrow":
        return cast("pd.DataFrame", table)
    if library == "polars":
        import polars  # type: ignore[import-not-found,unused-ignore]

        return cast("pd.DataFrame", polars.from_arrow(table))
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get, date_as_object=False)


GUARD = "'"

_RISKY = "^(?:'|[\\t\\r\\n]|[\\s\\p{Z}\\p{C}]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"

_SPELT_NUMBER = "^[+-][$€£¥]?[0-9][0-9.,:' _\u00a0\u202f]*[%€£¥$]?$"


def neutralise(texts: pa.StringArray) -> pa.StringArray:
    """Texts with an apostrophe in front of those that a spreadsheet might run; null stays null.

    A spreadsheet runs a cell of a CSV file that begins with = + - or @ (their full-width forms included, and
    white space or invisible characters in front of them), and splits one that begins with a tab or a line
    break. Such a text gets an apostrophe in front, which spreadsheets show as text. So that the rule can be
    undone, a text that begins with an apostrophe gets one more. Numbers are left as they are, "-5",
    "-$1,234.50" and "-00:30" among them: digits and their separators are no formula.
    """
    risky = pc.match_substring_regex(texts, _RISKY)
    if not pc.any(risky).as_py():
        return texts
    plain_number = pa.array(~np.isnan(parse_numbers(texts)))
    harmless = pc.or_(plain_number, pc.match_substring_regex(texts, _SPELT_NUMBER))
    guarded = pc.binary_join_element_wise(GUARD, texts, "")
    return pc.if_else(pc.and_not(risky, harmless), guarded, texts)


def restore(texts: pa.StringArray) -> pa.StringArray:
    """The texts that ``neutralise`` was given: the first apostrophe of each is dropped."""
    return pc.if_else(pc.starts_with(texts, GUARD), pc.utf8_slice_codeunits(texts, 1), texts)


_NEEDS_QUOTES = r'[",\r\n]|^\s|\s$'

_ROWS_AT_ONCE = 100_000

_BYTES_AT_ONCE = 1 << 30
"""Bytes of lines that are made at a time, at most; an array of texts has fewer than 2^31."""

_PARTS = 1 << 13
"""Distinct parts of lines that are made beforehand, at most: they stay in the processor's cache."""

_DIGITS = 9


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    doubled = pc.replace_substring(texts, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, _NEEDS_QUOTES), wrapped, texts)


def _cells(columns: Sequence[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """Columns of texts as they are written in the file; in a table of one column, empty is written as ""."""
    # All at once: to make ready the patterns that are looked for takes longer than a short column.
    written = _quoted(neutralise(pa.concat_arrays([column.dictionary for column in columns])))
    if len(columns) == 1:
        # Readers skip a line with nothing on it, and would lose the row.
        written = pc.if_else(pc.equal(written, ""), '""', written)
    ends = list(accumulate((len(column.dictionary) for column in columns), initial=0))
    return [
        pa.DictionaryArray.from_arrays(column.indices, written.slice(start, end - start))
        for column, (start, end) in zip(columns, pairwise(ends), strict=True)
    ]


def write_csv(path: Path, names: Sequence[str], columns: Sequence[pa.StringArray]) -> None:
    """Write one file of text columns without nulls, all of one length, under the given names."""
    with path.open("wb") as file:
        file.write(csv_header(names))
        for lines in csv_lines([column.dictionary_encode() for column in columns]):
            file.write(lines)


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of a file."""
    texts = _cells([pa.array([name], pa.string()).dictionary_encode() for name in names])
    return (",".join(text[0].as_py() for text in texts) + "\n").encode()


def csv_lines(columns: Sequence[pa.DictionaryArray]) -> Iterator[memoryview]:
    """The lines of some rows, piece by piece.

    Args:
        columns: texts without nulls, each distinct one once or more, all of one length.
    """
    if not columns:
        return
    ready = _cells(columns)
    last = pc.binary_join_element_wise(ready[-1].dictionary, "\n", "")
    ready[-1] = pa.DictionaryArray.from_arrays(ready[-1].indices, last)
    longest = sum(1 + (pc.max(pc.binary_length(column.dictionary)).as_py() or 0) for column in ready)
    step = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // longest))
    joined = _joined(ready)
    for start in range(0, len(ready[0]), step):
        yield _lines([column.slice(start, step) for column in joined])


def _joined(columns: Sequence[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """Neighbouring columns of few distinct texts as one column, whose texts are parts of lines."""
    found = [columns[0]]
    for column in columns[1:]:
        before, few = found[-1], len(column.dictionary)
        if len(before.dictionary) * few > min(_PARTS, len(column)):
            found.append(column)
            continue
        both = np.arange(len(before.dictionary) * few)
        texts = pc.binary_join_element_wise(
            before.dictionary.take(pa.array(both // few)), column.dictionary.take(pa.array(both % few)), ","
        )
        index = before.indices.to_numpy().astype(np.int32)
        index *= few
        index += column.indices.to_numpy()
        found[-1] = pa.DictionaryArray.from_arrays(pa.array(index), texts)
    return found


def _lines(columns: Sequence[pa.DictionaryArray]) -> memoryview:
    """Whole lines: the content of the Arrow array whose elements they are."""
    texts = [column.dictionary.take(column.indices) for column in columns]
    whole = pc.binary_join_element_wise(*texts, ",")
    _, offsets, content = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(content)[int(ends[whole.offset]) : int(ends[whole.offset + len(whole)])]


def number_texts(values: pa.Array) -> pa.StringArray:
    """Numbers as text with at most nine significant digits of the largest number; null becomes empty.

    Further digits are rounding errors of the arithmetic; they would make equal files differ.
    """
    numbers = values.to_numpy(zero_copy_only=False)
    largest = float(np.nanmax(np.abs(numbers), initial=0.0))
    digits = _DIGITS - 1 - floor(log10(largest)) if largest > 0.0 else 0
    rounded = pa.array(np.round(numbers, digits), pa.float64(), from_pandas=True)
    return pc.fill_null(pc.cast(rounded, pa.string()), "")


SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".parquet")
"""Ends of file names, which say how rows are written."""
NO_CODES: Mapping[str, Codes] = MappingProxyType({})
TABLE = "synthetic"
"""Name of the synthetic table's files, without suffix."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class RowFile(Protocol):
    """A file of rows under way."""

    @property
    def names(self) -> Sequence[str]: ...

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None: ...

    def close(self) -> None: ...


class CsvFile:
    """A CSV file, or rows on the way to one; compressed with gzip or zstd if its name ends so."""

    def __init__(self, raw: IO[bytes], layout: Layout, path: Path | None = None) -> None:
        self.names = () if path is None else (path.name,)
        self._layout = layout
        self._begun = False
        self._raw = raw
        compression = None if path is None else _COMPRESSIONS.get(path.suffix)
        self._file: IO[bytes] | pa.CompressedOutputStream = (
            pa.CompressedOutputStream(pa.PythonFile(raw, "w"), compression) if compression else raw
        )

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
        texts = self._layout.written(table, codes)
        if not self._begun:
            self._file.write(csv_header(list(texts)))
            self._begun = True
        for lines in csv_lines(list(texts.values())):
            self._file.write(lines)

    def close(self) -> None:
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()


class ParquetFile:
    """A Parquet file; or a folder of that name with files of so many rows each."""

    def __init__(self, path: Path, rows_a_file: int | None = None) -> None:
        self.names: tuple[str, ...] = ()
        self._path, self._most = path, rows_a_file
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        if rows_a_file is not None:
            path.mkdir()

    def write(self, table: pa.Table, codes: Mapping[str, Codes] = NO_CODES) -> None:
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
        if self._writer is not None:
            self._writer.close()


def row_file(path: Path, layout: Layout, rows_a_file: int | None = None) -> RowFile:
    """A new file of rows, by the end of its name, one of ``SUFFIXES``."""
    if path.suffix == ".parquet":
        return ParquetFile(path, rows_a_file)
    return CsvFile(path.open("xb"), layout, path)


def table_names(files: Iterable[str]) -> tuple[str, ...]:
    """The synthetic table among the files of a bundle, a name a format, sorted: of a file, or of a folder.

    >>> table_names(["synthetic.csv", "synthetic.parquet/part-00000.parquet", "model.npz"])
    ('synthetic.csv', 'synthetic.parquet')
    """
    first = {name.split("/")[0] for name in files}
    return tuple(sorted(name for name in first if name.startswith(f"{TABLE}.")))


@dataclass(frozen=True)
class TableFiles:
    """The files of a synthetic table that are written."""

    names: tuple[str, ...]
    rows: int


class TableWriter:
    """The synthetic table written in several formats at once."""

    def __init__(
        self, folder: Path, layout: Layout, formats: Sequence[str], rows_a_file: int | None = None
    ) -> None:
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
        return TableFiles(tuple(name for file in self._files for name in file.names), self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for file in self._files:
                stack.callback(file.close)


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """The synthetic table of a release.

    Attributes:
        rows, columns: their numbers.
        coded: its codes.
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
        with nullcontext() if writer is None else writer:
            for rows in source.pieces(number, rng):
                codes = {reading.column.name: reading.codes(rows) for reading in readings}
                if rows.units is not None:
                    same = np.r_[False, rows.units[1:] == rows.units[:-1]]
                    places = np.where(same, np.arange(-1, len(same) - 1), -1)
                    codes = with_rows_before(codes, domain_of(source.layout.columns), places)
                coded.add(codes)
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
