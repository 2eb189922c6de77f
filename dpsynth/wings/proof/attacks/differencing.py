"""The differencing attack: a mean of three salaries, two of which are known.

Three people make a group of their own, as a department does. The attacker knows two of the salaries, and that
the third is one of two, equally likely. An exact mean gives the third one away by subtraction. A release
answers the same question by its noisy counts of the column of salaries within the group.
"""

from __future__ import annotations

import numpy as np

from dpsynth.wings.proof.attacks.noise_draws import noise_draws, two_of
from dpsynth.wings.proof.attacks.success import Success, of_games, value_bound
from dpsynth.wings.proof.attacks.world import World


def differencing(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """The success against an exact mean, and against the release's counts of the same group.

    Args:
        world: the world of the games.
        games: number of games.
        rng: any generator.
    """
    column = world.columns[world.sensitive]
    cells = len(column.codec.labels)
    centres = column.centres
    # Values that are no numbers are numbered; their mean is as exact.
    amounts = np.arange(cells, dtype=np.float64) if centres is None else centres
    of_rows = world.codes[world.sensitive]
    salaries = np.minimum(of_rows[rng.integers(0, len(of_rows), (games, 2))], cells - 1)
    low, high = np.sort(two_of(cells, games, rng), axis=1).T
    secret = rng.integers(0, 2, games)
    third = np.where(secret, high, low)
    middle = (amounts[low] + amounts[high]) / 2
    means = (amounts[salaries].sum(axis=1) + amounts[third]) / 3
    # What is left of the mean when the known two are taken off.
    left = 3 * means - amounts[salaries].sum(axis=1)
    exact = (left > middle) == secret
    counted = min(world.about, key=lambda c: (len(c.clique) < 2, c.scale))
    noisy = noise_draws(counted.noise, counted.scale, (games, cells), rng).astype(np.float64)
    game = np.arange(games)
    for known in salaries.T:
        noisy[game, known] += 1
    noisy[game, third] += world.unit_rows
    of_known = amounts[salaries].sum(axis=1)
    guess = (noisy @ amounts - of_known) / world.unit_rows > middle
    others = [name for name in counted.clique if name != world.sensitive]
    by = f" by {' and '.join(others)}" if others else ""
    return (
        of_games("exact", "the exact mean of the three", exact),
        of_games(
            "release",
            f"the release's noisy counts of {world.sensitive}{by}, in a group of three",
            guess == secret,
            value_bound(world.guarantee),
        ),
    )
