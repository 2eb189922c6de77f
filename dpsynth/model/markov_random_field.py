"""A Markov random field on a junction tree, in the form of its calibrated clique marginals.

p(x) = prod over cliques p(x_C) / prod over edges p(x_S).

Invariant: marginals of neighbouring cliques agree on their separator, and each sums to
the total. It is pure mathematics: no privacy, no data, no randomness.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.model.conditioning import ImpossibleEvidence, Predicate, allowed_codes, embedded, restricted
from dpsynth.model.factor import Array, sum_in_order
from dpsynth.model.junction_tree import JunctionTree
from dpsynth.model.variable_elimination import CELL_LIMIT, Routes, marginals

_BLOCK = 1 << 20
"""Cells that are processed together."""


def _entropy(values: Array) -> float:
    """Entropy in nats of weights that need not sum to 1."""
    flat = values.reshape(-1)
    mass = weighted = 0.0
    for begin in range(0, flat.size, _BLOCK):
        part = flat[begin : begin + _BLOCK].astype(np.float64)
        part = part[part > 0]
        mass += float(part.sum())
        weighted += float((part * np.log(part)).sum())
    return float(np.log(mass) - weighted / mass) if mass > 0 else 0.0


@dataclass(frozen=True, eq=False)
class MarkovRandomField:
    """A distribution over a table's domain, scaled to a number of rows.

    Attributes:
        tree: the junction tree.
        beliefs: a float64 or float32 array for each clique of the tree, counts that sum to ``total``;
            a cell of 0 is impossible.
        total: number of rows that the field stands for.
    """

    tree: JunctionTree
    beliefs: tuple[Array, ...]
    total: float

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.tree)

    def marginal(self, clique: Clique, *, limit: int = CELL_LIMIT) -> Array:
        """Expected counts over any columns, axes in the clique's order, summing to ``total``.

        Columns that share no clique of the tree are joined by variable elimination over the
        part of the tree between them.

        Raises:
            ValueError: if the result or an intermediate would have more than ``limit`` cells.
        """
        return self.marginals([clique], limit=limit)[clique]

    def marginals(self, cliques: Iterable[Clique], *, limit: int = CELL_LIMIT) -> dict[Clique, Array]:
        """Expected counts over many cliques, in the tree or not, by clique; float64.

        Work that cliques share is done once: all pairs of d columns take one round of messages
        for each column, not one elimination for each pair.

        Raises:
            ValueError: if a result or an intermediate would have more than ``limit`` cells.
        """
        return marginals(self._routes, self.beliefs, cliques, limit)

    def given(self, fixed: Predicate) -> MarkovRandomField:
        """The field of rows that have the given codes: p(x | x_c in fixed[c] for every c).

        The total stays the same. It is not scaled to the expected number of such rows, since a condition
        may be too improbable for that number to be a double. ``answers.count`` gives the number.

        Args:
            fixed: a code, several codes, or a mask of codes, of any columns.

        Raises:
            ImpossibleEvidence: if the model gives probability zero to them.
            ValueError: for an unknown column or a code outside the domain.
        """
        allowed = allowed_codes(self.tree.domain, fixed)
        small, tables, log_probability = restricted(self.tree, self.beliefs, allowed)
        if log_probability == -np.inf:
            raise ImpossibleEvidence(
                f"the model gives probability zero to these values of {', '.join(fixed)}"
            )
        beliefs = embedded(self.tree.domain, small, tables, allowed, self.total)
        return MarkovRandomField(self.tree, beliefs, self.total)

    def spanning(self, columns: Iterable[str]) -> MarkovRandomField:
        """The field over the smallest part of the tree that holds some columns.

        Its domain has these columns and the columns that connect them; its marginals are those of this
        field.
        """
        tree, origin = self._routes.span(columns)
        pairs = zip(tree.cliques, origin, strict=True)
        beliefs = tuple(sum_in_order(self.beliefs[i], self.tree.cliques[i], c) for c, i in pairs)
        return MarkovRandomField(tree, beliefs, self.total)

    def entropy(self) -> float:
        """Entropy of one row, in nats: sum of the cliques' less sum of the separators'."""
        found = sum(_entropy(belief) for belief in self.beliefs)
        for edge in self.tree.edges:
            clique = self.tree.cliques[edge.child]
            found -= _entropy(sum_in_order(self.beliefs[edge.child], clique, edge.separator))
        return found

    def fingerprint(self) -> str:
        """SHA-256 of the cliques and beliefs, bit by bit."""
        digest = sha256(repr((self.tree.cliques, float(self.total))).encode())
        for belief in self.beliefs:
            digest.update(np.ascontiguousarray(belief).tobytes())
        return digest.hexdigest()
