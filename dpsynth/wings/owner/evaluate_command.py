"""``dpsynth evaluate``: how useful a release is, by the private table, for its owner's eyes.

Invariant: figures go into the bundle's folder ``private`` alone. Standard output has the path of the page;
neither it nor the exit code tells anything about cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
