"""A Markov random field on a junction tree, in the form of its calibrated clique marginals.

p(x) = prod over cliques p(x_C) / prod over edges p(x_S).

Invariant: marginals of neighbouring cliques agree on their separator, and each sums to
the total. Pure mathematics: no privacy, no data, no randomness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.model.factor import Array, product, spread, sum_to
from dpsynth.model.junction_tree import JunctionTree


@dataclass(frozen=True, eq=False)
class MarkovRandomField:
    """A distribution over a table's domain, scaled to a number of rows.

    Attributes:
        tree: the junction tree.
        beliefs: float64 array a clique of the tree, counts that sum to ``total``.
        total: number of rows that the field stands for.
    """

    tree: JunctionTree
    beliefs: tuple[Array, ...]
    total: float

    @cached_property
    def _conditionals(self) -> tuple[Array, ...]:
        """p(clique | separator to its parent) for each clique; the root's is its marginal."""
        found: list[Array] = [b / self.total if self.total else b for b in self.beliefs]
        for edge in self.tree.edges:
            clique = self.tree.cliques[edge.child]
            joint = self.beliefs[edge.child]
            given = spread(sum_to(joint, clique, edge.separator), edge.separator, clique)
            found[edge.child] = np.divide(joint, given, out=np.zeros_like(joint), where=given > 0)
        return tuple(found)

    def marginal(self, clique: Clique) -> Array:
        """Expected counts over any columns, axes in the clique's order, summing to ``total``.

        Columns that share no clique of the tree are joined by variable elimination from the
        leaves of the tree to its root.
        """
        home = self.tree.home(clique)
        if home is not None:
            return sum_to(self.beliefs[home], self.tree.cliques[home], clique)
        wanted = set(clique)
        below: dict[int, list[tuple[Clique, Array]]] = {}
        for edge in reversed(self.tree.edges):
            parts = [(self.tree.cliques[edge.child], self._conditionals[edge.child])]
            parts += below.pop(edge.child, [])
            scope = {c for part, _ in parts for c in part}
            kept = tuple(sorted((scope & wanted) | set(edge.separator)))
            if scope & wanted - set(edge.separator):
                below.setdefault(edge.parent, []).append((kept, product(parts, kept)))
        parts = [(self.tree.cliques[0], self._conditionals[0]), *below.get(0, [])]
        return product(parts, clique) * self.total

    def fingerprint(self) -> str:
        """SHA-256 of the cliques and beliefs, bit by bit."""
        digest = sha256(repr((self.tree.cliques, self.total)).encode())
        for belief in self.beliefs:
            digest.update(np.ascontiguousarray(belief).tobytes())
        return digest.hexdigest()
