"""The structure of measured cliques: trees for a page, and paths from column to column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpsynth.domain.domain import Clique

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
    """A column and its subtrees."""

    name: str
    branches: tuple[Branch, ...]


def forest(columns: Sequence[str], cliques: Sequence[Clique]) -> tuple[Branch, ...] | None:
    """Trees of all columns joined by the pairs, each rooted at its middle; the largest first.

    None where the cliques are not pairs that form trees; a page then shows a list.
    """
    if any(len(set(clique)) != _PAIR or not set(clique) <= set(columns) for clique in cliques):
        return None
    near: dict[str, list[str]] = {name: [] for name in columns}
    for one, other in cliques:
        near[one].append(other)
        near[other].append(one)
    groups: list[list[str]] = []
    unseen = dict.fromkeys(columns)
    while unseen:
        group = _breadth_first(next(iter(unseen)), near)
        groups.append(group)
        for name in group:
            unseen.pop(name)
    if len(cliques) != len(columns) - len(groups):
        return None
    groups.sort(key=len, reverse=True)
    return tuple(_hang(_middle(group, near), None, near) for group in groups)


def between(one: str, other: str, cliques: Sequence[Clique]) -> Clique | None:
    """Columns on the shortest path between two, from clique to clique; None where there is none.

    >>> between("a", "d", (("a", "b"), ("c", "b"), ("c", "d"), ("d", "e")))
    ('b', 'c')
    """
    came_from: dict[str, str] = {one: one}
    for name in (queue := [one]):
        for clique in cliques:
            fresh = [c for c in clique if name in clique and c not in came_from]
            came_from |= dict.fromkeys(fresh, name)
            queue += fresh
    if other not in came_from:
        return None
    path = [other]
    while path[-1] != one:
        path.append(came_from[path[-1]])
    return tuple(reversed(path[1:-1]))


def _breadth_first(start: str, near: Mapping[str, Sequence[str]]) -> list[str]:
    order, seen = [start], {start}
    for name in order:
        fresh = [other for other in dict.fromkeys(near[name]) if other not in seen]
        seen.update(fresh)
        order.extend(fresh)
    return order


def _middle(group: Sequence[str], near: Mapping[str, Sequence[str]]) -> str:
    """The centre of a tree: the last column left when leaves are removed in rounds."""
    left = {name: len(near[name]) for name in group}
    while len(left) > _PAIR:
        for leaf in [name for name, degree in left.items() if degree == 1]:
            del left[leaf]
            for other in near[leaf]:
                if other in left:
                    left[other] -= 1
    return max(left, key=lambda name: len(near[name]))


def _hang(name: str, parent: str | None, near: Mapping[str, Sequence[str]]) -> Branch:
    below = tuple(_hang(other, name, near) for other in near[name] if other != parent)
    return Branch(name, tuple(sorted(below, key=lambda branch: not branch.branches)))
