"""A Markov random field on a junction tree, in the form of its calibrated clique marginals.

p(x) = prod over cliques p(x_C) / prod over edges p(x_S).

Invariant: marginals of neighbouring cliques agree on their separator, and each sums to
the total. Pure mathematics: no privacy, no data, no randomness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique
from dpsynth.model.junction_tree import JunctionTree

Array = NDArray[np.float64]


def sum_to(values: Array, clique: Clique, kept: Clique) -> Array:
    """Sum an array over the axes of ``clique`` that are not in ``kept``; axes in kept's order."""
    gone = tuple(i for i, c in enumerate(clique) if c not in kept)
    left = [c for c in clique if c in kept]
    summed = values.sum(axis=gone) if gone else values
    return summed if tuple(left) == kept else summed.transpose([left.index(c) for c in kept])


def spread(values: Array, clique: Clique, over: Clique) -> Array:
    """View an array over ``clique`` so that it broadcasts along the axes of ``over``."""
    order = sorted(range(len(clique)), key=lambda i: over.index(clique[i]))
    shape = [1] * len(over)
    for i in order:
        shape[over.index(clique[i])] = values.shape[i]
    return values.transpose(order).reshape(shape)


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
                below.setdefault(edge.parent, []).append((kept, _product(parts, kept)))
        parts = [(self.tree.cliques[0], self._conditionals[0]), *below.get(0, [])]
        return _product(parts, clique) * self.total

    def fingerprint(self) -> str:
        """SHA-256 of the cliques and beliefs, bit by bit."""
        digest = sha256(repr((self.tree.cliques, self.total)).encode())
        for belief in self.beliefs:
            digest.update(np.ascontiguousarray(belief).tobytes())
        return digest.hexdigest()


def _product(parts: Sequence[tuple[Clique, Array]], kept: Clique) -> Array:
    """Multiply arrays over named axes and sum to some of the names."""
    letters = {c: i for i, c in enumerate(dict.fromkeys(c for part, _ in parts for c in part))}
    operands: list[Any] = []
    for part, values in parts:
        operands += [values, [letters[c] for c in part]]
    return np.asarray(np.einsum(*operands, [letters[c] for c in kept], optimize="greedy"), dtype=np.float64)
