"""Findings about a file as a whole: its encoding, its quotes, its rows.

What keeps a file from being read at all, such as another separator, is the reader's own error.

Invariant: rows are counted by the one reader of the curator; a file is read again only for the places of what
it has counted.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import islice

from dpsynth.config.files.form import WIDE, FileForm
from dpsynth.config.files.opening import opened
from dpsynth.config.files.place import Place
from dpsynth.curator.csv_lines import BrokenRows
from dpsynth.wings.owner.assess.findings import Finding

_SHOWN = 3
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes that Windows-1252 gives no meaning."""


def source_findings(
    path: Place, form: FileForm, broken: BrokenRows, headers: int, *, keeps_broken: bool
) -> Iterator[Finding]:
    """The findings about a file.

    Args:
        path: the private table.
        form: the form of its file.
        broken: the counts of the reader.
        headers: rows that are the header once more.
        keeps_broken: True if a release reads broken rows as rows of missing cells; False if it leaves them
            out.
    """
    fate = "read as rows of missing cells" if keeps_broken else "left out"
    if form.kind == "csv":
        yield from _encoding(path, form, broken)
        yield from _quotes(path, form, broken, fate)
    if broken.uneven:
        yield Finding(
            "source",
            broken.uneven,
            f"{_rows(broken.uneven)} with too few or too many cells, {fate}",
            "see to the table: an amount such as 1,234 needs quotes where a comma is the separator",
        )
    if broken.overlong:
        yield Finding(
            "source",
            broken.overlong,
            f"{_rows(broken.overlong)} of more bytes than a row may have, {fate}",
            "see to it",
        )
    if headers:
        yield Finding(
            "source",
            headers,
            f"{_rows(headers)} with the header once more, not counted below; a release takes it for cells",
            "take it out there: files were put together with their headers",
        )


def _encoding(path: Place, form: FileForm, broken: BrokenRows) -> Iterator[Finding]:
    if form.encoding == "utf-8" and broken.undecodable:
        yield Finding(
            "source",
            broken.undecodable,
            f"{_rows(broken.undecodable)} with bytes that are not UTF-8",
            "say how the file is encoded, most often so",
            f"encoding: {_western(path, form)}",
        )
    elif form.encoding not in ("utf-8", *WIDE) and _is_utf8(path, form):
        yield Finding(
            "source",
            0,
            f"the file is UTF-8 text, and is read as {form.encoding}",
            "say how the file is encoded",
            "encoding: utf-8",
        )
    elif broken.undecodable:
        yield Finding(
            "source",
            broken.undecodable,
            f"{_rows(broken.undecodable)} with bytes that are no text in {form.encoding}",
            "ask whoever wrote the file how it is encoded, and say so with encoding",
        )


def _western(path: Place, form: FileForm) -> str:
    """The usual encoding of bytes that are not UTF-8, in which each of them has a meaning."""
    with opened(path, form) as stream:
        foreign = any(_UNDEFINED.intersection(line) for line in stream if not _decodes(line))
    return "latin-1" if foreign else "windows-1252"


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_utf8(path: Place, form: FileForm) -> bool:
    """True if a file holds signs beyond ASCII, and all of it is UTF-8."""
    decoder, plain = codecs.getincrementaldecoder("utf-8")(), True
    try:
        with opened(path, form) as stream:
            while data := stream.read(1 << 20):
                plain = plain and data.isascii()
                decoder.decode(data)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return not plain


def _quotes(path: Place, form: FileForm, broken: BrokenRows, fate: str) -> Iterator[Finding]:
    if not broken.unclosed:
        return
    with opened(path, form) as stream:
        odd = (str(number) for number, line in enumerate(stream, 1) if line.count(b'"') % 2)
        lines = list(islice(odd, _SHOWN))
    where = f"; lines with an odd number of quotes are {', '.join(lines)}" if lines else ""
    trust, distrust = (
        "say that cells have line breaks",
        "say that each line is a row, whatever quotes it holds",
    )
    yield Finding(
        "source",
        broken.unclosed,
        f"{_rows(broken.unclosed)} with a quote that is not closed{where}; {fate}",
        f"close it, or leave it out; or {distrust if form.multiline else trust}",
        f"multiline: {str(not form.multiline).lower()}",
    )


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"
