"""Forests of column pairs, and blocks of small columns in place of their pairs.

Invariant: all of it is made of public facts, so what may be chosen from reveals nothing of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain

Positions = NDArray[np.intp]
"""Columns, each by its place in the table."""


class Forest:
    """A forest of column pairs, and the size of its junction tree; at first it has no pairs.

    Columns are given by their places, and all pairs are treated at once, because a choice is made among
    thousands of them.

    Invariant: the junction tree of a forest consists of its pairs and its lone columns, so its cells are
    known without a search. The same holds beside other cliques: a pair that joins two components is a clique
    of its own, whatever the components are.
    """

    def __init__(self, sizes: Sequence[int], given: Sequence[Sequence[int]] = (), cells: int = 0) -> None:
        """No pairs, beside given cliques; ``cells`` of a junction tree of these and of all other columns."""
        self._sizes = np.array(sizes, dtype=np.int64)
        self._alone = self._sizes.copy()
        self._component = np.arange(len(sizes))
        self._cells = cells if given else int(self._sizes.sum())
        for first, *others in given:
            for column in others:
                self._alone[[first, column]] = 0
                self._connect(first, column)

    def join(self, a: int, b: int) -> None:
        self._cells = int(self.cells_with(a, b))
        self._alone[[a, b]] = 0
        self._connect(a, b)

    def _connect(self, a: int, b: int) -> None:
        self._component[self._component == self._component[b]] = self._component[a]

    def disconnected(self, first: Positions | int, second: Positions | int) -> NDArray[np.bool_]:
        """Pairs of columns that no path joins: one truth value for each pair (first, second)."""
        return np.asarray(self._component[first] != self._component[second])

    def cells_with(self, first: Positions | int, second: Positions | int) -> NDArray[np.int64]:
        """Cells of the junction tree with one more pair, for each disconnected pair (first, second)."""
        added = self._sizes[first] * self._sizes[second]
        return np.asarray(self._cells + added - self._alone[first] - self._alone[second])


MOST_CELLS = 16
"""Cells of a block."""

_MOST_BLOCKS = 20_000
"""Number of blocks from which on larger ones are not searched; hundreds of columns have so many."""


def blocks(domain: Domain, pairs: Sequence[Clique]) -> tuple[Clique, ...]:
    """Blocks of three columns or more that hold every triple of columns of which all pairs were chosen.

    A block is one marginal of several small columns in place of many of their pairs. The six pairs of four
    binary columns have 24 cells, and the four columns together have 16: a sum of four of these is as good as
    a pair's cell, at a quarter of the cost. Blocks also show the dependence of three columns. A block lies
    within a clique of every junction tree that holds its pairs, so it adds no cell to the model.

    Only triples that fit in a block count. The cover is greedy: the next block is the one that holds most of
    the triples that no block holds yet. It has at most 1 + ln m times as many blocks as needed, m being the
    most triples in one block (Johnson 1974).
    """
    possible = _possible(domain, pairs)
    left = {triple for block in possible for triple in combinations(block, 3)}
    found: list[Clique] = []
    waiting = [(-comb(len(block), 3), number) for number, block in enumerate(possible)]
    heapify(waiting)
    while left:
        _, number = heappop(waiting)
        triples = left.intersection(combinations(possible[number], 3))
        if waiting and len(triples) < -waiting[0][0]:
            if triples:
                heappush(waiting, (-len(triples), number))
            continue
        found.append(possible[number])
        left -= triples
    return tuple(found)


def _possible(domain: Domain, pairs: Sequence[Clique]) -> list[Clique]:
    """All blocks of which all pairs were chosen: larger ones first, otherwise in table order.

    In this order the greedy cover of 2^k binary columns is a Steiner system: no triple lies in two blocks.
    """
    names, sizes = domain.columns, domain.shape(domain.columns)
    place = {c: i for i, c in enumerate(names)}
    after: list[set[int]] = [set() for _ in names]
    for pair in pairs:
        a, b = sorted(place[c] for c in pair)
        after[a].add(b)
    # A block, its cells, and the later columns that were chosen with each of its own.
    level: list[tuple[tuple[int, ...], int, set[int]]] = [
        ((a,), sizes[a], after[a]) for a in range(len(names))
    ]
    found: list[tuple[int, ...]] = []
    while level and len(found) < _MOST_BLOCKS:
        level = [
            ((*block, c), cells * sizes[c], open_ & after[c])
            for block, cells, open_ in level
            for c in open_
            if cells * sizes[c] <= MOST_CELLS
        ]
        found += [block for block, _, _ in level if len(block) > 2]
    return [tuple(names[i] for i in block) for block in sorted(found, key=lambda b: (-len(b), b))]


def with_blocks(
    pairs: Sequence[Clique], costs: Sequence[float], found: Sequence[Clique]
) -> tuple[list[Clique], list[float]]:
    """The cliques to measure, with their costs; a pair that lies in blocks gives its cost to them."""
    holders: dict[frozenset[str], list[int]] = {}
    for i, block in enumerate(found):
        for covered in combinations(block, 2):
            holders.setdefault(frozenset(covered), []).append(i)
    kept: list[Clique] = []
    alone: list[float] = []
    gained = [0.0] * len(found)
    for pair, cost in zip(pairs, costs, strict=True):
        of_pair = holders.get(frozenset(pair))
        if of_pair is None:
            kept.append(pair)
            alone.append(cost)
            continue
        for i in of_pair:
            gained[i] += cost / len(of_pair)
    return [*kept, *found], [*alone, *gained]


def most_cells(sizes: Iterable[int]) -> int:
    """An upper bound on the cells of any junction tree over columns of these sizes.

    All cliques of a tree together have no more cells than the joint table of all columns, if each column has
    two places or more: a leaf of s x r cells, s of them its separator's, hangs on a rest of R >= 2 s cells,
    and R + s r <= r R.
    """
    return prod(max(size, 2) for size in sizes)
