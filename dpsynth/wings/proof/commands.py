"""``dpsynth explain``, ``dpsynth attack``, ``dpsynth audit`` and ``dpsynth export``.

Invariant: neither a private table nor a ledger is opened, and nothing is charged. The exit code of an audit
is 1 if something contradicts the claim: that tells of the code and the config alone.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError

_MOST_TIMES = 1_000_000


def explain(  # noqa: PLR0913 (options of a command)
    subject: Annotated[
        str,
        typer.Argument(
            help='A bundle, a manifest.json, a config, or a mechanism: "laplace(scale=2, sensitivity=1)".'
        ),
    ],
    times: Annotated[int, typer.Option(min=1, max=_MOST_TIMES, help="Number of these together.")] = 1,
    delta: Annotated[
        str | None, typer.Option(help="The δ at which ε is given; left out: its own, or 1e-6.")
    ] = None,
    within: Annotated[
        str | None, typer.Option(help="An ε for all --times answers together: how large may each be?")
    ] = None,
    risk: Annotated[
        float, typer.Option(help="A person's chance of harm without the release, for --harm.")
    ] = 0.01,
    harm: Annotated[float | None, typer.Option(help="The cost of a person's worst harm.")] = None,
    cap_epsilon: Annotated[str | None, typer.Option(help="A cap on all releases: its ε.")] = None,
    cap_delta: Annotated[str | None, typer.Option(help="A cap on all releases: its δ.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write a page with pictures to this file.")] = None,
) -> None:
    """Say what a guarantee means: attackers, odds, costs, divergences, compositions. Reads no data."""
    from dpsynth.accounting.amount import Amount
    from dpsynth.wings.proof.explain import Question, facts, in_words
    from dpsynth.wings.proof.explain import page as page_of
    from dpsynth.wings.proof.explain import subject as subject_of

    if not 0 < risk < 1:
        raise ConfigError("--risk must lie between 0 and 1: a chance.")
    if harm is not None and not 0 < harm < float("inf"):
        raise ConfigError("--harm must be a number above 0: the cost of a harm.")
    cap = None
    if cap_epsilon is not None and cap_delta is not None:
        cap = Amount(_number("--cap-epsilon", cap_epsilon, 1000), _number("--cap-delta", cap_delta, 1))
    elif (cap_epsilon, cap_delta) != (None, None):
        raise ConfigError("A cap has an ε and a δ: give --cap-epsilon and --cap-delta.")
    found = subject_of(subject)
    own = Fraction(repr(found.delta)) if found.delta else Fraction(1, 10**6)
    asked = _number("--delta", delta, 1) if delta is not None else own
    question = Question(
        times=times,
        delta=asked,
        within=None if within is None else _number("--within", within, 1000),
        risk=risk,
        harm=harm,
        cap=cap,
    )
    told = facts(found, question)
    _tell(lambda: told, in_words(told), lambda: page_of(found, told), page, as_json=as_json)


def _number(option: str, text: str, below: int) -> Fraction:
    try:
        value = Decimal(text)
        if value.is_finite() and 0 < value < below and abs(value.adjusted()) <= 300:
            return Fraction(value)
    except InvalidOperation:
        pass
    raise ConfigError(f"{option} must be a number above 0 and below {below:,}, and is {text!r}.")


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
    from dpsynth.wings.proof.attacks.page import in_words

    if kind not in (*ATTACKS, "all"):
        raise ConfigError(f"{kind!r} is no attack that dpsynth knows: use {_KINDS}.")
    quasi = tuple(name.strip() for name in quasi_identifiers.split(",")) if quasi_identifiers else ()
    rng = np.random.default_rng(seed)  # noqa: TID251 (games: nothing of them is released)
    world = world_of(on, Choice(rows, k, quasi, sensitive), rng)
    played = play(world, list(ATTACKS) if kind == "all" else [kind], games, rng)
    _tell(
        lambda: facts_of(world, played, games),
        in_words(world, played),
        lambda: page_of(world, played),
        page,
        as_json=as_json,
    )


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
    made = found.attacked.releases if found.attacked is not None else 0
    tried = {"neighbours": neighbours, "releases": made, "rows": rows, "seed": seed}
    options = [f"--{name}={number}" for name, number in tried.items()]
    options += [f"--period={period}"] if period is not None else []
    command = shlex.join(["dpsynth", "audit", config.name, *options])
    _tell(lambda: as_facts(found), in_words(found), lambda: page_of(found, command), page, as_json=as_json)
    if found.faults:
        raise typer.Exit(1)


_FORMS = "registry, ddi, sdmx or sdmx-csv"
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")


def export(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="The folder of a release, or its folder public.")
    ],
    form: Annotated[str, typer.Option("--as", metavar="FORM", help=f"{_FORMS}.")],
    agency: Annotated[
        str | None, typer.Option(help="The identifier of the agency that maintains it. SDMX needs one.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; left out: standard output.")] = None,
) -> None:
    """Print a bundle in the form of a registry, an archive or an office: it follows from public files."""
    from dpsynth.bundle.report_source import damaged
    from dpsynth.cli.printing import write_page
    from dpsynth.cli.recipient_commands import opened_bundle
    from dpsynth.wings.proof.catalogues import as_text, registry_entry
    from dpsynth.wings.proof.exports import Cube, codebook

    if form not in ("registry", "ddi", "sdmx", "sdmx-csv"):
        raise ConfigError(f"--as {form} is no form that dpsynth knows: use {_FORMS}.")
    if form.startswith("sdmx") and agency is None:
        raise ConfigError("--agency ID is missing: SDMX asks which agency maintains a structure.")
    if agency is not None and (form == "registry" or not _AGENCY.fullmatch(agency)):
        raise ConfigError("--agency goes with ddi and sdmx, and is an identifier of theirs, such as STATS.")
    opened = opened_bundle(bundle)
    try:
        if form == "registry":
            text = as_text(registry_entry(opened.facts))
        elif form == "ddi":
            text = codebook(opened.shown, agency)
        else:
            cube = Cube(opened.shown, agency or "")
            text = cube.figures() if form == "sdmx-csv" else cube.structure()
    except (LookupError, TypeError, ValueError, AttributeError):
        raise damaged(opened.folder) from None
    if out is None:
        # The bytes are those of the file, whatever the terminal can show.
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        write_page(out, text.encode("utf-8"))


def _tell(
    facts: Callable[[], Mapping[str, object]],
    lines: Iterable[str],
    html: Callable[[], str],
    page: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print facts as JSON, or lines; before that write a page, so that its error comes first."""
    if page is not None:
        try:
            page.write_text(html(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{page} can't be written: {error.strerror}. Give another file with --page."
            ) from None
    if as_json:
        print(json_text(facts()))
        return
    for line in lines:
        print(line)
    if page is not None:
        print(page)
