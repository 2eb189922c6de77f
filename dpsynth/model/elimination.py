"""Elimination orders: which column of a graph to take out next, so that few cells arise.

Eliminating a column joins all its neighbours to each other; the column and its neighbours
are a clique of the triangulated graph. Finding the order of fewest cells is NP-hard, so
greedy rules are run against each other (Kjaerulff 1990; Fishelson and Geiger 2004).

Columns are numbers, and sets of columns are the bits of an int. Invariant: cells are exact
ints of any size, and every result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """How many places each column has, for products and sums over sets of columns.

    Attributes:
        places: one a column, each at least 1.
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
    """How a greedy elimination ranks columns; the least comes first.

    The column's neighbours are what is left of its clique, the separator to the rest of the
    tree: some later clique has to hold them all. Rules that look at their cells do best where
    sizes differ much.

    Attributes:
        name: what the rule is called; the first three below are Kjaerulff's.
        counts: whether the edges that an elimination would add are needed: "none", "edges"
            or "cells" (each edge counts the cells of its pair).
        rank: from those new edges, the cells of the column's neighbours and its own size.
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
"""All of them: the one first that mostly does best, then the quick ones."""


@dataclass(frozen=True)
class Elimination:
    """What came of eliminating some columns in some order.

    Attributes:
        order: the columns.
        later: for each, its neighbours at that moment: the rest of its clique.
        weights: cells of each clique.
        cells: cells of the maximal cliques together.
    """

    order: tuple[int, ...]
    later: tuple[int, ...]
    weights: tuple[int, ...]
    cells: int


def burden(elimination: Elimination) -> tuple[int, int]:
    """What the better of two eliminations has less of: cells, then cells of the largest clique."""
    return elimination.cells, max(elimination.weights, default=0)


@dataclass
class Draws:
    """Reproducible numbers for breaking ties: Knuth's 64-bit linear congruential generator."""

    state: int

    def below(self, limit: int) -> int:
        """The next number, 0 to limit - 1."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return (self.state >> 33) % limit


def eliminate(
    graph: dict[int, int],
    inside: int,
    sizes: Sizes,
    rule: Rule,
    *,
    known: Iterable[int] = (),
    bound: int | None = None,
    draws: Draws | None = None,
    slack: int = 1,
) -> Elimination:
    """Eliminate some columns of a graph, greedily by a rule.

    Args:
        graph: neighbours of each column inside; columns outside stay, and count as joined to
            each other.
        inside: the columns to eliminate.
        sizes: of all columns.
        rule: how to rank columns; ties go to the first in table order.
        known: sets of columns that lie in cliques made before, so are no maximal cliques.
        bound: give up as soon as the cells exceed it.
        draws: break ties at random instead, among all columns ranked at most ``slack`` times
            the best.
        slack: see ``draws``.

    Returns:
        The elimination; where it was given up its cells exceed the bound, and columns are missing.
    """
    adjacent = dict(graph)
    left = members(inside)
    places = sizes.places
    around = {c: sizes.cells(adjacent[c]) for c in left}
    rank, filling, by_cells = rule.rank, rule.counts != "none", rule.counts == "cells"

    def fill(column: int, joined: int = 0) -> int:
        """New edges that eliminating a column would add, or their cells."""
        rest = adjacent[column]
        near = rest & inside
        # Pairs within a set whose columns are known to be joined need no look.
        if not rest & ~(inside | joined):
            near &= ~joined
        missing = 0
        while near:
            low = near & -near
            near ^= low
            rest ^= low
            a = low.bit_length() - 1
            gap = rest & ~adjacent[a]
            if gap:
                missing += places[a] * sizes.total(gap) if by_cells else gap.bit_count()
        return missing

    ranks = {c: rank(fill(c) if filling else 0, around[c], places[c]) for c in left}
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
        if draws is not None:
            most = ranks[column][0] * slack
            tied = [c for c in left if ranks[c][0] <= most]
            column = tied[draws.below(len(tied))]
        left.remove(column)
        bit = 1 << column
        near = adjacent.pop(column)
        order.append(column)
        later.append(near)
        weight = around[column] * places[column]
        weights.append(weight)
        if near | bit not in covered:
            cells += weight
            if bound is not None and cells > bound:
                break
        covered.add(near)
        inside ^= bit
        scope ^= bit
        if near == scope:
            # All that is left is one clique.
            for c in left:
                scope ^= 1 << c
                order.append(c)
                later.append(scope)
                weights.append(weight := weight // places[column])
                column = c
            break
        stale = near & inside
        for a in members(stale):
            old = adjacent[a]
            new = near & ~(old | 1 << a)
            if new:
                around[a] *= sizes.cells(new)
                adjacent[a] = (old | new) ^ bit
                if filling:
                    # Columns next to both ends of a new edge have one less to fill.
                    for b in members(new & inside & -1 << a):
                        stale |= old & adjacent[b]
                    if new & ~inside:
                        stale |= old
            else:
                adjacent[a] = old ^ bit
            around[a] //= places[column]
            if not filling:
                ranks[a] = rank(0, around[a], places[a])
        if filling:
            for c in members(stale & inside):
                ranks[c] = rank(fill(c, near), around[c], places[c])
    return Elimination(tuple(order), tuple(later), tuple(weights), cells)


def neighbours(columns: int, cliques: Iterable[Sequence[int]]) -> list[int]:
    """The graph that joins all columns of each clique: a set of neighbours a column."""
    found = [0] * columns
    for clique in cliques:
        mask = mask_of(clique)
        for column in clique:
            found[column] |= mask
    return [mask & ~(1 << column) for column, mask in enumerate(found)]
