"""Rows of a CSV file, in blocks that a parser of quotes reads row by row.

Where a file is declared to have no cells of several lines (``multiline: false``), a line is a row, by the
rule of ``sound_lines``. A line ends with a line feed, or a carriage return and a line feed. Otherwise quoted
cells may hold line breaks, which is what RFC 4180 allows, and ``sound_records`` has the rule.

Invariant: what comes out is UTF-8, and where a line is a row no cell of it holds a line feed. A file that a
program has written by RFC 4180 is read as this program meant it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpsynth.config.files.form import WIDE, FileForm

BLOCK = 16 << 20
"""Bytes that are read at once."""

LONGEST_LINE = 16 << 20
"""Most bytes of a row."""

PIECE = 1 << 20
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
        return self.unclosed + self.uneven + self.overlong


def line_blocks(stream: BinaryIO, form: FileForm, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole lines in UTF-8 of a file behind its header; overlong lines are left out and counted."""
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


def sound_lines(blocks: Iterable[bytes], form: FileForm, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole lines, each of which a parser of quotes reads by itself.

    The cells of a line follow from its own bytes by a public rule, never from another line. So a line that
    comes, goes or changes moves one row, whatever bytes it holds. The rule:

    1. Bytes that are no text of the declared encoding become replacement characters.
    2. A cell that begins with a quote ends at the next quote that isn't doubled; text that follows that quote
       belongs to the cell. A quote elsewhere in a cell is a sign like any other.
    3. The line is a broken row if a quote is still open at its end, if a carriage return stands in it outside
       of quotes, if it has more bytes than ``LONGEST_LINE``, or if it has too few or too many cells.

    Lines with quotes where such a parser might run on into the next line are written anew, or left out and
    counted.
    """
    for block in blocks:
        if is_plain(block):
            yield block
            continue
        pieces, start = [], 0
        while start < len(block):
            stop = piece_end(block, start, PIECE)
            pieces.append(_mended(block[start:stop], form, broken))
            start = stop
        yield b"".join(pieces)


def is_plain(block: bytes) -> bool:
    """True if every parser reads a block line by line: it has no quote and no lone carriage return."""
    return b'"' not in block and block.count(b"\r") == block.count(b"\r\n")


def piece_end(block: bytes, start: int, size: int) -> int:
    """The end of about so many bytes of whole lines; that of the block if it isn't further."""
    if start + size >= len(block):
        return len(block)
    return block.rfind(b"\n", start, start + size) + 1 or block.find(b"\n", start + size) + 1 or len(block)


def _mended(block: bytes, form: FileForm, broken: BrokenRows) -> bytes:
    marks = Marks.of(block)
    pieces, done = [], 0
    for line in marks.suspicious(ord(form.separator)).tolist():
        start, stop = marks.bounds[line], marks.bounds[line + 1]
        pieces += [block[done:start], line_alone(block[start:stop], form, broken)]
        done = stop
    return b"".join([*pieces, block[done:]]) if done else block


def line_alone(line: bytes, form: FileForm, broken: BrokenRows) -> bytes:
    """A suspicious line written anew, or nothing where it is broken."""
    cells = cells_of_line(line.decode(), form.separator)
    if cells is None:
        broken.unclosed += 1
        return b""
    return written(cells, form.separator)


@dataclass(frozen=True, eq=False)
class Marks:
    """The facts that decide how whole lines are read: where they end, and where quotes stand.

    Attributes:
        data: uint8[bytes], the lines.
        ends: positions of the line feeds.
        quotes: positions of the quotes.
    """

    data: NDArray[np.uint8]
    ends: NDArray[np.intp]
    quotes: NDArray[np.intp]

    @staticmethod
    def of(block: bytes) -> Marks:
        data = np.frombuffer(block, np.uint8)
        return Marks(data, np.flatnonzero(data == _LINE_FEED), np.flatnonzero(data == _QUOTE))

    @cached_property
    def bounds(self) -> list[int]:
        """Where each line begins, and where the last one ends."""
        return [int(bound) for bound in np.unique(np.r_[0, self.ends + 1, len(self.data)])]

    @cached_property
    def _line_of_quotes(self) -> NDArray[np.intp]:
        return np.searchsorted(self.ends, self.quotes)

    @cached_property
    def odd(self) -> NDArray[np.intp]:
        lines, many = np.unique(self._line_of_quotes, return_counts=True)
        return np.asarray(lines[many % 2 == 1])

    @cached_property
    def lone_returns(self) -> NDArray[np.intp]:
        returns = np.flatnonzero(self.data == _RETURN)
        if not len(returns):
            return returns
        return np.asarray(returns[_padded(self.data)[returns + 2] != _LINE_FEED])

    def outside(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """The positions that lie outside of quotes, if quotes open and close in turn."""
        return np.asarray(positions[np.searchsorted(self.quotes, positions) % 2 == 0])

    def in_turn(self, separator: int) -> bool:
        """True if the quotes open and close in turn as RFC 4180 wants it, from the first line to the last."""
        opens = np.zeros(len(self.quotes), np.bool_)
        opens[::2] = True
        return len(self.quotes) % 2 == 0 and bool(self._well_placed(opens, separator).all())

    def separators(self, separator: int) -> NDArray[np.intp]:
        return self.outside(np.flatnonzero(self.data == separator))

    def suspicious(self, separator: int) -> NDArray[np.intp]:
        """The numbers of lines that aren't quoted by RFC 4180, or that hold a lone carriage return.

        By that standard the quotes of a line open and close in turn: one that opens begins a cell, or
        repeats the one before it; one that closes ends a cell, or is repeated.
        """
        returns = np.searchsorted(self.ends, self.lone_returns)
        if len(self.outside(self.ends)) == len(self.ends) and self.in_turn(separator):
            return np.unique(returns)
        if len(self.ends) <= 1 and len(self.data) > PIECE:
            return np.zeros(1, np.intp)
        line = self._line_of_quotes
        first = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
        many = np.diff(np.r_[first, len(line)])
        opens = (np.arange(len(line)) - np.repeat(first, many)) % 2 == 0
        astray = line[~self._well_placed(opens, separator)]
        return np.unique(np.concatenate([returns, self.odd, astray]))

    def _well_placed(self, opens: NDArray[np.bool_], separator: int) -> NDArray[np.bool_]:
        """True for each quote that stands where RFC 4180 lets one open or close."""
        beside = _padded(self.data)[np.where(opens, self.quotes, self.quotes + 2)]
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


LONGEST_ROW = 1 << 20
"""Most bytes of a row of several lines that is read; a longer one, up to ``LONGEST_LINE``, is broken."""


def sound_records(blocks: Iterable[bytes], form: FileForm, width: int, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole rows of ``width`` cells, each of which a parser of quotes reads to its own end.

    A line with an odd number of quotes begins a row of several lines. The row ends at the next such line, if
    all quotes from the one to the other stand where RFC 4180 lets a quote open or close, and the row has at
    most ``LONGEST_LINE`` bytes. Every other line is read by itself, by the rule of ``sound_lines``.

    **Rows that software has quoted.** In a file whose rows are all quoted by RFC 4180, have the header's
    number of cells, and have at most ``LONGEST_LINE`` bytes where they have several lines, each row is one
    row, whatever its cells hold: a series of rows so quoted can be cut in one way only. So a row that comes,
    goes or changes moves one row. If it has more than ``LONGEST_ROW`` bytes, it is a broken one. The lines of
    a row of more than ``LONGEST_LINE`` bytes are taken for rows: to look further for the end of an open quote
    would need more memory, and to leave out all that follows would let one stray quote take a whole file.

    **Rows with a broken quote.** An open quote is closed by the next quote in the lines after it. In a row
    quoted by RFC 4180 that is the quote that begins a cell, and behind it comes that cell's text; so the
    standard is broken, and the line with the open quote is one broken row, alone. Only if that cell begins
    with a separator, a line break or a quote may the line go on. So a broken quote costs its own row, but for
    such cells, and but for a second broken quote within ``LONGEST_LINE`` bytes. If the lines that it would
    take with it make a row of another number of cells than the header's, and one of them is a row of the
    right number by itself, it costs its own row there too. A file whose quotes can't be trusted is to be
    declared ``multiline: false``: then no line changes how another is read.
    """
    begun = b""
    for read in chain(blocks, [b""]):
        last, block = not read, begun + read
        if is_plain(block):
            begun = b""
            yield block
            continue
        pieces, start, size = [], 0, PIECE
        while start < len(block):
            stop = piece_end(block, start, size)
            rows = _Rows(block[start:stop], form, width, last=last and stop == len(block))
            piece, used = rows.read(broken)
            pieces.append(piece)
            start += used
            if not used and stop == len(block):
                break
            # A row may be longer than a piece.
            size = PIECE if used else 2 * size
        begun = block[start:]
        yield b"".join(pieces)


class _Rows:
    def __init__(self, block: bytes, form: FileForm, width: int, *, last: bool) -> None:
        self._block, self._form, self._width, self._last = block, form, width, last
        self._separator, self._marks = ord(form.separator), Marks.of(block)

    def read(self, broken: BrokenRows) -> tuple[bytes, int]:
        """Rows that a parser of quotes reads to their own end, and the number of bytes that were read."""
        if stop := self._sound_beginning():
            return self._block[:stop], stop
        bounds, pieces, done = self._marks.bounds, [], 0
        for line in self._marks.suspicious(self._separator).tolist():
            start = bounds[line]
            if start < done:
                # It is a part of the row before.
                continue
            pieces.append(self._block[done:start])
            end = self._end_of_row(line)
            if end is None:
                return b"".join(pieces), start
            done = bounds[end]
            if end == line + 1:
                pieces.append(line_alone(self._block[start:done], self._form, broken))
            elif self._cells(line, end) != self._width:
                broken.uneven += 1
            elif done - start > LONGEST_ROW:
                broken.overlong += 1
            else:
                pieces.append(self._block[start:done])
        return b"".join([*pieces, self._block[done:]]), len(self._block)

    def _sound_beginning(self) -> int:
        """The number of bytes up to the last end of a row, if quotes open and close in turn up to there.

        It is 0 where a row of several lines is too long, or hasn't as many cells as the header.
        """
        marks = self._marks
        row_ends = marks.outside(marks.ends)
        if not len(row_ends):
            return 0
        stop = int(row_ends[-1]) + 1
        rows = Marks(
            marks.data[:stop],
            marks.ends[: np.searchsorted(marks.ends, stop)],
            marks.quotes[: np.searchsorted(marks.quotes, stop)],
        )
        if not rows.in_turn(self._separator) or len(rows.outside(rows.lone_returns)):
            return 0
        several = np.diff(np.searchsorted(rows.ends, row_ends), prepend=-1) > 1
        if several.any():
            too_long = np.diff(row_ends, prepend=-1) > LONGEST_ROW
            cells = np.diff(np.searchsorted(rows.separators(self._separator), row_ends), prepend=0) + 1
            if (several & (too_long | (cells != self._width))).any():
                return 0
        return stop

    def _end_of_row(self, line: int) -> int | None:
        """The number of the line behind the row that begins with a line; None if more lines are needed."""
        odd = self._marks.odd
        at = int(np.searchsorted(odd, line))
        if at == len(odd) or odd[at] != line:
            return line + 1
        start = self._marks.bounds[line]
        if at + 1 == len(odd):
            waits = not self._last and len(self._block) - start <= LONGEST_LINE
            return None if waits else line + 1
        end = int(odd[at + 1]) + 1
        row = self._between(line, end)
        if (
            len(row.data) > LONGEST_LINE
            or not row.in_turn(self._separator)
            or len(row.outside(row.lone_returns))
        ):
            return line + 1
        if self._cells(line, end) != self._width and self._holds_a_row(line + 1, end):
            return line + 1
        return end

    def _between(self, line: int, end: int) -> Marks:
        bounds = self._marks.bounds
        return Marks.of(self._block[bounds[line] : bounds[end]])

    def _cells(self, line: int, end: int) -> int:
        return len(self._between(line, end).separators(self._separator)) + 1

    def _holds_a_row(self, line: int, end: int) -> bool:
        """True if one of some lines is a row of the right number of cells by itself."""
        return any(
            self._cells(i, i + 1) == self._width and self._between(i, i + 1).in_turn(self._separator)
            for i in range(line, end)
        )
