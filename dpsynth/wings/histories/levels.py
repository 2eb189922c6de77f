"""Levels: what lasts in a unit, such as a trait that no column holds.

A unit has a level of a column, which is drawn given its first row and stays. A step is the more likely the
more usual the place that it leads to is at this level. So rows far from each other still resemble each other,
while all units together take the steps that were counted, and have the rows that were counted.

How usual places are at each level follows from counts of rows by the place of their unit's first row: if rows
depended on each other through the level alone, these counts would be a product of two alike factors, one for
each row. Their root is such a factor. Rows depend on each other by steps too, so only a power of the factor
is used: the one with which units that are drawn have counts like those that were asked for.

Invariant: post-processing of answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.factor import Array
from dpsynth.model.raking import raked_counts
from dpsynth.wings.histories.links import FirstRows

_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Powers of the factor that are tried."""
_TURNS, _PACE, _FEW, _LEAST = 60, 0.5, 1e-4, 1e-9
"""Turns of a fit, the power of a turn's correction, and shares below which places and ways count as these."""
_ALLOWED, _FASTER = 1.1, 1.2
"""Growth of the error of a fit in a turn that is still taken, and of the power after such a turn."""
_LEAST_RATIO = 0.02
"""Least of how usual a part is at a level, over how usual it is on the whole."""
_EDGE = 2.5
"""Eigenvalues that are told from noise, in deviations times the root of their number; the edge is at 2."""
_SURE = 4.0
"""Squared deviations of noise by which a level must explain an answer better than none does."""
_LEAST_ROWS = 3
"""Largest number of rows of a unit below which no row is two or more after the first."""
_ROUNDS = 20
"""Rounds of raking."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a column, and the steps at each.

    Attributes:
        shares: float64[places, levels], the chance of each level by the place of the first row.
        ways: float64[levels, places + 1, places], the chance of each place at each level, by the place of the
            row before, the last of which is no row.
        before: float64[levels, places], expected rows that are followed by another one, by level and place.
        first: expected first rows.
    """

    shares: Array
    ways: Array
    before: Array
    first: float

    @classmethod
    def alone(cls, ways: Array, rows: Array) -> Levels:
        """One level for all units, by the weights of steps, and the rows of each place."""
        return cls(np.ones((len(rows), 1)), by_line(ways)[None], rows[None], 1.0)

    @property
    def counts(self) -> Array:
        """Expected rows by the place of the row before, the last of which is no row, and their own."""
        found = np.einsum("zs,zst->st", self.before, self.ways[:, :-1])
        return np.vstack([found, self.ways[0, -1] * self.first])


def by_line(weights: Array) -> Array:
    """Each line as shares of its sum; a line of nothing stays that."""
    sums = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, sums, where=sums > 0, out=np.zeros(weights.shape)))


def reached(ways: Array, most: int) -> Array:
    """The weight of all ways of 0, 1, ... further rows from each place, up to a factor for each number."""
    found = [np.ones(ways.shape[1])]
    for _ in range(most):
        further = ways[:-1] @ found[-1]
        found.append(further / max(float(further.max()), _LEAST))
    return np.array(found)


def stepped(ways: Array, lengths: Array, *, ahead: bool) -> Array:
    """Expected rows of units by the place of the row before and their own, float64[places + 1, places].

    Args:
        ahead: True if a step looks at the rows still to come, as ways of several rows do.
    """
    found = np.zeros(ways.shape)
    going = np.cumsum(lengths[::-1])[::-1]
    if not ahead:
        shares = by_line(ways)
        at = shares[-1]
        found[-1] = going[0] * at
        for units in going[1:]:
            moved = units * at[:, None] * shares[:-1]
            found[:-1] += moved
            at = by_line(moved.sum(axis=0))
        return found
    reach = reached(ways, len(lengths) - 1)
    for most, units in enumerate(lengths, 1):
        at = by_line(ways[-1] * reach[most - 1])
        found[-1] += units * at
        for still in range(most - 2, -1, -1):
            moved = units * at[:, None] * by_line(ways[:-1] * reach[still])
            found[:-1] += moved
            at = moved.sum(axis=0) / units
    return found


def drawn_to(counts: Array, wanted: Array, lengths: Array, *, ahead: bool) -> Array:
    """The ways of a column, of which units of all lengths have as many rows in each place as is wanted.

    Args:
        counts: float64[places + 1, places], by the place of the row before.
        wanted: float64[places], the rows in each place.
    """
    plain, pull, pace, least = by_line(counts), np.ones(len(wanted)), _PACE, np.inf
    for _ in range(_TURNS):
        held = stepped(plain * pull, lengths, ahead=ahead).sum(axis=0)
        # A place that hardly any way leads to would grow, for its few rows, until it outweighs all others.
        ratio = (by_line(wanted) + _FEW) / (by_line(held) + _FEW)
        off = float(np.abs(by_line(held) - by_line(wanted)).sum())
        if off > _ALLOWED * least:
            # Long units feel a pull in many rows: they were drawn too far.
            pace /= 2
        else:
            least, nearest, missing, pace = min(off, least), pull, ratio, min(pace * _FASTER, _PACE)
        pull = nearest * missing**pace
        pull = np.clip(pull / max(float(pull.max()), _LEAST), _LEAST, 1.0)
    return plain * pull


def factor(counts: Array, deviation: float) -> tuple[Array, Array]:
    """The factor whose product with itself counts of rows by their unit's first row are, and its weights.

    It is made of the eigenvectors whose values are beyond those of noise: 2 sigma sqrt(n), the edge of
    Wigner's semicircle, and a quarter more, as n is small.

    Args:
        counts: float64[parts, parts], of rows by their part and that of the first row.
        deviation: of the noise of each.

    Returns:
        float64[parts, levels], how usual each part is at each level; and float64[levels].
    """
    held = np.maximum(counts, 0.0)
    total = max(float(held.sum()), 1.0)
    # A part of hardly any rows is as large as its noise.
    least = max(deviation * np.sqrt(len(counts)) / total, _FEW)
    here, first = (held.sum(axis=axis) / total + least for axis in (1, 0))
    scale = np.sqrt(np.outer(here, first))
    even = counts / total / scale
    values, vectors = np.linalg.eigh((even + even.T) / 2)
    noise = deviation / total / np.sqrt(2) * float(np.median(1 / scale))
    told = values > _EDGE * noise * np.sqrt(len(counts))
    told[-1] = True
    middle = np.sqrt(here * first)
    middle /= middle.sum()
    root = (vectors[:, told] * np.sqrt(np.clip(values[told], _LEAST, 1.0))) @ vectors[:, told].T
    return np.maximum(root / np.sqrt(np.outer(middle, middle)), _LEAST_RATIO), middle


def levelled(counts: Array, wanted: Array, firsts: FirstRows, units: Array, weighted: bool) -> Levels | None:
    """The levels of a column; None if the answer tells of none.

    Args:
        counts: float64[places + 1, places], rows by the place of the row before, the last of which is no row.
        wanted: float64[places], the rows in each place.
        firsts: rows by their part and that of their unit's first row, with the part of each place.
        units: float64[most rows], the number of units with 1, 2, ... rows.
        weighted: True if rows of a unit count 1 together in ``counts`` and in the answer of ``firsts``.
    """
    if len(units) < _LEAST_ROWS:
        return None
    part, answer = firsts.part, firsts.answer
    noisy = answer.values[:, :-1].astype(np.float64)
    usual, weights = factor(noisy, float(np.sqrt(answer.variance)))
    shares = by_line(usual * weights)[part]
    best, least = None, np.inf
    steps = by_line(counts[:-1])
    # How many rows there are in each part is known from elsewhere; the answer tells how they hang together.
    margins = (np.maximum(noisy.sum(axis=axis), 1.0) for axis in (1, 0))
    sums = [own * (noisy.sum() / float(own.sum())) for own in margins]
    for power in _POWERS:
        found, steps = _fitted(counts, wanted, shares, usual[part] ** power, units, weighted, steps)
        far = _by_first(found, part, units, weighted)
        far = raked_counts(far, {(1,): sums[0][:, None], (0,): sums[1][None, :]}, _ROUNDS)
        off = float(((far - noisy) ** 2).sum()) / answer.variance
        if power == 0:
            least = off - _SURE
        elif off < least:
            best, least = found, off
    return best


def _rows_by_turn(units: Array, weighted: bool) -> Array:
    """The rows that are the first, second, ... of their unit, as they count."""
    each = units / np.arange(1, len(units) + 1) if weighted else units
    return np.cumsum(each[::-1])[::-1]


def _fitted(
    counts: Array, wanted: Array, shares: Array, usual: Array, units: Array, weighted: bool, steps: Array
) -> tuple[Levels, Array]:
    """The steps at each level, with which all units have the wanted steps and rows; and those before tilting.

    Args:
        usual: float64[places, levels], how usual each place is at each level.
        steps: float64[places, places], where to begin.
    """
    rows, counted = _rows_by_turn(units, False), _rows_by_turn(units, weighted)
    target, first, pull = by_line(counts[:-1]), by_line(counts[-1]), np.ones(len(wanted))
    for _ in range(_TURNS):
        ways = by_line(steps * (usual.T * pull)[:, None, :])
        start = by_line(first * pull)
        at, held, before, as_counted = start * shares.T, rows[0] * start, 0.0, 0.0
        for now, of_now, then in zip(rows[1:], counted[1:], rows[1:], strict=True):
            before, as_counted = before + then * at, as_counted + of_now * at
            at = np.matmul(at[:, None, :], ways)[:, 0, :]
            held = held + now * at.sum(axis=0)
        taken = by_line(np.einsum("zs,zst->st", as_counted, ways))
        steps = by_line(steps * ((target + _FEW**2) / (taken + _FEW**2)) ** _PACE)
        pull = pull * ((by_line(wanted) + _FEW) / (by_line(held) + _FEW)) ** _PACE
        pull = np.clip(pull / max(float(pull.max()), _LEAST), _LEAST, 1.0)
    begun = np.broadcast_to(start, (len(ways), 1, len(start)))
    return Levels(shares, np.concatenate([ways, begun], axis=1), np.asarray(before), float(rows[0])), steps


def _by_first(levels: Levels, part: NDArray[np.integer], units: Array, weighted: bool) -> Array:
    """Expected rows, as they count, by their part and that of their unit's first row, two or more before."""
    parts, ways = int(part.max()) + 1, levels.ways[:, :-1]
    at = (part == np.arange(parts)[:, None]) * levels.ways[0, -1] * levels.shares.T[:, None, :]
    found = np.zeros((parts, parts))
    for turn, counted in enumerate(_rows_by_turn(units, weighted)[1:], 1):
        at = np.matmul(at, ways)
        if turn > 1:
            np.add.at(found, part, counted * at.sum(axis=0).T)
    return found
