"""Workbooks of Python values, and changes of their parts."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from openpyxl import Workbook


def write_workbook(path: Path, sheets: Mapping[str, list[list[object]]]) -> None:
    """A workbook of sheets; None leaves a cell out."""
    workbook = Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)


def parts_of(path: Path) -> dict[str, bytes]:
    """The files that a workbook is made of."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path: Path, parts: Mapping[str, bytes]) -> None:
    """A workbook of given files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
