"""Conditioning: the exact distribution of a Markov random field given codes of some columns.

Invariant: messages are conditional probabilities of the evidence below a clique given its
separator, scaled to a largest value of 1. So improbable evidence on many columns does
not underflow, and no quotient overflows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array, spread, sum_in_order
from dpsynth.model.junction_tree import JunctionTree
from dpsynth.model.variable_elimination import divided

Condition = int | Iterable[int] | NDArray[np.bool_] | NDArray[np.integer]
"""The condition on a column: one code, several codes, or a mask with one truth value for each code."""

Predicate = Mapping[str, Condition]
"""A conjunction of conditions, one for each column."""


class ImpossibleEvidence(ValueError):
    """Evidence to which the model gives probability zero."""


def allowed_codes(domain: Domain, predicate: Predicate) -> dict[str, NDArray[np.int64]]:
    """The codes that a predicate allows, ascending, each once.

    Raises:
        ValueError: for an unknown column, a code outside the domain, or a mask of the wrong length.
    """
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


def _cut(values: Array, clique: tuple[str, ...], allowed: Mapping[str, NDArray[np.int64]]) -> Array:
    for axis, column in enumerate(clique):
        if column in allowed:
            values = np.take(values, allowed[column], axis=axis)
    return values


def restricted(
    tree: JunctionTree, beliefs: Sequence[Array], allowed: Mapping[str, NDArray[np.int64]]
) -> tuple[JunctionTree, tuple[Array, ...], float]:
    """The distribution given that columns have allowed codes only.

    It takes one pass up the tree and one down, as for any evidence (Lauritzen and Spiegelhalter 1988).
    No array of the size of the joint of the given columns is made.

    Args:
        tree: the junction tree.
        beliefs: its calibrated beliefs.
        allowed: codes of some columns, ascending.

    Returns:
        The tree over the smaller domain of allowed codes, its calibrated beliefs summing to 1,
        and the natural log of the probability of the evidence. For impossible evidence the log is -inf,
        and the beliefs are zero.
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
    """The product of a table and messages, scaled to a largest value of 1, and the log of the scale."""
    log_scale = 0.0
    for separator, message in messages:
        table = table * spread(message, separator, clique)
        peak = float(table.max())
        if not peak > 0:
            return table, -inf
        table /= peak
        log_scale += log(peak)
    return table, log_scale


def embedded(
    domain: Domain,
    tree: JunctionTree,
    tables: Sequence[Array],
    allowed: Mapping[str, NDArray[np.int64]],
    total: float,
) -> tuple[Array, ...]:
    """Tables over all codes from tables over allowed codes: zero elsewhere, and times a total."""
    found = []
    for clique, table in zip(tree.cliques, tables, strict=True):
        if allowed.keys().isdisjoint(clique):
            found.append(table * total)
            continue
        full = np.zeros(domain.shape(clique))
        full[np.ix_(*(allowed.get(c, np.arange(domain.sizes[c])) for c in clique))] = table * total
        found.append(full)
    return tuple(found)
