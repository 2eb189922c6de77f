"""Reading the private table: batches of text cells, whatever the cells hold.

Invariant: broken structure (no file, no such column, no table at all) is a clear error
before anything is charged; a broken cell or row is not an error, and no message quotes one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyarrow import parquet

from dpsynth.curator.cell_texts import readable, text_of
from dpsynth.curator.csv_rows import csv_header, csv_rows
from dpsynth.errors import SourceError

_BATCH_ROWS = 1 << 18


def _require(columns: Sequence[str], header: Sequence[str], path: Path) -> None:
    counted = Counter(header)
    absent = [c for c in columns if c not in counted]
    if absent:
        names = ", ".join(f"'{c}'" for c in absent[:5]) + (" and others" if len(absent) > 5 else "")
        raise SourceError(
            f"{path} has no column {names}. Its header must hold every column that the config declares, "
            "spelt the same, and those of privacy.unit and period."
        )
    twice = sorted({c for c in columns if counted[c] > 1})
    if twice:
        raise SourceError(f"{path} has more than one column named '{twice[0]}'.")


def header_of(path: Path, kind: Literal["csv", "parquet"], separator: str = ",") -> list[str]:
    """The names of a file's columns.

    Raises:
        SourceError: the file can't be opened, or is no table.
    """
    with _plainly(path, kind):
        return csv_header(path, separator)[0] if kind == "csv" else list(parquet.read_schema(path).names)


def _csv_batches(
    path: Path, columns: Sequence[str], separator: str, keep_broken: bool
) -> Iterator[dict[str, pa.StringArray]]:
    header, more = csv_header(path, separator)
    _require(columns, header, path)
    if not more:
        # Arrow takes a lone header without a line end for no file at all.
        return
    for batch in csv_rows(path, header, columns, separator, keep_broken=keep_broken):
        yield dict(zip(columns, batch, strict=True))


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[dict[str, pa.StringArray]]:
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        schema = file.schema_arrow
        _require(columns, schema.names, path)
        nested = [c for c in columns if not readable(schema.field(c).type)]
        if nested:
            raise SourceError(
                f"Column '{nested[0]}' of {path} holds lists or records, or cells of a type that can't be "
                "told as text, such as times in a time zone that nobody knows."
            )
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
            yield {c: text_of(batch.column(c)) for c in columns}


def read_batches(
    path: Path,
    columns: Sequence[str],
    kind: Literal["csv", "parquet"],
    *,
    keep_broken: bool,
    separator: str = ",",
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
        separator: what stands between the cells of a CSV file.

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
    """Raise SourceError where ``read_batches`` would, for all that can be known from the beginning.

    The header of a CSV file decides; of a Parquet file the first rows are read too.
    """
    with _plainly(path, kind):
        if kind == "parquet":
            next(_parquet_batches(path, columns), None)
        else:
            _require(columns, csv_header(path, separator)[0], path)


@contextmanager
def _plainly(path: Path, kind: str) -> Iterator[None]:
    """Whatever a file is that is no table, it is a SourceError that quotes nothing of it."""
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
        # Arrow's messages quote cells; the last is of columns' names.
        raise SourceError(
            f"{path} can't be read as a {kind} file: it is of another format, or broken."
        ) from None
