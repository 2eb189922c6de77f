"""Workbooks written by hand: rows of Python values, as Excel stores them."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
GENERAL, DAY, MOMENT, CLOCK, HOURS = range(5)
_EPOCH = dt.datetime(1899, 12, 30)


def write_workbook(path: Path, sheets: dict[str, list[list[object]]]) -> None:
    """A workbook of sheets; texts are shared strings, errors are bytes, None leaves a cell out."""
    texts: list[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        names = [f"xl/worksheets/sheet{i + 1}.xml" for i in range(len(sheets))]
        for name, rows in zip(names, sheets.values(), strict=True):
            body = "".join(
                f'<row r="{i + 1}">{"".join(_cell(i, j, v, texts) for j, v in enumerate(row))}</row>'
                for i, row in enumerate(rows)
            )
            archive.writestr(name, f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>')
        listed = "".join(
            f'<sheet name="{escape(name)}" sheetId="{i + 1}" r:id="rId{i + 1}"/>'
            for i, name in enumerate(sheets)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATED}"><sheets>{listed}</sheets></workbook>',
        )
        shared = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in texts)
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{shared}</sst>')
        formats = "".join(f'<xf numFmtId="{i}" applyNumberFormat="1"/>' for i in (0, 14, 22, 21, 46))
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{MAIN}"><fonts><font/></fonts><fills><fill/></fills>'
            f"<borders><border/></borders><cellStyleXfs><xf/></cellStyleXfs><cellXfs>{formats}</cellXfs></styleSheet>",
        )
        parts = [*((f"worksheets/sheet{i + 1}.xml", "worksheet") for i in range(len(sheets))),
                 ("sharedStrings.xml", "sharedStrings"), ("styles.xml", "styles")]  # fmt: skip
        archive.writestr("xl/_rels/workbook.xml.rels", _relations(parts))
        archive.writestr("_rels/.rels", _relations([("xl/workbook.xml", "officeDocument")]))
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )


def _relations(parts: list[tuple[str, str]]) -> str:
    listed = "".join(
        f'<Relationship Id="rId{i + 1}" Type="{RELATED}/{kind}" Target="{target}"/>'
        for i, (target, kind) in enumerate(parts)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'


def _cell(row: int, column: int, value: object, texts: list[str]) -> str:
    place = f'r="{chr(ord("A") + column)}{row + 1}"'
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f'<c {place} t="e"><v>{value.decode()}</v></c>'
    if isinstance(value, bool):
        return f'<c {place} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        texts.append(value)
        return f'<c {place} t="s"><v>{len(texts) - 1}</v></c>'
    number, style = _number(value)
    return f'<c {place} s="{style}"><v>{number!r}</v></c>'


def _number(value: object) -> tuple[float | int, int]:
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) / dt.timedelta(days=1), MOMENT
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days, DAY
    if isinstance(value, dt.time):
        return (dt.datetime.combine(_EPOCH, value) - _EPOCH) / dt.timedelta(days=1), CLOCK
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(days=1), HOURS
    assert isinstance(value, int | float)
    return value, GENERAL
