"""Routes in a junction tree: positions of columns, and the way from a clique to a column.

Invariant: routes depend on names only, not on numbers of the model; they are made once for each tree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import fsum

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.junction_tree import Edge, JunctionTree


class Routes:
    """Routes through one junction tree.

    Attributes:
        tree: the tree.
        separators: for each clique its neighbours, each with the shared columns.
    """

    def __init__(self, tree: JunctionTree) -> None:
        """The routes of a tree; cliques are numbered so that each subtree is an interval."""
        self.tree = tree
        count = len(tree.cliques)
        self.separators: list[dict[int, Clique]] = [{} for _ in range(count)]
        self._parent = [-1] * count
        self._children: list[list[int]] = [[] for _ in range(count)]
        sizes, following = [1] * count, [1] * count
        for edge in reversed(tree.edges):
            sizes[edge.parent] += sizes[edge.child]
        self._enter = [0] * count
        for edge in tree.edges:
            self._parent[edge.child] = edge.parent
            self._children[edge.parent].append(edge.child)
            self.separators[edge.child][edge.parent] = edge.separator
            self.separators[edge.parent][edge.child] = edge.separator
            self._enter[edge.child] = following[edge.parent]
            following[edge.parent] += sizes[edge.child]
            following[edge.child] = self._enter[edge.child] + 1
        self._leave = [e + s for e, s in zip(self._enter, sizes, strict=True)]
        self._members = [frozenset(c) for c in tree.cliques]
        self._top: dict[str, int] = {}
        for index in (0, *(e.child for e in tree.edges)):
            for column in tree.cliques[index]:
                self._top.setdefault(column, index)
        self._by_cells = sorted(range(count), key=lambda i: tree.domain.cells(tree.cliques[i]))
        self._holders = dict.fromkeys(tree.domain.columns, 0)
        for place, index in enumerate(self._by_cells):
            for column in tree.cliques[index]:
                self._holders[column] |= 1 << place
        self._ways: dict[tuple[int, str], int] = {}

    def home(self, columns: Iterable[str]) -> int | None:
        """The smallest clique that holds these columns, or None."""
        holding = (1 << len(self._by_cells)) - 1
        for column in columns:
            holding &= self._holders[column]
        return self._by_cells[(holding & -holding).bit_length() - 1] if holding else None

    def toward(self, index: int, column: str) -> int:
        """The neighbour of a clique on the way to a column that the clique lacks."""
        known = self._ways.get((index, column))
        if known is None:
            place = self._enter[self._top[column]]
            if self._enter[index] <= place < self._leave[index]:
                children = self._children[index]
                known = children[bisect_right(children, place, key=lambda k: self._enter[k]) - 1]
            else:
                known = self._parent[index]
            self._ways[index, column] = known
        return known

    def inputs(self, index: int, wanted: Iterable[str]) -> dict[int, frozenset[str]]:
        """Neighbours through which a clique gets wanted columns that it lacks, each with these columns."""
        found: dict[int, set[str]] = {}
        # The order of a set of texts is another in every process, and orders of sums would follow it.
        for column in sorted(wanted):
            if column not in self._members[index]:
                found.setdefault(self.toward(index, column), set()).add(column)
        return {k: frozenset(columns) for k, columns in found.items()}

    def meeting(self, wanted: frozenset[str], weights: Mapping[str, float]) -> int:
        """The clique at which messages about the wanted columns meet: their weighted centre.

        It lies in the smallest part of the tree that holds all of them.
        """
        index = self._top[max(sorted(wanted), key=lambda c: weights[c])] if wanted else 0
        while True:
            for neighbour, beyond in self.inputs(index, wanted).items():
                shared = self.separators[index][neighbour]
                near = wanted.difference(beyond, shared)
                if not near or fsum(weights[c] for c in beyond) > fsum(weights[c] for c in near):
                    index = neighbour
                    break
            else:
                return index

    def span(self, columns: Iterable[str]) -> tuple[JunctionTree, tuple[int, ...]]:
        """The smallest part of the tree that holds some columns, as a tree over the columns that it needs.

        Returns:
            A tree whose cliques keep the given columns and the columns that connect them, and
            for each of its cliques the clique of this tree of which it is a part.
        """
        wanted = frozenset(columns)
        origin = [self.meeting(wanted, dict.fromkeys(wanted, 1.0))]
        needs = [set(wanted & self._members[origin[0]])]
        links: list[tuple[int, int, Clique]] = []
        waiting = [(0, wanted)]
        while waiting:
            place, missing = waiting.pop()
            for neighbour, beyond in self.inputs(origin[place], missing).items():
                separator = self.separators[origin[place]][neighbour]
                links.append((len(origin), place, separator))
                needs[place].update(separator)
                needs.append({*separator, *(beyond & self._members[neighbour])})
                waiting.append((len(origin), beyond))
                origin.append(neighbour)
        canonical = self.tree.domain.canonical
        kept = {c for need in needs for c in need}
        domain = Domain({c: s for c, s in self.tree.domain.sizes.items() if c in kept})
        cliques = tuple(canonical(need) for need in needs)
        edges = tuple(Edge(*link) for link in links)
        return replace(self.tree, domain=domain, cliques=cliques, edges=edges), tuple(origin)
