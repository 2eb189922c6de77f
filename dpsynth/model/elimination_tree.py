"""Elimination trees: the cliques of an elimination order, and changes to a part of it.

The parent of a column is the first of its later neighbours to be eliminated. If a set of columns is
eliminated after everything below it, the order within the set changes nothing outside (Rose, Tarjan and
Lueker 1976: columns end up joined if a path over earlier columns links them). So a part of the order can
be replaced, and the cost of an added clique can be found, in time that depends on that part only.

Invariant: every tree is that of some elimination order of its graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dpsynth.model.elimination import EliminationOrder, Sizes, mask_of, members


@dataclass(frozen=True, eq=False)
class Region:
    """Columns of a tree to be eliminated anew, once everything below them is gone.

    Attributes:
        columns: the region's columns.
        inside: the same columns as a set.
        outer: the columns that are joined after the region is eliminated.
        graph: neighbours of each of the region's columns before it is eliminated.
        known: sets of columns that lie in cliques made below the region.
        below: columns outside the region whose parent is in it.
        above: parent of the region's last column, or -1.
        cells: cells of the region's maximal cliques in the present tree.
    """

    columns: tuple[int, ...]
    inside: int
    outer: int
    graph: dict[int, int]
    known: tuple[int, ...]
    below: tuple[int, ...]
    above: int
    cells: int


@dataclass(frozen=True, eq=False)
class EliminationTree:
    """An elimination order of a graph as a tree, with its cliques.

    Attributes:
        graph: neighbours of each column.
        sizes: sizes of the columns.
        later: for each column the rest of its clique, all eliminated later.
        parents: the first of these to be eliminated; -1 if there is none.
        cells: cells of all maximal cliques together.
    """

    graph: tuple[int, ...]
    sizes: Sizes
    later: tuple[int, ...]
    parents: tuple[int, ...]
    cells: int

    @classmethod
    def of(cls, graph: tuple[int, ...], sizes: Sizes, elimination: EliminationOrder) -> EliminationTree:
        """The tree of an elimination of the whole graph."""
        place = {c: i for i, c in enumerate(elimination.order)}
        later, parents = [0] * len(graph), [-1] * len(graph)
        for column, near in zip(elimination.order, elimination.later, strict=True):
            later[column] = near
            parents[column] = min(members(near), key=place.__getitem__, default=-1)
        return cls(graph, sizes, tuple(later), tuple(parents), elimination.cells)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Children of each column."""
        found: list[list[int]] = [[] for _ in self.parents]
        for column, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(column)
        return tuple(map(tuple, found))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of each column: the number of columns above it."""
        found = [-1] * len(self.parents)
        for column in range(len(found)):
            path = []
            at = column
            while at >= 0 and found[at] < 0:
                path.append(at)
                at = self.parents[at]
            depth = found[at] if at >= 0 else -1
            for c in reversed(path):
                found[c] = depth = depth + 1
        return tuple(found)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Cells of each column's clique, maximal or not."""
        return tuple(self.sizes.cells(near | 1 << c) for c, near in enumerate(self.later))

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """The same, but 0 for a clique that is not maximal: it equals a child's later columns."""
        filled = set(self.later)
        return tuple(0 if near | 1 << c in filled else self.weights[c] for c, near in enumerate(self.later))

    def clique_tree(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The maximal cliques, and links between them so that the cliques of each column are connected.

        A clique that is not maximal equals the clique of a child without the child, which takes its place
        in the tree (Blair and Peyton 1993).

        Returns:
            The cliques as sets (the empty set if there are no columns), and links as pairs of their
            positions: a tree for each component of the graph.
        """
        if not self.later:
            return [0], []
        cliques: list[int] = []
        home = [-1] * len(self.later)
        for column in sorted(range(len(home)), key=self.depths.__getitem__, reverse=True):
            clique = self.later[column] | 1 << column
            if self.counted[column]:
                home[column] = len(cliques)
                cliques.append(clique)
            else:
                home[column] = next(home[c] for c in self.children[column] if self.later[c] == clique)
        ways = ((home[c], home[p]) for c, p in enumerate(self.parents) if p >= 0)
        return cliques, [(a, b) for a, b in ways if a != b]

    def lies_within(self, mask: int) -> bool:
        """True if some clique holds a set of columns."""
        deepest = max(members(mask), key=self.depths.__getitem__, default=-1)
        return deepest < 0 or not mask & ~(self.later[deepest] | 1 << deepest)

    def between(self, mask: int) -> Region:
        """The region that changes when a set of columns is joined.

        It climbs from each column until the remaining joined columns lie in one clique.
        """
        later, parents, depths = self.later, self.parents, self.depths
        heads = set(members(mask))
        outer, inside = mask, 0
        columns: list[int] = []
        above = -1
        while heads:
            at = max(heads, key=depths.__getitem__)
            if not outer & ~(later[at] | 1 << at):
                above = at
                break
            heads.remove(at)
            columns.append(at)
            inside |= 1 << at
            outer = (outer | later[at]) & ~inside
            if parents[at] >= 0:
                heads.add(parents[at])
        return self._region(columns, inside, outer, above, mask)

    def under(self, columns: Sequence[int]) -> Region:
        """The region of a column and some columns below it; each but the first follows its parent."""
        top = columns[0]
        return self._region(columns, mask_of(columns), self.later[top], self.parents[top], 0)

    def _region(self, columns: Sequence[int], inside: int, outer: int, above: int, joined: int) -> Region:
        later, children, counted = self.later, self.children, self.counted
        scope = inside | outer
        graph = {c: self.graph[c] & scope for c in columns}
        below = []
        known = []
        cells = 0
        for column in columns:
            cells += counted[column]
            for child in children[column]:
                if not inside >> child & 1:
                    clique = later[child]
                    below.append(child)
                    known.append(clique)
                    for c in members(clique & inside):
                        graph[c] |= clique
        for column in columns:
            if joined >> column & 1:
                graph[column] |= joined
            graph[column] &= ~(1 << column)
        if columns and above >= 0 and outer == later[above] | 1 << above:
            cells += counted[above]
        return Region(tuple(columns), inside, outer, graph, tuple(known), tuple(below), above, cells)

    def renewed(
        self, region: Region, elimination: EliminationOrder, graph: tuple[int, ...] | None = None
    ) -> EliminationTree:
        """The tree after a region was eliminated in another order.

        Args:
            region: a region of this tree.
            elimination: elimination order of the region's graph.
            graph: the graph, if joining columns of the region changed it.
        """
        later, parents = list(self.later), list(self.parents)
        place = {c: i for i, c in enumerate(elimination.order)}
        for column, near in zip(elimination.order, elimination.later, strict=True):
            later[column] = near
            inner = members(near & region.inside)
            parents[column] = min(inner, key=place.__getitem__, default=region.above)
        for column in region.below:
            parents[column] = min(members(later[column] & region.inside), key=place.__getitem__)
        cells = self.cells - region.cells + elimination.cells
        return EliminationTree(graph or self.graph, self.sizes, tuple(later), tuple(parents), cells)
