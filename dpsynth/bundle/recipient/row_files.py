"""Rows written piece by piece, to a new file or to standard output.

Invariant: memory is that of one piece, and a file appears whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from dpsynth.bundle.csv_files import csv_header, csv_lines
from dpsynth.bundle.row_files import SUFFIXES, row_file
from dpsynth.columns.layout import Layout
from dpsynth.errors import ConfigError, DpsynthError


def print_rows(tables: Iterable[pa.Table], layout: Layout) -> None:
    """Write rows to standard output, as CSV, as long as somebody reads."""
    out, begun = sys.stdout.buffer, False
    try:
        for table in tables:
            texts = layout.written(table)
            if not begun:
                out.write(csv_header(list(texts)))
                begun = True
            for lines in csv_lines(list(texts.values())):
                out.write(lines)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has enough; what Python would still flush at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(tables: Iterable[pa.Table], layout: Layout, path: Path) -> int:
    """Write rows to a new file, and count them.

    Raises:
        ConfigError: the name ends in none of ``SUFFIXES``.
        DpsynthError: the file exists, or can't be written.
    """
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is None:
        raise ConfigError(
            f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which says how rows are "
            "written."
        )
    if path.exists():
        raise DpsynthError(f"{path} exists already. Give a new name.")
    part = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
    rows = 0
    try:
        with closing(row_file(part, layout)) as file:
            for table in tables:
                file.write(table)
                rows += table.num_rows
        part.replace(path)
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return rows
