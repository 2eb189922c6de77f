"""A table's header: the first line of a CSV file, or the schema of a Parquet file.

Invariant: only the header is read. A first line that is a row of values rather than a header is
refused without quoting it.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from dpsynth.config.declaration import Declared
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.config.source import SEPARATORS
from dpsynth.domain.number_texts import is_number
from dpsynth.errors import SourceError
from dpsynth.starter.fitting import fitted
from dpsynth.starter.sketch import STUB, Draft, Sketch

FORMATS = ("csv", "parquet")
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Header:
    """The header of a table.

    Attributes:
        path: the table.
        kind: csv or parquet.
        names: names of the columns that a configuration can name, in order.
        types: declarations that follow from a Parquet file's schema, for some of the columns.
        unusable: number of columns without a name, or with the name of another column.
        separator: the sign between the cells of a CSV file.
    """

    path: Path
    kind: str
    names: tuple[str, ...]
    types: dict[str, Declared]
    unusable: int = 0
    separator: str = ","

    def draft(self) -> Draft:
        """A stub for each column, with its type if the schema has it."""
        columns = tuple(fitted(Sketch(name, dict(self.types.get(name, STUB)))) for name in self.names)
        part = "schema" if self.kind == "parquet" else "first line"
        origin = [f"The header of {self.path} was read, its {part}."]
        if self.unusable:
            origin.append("Columns without a name, or with that of another column, were left out.")
        return Draft(
            tuple(origin),
            columns,
            described=False,
            table=str(self.path),
            kind=self.kind,
            separator=self.separator,
        )


def read_header(path: Path, kind: str | None = None) -> Header:
    """The header of a CSV or Parquet file.

    Args:
        path: the table.
        kind: csv or parquet; left out: by the ending of the file's name, otherwise csv.

    Raises:
        SourceError: the file doesn't exist, is no table, or its first line is no header.
    """
    kind = kind or ("parquet" if path.suffix.lower() == ".parquet" else "csv")
    if not os.path.isfile(path):  # noqa: PTH113
        # Path.is_file raises where a name is too long, or a folder may not be searched.
        raise SourceError(f"There is no table {path}. Relative paths start at the working directory.")
    types: dict[str, Declared] = {}
    separator = ","
    try:
        if kind == "parquet":
            names, types = _parquet(path)
        else:
            names, separator = _csv(path)
    except OSError as error:
        # Arrow's own errors of this kind have no number, and may quote.
        reason = error.strerror or f"it is no {kind} file, or broken"
        raise SourceError(f"{path} can't be read: {reason}.") from None
    counted = Counter(names)
    usable = tuple(name for name in names if name and counted[name] == 1)
    if not usable:
        raise SourceError(f"{path} has no column with a name of its own.")
    if len(usable) > MAX_COLUMNS:
        raise SourceError(
            f"{path} has {len(usable):,} columns; a configuration can declare {MAX_COLUMNS:,}. Give a table "
            "of the columns that matter."
        )
    return Header(path, kind, usable, types, len(names) - len(usable), separator)


def _csv(path: Path) -> tuple[list[str], str]:
    """The names in the first line, and their separator: the one that gives the most names."""
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    try:
        if len(line) == _LONGEST_LINE:
            raise csv.Error
        # Strict: a quote that is not closed in the first line would take rows into the header.
        text = line.decode("utf-8-sig")
        found = [(next(csv.reader([text], delimiter=mark, strict=True), []), mark) for mark in _marks(text)]
    except (UnicodeDecodeError, csv.Error):
        raise SourceError(f"{path} is no CSV file: its first line is no header in UTF-8.") from None
    names, mark = max(found, key=lambda names_and_mark: len(names_and_mark[0]))
    if any("\0" in name for name in names):
        raise SourceError(f"{path} is no CSV file: its first line is no header in UTF-8.")
    if names and 2 * sum(is_number(name.strip()) for name in names) >= len(names):
        raise SourceError(
            f"The first line of {path} seems to be a row of values and not a header: at least half of it are "
            "numbers. Give the table a first line with the columns' names."
        )
    return names, mark


def _marks(text: str) -> list[str]:
    """Separators to try: the comma, and others for a line without commas."""
    return [","] if "," in text else list(SEPARATORS.values())


def _parquet(path: Path) -> tuple[list[str], dict[str, Declared]]:
    try:
        schema = parquet.read_schema(path)
        found = {field.name: _declared(field.type) for field in schema}
    except (pa.ArrowException, UnicodeDecodeError):
        words = "can't be read as a parquet file: it is of another format, or broken."
        raise SourceError(f"{path} {words}") from None
    return schema.names, {name: declared for name, declared in found.items() if declared is not None}


def _declared(kind: pa.DataType) -> Declared | None:
    """The declaration that follows from an Arrow type; None if none does."""
    ends: Declared = {"min": None, "max": None}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "integer", **ends}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"type": "number", **ends}
    if pa.types.is_timestamp(kind):
        return {"type": "datetime", **ends}
    if pa.types.is_date(kind):
        return {"type": "date", **ends}
    if pa.types.is_time(kind):
        return {"type": "time"}
    if pa.types.is_duration(kind):
        return {"type": "duration", **ends}
    if pa.types.is_dictionary(kind):
        return {"type": "category", "values": None}
    return None
