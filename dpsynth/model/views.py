"""Views: how a dense array is summed to, and built from, arrays over some of its axes.

All views of one array share their intermediate sums. Sums over short inner axes go through
a matrix product, which is ten times faster than adding strided pairs.

Invariant: ``expand`` is the adjoint of ``reduce``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import combinations, groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.threads import in_halves

Axes = tuple[int, ...]
Floats = NDArray[np.floating[Any]]

_SHORT = 16
"""Inner loops shorter than this go through a matrix product."""
_LARGEST_PRODUCT = 1024
"""Rows of the 0/1 matrix of such a product; a longer one costs more than it saves."""


@cache
def _summing(middle: int, inner: int, dtype: str) -> Floats:
    """The matrix that sums (middle, inner) over ``middle``, shape (middle * inner, inner)."""
    return np.tile(np.eye(inner, dtype=dtype), (middle, 1))


@dataclass(frozen=True)
class Step:
    """Summing an array seen as (outer, middle, inner) over ``middle``."""

    outer: int
    middle: int
    inner: int

    @property
    def by_product(self) -> bool:
        """Whether a matrix product sums it fastest."""
        return self.outer > 1 and self.inner < _SHORT and self.middle * self.inner <= _LARGEST_PRODUCT

    @property
    def spread_by_product(self) -> bool:
        """Whether a matrix product repeats values fastest."""
        return self.by_product and (self.inner > 1 or self.middle < _SHORT)

    def reduce(self, values: Floats) -> Floats:
        """Sum a contiguous array of outer * middle * inner cells."""
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


def _steps(shape: Sequence[int], kept: Sequence[bool]) -> tuple[Step, ...]:
    """The sums, one a run of dropped axes, that leave the kept axes; from the left."""
    runs = [
        (keep, prod(size for _, size in group))
        for keep, group in groupby(zip(kept, shape, strict=True), key=lambda pair: pair[0])
    ]
    found = []
    for at, (keep, size) in enumerate(runs):
        if keep or size == 1:
            continue
        outer = prod(s for k, s in runs[:at] if k)
        found.append(Step(outer, size, prod(s for _, s in runs[at + 1 :])))
    return tuple(found)


@dataclass(eq=False)
class _Node:
    """An array over some axes, which is summed from a larger one."""

    axes: Axes
    source: int
    steps: tuple[Step, ...]
    asked: list[int] = field(default_factory=list)


class Views:
    """Sums of one dense array over some of its axes, and the adjoint."""

    def __init__(self, shape: Sequence[int], asked: Sequence[Axes], dtype: str) -> None:
        """Plan the sums.

        Args:
            shape: of the dense array.
            asked: for each view the axes that it keeps, ascending.
            dtype: of all arrays.
        """
        self.shape = tuple(shape)
        self.size = prod(shape)
        self.dtype = dtype
        self.asked = [tuple(a) for a in asked]
        self.sizes = [prod(shape[i] for i in a) for a in self.asked]
        whole = tuple(range(len(shape)))
        kinds = {a: prod(shape[i] for i in a) for a in self.asked if a != whole}
        kinds |= self._shared(kinds)
        self._nodes = [_Node(whole, -1, ())]
        for axes in sorted(kinds, key=lambda a: (-kinds[a], a)):
            holders = [i for i, n in enumerate(self._nodes) if set(axes) < set(n.axes)]
            source = min(holders, key=lambda i: (self._cells(self._nodes[i].axes), i))
            above = self._nodes[source].axes
            steps = _steps([shape[i] for i in above], [i in axes for i in above])
            self._nodes.append(_Node(axes, source, steps))
        place = {n.axes: n for n in self._nodes}
        for i, axes in enumerate(self.asked):
            place[axes].asked.append(i)

    def _cells(self, axes: Axes) -> int:
        return prod(self.shape[i] for i in axes)

    def _shared(self, kinds: dict[Axes, int]) -> dict[Axes, int]:
        """Intermediate sums from which two or more views are made, where that is cheaper."""
        tops = [frozenset(a) for a in kinds if not any(set(a) < set(b) for b in kinds)]
        alive = set(range(len(tops)))
        unions = [(self._cells(tuple(a | b)), i, j) for (i, a), (j, b) in combinations(enumerate(tops), 2)]
        heapify(unions)
        found: dict[Axes, int] = {}
        while unions and 4 * unions[0][0] <= self.size:
            cells, i, j = heappop(unions)
            if i not in alive or j not in alive:
                continue
            both = tops[i] | tops[j]
            found[tuple(sorted(both))] = cells
            alive -= {k for k in alive if tops[k] <= both}
            for k in alive:
                heappush(unions, (self._cells(tuple(tops[k] | both)), k, len(tops)))
            alive.add(len(tops))
            tops.append(both)
        return found

    def only(self, views: Sequence[int]) -> frozenset[int]:
        """The sums that some views need, to be passed to ``reduce``."""
        needed: set[int] = set()
        for start, node in enumerate(self._nodes):
            if any(i in views for i in node.asked):
                at = start
                while at >= 0 and at not in needed:
                    needed.add(at)
                    at = self._nodes[at].source
        return frozenset(needed)

    def reduce(self, values: Floats, needed: frozenset[int]) -> list[Floats]:
        """Flat sums of a flat array, one a view; views outside ``needed`` come back empty."""
        nothing = values[:0]
        results = [nothing] * len(self.asked)
        made = [nothing] * len(self._nodes)
        for at, node in enumerate(self._nodes):
            if at not in needed:
                continue
            summed = values if node.source < 0 else made[node.source]
            for step in node.steps:
                summed = step.reduce(summed)
            made[at] = summed.reshape(-1)
            for i in node.asked:
                results[i] = made[at]
        return results

    def least(self, values: Floats, view: int) -> Floats:
        """Flat minima of a flat array over the axes that a view lacks."""
        return self._extreme(np.minimum, values, view)

    def greatest(self, values: Floats, view: int) -> Floats:
        """Flat maxima of a flat array over the axes that a view lacks."""
        return self._extreme(np.maximum, values, view)

    def _extreme(self, pick: np.ufunc, values: Floats, view: int) -> Floats:
        gone = tuple(i for i in range(len(self.shape)) if i not in self.asked[view])
        return np.asarray(pick.reduce(values.reshape(self.shape), axis=gone)).reshape(-1)

    def expand(self, parts: Sequence[Floats | None], out: Floats, scratch: Floats) -> None:
        """Write into ``out`` the sum of all views' parts, each repeated along the axes that it lacks.

        Args:
            parts: flat arrays, one a view; None adds nothing.
            out: flat, one value a cell of the dense array.
            scratch: flat, at least as many cells; overwritten.
        """
        sums: list[Floats | None] = [None] * len(self._nodes)
        written = False
        for at in range(len(self._nodes) - 1, -1, -1):
            node = self._nodes[at]
            values = sums[at]
            for i in node.asked:
                part = parts[i]
                if part is not None:
                    values = part if values is None else values + part
            if at == 0:
                if values is not None:
                    (np.add(out, values, out=out) if written else np.copyto(out, values))
                elif not written:
                    out.fill(0)
                return
            if values is None:
                continue
            for step in reversed(node.steps[1:]):
                wide = np.empty(step.outer * step.middle * step.inner, self.dtype)
                step.add_to(wide, values, wide, first=True)
                values = wide
            step = node.steps[0] if node.steps else Step(1, 1, values.size)
            if node.source == 0:
                step.add_to(out, values, scratch, first=not written)
                written = True
                continue
            target = sums[node.source]
            if target is None:
                target = sums[node.source] = np.empty(self._cells(self._nodes[node.source].axes), self.dtype)
                step.add_to(target, values, target, first=True)
            else:
                step.add_to(target, values, np.empty_like(target), first=False)
