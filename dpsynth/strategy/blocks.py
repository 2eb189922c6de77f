"""Blocks: one marginal of several small columns in place of many of their pairs.

The six pairs of four binary columns have 24 cells, and the four columns together have 16. A sum of four
of these 16 is as good as a pair's cell, at a quarter of the cost. Blocks also show the dependence of
three columns, which pairs do not. So chosen pairs whose columns have few places are measured by blocks
that hold them.

Invariant: all pairs of a block were chosen. So a block lies within a clique of every junction tree
that holds the pairs, as any clique of a graph does in its triangulations, and adds no cell to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb

from dpsynth.columns.domain import Clique, Domain

MOST_CELLS = 16
"""Cells of a block."""
_MOST_BLOCKS = 20_000
"""Number of blocks from which on larger ones are not searched; hundreds of columns have so many."""


def blocks(domain: Domain, pairs: Sequence[Clique]) -> tuple[Clique, ...]:
    """Blocks of three columns or more that hold every triple of columns of which all pairs were chosen.

    Only triples that fit in a block count. The cover is greedy: the next block is the one that holds most of
    the triples that no block holds yet. It has at most 1 + ln m times as many blocks as needed, m being the
    most triples in one block (Johnson 1974).

    Args:
        domain: the columns.
        pairs: the chosen pairs.
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
