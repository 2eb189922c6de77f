"""Belief propagation: from log-potentials on the cliques of a junction tree to marginals.

Invariant: works in log space and is exact; potentials of -inf are cells of probability zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import JunctionTree

_FLOOR = np.finfo(np.float64).min
"""Stands in for -inf where one -inf is taken from another."""


def _log_sum(values: Array, axes: tuple[int, ...]) -> Array:
    """log of the sum of exp over some axes, those axes dropped; -inf where all of them are."""
    if not axes:
        return values
    peak = np.maximum(values.max(axis=axes, keepdims=True), _FLOOR)
    summed = np.exp(values - peak).sum(axis=axes)
    return np.asarray(np.log(summed) + peak.reshape(summed.shape))


def marginals(
    tree: JunctionTree, potentials: Sequence[Array], total: float
) -> tuple[tuple[Array, ...], float]:
    """Marginals of p(x) ~ exp(sum of potentials) on every clique of the tree, and log Z.

    One pass up and one down the tree (Shafer and Shenoy 1990).

    Args:
        tree: the junction tree.
        potentials: one float64 array a clique; -inf allowed.
        total: what each marginal sums to.

    Returns:
        One array a clique, and the log-partition of the potentials.
    """
    log_beliefs = [p.copy() for p in potentials]
    sent: dict[int, Array] = {}
    with np.errstate(divide="ignore"):
        for way in reversed(tree.passages):
            message = _log_sum(log_beliefs[way.child], way.child_axes)
            sent[way.child] = message
            log_beliefs[way.parent] += message.reshape(way.in_parent)
        for way in tree.passages:
            back = _log_sum(log_beliefs[way.parent], way.parent_axes)
            back = back - np.maximum(sent[way.child], _FLOOR)
            log_beliefs[way.child] += back.reshape(way.in_child)
    found = []
    log_partition = 0.0
    for values in log_beliefs:
        peak = values.max()
        weights = np.exp(values - peak)
        mass = weights.sum()
        found.append(weights * (total / mass))
        log_partition = float(peak + np.log(mass))
    return tuple(found), log_partition
