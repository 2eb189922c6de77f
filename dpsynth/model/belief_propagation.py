"""Belief propagation on a junction tree: marginals, their covariances, and extreme cells.

Each cell costs one exponential. The log-sum of the child's cells is subtracted before it, so that every
number stays within range, however large the log-potentials are. Views of a clique's cells
(its separators and the scopes of the potentials) share their sums.

Invariant: exact up to rounding; potentials of -inf are cells of probability zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.axis_sums import Floats
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import JunctionTree
from dpsynth.model.threads import in_halves
from dpsynth.model.views import Views

_BLOCK = 1 << 15
"""Cells of a block that stays in the cache for several operations in a row."""


@dataclass(eq=False)
class _Part:
    """The working arrays of one clique of the tree.

    Its views are, in this order: the scopes of its potentials, the separators to its
    children, the separator to its parent. A row is one cell of the separator to the parent.

    Attributes:
        order: the clique's columns in the order of the array's axes.
        scopes: positions of the potentials of this clique.
        children: positions of the child cliques.
        views: sums over the clique's cells.
        upwards: the sums that the message to the parent needs.
        downwards: the sums that all other views need.
        beliefs: flat probabilities of the cells.
        peak: log of the sum of each row at the last calibration.
        closed: rows that are impossible.
        mass: probability of each row.
        sums: views of the beliefs, without the last one.
        moved: flat; beliefs times direction, between the passes of a covariance.
    """

    order: Clique
    scopes: list[int]
    children: list[int]
    views: Views
    upwards: frozenset[int]
    downwards: frozenset[int]
    beliefs: Floats
    peak: Floats
    closed: NDArray[np.bool_]
    mass: Floats
    sums: list[Floats]
    moved: Floats | None = None


class BeliefPropagation:
    """Exact inference for potentials of fixed scopes on one junction tree.

    Potentials, directions and marginals are flat arrays, one for each scope, with axes in the order of
    ``self.scopes``. Memory: two arrays of the tree's cells and one of its largest clique's.
    """

    def __init__(self, tree: JunctionTree, scopes: Sequence[Clique], dtype: str = "float64") -> None:
        """The layout of a tree for potentials over some columns each.

        Args:
            tree: a junction tree with a clique around every scope.
            scopes: the columns of each potential.
            dtype: "float64", or "float32" for half the memory and time.

        Raises:
            ValueError: a scope lies in no clique of the tree.
        """
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
            sums=[],
        )

    def calibrate(self, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
        """Marginals of p(x) ~ exp(sum of potentials) and the log-partition.

        One pass up and one down the tree (Shafer and Shenoy 1990).

        Args:
            potentials: one flat array a scope; -inf allowed, in the same cells at every call.

        Returns:
            Flat probabilities over each scope, and log Z.

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

        The log of a row's last sum is subtracted first. That keeps the sums within range unless the
        potentials have moved far; only then is each row's peak computed. (Their sums may have overflowed by
        then: the caller ignores that, and nothing of them is kept.)
        """
        low, high = self._bounds
        for looked_up in (False, True):
            if looked_up or np.isnan(part.peak[0]):
                part.views.expand([*given, None], part.beliefs, self._scratch)
                peak = part.views.greatest(part.beliefs, len(part.views.asked) - 1)
                part.closed = peak < 0.5 * self._closed
                part.peak = np.where(part.closed, 0, peak)
            part.views.expand([*given, -part.peak], part.beliefs, self._scratch)
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
        """Add a product to a target; overwrites ``left``."""

        def work(half: slice) -> None:
            for begin in range(half.start, half.stop, _BLOCK):
                block = slice(begin, min(begin + _BLOCK, half.stop))
                np.multiply(left[block], right[block], out=left[block])
                np.add(target[block], left[block], out=target[block])

        in_halves(target.size, target.size, work)

    def _flush(self, values: Floats) -> Floats:
        """Replace negligible shares by 0, in place."""
        values += self._least
        values -= self._least
        return values

    def _widened(self, part: _Part, rows: Floats) -> Floats:
        """Values of the parent's separator, repeated over the part's cells; valid until the next call."""
        wide = self._scratch[: part.views.size]
        nothing: list[Floats | None] = [None] * (len(part.views.asked) - 1)
        part.views.expand([*nothing, rows], wide, wide)
        return wide

    def covary(self, directions: Sequence[Floats]) -> list[Floats]:
        """Covariances of each scope's cells with the sum of some functions, at the last calibration.

        They are the derivative of the marginals along the directions of the potentials. They take one
        linear pass up and one down.

        Args:
            directions: one flat array a scope, finite.

        Returns:
            One flat array a scope, for probabilities.
        """
        messages: dict[int, Floats] = {}
        for i in reversed(self._outwards):
            part = self._parts[i]
            if part.moved is None:
                part.moved = np.empty_like(part.beliefs)
            given = [directions[s] for s in part.scopes] + [messages[c] for c in part.children]
            part.views.expand([*given, None], part.moved, self._scratch)
            self._multiply(part.moved, part.beliefs)
            sums = part.views.reduce(part.moved, part.upwards)[-1]
            messages[i] = np.divide(sums, part.mass, out=np.zeros_like(sums), where=part.mass > 0)
        changes: list[Floats] = [self._scratch[:0]] * len(self.scopes)
        above: dict[int, Floats] = {0: np.zeros(1, self._dtype)}
        for i in self._outwards:
            part = self._parts[i]
            assert part.moved is not None
            rows = above.pop(i)
            shift = np.divide(rows, part.mass, out=np.zeros_like(rows), where=part.mass > 0) - messages[i]
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

    def minimum(self, potentials: Sequence[Floats]) -> float:
        """The least sum of potentials over all rows of the domain; inf excludes a cell."""
        messages: dict[int, Floats] = {}
        for i in reversed(self._outwards):
            part = self._parts[i]
            given = [np.minimum(potentials[s], -self._closed) for s in part.scopes]
            given += [messages.pop(c) for c in part.children]
            cells = self._scratch[: part.views.size]
            part.views.expand([*given, None], cells, np.empty_like(cells))
            messages[i] = part.views.least(cells, len(part.views.asked) - 1)
        return float(messages[0][0])

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
            sums = views.reduce(part.beliefs, views.only(range(len(places))))
            for i, order, values in zip(places, orders, sums, strict=True):
                counts = values.reshape(self.tree.domain.shape(order)) * np.asarray(total, self._dtype)
                axes = [order.index(c) for c in self.tree.domain.canonical(cliques[i])]
                found[i] = np.ascontiguousarray(counts.transpose(axes))
        return tuple(found)
