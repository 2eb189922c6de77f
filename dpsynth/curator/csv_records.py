"""Rows of several lines: quoted cells with line breaks, for files that are declared to have them.

A line with a quote that is open at its end may begin a row of several lines. It does if, read by RFC 4180,
the row has as many cells as the header, at most ``MOST_BREAKS`` line breaks and ``LONGEST_ROW`` bytes.
Otherwise the line is read by itself, by the rule of ``csv_lines``, and reading goes on with the next line.
So an unclosed quote costs its own row, unless lines after it happen to complete a row of the right number
of cells.

This is why such rows have to be declared: a broken quote may change how up to ``MOST_BREAKS`` lines after
it are read, whoever they are about. Then the unit of the guarantee is the row as it was read.

Invariant: a file without broken quotes, and without longer rows, is read as RFC 4180 says.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

MOST_BREAKS = 250
"""Most line breaks in a row."""
LONGEST_ROW = 4 << 20
"""Most bytes of a row of several lines."""


class GoesOn(Exception):
    """A row may go on behind the lines that are at hand."""


def row_of_lines(
    block: bytes, starts: Sequence[int], separator: str, width: int, *, last: bool
) -> tuple[list[str], int] | None:
    """The cells of a row of several lines, and their number of lines; None where no such row begins.

    Args:
        block: lines in UTF-8.
        starts: where the row's lines begin, and the end of the last line at hand.
        separator: the sign between cells.
        width: number of cells of a row.
        last: True if no lines follow the block.

    Raises:
        GoesOn: the row may go on behind the block.
    """
    lines = _Lines(block, starts)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        cells = next(reader)
    except csv.Error:
        if lines.ran_out and not last:
            raise GoesOn from None
        return None
    return (cells, reader.line_num) if reader.line_num > 1 and len(cells) == width else None


class _Lines(Iterator[str]):
    """The lines that a row may have, one after another."""

    def __init__(self, block: bytes, starts: Sequence[int]) -> None:
        self._block, self._starts, self._next = block, starts, 0
        self.ran_out = False

    def __next__(self) -> str:
        at = self._next
        if at + 1 >= len(self._starts):
            self.ran_out = True
            raise StopIteration
        start, stop = self._starts[at], self._starts[at + 1]
        if at > MOST_BREAKS or stop - self._starts[0] > LONGEST_ROW:
            raise StopIteration
        self._next += 1
        return self._block[start:stop].decode()
