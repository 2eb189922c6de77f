"""Lines of a CSV file, made into lines that are read alike whatever stands around them.

A line ends with a line feed, or a carriage return and a line feed. Unless cells of several lines are
declared, a line is a row: its cells follow from its own bytes by a public rule, never from another line. So
a line that comes, goes or changes moves one row, whatever it holds, and quotes can't take other rows with
them.

The rule for a line:

1. Bytes that are no text of the declared encoding become replacement characters.
2. A cell that begins with a quote ends at the next quote that isn't doubled; text that follows that quote
   belongs to the cell. A quote elsewhere in a cell is a sign like any other.
3. The line is a broken row if a quote is still open at its end, if a carriage return stands in it outside
   of quotes, if it has more bytes than ``LONGEST_LINE``, or if it has too few or too many cells.

Cells of several lines are declared for files whose quotes are trusted. Then quotes decide where a row ends,
so one broken quote might take lines of others with it, and the property above is given up: see
``csv_records``.

Invariant: what comes out is UTF-8, and no cell of it holds a line feed. A parser of quotes reads each line
by itself.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.csv_records import MOST_BREAKS, GoesOn, row_of_lines
from dpsynth.files.encodings import WIDE
from dpsynth.files.form import FileForm

BLOCK = 16 << 20
"""Bytes that are read at once."""
LONGEST_LINE = 16 << 20
"""Most bytes of a row."""

_PIECE = 1 << 20
"""Bytes that are searched for quotes at once."""

_LINE_FEED, _RETURN, _QUOTE = b'\n\r"'


@dataclass
class BrokenRows:
    """Numbers of rows that can't be read, by their fault. Private.

    Attributes:
        unclosed: rows with a quote that is not closed, or a carriage return outside of quotes.
        uneven: rows with too few or too many cells.
        overlong: rows of too many bytes.
        undecodable: rows with bytes that are no text; they are read, and are not broken.
    """

    unclosed: int = 0
    uneven: int = 0
    overlong: int = 0
    undecodable: int = 0

    @property
    def rows(self) -> int:
        """Number of broken rows."""
        return self.unclosed + self.uneven + self.overlong


def line_blocks(stream: BinaryIO, form: FileForm, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole lines in UTF-8; overlong lines are left out and counted.

    Args:
        stream: the file behind its header, as ``opening.opened`` gives it.
        form: the form of the file.
        broken: the counts that grow.
    """
    encoding = "utf-8" if form.encoding in WIDE else form.encoding
    for block in _whole_lines(stream, broken):
        yield _as_utf8(block, encoding, broken)


def _whole_lines(stream: BinaryIO, broken: BrokenRows) -> Iterator[bytes]:
    begun, within_overlong = b"", False
    while read := stream.read(BLOCK):
        if within_overlong:
            end = read.find(b"\n")
            if end < 0:
                continue
            read, within_overlong = read[end + 1 :], False
        block = begun + read
        # Only the first line of a block may be longer than what is read at once.
        first = block.find(b"\n", len(begun))
        if (first if first >= 0 else len(block)) > LONGEST_LINE:
            broken.overlong += 1
            within_overlong = first < 0
            block = b"" if within_overlong else block[first + 1 :]
        cut = block.rfind(b"\n") + 1
        begun = block[cut:]
        if cut:
            yield block[:cut]
    if begun:
        yield begun


def _as_utf8(block: bytes, encoding: str, broken: BrokenRows) -> bytes:
    if block.isascii():
        return block
    try:
        text = block.decode(encoding)
        return block if encoding == "utf-8" else text.encode()
    except UnicodeDecodeError:
        return b"\n".join(_line_as_utf8(line, encoding, broken) for line in block.split(b"\n"))


def _line_as_utf8(line: bytes, encoding: str, broken: BrokenRows) -> bytes:
    try:
        return line.decode(encoding).encode()
    except UnicodeDecodeError:
        broken.undecodable += 1
        return line.decode(encoding, "replace").encode()


def sound_rows(blocks: Iterable[bytes], form: FileForm, width: int, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole rows, which a parser of quotes reads one by one.

    Lines with quotes where such a parser might run on into the next line are written anew, or left out and
    counted.

    Args:
        blocks: blocks of whole lines in UTF-8.
        form: the form of the file.
        width: number of cells of a row.
        broken: the counts that grow.
    """
    begun = b""
    for read in chain(blocks, [b""]):
        last, block = not read, begun + read
        if b'"' not in block and not _has_lone_return(block):
            begun = b""
            yield block
            continue
        pieces, start, size = [], 0, _PIECE
        while start < len(block):
            stop = (
                block.rfind(b"\n", start, start + size) + 1
                or block.find(b"\n", start + size) + 1
                or len(block)
            )
            end_of_file = last and stop == len(block)
            piece, used = _mended(
                block[start:stop], form, width if form.multiline else None, end_of_file, broken
            )
            pieces.append(piece)
            start += used
            if not used and stop == len(block):
                break
            # A row of several lines may be longer than a piece.
            size = _PIECE if used else 2 * size
        begun = block[start:]
        yield b"".join(pieces)


def _has_lone_return(block: bytes) -> bool:
    return block.count(b"\r") != block.count(b"\r\n")


def _mended(
    block: bytes, form: FileForm, several: int | None, last: bool, broken: BrokenRows
) -> tuple[bytes, int]:
    """A block with its suspicious lines written anew or left out, and the number of its bytes that were read.

    Args:
        block: whole lines.
        form: the form of the file.
        several: number of cells of a row that may have several lines; None if a line is a row.
        last: True if no line follows.
        broken: the counts that grow.
    """
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LINE_FEED)
    lines = _suspicious(data, ends, np.flatnonzero(data == _QUOTE), ord(form.separator))
    if not len(lines):
        return block, len(block)
    bounds = np.unique(np.r_[0, ends + 1, len(block)]).tolist()
    pieces, done = [], 0
    for line in lines.tolist():
        start, stop = bounds[line], bounds[line + 1]
        if start < done:
            # It is a part of the row before.
            continue
        pieces.append(block[done:start])
        row = None
        if several is not None:
            try:
                row = row_of_lines(
                    block, bounds[line : line + MOST_BREAKS + 3], form.separator, several, last=last
                )
            except GoesOn:
                return b"".join(pieces), start
        if row is None:
            done, cells = stop, cells_of_line(block[start:stop].decode(), form.separator)
        else:
            done, cells = bounds[line + row[1]], row[0]
        if cells is None:
            broken.unclosed += 1
        else:
            pieces.append(written(cells, form.separator))
    return b"".join([*pieces, block[done:]]), len(block)


def _suspicious(
    data: NDArray[np.uint8], ends: NDArray[np.intp], quotes: NDArray[np.intp], separator: int
) -> NDArray[np.intp]:
    """The numbers of lines that aren't quoted by RFC 4180, or that hold a lone carriage return.

    By that standard the quotes of a line open and close in turn: one that opens begins a cell, or repeats the
    one before it; one that closes ends a cell, or is repeated. This is checked quote by quote.
    """
    returns = np.searchsorted(ends, lone_returns(data))
    opens = np.zeros(len(quotes), np.bool_)
    opens[::2] = True
    if (
        len(quotes) % 2 == 0
        and not (np.searchsorted(quotes, ends) % 2).any()
        and well_placed(data, quotes, opens, separator).all()
    ):
        return np.unique(returns)
    if len(ends) <= 1 and len(data) > _PIECE:
        return np.zeros(1, np.intp)
    line = np.searchsorted(ends, quotes)
    first = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
    many = np.diff(np.r_[first, len(quotes)])
    opens = (np.arange(len(quotes)) - np.repeat(first, many)) % 2 == 0
    astray = ~well_placed(data, quotes, opens, separator)
    return np.unique(np.concatenate([returns, line[first][many % 2 == 1], line[astray]]))


def lone_returns(data: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Positions of carriage returns without a line feed behind them."""
    returns = np.flatnonzero(data == _RETURN)
    return returns[_padded(data)[returns + 2] != _LINE_FEED] if len(returns) else returns


def well_placed(
    data: NDArray[np.uint8], quotes: NDArray[np.intp], opens: NDArray[np.bool_], separator: int
) -> NDArray[np.bool_]:
    """True for each quote that stands where RFC 4180 lets one open or close.

    Args:
        data: the bytes, from the beginning of a line.
        quotes: positions of all quotes.
        opens: True for those that open, or repeat the one before them.
        separator: the sign between cells.
    """
    padded = _padded(data)
    beside = padded[np.where(opens, quotes, quotes + 2)]
    ends_line = (beside == _LINE_FEED) | ((beside == _RETURN) & ~opens)
    return np.asarray(ends_line | (beside == separator) | (beside == _QUOTE))


def _padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes with a line end on either side; a byte's own place is one further on."""
    return np.pad(data, 1, constant_values=_LINE_FEED)


def cells_of_line(line: str, separator: str) -> list[str] | None:
    """The cells of a line; None if a quote is open at its end, or a carriage return is outside of quotes."""
    lines = iter((line, ""))
    try:
        cells = next(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return None
    # A reader within quotes goes on to the next line.
    return cells if next(lines, None) is not None else None


def written(cells: list[str], separator: str) -> bytes:
    """A row as RFC 4180 wants it."""
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in cells)
    return separator.join(quoted).encode() + b"\n"
