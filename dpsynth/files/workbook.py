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
import warnings
from collections.abc import Iterator

from dpsynth.errors import SourceError
from dpsynth.files.place import Place

Cell = str | bool | int | float | dt.datetime | dt.date | dt.time | dt.timedelta | None
"""A cell as openpyxl reads it."""

_EXACT = 10**15
_MIDNIGHT = dt.time()


def sheet_rows(path: Place, sheet: str | None) -> Iterator[tuple[Cell, ...]]:
    """The rows of a sheet that have any cell; cells behind a row's last one are left out.

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
    # Warnings of the library name cells and their values.
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = {found.title: found for found in workbook.worksheets}
            if sheets.keys() & {sheet} or (sheet is None and sheets):
                found = next(iter(sheets.values())) if sheet is None else sheets[sheet]
                # Some programs write a size that is not the sheet's.
                found.reset_dimensions()
                yield from (row for row in found.iter_rows(values_only=True) if any(map(_is_filled, row)))
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


def _is_filled(cell: Cell) -> bool:
    return cell is not None and cell != ""


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
        return str(int(cell)) if abs(cell) < _EXACT and cell == int(cell) else f"{cell:.15g}"
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
