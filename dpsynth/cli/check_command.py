"""``dpsynth check``: what a release would read of the private table, for its owner's eyes.

Invariant: the result goes to standard output alone, below a line that says that it is private. The exit code
tells nothing about cells.
"""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dpsynth.assess.checking import Check
    from dpsynth.assess.findings import Finding
    from dpsynth.assess.tallies import ColumnTally
    from dpsynth.config import Spec

_WIDTH, _WIDEST = 80, 110


def check(
    config: Annotated[Path, typer.Argument(help="The release's YAML file.")],
    source: Annotated[str | None, typer.Option(help="A table to use in place of the config's.")] = None,
    period: Annotated[
        str | None, typer.Option(help="Which period to check; left out: the last whole one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read the private table as a release would, and say what is not read: for its owner's eyes only."""
    from dpsynth.assess.checking import check as checked
    from dpsynth.config import load_unreviewed

    spec, review = load_unreviewed(config, source=source)
    result = checked(spec, period)
    if as_json:
        print(_json({**_facts(result, spec), "under_review": list(review)}, result.source))
    else:
        print(f"{_warning(result.source)}\n")
        _print(result, spec)
        if review:
            print(
                f"\nStill under review: {len(review):,} keys of {config}. Columns with a gap to be filled in "
                "were left out here."
            )


def _warning(path: str) -> str:
    return f"PRIVATE: exact counts and cells of {path}, for its owner alone. Don't share this."


def _json(facts: Mapping[str, object], path: str) -> str:
    return json_text({"private": _warning(path), **facts})


def _facts(result: Check, spec: Spec) -> dict[str, object]:
    """The check as plain JSON values."""
    persons = result.persons
    return {
        "release": spec.release,
        "source": result.source,
        "period": result.period,
        "rows": result.rows,
        "rows_outside_period": result.outside,
        "persons": None
        if persons is None
        else {
            "column": persons.column,
            "number": persons.number,
            "most_rows_used": persons.most,
            "rows_of_a_person": dict(zip(("50%", "90%", "99%", "most"), persons.spread, strict=True)),
            "with_more_rows": persons.crowded,
            "rows_left_out": persons.dropped,
            "rows_without_id": persons.nameless,
        },
        "columns": [
            {"name": tally.column.name, "type": spec.columns[tally.column.name].type, **_counts(tally)}
            for tally in result.columns
        ],
        "findings": [_finding(finding) for finding in result.findings],
    }


def _counts(tally: ColumnTally) -> dict[str, int]:
    from dpsynth.domain.reading import Reading

    return {
        "cells": tally.cells,
        "read": tally.values,
        "below_min": tally.count(Reading.BELOW),
        "above_max": tally.count(Reading.ABOVE),
        "other": tally.count(Reading.OTHER),
        "missing": tally.missing,
        "unread": tally.count(Reading.NONE),
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "about": finding.about,
        "cells": finding.cells,
        "what": finding.what,
        "remedy": finding.remedy,
        "write": finding.write,
        "must_be_known_without_the_table": finding.tuned,
    }


def _print(result: Check, spec: Spec) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    of = "" if result.period is None else f" of {result.period}; {result.outside:,} rows of other periods"
    print(f"{result.rows:,} rows{of}, read as a release reads them. Nothing was charged or kept.")
    persons = result.persons
    if persons is not None:
        median, ninety, ninety_nine, most = persons.spread
        print(
            f"{persons.number:,} persons by {persons.column}. Rows of one: {median:,} (median), {ninety:,} "
            f"(90 %), {ninety_nine:,} (99 %), {most:,} (most)."
        )
    print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = ("column", "type", "read", "clipped", "other", "missing", "unread")
    for name in names:
        table.add_column(
            name,
            justify="left" if name in names[:2] else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=24 if name == "column" else None,
        )
    for tally in result.columns:
        counts = _counts(tally)
        clipped = counts["below_min"] + counts["above_max"]
        numbers = (clipped, counts["other"], counts["missing"], counts["unread"])
        table.add_row(
            Text(tally.column.name),
            spec.columns[tally.column.name].type,
            _share(counts["read"], counts["cells"]),
            *(f"{number:,}" if number else "" for number in numbers),
        )
    console = Console(highlight=False)
    console.width = _width()
    console.print(table)
    if result.findings:
        _print_findings(result.findings)
    else:
        print("\nEvery cell is read as it stands. Nothing to change.")


def _share(part: int, whole: int) -> str:
    """A share in per cent, never rounded to all or to nothing.

    >>> _share(99_999, 100_000), _share(3, 3), _share(0, 5), _share(1, 100_000)
    ('99.9 %', '100 %', '0 %', '0.1 %')
    """
    if not part or part == whole:
        return f"{100 if part else 0} %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _print_findings(findings: Iterable[Finding]) -> None:
    from dpsynth.assess.findings import TUNED

    found, about = list(findings), ""
    for finding in found:
        if finding.about != about:
            print(f"\n{finding.about}")
            about = finding.about
        print(_paragraph(f"{finding.what}.", 2))
        if finding.remedy:
            print(_paragraph(f"{finding.remedy}{':' if finding.write else '.'}", 4))
        if finding.write:
            print(indent(finding.write, " " * 6))
    if any(finding.tuned for finding in found):
        print(f"\n{_paragraph(TUNED, 0)}")


def _paragraph(text: str, indent: int) -> str:
    blanks = " " * indent
    return fill(f"{text[:1].upper()}{text[1:]}", _width(), initial_indent=blanks, subsequent_indent=blanks)


def _width() -> int:
    """Columns of the terminal, between 80 and 110."""
    return min(max(get_terminal_size((_WIDTH, 24)).columns, _WIDTH), _WIDEST)
