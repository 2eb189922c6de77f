"""The games as one page with pictures, for people who decide.

Invariant: the page runs no script and fetches nothing; each picture has its figures in a table beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from dpsynth.page_templates import environment
from dpsynth.wings.proof.attacks import words
from dpsynth.wings.proof.attacks.games import Played
from dpsynth.wings.proof.attacks.success import Success
from dpsynth.wings.proof.attacks.world import World

_LEGENDS = {
    "averaging": (
        "The success by the number of repetitions",
        "repetitions",
        ("noise drawn anew each time", "the release's one answer"),
    ),
    "reconstruction": (
        "The success by the size of the errors, in roots of the number of people",
        "standard deviation of an error / √n",
        ("share of secrets found",),
    ),
}
_KINDS = ("second", "main")
_TICKS = 5


@dataclass(frozen=True)
class Bar:
    """One success in the figure: lengths in per cent of its width, which stands for a right guess each time.

    Attributes:
        success: the success.
        kind: "before" for what is attacked first, "after" for the release.
        rate: the success with its limits, as text.
        bound: the bound as text; "" without one.
    """

    success: Success
    kind: str
    rate: str
    bound: str


@dataclass(frozen=True)
class Curve:
    """A line in a picture 100 wide and 100 high: its SVG path, its name, its class."""

    path: str
    label: str
    kind: str


@dataclass(frozen=True)
class Picture:
    """A picture of curves, and the table of their figures."""

    title: str
    across: str
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    up: str = "right"


@dataclass(frozen=True)
class Section:
    """An attack on the page."""

    played: Played
    bars: tuple[Bar, ...]
    picture: Picture | None


def page(world: World, played: Sequence[Played]) -> str:
    """The page as HTML.

    Args:
        world: the world of the games.
        played: the games.
    """
    sections = [Section(one, tuple(_bar(world, s) for s in one.successes), _picture(one)) for one in played]
    return (
        environment()
        .get_template("attacks.html.j2")
        .render(
            title=world.title,
            about=[*words.about(world), words.groups_of(world)],
            sections=sections,
            tiles=[
                (s.played.attack.title, _first(s.played), s.bars[-1].rate.split(" (")[0]) for s in sections
            ],
        )
    )


def _first(one: Played) -> str:
    return words.percent(one.successes[0].rate)


def _bar(world: World, success: Success) -> Bar:
    after = success.bound is not None
    bound = "" if success.bound is None else words.bound_in_words(world.guarantee, success.bound)
    return Bar(success, "after" if after else "before", words.rate(success), bound)


def _picture(one: Played) -> Picture | None:
    if one.name not in _LEGENDS or len(one.curve) < 2:
        return None
    title, across, labels = _LEGENDS[one.name]
    places = [log10(point[0]) for point in one.curve]
    wide = (places[-1] - places[0]) or 1.0
    at = [100 * (place - places[0]) / wide for place in places]
    kinds = _KINDS if len(labels) > 1 else _KINDS[1:]
    curves = [
        Curve(_path(at, [point[1 + number] for point in one.curve]), label, kind)
        for number, (label, kind) in enumerate(zip(labels, kinds, strict=True))
    ]
    curves.append(Curve(_path([0.0, 100.0], [0.5, 0.5]), "by guessing", "guess"))
    if one.name == "averaging":
        curves.append(Curve(_path([0.0, 100.0], [one.bound.sharpest] * 2), "the guarantee's bound", "bound"))
    every = max(1, round(len(at) / _TICKS))
    return Picture(
        title=title,
        across=across,
        curves=tuple(curves),
        ticks=tuple((at[i], f"{one.curve[i][0]:,g}") for i in range(0, len(at), every)),
        levels=tuple((25.0 * k, f"{25 * k} %") for k in range(5)),
        rows=tuple((f"{point[0]:,g}", tuple(map(words.percent, point[1:]))) for point in one.curve),
    )


def _path(at: Sequence[float], rates: Sequence[float]) -> str:
    return "M" + " L".join(f"{x:.2f},{100 * (1 - rate):.2f}" for x, rate in zip(at, rates, strict=True))
