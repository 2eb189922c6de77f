"""Headers of table files: names of columns, and what to do about a column that a header lacks.

Invariant: only the header is read. A message names columns of the configuration, or spellings of them;
whatever else stands in a first line may be a row of cells.
"""

from __future__ import annotations

import csv
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

from dpsynth.config.files.form import (
    ENCODINGS,
    SEPARATORS,
    WIDE,
    FileForm,
    encoding_named,
    likely_encoding,
    usual_name,
)
from dpsynth.config.files.opening import (
    Cell,
    cell_text,
    is_row,
    opened,
    other_format,
    parquet_parts,
    sheet_rows,
    unheard,
)
from dpsynth.config.files.place import Place
from dpsynth.errors import SourceError

LONGEST_HEADER = 1 << 20
"""Most bytes of the first line of a CSV file."""


@unheard()
def header_of(path: Place, form: FileForm) -> list[str]:
    """The names of a file's columns; call it within ``opening.plainly``.

    Raises:
        SourceError: the first line of a CSV file, or the first row of a sheet, is no header.
    """
    if form.kind == "parquet":
        return list(next(parquet_parts(path)).schema.names)
    if form.kind == "xlsx":
        return sheet_header(path, form, sheet_rows(path, form.sheet))
    with opened(path, form) as stream:
        return csv_header(path, form, stream)


def sheet_header(path: Place, form: FileForm, rows: Iterator[tuple[Cell, ...]]) -> list[str]:
    """The names in the first row of a sheet that has any cell, or in the row that was declared.

    The iterator is left where the rows begin.
    """
    if form.header_row is None:
        header = next(filter(is_row, rows), ())
    else:
        header = next(islice(rows, form.header_row - 1, None), ())
    names = [cell_text(cell) or "" for cell in header]
    next(islice(rows, form.skip, form.skip), None)
    if not any(names) and form.header_row is None:
        raise SourceError(f"{path} is empty: the first row of its sheet must be a header.")
    if not any(names):
        raise SourceError(
            f"{path} has no header in row {form.header_row} of its sheet: set source.header_row to the row "
            "with the columns' names."
        )
    return names


def csv_header(path: Place, form: FileForm, stream: BinaryIO) -> list[str]:
    """The names in the header of a CSV file; the stream is left where its rows begin.

    Raises:
        SourceError: there is no such line, or it is no header.
    """
    line = header_line(stream, form)
    which = "first line" if form.header_row is None else f"line {form.header_row}"
    if not line.strip() and form.header_row is None:
        raise SourceError(f"{path} is empty: its first line must be a header.")
    if not line.strip():
        raise SourceError(
            f"{path} has no header in {which}: set source.header_row to the line with the columns' names."
        )
    try:
        names = names_in(line, form)
    except UnicodeDecodeError:
        raise SourceError(_not_text(path, form, line)) from None
    except csv.Error:
        advice = (form.compression is None and other_format(path)) or "Take line breaks out of its names."
        raise SourceError(f"{path} is no CSV file: its {which} is no header. {advice}") from None
    for _ in range(form.skip):
        _pass_line(stream)
    return names


def header_line(stream: BinaryIO, form: FileForm) -> bytes:
    """The line with the names of a CSV file, at most ``LONGEST_HEADER`` bytes of it."""
    for _ in range((form.header_row or 1) - 1):
        _pass_line(stream)
    return stream.readline(LONGEST_HEADER)


def _pass_line(stream: BinaryIO) -> None:
    while (piece := stream.readline(LONGEST_HEADER)) and not piece.endswith(b"\n"):
        pass


def names_in(line: bytes, form: FileForm) -> list[str]:
    """The names in a first line, as ``opening.opened`` reads it.

    Raises:
        UnicodeDecodeError: the bytes are no text.
        csv.Error: the line is no header.
    """
    if len(line) == LONGEST_HEADER:
        raise csv.Error
    encoding = "utf-8" if form.encoding in WIDE else form.encoding
    text = line.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    if not text or "\0" in text or (form.encoding in WIDE and "\N{REPLACEMENT CHARACTER}" in text):
        raise UnicodeDecodeError(encoding, line, 0, 1, "no text")
    # Strict: a quote that is not closed in the first line would take rows into the header.
    return next(csv.reader([text], delimiter=form.separator, strict=True))


def _not_text(path: Place, form: FileForm, line: bytes) -> str:
    broken = f"{path} is no CSV file: its first line is not {form.encoding.upper()} text."
    if form.compression is None and (found := other_format(path)):
        return f"{broken} {found}"
    if form.encoding in WIDE:
        return f"{broken} Set source.encoding to what it is written in, such as utf-8 or windows-1252."
    guess = likely_encoding(line)
    if encoding_named(guess) == form.encoding:
        return f"{broken} Save the table as a .csv file again."
    return (
        f"{broken} It looks like {guess}: set source.encoding to what it is written in, or save it again as "
        "UTF-8."
    )


def missing_columns(path: Place, form: FileForm, columns: Sequence[str], header: Sequence[str]) -> None:
    """Refuse a header that lacks a column, or that repeats one.

    Raises:
        SourceError: with advice if another separator, encoding or spelling would find the columns.
    """
    require_columns(columns, header, str(path), lambda absent: _advice(path, form, absent, header))


def require_columns(
    columns: Sequence[str], header: Sequence[str], table: str, advice: Callable[[list[str]], str]
) -> None:
    """Refuse a table that lacks a column, or has two of its name.

    Args:
        advice: the sentence that says what to do about absent columns.

    Raises:
        SourceError: a column is absent, or there twice.
    """
    counted = Counter(header)
    absent = [c for c in columns if c not in counted]
    if absent:
        names = ", ".join(f"'{c}'" for c in absent[:5]) + (" and others" if len(absent) > 5 else "")
        raise SourceError(f"{table} has no column {names}. {advice(absent)}")
    twice = sorted({c for c in columns if counted[c] > 1})
    if twice:
        raise SourceError(
            f"{table} has more than one column named '{twice[0]}', so it isn't clear which one is meant. "
            "Give each column of its header a name of its own, or leave this one out of the config."
        )


def _advice(path: Place, form: FileForm, absent: Sequence[str], header: Sequence[str]) -> str:
    if form.kind == "csv":
        line = _first_line(path, form)
        for word, sign in SEPARATORS.items():
            named = _names_if_any(line, replace(form, separator=sign))
            if sign != form.separator and not set(absent).difference(named):
                quoted = word if word.isalpha() else f"'{word}'"
                return f"Its first line has {quoted} between the names: set source.separator: {quoted}."
        for encoding in (e for e in ENCODINGS if e not in WIDE):
            encoded = replace(form, encoding=encoding)
            if not set(absent).difference(_names_if_any(_first_line(path, encoded), encoded)):
                name = usual_name(encoding)
                return f"Its first line is {name} text: set source.encoding: {name}."
    return spelling_advice(absent, header)


def spelling_advice(absent: Sequence[str], header: Sequence[str]) -> str:
    """A sentence about absent columns: another spelling that the header has, or what it must hold."""
    spelt = {_plain(name): name for name in header if _plain(name)}
    for name in absent:
        if (other := spelt.get(_plain(name))) is not None and other.isprintable():
            return f"Did you mean '{other}', which it has? Names must be spelt the same, capitals included."
    return (
        "Its first line, or schema, must name every column that the config declares, spelt the same, and "
        "those of privacy.unit and period."
    )


def _first_line(path: Place, form: FileForm) -> bytes:
    with opened(path, form) as stream:
        return header_line(stream, form)


def _names_if_any(line: bytes, form: FileForm) -> list[str]:
    try:
        return names_in(line, form)
    except (UnicodeDecodeError, csv.Error):
        return []


def _plain(name: str) -> str:
    """The letters and digits of a name, in small letters.

    >>> _plain(" Capital-Gain") == _plain("capital_gain") == "capitalgain"
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(sign for sign in folded if sign.isalnum())


def separator_of(line: bytes, form: FileForm) -> str:
    """The separator that gives a first line the most names; the comma if none gives two."""
    signs = SEPARATORS.values()
    number = {sign: len(_names_if_any(line, replace(form, separator=sign))) for sign in signs}
    return max(number, key=lambda sign: number[sign]) if max(number.values()) > 1 else ","
