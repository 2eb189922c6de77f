"""The games in words, as lines of text, and as one page with pictures for people who decide.

Invariant: a rate never stands without its limits, nor a release's without its bound. The page runs no script
and fetches nothing; each picture has its figures in a table beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log10

from dpsynth.accounting.events import Guarantee
from dpsynth.page_templates import environment
from dpsynth.wings.proof.attacks.games import Played
from dpsynth.wings.proof.attacks.success import Bound, Success, presence_bound, value_bound
from dpsynth.wings.proof.attacks.world import World
from dpsynth.wings.proof.explain.page import Curve, Picture


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.5)
    '50.0 %'
    """
    return f"{100 * share:.1f} %"


def at_most(share: float) -> str:
    """A bound in per cent, rounded up."""
    return f"{ceil(1000 * share - 1e-9) / 10:.1f} %"


def rate(success: Success) -> str:
    """A rate with its limits."""
    return f"{percent(success.rate)} ({100 * success.low:.1f} to {100 * success.high:.1f})"


def about(world: World) -> tuple[str, ...]:
    """The games, and the bounds that they are held against."""
    made = "made up from the configuration" if world.made_up else "sampled from the public folder"
    guarantee = world.guarantee
    delta = f", δ = {guarantee.delta:.3g}" if guarantee.delta else ""
    return (
        f"The table of these games has {world.rows:,} rows, {made}: no private table was read, and nothing "
        "was charged. In each game a fair coin draws a secret, and a guess without any table is right half "
        "of the time.",
        f"The release's guarantee is ε = {guarantee.epsilon:.6g}{delta} ({guarantee.neighbours}). With it "
        f"nobody is right more often than {bound_in_words(guarantee, presence_bound(guarantee))} about "
        "whether somebody is in the table, nor more often than "
        f"{bound_in_words(guarantee, value_bound(guarantee))} about which of two values somebody in it has, "
        "whatever they know and compute.",
    )


def bound_in_words(guarantee: Guarantee, bound: Bound) -> str:
    """A bound by epsilon, e^ε/(1 + e^ε), and a sharper one where there is one."""
    if bound.sharpest == bound.epsilon:
        return at_most(bound.epsilon)
    by = "μ" if guarantee.mu is not None else "\N{GREEK SMALL LETTER RHO}"
    return f"{at_most(bound.epsilon)} (by ε; {at_most(bound.sharpest)} by {by})"


def groups_of(world: World) -> str:
    """The roles of the columns, as a sentence."""
    quasi = ", ".join(world.quasi_identifiers)
    return (
        f"The attacker knows {quasi} of everybody, and wants to know {world.sensitive}; k-anonymous tables "
        f"have k = {world.k}."
    )


def in_words(world: World, played: Sequence[Played]) -> Iterator[str]:
    """The games as lines of text."""
    yield from about(world)
    yield groups_of(world)
    for one in played:
        yield ""
        yield f"{one.attack.title} ({one.attack.source}). {one.attack.story}"
        for success in one.successes:
            held = ""
            if success.bound is not None:
                held = f"; at most {bound_in_words(world.guarantee, success.bound)}"
            yield f"  right in {rate(success)} of {success.games:,}{held}: {success.seen}"


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
class Section:
    """An attack on the page."""

    played: Played
    bars: tuple[Bar, ...]
    picture: Picture | None


def page(world: World, played: Sequence[Played]) -> str:
    """The page as HTML."""
    sections = [Section(one, tuple(_bar(world, s) for s in one.successes), _picture(one)) for one in played]
    return (
        environment("wings/proof")
        .get_template("attacks.html.j2")
        .render(
            title=world.title,
            about=[*about(world), groups_of(world)],
            sections=sections,
            tiles=[
                (s.played.attack.title, percent(s.played.successes[0].rate), s.bars[-1].rate.split(" (")[0])
                for s in sections
            ],
        )
    )


def _bar(world: World, success: Success) -> Bar:
    after = success.bound is not None
    bound = "" if success.bound is None else bound_in_words(world.guarantee, success.bound)
    return Bar(success, "after" if after else "before", rate(success), bound)


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
        up="right",
        curves=tuple(curves),
        ticks=tuple((at[i], f"{one.curve[i][0]:,g}") for i in range(0, len(at), every)),
        levels=tuple((25.0 * k, f"{25 * k} %") for k in range(5)),
        rows=tuple((f"{point[0]:,g}", tuple(map(percent, point[1:]))) for point in one.curve),
    )


def _path(at: Sequence[float], rates: Sequence[float]) -> str:
    return "M" + " L".join(f"{x:.2f},{100 * (1 - rate):.2f}" for x, rate in zip(at, rates, strict=True))
