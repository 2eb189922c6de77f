"""A Markov random field on a junction tree, in the form of its calibrated clique marginals.

p(x) = prod over cliques p(x_C) / prod over edges p(x_S).

Messages are conditional probabilities of the predicate below a clique given its separator, scaled to a
largest value of 1. So an improbable predicate on many columns does not underflow, and no quotient overflows.

Invariant: marginals of neighbouring cliques agree on their separator, and each sums to the total. Only the
part of the tree between the columns of a question is walked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array, spread, sum_in_order
from dpsynth.model.junction_tree import JunctionTree
from dpsynth.model.variable_elimination import CELL_LIMIT, Routes, checked, divided, marginals

Condition = int | Iterable[int] | NDArray[np.bool_] | NDArray[np.integer]
"""The condition on a column: one code, several codes, or a mask with one truth value for each code."""

Predicate = Mapping[str, Condition]
"""A conjunction of conditions, one for each column."""


class ZeroProbability(ValueError):
    """Evidence to which the model gives probability zero."""


def allowed_codes(domain: Domain, predicate: Predicate) -> dict[str, NDArray[np.int64]]:
    """The codes that a predicate allows, ascending; ValueError for what the domain does not have."""
    found = {}
    for column, condition in predicate.items():
        if column not in domain.sizes:
            raise ValueError(f"the model has no column {column!r}")
        size = domain.sizes[column]
        if isinstance(condition, int | np.generic | np.ndarray):
            given = np.asarray(condition)
        else:
            given = np.asarray(list(condition))
        if given.dtype == np.bool_:
            if given.shape != (size,):
                raise ValueError(f"the mask of {column!r} has shape {given.shape}, not ({size},)")
            found[column] = np.flatnonzero(given)
            continue
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"the codes of {column!r} are not integers")
        codes = np.unique(given).astype(np.int64)
        if codes.size and not 0 <= codes[0] <= codes[-1] < size:
            raise ValueError(f"a code of {column!r} is outside 0 to {size - 1}")
        found[column] = codes
    return found


@dataclass(frozen=True, eq=False)
class MarkovRandomField:
    """A distribution over a table's domain, scaled to ``total`` rows.

    Attributes:
        beliefs: a float64 or float32 array for each clique of the tree, counts that sum to ``total``; a cell
            of 0 is impossible.
    """

    tree: JunctionTree
    beliefs: tuple[Array, ...]
    total: float

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.tree)

    def marginal(self, clique: Clique, *, limit: int = CELL_LIMIT) -> Array:
        """Expected counts over any columns, axes in the clique's order; errors as of ``marginals``."""
        return self.marginals([clique], limit=limit)[clique]

    def marginals(self, cliques: Iterable[Clique], *, limit: int = CELL_LIMIT) -> dict[Clique, Array]:
        """Expected counts over many cliques, in the tree or not, by clique; float64, summing to ``total``.

        Work that cliques share is done once: all pairs of d columns take one round of messages for each
        column, not one elimination for each pair.

        Raises:
            ValueError: a result or an intermediate would have more than ``limit`` cells.
        """
        return marginals(self._routes, self.beliefs, cliques, limit)

    def scaled_to(self, rows: float) -> MarkovRandomField:
        """The same distribution, scaled to another number of rows."""
        scale = rows / self.total
        return MarkovRandomField(self.tree, tuple(b * scale for b in self.beliefs), rows)

    def given(self, fixed: Predicate) -> MarkovRandomField:
        """The field of rows with the given codes: p(x | x_c in fixed[c] for every c).

        Its total stays the same. It is not scaled to the expected number of such rows (``count``): a
        condition may be too improbable for that number to be a double.

        Raises:
            ZeroProbability: the model gives probability zero to them.
            ValueError: for an unknown column or a code outside the domain.
        """
        allowed = allowed_codes(self.tree.domain, fixed)
        small, tables, log_probability = restricted(self.tree, self.beliefs, allowed)
        if log_probability == -inf:
            raise ZeroProbability(f"the model gives probability zero to these values of {', '.join(fixed)}")
        beliefs = []
        for clique, table in zip(small.cliques, tables, strict=True):
            belief = table * self.total
            if not allowed.keys().isdisjoint(clique):
                belief = self._embedded(clique, belief, allowed)
            beliefs.append(belief)
        return MarkovRandomField(self.tree, tuple(beliefs), self.total)

    def _embedded(self, clique: Clique, table: Array, allowed: Mapping[str, NDArray[np.int64]]) -> Array:
        sizes = self.tree.domain.sizes
        full = np.zeros(self.tree.domain.shape(clique))
        full[np.ix_(*(allowed.get(c, np.arange(sizes[c])) for c in clique))] = table
        return full

    def _among(
        self, predicate: Predicate, columns: Iterable[str] = ()
    ) -> tuple[MarkovRandomField, Mapping[str, NDArray[np.int64]], float]:
        """The field of total 1 given a predicate, around some columns; allowed codes and log-probability."""
        allowed = allowed_codes(self.tree.domain, predicate)
        part = self.spanning({*allowed, *columns})
        tree, tables, log_probability = restricted(part.tree, part.beliefs, allowed)
        return MarkovRandomField(tree, tables, 1.0), allowed, log_probability

    def log_probability(self, predicate: Predicate) -> float:
        """Natural log of the probability of a predicate; ValueError if the domain does not have it."""
        return self._among(predicate)[2]

    def count(self, predicate: Predicate) -> float:
        """Expected number of rows that satisfy a predicate; errors as of ``log_probability``."""
        return self.total * exp(self.log_probability(predicate))

    def conditional(self, columns: Clique, predicate: Predicate, *, limit: int = CELL_LIMIT) -> Array:
        """Distribution of some columns among the rows that satisfy a predicate; it sums to 1.

        The columns may be the predicate's. No array of the size of the joint of the predicate's columns is
        made: ten of them cost little more than one.

        Raises:
            ZeroProbability: no row can satisfy the predicate.
            ValueError: for an unknown column, a code outside the domain, or a result or intermediate of more
                than ``limit`` cells.
        """
        domain = self.tree.domain
        checked(domain, columns, limit)
        field, allowed, log_probability = self._among(predicate, columns)
        if log_probability == -inf:
            raise ZeroProbability(f"no row can have these values of {', '.join(predicate)}")
        return self._embedded(columns, field.marginal(columns, limit=limit), allowed)

    def spanning(self, columns: Iterable[str]) -> MarkovRandomField:
        """The field over the smallest part of the tree that holds some columns, with the same marginals."""
        tree, origin = self._routes.span(columns)
        pairs = zip(tree.cliques, origin, strict=True)
        beliefs = tuple(sum_in_order(self.beliefs[i], self.tree.cliques[i], c) for c, i in pairs)
        return MarkovRandomField(tree, beliefs, self.total)

    def fingerprint(self) -> str:
        digest = sha256(repr((self.tree.cliques, float(self.total))).encode())
        for belief in self.beliefs:
            digest.update(np.ascontiguousarray(belief).tobytes())
        return digest.hexdigest()


def _cut(values: Array, clique: tuple[str, ...], allowed: Mapping[str, NDArray[np.int64]]) -> Array:
    for axis, column in enumerate(clique):
        if column in allowed:
            values = np.take(values, allowed[column], axis=axis)
    return values


def restricted(
    tree: JunctionTree, beliefs: Sequence[Array], allowed: Mapping[str, NDArray[np.int64]]
) -> tuple[JunctionTree, tuple[Array, ...], float]:
    """The distribution given that columns have allowed codes only, ascending.

    One pass up the tree and one down, as for any evidence (Lauritzen and Spiegelhalter 1988). No array of the
    size of the joint of the given columns is made.

    Returns:
        The tree over the smaller domain of allowed codes, its calibrated beliefs summing to 1, and the
            natural log of the probability of the evidence. For impossible evidence the log is -inf, and the
            beliefs are zero.
    """
    sizes = {c: len(allowed[c]) if c in allowed else s for c, s in tree.domain.sizes.items()}
    small = replace(tree, domain=Domain(sizes))
    cliques = tree.cliques
    if 0 in sizes.values():
        return small, tuple(np.zeros(small.domain.shape(c)) for c in cliques), -inf
    tables = [_cut(b, c, allowed) for b, c in zip(beliefs, cliques, strict=True)]
    messages: list[list[tuple[Clique, Array]]] = [[] for _ in cliques]
    log_scale = 0.0
    for edge in reversed(tree.edges):
        child, separator, clique = edge.child, edge.separator, cliques[edge.child]
        mass = _cut(sum_in_order(beliefs[child], clique, separator), separator, allowed)
        tables[child] = divided(tables[child], spread(mass, separator, clique))
        if messages[child] or not allowed.keys().isdisjoint(clique):
            tables[child], log_peak = _absorbed(tables[child], clique, messages[child])
            log_scale += log_peak
            messages[edge.parent].append((separator, sum_in_order(tables[child], clique, separator)))
    tables[0], log_peak = _absorbed(tables[0], cliques[0], messages[0])
    mass = sum_in_order(tables[0], cliques[0], ())
    log_scale += log_peak
    if not mass > 0 or log_scale == -inf:
        return small, tuple(np.zeros(t.shape) for t in tables), -inf
    tables[0] = tables[0] / mass
    for edge in tree.edges:
        child, separator, clique = edge.child, edge.separator, cliques[edge.child]
        current = sum_in_order(tables[child], clique, separator)
        target = sum_in_order(tables[edge.parent], cliques[edge.parent], separator)
        tables[child] = divided(tables[child], spread(current, separator, clique))
        tables[child] *= spread(target, separator, clique)
    whole = float(sum_in_order(beliefs[0], cliques[0], ()))
    return small, tuple(tables), log_scale + log(float(mass)) - log(whole)


def _absorbed(table: Array, clique: Clique, messages: Sequence[tuple[Clique, Array]]) -> tuple[Array, float]:
    log_scale = 0.0
    for separator, message in messages:
        table = table * spread(message, separator, clique)
        peak = float(table.max())
        if not peak > 0:
            return table, -inf
        table /= peak
        log_scale += log(peak)
    return table, log_scale
