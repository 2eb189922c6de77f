"""Distances between the synthetic table and the private one, on the released cells.

A distance is total variation: half the sum of the absolute differences of the shares of all cells, from 0
(the same) to 1 (nothing in common). Beside it stands the distance by chance: the expected one of another
sample of as many rows as the private table has, drawn from the same population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.pipeline.steps import advanced
from dpsynth.wings.owner.assess.owned_bundle import CodedTable

TRIPLES = 200
"""Largest number of triples of columns in the k-marginal score."""
_DENSE = 1 << 22
_SEED = 7


@dataclass(frozen=True)
class Distance:
    """The distance of one marginal.

    Attributes:
        columns: the columns.
        distance: total variation between the tables, 0 to 1.
        by_chance: the expected distance of another sample of as many rows as the private table.
    """

    columns: Clique
    distance: float
    by_chance: float


def distance(real: CodedTable, synthetic: CodedTable, clique: Clique) -> Distance:
    """The distance of a marginal. A table without rows has shares of 0."""
    cells = int(np.prod([real.sizes[name] for name in clique], dtype=np.int64))
    if cells <= _DENSE:
        of_real, of_synthetic = real.counts(clique), synthetic.counts(clique)
    else:
        of_real, of_synthetic = _sparse(real.cells(clique), synthetic.cells(clique))
    p, q = _shares(of_real), _shares(of_synthetic)
    spread = np.sqrt(2.0 * p * (1.0 - p) / (np.pi * max(real.rows, 1)))
    return Distance(clique, float(np.abs(p - q).sum() / 2.0), float(spread.sum() / 2.0))


def _sparse(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of the cells that occur in either of two lists of cells."""
    found, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    return (
        np.bincount(place[: len(one)], minlength=len(found)),
        np.bincount(place[len(one) :], minlength=len(found)),
    )


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / max(int(counts.sum()), 1)


def column_distances(real: CodedTable, synthetic: CodedTable) -> tuple[Distance, ...]:
    """The distances of all columns, in the table's order."""
    return tuple(distance(real, synthetic, (column.name,)) for column in real.columns)


def pair_distances(real: CodedTable, synthetic: CodedTable) -> tuple[Distance, ...]:
    """The distances of all pairs of columns."""
    pairs = list(combinations([column.name for column in real.columns], 2))
    found = []
    for done, pair in enumerate(pairs):
        found.append(distance(real, synthetic, pair))
        advanced(done + 1, len(pairs))
    return tuple(found)


@dataclass(frozen=True)
class MarginalScore:
    """The k-marginal score of NIST's contests: 1000 times one minus the mean distance of triples of columns.

    Attributes:
        triples: number of triples.
        all_of_them: True if these are all triples; otherwise they were chosen at random, the same each time.
        score: of the synthetic table, 0 to 1000.
        by_chance: of another sample of as many rows as the private table, in expectation.
        worst: the triples with the largest distances, worst first.
    """

    triples: int
    all_of_them: bool
    score: float
    by_chance: float
    worst: tuple[Distance, ...]


def marginal_score(real: CodedTable, synthetic: CodedTable) -> MarginalScore | None:
    """The k-marginal score with k = 3; None with fewer than three columns."""
    names = [column.name for column in real.columns]
    if len(names) < 3:
        return None
    triples = _triples(names)
    found = []
    for done, triple in enumerate(triples):
        found.append(distance(real, synthetic, triple))
        advanced(done + 1, len(triples))
    return MarginalScore(
        triples=len(triples),
        all_of_them=len(triples) == comb(len(names), 3),
        score=1000.0 * (1.0 - float(np.mean([d.distance for d in found]))),
        by_chance=1000.0 * (1.0 - float(np.mean([d.by_chance for d in found]))),
        worst=tuple(sorted(found, key=lambda d: -d.distance)[:5]),
    )


def _triples(names: Sequence[str]) -> list[Clique]:
    if comb(len(names), 3) <= TRIPLES:
        return list(combinations(names, 3))
    rng = np.random.default_rng(_SEED)
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < TRIPLES:
        chosen[tuple(sorted(rng.choice(len(names), 3, replace=False).tolist()))] = None
    return [tuple(names[spot] for spot in spots) for spots in chosen]
