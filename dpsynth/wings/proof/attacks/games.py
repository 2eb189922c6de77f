"""The attacks by their names, and the games of each.

Invariant: an attack is one function of a world, and one entry of ``ATTACKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsynth.wings.proof.attacks.attackers import (
    averaging,
    averaging_curve,
    background,
    differencing,
    homogeneity,
    reconstruction,
    reconstruction_curve,
)
from dpsynth.wings.proof.attacks.success import Bound, Success, presence_bound, value_bound
from dpsynth.wings.proof.attacks.world import Choice, World, refuse_few, world_of

Game = Callable[[World, int, np.random.Generator], tuple[Success, ...]]


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        title: its name in words.
        story: what the attacker knows and does.
        secret: "presence" or "value": which of two neighbouring tables differ.
        source: where it was published.
        game: the function that plays it.
    """

    title: str
    story: str
    secret: str
    source: str
    game: Game


ATTACKS: dict[str, Attack] = {
    "differencing": Attack(
        "Differencing",
        "The mean of three salaries is asked for. The attacker knows two of them, and takes them off.",
        "value",
        "Dobkin, Jones and Lipton 1979",
        differencing,
    ),
    "homogeneity": Attack(
        "Homogeneity",
        "The attacker knows a person's quasi-identifiers, finds her group in a k-anonymous table, and reads "
        "off which of two possible values it shows.",
        "value",
        "Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007",
        homogeneity,
    ),
    "background": Attack(
        "Background knowledge",
        "The attacker knows of all others in her group which value they have, and excludes those.",
        "value",
        "Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007",
        background,
    ),
    "averaging": Attack(
        "Averaging",
        "The attacker asks the same count many times, and takes the mean of the answers.",
        "presence",
        "Denning 1980",
        averaging,
    ),
    "reconstruction": Attack(
        "Linear reconstruction",
        "The attacker asks for the counts of many random groups, and solves for everybody's secret bit "
        "at once.",
        "presence",
        "Dinur and Nissim 2003",
        reconstruction,
    ),
}
"""All attacks by their words on the command line."""

_BOUNDS = {"presence": presence_bound, "value": value_bound}


@dataclass(frozen=True)
class Played:
    """An attack that was played.

    Attributes:
        name: its word.
        attack: the attack.
        successes: the success against each thing that was attacked; the last one is the release.
        curve: further points: a number, and the rates that belong to it; () without any.
    """

    name: str
    attack: Attack
    successes: tuple[Success, ...]
    curve: tuple[tuple[float, ...], ...]

    @property
    def bound(self) -> Bound:
        """The most that the release's guarantee allows."""
        bound = self.successes[-1].bound
        assert bound is not None
        return bound

    def to_json(self) -> dict[str, object]:
        return {
            "attack": self.name,
            "source": self.attack.source,
            "secret": self.attack.secret,
            "successes": [success.to_json() for success in self.successes],
            "curve": [list(point) for point in self.curve],
        }


def play(world: World, names: Sequence[str], games: int, rng: np.random.Generator) -> tuple[Played, ...]:
    """So many games of each attack, by its word in ``ATTACKS``.

    Raises:
        DpsynthError: the world has too few rows.
    """
    refuse_few(world.rows)
    found = []
    for name in names:
        successes = ATTACKS[name].game(world, games, rng)
        curve: tuple[tuple[float, ...], ...] = ()
        if name == "averaging":
            curve = averaging_curve(world, games, rng)
        elif name == "reconstruction":
            curve = reconstruction_curve(world, games, rng)
        found.append(Played(name, ATTACKS[name], successes, curve))
    return tuple(found)


def facts_of(world: World, played: Sequence[Played], games: int) -> dict[str, object]:
    """The games as JSON values, with the guarantee that they are held against."""
    guarantee = world.guarantee
    return {
        "on": world.title,
        "table": "made up from the configuration" if world.made_up else "sampled from the public folder",
        "rows": world.rows,
        "guarantee": {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "neighbours": guarantee.neighbours,
        },
        "right_at_most": {secret: bound(guarantee).to_json() for secret, bound in _BOUNDS.items()},
        "quasi_identifiers": list(world.quasi_identifiers),
        "sensitive": world.sensitive,
        "k": world.k,
        "games": games,
        "attacks": [one.to_json() for one in played],
    }


def for_review(on: Path, games: int = 1_000) -> dict[str, object]:
    """All attacks on a configuration's rehearsal, or on a bundle, for whoever decides on a release."""
    rng = np.random.default_rng()
    world = world_of(on, Choice(), rng)
    return facts_of(world, play(world, list(ATTACKS), games, rng), games)
