"""``dpsynth check``: what a release would read of the private table, for its owner's eyes.

Invariant: the result goes to standard output alone, below a line that says that it is private. The exit code
tells nothing about cells, and neither does the mark that a check leaves (``checked_mark``).
"""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text

if TYPE_CHECKING:
    from dpsynth.config import Spec
    from dpsynth.wings.owner.assess.checking import Check
    from dpsynth.wings.owner.assess.findings import Finding

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
    from dpsynth.config import load_unreviewed
    from dpsynth.wings.owner.assess.checking import check as checked
    from dpsynth.wings.owner.assess.checking import in_words
    from dpsynth.wings.owner.checked_mark import mark

    spec, review = load_unreviewed(config, source=source)
    result = checked(spec, period)
    mark(config, spec)
    if as_json:
        print(json_text({"private": result.warning, **_facts(result, spec), "under_review": list(review)}))
    else:
        print(f"{result.warning}\n")
        print(in_words(result, _width()))
        if review:
            print(
                f"\nStill under review: {len(review):,} keys of {config}. Columns with a gap to be filled in "
                "were left out here."
            )


def _facts(result: Check, spec: Spec) -> dict[str, object]:
    """The check as plain JSON values."""
    from dpsynth.wings.owner.assess.checking import counts

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
            {"name": tally.column.name, "type": result.types[tally.column.name], **counts(tally)}
            for tally in result.columns
        ],
        "findings": [_finding(finding) for finding in result.findings],
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


def _width() -> int:
    """Columns of the terminal, between 80 and 110."""
    return min(max(get_terminal_size((_WIDTH, 24)).columns, _WIDTH), _WIDEST)
