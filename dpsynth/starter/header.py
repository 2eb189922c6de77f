"""A table's header: the first line of a CSV file, the first row of a sheet, or the schema of a Parquet file.

Invariant: only the header is read. A first line that is a row of values rather than a header is
refused without quoting it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from dpsynth.config.declaration import Declared
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.domain.number_texts import is_number
from dpsynth.errors import SourceError
from dpsynth.files.encodings import encoding_named, likely_encoding, usual_name
from dpsynth.files.form import KINDS, FileForm, named_form
from dpsynth.files.header import LONGEST_HEADER, header_of, separator_of
from dpsynth.files.opening import opened, plainly
from dpsynth.starter.fitting import fitted
from dpsynth.starter.sketch import STUB, Draft, Sketch

FORMATS = KINDS


@dataclass(frozen=True)
class Header:
    """The header of a table.

    Attributes:
        path: the table.
        form: the form of its file, as the name and the header tell it.
        names: names of the columns that a configuration can name, in order.
        types: declarations that follow from a Parquet file's schema, for some of the columns.
        unusable: number of columns without a name, or with the name of another column.
    """

    path: Path
    form: FileForm
    names: tuple[str, ...]
    types: dict[str, Declared] = field(default_factory=dict)
    unusable: int = 0

    def draft(self) -> Draft:
        """A stub for each column, with its type if the schema has it."""
        columns = tuple(fitted(Sketch(name, dict(self.types.get(name, STUB)))) for name in self.names)
        part = {"csv": "first line", "parquet": "schema", "xlsx": "first row"}[self.form.kind]
        origin = [f"The header of {self.path} was read, its {part}."]
        if (encoding := usual_name(self.form.encoding)) != "utf-8":
            origin.append(
                f"Its encoding is a guess from the header, {encoding}: names with accents show if "
                "it is right."
            )
        if self.unusable:
            origin.append("Columns without a name, or with that of another column, were left out.")
        return Draft(tuple(origin), columns, described=False, table=str(self.path), form=self.form)


def read_header(path: Path, kind: str | None = None) -> Header:
    """The header of a table file, and the form of the file as far as name and header tell it.

    Args:
        path: the table.
        kind: its format; left out: by the ending of the file's name, otherwise csv.

    Raises:
        SourceError: the file doesn't exist, is no table, or its first line is no header.
    """
    named, compression, separator = named_form(str(path))
    form = FileForm(next((k for k in KINDS if k == kind), named or "csv"), separator)
    if form.kind == "csv":
        form = replace(form, compression=compression)
    types: dict[str, Declared] = {}
    with plainly(path, form, "Relative paths start at the working directory."):
        if form.kind == "parquet":
            names, types = _parquet(path)
        else:
            form = _recognised(path, form) if form.kind == "csv" else form
            names = header_of(path, form)
            _refuse_values(path, names)
    counted = Counter(names)
    usable = tuple(name for name in names if name and counted[name] == 1)
    if not usable:
        raise SourceError(f"{path} has no column with a name of its own.")
    if len(usable) > MAX_COLUMNS:
        raise SourceError(
            f"{path} has {len(usable):,} columns; a configuration can declare {MAX_COLUMNS:,}. Give a table "
            "of the columns that matter."
        )
    return Header(path, form, usable, types, len(names) - len(usable))


def _recognised(path: Path, form: FileForm) -> FileForm:
    """The form of a CSV file with the encoding and the separator that its first line tells."""
    with opened(path, form) as stream:
        line = stream.readline(LONGEST_HEADER)
    found = replace(form, encoding=encoding_named(likely_encoding(line)) or "utf-8")
    with opened(path, found) as stream:
        line = stream.readline(LONGEST_HEADER)
    return found if form.separator != "," else replace(found, separator=separator_of(line, found))


def _refuse_values(path: Path, names: list[str]) -> None:
    if names and 2 * sum(is_number(name.strip()) for name in names) >= len(names):
        raise SourceError(
            f"The first line of {path} seems to be a row of values and not a header: at least half of it are "
            "numbers. Give the table a first line with the columns' names."
        )


def _parquet(path: Path) -> tuple[list[str], dict[str, Declared]]:
    schema = parquet.read_schema(path)
    found = {field.name: declared_of(field.type) for field in schema}
    return schema.names, {name: declared for name, declared in found.items() if declared is not None}


def declared_of(kind: pa.DataType) -> Declared | None:
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
