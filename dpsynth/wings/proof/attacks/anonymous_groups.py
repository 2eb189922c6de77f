"""Attacks on k-anonymous tables: homogeneous groups, and background knowledge that excludes values.

Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2007). The attacker knows a person's quasi-identifiers,
and so finds the group of rows in which she must be. Two values of the sensitive column are possible, equally
likely. Where the group is homogeneous, in that it shows one of the two alone, the attacker is sure.
An attacker with background knowledge knows which of the two each other row of the group has, as well.

A release has no groups. The attacker compares its noisy counts of the two values among the people who share
what is known of her, in each measured table, and weighs these by their noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.attacks.noise_draws import noise_draws, two_of
from dpsynth.wings.proof.attacks.success import Success, of_games, value_bound
from dpsynth.wings.proof.attacks.world import World

Bits = NDArray[np.bool_]
Codes = NDArray[np.int64]


def homogeneity(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """The success of an attacker who knows the quasi-identifiers alone.

    Args:
        world: the world of the games.
        games: number of games.
        rng: any generator.
    """
    group, kept = world.groups()
    target, values, secret = _targets(world, kept, games, rng)
    of_rows = world.codes[world.sensitive]
    shown = _published(world, group, kept)
    first, second = _shown(shown, group, of_rows, target, values, secret)
    alone = (first > 0) != (second > 0)
    # Where both values are shown, the likelier one; where as often, a coin.
    coin = rng.integers(0, 2, games).astype(np.bool_)
    guess = np.where(first == second, coin, second > first)
    hers = f"the group of her quasi-identifiers in a {world.k}-anonymous table"
    found = (
        [
            of_games(
                "k-anonymous", f"{hers}, wherever one of two values is shown alone", (guess == secret)[alone]
            )
        ]
        if alone.any()
        else []
    )
    found.append(of_games("k-anonymous", f"{hers}, all persons", guess == secret))
    released = _of_release(world, target, values, secret, rng, knows_others=False)
    bound = value_bound(world.guarantee)
    seen = "the release's noisy counts among people like her"
    return (*found, of_games("release", seen, released, bound))


def background(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """The success of an attacker who knows of each other person in the group which value is excluded.

    Against the release, the attacker knows all rows of the table but hers.

    Args:
        world: the world of the games.
        games: number of games.
        rng: any generator.
    """
    group, kept = world.groups()
    target, values, secret = _targets(world, kept, games, rng)
    of_rows = world.codes[world.sensitive]
    shown = _published(world, group, kept)
    first, second = _shown(shown, group, of_rows, target, values, secret)
    # The rows of others are known, and are taken off.
    others = [shown[group[target], values[:, i]] - (of_rows[target] == values[:, i]) for i in (0, 1)]
    guess = (second - others[1]) > (first - others[0])
    released = _of_release(world, target, values, secret, rng, knows_others=True)
    return (
        of_games(
            "k-anonymous",
            f"her group in a {world.k}-anonymous table, knowing the values of the others in it",
            guess == secret,
        ),
        of_games(
            "release",
            "all noisy counts of the release, knowing every other row of the table",
            released,
            value_bound(world.guarantee),
        ),
    )


def _targets(world: World, kept: Bits, games: int, rng: np.random.Generator) -> tuple[Codes, Codes, Bits]:
    """The row of the person in each game, her two possible values, and which of them she has."""
    cells = len(world.columns[world.sensitive].codec.labels)
    rows = np.flatnonzero(kept) if kept.any() else np.arange(world.rows)
    target = rng.choice(rows, games)
    return target, two_of(cells, games, rng), rng.integers(0, 2, games).astype(np.bool_)


def _published(world: World, group: Codes, kept: Bits) -> Codes:
    """Rows of each sensitive value in each group of the k-anonymous table, int64[groups, values]."""
    found = np.zeros((group.max() + 1, world.columns[world.sensitive].size), np.int64)
    np.add.at(found, (group[kept], world.codes[world.sensitive][kept]), 1)
    return found


def _shown(
    shown: Codes, group: Codes, of_rows: Codes, target: Codes, values: Codes, secret: Bits
) -> tuple[Codes, Codes]:
    """Number of rows of her group with either value, once she has the one that the coin has given her."""
    both = []
    for place in (0, 1):
        others = shown[group[target], values[:, place]] - (of_rows[target] == values[:, place])
        both.append(others + (secret == place))
    return both[0], both[1]


def _of_release(
    world: World, target: Codes, values: Codes, secret: Bits, rng: np.random.Generator, *, knows_others: bool
) -> Bits:
    """True for each game in which the noisy counts of the release point at the right value.

    The score of a table is the noisy count of the second value less that of the first, among rows that share
    the person's values in the table's other columns, less what is expected without her; tables count by the
    inverse of their variance. An attacker who doesn't know the others expects each value as often there as in
    the whole table. For Gaussian noise and one who knows them, this is the likelihood ratio.
    """
    games, of_rows = len(target), world.codes[world.sensitive]
    score = np.zeros(games)
    shares = np.bincount(of_rows, minlength=world.columns[world.sensitive].size) / len(of_rows)
    for counted in world.about:
        others = [name for name in counted.clique if name != world.sensitive]
        alike = np.zeros(world.rows, np.int64)
        for name in others:
            alike = alike * world.columns[name].size + world.codes[name]
        alike = np.unique(alike, return_inverse=True)[1].reshape(-1)
        counts = np.zeros((alike.max() + 1, len(shares)), np.int64)
        np.add.at(counts, (alike, of_rows), 1)
        noisy, known = [], []
        for place in (0, 1):
            own = values[:, place]
            without = counts[alike[target], own] - (of_rows[target] == own)
            true = without + world.unit_rows * (secret == place)
            noisy.append(true + noise_draws(counted.noise, counted.scale, (games,), rng))
            group = counts[alike[target]].sum(axis=1)
            known.append(without if knows_others else group * shares[own])
        difference = (noisy[1] - known[1]) - (noisy[0] - known[0])
        score += difference / counted.scale**2
    return np.asarray((score > 0) == secret)
