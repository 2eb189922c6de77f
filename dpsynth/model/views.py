"""Views: sums of a dense array over some of its axes, and the adjoint.

All views of one array share their intermediate sums. The views of a small array, or of a small intermediate
sum, are one product with a matrix of zeros and ones, which replaces many calls.

Invariant: ``expand`` is the adjoint of ``reduce``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod

import numpy as np

from dpsynth.model.axis_sums import AxisSum, Floats, axis_sums

Axes = tuple[int, ...]
_SMALL = 1 << 16
"""Entries up to which the views of an array are one matrix."""
_PAYS = 1 << 13
"""Entries up to which a matrix is faster than the steps of one view of an intermediate sum."""


@dataclass(eq=False)
class _Node:
    """An array over some axes, as a sum of a larger one.

    Attributes:
        axes: the axes.
        source: place of the larger one; -1 for the whole array.
        steps: sums that lead from there to here.
        asked: views that are this array.
        inside: views of this array that one matrix gives, where that is faster; and their numbers.
    """

    axes: Axes
    source: int
    steps: tuple[AxisSum, ...]
    asked: list[int] = field(default_factory=list)
    inside: tuple[Views, list[int]] | None = None


class Views:
    """Sums of one dense array over some of its axes, and the adjoint."""

    def __init__(self, shape: Sequence[int], asked: Sequence[Axes], dtype: str) -> None:
        """The plan of the sums.

        Args:
            shape: shape of the dense array.
            asked: for each view the axes that it keeps, ascending.
            dtype: type of all arrays.
        """
        self.shape = tuple(shape)
        self.size = prod(shape)
        self.dtype = dtype
        self.asked = [tuple(a) for a in asked]
        self.sizes = [prod(shape[i] for i in a) for a in self.asked]
        self._matrix: Floats | None = None
        ends = np.cumsum(self.sizes).tolist()
        self._slices = [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        if self.size * sum(self.sizes) <= _SMALL:
            self._matrix = self._membership()
            return
        whole = tuple(range(len(shape)))
        kinds = {a: prod(shape[i] for i in a) for a in self.asked if a != whole}
        kinds |= self._shared(kinds)
        self._nodes = [_Node(whole, -1, ())]
        for axes in sorted(kinds, key=lambda a: (-kinds[a], a)):
            holders = [i for i, n in enumerate(self._nodes) if set(axes) < set(n.axes)]
            source = min(holders, key=lambda i: (self._cells(self._nodes[i].axes), i))
            above = self._nodes[source].axes
            steps = axis_sums([shape[i] for i in above], [i in axes for i in above])
            self._nodes.append(_Node(axes, source, steps))
        place = {n.axes: n for n in self._nodes}
        for i, axes in enumerate(self.asked):
            place[axes].asked.append(i)
        self._gather()

    def _gather(self) -> None:
        """Give the views of small intermediate sums by one matrix each, the largest sums first."""
        below: list[list[int]] = [[] for _ in self._nodes]
        for at in range(len(self._nodes) - 1, 0, -1):
            below[self._nodes[at].source] += [at, *below[at]]
        gone: set[int] = set()
        for at, node in enumerate(self._nodes[1:], 1):
            views = [i for under in below[at] for i in self._nodes[under].asked]
            entries = self._cells(node.axes) * sum(self.sizes[i] for i in views)
            if at in gone or not 0 < entries <= min(_SMALL, _PAYS * len(below[at])):
                continue
            axes = [tuple(node.axes.index(a) for a in self.asked[i]) for i in views]
            node.inside = Views([self.shape[a] for a in node.axes], axes, self.dtype), views
            gone.update(below[at])
        kept = [at for at in range(len(self._nodes)) if at not in gone]
        place = {at: now for now, at in enumerate(kept)} | {-1: -1}
        self._nodes = [replace(self._nodes[at], source=place[self._nodes[at].source]) for at in kept]

    def _membership(self) -> Floats:
        """The matrix of zeros and ones from cells of the array (columns) to cells of all views (rows)."""
        matrix = np.zeros((sum(self.sizes), self.size), self.dtype)
        codes = np.indices(self.shape).reshape(len(self.shape), self.size)
        for axes, rows in zip(self.asked, self._slices, strict=True):
            shape = [self.shape[i] for i in axes]
            cell = np.ravel_multi_index([codes[i] for i in axes], shape) if axes else 0
            matrix[rows][cell, np.arange(self.size)] = 1
        return matrix

    def _cells(self, axes: Axes) -> int:
        return prod(self.shape[i] for i in axes)

    def _shared(self, kinds: dict[Axes, int]) -> dict[Axes, int]:
        """Intermediate sums for two or more views, if they are cheaper."""
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
        if self._matrix is not None:
            return frozenset(views)
        needed: set[int] = set()
        for start, node in enumerate(self._nodes):
            if any(i in views for i in (*node.asked, *(node.inside[1] if node.inside else ()))):
                at = start
                while at >= 0 and at not in needed:
                    needed.add(at)
                    at = self._nodes[at].source
        return frozenset(needed)

    def reduce(self, values: Floats, needed: frozenset[int]) -> list[Floats]:
        """Flat sums of a flat array, one for each view; views outside ``needed`` may be empty."""
        nothing = values[:0]
        results = [nothing] * len(self.asked)
        if self._matrix is not None:
            if len(needed) == 1:
                (only,) = needed
                results[only] = self._matrix[self._slices[only]] @ values
                return results
            sums = self._matrix @ values
            return [sums[part] if i in needed else nothing for i, part in enumerate(self._slices)]
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
            if node.inside is not None:
                inner, views = node.inside
                for i, view in zip(views, inner.reduce(made[at], inner.only(range(len(views)))), strict=True):
                    results[i] = view
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
        """Write the sum of all views' parts into ``out``, each repeated along the axes that it lacks.

        Args:
            parts: flat arrays, one for each view; None adds nothing.
            out: flat, one value for each cell of the dense array.
            scratch: flat, at least as many cells; overwritten.
        """
        if self._matrix is not None:
            given = [(rows, p) for rows, p in zip(self._slices, parts, strict=True) if p is not None]
            if len(given) == 1:
                ((rows, one),) = given
                np.matmul(one, self._matrix[rows], out=out)
                return
            every = np.zeros(len(self._matrix), self.dtype)
            for rows, one in given:
                every[rows] = one
            np.matmul(every, self._matrix, out=out)
            return
        sums: list[Floats | None] = [None] * len(self._nodes)
        written = False
        for at in range(len(self._nodes) - 1, -1, -1):
            node = self._nodes[at]
            values = sums[at]
            for i in node.asked:
                part = parts[i]
                if part is not None:
                    values = part if values is None else values + part
            values = self._with_inside(node, parts, values)
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
            step = node.steps[0] if node.steps else AxisSum(1, 1, values.size)
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

    def _with_inside(
        self, node: _Node, parts: Sequence[Floats | None], values: Floats | None
    ) -> Floats | None:
        """Values of an intermediate sum, with the parts of the views that its matrix gives."""
        if node.inside is None or all(parts[i] is None for i in node.inside[1]):
            return values
        inner, views = node.inside
        wide = np.empty(inner.size, self.dtype)
        inner.expand([parts[i] for i in views], wide, wide)
        return wide if values is None else np.add(wide, values, out=wide)
