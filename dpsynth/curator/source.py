"""Reader of the private table: batches of text cells, whatever the cells hold.

Invariant: broken structure (no file, no such column, no table at all) is a clear error
before anything is charged; a broken cell or row is no error, and no message quotes one. The header
alone decides if a CSV file is a table. A row is broken if it has too few or too many cells, bytes that are
no text, or no end.
"""

from __future__ import annotations

import codecs
import csv as plain_csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyarrow import csv, parquet

from dpsynth.curator.cell_texts import readable, text_of
from dpsynth.errors import SourceError

_BATCH_ROWS = 1 << 18
_BLOCKS = (16 << 20, 256 << 20)
"""Bytes that are parsed at once: of a usual file, and of a repaired one."""

_LONGEST_HEADER = 1 << 20


def header_of(path: Path, kind: Literal["csv", "parquet"], separator: str = ",") -> list[str]:
    """The names of a file's columns.

    Raises:
        SourceError: the file can't be opened, or is no table.
    """
    with _plainly(path, kind):
        return _csv_header(path, separator)[0] if kind == "csv" else list(parquet.read_schema(path).names)


def read_batches(
    path: Path,
    columns: Sequence[str],
    kind: Literal["csv", "parquet"],
    *,
    keep_broken: bool,
    separator: str = ",",
) -> Iterator[dict[str, pa.StringArray]]:
    """Some columns of a CSV or Parquet file as text, batch by batch.

    Cells are never interpreted here. A CSV row with too few or too many of them is broken.

    Args:
        path: the file.
        columns: names of the columns to read.
        kind: the file's format.
        keep_broken: True if a broken row becomes a row of missing cells, after all other rows; False if
            it is left out. It must be kept if a row is the unit, as the number of rows may be
            public. It must be left out if a person is the unit, as the row has no person.
        separator: the sign between the cells of a CSV file.

    Raises:
        SourceError: the file can't be opened, is no table, or lacks a column.
    """
    with _plainly(path, kind):
        if kind == "parquet":
            yield from _parquet_batches(path, columns)
        else:
            yield from _csv_batches(path, columns, separator, keep_broken)


def check_source(
    path: Path, columns: Sequence[str], kind: Literal["csv", "parquet"], *, separator: str = ","
) -> None:
    """Raise SourceError if the beginning of the file shows that ``read_batches`` would.

    The header of a CSV file decides; of a Parquet file the first rows are read too.
    """
    with _plainly(path, kind):
        if kind == "parquet":
            next(_parquet_batches(path, columns), None)
        else:
            require_columns(columns, _csv_header(path, separator)[0], str(path))


@contextmanager
def _plainly(path: Path, kind: str) -> Iterator[None]:
    """Errors of a file that is no table, replaced by a SourceError that quotes no cell."""
    if not os.path.isfile(path):  # noqa: PTH113
        # Path.is_file raises where a name is too long, or a folder may not be searched.
        raise SourceError(
            f"There is no file {path}. Set source.path in the config, or give --source PATH; relative paths "
            "start at the working directory."
        )
    try:
        yield
    except PermissionError:
        raise SourceError(f"{path} may not be read by this user.") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # Arrow's messages quote cells; the last error is about names of columns.
        raise SourceError(
            f"{path} can't be read as a {kind} file: it is of another format, or broken."
        ) from None


def require_columns(columns: Sequence[str], header: Sequence[str], table: str) -> None:
    """Refuse a table that lacks a column, or has two of its name.

    Args:
        columns: names of the columns that will be read.
        header: all names of the table.
        table: its name in messages.

    Raises:
        SourceError: a column is absent, or there twice.
    """
    counted = Counter(header)
    absent = [c for c in columns if c not in counted]
    if absent:
        names = ", ".join(f"'{c}'" for c in absent[:5]) + (" and others" if len(absent) > 5 else "")
        raise SourceError(
            f"{table} has no column {names}. Its header must hold every column that the config declares, "
            "spelt the same, and those of privacy.unit and period."
        )
    twice = sorted({c for c in columns if counted[c] > 1})
    if twice:
        raise SourceError(f"{table} has more than one column named '{twice[0]}'.")


def _csv_batches(
    path: Path, columns: Sequence[str], separator: str, keep_broken: bool
) -> Iterator[dict[str, pa.StringArray]]:
    header, more = _csv_header(path, separator)
    require_columns(columns, header, str(path))
    if not more:
        # Arrow takes a lone header without a line end for no file at all.
        return
    for batch in _csv_rows(path, header, columns, separator, keep_broken=keep_broken):
        yield dict(zip(columns, batch, strict=True))


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[dict[str, pa.StringArray]]:
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        schema = file.schema_arrow
        require_columns(columns, schema.names, str(path))
        nested = [c for c in columns if not readable(schema.field(c).type)]
        if nested:
            raise SourceError(
                f"Column '{nested[0]}' of {path} holds lists or records, or cells of a type that can't be "
                "written as text, such as times in an unknown time zone."
            )
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
            yield {c: text_of(batch.column(c)) for c in columns}


# CSV


def _csv_header(path: Path, separator: str) -> tuple[list[str], bool]:
    """The names in the first line, and True where the file goes on after it.

    Raises:
        SourceError: there is no first line, or it is no header.
    """
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
        more = bool(file.read(1))
    if not first.strip():
        raise SourceError(f"{path} is empty: its first line must be a header.")
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text:
        raise SourceError(f"{path} is no CSV file: its first line is not UTF-8 text.")
    try:
        if len(first) == _LONGEST_HEADER and more:
            raise plain_csv.Error
        # Strict: a quote that is not closed in the first line would take rows into the header.
        return next(plain_csv.reader([text], delimiter=separator, strict=True)), more
    except plain_csv.Error:
        raise SourceError(f"{path} is no CSV file: its first line is no header.") from None


def _csv_rows(
    path: Path, header: Sequence[str], columns: Sequence[str], separator: str, *, keep_broken: bool
) -> Iterator[list[pa.StringArray]]:
    """Rows after the header, in batches: a text column for each of ``columns``, in their order.

    Args:
        path: the file.
        header: all names in its first line.
        columns: the names that are read, each once in the header.
        separator: the sign between cells.
        keep_broken: True if broken rows come as rows of nulls, after all other rows.
    """
    spots = {name: spot for spot, name in enumerate(header)}
    positions = [spots[c] for c in columns]
    given = 0
    for mended, size in list(enumerate(_BLOCKS))[not _is_text(path) :]:
        # Arrow gives up at a row longer than a block; then the file is read again with larger blocks. Arrow
        # passes a broken row on as text, and prints a row that is no text, so such a file is repaired first.
        # Arrow's threads must not repair it on the fly: they could outlive the interpreter.
        broken, seen = _Count(), 0
        file = pa.BufferReader(_mended(path)) if mended else pa.OSFile(str(path))
        try:
            for batch in _parsed(file, len(header), positions, separator, size, broken):
                seen += batch.num_rows
                if seen > given:
                    yield [text_of(cells) for cells in batch.slice(batch.num_rows - (seen - given)).columns]
                    given = seen
        except pa.ArrowInvalid:
            continue
        break
    else:
        # A row without an end takes the rest of the file, and counts as one broken row.
        broken.rows += 1
    left = broken.rows if keep_broken else 0
    while left:
        size = min(left, 1 << 18)
        yield [pa.nulls(size, pa.string())] * len(positions)
        left -= size


class _Count:
    """A counter of broken rows, which Arrow then leaves out."""

    rows = 0

    def __call__(self, row: csv.InvalidRow) -> Literal["skip"]:
        del row
        self.rows += 1
        return "skip"


def _is_text(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                decoder.decode(data)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _mended(path: Path) -> pa.Buffer:
    """A whole file in memory, in which bytes that are not UTF-8 are replacement characters."""
    decoder, text = codecs.getincrementaldecoder("utf-8")("replace"), pa.BufferOutputStream()
    with path.open("rb") as file:
        while data := file.read(_BLOCKS[0]):
            text.write(decoder.decode(data).encode())
    text.write(decoder.decode(b"", final=True).encode())
    return text.getvalue()


def _names(positions: Sequence[int]) -> list[str]:
    return [f"{position}" for position in positions]


def _parsed(
    file: pa.NativeFile, width: int, positions: Sequence[int], separator: str, size: int, broken: _Count
) -> Iterator[pa.RecordBatch]:
    reader = csv.open_csv(
        file,
        csv.ReadOptions(column_names=_names(range(width)), skip_rows=1, block_size=size),
        csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            invalid_row_handler=broken,
            ignore_empty_lines=width > 1,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(_names(positions), pa.binary()),
            include_columns=_names(positions),
            strings_can_be_null=False,
            check_utf8=False,
        ),
    )
    yield from reader
