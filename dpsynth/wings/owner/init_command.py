"""``dpsynth init`` and ``dpsynth example``: a first configuration of one's own table, or of an example's.

Invariant: no row is read without ``--look``.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import print_yaml


def init(
    thing: Annotated[
        Path, typer.Argument(metavar="TABLE|DESCRIPTION", help="A table, or a description of one.")
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
    """Write a first config from a table's header alone, or from a description of the table."""
    from dpsynth.wings.owner.starter import (
        draft_of,
        guessed,
        must_be_new,
        release_name,
        starter_text,
        write_starter,
    )

    draft = draft_of(thing, table=table, form=form, pick=pick)
    name = release_name(draft.table or str(thing))
    target = out or Path(f"{name}.yaml")
    printed = target == Path("-")
    if not printed:
        must_be_new(target)
    if look:
        from dpsynth.wings.owner.assess.profiling import look_at

        draft = guessed(draft, look_at(draft.table, draft.form, draft.to_look_at, draft.person))
    print(" ".join(draft.summary()), file=sys.stderr)
    command = shlex.join(["dpsynth", *sys.argv[1:]])
    if printed:
        print_yaml(starter_text(draft, name, None, command))
        return
    print(write_starter(draft, target, command))
    print(f"Now go through the list under review at the end of {target}.", file=sys.stderr)


def example(
    name: Annotated[
        str, typer.Argument(help="randhie, randhie-found, randhie-monthly, adult or minimal.")
    ] = "randhie",
    folder: Annotated[Path, typer.Option(help="Where to write it.")] = Path(),
) -> None:
    """Write an example config, and its table where the demo extra is installed."""
    from dpsynth.wings.owner.starter.examples import write_example

    for path in write_example(name, folder):
        print(path)
