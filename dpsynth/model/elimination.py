"""Greedy elimination orders of a graph, for a triangulation of few cells.

Eliminating a column joins all its neighbours to each other; the column and its neighbours
are a clique of the triangulated graph. Finding the order of fewest cells is NP-hard, so
greedy rules are run against each other (Kjaerulff 1990; Fishelson and Geiger 2004).

Columns are numbers, and sets of columns are the bits of an int. Invariant: cells are exact
ints of any size, and every result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


def members(mask: int) -> list[int]:
    """The columns of a set, in table order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(columns: Iterable[int]) -> int:
    """The set of some columns."""
    mask = 0
    for column in columns:
        mask |= 1 << column
    return mask


@dataclass(frozen=True)
class Sizes:
    """Sizes of the columns, for products and sums over sets of columns.

    Attributes:
        places: number of places of each column, at least 1.
    """

    places: tuple[int, ...]
    _planes: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.places, default=1) < 1:
            raise ValueError("every column needs at least one place")
        digits = range(max(self.places, default=1).bit_length())
        planes = [(d, mask_of(c for c, s in enumerate(self.places) if s >> d & 1)) for d in digits]
        object.__setattr__(self, "_planes", tuple((d, plane) for d, plane in planes if plane))

    def cells(self, mask: int) -> int:
        """Product of the sizes of a set; 1 for the empty set."""
        found = 1
        while mask:
            low = mask & -mask
            found *= self.places[low.bit_length() - 1]
            mask ^= low
        return found

    def total(self, mask: int) -> int:
        """Sum of the sizes of a set; of a large one, a binary digit of the sizes at a time."""
        found = 0
        if mask.bit_count() <= len(self._planes):
            while mask:
                low = mask & -mask
                found += self.places[low.bit_length() - 1]
                mask ^= low
            return found
        for digit, plane in self._planes:
            found += (mask & plane).bit_count() << digit
        return found


@dataclass(frozen=True)
class Rule:
    """A ranking of columns for greedy elimination; the column of least rank is eliminated next.

    A column's neighbours are its separator to the rest of the tree: some later clique has to hold
    them all. Rules that rank by the separator's cells do best where sizes differ much.

    Attributes:
        name: name of the rule; the first three below are Kjaerulff's.
        counts: the measure of the edges that an elimination would add: "none" (not needed), "edges"
            (their number) or "cells" (the cells of their pairs).
        rank: function of the added edges, the cells of the column's neighbours, and its own size.
    """

    name: str
    counts: Literal["none", "edges", "cells"]
    rank: Callable[[int, int, int], tuple[int, int]]


MIN_FILL = Rule("min-fill", "edges", lambda fill, around, size: (fill, around * size))
MIN_WEIGHT = Rule("min-weight", "none", lambda fill, around, size: (around * size, 0))
WEIGHTED_FILL = Rule("weighted min-fill", "cells", lambda fill, around, size: (fill, around * size))
MIN_SEPARATOR = Rule("min-separator", "none", lambda fill, around, size: (around, -size))
SEPARATOR_PER_PLACE = Rule(
    "min-separator per place", "none", lambda fill, around, size: ((around << 20) // size, 0)
)
FILL_BY_SEPARATOR = Rule("fill times separator", "cells", lambda f, around, size: (f * around, around * size))
RULES = (FILL_BY_SEPARATOR, MIN_SEPARATOR, SEPARATOR_PER_PLACE, MIN_WEIGHT, WEIGHTED_FILL, MIN_FILL)
"""All rules. The first one is mostly the best; the quick ones follow."""


@dataclass(frozen=True)
class EliminationOrder:
    """Columns in the order of their elimination, with the cliques that arise.

    Attributes:
        order: the columns.
        later: for each column its neighbours at its elimination, which are the rest of its clique.
        weights: cells of each clique.
        cells: cells of the maximal cliques together.
    """

    order: tuple[int, ...]
    later: tuple[int, ...]
    weights: tuple[int, ...]
    cells: int


def burden(elimination: EliminationOrder) -> tuple[int, int]:
    """Cells, then cells of the largest clique; the better of two eliminations has less."""
    return elimination.cells, max(elimination.weights, default=0)


@dataclass
class Draws:
    """Reproducible random numbers for ties: Knuth's 64-bit linear congruential generator."""

    state: int

    def below(self, limit: int) -> int:
        """The next number, 0 to limit - 1."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return (self.state >> 33) % limit


@dataclass(frozen=True)
class RandomTies:
    """A random choice among the columns that a rule ranks nearly alike.

    Attributes:
        draws: the random numbers.
        slack: all columns ranked at most so many times the best are in the choice.
    """

    draws: Draws
    slack: int

    def pick(self, best: int, left: list[int], ranks: Mapping[int, tuple[int, int]]) -> int:
        """One of the columns in ``left`` whose first rank is near that of the best."""
        most = ranks[best][0] * self.slack
        tied = [c for c in left if ranks[c][0] <= most]
        return tied[self.draws.below(len(tied))]


class _Graph:
    """The graph of the columns that are left, with their ranks by a rule, during an elimination.

    Attributes:
        adjacent: neighbours of each column that is to be eliminated.
        around: cells of these neighbours.
        ranks: rank of each column by the rule.
    """

    def __init__(self, graph: Mapping[int, int], inside: int, sizes: Sizes, rule: Rule) -> None:
        """The graph before anything is eliminated; ``inside`` are the columns to eliminate."""
        self._inside, self._sizes, self._rank = inside, sizes, rule.rank
        self._filling, self._by_cells = rule.counts != "none", rule.counts == "cells"
        self.adjacent = dict(graph)
        self.around = {c: sizes.cells(self.adjacent[c]) for c in members(inside)}
        self.ranks = {
            c: rule.rank(self._fill(c) if self._filling else 0, cells, sizes.places[c])
            for c, cells in self.around.items()
        }

    def _fill(self, column: int, joined: int = 0) -> int:
        """New edges that eliminating a column would add, or their cells."""
        adjacent, places, by_cells = self.adjacent, self._sizes.places, self._by_cells
        rest = adjacent[column]
        near = rest & self._inside
        # Pairs within a set whose columns are known to be joined need no look.
        if not rest & ~(self._inside | joined):
            near &= ~joined
        missing = 0
        while near:
            low = near & -near
            near ^= low
            rest ^= low
            a = low.bit_length() - 1
            gap = rest & ~adjacent[a]
            if gap:
                missing += places[a] * self._sizes.total(gap) if by_cells else gap.bit_count()
        return missing

    def join(self, column: int, near: int) -> None:
        """Join the neighbours of a column that was taken out, and rank anew what this changes."""
        adjacent, around, places = self.adjacent, self.around, self._sizes.places
        bit = 1 << column
        self._inside ^= bit
        inside = self._inside
        stale = near & inside
        for a in members(stale):
            old = adjacent[a]
            new = near & ~(old | 1 << a)
            if new:
                around[a] *= self._sizes.cells(new)
                adjacent[a] = (old | new) ^ bit
                if self._filling:
                    # Columns next to both ends of a new edge have one less to fill.
                    for b in members(new & inside & -1 << a):
                        stale |= old & adjacent[b]
                    if new & ~inside:
                        stale |= old
            else:
                adjacent[a] = old ^ bit
            around[a] //= places[column]
            if not self._filling:
                self.ranks[a] = self._rank(0, around[a], places[a])
        if self._filling:
            for c in members(stale & inside):
                self.ranks[c] = self._rank(self._fill(c, near), around[c], places[c])


def eliminate(
    graph: Mapping[int, int],
    inside: int,
    sizes: Sizes,
    rule: Rule,
    *,
    known: Iterable[int] = (),
    bound: int | None = None,
    ties: RandomTies | None = None,
) -> EliminationOrder:
    """A greedy elimination of some columns of a graph, by a rule.

    Args:
        graph: neighbours of each column inside. Columns outside stay, and count as joined to
            each other.
        inside: the columns to eliminate.
        sizes: sizes of all columns.
        rule: ranks the columns; ties go to the first in table order.
        known: sets of columns that lie in cliques made before, and so are no maximal cliques.
        bound: the elimination is given up as soon as its cells exceed this.
        ties: breaks ties at random instead.

    Returns:
        The elimination. If it was given up, its cells exceed the bound, and columns are missing.
    """
    remaining = _Graph(graph, inside, sizes, rule)
    ranks, places = remaining.ranks, sizes.places
    left = members(inside)
    covered = set(known)
    order: list[int] = []
    later: list[int] = []
    weights: list[int] = []
    cells = 0
    scope = inside
    for near in graph.values():
        scope |= near
    while left:
        column = min(left, key=ranks.__getitem__)
        if ties is not None:
            column = ties.pick(column, left, ranks)
        left.remove(column)
        near = remaining.adjacent.pop(column)
        order.append(column)
        later.append(near)
        weight = remaining.around[column] * places[column]
        weights.append(weight)
        if near | 1 << column not in covered:
            cells += weight
            if bound is not None and cells > bound:
                break
        covered.add(near)
        scope ^= 1 << column
        if near == scope:
            # All that is left is one clique.
            for c in left:
                scope ^= 1 << c
                order.append(c)
                later.append(scope)
                weights.append(weight := weight // places[column])
                column = c
            break
        remaining.join(column, near)
    return EliminationOrder(tuple(order), tuple(later), tuple(weights), cells)


def neighbours(columns: int, cliques: Iterable[Sequence[int]]) -> list[int]:
    """Neighbours of each column, as a set, in the graph that joins all columns of each clique."""
    found = [0] * columns
    for clique in cliques:
        mask = mask_of(clique)
        for column in clique:
            found[column] |= mask
    return [mask & ~(1 << column) for column, mask in enumerate(found)]
