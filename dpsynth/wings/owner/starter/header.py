"""The names of a table's columns, from its header: of a CSV file, a sheet, a Parquet file or a data frame.

A type that says more than the texts of its cells is kept; numbers, categories and texts are left to the look
at the cells.

Invariant: only the header is read. Where the first line of a file has two cells at most, and may be a title,
some lines more are read to find the header. A line that is a row of values rather than a header is refused
without quoting it.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from dpsynth.columns.declaration import Declared
from dpsynth.columns.number_texts import is_number
from dpsynth.config.files.form import (
    KINDS,
    SEPARATORS,
    WIDE,
    FileForm,
    encoding_named,
    likely_encoding,
    named_form,
    usual_name,
)
from dpsynth.config.files.header import LONGEST_HEADER, header_of, names_in, separator_of
from dpsynth.config.files.opening import cell_text, opened, other_format, plainly, sheet_rows
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.errors import SourceError
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Sketch, fitted

FORMATS = KINDS

_MOST_TITLES = 30
"""Lines among which the header is looked for."""

_NARROW = 2
"""Most cells of a line that may be a title."""


@dataclass(frozen=True)
class Header:
    """The header of a table.

    Attributes:
        path: the table.
        form: the form of its file, as the name and the header tell it.
        names: names of the columns that a configuration can name, in order.
        types: declarations that follow from a Parquet file's schema, for some of the columns.
        unusable: number of columns without a name, or with the name of another column.
        searched: True if some lines were read to see if the first one is a title.
    """

    path: Path
    form: FileForm
    names: tuple[str, ...]
    types: dict[str, Declared] = field(default_factory=dict)
    unusable: int = 0
    searched: bool = False

    def draft(self) -> Draft:
        """A stub for each column, with its type if the schema has it."""
        columns = tuple(fitted(Sketch(name, dict(self.types.get(name, STUB)))) for name in self.names)
        part = {"csv": "first line", "parquet": "schema", "xlsx": "first row"}[self.form.kind]
        if (row := self.form.header_row) is not None:
            part = (
                f"{'line' if self.form.kind == 'csv' else 'row'} {row}, as what stands above it seems a title"
            )
        origin = [f"The header of {self.path} was read, its {part}."]
        if (encoding := usual_name(self.form.encoding)) != "utf-8":
            origin.append(
                f"Its encoding is a guess from the header, {encoding}: names with accents show if "
                "it is right."
            )
        if self.unusable:
            origin.append("Columns without a name, or with that of another column, were left out.")
        return Draft(
            tuple(origin),
            columns,
            described=False,
            table=str(self.path),
            form=self.form,
            searched=self.searched,
        )


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
    searched = False
    with plainly(path, form, "Relative paths start at the working directory."):
        guessed = kind is None and form.kind == "csv" and form.compression is None
        if guessed and (other := other_format(path)):
            raise SourceError(f"{path} is no CSV file. {other}")
        if form.kind == "parquet":
            names, types = _parquet(path)
        else:
            form, searched = (_recognised if form.kind == "csv" else _sheet_recognised)(path, form)
            names = header_of(path, form)
            _refuse_values(path, names)
    usable = _usable(names, str(path))
    return Header(path, form, usable, types, len(names) - len(usable), searched)


def _usable(names: Sequence[str], table: str) -> tuple[str, ...]:
    """The names that a configuration can tell apart."""
    counted = Counter(names)
    usable = tuple(name for name in names if name and counted[name] == 1)
    if not usable:
        raise SourceError(f"{table} has no column with a name of its own.")
    if len(usable) > MAX_COLUMNS:
        raise SourceError(
            f"{table} has {len(usable):,} columns; a configuration can declare {MAX_COLUMNS:,}. Give a table "
            "of the columns that matter."
        )
    return usable


def _recognised(path: Path, form: FileForm) -> tuple[FileForm, bool]:
    """The form of a CSV file with the encoding, the separator and the line of its header.

    Returns:
        The form; and True if more lines than the first were read.
    """
    with opened(path, form) as stream:
        line = stream.readline(LONGEST_HEADER)
    found = replace(form, encoding=encoding_named(likely_encoding(line)) or "utf-8")
    with opened(path, found) as stream:
        line = stream.readline(LONGEST_HEADER)
        signs = list(SEPARATORS.values()) if form.separator == "," else [form.separator]
        narrow = max(len(_cells(line, replace(found, separator=sign))) for sign in signs) <= _NARROW
        lines = [line, *islice(iter(lambda: stream.readline(LONGEST_HEADER), b""), _MOST_TITLES * narrow)]
    if found.encoding not in WIDE and narrow:
        found = replace(found, encoding=encoding_named(likely_encoding(b"".join(lines))) or "utf-8")
    titled = (
        [_below_titles(f, lines) for f in (replace(found, separator=sign) for sign in signs)]
        if narrow
        else []
    )
    below = [(f, cells) for f, cells in titled if f.header_row is not None]
    head = max(below, key=lambda one: one[1])[0] if below else found
    for number, above in enumerate(lines[: head.header_row], 1):
        cells = max(_going_on(above, replace(found, separator=sign)) for sign in signs)
        if cells > (0 if number == 1 or head.header_row else _NARROW):
            raise SourceError(
                f"{path} has a header with a line break in a name: in line {number} quotes begin that do not "
                "end there. A header has to be one line. Take line breaks out of the names."
            )
    if below or form.separator != ",":
        return head, narrow
    return replace(found, separator=separator_of(line, found)), narrow


def _going_on(line: bytes, form: FileForm) -> int:
    """The number of cells of a line in which quotes begin that don't end there; 0 of other lines."""
    return 0 if _cells(line, form) else len(_cells(line.rstrip() + b'"', form))


def _below_titles(form: FileForm, lines: Sequence[bytes]) -> tuple[FileForm, int]:
    """The form of a CSV file with the line of its header by a separator, and the number of names."""
    cells = [_cells(line, form) for line in lines]
    row = _header_row(cells)
    return replace(form, header_row=row), 0 if row is None else len(cells[row - 1])


def _cells(line: bytes, form: FileForm) -> list[str]:
    """The cells of a line that aren't empty; none of a line that is no text."""
    try:
        return [name for name in names_in(line, form) if name.strip()]
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return []


def _sheet_recognised(path: Path, form: FileForm) -> tuple[FileForm, bool]:
    """The form of a workbook with the row of its header; and True if more rows than the first were read."""
    rows = ([text for cell in row if (text := cell_text(cell))] for row in sheet_rows(path, form.sheet))
    seen: list[list[str]] = []
    while not any(seen) and (more := next(rows, None)) is not None:
        seen.append(more)
    if not any(seen) or len(seen[-1]) > _NARROW:
        return form, False
    row = _header_row([*seen, *islice(rows, _MOST_TITLES)])
    # Without a title the first row that has any cell is the header anyway.
    return replace(form, header_row=row if row is not None and row > len(seen) else None), True


def _header_row(cells: Sequence[list[str]]) -> int | None:
    """The number of the line of a header below titles, from 1; None if the first line is the header.

    A title has one cell or two, and the header more names than the line above it. The lines below it have
    about as many, since a long text may hold separators too.

    Args:
        cells: the filled cells of the first lines.
    """
    narrow = max((len(line) for line in cells[:1]), default=0)
    for spot, line in enumerate(cells):
        below = [len(more) for more in cells[spot + 1 : spot + 3]]
        if len(line) > max(narrow, 1) and below and max(below) <= len(line) < 2 * max(below):
            return None if any(is_number(name.strip()) for name in line) else spot + 1
    return None


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
    found = next((declared for is_of, declared in _DECLARED if is_of(kind)), None)
    return None if found is None else dict(found)


_ENDS: Declared = {"min": None, "max": None}
_DECLARED: tuple[tuple[Callable[[pa.DataType], bool], Declared], ...] = (
    (pa.types.is_boolean, {"type": "boolean"}),
    (pa.types.is_integer, {"type": "integer", **_ENDS}),
    (pa.types.is_floating, {"type": "number", **_ENDS}),
    (pa.types.is_decimal, {"type": "number", **_ENDS}),
    (pa.types.is_timestamp, {"type": "datetime", **_ENDS}),
    (pa.types.is_date, {"type": "date", **_ENDS}),
    (pa.types.is_time, {"type": "time"}),
    (pa.types.is_duration, {"type": "duration", **_ENDS}),
    (pa.types.is_dictionary, {"type": "category", "values": None}),
)
_LEFT_TO_THE_LOOK = frozenset({"integer", "number", "category"})


def draft_in_memory(names: Sequence[str], types: Mapping[str, pa.DataType]) -> Draft:
    """A stub for each column, with its type if that is known.

    Args:
        names: names of the columns.
        types: Arrow types of some of them.

    Raises:
        SourceError: there is no column with a name of its own, or there are too many.
    """
    usable = _usable(names, "The table in memory")
    found = ((name, _declared(types[name]) if name in types else None) for name in usable)
    columns = tuple(fitted(Sketch(name, dict(declared or STUB))) for name, declared in found)
    origin = ["The names and types of the columns of a table in memory were read."]
    if len(usable) < len(names):
        origin.append("Columns without a name, or with that of another column, were left out.")
    return Draft(tuple(origin), columns, described=False)


def _declared(kind: pa.DataType) -> Declared | None:
    declared = declared_of(kind)
    return None if declared is None or declared["type"] in _LEFT_TO_THE_LOOK else declared
