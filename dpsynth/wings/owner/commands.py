"""``dpsynth init``, ``dpsynth example``, ``dpsynth check`` and ``dpsynth evaluate``.

Invariant: init reads no row without ``--look``. The result of a check goes to standard output alone, below a
line that says that it is private; figures of an evaluation go into the bundle's folder ``private`` alone.
No exit code tells anything about cells, and neither does the mark that a check leaves (``checked_mark``).
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text, print_yaml
from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    from dpsynth.config import Spec
    from dpsynth.wings.owner.assess.checking import Check
    from dpsynth.wings.owner.assess.findings import Finding


def init(
    things: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...|DESCRIPTION",
            help="A table, or several linked tables, that of persons first; or a description of these.",
        ),
    ],
    table: Annotated[
        Path | None, typer.Option(help="With a description: the table. Its header gives the columns' order.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="What it is, where name and contents don't say: see docs/starting.md."),
    ] = None,
    pick: Annotated[str | None, typer.Option(help="Which table of a description of several.")] = None,
    look: Annotated[
        bool, typer.Option("--look", help="Read the private table, and guess what is missing from it.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The file to write; - prints it.")] = None,
) -> None:
    """Write a first config from the header of a table or of linked ones, or from a description."""
    from dpsynth.wings.owner.starter import (
        draft_of,
        drafts_of,
        guessed,
        must_be_new,
        release_name,
        starter_text,
        write_starter,
    )

    several = drafts_of(things, form) if (table or pick) is None else None
    if several is not None:
        from dpsynth.wings.owner.assess.links import linked, look_at_tables

        draft = linked(*several)
    elif len(things) > 1:
        raise ConfigError("--table and --pick go with a description of one table: give several tables alone.")
    else:
        draft = draft_of(things[0], table=table, form=form, pick=pick)
    name = release_name(str(things[0]) if several else draft.table or str(things[0]))
    target = out or Path(f"{name}.yaml")
    printed = target == Path("-")
    if not printed:
        must_be_new(target)
    if look and several is not None:
        draft = look_at_tables(*several)
    elif look:
        from dpsynth.wings.owner.assess.profiling import look_at

        draft = guessed(draft, look_at(draft.table, draft.form, draft.to_look_at, draft.person))
    print(" ".join(draft.summary()), file=sys.stderr)
    command = shlex.join(["dpsynth", *sys.argv[1:]])
    if printed:
        print_yaml(starter_text(draft, name, None, command))
        return
    print(write_starter(draft, target, command))
    after = f"dpsynth check {shlex.quote(str(target))}"
    print(
        f"Now go through the list under review at the end of {target}. Then run {after}. It shows how cells "
        "are read, and proposes rules for constraints. Synthetic rows keep only those that the config has.",
        file=sys.stderr,
    )


def example(
    name: Annotated[
        str, typer.Argument(help="randhie, randhie-found, randhie-linked, randhie-monthly, adult or minimal.")
    ] = "randhie",
    folder: Annotated[Path, typer.Option(help="Where to write it.")] = Path(),
) -> None:
    """Write an example config, and its table where the demo extra is installed."""
    from dpsynth.wings.owner.starter.examples import write_example

    for path in write_example(name, folder):
        print(path)


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
    whole = asdict(finding)
    tuned = whole.pop("tuned")
    return {**whole, "must_be_known_without_the_table": tuned}


def _width() -> int:
    """Columns of the terminal, between 80 and 110."""
    return min(max(get_terminal_size((_WIDTH, 24)).columns, _WIDTH), _WIDEST)


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="A release's folder, with public/ and private/ inside.")],
    against: Annotated[
        Path | None, typer.Option(help="The private table; left out: the table of --config.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="The release's YAML file: the table, and how it is written; left out: as released."
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A column to predict; may be given several times.")
    ] = None,
) -> None:
    """Compare a release with its private table, for the owner alone; writes private/utility.html."""
    from dpsynth.pipeline.steps import Steps, lines_for_steps, plainly
    from dpsynth.wings.owner.assess.evaluation import FACTS, write_evaluation
    from dpsynth.wings.owner.assess.evaluation import evaluate as evaluated

    with lines_for_steps():
        found = evaluated(bundle, against, config, tuple(target or ()))
        page = Steps(plainly)("write the page", write_evaluation, found)
    print(f"PRIVATE, never to be shared: {page}, and {FACTS} beside it. Nothing was charged.")
    print(page)
