"""Junction trees of cliques, over which a Markov random field can be summed exactly.

Invariant: every requested clique lies inside a clique of the tree, and the cliques that
hold a column form a connected part of it (running intersection).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dpsynth.columns.domain import Clique, Domain
from dpsynth.errors import ModelTooLarge
from dpsynth.model.elimination import members
from dpsynth.model.triangulation import TreeSize, Triangulation


@dataclass(frozen=True)
class Edge:
    """A link from a clique to its parent, with the columns that both share (maybe none)."""

    child: int
    parent: int
    separator: Clique


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques, and edges ordered so that each parent is met before its children.

    Clique 0 is the root and the largest clique: the root alone sends no message up and gets none
    back, so the most work is saved there. Components that share no column are linked to the root by an
    empty separator, so there is always one tree.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, triangulation: Triangulation, *, max_cells: int | None = None) -> JunctionTree:
        """The junction tree of a triangulation.

        The order of the cliques is that of a walk from the root, depth first.

        Args:
            triangulation: triangulation of the graph of the requested cliques.
            max_cells: largest number of cells that is allowed.

        Raises:
            ModelTooLarge: it has more than ``max_cells``; the message gives the remedy.
        """
        domain, size = triangulation.domain, triangulation.size
        if max_cells is not None and size.cells > max_cells:
            raise ModelTooLarge(_refusal(triangulation, max_cells))
        cliques, links = triangulation.tree.clique_tree()
        columns = [members(clique) for clique in cliques]
        linked: list[list[int]] = [[] for _ in cliques]
        for a, b in links:
            linked[a].append(b)
            linked[b].append(a)

        names = domain.columns
        found: list[Clique] = []
        edges: list[Edge] = []
        met: set[int] = set()
        for top in sorted(
            range(len(cliques)), key=lambda i: (-triangulation.tree.sizes.cells(cliques[i]), columns[i])
        ):
            waiting = [(top, 0, 0)] if top not in met else []
            while waiting:
                at, parent, shared = waiting.pop()
                met.add(at)
                place = len(found)
                found.append(tuple(names[c] for c in columns[at]))
                if place:
                    edges.append(Edge(place, parent, tuple(names[c] for c in members(shared))))
                ahead = sorted((i for i in linked[at] if i not in met), key=columns.__getitem__, reverse=True)
                waiting += [(i, place, cliques[i] & cliques[at]) for i in ahead]
        return cls(domain, tuple(found), tuple(edges))

    @property
    def cells(self) -> int:
        """Number of cells of all cliques together."""
        return self.size.cells

    @cached_property
    def size(self) -> TreeSize:
        """Cells in all, cells of the largest clique, and treewidth."""
        weights = [self.domain.cells(c) for c in self.cliques]
        return TreeSize(sum(weights), max(weights), max(map(len, self.cliques)) - 1)

    @cached_property
    def _smallest_first(self) -> list[int]:
        weights = [self.domain.cells(c) for c in self.cliques]
        return sorted(range(len(weights)), key=weights.__getitem__)

    @cached_property
    def _holders(self) -> dict[str, int]:
        """The cliques that hold each column, as bits in the order of their sizes."""
        found: dict[str, int] = {}
        for rank, i in enumerate(self._smallest_first):
            for column in self.cliques[i]:
                found[column] = found.get(column, 0) | 1 << rank
        return found

    def home(self, clique: Iterable[str]) -> int | None:
        """The smallest clique of the tree that holds these columns, or None."""
        fits = (1 << len(self.cliques)) - 1
        for column in clique:
            fits &= self._holders.get(column, 0)
        return self._smallest_first[(fits & -fits).bit_length() - 1] if fits else None


def junction_tree(domain: Domain, cliques: Iterable[Clique], *, max_cells: int | None = None) -> JunctionTree:
    """A junction tree that holds every given clique and every column.

    It is made of the triangulation of fewest cells that ``Triangulation.of`` finds (Koller and
    Friedman 2009, chapter 10). No array of the size of the model is allocated.

    Args:
        domain: columns and their sizes.
        cliques: sets of columns that must each lie in one clique of the tree; repetitions are allowed.
        max_cells: largest number of cells that is allowed.

    Raises:
        KeyError: a clique names a column that is not in the domain.
        ModelTooLarge: the tree would have more than ``max_cells``.
        ValueError: a column has no places.
    """
    return JunctionTree.of(Triangulation.of(domain, cliques), max_cells=max_cells)


_MOST_LISTED = 12
"""Number of columns that a refusal lists, those of most values first."""


def _number(value: int) -> str:
    """A number in digits, or as a power of ten if it has too many digits to read."""
    if value < 10**15:
        return f"{value:,}"
    # 1233 / 4096 is just below log10(2).
    power = (value.bit_length() - 1) * 1233 >> 12
    while 10 ** (power + 1) <= value:
        power += 1
    return f"at least 10^{power}"


def _amount(size: int) -> str:
    """A number of bytes in a readable unit."""
    for unit, bytes_each in (("kB", 10**3), ("MB", 10**6), ("GB", 10**9)):
        if size < 1000 * bytes_each:
            return f"{size // bytes_each}.{size % bytes_each * 10 // bytes_each} {unit}"
    return f"{_number(size // 10**12)} TB"


def _refusal(triangulation: Triangulation, max_cells: int) -> str:
    """The refusal of a tree, in one paragraph, with the columns of most places first."""
    size, sizes = triangulation.size, triangulation.domain.sizes
    widest = max(triangulation.cliques, key=triangulation.domain.cells)
    most = sorted(widest, key=lambda c: (-sizes[c], widest.index(c)))
    listed = ", ".join(f"{c} ({sizes[c]:,})" for c in most[:_MOST_LISTED])
    columns = f"{len(widest)} column{'s' * (len(widest) > 1)}"
    more = f" and {len(widest) - _MOST_LISTED} more" if len(widest) > _MOST_LISTED else ""
    return (
        f"The model needs {_number(size.cells)} cells, {_amount(size.memory())} for each array of 64-bit "
        f"numbers over them, and {_number(max_cells)} cells are allowed. Its largest clique has "
        f"{_number(size.largest)} cells over {columns}, with their numbers of values: {listed}{more}. "
        "Give the largest of these columns fewer bins or categories, measure fewer or smaller sets of "
        "columns, or allow more cells."
    )
