"""Excel workbooks, read by python-calamine, and the texts of their cells.

A cell becomes the text that a CSV file would have for it: a number plainly, without grouping, with at most
the 15 digits that Excel keeps; a date, time or duration by ISO 8601, whatever the cell's format shows; true
or false; and no text for an empty cell or an error such as #N/A.

Invariant: what a workbook looks like (formats, colours, widths) changes no text, but that a number with the
format of a date is a date.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterator
from pathlib import Path

from dpsynth.errors import SourceError

Cell = str | bool | int | float | dt.datetime | dt.date | dt.time | dt.timedelta
"""A cell as python-calamine reads it; the empty text for an empty cell."""

_MOST_BYTES = 4 << 30
"""Largest size of an unpacked workbook, which is held in memory whole."""

_EXACT = 10**15


def sheet_rows(path: Path, sheet: str | None) -> Iterator[list[Cell]]:
    """The rows of a sheet that have any cell, with all cells of the used area.

    Args:
        path: the workbook.
        sheet: its name; None for the first one.

    Raises:
        SourceError: python-calamine isn't installed, the file is no workbook, or it has no such sheet.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound
    except ImportError:
        raise SourceError(
            f"{path} is an Excel workbook, which needs a package that isn't installed: "
            'pip install "dpsynth[excel]".'
        ) from None
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > _MOST_BYTES:
        raise SourceError(f"{path} is too large for a workbook: save the sheet as a .csv file.")
    try:
        workbook = CalamineWorkbook.from_path(path)
        found = workbook.get_sheet_by_index(0) if sheet is None else workbook.get_sheet_by_name(sheet)
        yield from (row for row in found.iter_rows() if any(cell != "" for cell in row))
    except WorksheetNotFound:
        raise SourceError(
            f"{path} has no sheet {'' if sheet is None else repr(sheet)}: set source.sheet to the name of "
            "one of its sheets."
        ) from None
    except (CalamineError, IndexError):
        raise OSError from None
    except BaseException as error:
        # An accident within the library's Rust code is no Exception; its words may quote cells.
        if type(error).__name__ == "PanicException":
            raise OSError from None
        raise


def cell_text(cell: Cell) -> str | None:
    """The text of a cell, None for an empty one.

    >>> [cell_text(c) for c in (7.0, 0.1 + 0.2, True, dt.date(2020, 1, 2), dt.timedelta(hours=25), "")]
    ['7', '0.3', 'true', '2020-01-02', 'PT90000S', None]
    """
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        return str(int(cell)) if abs(cell) < _EXACT and cell == int(cell) else f"{cell:.15g}"
    if isinstance(cell, dt.datetime):
        return cell.isoformat(" ")
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
