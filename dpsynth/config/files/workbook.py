"""Excel workbooks, read row by row by openpyxl, and the texts of their cells.

A cell becomes the text that a CSV file would have for it: a number plainly, without grouping, with at most
the 15 digits that Excel keeps; a date, time or duration by ISO 8601, whatever the cell's format shows; true
or false; and no text for an empty cell.

Invariant: a sheet is read as a stream, so stray cells far outside of the table cost no memory. What a
workbook looks like (formats, colours, widths) changes no text, but that a number with the format of a date
is a date.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from dpsynth.config.files.place import Place
from dpsynth.errors import SourceError

Cell = str | bool | int | float | dt.datetime | dt.date | dt.time | dt.timedelta | None
"""A cell as openpyxl reads it."""

_EXACT = 10**15
_MIDNIGHT = dt.time()
_DIGITS = len("1048576")
"""Most digits of the number of a row."""


def sheet_rows(path: Place, sheet: str | None) -> Iterator[tuple[Cell, ...]]:
    """All rows of a sheet up to the last that it stores, empty ones too; ``is_row`` tells which have a cell.

    Cells behind a row's last one are left out.

    Args:
        path: the workbook.
        sheet: its name; None for the first one.

    Raises:
        SourceError: openpyxl isn't installed, or the workbook has no such sheet.
        OSError: the file is no workbook, or broken.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise SourceError(
            f"{path} is an Excel workbook, which needs a package that isn't installed: "
            'pip install "dpsynth[excel]".'
        ) from None
    with path.open("rb") as file:
        try:
            workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = {found.title: found for found in workbook.worksheets}
            if sheets.keys() & {sheet} or (sheet is None and sheets):
                yield from _rows_of(next(iter(sheets.values())) if sheet is None else sheets[sheet])
                return
        except (GeneratorExit, MemoryError):
            raise
        except Exception:
            # Errors of any kind come of broken parts, and quote them.
            raise OSError from None
    raise SourceError(
        f"{path} has no sheet {'' if sheet is None else repr(sheet)}: set source.sheet to the name of one of "
        "its sheets."
    )


def is_row(row: Sequence[Cell]) -> bool:
    """True if a row has a cell that isn't empty."""
    return any(cell is not None and cell != "" for cell in row)


def _rows_of(sheet: Any) -> Iterator[tuple[Cell, ...]]:
    """The rows of one of openpyxl's sheets, in their order.

    openpyxl stops at a cell that isn't what its attributes say. Here such a cell is its text, or empty where
    it has none, and it changes no other cell.
    """
    from openpyxl.worksheet._reader import VALUE_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> dict[str, Any]:
            before, text = self.col_counter, element.findtext(VALUE_TAG)
            try:
                if element.get("t") == "s" and text and int(text) < 0:
                    # Python would count from the last of the shared texts.
                    raise IndexError
                found: dict[str, Any] = super().parse_cell(element)
            except Exception:
                if self.col_counter == before:
                    self.col_counter += 1
                # The place of a shared text that isn't there is no text.
                found = {"column": self.col_counter, "value": None if element.get("t") == "s" else text}
            return found

        def parse_row(self, element: Any) -> tuple[int, list[dict[str, Any]]]:
            number = element.get("r", "")
            known = number.isascii() and number.isdigit() and len(number) <= _DIGITS
            if not (known and int(number) > self.row_counter):
                # Each stored row is a row, whatever number it says.
                element.attrib["r"] = str(self.row_counter + 1)
            found: tuple[int, list[dict[str, Any]]] = super().parse_row(element)
            return found

    workbook, next_row = sheet.parent, 1
    with sheet._get_source() as source:
        parser = Parser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for number, cells in parser.parse():
            yield from repeat((), number - next_row)
            by_column = {cell["column"]: cell["value"] for cell in cells}
            yield tuple(by_column.get(column) for column in range(1, max(by_column, default=0) + 1))
            next_row = number + 1


def cell_text(cell: Cell) -> str | None:
    """The text of a cell, None for an empty one.

    >>> [cell_text(c) for c in (7.0, 0.1 + 0.2, True, dt.datetime(2020, 1, 2), dt.timedelta(hours=25), "")]
    ['7', '0.3', 'true', '2020-01-02', 'PT90000S', None]
    """
    if cell is None or isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        try:
            return str(int(cell)) if abs(cell) < _EXACT and cell == int(cell) else f"{cell:.15g}"
        except OverflowError:
            # A whole number too long for a float.
            return str(cell)
    if isinstance(cell, dt.datetime):
        return cell.date().isoformat() if cell.time() == _MIDNIGHT else cell.isoformat(" ")
    if isinstance(cell, dt.timedelta):
        return iso_duration(cell // dt.timedelta(microseconds=1), 6)
    return cell.isoformat()


def iso_duration(count: int, decimals: int) -> str:
    """A duration by ISO 8601.

    Args:
        count: a number of units.
        decimals: of a second, in a unit.

    >>> iso_duration(-90500, 3), iso_duration(5, 0)
    ('-PT90.500S', 'PT5S')
    """
    seconds, rest = divmod(abs(count), 10**decimals)
    fraction = f".{rest:0{decimals}}" if rest else ""
    return f"{'-' if count < 0 else ''}PT{seconds}{fraction}S"
