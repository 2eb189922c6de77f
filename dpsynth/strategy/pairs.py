"""The pairs of columns that the strategy auto may measure, and those whose distance is asked for.

Invariant: all of it is made of public facts, so a list of pairs reveals nothing of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.strategy.blocks import MOST_CELLS
from dpsynth.strategy.strategy import Problem

Floats = NDArray[np.float64]

PICKS: Mapping[float, float] = {0.5: 7.5, 1.0: 2.0}
"""Pairs chosen besides one for each column, in square roots of the number of columns, by the measure's
error power. They are fewer in pure epsilon: there k choices cost k times as much as one, while in rho they
cost sqrt(k) times the noise."""
SMALL_A_COLUMN = 12
"""Pairs small enough for a block need no choice, if there are at most so many for each column."""
WANTED_COUNT = 4.0
"""Weight factor of a pair that a requested statistic is about, like that of a workload's targets."""


def small_pairs(sizes: Sequence[int]) -> int:
    """Number of pairs whose distances are asked for without a choice; 0 if they are too many."""
    places = np.array(sizes, dtype=np.float64)
    first, second = np.triu_indices(len(places), 1)
    small = int((places[first] * places[second] <= MOST_CELLS).sum())
    return small if small <= SMALL_A_COLUMN * len(places) else 0


def picks(sizes: Sequence[int], measure: Measure) -> int:
    """Largest number of private choices among the pairs that are not small."""
    columns, small = len(sizes), small_pairs(sizes)
    more = int(PICKS[measure.error_power] * sqrt(columns))
    return min(comb(columns, 2) - small, columns + more)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that may be measured, as arrays of the same length.

    Attributes:
        cliques: the pairs, in table order.
        first, second: places of their columns.
        cells: float64, number of cells.
        weights: float64, weight of each pair.
        wanted: pairs that are measured in any case.
        small: pairs whose distance is asked for without a choice.
        choices: largest number of private choices among the others; 0 if no pair is chosen.
    """

    cliques: Sequence[Clique]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    cells: Floats
    weights: Floats
    wanted: NDArray[np.bool_]
    small: NDArray[np.bool_]
    choices: int

    @classmethod
    def of(cls, problem: Problem, most_cells: int, measure: Measure) -> Pairs:
        """Wanted pairs, and all pairs of at most ``most_cells`` cells without a column of one place."""
        domain = problem.domain
        names, sizes = domain.columns, np.array(domain.shape(domain.columns), dtype=np.float64)
        first, second = np.triu_indices(len(names), 1)
        place = {c: i for i, c in enumerate(names)}
        named = {tuple(sorted(place[c] for c in pair)) for pair in problem.wanted}
        wanted = np.array([pair in named for pair in zip(first.tolist(), second.tolist(), strict=True)], bool)
        weights = problem.workload.pair_weights()[first, second] * np.where(wanted, WANTED_COUNT, 1.0)
        cells = sizes[first] * sizes[second]
        telling = np.minimum(sizes[first], sizes[second]) > 1
        values = problem.values.shape(names)
        places = np.array(values, dtype=np.float64)
        few = places[first] * places[second] <= MOST_CELLS
        small = few if small_pairs(values) else np.zeros_like(few)
        kept = wanted | (telling & (cells <= most_cells) & (weights > 0))
        first, second, wanted, small = first[kept], second[kept], wanted[kept], small[kept]
        cliques = [(names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        heavy = np.maximum(weights[kept], 1e-9)
        return cls(cliques, first, second, cells[kept], heavy, wanted, small, picks(values, measure))

    @property
    def burdens(self) -> Floats:
        """Weighted cells."""
        return self.cells * self.weights

    @property
    def given(self) -> NDArray[np.intp]:
        """Positions of the pairs whose distance is asked for without a choice."""
        return np.flatnonzero(self.wanted | self.small)

    @property
    def unasked(self) -> int:
        """Number of pairs whose distance is not asked for in the first round."""
        return max(0, len(self.cliques) - self.given.size - self.choices) if self.choices else 0
