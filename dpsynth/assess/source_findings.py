"""Findings about a file as a whole: its encoding, its separator, its header, its quotes.

Invariant: a file is scanned line by line, and only its header is decoded here. Rows and cells are read by the
one reader of the curator.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsynth.assess.findings import Finding, listed, quoted
from dpsynth.files.form import SEPARATORS

_BLOCK = 1 << 20
_LONGEST_HEADER = 1 << 20
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes that Windows-1252 gives no meaning."""
_MARKS = ((codecs.BOM_UTF8, "UTF-8"), (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


@dataclass(frozen=True)
class FileScan:
    """Facts about the bytes of a CSV file.

    Attributes:
        lines: lines with anything on them after the first.
        quotes: number of double quotes.
        odd: numbers of the first lines with an odd number of double quotes, counted from 1.
        foreign: number of bytes that are not UTF-8.
        windows: True if all of them are signs of Windows-1252.
        mark: the encoding that the file's first bytes name; None without such a mark.
        zeros: True if there are bytes of zero.
    """

    lines: int
    quotes: int
    odd: tuple[int, ...]
    foreign: int
    windows: bool
    mark: str | None
    zeros: bool


_SHOWN = 3


def scanned(path: Path) -> FileScan:
    """The facts about a file."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    lines = quotes = foreign = 0
    odd: list[int] = []
    windows, zeros = True, False
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        for number, line in enumerate(file, 1):
            lines += number > 1 and bool(line.strip())
            marks = line.count(b'"')
            quotes += marks
            if marks % 2 and len(odd) < _SHOWN:
                odd.append(number)
            if line.isascii():
                zeros = zeros or b"\0" in line
                continue
            lost = decoder.decode(line, final=True).count("\N{REPLACEMENT CHARACTER}")
            if lost:
                foreign += lost
                windows = windows and not _UNDEFINED.intersection(line)
            zeros = zeros or b"\0" in line
    mark = next((name for sign, name in _MARKS if head.startswith(sign)), None)
    return FileScan(lines, quotes, tuple(odd), foreign, windows, mark, zeros)


def encoding_findings(scan: FileScan) -> list[Finding]:
    """Findings about the encoding of a file that is read as UTF-8."""
    if scan.mark == "UTF-16" or (scan.zeros and scan.foreign):
        return [
            Finding(
                "source",
                0,
                "the file is encoded as UTF-16",
                "say how the file is encoded",
                "encoding: utf-16",
            )
        ]
    if scan.foreign:
        name = "windows-1252" if scan.windows else "latin-1"
        return [
            Finding(
                "source",
                scan.foreign,
                f"{_number(scan.foreign, 'byte')} of the file not UTF-8",
                "say how the file is encoded, most often so",
                f"encoding: {name}",
            )
        ]
    return []


def header_findings(
    path: Path, separator: str, names: Sequence[str], encoding: str = "utf-8-sig"
) -> list[Finding]:
    """Findings about the first line: its separator, the spelling of its names, names that are there twice.

    Args:
        path: a CSV file.
        separator: the declared separator.
        names: the columns that the config needs.
        encoding: the encoding of the file.
    """
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    text = first.decode(encoding, "replace").strip("\r\n")
    header = _cut(text, separator)
    found = []
    absent = [name for name in names if name not in header]
    if absent:
        for word, sign in SEPARATORS.items():
            if sign != separator and sum(name in _cut(text, sign) for name in names) > len(names) - len(
                absent
            ):
                written = f"'{word}'" if word != "tab" else word
                found.append(
                    Finding(
                        "source",
                        len(absent),
                        "the header is cut by another separator",
                        "name the separator of the file",
                        f"separator: {written}",
                    )
                )
                return found
        alike = {_plain(name): name for name in header}
        for name in absent:
            near = alike.get(_plain(name))
            found.append(
                Finding(
                    name,
                    0,
                    "not in the header" + ("" if near is None else f", which has {quoted(near)}"),
                    "name the column as the header does",
                )
            )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        found.append(
            Finding(
                "source",
                len(twice),
                f"the header names {listed(map(quoted, twice[:_SHOWN]))} more than once",
                "give each column a name of its own; one that is not declared does no harm",
            )
        )
    return found


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _cut(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return []


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def row_findings(scan: FileScan, rows: int, broken: int, headers: int) -> list[Finding]:
    """Findings about rows: broken ones, headers among them, and lines that lie inside of quotes.

    Args:
        scan: the facts about the file.
        rows: rows that were read, broken ones not among them.
        broken: rows with too few or too many cells, or without an end.
        headers: rows that are the header once more.
    """
    found = []
    inside = scan.lines - rows - broken
    if inside > 0 and scan.quotes:
        where = ""
        if scan.odd:
            where = f"; the first lines with an odd number of quotes: {', '.join(map(str, scan.odd))}"
        found.append(
            Finding(
                "source",
                inside,
                f"{_number(inside, 'line')} inside of double quotes, so no row of their own{where}",
                'unless texts there have line breaks, a quote (") was not closed, and took the rows after it '
                "into one cell: close it, or leave it out",
            )
        )
    if broken:
        found.append(
            Finding(
                "source",
                broken,
                f"{_number(broken, 'row')} with too few or too many cells, or without an end",
                "see to the table: an amount such as 1,234 needs quotes where a comma is the separator",
            )
        )
    if headers:
        found.append(
            Finding(
                "source",
                headers,
                f"{_number(headers, 'row')} with the header once more, not counted below; a release takes "
                "its names for cells",
                "take it out there: files were put together with their headers",
            )
        )
    return found
