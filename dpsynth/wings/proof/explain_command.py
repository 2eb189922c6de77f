"""``dpsynth explain``: a mechanism, a plan or a published guarantee in numbers and pictures.

Invariant: no table is read, and nothing is charged.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
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
    if page is not None:
        try:
            page.write_text(page_of(found, told), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{page} can't be written: {error.strerror}. Give another file with --page."
            ) from None
    if as_json:
        print(json_text(told))
    else:
        for line in in_words(told):
            print(line)
        if page is not None:
            print(page)


def _number(option: str, text: str, below: int) -> Fraction:
    try:
        value = Decimal(text)
        if value.is_finite() and 0 < value < below and abs(value.adjusted()) <= 300:
            return Fraction(value)
    except InvalidOperation:
        pass
    raise ConfigError(f"{option} must be a number above 0 and below {below:,}, and is {text!r}.")
