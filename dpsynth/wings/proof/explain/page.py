"""An explanation in plain sentences for a terminal, and as one page with pictures for people who decide.

Invariant: the page runs no script and fetches nothing; each picture has its figures in a table beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log10
from typing import Any

from jinja2 import Environment

from dpsynth.figures import rounded_up
from dpsynth.page_templates import environment
from dpsynth.wings.proof.accountants.comparison import NAMES, Comparable
from dpsynth.wings.proof.explain.facts import posterior
from dpsynth.wings.proof.explain.subjects import Subject
from dpsynth.wings.proof.loss_pairs import LossPair

Facts = Mapping[str, Any]
"""The facts of ``explain.facts``."""

ACCOUNTANTS: Mapping[Comparable, str] = {**NAMES, "sequential": "sequential: ε added up"}


def in_words(facts: Facts) -> list[str]:
    """The explanation, line by line."""
    return _environment().get_template("explain.text.j2").render(facts).rstrip("\n").split("\n")


def _one_over(value: float) -> str:
    return f"{figure(value)} (1/{1 / value:.1f})" if value < 0.1 else figure(value)


def figure(value: float | None) -> str:
    """A number in five digits; "infinite" for none."""
    return "infinite" if value is None else f"{value:.5g}"


def percent(share: float) -> str:
    """A share in per cent, in four digits.

    >>> percent(0.001), percent(0.73105857)
    ('0.1 %', '73.11 %')
    """
    return f"{100 * share:.4g} %"


_POINTS = 120
_LEAST_DELTA = -12
"""The least power of ten of delta in its picture."""


@dataclass(frozen=True)
class Curve:
    """A line in a picture 100 wide and 100 high.

    Attributes:
        path: its SVG path, from the left, downwards from the top.
        label: its name.
        kind: its class in the style sheet.
    """

    path: str
    label: str
    kind: str


@dataclass(frozen=True)
class Picture:
    """A picture of one or more curves.

    Attributes:
        title: what it shows, as a sentence.
        across, up: the names of its axes.
        curves: the lines.
        ticks, levels: positions from 0 to 100 and labels, along the bottom and from the bottom up.
        rows: the table of its figures, where it has one.
    """

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...] = ()


@cache
def _environment() -> Environment:
    pages = environment("wings/proof")
    pages.filters |= {"up": rounded_up, "figure": figure, "percent": percent, "one_over": _one_over}
    pages.filters["accountant"] = ACCOUNTANTS.__getitem__
    return pages


def page(subject: Subject, facts: Facts) -> str:
    """The page of ``explain.facts`` as HTML."""
    return (
        _environment()
        .get_template("explain.html.j2")
        .render(facts=facts, accountants=ACCOUNTANTS, pictures=_pictures(subject.pair))
    )


def _pictures(pair: LossPair) -> dict[str, Picture]:
    share = tuple((25.0 * k, f"{25 * k} %") for k in range(5))
    top = min(max(4 * min(pair.largest_loss, pair.epsilon(1e-9)) / 3, 0.1), 60.0)
    sure, typical = pair.largest_loss, pair.loss_not_exceeded(0.95)
    odds = [_line(lambda x: posterior(x, typical), "in 95 % of the outcomes", "main")]
    if sure < float("inf"):
        odds.append(_line(lambda x: posterior(x, sure), "whatever comes out", "second"))
    return {
        "attacker": Picture(
            "What the best attacker gets right, by how often they raise a false alarm",
            "false alarms",
            "finds the unit",
            (_line(pair.hits, "with the release", "main"), _line(lambda x: x, "by guessing", "guess")),
            share,
            share,
        ),
        "odds": Picture(
            "What someone may believe afterwards, by what they believed before",
            "before",
            "after, at most",
            (*odds, _line(lambda x: x, "unchanged", "guess")),
            share,
            share,
        ),
        "delta": Picture(
            "The chance δ that a loss of ε is exceeded, in the sense of (ε, δ)",
            "ε",
            "δ",
            (_line(lambda x: _height(pair.delta(top * x)), "δ(ε)", "main"),),
            tuple((25.0 * k, f"{top * k / 4:.3g}") for k in range(5)),
            tuple((100 * (1 - k / _LEAST_DELTA), f"1e{k}") for k in range(_LEAST_DELTA, 1, 3)),
        ),
    }


def _height(delta: float) -> float:
    """The height of a delta on a logarithmic axis, from 0 to 1."""
    return max(0.0, 1 - log10(max(delta, 10.0**_LEAST_DELTA)) / _LEAST_DELTA)


def _line(value: Callable[[float], float], label: str, kind: str) -> Curve:
    places: Sequence[float] = [k / _POINTS for k in range(_POINTS + 1)]
    inside = (min(max(x, 1e-9), 1 - 1e-9) for x in places)
    points = " L".join(
        f"{100 * x:.2f},{100 * (1 - value(at)):.2f}" for x, at in zip(places, inside, strict=True)
    )
    return Curve(f"M{points}", label, kind)
