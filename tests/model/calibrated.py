"""Belief propagation for one potential a clique of the tree, arrays in the tree's own order of axes."""

from collections.abc import Sequence

import numpy as np

from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import JunctionTree


def marginals(
    tree: JunctionTree, potentials: Sequence[Array], total: float
) -> tuple[tuple[Array, ...], float]:
    """Marginals of p(x) ~ exp(sum of potentials) on every clique of the tree, and log Z.

    Args:
        tree: the junction tree.
        potentials: one float64 array a clique, axes as in the clique; -inf allowed.
        total: what each marginal sums to.

    Returns:
        One array a clique, and the log-partition of the potentials.
    """
    propagation = BeliefPropagation(tree, tree.cliques)
    turned = [
        np.ascontiguousarray(values.transpose([clique.index(c) for c in order])).reshape(-1)
        for values, clique, order in zip(potentials, tree.cliques, propagation.scopes, strict=True)
    ]
    _, log_partition = propagation.calibrate(turned)
    return propagation.beliefs(tree.cliques, total), log_partition
