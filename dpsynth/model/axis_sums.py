"""Sums of a dense array along one run of its axes, and their adjoint.

The fastest of numpy's operations depends on the lengths: short inner loops are done by a matrix
product, ten times faster than by adding strided pairs.

Invariant: ``add_to`` is the adjoint of ``reduce``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.threads import in_halves

Floats = NDArray[np.floating[Any]]

_SHORT = 16
"""Length below which inner loops are done by a matrix product."""
_LARGEST_PRODUCT = 1024
"""Largest number of rows of the 0/1 matrix of such a product; a longer one costs more than it saves."""


@cache
def _summing(middle: int, inner: int, dtype: str) -> Floats:
    """The matrix that sums (middle, inner) over ``middle``, shape (middle * inner, inner)."""
    return np.tile(np.eye(inner, dtype=dtype), (middle, 1))


@dataclass(frozen=True)
class AxisSum:
    """The sum over ``middle`` of an array in the shape (outer, middle, inner)."""

    outer: int
    middle: int
    inner: int

    @property
    def by_product(self) -> bool:
        """True if a matrix product is the fastest way to sum."""
        return self.outer > 1 and self.inner < _SHORT and self.middle * self.inner <= _LARGEST_PRODUCT

    @property
    def spread_by_product(self) -> bool:
        """True if a matrix product is the fastest way to repeat values."""
        return self.by_product and (self.inner > 1 or self.middle < _SHORT)

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
        elif self.inner < _SHORT:
            ones = np.ones((1, self.middle), values.dtype)
            there = found.reshape(self.outer, 1, self.inner)
            in_halves(self.outer, values.size, lambda part: np.matmul(ones, seen[part], out=there[part]))
        else:
            in_halves(self.outer, values.size, lambda part: np.add.reduce(seen[part], 1, out=found[part]))
        return found

    def add_to(self, target: Floats, values: Floats, scratch: Floats, *, first: bool) -> None:
        """Add (or, the first time, write) values of outer * inner cells to each of ``middle`` places."""
        if self.spread_by_product:
            matrix = _summing(self.middle, self.inner, values.dtype.str).T
            rows = values.reshape(self.outer, self.inner)
            there = target.reshape(self.outer, -1)
            wide = there if first else scratch[: target.size].reshape(self.outer, -1)

            def multiply(part: slice) -> None:
                np.matmul(rows[part], matrix, out=wide[part])
                if not first:
                    np.add(there[part], wide[part], out=there[part])

            in_halves(self.outer, target.size, multiply)
            return
        seen = target.reshape(self.outer, self.middle, self.inner)
        small = values.reshape(self.outer, 1, self.inner)

        def repeat(outer: slice, middle: slice) -> None:
            if first:
                np.copyto(seen[outer, middle], small[outer])
            else:
                np.add(seen[outer, middle], small[outer], out=seen[outer, middle])

        if self.outer > 1:
            in_halves(self.outer, target.size, lambda part: repeat(part, slice(None)))
        else:
            in_halves(self.middle, target.size, lambda part: repeat(slice(None), part))


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
