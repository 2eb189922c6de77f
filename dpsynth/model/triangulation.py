"""Triangulations: the size of a junction tree before it is built.

A structure search asks thousands of times for the cost of one more clique. The answer
eliminates anew only the columns between those of the clique (see ``elimination_tree``).

Invariant: the answer is never less than the cells of ``with_clique`` of the same clique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.elimination import (
    MIN_SEPARATOR,
    RULES,
    SEPARATOR_PER_PLACE,
    EliminationOrder,
    Rule,
    Sizes,
    burden,
    eliminate,
    members,
    neighbours,
)
from dpsynth.model.elimination_search import best_tree
from dpsynth.model.elimination_tree import EliminationTree, Region

_WIDE = 100
"""Columns from which on a growing tree is mostly renewed in its changed part alone."""


@dataclass(frozen=True)
class TreeSize:
    """Size of a junction tree.

    Attributes:
        cells: number of cells of all cliques together.
        largest: number of cells of the largest clique.
        treewidth: number of columns of the widest clique, less one.
    """

    cells: int
    largest: int
    treewidth: int

    def memory(self, bytes_per_cell: int = 8) -> int:
        """Bytes of one array for every clique, in all."""
        return self.cells * bytes_per_cell


@dataclass(frozen=True, eq=False)
class Triangulation:
    """A graph of columns, and an elimination order of it with its cliques.

    Attributes:
        domain: the columns and their sizes.
        tree: the elimination tree; columns are numbered in table order.
        cells_as_a_whole: the cells when the whole graph was triangulated last.
    """

    domain: Domain
    tree: EliminationTree
    cells_as_a_whole: int = 0

    @classmethod
    def of(cls, domain: Domain, cliques: Iterable[Clique]) -> Triangulation:
        """The best triangulation that was found of the graph that joins the columns of each clique.

        It is the best of several greedy orders. Then parts of the order are replaced, with ties broken at
        random, for as long as that may pay. The result is the same on every machine, and for every order of
        the cliques.

        Raises:
            KeyError: a clique names a column that is not in the domain.
            ValueError: a column has no places.
        """
        place = {c: i for i, c in enumerate(domain.columns)}
        listed = {tuple(place[c] for c in clique) for clique in cliques}
        graph = tuple(neighbours(len(place), listed))
        return cls._whole(domain, best_tree(graph, Sizes(domain.shape(domain.columns))))

    @classmethod
    def _whole(cls, domain: Domain, tree: EliminationTree) -> Triangulation:
        return cls(domain, tree, tree.cells)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The maximal cliques, in table order within each."""
        names = self.domain.columns
        return tuple(tuple(names[c] for c in members(m)) for m in self.tree.clique_tree()[0])

    @property
    def cells(self) -> int:
        """Number of cells of all maximal cliques together."""
        return self.size.cells

    @cached_property
    def size(self) -> TreeSize:
        """Size of the junction tree of this triangulation."""
        return self._size_without(0, self.tree.cells, (), ())

    def cells_with(self, clique: Iterable[str]) -> int:
        """Upper bound on the cells after a clique is added.

        It is exact if the clique lies in a clique of the tree.

        Args:
            clique: columns of the domain.
        """
        mask = self._mask(clique)
        if self.tree.lies_within(mask):
            return self.cells
        region = self.tree.between(mask)
        return self.tree.cells - region.cells + self._quick(region).cells

    def size_with(self, clique: Iterable[str]) -> TreeSize:
        """Upper bound on the size after a clique is added: ``cells_with``, largest clique and width."""
        mask = self._mask(clique)
        if self.tree.lies_within(mask):
            return self.size
        region = self.tree.between(mask)
        found = self._quick(region)
        cells = self.tree.cells - region.cells + found.cells
        return self._size_without(region.inside, cells, found.weights, found.later)

    def with_clique(self, clique: Iterable[str]) -> Triangulation:
        """The triangulation after a clique is added.

        If the tree holds the clique, it does not change. Otherwise the better of two triangulations is
        improved as in ``of``: one with the changed part eliminated anew, and one of the whole graph. In a
        wide domain the whole graph is triangulated anew only when the tree has grown by an eighth since the
        last time, as that takes time that grows with the square of the columns.

        Args:
            clique: columns of the domain.
        """
        mask = self._mask(clique)
        graph = list(self.tree.graph)
        for c in members(mask):
            graph[c] |= mask & ~(1 << c)
        joined = tuple(graph)
        if self.tree.lies_within(mask):
            return replace(self, tree=replace(self.tree, graph=joined))
        region = self.tree.between(mask)
        found = [_eliminated(region, self.tree.sizes, rule) for rule in RULES]
        local = self.tree.renewed(region, min(found, key=burden), joined)
        if len(self.domain.columns) >= _WIDE and 8 * local.cells <= 9 * self.cells_as_a_whole:
            return replace(self, tree=local)
        return Triangulation._whole(self.domain, best_tree(joined, self.tree.sizes, local))

    @cached_property
    def _bits(self) -> dict[str, int]:
        return {c: 1 << i for i, c in enumerate(self.domain.columns)}

    def _mask(self, clique: Iterable[str]) -> int:
        bits, mask = self._bits, 0
        for c in clique:
            mask |= bits[c]
        return mask

    def _quick(self, region: Region) -> EliminationOrder:
        """A quick elimination by one rule, and by a second one if the tree grows by an eighth or more.

        Below that the first rule can't be off by much: one more clique seldom makes a tree smaller.
        Both rules ignore added edges, which takes a third of the time.
        """
        found = _eliminated(region, self.tree.sizes, MIN_SEPARATOR)
        if 8 * (found.cells - region.cells) > self.tree.cells:
            found = min(
                found, _eliminated(region, self.tree.sizes, SEPARATOR_PER_PLACE, found.cells), key=burden
            )
        return found

    @cached_property
    def _heaviest(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted(((w, 1 << c) for c, w in enumerate(self.tree.weights)), reverse=True))

    @cached_property
    def _widest(self) -> tuple[tuple[int, int], ...]:
        widths = ((near.bit_count(), 1 << c) for c, near in enumerate(self.tree.later))
        return tuple(sorted(widths, reverse=True))

    def _size_without(self, gone: int, cells: int, weights: Sequence[int], later: Sequence[int]) -> TreeSize:
        """Size after the cliques of some columns are replaced by others."""
        if not self.tree.parents:
            return TreeSize(1, 1, -1)
        weight = next((w for w, bit in self._heaviest if not bit & gone), 0)
        width = next((w for w, bit in self._widest if not bit & gone), 0)
        return TreeSize(cells, max((weight, *weights)), max((width, *(m.bit_count() for m in later))))


def _eliminated(region: Region, sizes: Sizes, rule: Rule, bound: int | None = None) -> EliminationOrder:
    return eliminate(region.graph, region.inside, sizes, rule, known=region.known, bound=bound)
