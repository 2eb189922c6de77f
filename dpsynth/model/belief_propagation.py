"""Belief propagation on a junction tree: marginals and their covariances.

Each cell costs one exponential. The log-sum of the child's cells is subtracted before it, so that every
number stays within range, however large the log-potentials are. Views of a clique's cells (its separators and
the scopes of the potentials) share their intermediate sums; those of a small array are one product with a
matrix of zeros and ones.

Invariant: exact up to rounding; potentials of -inf are cells of probability zero. ``Views.expand`` is the
adjoint of ``Views.reduce``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import inf, log, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array, AxisSum, Floats, axis_sums, in_halves
from dpsynth.model.junction_tree import JunctionTree

Axes = tuple[int, ...]

_SMALL = 1 << 16
"""Entries up to which the views of an array are one matrix."""

_PAYS = 1 << 13
"""Entries up to which a matrix is faster than the steps of one view of an intermediate sum."""


@dataclass(eq=False)
class _Node:
    """An array over some axes, as a sum of a larger one.

    Attributes:
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

    @cached_property
    def every(self) -> tuple[int, ...]:
        return self.only(range(len(self.asked)))

    def only(self, views: Sequence[int]) -> tuple[int, ...]:
        """The sums that some views need, in the order in which ``reduce`` makes them."""
        if self._matrix is not None:
            return tuple(views)
        needed: set[int] = set()
        for start, node in enumerate(self._nodes):
            if any(i in views for i in (*node.asked, *(node.inside[1] if node.inside else ()))):
                at = start
                while at >= 0 and at not in needed:
                    needed.add(at)
                    at = self._nodes[at].source
        return tuple(sorted(needed))

    def reduce(self, values: Floats, needed: Sequence[int]) -> list[Floats]:
        """Flat sums of a flat array, one for each view; views outside ``needed`` may be empty."""
        nothing = values[:0]
        results = [nothing] * len(self.asked)
        if self._matrix is not None:
            if len(needed) == 1:
                (only,) = needed
                results[only] = self._matrix[self._slices[only]] @ values
                return results
            sums = self._matrix @ values
            for i in needed:
                results[i] = sums[self._slices[i]]
            return results
        made = [nothing] * len(self._nodes)
        for at in needed:
            node = self._nodes[at]
            summed = values if node.source < 0 else made[node.source]
            for step in node.steps:
                summed = step.reduce(summed).reshape(-1)
            made[at] = summed
            for i in node.asked:
                results[i] = summed
            if node.inside is not None:
                inner, views = node.inside
                for i, view in zip(views, inner.reduce(summed, inner.every), strict=True):
                    results[i] = view
        return results

    def greatest(self, values: Floats, view: int) -> Floats:
        """Flat maxima of a flat array over the axes that a view lacks."""
        gone = tuple(i for i in range(len(self.shape)) if i not in self.asked[view])
        return np.asarray(np.maximum.reduce(values.reshape(self.shape), axis=gone)).reshape(-1)

    def expand(self, parts: Sequence[Floats | None], out: Floats) -> None:
        """Write the sum of all views' parts into ``out``, each repeated along the axes that it lacks.

        Args:
            parts: flat arrays, one for each view; None adds nothing.
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
            if node.inside is not None:
                values = self._with_inside(*node.inside, parts, values)
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
                step.add_to(wide, values, first=True)
                values = wide
            step = node.steps[0] if node.steps else AxisSum(1, 1, values.size)
            if node.source == 0:
                step.add_to(out, values, first=not written)
                written = True
                continue
            target = sums[node.source]
            if target is None:
                target = sums[node.source] = np.empty(self._cells(self._nodes[node.source].axes), self.dtype)
                step.add_to(target, values, first=True)
            else:
                step.add_to(target, values, first=False)

    def _with_inside(
        self, inner: Views, views: Sequence[int], parts: Sequence[Floats | None], values: Floats | None
    ) -> Floats | None:
        given = [parts[i] for i in views]
        if all(part is None for part in given):
            return values
        wide = np.empty(inner.size, self.dtype)
        inner.expand(given, wide)
        return wide if values is None else np.add(wide, values, out=wide)


_BLOCK = 1 << 15
"""Cells of a block that stays in the cache for several operations in a row."""


@dataclass(eq=False)
class _Part:
    """The working arrays of one clique of the tree; a row is one cell of the separator to the parent.

    Attributes:
        order: the clique's columns in the order of the array's axes.
        scopes, children: positions of the clique's potentials, and of its child cliques.
        views: sums over the cells: the scopes, the separators to the children, the separator to the parent.
        upwards, downwards: the sums that the message to the parent needs, and all others.
        beliefs: flat probabilities of the cells.
        peak: log of the sum of each row at the last calibration.
        mass, divisor: probabilities of the rows, and the same with infinity in place of 0.
        sums: views of the beliefs, without the last one.
        moved: flat; beliefs times direction, between the passes of a covariance.
    """

    order: Clique
    scopes: list[int]
    children: list[int]
    views: Views
    upwards: tuple[int, ...]
    downwards: tuple[int, ...]
    beliefs: Floats
    peak: Floats
    closed: NDArray[np.bool_]
    mass: Floats
    divisor: Floats
    sums: list[Floats]
    moved: Floats | None = None


class BeliefPropagation:
    """Exact inference for potentials of fixed scopes on one junction tree.

    Potentials, directions and marginals are flat arrays, one for each scope, with axes in the order of
    ``self.scopes``. Memory: two arrays of the tree's cells and one of its largest clique's.
    """

    def __init__(self, tree: JunctionTree, scopes: Sequence[Clique], dtype: str = "float64") -> None:
        """The layout for some scopes; ValueError if one lies in no clique of the tree."""
        self.tree = tree
        self._dtype = np.dtype(dtype)
        # Stands in for -inf, which a matrix product with zeros would turn into nan.
        self._closed = -(float(np.finfo(dtype).max) ** 0.95)
        single = self._dtype.itemsize < 8
        # Shares of a row below this become 0: products of two of them, not so small that
        # arithmetic slows down tenfold, still have all their digits.
        self._least = 1e-10 if single else 1e-100
        self._deepest = 1.9 * log(self._least)
        self._bounds = (1e-3, 1e3) if single else (1e-30, 1e30)
        self.scopes = tuple(self.order(tree.domain, scope) for scope in scopes)
        homes: list[list[int]] = [[] for _ in tree.cliques]
        for i, scope in enumerate(self.scopes):
            home = tree.home(scope)
            if home is None:
                raise ValueError(f"the tree has no clique that holds {scope}")
            homes[home].append(i)
        below: list[list[int]] = [[] for _ in tree.cliques]
        separators: list[Clique] = [()] * len(tree.cliques)
        for edge in tree.edges:
            below[edge.parent].append(edge.child)
            separators[edge.child] = edge.separator
        self._parts = []
        for i, clique in enumerate(tree.cliques):
            asked = [*(self.scopes[s] for s in homes[i]), *(separators[c] for c in below[i]), separators[i]]
            self._parts.append(self._part(clique, asked, homes[i], below[i]))
        self._outwards = [0, *(edge.child for edge in tree.edges)]
        self._scratch = np.empty(max(p.views.size for p in self._parts), dtype)

    @staticmethod
    def order(domain: Domain, clique: Iterable[str]) -> Clique:
        """The order of an array's axes here: the longest is last, so that inner loops are long."""
        place = {c: i for i, c in enumerate(domain.sizes)}
        return tuple(sorted(clique, key=lambda c: (domain.sizes[c], place[c])))

    def _part(self, clique: Clique, asked: Sequence[Clique], scopes: list[int], children: list[int]) -> _Part:
        order = self.order(self.tree.domain, clique)
        axes = [tuple(sorted(order.index(c) for c in a)) for a in asked]
        views = Views(self.tree.domain.shape(order), axes, self._dtype.str)
        last = len(asked) - 1
        rows = views.sizes[last]
        return _Part(
            order=order,
            scopes=scopes,
            children=children,
            views=views,
            upwards=views.only([last]),
            downwards=views.only(range(last)),
            beliefs=np.empty(views.size, self._dtype),
            peak=np.full(rows, np.nan, self._dtype),
            closed=np.zeros(rows, dtype=bool),
            mass=np.empty(rows, self._dtype),
            divisor=np.empty(rows, self._dtype),
            sums=[],
        )

    def calibrate(self, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
        """Marginals of p(x) ~ exp(sum of potentials), flat for each scope, and log Z.

        One pass up and one down the tree (Shafer and Shenoy 1990). Potentials are flat, one a scope; -inf is
        allowed, in the same cells at every call.

        Raises:
            ValueError: no row of the domain is possible.
        """
        messages: dict[int, Floats] = {}
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            for i in reversed(self._outwards):
                part = self._parts[i]
                own = [np.maximum(potentials[s], self._closed) for s in part.scopes]
                part.mass = self._conditional(part, own + [messages.pop(c) for c in part.children])
                messages[i] = np.maximum(np.log(part.mass) + part.peak, self._closed)
                part.peak = np.where(part.closed, 0, messages[i])
        if self._parts[0].closed[0]:
            raise ValueError("the potentials leave no row of the domain possible")
        marginals: list[Floats] = [self._scratch[:0]] * len(self.scopes)
        above: dict[int, Floats] = {0: np.ones(1, self._dtype)}
        for i in self._outwards:
            part = self._parts[i]
            rows = above.pop(i)
            factor = np.divide(rows, part.mass, out=np.zeros_like(rows), where=part.mass > 0)
            part.mass = rows
            part.divisor = np.where(rows > 0, rows, inf)
            if factor.size == 1:
                part.beliefs *= factor
            else:
                self._multiply(part.beliefs, self._widened(part, factor))
            part.sums = part.views.reduce(part.beliefs, part.downwards)
            for s, values in zip(part.scopes, part.sums, strict=False):
                marginals[s] = values
            for c, values in zip(part.children, part.sums[len(part.scopes) :], strict=False):
                above[c] = self._flush(values.copy())
        return marginals, float(messages[0][0])

    def _conditional(self, part: _Part, given: Sequence[Floats]) -> Floats:
        """The sum of each separator row, with the exponentiated potentials written into the part's beliefs.

        The log of a row's last sum is subtracted first, which keeps the sums within range unless the
        potentials have moved far; only then is each row's peak computed.
        """
        low, high = self._bounds
        for looked_up in (False, True):
            if looked_up or np.isnan(part.peak[0]):
                part.views.expand([*given, None], part.beliefs)
                peak = part.views.greatest(part.beliefs, len(part.views.asked) - 1)
                part.closed = peak < 0.5 * self._closed
                part.peak = np.where(part.closed, 0, peak)
            part.views.expand([*given, -part.peak], part.beliefs)
            self._exponentiate(part.beliefs)
            mass = part.views.reduce(part.beliefs, part.upwards)[-1]
            if bool((np.where(part.closed, mass == 0, (mass > low) & (mass < high))).all()):
                break
        return mass

    def _exponentiate(self, values: Floats) -> None:
        """Replace log-shares by shares in place, in blocks that stay in the cache."""

        def work(half: slice) -> None:
            for begin in range(half.start, half.stop, _BLOCK):
                block = values[begin : min(begin + _BLOCK, half.stop)]
                np.maximum(block, self._deepest, out=block)
                np.exp(block, out=block)
                self._flush(block)

        in_halves(values.size, values.size, work)

    @staticmethod
    def _multiply(target: Floats, factor: Floats) -> None:
        def work(half: slice) -> None:
            np.multiply(target[half], factor[half], out=target[half])

        in_halves(target.size, target.size, work)

    @staticmethod
    def _add_product(target: Floats, left: Floats, right: Floats) -> None:
        def work(half: slice) -> None:
            for begin in range(half.start, half.stop, _BLOCK):
                block = slice(begin, min(begin + _BLOCK, half.stop))
                np.multiply(left[block], right[block], out=left[block])
                np.add(target[block], left[block], out=target[block])

        in_halves(target.size, target.size, work)

    def _flush(self, values: Floats) -> Floats:
        values += self._least
        values -= self._least
        return values

    def _widened(self, part: _Part, rows: Floats) -> Floats:
        """Values of the parent's separator, repeated over the part's cells; valid until the next call."""
        wide = self._scratch[: part.views.size]
        nothing: list[Floats | None] = [None] * (len(part.views.asked) - 1)
        part.views.expand([*nothing, rows], wide)
        return wide

    def covary(self, directions: Sequence[Floats]) -> list[Floats]:
        """Covariances of each scope's cells with the sum of some functions, at the last calibration.

        They are the derivative of the marginals along ``directions``, in one linear pass up and one down.
        """
        messages: dict[int, Floats] = {}
        for i in reversed(self._outwards):
            part = self._parts[i]
            if part.moved is None:
                part.moved = np.empty_like(part.beliefs)
            given = [directions[s] for s in part.scopes] + [messages[c] for c in part.children]
            part.views.expand([*given, None], part.moved)
            self._multiply(part.moved, part.beliefs)
            sums = part.views.reduce(part.moved, part.upwards)[-1]
            messages[i] = sums / part.divisor
        changes: list[Floats] = [self._scratch[:0]] * len(self.scopes)
        above: dict[int, Floats] = {0: np.zeros(1, self._dtype)}
        for i in self._outwards:
            part = self._parts[i]
            assert part.moved is not None
            rows = above.pop(i)
            shift = rows / part.divisor - messages[i]
            if shift.size > 1:
                self._add_product(part.moved, self._widened(part, shift), part.beliefs)
            found = part.views.reduce(part.moved, part.downwards)[:-1]
            if shift.size == 1:
                found = [f + shift * b for f, b in zip(found, part.sums, strict=False)]
            for s, values in zip(part.scopes, found, strict=False):
                changes[s] = values
            for c, values in zip(part.children, found[len(part.scopes) :], strict=True):
                above[c] = values
        return changes

    def beliefs(self, cliques: Sequence[Clique], total: float) -> tuple[Array, ...]:
        """Marginals of cliques inside those of the tree, axes in table order, each with the sum ``total``."""
        there: dict[int, list[int]] = {}
        for i, clique in enumerate(cliques):
            home = self.tree.home(clique)
            if home is None:
                raise ValueError(f"the tree has no clique that holds {clique}")
            there.setdefault(home, []).append(i)
        found: list[Array] = [self._scratch[:0]] * len(cliques)
        for home, places in there.items():
            part = self._parts[home]
            orders = [self.order(self.tree.domain, cliques[i]) for i in places]
            views = Views(
                part.views.shape,
                [tuple(part.order.index(c) for c in order) for order in orders],
                self._dtype.str,
            )
            sums = views.reduce(part.beliefs, views.every)
            for i, order, values in zip(places, orders, sums, strict=True):
                counts = values.reshape(self.tree.domain.shape(order)) * np.asarray(total, self._dtype)
                axes = [order.index(c) for c in self.tree.domain.canonical(cliques[i])]
                found[i] = np.ascontiguousarray(counts.transpose(axes))
        return tuple(found)
