"""``dpsynth audit``: releases of made-up tables, replayed on neighbours and attacked, beside what is claimed.

Invariant: neither the private table nor the ledger of the config is opened. The exit code is 1 if something
contradicts the claim: that tells of the code and the config alone.
"""

from __future__ import annotations

import shlex
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError


def audit(  # noqa: PLR0913 (options of a command)
    config: Annotated[Path, typer.Argument(help="The release's YAML file.")],
    neighbours: Annotated[int, typer.Option(min=10, help="Number of neighbours to replay on.")] = 100,
    releases: Annotated[
        int, typer.Option(min=0, help="Releases of each of two tables for attacks, 12 at least; 0: none.")
    ] = 100,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Attack no further releases after so long; without it, all of them."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of made-up rows.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Decides the made-up tables; noise has no seed.")] = 1,
    period: Annotated[
        str | None, typer.Option(help="The period to make up, if the config has periods.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
) -> None:
    """Hold the guarantee of a config against replays and attacks on made-up tables. Reads no private data."""
    from dpsynth.config import load
    from dpsynth.pipeline.steps import lines_for_steps
    from dpsynth.wings.proof.audit import Extent, as_facts, in_words
    from dpsynth.wings.proof.audit import audit as audited
    from dpsynth.wings.proof.audit import page as page_of

    spec = load(config)
    if page is not None and not page.parent.is_dir():
        raise ConfigError(
            f"{page} can't be written: there is no folder {page.parent}. Give another with --page."
        )
    extent = Extent(rows, neighbours, releases, inf if seconds is None else seconds, seed)
    with lines_for_steps():
        found = audited(spec, extent, period)
    if page is not None:
        made = found.attacked.releases if found.attacked is not None else 0
        tried = {"neighbours": neighbours, "releases": made, "rows": rows, "seed": seed}
        options = [f"--{name}={number}" for name, number in tried.items()]
        options += [f"--period={period}"] if period is not None else []
        command = shlex.join(["dpsynth", "audit", config.name, *options])
        try:
            page.write_text(page_of(found, command), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{page} can't be written: {error.strerror}. Give another file with --page."
            ) from None
    if as_json:
        print(json_text(as_facts(found)))
    else:
        for line in in_words(found):
            print(line)
        if page is not None:
            print(page)
    if found.faults:
        raise typer.Exit(1)
