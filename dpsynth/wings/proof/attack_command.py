"""``dpsynth attack``: the attacks that differential privacy is for, against made-up tables.

Invariant: no private table is read, and nothing is charged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError

_KINDS = "differencing, homogeneity, background, averaging, reconstruction, or all"


def attack(  # noqa: PLR0913 (options of a command)
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{_KINDS}.")],
    on: Annotated[
        Path,
        typer.Option(
            help="A config, whose table is made up; or a bundle, of which its public folder is used."
        ),
    ],
    games: Annotated[int, typer.Option(min=100, max=1_000_000, help="Games of each attack.")] = 1_000,
    rows: Annotated[int, typer.Option(min=100, help="Rows of the table of the games.")] = 2_000,
    k: Annotated[
        int | None, typer.Option(min=2, help="Fewest rows of a group of the k-anonymous table.")
    ] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option(help="Columns that the attacker knows of everybody, with commas between.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="The column that the attacker wants to know.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the games repeatable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write a page with pictures to this file.")] = None,
) -> None:
    """Attack exact and k-anonymous tables, then a release: how often is the attacker right?"""
    import numpy as np

    from dpsynth.wings.proof.attacks import ATTACKS, Choice, play, world_of
    from dpsynth.wings.proof.attacks import page as page_of
    from dpsynth.wings.proof.attacks.games import facts_of
    from dpsynth.wings.proof.attacks.words import in_words

    if kind not in (*ATTACKS, "all"):
        raise ConfigError(f"{kind!r} is no attack that dpsynth knows: use {_KINDS}.")
    quasi = tuple(name.strip() for name in quasi_identifiers.split(",")) if quasi_identifiers else ()
    rng = np.random.default_rng(seed)  # noqa: TID251 (games: nothing of them is released)
    world = world_of(on, Choice(rows, k, quasi, sensitive), rng)
    played = play(world, list(ATTACKS) if kind == "all" else [kind], games, rng)
    if page is not None:
        try:
            page.write_text(page_of(world, played), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{page} can't be written: {error.strerror}. Give another file with --page."
            ) from None
    if as_json:
        print(json_text(facts_of(world, played, games)))
        return
    for line in in_words(world, played):
        print(line)
    if page is not None:
        print(page)
