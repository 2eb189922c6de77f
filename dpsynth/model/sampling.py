"""Sampling: a table of codes whose marginals follow the model's.

Randomised rounding down the junction tree: within the rows that share a separator's value,
each cell of the clique gets the floor or the ceiling of its expected number of rows, with
the right expectation (systematic sampling in random row order). The error of a marginal is
far below that of independent draws.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.markov_random_field import MarkovRandomField

Codes = NDArray[np.int64]


def sample(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> Mapping[str, Codes]:
    """Draw a table from a model by randomised rounding.

    Args:
        model: the Markov random field.
        rows: number of rows to draw.
        rng: generator for this post-processing step; it decides nothing private.

    Returns:
        int64[rows] codes of every column of the domain, in table order.
    """
    domain, cliques = model.tree.domain, model.tree.cliques
    drawn: dict[str, Codes] = {}
    _extend(drawn, model, 0, (), rows, rng)
    for edge in model.tree.edges:
        _extend(drawn, model, edge.child, edge.separator, rows, rng)
    assert set(drawn) == {c for clique in cliques for c in clique}
    return {c: drawn[c] for c in domain.columns}


def _extend(
    drawn: dict[str, Codes],
    model: MarkovRandomField,
    index: int,
    separator: Clique,
    rows: int,
    rng: np.random.Generator,
) -> None:
    """Draw a clique's columns that are not drawn yet, given those of its separator."""
    domain, clique = model.tree.domain, model.tree.cliques[index]
    new = tuple(c for c in clique if c not in separator)
    if not new:
        return
    joint = sum_to(model.beliefs[index], clique, (*separator, *new))
    table = joint.reshape(domain.cells(separator), domain.cells(new))
    group = np.zeros(rows, dtype=np.int64)
    for column in separator:
        group = group * domain.sizes[column] + drawn[column]
    cell = _round_within_groups(table, group, rng)
    for column, code in zip(new, np.unravel_index(cell, domain.shape(new)), strict=True):
        drawn[column] = code.astype(np.int64)


def _round_within_groups(table: Array, group: Codes, rng: np.random.Generator) -> Codes:
    """A cell for each row: systematic sampling of its group's distribution.

    The j-th of a group's m rows, in random order, gets the cell at (j + u)/m of the group's
    cumulative distribution, u uniform and shared by the group.

    Args:
        table: weights[groups, cells], not negative.
        group: group of each row.
        rng: generator.
    """
    groups, cells = table.shape
    mass = table.sum(axis=1, keepdims=True)
    shares = np.divide(table, mass, out=np.full_like(table, 1.0 / cells), where=mass > 0)
    reach = np.cumsum(shares, axis=1)
    reach /= reach[:, -1:]
    size = np.bincount(group, minlength=groups)
    shuffled = rng.permutation(len(group))
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    start = np.repeat(np.cumsum(size) - size, size)
    place = (np.arange(len(group)) - start + np.repeat(rng.random(groups), size)) / np.repeat(size, size)
    sorted_group = np.repeat(np.arange(groups), size)
    spot = np.searchsorted((reach + np.arange(groups)[:, None]).ravel(), sorted_group + place, side="right")
    last = cells - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    chosen = np.minimum(spot - sorted_group * cells, last[sorted_group])
    found = np.empty(len(group), dtype=np.int64)
    found[order] = np.maximum(chosen, 0)
    return found
