"""Rows of a CSV file as text, whatever stands in them.

Invariant: the header alone decides whether a file is a table. A row with too few or too many cells,
bytes that are no text, or without an end is a broken row and never an error.
"""

from __future__ import annotations

import codecs
import csv as plain_csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyarrow import csv

from dpsynth.curator.cell_texts import text_of
from dpsynth.errors import SourceError

_BLOCKS = (16 << 20, 256 << 20)
"""Bytes that are parsed at once: of a usual file, and of one that was mended."""

_LONGEST_HEADER = 1 << 20


def csv_header(path: Path, separator: str) -> tuple[list[str], bool]:
    """The names in the first line, and whether anything comes after it.

    Raises:
        SourceError: there is no first line, or it is no header.
    """
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
        more = bool(file.read(1))
    if not first.strip():
        raise SourceError(f"{path} is empty: its first line must be a header.")
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text:
        raise SourceError(f"{path} is no CSV file: its first line is not UTF-8 text.")
    try:
        if len(first) == _LONGEST_HEADER and more:
            raise plain_csv.Error
        # Strict: a quote that is not closed in the first line would take rows into the header.
        return next(plain_csv.reader([text], delimiter=separator, strict=True)), more
    except plain_csv.Error:
        raise SourceError(f"{path} is no CSV file: its first line is no header.") from None


def csv_rows(
    path: Path, header: Sequence[str], columns: Sequence[str], separator: str, *, keep_broken: bool
) -> Iterator[list[pa.StringArray]]:
    """Rows after the header, in batches: a text column for each of ``columns``, in their order.

    Args:
        path: the file.
        header: all names in its first line.
        columns: those that are read, each once in the header.
        separator: what stands between cells.
        keep_broken: whether broken rows come as rows of nulls, after all others.
    """
    spots = {name: spot for spot, name in enumerate(header)}
    places = [spots[c] for c in columns]
    given = 0
    for mended, size in list(enumerate(_BLOCKS))[not _is_text(path) :]:
        # Arrow gives up at a row longer than a block: then from the start once more. It hands a broken row
        # on as a text, and prints it where it is none: so never a file that is not mended. No thread of
        # Arrow's may mend it in passing: it could outlive the interpreter.
        broken, seen = _Count(), 0
        file = pa.BufferReader(_mended(path)) if mended else pa.OSFile(str(path))
        try:
            for batch in _parsed(file, len(header), places, separator, size, broken):
                seen += batch.num_rows
                if seen > given:
                    yield [text_of(cells) for cells in batch.slice(batch.num_rows - (seen - given)).columns]
                    given = seen
        except pa.ArrowInvalid:
            continue
        break
    else:
        # A row without an end takes the rest of the file, and is one.
        broken.rows += 1
    left = broken.rows if keep_broken else 0
    while left:
        size = min(left, 1 << 18)
        yield [pa.nulls(size, pa.string())] * len(places)
        left -= size


class _Count:
    """Counts broken rows, and lets Arrow leave them out."""

    rows = 0

    def __call__(self, row: csv.InvalidRow) -> Literal["skip"]:
        del row
        self.rows += 1
        return "skip"


def _is_text(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                decoder.decode(data)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _mended(path: Path) -> pa.Buffer:
    """A whole file in memory, in which bytes that are not UTF-8 are replacement characters."""
    decoder, text = codecs.getincrementaldecoder("utf-8")("replace"), pa.BufferOutputStream()
    with path.open("rb") as file:
        while data := file.read(_BLOCKS[0]):
            text.write(decoder.decode(data).encode())
    text.write(decoder.decode(b"", final=True).encode())
    return text.getvalue()


def _names(places: Sequence[int]) -> list[str]:
    return [f"{place}" for place in places]


def _parsed(
    file: pa.NativeFile, width: int, places: Sequence[int], separator: str, size: int, broken: _Count
) -> Iterator[pa.RecordBatch]:
    reader = csv.open_csv(
        file,
        csv.ReadOptions(column_names=_names(range(width)), skip_rows=1, block_size=size),
        csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            invalid_row_handler=broken,
            ignore_empty_lines=width > 1,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(_names(places), pa.binary()),
            include_columns=_names(places),
            strings_can_be_null=False,
            check_utf8=False,
        ),
    )
    yield from reader
