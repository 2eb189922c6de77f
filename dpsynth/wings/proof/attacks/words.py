"""The games in words and as lines of text.

Invariant: a rate never stands without its limits, nor a release's without its bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from dpsynth.accounting.events import Guarantee
from dpsynth.wings.proof.attacks.games import Played
from dpsynth.wings.proof.attacks.success import Bound, Success, presence_bound, value_bound
from dpsynth.wings.proof.attacks.world import World


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
