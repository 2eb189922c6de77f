"""The attackers of the games, and the noise of the answers that they see.

Each attacker is a function of a world, with the success against an exact or a k-anonymous table first, and
that against the release last.

Invariant: these are simulations. Nothing of them is released, so a usual generator will do.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.attacks.success import Success, of_games, of_worlds, presence_bound, value_bound
from dpsynth.wings.proof.attacks.world import World


def differencing(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """Differencing: the mean of three salaries, two of which are known.

    Three people make a group of their own, as a department does. The attacker knows two of the salaries, and
    that the third is one of two, equally likely. An exact mean gives the third one away by subtraction. A
    release answers the same question by its noisy counts of the column of salaries within the group.
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


Bits = NDArray[np.bool_]
Codes = NDArray[np.int64]


def homogeneity(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """Homogeneity: the attacker knows a person's quasi-identifiers alone.

    So they find the group of rows in which she must be (Machanavajjhala, Kifer, Gehrke and
    Venkitasubramaniam 2007). Two values of the sensitive column are possible, equally likely. Where the group
    is homogeneous, in that it shows one of the two alone, the attacker is sure. A release has no groups. The
    attacker compares its noisy counts of the two values among the people who share what is known of her, in
    each measured table, and weighs these by their noise.
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
    found = []
    if alone.any():
        seen = f"{hers}, wherever one of two values is shown alone"
        found.append(of_games("k-anonymous", seen, (guess == secret)[alone]))
    found.append(of_games("k-anonymous", f"{hers}, all persons", guess == secret))
    released = _of_release(world, target, values, secret, rng, knows_others=False)
    bound = value_bound(world.guarantee)
    seen = "the release's noisy counts among people like her"
    return (*found, of_games("release", seen, released, bound))


def background(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """Background knowledge: as of ``homogeneity``, by an attacker who knows the values of the others.

    Against the release, the attacker knows all rows of the table but hers.
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


_DRAWN = 64
"""Repetitions of which each is drawn; the mean of more is normal, but for an error that nobody could see."""
_REPETITIONS = 9
_SURE = 4.0
"""Twice the number of standard errors of the mean in half a row, at the last number of repetitions."""

AveragingCurve = tuple[tuple[int, float, float], ...]


def averaging(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """Averaging: one question, asked again and again.

    The secret is whether a person is in the table; the question is a count that she would raise. If each
    repetition drew noise anew, the mean of the answers would come as near to the truth as anyone likes. A
    release answers a question once: the journal keeps the answer, and whoever asks again, or makes the
    release go on after a crash, gets the same number.
    """
    most = _most(world)
    secret = rng.integers(0, 2, games).astype(np.bool_)
    fresh = _right(world, secret, most, rng)
    once = _right(world, secret, 1, rng)
    return (
        of_games("fresh noise", f"the mean of {most:,} answers, each with noise of its own", fresh),
        of_games(
            "release", f"the release's answer, {most:,} times the same", once, presence_bound(world.guarantee)
        ),
    )


def averaging_curve(world: World, games: int, rng: np.random.Generator) -> AveragingCurve:
    """The success by the number of repetitions: repetitions, with fresh noise, with one answer."""
    most = _most(world)
    found = []
    for repetitions in dict.fromkeys(
        round(most ** (point / (_REPETITIONS - 1))) for point in range(_REPETITIONS)
    ):
        secret = rng.integers(0, 2, games).astype(np.bool_)
        fresh, once = (_right(world, secret, n, rng).mean() for n in (repetitions, 1))
        found.append((repetitions, float(fresh), float(once)))
    return tuple(found)


def _counted(world: World) -> tuple[str, float]:
    """The noise of the count: that of the table with the least noise."""
    least = min(world.counted, key=lambda c: c.scale)
    return least.noise, least.scale


def _most(world: World) -> int:
    """Repetitions after which the mean is nearly always on the right side."""
    noise, scale = _counted(world)
    deviation = scale * (2**0.5 if noise == "laplace" else 1.0)
    return max(1, ceil((_SURE * deviation / world.unit_rows) ** 2))


def _right(
    world: World, secret: NDArray[np.bool_], repetitions: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """True for each game in which the mean of the answers is on the right side of the middle."""
    noise, scale = _counted(world)
    if repetitions <= _DRAWN:
        mean = noise_draws(noise, scale, (len(secret), repetitions), rng).mean(axis=1)
    else:
        deviation = scale * (2**0.5 if noise == "laplace" else 1.0)
        mean = rng.normal(0.0, deviation / repetitions**0.5, len(secret))
    rows = world.unit_rows
    return np.asarray((mean + rows * secret > rows / 2) == secret)


PEOPLE = 96
_QUESTIONS = 4 * PEOPLE
_EACH = 20
"""Games a world counts for: many bits share the noise of one world."""
_LEAST_WORLDS = 20
_DEVIATIONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)

ReconstructionCurve = tuple[tuple[float, float], ...]


def reconstruction(world: World, games: int, rng: np.random.Generator) -> tuple[Success, ...]:
    """Reconstruction: every secret bit from many counts, by linear algebra (Dinur and Nissim 2003).

    Too accurate answers to too many questions give everything away. Each of n people has a secret bit. A
    question is the number of ones among a random half of them. Answers to 4n questions make a system of
    linear equations, which the attacker solves by least squares; a bit is one where the solution is above a
    half. Errors far below the root of n don't help: the solution is right all the same. Noise that keeps all
    answers together within the release's guarantee does. A world of people counts for several games.
    """
    worlds = max(_LEAST_WORLDS, games // _EACH)
    asked = f"{_QUESTIONS} counts of random halves of {PEOPLE} people"
    small = sqrt(PEOPLE) / 8
    noise, scale = scale_within(world)
    return (
        of_worlds("exact", f"{asked}, exact", _shares_found(worlds, None, 0.0, rng), PEOPLE),
        of_worlds(
            "small errors",
            f"{asked}, with errors of a standard deviation of {small:.1f}",
            _shares_found(worlds, "gaussian", small, rng),
            PEOPLE,
        ),
        of_worlds(
            "release",
            f"{asked}, with noise that keeps them together within the release's guarantee",
            _shares_found(worlds, noise, scale, rng),
            PEOPLE,
            presence_bound(world.guarantee),
        ),
    )


def reconstruction_curve(world: World, games: int, rng: np.random.Generator) -> ReconstructionCurve:
    """The success by the standard deviation of the noise, in roots of the number of people."""
    del world
    worlds = max(_LEAST_WORLDS // 2, games // (4 * _EACH))
    return tuple(
        (point, float(_shares_found(worlds, "gaussian", point * sqrt(PEOPLE), rng).mean()))
        for point in _DEVIATIONS
    )


def scale_within(world: World) -> tuple[str, float]:
    """The noise with which all counts together keep within the release's guarantee.

    A bit that changes moves each count by 1 at most. So sigma is sqrt(m)/mu under Gaussian DP, sqrt(m/(2
    rho)) under zCDP, and the scale m/epsilon under pure accounting, for m counts.
    """
    guarantee = world.guarantee
    if guarantee.mu:
        return "gaussian", sqrt(_QUESTIONS) / guarantee.mu
    if guarantee.rho:
        return "gaussian", sqrt(_QUESTIONS / (2 * guarantee.rho))
    return "laplace", _QUESTIONS / guarantee.epsilon


def _shares_found(
    worlds: int, noise: str | None, scale: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The share of bits that are found in each world."""
    shares = np.empty(worlds)
    for number in range(worlds):
        bits = rng.integers(0, 2, PEOPLE)
        halves = rng.integers(0, 2, (_QUESTIONS, PEOPLE)).astype(np.float64)
        answers = halves @ bits
        if noise is not None:
            answers += noise_draws(noise, scale, answers.shape, rng)
        # Least squares by the normal equations: random halves, four times as many, are far from singular.
        solution = np.linalg.solve(halves.T @ halves, halves.T @ answers)
        shares[number] = np.mean((solution > 0.5) == bits)
    return shares


_TAIL = 36.0
"""Largest distance in scales: e^-36 is below 1e-15."""


def two_of(cells: int, games: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Two different cells for each game, each pair as likely, int64[games, 2]."""
    first = rng.integers(0, cells, games)
    return np.column_stack([first, (first + rng.integers(1, cells, games)) % cells])


def noise_draws(
    noise: str, scale: float, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draws of discrete noise, cut off where the chance of a larger draw is below 1e-15.

    Args:
        noise: "gaussian", with a chance of x that goes by exp(-x^2/(2 scale^2)); or "laplace", by
            exp(-|x|/scale).
        scale: above 0.
        shape: of the result.
        rng: any generator.
    """
    reach = ceil(_TAIL * scale if noise == "laplace" else 9 * scale) + 1
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / scale) ** 2) / 2 if noise == "gaussian" else -np.abs(values) / scale)
    cumulated = np.cumsum(weights)
    found = np.searchsorted(cumulated, rng.random(shape) * cumulated[-1], side="right")
    return values[np.minimum(found, len(values) - 1)]
