"""The structure of a model: its tree of cliques, paths from column to column, and a matrix of all pairs.

The matrix has one line a column, with its pairs with the columns before it; each pair has its basis and,
after an exam, its measured error.

Invariant: public facts alone, those of a bundle's manifest and of its exam.csv. A cell says what it says in
words as well as by its mark and shade, so colour and sight are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Annotated

from pydantic import Field

from dpsynth.columns.domain import Clique
from dpsynth.figures import listed
from dpsynth.statistics.exam import Basis
from dpsynth.statistics.verdict import MOST_SHOWN, NO_VERDICT, OUTCOMES, USES, Verdict

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


@dataclass(frozen=True)
class TreeClique:
    """A clique of a model's tree.

    Attributes:
        columns: its columns, in their order in the table.
        on: the position of the clique that it hangs on; None where it hangs on none.
    """

    columns: Clique
    on: Annotated[int, Field(ge=0)] | None


def branches_of(cliques: Sequence[TreeClique]) -> tuple[Branch, ...]:
    """The trees of some cliques, the largest first.

    >>> one, = branches_of([TreeClique(("a", "b"), None), TreeClique(("b", "c"), 0)])
    >>> one.new, one.branches[0].shared, one.branches[0].new
    (('a', 'b'), ('b',), ('c',))
    """
    below: dict[int | None, list[int]] = {}
    for spot, one in enumerate(cliques):
        below.setdefault(one.on, []).append(spot)

    def branch(spot: int, above: Clique) -> Branch:
        clique = cliques[spot].columns
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
        before = {start: start}
        for name in (queue := [start]):
            for clique in self._holding.get(name, ()):
                fresh = [c for c in clique if c not in before]
                before |= dict.fromkeys(fresh, name)
                queue += fresh
        return before


MARKS: Mapping[str, tuple[str, str]] = {
    "measured": ("●", "measured together"),
    "public": ("■", "stated as public"),
    "earlier": ("◆", "found together in earlier releases or a public table only"),
    "through others": ("○", "not measured together: related through other columns only"),
    "independent": ("·", "taken to be independent"),
}
"""The mark of each basis, and its meaning."""

_SHADES: Mapping[str, float] = {"measured": 0.75, "public": 0.75, "earlier": 0.6, "through others": 0.25}

_MOST_LISTED = 50
"""Pairs that are listed in place of a matrix."""

_CLASSES = ("use", "care", "dont", "use", "dont", "care")
COLOURS: Mapping[str, str] = dict(zip((*USES, *OUTCOMES), _CLASSES, strict=True))
"""The class of each verdict, and of each outcome of a criterion, in the page's style."""

_UNMEASURED = 0.5
"""Shade of a verdict without a measured error."""


@dataclass(frozen=True)
class PairError:
    """The measured error of a pair: the share of rows that would have to change, with its 95 % limits."""

    error: float
    low: float
    high: float


def relation_in_words(relations: Basis, paths: Paths, one: str, other: str) -> tuple[str, str]:
    """The basis of a pair, and what it means in words, with the columns between the two."""
    found = relations.of((one, other))
    path = paths.between(one, other) if found == "through others" else None
    return found, f"not measured together: related through {listed(path)} only" if path else MARKS[found][1]


@dataclass(frozen=True)
class PairCell:
    """One pair: a short mark, the same in words, a shade from 0 to 1, a figure beside the mark, and a colour.

    A colour is the name of a class of the page's style; "" is the usual one.
    """

    mark: str
    words: str
    shade: float = 0.0
    figure: str = ""
    colour: str = ""


@dataclass(frozen=True)
class PairMatrix:
    """The lower triangle of a matrix: ``lines`` hold each column's name and its cells."""

    names: tuple[str, ...]
    lines: tuple[tuple[str, tuple[PairCell, ...]], ...]

    @property
    def folded(self) -> bool:
        return len(self.names) > 30


def pair_matrix(names: Sequence[str], cell: Callable[[str, str], PairCell]) -> PairMatrix | None:
    """The matrix of some columns; None of so many that nobody would find a pair in it.

    Args:
        names: the columns, in order.
        cell: the cell of a pair; the first name stands earlier in ``names``.
    """
    if len(names) > MOST_SHOWN:
        return None
    lines = tuple(
        (name, tuple(cell(other, name) for other in names[:spot])) for spot, name in enumerate(names)
    )
    return PairMatrix(tuple(names), lines)


@dataclass(frozen=True)
class PairView:
    """The matrix of all pairs, the legend of its marks, and how many pairs have each.

    Attributes:
        legend: mark, meaning and number of pairs of each basis that some pair has.
        examined: number of pairs with a measured error.
        verdicts: verdict, its class, and number of pairs.
        largest: in place of a matrix, the examined pairs of the largest measured errors, in words.
    """

    columns: int
    matrix: PairMatrix | None
    legend: tuple[tuple[str, str, int], ...]
    examined: int
    verdicts: tuple[tuple[str, str, int], ...] = ()
    largest: tuple[str, ...] = ()


def pair_view(
    names: Sequence[str],
    relations: Basis,
    errors: Mapping[frozenset[str], PairError],
    verdict: Verdict = NO_VERDICT,
) -> PairView:
    """The matrix of all pairs of some columns, coloured by the verdict: the larger an error, the deeper."""
    paths = Paths((*relations.measured, *relations.public, *relations.earlier))
    judged = {frozenset(pair.columns): pair.verdict for pair in verdict.pairs}

    def cell(one: str, other: str) -> PairCell:
        basis, words = relation_in_words(relations, paths, one, other)
        error = errors.get(frozenset((one, other)))
        mark, found = MARKS[basis][0], judged.get(frozenset((one, other)))
        said = f"{one} and {other}: {f'{found}; ' if found else ''}{words}"
        colour = COLOURS[found] if found else ""
        if error is None:
            shade = _UNMEASURED if found else 0.0 if errors else _SHADES.get(basis, 0.0)
            return PairCell(mark, said, shade, "", colour)
        off, low, high = (f"{100 * share:.1f}" for share in (error.error, error.low, error.high))
        said = f"{said}; {off} % of the rows off ({low} to {high} %)"
        return PairCell(mark, said, sqrt(error.error), f"{100 * error.error:.0f}", colour)

    counted = Counter(map(relations.of, combinations(names, 2)))
    legend = tuple(
        (mark, meaning, counted[basis]) for basis, (mark, meaning) in MARKS.items() if basis in counted
    )
    matrix = pair_matrix(names, cell)
    place = {name: spot for spot, name in enumerate(names)}
    worst = [] if matrix else sorted(errors, key=lambda pair: -errors[pair].error)[:_MOST_LISTED]
    largest = [cell(*sorted(pair, key=place.__getitem__)).words for pair in worst]
    found = Counter(judged.values())
    verdicts = tuple((use, COLOURS[use], found[use]) for use in USES if found)
    return PairView(len(names), matrix, legend, len(errors), verdicts, tuple(largest))
