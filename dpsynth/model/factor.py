"""Factors: arrays whose axes are named by a clique's columns.

Invariant: a function here never reorders what it is given; names say where each axis goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique

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


def product(parts: Sequence[tuple[Clique, Array]], kept: Clique) -> Array:
    """Multiply arrays over named axes and sum to some of the names, in the order of ``kept``."""
    letters = {c: i for i, c in enumerate(dict.fromkeys(c for part, _ in parts for c in part))}
    operands: list[Any] = []
    for part, values in parts:
        operands += [values, [letters[c] for c in part]]
    return np.asarray(np.einsum(*operands, [letters[c] for c in kept], optimize="greedy"), dtype=np.float64)
