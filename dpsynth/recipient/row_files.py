"""Rows written piece by piece, as CSV or as Parquet.

Invariant: memory is that of one piece, and a file appears whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.domain.layout import Layout
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.publish.csv_files import csv_header, csv_lines

FORMATS = (".csv", ".parquet")


def print_rows(tables: Iterable[pa.Table], layout: Layout) -> None:
    """Write rows to standard output, as CSV, as long as somebody reads."""
    try:
        for piece in _csv(tables, layout):
            sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has enough; what Python would still flush at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(tables: Iterable[pa.Table], layout: Layout, path: Path) -> int:
    """Write rows to a new file, and count them.

    Raises:
        ConfigError: the name ends in neither .csv nor .parquet.
        DpsynthError: the file exists, or can't be written.
    """
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path} must end in .csv or .parquet, which says how rows are written.")
    if path.exists():
        raise DpsynthError(f"{path} exists already. Give a new name.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    counted: list[int] = []
    try:
        if path.suffix == ".csv":
            with part.open("xb") as file:
                for piece in _csv(_counted(tables, counted), layout):
                    file.write(piece)
        else:
            _write_parquet(_counted(tables, counted), part)
        part.replace(path)
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return sum(counted)


def _counted(tables: Iterable[pa.Table], counted: list[int]) -> Iterator[pa.Table]:
    for table in tables:
        counted.append(table.num_rows)
        yield table


def _csv(tables: Iterable[pa.Table], layout: Layout) -> Iterator[bytes]:
    begun = False
    for table in tables:
        texts = layout.texts(table)
        if not begun:
            yield csv_header(list(texts))
            begun = True
        yield from csv_lines(list(texts.values()))


def _write_parquet(tables: Iterable[pa.Table], path: Path) -> None:
    writer = None
    try:
        for table in tables:
            plain = table.replace_schema_metadata(None)
            if writer is None:
                writer = pq.ParquetWriter(path, plain.schema, compression="zstd")
            writer.write_table(plain)
    finally:
        if writer is not None:
            writer.close()
