"""The structure of a model: its tree of cliques for a page, and paths from column to column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from dpsynth.columns.domain import Clique
from dpsynth.model import JunctionTree

_PAIR = 2


def largest(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The maximal sets of two columns or more, each once, in the order given.

    >>> largest([("a",), ("a", "b"), ("b", "a", "c"), ("c", "d"), ("d", "c")])
    (('b', 'a', 'c'), ('c', 'd'))
    """
    first = {frozenset(clique): clique for clique in reversed(list(cliques)) if len(set(clique)) >= _PAIR}
    found = [clique for held, clique in first.items() if not any(held < other for other in first)]
    return tuple(reversed(found))


@dataclass(frozen=True)
class Branch:
    """A clique of a model's tree and the cliques that hang on it.

    Attributes:
        shared: the columns that it shares with the clique it hangs on.
        new: its other columns.
        branches: the cliques below.
    """

    shared: Clique
    new: Clique
    branches: tuple[Branch, ...] = ()


def tree_facts(tree: JunctionTree, columns: Sequence[str]) -> list[dict[str, object]]:
    """The junction tree of a model as plain JSON values, without the columns of groups.

    A clique that lies inside of the one it hangs on is left out, and what hung on it hangs there.

    Args:
        tree: the junction tree; a column of groups is named after the column of its values.
        columns: the columns of the release.

    Returns:
        One mapping a clique: its ``columns``, in their order in the table, and ``on``, the position of the
        clique that it hangs on; None where it hangs on none.
    """
    order = {name: place for place, name in enumerate(columns)}
    of = {name: name if name in order else name.rpartition(" (groups")[0] for name in tree.domain.columns}
    members = [{of[name] for name in clique} & order.keys() for clique in tree.cliques]
    parents: dict[int, int] = {edge.child: edge.parent for edge in tree.edges}
    inside = {0: 0}
    kept = [0]
    for child, parent in parents.items():
        on = inside[parent]
        if members[child] <= members[on]:
            inside[child] = on
            continue
        inside[child] = child
        if members[on] < members[child]:
            # The larger one takes the place of the one it hangs on.
            members[on] = members[child]
            inside[child] = on
            continue
        kept.append(child)
    place = {clique: spot for spot, clique in enumerate(kept)}
    found: list[dict[str, object]] = []
    for clique in kept:
        above = inside[parents[clique]] if clique in parents else clique
        joined = above != clique and members[above] & members[clique]
        found.append(
            {
                "columns": sorted(members[clique], key=order.__getitem__),
                "on": place[above] if joined else None,
            }
        )
    return found


def branches_of(facts: Sequence[Mapping[str, object]]) -> tuple[Branch, ...]:
    """The trees that ``tree_facts`` describes, the largest first.

    >>> one, = branches_of([{"columns": ["a", "b"], "on": None}, {"columns": ["b", "c"], "on": 0}])
    >>> one.new, one.branches[0].shared, one.branches[0].new
    (('a', 'b'), ('b',), ('c',))
    """
    cliques = [tuple(str(name) for name in cast(Sequence[object], fact["columns"])) for fact in facts]
    below: dict[int | None, list[int]] = {}
    for spot, fact in enumerate(facts):
        below.setdefault(cast("int | None", fact["on"]), []).append(spot)

    def branch(spot: int, above: Clique) -> Branch:
        clique = cliques[spot]
        return Branch(
            tuple(name for name in clique if name in above),
            tuple(name for name in clique if name not in above),
            tuple(branch(child, clique) for child in below.get(spot, ())),
        )

    found = [branch(spot, ()) for spot in below.get(None, ())]
    return tuple(sorted(found, key=lambda b: (-_size(b), -len(b.new))))


def _size(branch: Branch) -> int:
    return 1 + sum(map(_size, branch.branches))


class Paths:
    """Shortest paths between columns, from clique to clique; those from one column are sought together."""

    def __init__(self, cliques: Iterable[Clique]) -> None:
        """Paths along some cliques."""
        self._holding: dict[str, list[Clique]] = {}
        self._before: dict[str, dict[str, str]] = {}
        for clique in cliques:
            for name in dict.fromkeys(clique):
                self._holding.setdefault(name, []).append(clique)

    def between(self, one: str, other: str) -> Clique | None:
        """Columns on the shortest path between two; None where there is none.

        >>> Paths((("a", "b"), ("c", "b"), ("c", "d"), ("d", "e"))).between("a", "d")
        ('b', 'c')
        """
        if one not in self._before:
            self._before[one] = self._reached(one)
        before = self._before[one]
        if other not in before:
            return None
        path = [other]
        while path[-1] != one:
            path.append(before[path[-1]])
        return tuple(reversed(path[1:-1]))

    def _reached(self, start: str) -> dict[str, str]:
        """For each column that a path leads to, the column before it."""
        before = {start: start}
        for name in (queue := [start]):
            for clique in self._holding.get(name, ()):
                fresh = [c for c in clique if c not in before]
                before |= dict.fromkeys(fresh, name)
                queue += fresh
        return before
