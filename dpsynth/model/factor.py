"""Factors: arrays whose axes are named by a clique's columns.

Invariant: a function here never reorders its arguments; names decide where each axis goes.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique

Array = NDArray[np.float64]


def sum_to(values: Array, clique: Clique, kept: Clique) -> Array:
    """Sums of an array over the axes of ``clique`` that are not in ``kept``; axes in kept's order."""
    gone = tuple(i for i, c in enumerate(clique) if c not in kept)
    left = [c for c in clique if c in kept]
    summed = values.sum(axis=gone) if gone else values
    return summed if tuple(left) == kept else summed.transpose([left.index(c) for c in kept])


def spread(values: Array, clique: Clique, over: Clique) -> Array:
    """View of an array over ``clique`` that broadcasts along the axes of ``over``."""
    order = sorted(range(len(clique)), key=lambda i: over.index(clique[i]))
    shape = [1] * len(over)
    for i in order:
        shape[over.index(clique[i])] = values.shape[i]
    return values.transpose(order).reshape(shape)


_SHORT, _FEW = 8, 4096
"""Contiguous values, and cells, below and above which numpy's reductions mostly start loops."""


def _sum_middle(values: Array) -> Array:
    """Sums from [outer, gone, inner] to [outer, inner], in long loops."""
    _, gone, inner = values.shape
    if inner >= _SHORT or values.size < _FEW:
        return np.add.reduce(values, axis=1, dtype=np.float64)
    if gone > 4 * _SHORT:
        columns = [np.add.reduce(values[:, :, i], axis=1, dtype=np.float64) for i in range(inner)]
        return np.stack(columns, axis=1)
    summed = values[:, 0].astype(np.float64)
    for i in range(1, gone):
        summed += values[:, i]
    return summed


def sum_in_order(values: Array, clique: Clique, kept: Clique) -> Array:
    """``sum_to`` in float64 whatever the dtype, neighbouring axes after neighbouring axes.

    Additions only, in an order fixed by the shape: no matrix product, whose rounding depends
    on the processor. Up to 30 times faster than one reduction over scattered axes.
    """
    if len(kept) == len(clique):
        same = values.astype(np.float64, copy=False)
        return same if kept == clique else same.transpose([clique.index(c) for c in kept])
    outer, position, left = 1, 0, []
    rest = np.asarray(values)
    while position < len(clique):
        end = position
        while end < len(clique) and clique[end] not in kept:
            end += 1
        if end > position:
            gone = prod(values.shape[position:end])
            rest = _sum_middle(rest.reshape(outer, gone, prod(values.shape[end:])))
            position = end
        else:
            outer *= values.shape[position]
            left.append(clique[position])
            position += 1
    found = rest.reshape([values.shape[clique.index(c)] for c in left])
    return found if tuple(left) == kept else found.transpose([left.index(c) for c in kept])
