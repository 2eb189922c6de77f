"""Junction trees of cliques, over which a Markov random field can be summed exactly.

A small tree is the one of a good triangulation. Structural zeros are cliques too, as many as it has capacity
for.

Invariant: every requested clique lies inside a clique of the tree, and the cliques that
hold a column form a connected part of it (running intersection).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.triangulation import Triangulation, members


@dataclass(frozen=True)
class Edge:
    """A link from a clique to its parent, with the columns that both share (maybe none)."""

    child: int
    parent: int
    separator: Clique


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques, and edges ordered so that each parent is met before its children.

    Clique 0 is the root and the largest clique: the root alone sends no message up and gets none back, so the
    most work is saved there. Components that share no column are linked to the root by an empty separator.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, triangulation: Triangulation) -> JunctionTree:
        """The junction tree of a triangulation, cliques in the order of a walk, depth first."""
        domain = triangulation.domain
        masks, links = triangulation.tree.clique_tree()
        places = [members(mask) for mask in masks]
        linked: list[set[int]] = [set() for _ in masks]
        for one, other in links:
            linked[one].add(other)
            linked[other].add(one)
        cliques = [tuple(domain.columns[c] for c in clique) for clique in places]
        largest_first = sorted(range(len(masks)), key=lambda i: (-domain.cells(cliques[i]), places[i]))
        walked: list[Clique] = []
        edges: list[Edge] = []
        met: set[int] = set()
        for root in largest_first:
            waiting = [(root, 0)] if root not in met else []
            while waiting:
                at, parent = waiting.pop()
                met.add(at)
                place = len(walked)
                walked.append(cliques[at])
                if place:
                    edges.append(Edge(place, parent, tuple(c for c in cliques[at] if c in walked[parent])))
                ahead = sorted(linked[at] - met, key=places.__getitem__, reverse=True)
                waiting += [(i, place) for i in ahead]
        return cls(domain, tuple(walked), tuple(edges))

    @property
    def cells(self) -> int:
        return sum(map(self.domain.cells, self.cliques))

    @cached_property
    def _smallest_first(self) -> list[int]:
        weights = [self.domain.cells(c) for c in self.cliques]
        return sorted(range(len(weights)), key=weights.__getitem__)

    @cached_property
    def _holders(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for rank, i in enumerate(self._smallest_first):
            for column in self.cliques[i]:
                found[column] = found.get(column, 0) | 1 << rank
        return found

    def home(self, clique: Iterable[str]) -> int | None:
        """The smallest clique of the tree that holds these columns, or None."""
        fits = (1 << len(self.cliques)) - 1
        for column in clique:
            fits &= self._holders.get(column, 0)
        return self._smallest_first[(fits & -fits).bit_length() - 1] if fits else None


def junction_tree(domain: Domain, cliques: Iterable[Clique]) -> JunctionTree:
    """A junction tree that holds every given clique and every column; errors as of ``Triangulation.of``.

    It is that of fewest cells that is found (Koller and Friedman 2009, chapter 10). No large array is
    allocated.
    """
    return JunctionTree.of(Triangulation.of(domain, cliques))


Zeros = Mapping[Clique, NDArray[np.bool_]]
"""Structural zeros by clique: True for cells that no row can have, axes in the clique's order."""

_FREE = 1 << 20
"""Cells up to which a tree may grow for its zeros in any case."""


_GROWTH = 2
"""Largest factor by which a larger tree may grow for its zeros."""


def zeros_within(domain: Domain, measured: Iterable[Clique], zeros: Zeros, max_cells: int) -> Zeros:
    """The structural zeros that a tree around the measured cliques has capacity for, smallest first."""
    cliques = list(measured)
    cells = Triangulation.of(domain, cliques).cells
    capacity = min(max_cells, max(_GROWTH * cells, _FREE))
    kept: dict[Clique, NDArray[np.bool_]] = {}
    for clique in sorted(zeros, key=lambda c: (domain.cells(c), c)):
        if Triangulation.of(domain, [*cliques, clique]).cells <= max(capacity, cells):
            cliques.append(clique)
            kept[clique] = zeros[clique]
    return kept
