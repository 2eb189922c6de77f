"""Factors: arrays whose axes are named by a clique's columns, and their sums over some axes.

The fastest of numpy's operations depends on the lengths: short inner loops are done by a matrix product, ten
times faster than by adding strided pairs; longer ones by ``einsum``, which starts a loop in less time than a
reduction does. Operations on large arrays release the interpreter's lock, so one
worker beside the caller uses a second core.

Invariant: a function never reorders its arguments; names decide where each axis goes. ``AxisSum.add_to`` is
the adjoint of ``reduce``. No result depends on the number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpsynth.columns.domain import Clique

_PAYS = 1 << 18
"""Cells from which a second thread saves more than it costs."""

_pool: tuple[int, ThreadPoolExecutor] | None = None


_TWO = (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) > 1


def _worker() -> ThreadPoolExecutor:
    """The worker of this process; a forked child gets its own."""
    global _pool  # noqa: PLW0603
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(1, "dpsynth-model")
    return _pool[1]


def in_halves(length: int, cells: int, work: Callable[[slice], object]) -> None:
    """Do work on the range 0..length, its upper half in a second thread if there are enough cells.

    The second thread has the caller's context, to which numpy's handling of floating-point errors belongs.
    ``work`` is called with parts of the range; it must not depend on their order.
    """
    if cells < _PAYS or length < 2 or not _TWO:
        work(slice(0, length))
        return
    middle = length // 2
    other = _worker().submit(copy_context().run, work, slice(middle, length))
    try:
        work(slice(0, middle))
    finally:
        other.result()


@cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Many small matrix products in one thread: they would wait for a second one on a busy machine."""
    return _linear_algebra().limit(limits=1, user_api="blas")


Floats = NDArray[np.floating[Any]]

_SHORT_AXIS = 16
"""Length below which inner loops are done by a matrix product."""

_LARGEST_PRODUCT = 1024
"""Largest number of rows of the 0/1 matrix of such a product; a longer one costs more than it saves."""

_BLOCK = 1 << 15
"""Cells of repeated values that are made at once, and stay in the cache."""


@cache
def _summing(middle: int, inner: int, dtype: str) -> Floats:
    return np.tile(np.eye(inner, dtype=dtype), (middle, 1))


@dataclass(frozen=True)
class AxisSum:
    """The sum over ``middle`` of an array in the shape (outer, middle, inner)."""

    outer: int
    middle: int
    inner: int

    @cached_property
    def by_product(self) -> bool:
        return self.outer > 1 and self.inner < _SHORT_AXIS and self.middle * self.inner <= _LARGEST_PRODUCT

    def reduce(self, values: Floats) -> Floats:
        """Sums of a contiguous array of outer * middle * inner cells, shape (outer, inner)."""
        seen = values.reshape(self.outer, self.middle, self.inner)
        found = np.empty((self.outer, self.inner), values.dtype)
        if self.outer == 1 and self.inner > 1:
            in_halves(
                self.inner, values.size, lambda part: np.add.reduce(seen[0, :, part], 0, out=found[0, part])
            )
        elif self.by_product or self.inner == 1:
            matrix = _summing(self.middle, self.inner, values.dtype.str)
            rows = values.reshape(self.outer, -1)
            in_halves(self.outer, values.size, lambda part: np.matmul(rows[part], matrix, out=found[part]))
        elif self.inner < _SHORT_AXIS:
            ones = np.ones((1, self.middle), values.dtype)
            there = found.reshape(self.outer, 1, self.inner)
            in_halves(self.outer, values.size, lambda part: np.matmul(ones, seen[part], out=there[part]))
        else:
            # Adds in the same order as a reduction along the middle axis.
            in_halves(self.outer, values.size, lambda part: np.einsum("omi->oi", seen[part], out=found[part]))
        return found

    def add_to(self, target: Floats, values: Floats, *, first: bool) -> None:
        """Add (or, the first time, write) values of outer * inner cells to each of ``middle`` places."""
        seen = target.reshape(self.outer, self.middle, self.inner)
        small = values.reshape(self.outer, 1, self.inner)

        def put(wide: Floats, there: Floats) -> None:
            if first:
                np.copyto(there, wide)
            else:
                np.add(there, wide, out=there)

        def repeat(half: slice) -> None:
            step = max(_BLOCK // (self.middle * self.inner), 1)
            for begin in range(half.start, half.stop, step):
                block = slice(begin, min(begin + step, half.stop))
                put(small[block].repeat(self.middle, axis=1), seen[block])

        if self.outer == 1:
            in_halves(self.middle, target.size, lambda part: put(small, seen[:, part]))
        elif self.inner < _SHORT_AXIS:
            in_halves(self.outer, target.size, repeat)
        else:
            in_halves(self.outer, target.size, lambda part: put(small[part], seen[part]))


def axis_sums(shape: Sequence[int], kept: Sequence[bool]) -> tuple[AxisSum, ...]:
    """The sums that leave the kept axes: one for each run of dropped axes, from the left."""
    runs = [
        (keep, prod(size for _, size in group))
        for keep, group in groupby(zip(kept, shape, strict=True), key=lambda pair: pair[0])
    ]
    found = []
    for at, (keep, size) in enumerate(runs):
        if keep or size == 1:
            continue
        outer = prod(s for k, s in runs[:at] if k)
        found.append(AxisSum(outer, size, prod(s for _, s in runs[at + 1 :])))
    return tuple(found)


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

    Additions only, in an order fixed by the shape: no matrix product, whose rounding depends on the
    processor. Up to 30 times faster than one reduction over scattered axes.
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
