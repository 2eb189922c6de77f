"""Coarsening: the union of small neighbouring cliques of a junction tree.

A pass over a clique costs some array operations at any size. If a joint clique has few cells more than
its two parts, one pass over it is faster. The distribution is the same.

Invariant: the coarse tree is a junction tree, and each clique of the fine one lies inside one
of its cliques.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from dpsynth.columns.domain import Clique
from dpsynth.model.junction_tree import Edge, JunctionTree


def coarsened(tree: JunctionTree, allowance: int) -> JunctionTree:
    """The tree after neighbouring cliques were joined that add at most ``allowance`` cells each.

    Args:
        tree: the fine tree.
        allowance: number of cells that take as long as the operations saved by one clique less.

    Returns:
        A tree over the same domain, its root the clique that holds the fine root.
    """
    members = [set(c) for c in tree.cliques]
    cells = tree.domain.cells
    linked: list[set[int]] = [set() for _ in members]
    for edge in tree.edges:
        linked[edge.child].add(edge.parent)
        linked[edge.parent].add(edge.child)

    def grown(a: int, b: int) -> int:
        return cells(members[a] | members[b]) - cells(members[a]) - cells(members[b])

    waiting = [(grown(e.child, e.parent), e.parent, e.child) for e in tree.edges]
    heapify(waiting)
    gone: set[int] = set()
    while waiting and waiting[0][0] <= allowance:
        growth, a, b = heappop(waiting)
        if a in gone or b in gone or growth != grown(a, b):
            continue
        members[a] |= members[b]
        gone.add(b)
        linked[a] = (linked[a] | linked[b]) - {a, b}
        for other in linked[a]:
            linked[other].discard(b)
            linked[other].add(a)
            heappush(waiting, (grown(a, other), min(a, other), max(a, other)))
    return _walked(tree, members, linked, gone)


def _walked(
    tree: JunctionTree, members: list[set[str]], linked: list[set[int]], gone: set[int]
) -> JunctionTree:
    """The tree of the remaining cliques, parents before children."""
    root = next(i for i in range(len(members)) if i not in gone and set(tree.cliques[0]) <= members[i])
    found: list[Clique] = []
    edges: list[Edge] = []
    waiting = [(root, -1, -1)]
    while waiting:
        at, above, place = waiting.pop()
        if above >= 0:
            shared = tree.domain.canonical(members[at] & members[above])
            edges.append(Edge(len(found), place, shared))
        waiting += [(i, at, len(found)) for i in sorted(linked[at] - {above}, reverse=True)]
        found.append(tree.domain.canonical(members[at]))
    return JunctionTree(tree.domain, tuple(found), tuple(edges))
