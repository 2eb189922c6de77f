"""Rows of a CSV file whose quoted cells may hold line breaks, which is what RFC 4180 allows.

A line with an odd number of quotes begins a row of several lines. The row ends at the next such line, if
all quotes from the one to the other stand where RFC 4180 lets a quote open or close, and the row has at
most ``LONGEST_ROW`` bytes. Every other line is read by itself, by the rule of ``csv_lines``.

**Rows that software has quoted.** In a file whose rows are all quoted by RFC 4180, have the header's number
of cells, and have at most ``LONGEST_ROW`` bytes where they have several lines, each row is read as one row,
whatever its cells hold: a series of rows so quoted can be cut in one way only. So a row that comes, goes or
changes moves one row.

**Rows with a broken quote.** An open quote is closed by the next quote in the lines after it. In a row
quoted by RFC 4180 that is the quote that begins a cell, and behind it comes that cell's text; so the
standard is broken, and the line with the open quote is one broken row, alone. Only if that cell begins with
a separator, a line break or a quote may the line go on. So a broken quote costs its own row, but for such
cells, and but for a second broken quote within ``LONGEST_ROW`` bytes. If the lines that it would take with
it make a row of another number of cells than the header's, and one of them is a row of the right number by
itself, it costs its own row there too. A file whose quotes can't be trusted is to be declared ``multiline:
false``: then no line changes how another is read.

Invariant: a file that a program has written by RFC 4180 is read as this program meant it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from dpsynth.config.files.form import FileForm
from dpsynth.curator.csv_lines import PIECE, BrokenRows, Marks, is_plain, line_alone, piece_end

LONGEST_ROW = 1 << 20
"""Most bytes of a row of several lines."""


def sound_records(blocks: Iterable[bytes], form: FileForm, width: int, broken: BrokenRows) -> Iterator[bytes]:
    """Blocks of whole rows, each of which a parser of quotes reads to its own end.

    Args:
        blocks: blocks of whole lines in UTF-8.
        form: the form of the file.
        width: number of cells of a row.
        broken: the counts that grow.
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
    """Whole lines, the first of which begins a row."""

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
            elif self._cells(line, end) == self._width:
                pieces.append(self._block[start:done])
            else:
                broken.uneven += 1
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
            waits = not self._last and len(self._block) - start <= LONGEST_ROW
            return None if waits else line + 1
        end = int(odd[at + 1]) + 1
        row = self._between(line, end)
        if (
            len(row.data) > LONGEST_ROW
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
