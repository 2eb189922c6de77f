"""How far the counts of drawn rows are from what a model expects of them."""

import numpy as np


def counts(table, domain, clique):
    shape = domain.shape(clique)
    if not clique:
        return np.array(len(next(iter(table.values()))))
    return np.bincount(
        np.ravel_multi_index([table[c] for c in clique], shape), minlength=int(np.prod(shape))
    ).reshape(shape)


def steps(tree):
    """Each clique with its separator and its columns, those of the separator first."""
    for index, separator in [(0, ()), *((e.child, e.separator) for e in tree.edges)]:
        clique = tree.cliques[index]
        yield separator, (*separator, *(c for c in clique if c not in separator))


def worst_rounding(table, model):
    """Largest distance of a cell from its expected number of rows given its separator."""
    domain, worst = model.tree.domain, 0.0
    for separator, order in steps(model.tree):
        joint = model.marginal(order)
        mass = joint.sum(axis=tuple(range(len(separator), len(order))), keepdims=True)
        given = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        rows = counts(table, domain, separator).reshape(mass.shape)
        worst = max(worst, np.abs(counts(table, domain, order) - given * rows).max())
    return worst
