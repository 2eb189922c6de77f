"""The form of a table file: its format, how its cells are written, and the encodings of CSV files.

Every encoding here spells the 128 characters of ASCII as ASCII does, keeps no state from one character to the
next, and never ends a character with the byte of a line end; or it is UTF-16, whose characters are whole
units of two bytes. So a line's text follows from the line's own bytes.

Invariant: a form is public. It is declared in the configuration, and a release never infers it.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

WIDE = ("utf-16", "utf-16-le", "utf-16-be")
"""Encodings with units of two bytes."""

ENCODINGS: tuple[str, ...] = (
    "utf-8", *WIDE,
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in range(1, 17) if number != 12),
    *(f"cp{number}" for number in (437, 737, 775, 850, 852, 855, 857, 858, 860, 861, 863, 865, 866, 874)),
    "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish", "tis-620",
    "cp932", "shift_jis", "euc_jp", "gb2312", "gbk", "gb18030", "big5", "cp950", "cp949", "euc_kr",
)  # fmt: skip
"""Names of the encodings, as Python's codecs call them."""

USUAL = ("utf-8", "utf-16", "windows-1252", "latin-1")
"""Names that people know, for messages."""

_MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def encoding_named(word: str) -> str | None:
    """The encoding that a word names in any of its spellings; None if it is not among them.

    >>> encoding_named("Windows-1252"), encoding_named("latin1"), encoding_named("utf-8-sig")
    ('cp1252', 'iso8859-1', 'utf-8')
    >>> encoding_named("utf-7") is None
    True
    """
    try:
        name = codecs.lookup(word).name
    except (LookupError, ValueError):
        # A name with a zero character is a ValueError.
        return None
    name = "utf-8" if name == "utf-8-sig" else name
    return name if name in ENCODINGS else None


def usual_name(encoding: str) -> str:
    """The name that people know for an encoding, or its own.

    >>> usual_name("cp1252"), usual_name("cp850")
    ('windows-1252', 'cp850')
    """
    return next((word for word in USUAL if encoding_named(word) == encoding), encoding)


def decoder_of(encoding: str, beginning: bytes) -> tuple[codecs.IncrementalDecoder, int]:
    """The decoder of a wide encoding, and the number of bytes of a byte order mark.

    Args:
        encoding: one of ``WIDE``.
        beginning: the first two bytes. Without a mark, UTF-16 is taken to be little-endian.
    """
    order = next((name for name, mark in _MARKS.items() if mark == beginning), None)
    name = (order or "utf-16-le") if encoding == "utf-16" else encoding
    return codecs.getincrementaldecoder(name)("replace"), 2 if order == name else 0


def likely_encoding(line: bytes) -> str:
    """A guess of the encoding that a file is written in."""
    if line.startswith(tuple(_MARKS.values())):
        return "utf-16"
    if 3 * line.count(0) > len(line):
        return "utf-16-be" if line[:1] == b"\0" else "utf-16-le"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


Kind = Literal["csv", "parquet", "xlsx"]

Compression = Literal["gz", "bz2", "xz", "zst", "zip"]

KINDS: tuple[Kind, ...] = ("csv", "parquet", "xlsx")

COMPRESSIONS: tuple[Compression, ...] = ("gz", "bz2", "xz", "zst", "zip")

ENDINGS: Mapping[str, Kind] = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".xlsx": "xlsx", ".xlsm": "xlsx",
}  # fmt: skip
"""Formats by the endings of file names."""

SEPARATORS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""Separators of cells, by their names in a configuration."""


@dataclass(frozen=True)
class FileForm:
    """The form of a table file.

    Attributes:
        encoding: the encoding of a CSV file, one of ``encodings.ENCODINGS``.
        compression: the compression of a CSV file; None for a plain one.
        multiline: True if quoted cells of a CSV file may hold line breaks; False if a line is a row.
        sheet: the sheet of a workbook; None for the first one.
        header_row: the line of a CSV file, or the row of a sheet, that is the header, from 1; what stands
            above is not read. None: the first line, or the first row that has any cell.
        skip: number of lines or rows below the header that are not read, such as one of units.
        totals: columns with texts; a row that has one of the texts in its column is a total and no row.
    """

    kind: Kind = "csv"
    separator: str = ","
    encoding: str = "utf-8"
    compression: Compression | None = None
    multiline: bool = True
    sheet: str | None = None
    header_row: int | None = None
    skip: int = 0
    totals: tuple[tuple[str, tuple[str, ...]], ...] = ()


def named_form(path: str) -> tuple[Kind | None, Compression | None, str]:
    r"""The format, the compression and the separator that the ending of a file's name tells.

    A compressed file with no other ending is a CSV file; no other format is read compressed.

    >>> named_form("visits.csv.gz"), named_form("Visits.TSV"), named_form("visits.zip"), named_form("visits")
    (('csv', 'gz', ','), ('csv', None, '\t'), ('csv', 'zip', ','), (None, None, ','))
    """
    name = PurePath(path.lower())
    compression = next((c for c in COMPRESSIONS if name.suffix == f".{c}"), None)
    ending = PurePath(name.stem).suffix if compression else name.suffix
    kind = ENDINGS.get(ending, "csv" if compression and not ending else None)
    if compression and kind != "csv":
        return None, None, ","
    return kind, compression, "\t" if ending == ".tsv" else ","
