"""An explanation as plain sentences and small tables, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpsynth.figures import rounded_up
from dpsynth.wings.proof.accountants.comparison import NAMES, Comparable

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
