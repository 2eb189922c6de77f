"""An explanation in plain sentences for a terminal, and as one page with pictures for people who decide.

Invariant: the page runs no script and fetches nothing; each picture has its figures in a table beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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


def in_words(facts: Facts) -> Iterator[str]:
    """The explanation, line by line."""
    yield facts["subject"]
    yield from facts["what"]
    if facts["noise_entropy_bits"] is not None:
        yield f"The noise has an entropy of {facts['noise_entropy_bits']:.4g} bits."
    yield ""
    yield from _attacker(facts["attacker"])
    yield ""
    yield from _odds(facts["odds"])
    if facts["harm"]:
        yield ""
        yield from harm_in_words(facts["harm"])
    yield ""
    yield from _divergences(facts)
    if facts["groups"]:
        yield ""
        yield from groups_in_words(facts)
    yield ""
    yield from _together(facts["together"])
    if facts["each_within"]:
        yield ""
        yield within_in_words(facts["each_within"])
    if facts["cap"]:
        yield ""
        yield cap_in_words(facts["cap"])


def _attacker(attacker: Facts) -> Iterator[str]:
    least, known = percent(attacker["right_at_most"]), attacker["right_by_epsilon"]
    chance = least if known is None else f"{rounded_up(100 * known, 3)} %, as plan and report say"
    yield (
        "The best attacker, who knows all but one unit, tells two neighbours that are equally likely apart "
        f"with a chance of at most {chance}; a coin has 50 %."
    )
    if known is not None:
        yield f"That follows from ε and δ alone. By all that the accountant knows it is at most {least}."
    yield "  false alarms   finds the unit in at most"
    for point in attacker["hits_at_false_alarms"]:
        yield f"  {percent(point['false_alarms']):>12}   {percent(point['hits'])}"


def _odds(odds: Sequence[Facts]) -> Iterator[str]:
    yield "What someone may come to believe, by what they believed before, for a share of all outcomes:"
    shares = [entry["of_outcomes"] for entry in odds[0]["posterior"]]
    yield "  before     " + "".join(f"{share:>10}" for share in shares)
    for row in odds:
        after = "".join(f"{percent(entry['at_most']):>10}" for entry in row["posterior"])
        yield f"  {percent(row['prior']):<10} {after}"


def harm_in_words(harm: Facts) -> Iterator[str]:
    """The expected cost to a person."""
    yield (
        f"A harm of {harm['harm']:g} that would strike a person with a chance of "
        f"{percent(harm['risk_without'])} without their data strikes with at most "
        f"{percent(harm['risk_with_at_most'])} with it: an expected cost of {harm['cost_without']:.4g}, and "
        f"at most {harm['costs_at_most_more']:.4g} more."
    )


def _divergences(facts: Facts) -> Iterator[str]:
    found = facts["divergences"]
    yield (
        f"Kullback-Leibler divergence {figure(found['kullback_leibler_nats'])} nats "
        f"({figure(found['kullback_leibler_bits'])} bits), max divergence "
        f"{figure(found['max_divergence_nats'])}, total variation {figure(found['total_variation'])}."
    )
    renyi = ", ".join(f"{entry['order']:g}: {figure(entry['nats'])}" for entry in found["renyi"])
    yield f"Rényi divergences by order, in nats: {renyi}."
    deltas = ", ".join(f"ε = {e['epsilon']:g}: {figure(e['delta'])}" for e in facts["delta_at_epsilon"])
    yield f"δ by ε: {deltas}."
    epsilons = ", ".join(f"δ = {e['delta']:g}: {figure(e['epsilon'])}" for e in facts["epsilon_at_delta"])
    yield f"ε by δ: {epsilons}."


def groups_in_words(facts: Facts) -> Iterator[str]:
    """The guarantees of groups, and under the other relation."""
    for group in facts["groups"]:
        yield f"For {group['units']} units that come or go together: {_guarantee(group)}."
    other = facts["other_relation"]
    if other["neighbours"] == "replace_one":
        yield f"If a unit were exchanged for another (replace_one): {_guarantee(other)}."
    else:
        yield (
            "If a unit were left out (add_remove) nothing follows: under replace_one their number is public."
        )


def _guarantee(amount: Facts) -> str:
    if amount["epsilon"] is None:
        return "no guarantee that says anything"
    return f"ε = {figure(amount['epsilon'])}" + (f", δ = {amount['delta']:.3g}" if amount["delta"] else "")


def _together(together: Facts) -> Iterator[str]:
    times = together["times"]
    name = "One of these" if times == 1 else f"{times:,} of these together"
    yield f"{name}, at δ = {together['delta']:g}, by accountant:"
    for entry in together["accountants"]:
        least = "  (least for adaptive questions)" if entry["accountant"] == together["least"] else ""
        label = ACCOUNTANTS[entry["accountant"]]
        fixed = "" if entry["adaptive"] else ", noise fixed beforehand"
        shown = "none" if entry["epsilon"] is None else f"ε = {figure(entry['epsilon'])}"
        at = "" if entry["delta"] == together["delta"] else f" at δ = {entry['delta']:.3g}"
        yield f"  {label + fixed:<50} {shown}{at}{least}"
    if together["textbook_epsilon"] is not None and times > 1:
        textbook = "Dwork and Roth, theorem 3.20, noise fixed beforehand"
        yield f"  {textbook:<50} ε = {figure(together['textbook_epsilon'])}"


def within_in_words(found: Facts) -> str:
    """The largest epsilon of each of several answers within a total."""
    return (
        f"{found['times']:,} answers within ε = {found['epsilon']:g} at δ = {found['delta']:g} may have "
        f"ε = {_one_over(found['sequential'])} each by adding up, {_one_over(found['textbook'])} by theorem "
        f"3.20 of Dwork and Roth, and {_one_over(found['advanced'])} by optimal advanced composition."
    )


def cap_in_words(cap: Facts) -> str:
    """The number of releases within a cap."""
    by = ", ".join(f"{number:,} by {ACCOUNTANTS[name]}" for name, number in cap["releases"].items())
    return f"Of these, a cap of ε = {cap['epsilon']:g}, δ = {cap['delta']:g} holds {by}."


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
    pages.filters["up"] = rounded_up
    pages.filters["figure"] = figure
    pages.filters["percent"] = percent
    return pages


def page(subject: Subject, facts: Facts) -> str:
    """The page as HTML.

    Args:
        subject: what is explained.
        facts: of ``explain.facts``, about it.
    """
    extra: dict[str, Any] = {
        "harm": list(harm_in_words(facts["harm"])) if facts["harm"] else [],
        "groups": list(groups_in_words(facts)) if facts["groups"] else [],
        "cap": cap_in_words(facts["cap"]) if facts["cap"] else "",
        "within": within_in_words(facts["each_within"]) if facts["each_within"] else "",
    }
    return (
        _environment()
        .get_template("explain.html.j2")
        .render(facts=facts, accountants=ACCOUNTANTS, pictures=_pictures(subject.pair), **extra)
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
