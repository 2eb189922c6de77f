"""A check in words, for the owner's eyes: a line a column, then each finding with its remedy.

Invariant: a line is no wider than asked for, but for a key to be written, which is never broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from textwrap import fill, indent
from typing import TYPE_CHECKING

from dpsynth.columns.reading import Reading
from dpsynth.wings.owner.assess.findings import TUNED, Finding
from dpsynth.wings.owner.assess.tallies import ColumnTally

if TYPE_CHECKING:
    from dpsynth.wings.owner.assess.checking import Check


def counts(tally: ColumnTally) -> dict[str, int]:
    """The numbers of cells of a column by how they are read."""
    return {
        "cells": tally.cells,
        "read": tally.values,
        "below_min": tally.count(Reading.BELOW),
        "above_max": tally.count(Reading.ABOVE),
        "other": tally.count(Reading.OTHER),
        "missing": tally.missing,
        "unread": tally.count(Reading.NONE),
    }


def in_words(found: Check, width: int = 80) -> str:
    """A check in lines of a width."""
    of = "" if found.period is None else f" of {found.period}; {found.outside:,} rows of other periods"
    lines = [f"{found.rows:,} rows{of}, read as a release reads them. Nothing was charged or kept."]
    persons = found.persons
    if persons is not None:
        median, ninety, ninety_nine, most = persons.spread
        lines.append(
            f"{persons.number:,} persons by {persons.column}. Rows of one: {median:,} (median), {ninety:,} "
            f"(90 %), {ninety_nine:,} (99 %), {most:,} (most)."
        )
    lines += ["", *_table(found, width)]
    if found.findings:
        lines += _findings(found.findings, width)
    else:
        lines.append("\nEvery cell is read as it stands. Nothing to change.")
    return "\n".join(lines)


def _table(found: Check, width: int) -> list[str]:
    """A line a column, below a heading."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    names = ("column", "type", "read", "clipped", "other", "missing", "unread")
    for name in names:
        table.add_column(
            name,
            justify="left" if name in names[:2] else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=24 if name == "column" else None,
        )
    for tally in found.columns:
        cells = counts(tally)
        clipped = cells["below_min"] + cells["above_max"]
        numbers = (clipped, cells["other"], cells["missing"], cells["unread"])
        table.add_row(
            Text(tally.column.name),
            found.types[tally.column.name],
            _share(cells["read"], cells["cells"]),
            *(f"{number:,}" if number else "" for number in numbers),
        )
    written = StringIO()
    # In a notebook rich would show the table there, and write nothing.
    plain = Console(file=written, highlight=False, width=width, color_system=None, force_jupyter=False)
    plain.print(table)
    return [line.rstrip() for line in written.getvalue().splitlines()]


def _share(part: int, whole: int) -> str:
    """A share in per cent, never rounded to all or to nothing.

    >>> _share(99_999, 100_000), _share(3, 3), _share(0, 5), _share(1, 100_000)
    ('99.9 %', '100 %', '0 %', '0.1 %')
    """
    if not part or part == whole:
        return f"{100 if part else 0} %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _findings(found: Sequence[Finding], width: int) -> list[str]:
    lines, about = [], ""
    for finding in found:
        if finding.about != about:
            lines.append(f"\n{finding.about}")
            about = finding.about
        lines.append(_paragraph(f"{finding.what}.", 2, width))
        if finding.remedy:
            end = ":" if finding.write else "."
            lines.append(_paragraph(f"{finding.remedy}{end}", 4, width))
        if finding.write:
            lines.append(indent(finding.write, " " * 6))
    if any(finding.tuned for finding in found):
        lines.append(f"\n{_paragraph(TUNED, 0, width)}")
    return lines


def _paragraph(text: str, indented: int, width: int) -> str:
    blanks = " " * indented
    return fill(f"{text[:1].upper()}{text[1:]}", width, initial_indent=blanks, subsequent_indent=blanks)
