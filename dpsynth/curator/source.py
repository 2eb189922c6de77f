"""Reading the private table: batches of text cells, whatever the cells hold.

Invariant: broken structure (no file, no such column, no table at all) is a clear error
before anything is charged; a broken cell or row is not an error, and no message quotes one.
"""

from __future__ import annotations

import csv as plain_csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from dpsynth.errors import SourceError

_BLOCK = 16 << 20
_BATCH_ROWS = 1 << 18


def _text(column: pa.Array) -> pa.StringArray:
    """Any Arrow column as text; bytes that are not UTF-8 become replacement characters."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowInvalid:
        coded = pc.dictionary_encode(pc.cast(column, pa.binary()))
        texts = [v.decode("utf-8", "replace") for v in coded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(coded.indices)


def _require(columns: Sequence[str], header: Sequence[str], path: Path) -> None:
    absent = [c for c in columns if c not in header]
    if absent:
        names = ", ".join(f"'{c}'" for c in absent[:5]) + (" and others" if len(absent) > 5 else "")
        raise SourceError(
            f"{path} has no column {names}. Its header must hold every column that the config declares, "
            "spelt the same, and those of privacy.unit and period. Nothing was charged."
        )
    twice = sorted({c for c in columns if list(header).count(c) > 1})
    if twice:
        raise SourceError(f"{path} has more than one column named '{twice[0]}'. Nothing was charged.")


def _csv_header(path: Path) -> tuple[list[str], bool]:
    """The names in the first line, and whether anything comes after it."""
    with path.open("rb") as file:
        first = file.readline(1 << 20)
        more = bool(file.read(1))
    if not first.strip():
        raise SourceError(f"{path} is empty: its first line must be a header. Nothing was charged.")
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text:
        raise SourceError(f"{path} is no CSV file: its first line is not UTF-8 text. Nothing was charged.")
    try:
        return next(plain_csv.reader([text])), more
    except plain_csv.Error:
        words = "is no CSV file: its first line is no header. Nothing was charged."
        raise SourceError(f"{path} {words}") from None


def _csv_batches(
    path: Path, columns: Sequence[str], keep_broken: bool
) -> Iterator[dict[str, pa.StringArray]]:
    header, more = _csv_header(path)
    _require(columns, header, path)
    if not more:
        # Arrow takes a lone header without a line end for no file at all.
        return
    names = [f"{i}" for i in range(len(header))]
    wanted = [names[header.index(c)] for c in columns]
    broken = 0

    def count(row: csv.InvalidRow) -> Literal["skip"]:
        nonlocal broken
        broken += 1
        return "skip"

    reader = csv.open_csv(
        path,
        csv.ReadOptions(column_names=names, skip_rows=1, block_size=_BLOCK),
        csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=count, ignore_empty_lines=len(header) > 1
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.binary()),
            include_columns=wanted,
            strings_can_be_null=False,
            check_utf8=False,
        ),
    )
    for batch in reader:
        yield {c: _text(batch.column(i)) for i, c in enumerate(columns)}
    while broken and keep_broken:
        size = min(broken, _BATCH_ROWS)
        yield dict.fromkeys(columns, pa.nulls(size, pa.string()))
        broken -= size


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[dict[str, pa.StringArray]]:
    file = parquet.ParquetFile(path)
    schema = file.schema_arrow
    _require(columns, schema.names, path)
    nested = [c for c in columns if pa.types.is_nested(schema.field(c).type)]
    if nested:
        raise SourceError(f"Column '{nested[0]}' of {path} holds lists or records. Nothing was charged.")
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
        yield {c: _text(batch.column(c)) for c in columns}


def read_batches(
    path: Path, columns: Sequence[str], kind: Literal["csv", "parquet"], *, keep_broken: bool
) -> Iterator[dict[str, pa.StringArray]]:
    """Read some columns of a CSV or Parquet file as text, batch by batch.

    Cells are never interpreted here. A CSV row with too few or too many of them is broken.

    Args:
        path: the file.
        columns: names of the columns to read.
        kind: the file's format.
        keep_broken: whether a broken row becomes a row of missing cells, after all others,
            or is left out. It must be kept where a row is the unit, for the number of rows
            may be public; and left out where a person is, for nobody can say whose it is.

    Raises:
        SourceError: the file can't be opened, is no table, or lacks a column.
    """
    if not path.is_file():
        raise SourceError(
            f"There is no file {path}. Set source.path in the config, or give --source PATH; relative paths "
            "start at the working directory. Nothing was charged."
        )
    try:
        if kind == "parquet":
            yield from _parquet_batches(path, columns)
        else:
            yield from _csv_batches(path, columns, keep_broken)
    except PermissionError:
        raise SourceError(f"{path} may not be read by this user. Nothing was charged.") from None
    except (pa.ArrowException, OSError):
        # Arrow's messages quote cells.
        raise SourceError(
            f"{path} can't be read as a {kind} file: it is of another format, or broken. Nothing was charged."
        ) from None
