"""Junction trees: the cliques over which a Markov random field can be summed exactly.

Invariant: every requested clique lies inside a clique of the tree, and the cliques that
hold a column form a connected part of it (running intersection).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from dpsynth.domain.domain import Clique, Domain


@dataclass(frozen=True)
class Edge:
    """A link from a clique to its parent, over the columns that they share (maybe none)."""

    child: int
    parent: int
    separator: Clique


@dataclass(frozen=True)
class Passage:
    """How a message passes over an edge, in axes and shapes.

    Cliques and separators are in table order, so a message needs reshaping only.

    Attributes:
        child, parent: positions of the cliques.
        child_axes, parent_axes: axes of each clique that are not in the separator.
        in_child, in_parent: shape in which a message broadcasts over each clique.
    """

    child: int
    parent: int
    child_axes: tuple[int, ...]
    parent_axes: tuple[int, ...]
    in_child: tuple[int, ...]
    in_parent: tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques, and edges ordered so that each parent is met before its children.

    Clique 0 is the root. Cliques of parts that share no column are linked by an empty
    separator, so there is one tree whatever was measured.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    edges: tuple[Edge, ...]

    @property
    def cells(self) -> int:
        """Number of cells of all cliques together."""
        return sum(self.domain.cells(c) for c in self.cliques)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The edges as axes and shapes, parents before children."""

        def seen_from(clique: Clique, separator: Clique) -> tuple[tuple[int, ...], tuple[int, ...]]:
            gone = tuple(i for i, c in enumerate(clique) if c not in separator)
            return gone, tuple(self.domain.sizes[c] if c in separator else 1 for c in clique)

        found = []
        for edge in self.edges:
            child_axes, in_child = seen_from(self.cliques[edge.child], edge.separator)
            parent_axes, in_parent = seen_from(self.cliques[edge.parent], edge.separator)
            found.append(Passage(edge.child, edge.parent, child_axes, parent_axes, in_child, in_parent))
        return tuple(found)

    def home(self, clique: Iterable[str]) -> int | None:
        """The smallest clique of the tree that holds these columns, or None."""
        wanted = set(clique)
        fits = [i for i, c in enumerate(self.cliques) if wanted.issubset(c)]
        return min(fits, key=lambda i: self.domain.cells(self.cliques[i]), default=None)


def _eliminate(domain: Domain, cliques: Iterable[Clique]) -> list[set[str]]:
    """Cliques of a triangulation by greedy elimination: least fill-in, then fewest cells."""
    adjacent: dict[str, set[str]] = {c: set() for c in domain.columns}
    for clique in cliques:
        for a, b in combinations(clique, 2):
            adjacent[a].add(b)
            adjacent[b].add(a)

    def burden(column: str) -> tuple[int, int]:
        around = adjacent[column]
        fill = sum(b not in adjacent[a] for a, b in combinations(sorted(around), 2))
        return fill, domain.cells([column, *around])

    found: list[set[str]] = []
    while adjacent:
        column = min(adjacent, key=burden)
        around = adjacent.pop(column)
        found.append({column, *around})
        for a in around:
            adjacent[a].discard(column)
            adjacent[a] |= around - {a}
    return found


def junction_tree(domain: Domain, cliques: Iterable[Clique]) -> JunctionTree:
    """A junction tree that holds every given clique and every column.

    Triangulates by least fill-in, keeps maximal cliques, and joins them by a spanning tree
    of largest separators (Koller and Friedman 2009, chapter 10).
    """
    maximal: list[set[str]] = []
    for members in sorted(_eliminate(domain, cliques), key=len, reverse=True):
        if not any(members <= other for other in maximal):
            maximal.append(members)
    names = [domain.canonical(m) for m in maximal]
    shared = dict.fromkeys(range(1, len(names)), (0, 0))
    for i in shared:
        shared[i] = (len(maximal[0] & maximal[i]), 0)
    edges: list[Edge] = []
    while shared:
        child = max(shared, key=lambda i: (shared[i][0], -i))
        parent = shared.pop(child)[1]
        edges.append(Edge(child, parent, domain.canonical(maximal[child] & maximal[parent])))
        for i, (size, _) in shared.items():
            if len(maximal[child] & maximal[i]) > size:
                shared[i] = (len(maximal[child] & maximal[i]), child)
    return JunctionTree(domain, tuple(names), tuple(edges))
