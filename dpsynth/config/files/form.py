"""The form of a table file: its format, and how its cells are written.

Invariant: a form is public. It is declared in the configuration, and a release never infers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

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
        kind: the format.
        separator: the sign between the cells of a CSV file.
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
