"""An explanation as one page with pictures, for people who decide.

Invariant: the page runs no script and fetches nothing; each picture has its figures in a table beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import log10
from typing import Any

from jinja2 import Environment

from dpsynth.figures import rounded_up
from dpsynth.page_templates import environment
from dpsynth.wings.proof.explain import words
from dpsynth.wings.proof.explain.facts import posterior
from dpsynth.wings.proof.explain.subjects import Subject
from dpsynth.wings.proof.loss_pairs import LossPair

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
    """

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]


@cache
def _environment() -> Environment:
    pages = environment()
    pages.filters["up"] = rounded_up
    pages.filters["figure"] = words.figure
    pages.filters["percent"] = words.percent
    return pages


def page(subject: Subject, facts: words.Facts) -> str:
    """The page as HTML.

    Args:
        subject: what is explained.
        facts: of ``explain.facts``, about it.
    """
    extra: dict[str, Any] = {
        "harm": list(words.harm_in_words(facts["harm"])) if facts["harm"] else [],
        "groups": list(words.groups_in_words(facts)) if facts["groups"] else [],
        "cap": words.cap_in_words(facts["cap"]) if facts["cap"] else "",
        "within": words.within_in_words(facts["each_within"]) if facts["each_within"] else "",
    }
    return (
        _environment()
        .get_template("explain.html.j2")
        .render(facts=facts, accountants=words.ACCOUNTANTS, pictures=_pictures(subject.pair), **extra)
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
