"""Tables of counts with all their margins, the equations that link them, and the rounding of counts.

Tables that share a column share that column's totals. Whoever reads all of them has one system of linear
equations: each margin is the sum of the cells that it is over.

Invariant: counts are whole and none is negative; every margin agrees with its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse


Clique = tuple[str, ...]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Counts over some sets of columns, closed under margins; () is the total.

    Attributes:
        sizes: number of codes of each column.
        cliques: the sets of columns, each with the columns in the order of ``sizes``, smaller sets first.
        counts: int64[cells] of all cliques, one after the other, each in row-major order.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    counts: Counts

    @cached_property
    def places(self) -> Mapping[Clique, slice]:
        """The cells of each clique among all cells."""
        found, start = {}, 0
        for clique in self.cliques:
            stop = start + prod(self.sizes[name] for name in clique)
            found[clique] = slice(start, stop)
            start = stop
        return found

    @cached_property
    def equations(self) -> sparse.csr_matrix:
        """One row a margin's cell and column summed over: the sum of cells less the margin is zero."""
        # Loading it takes longer than any command but those that need it.
        from scipy import sparse

        rows: list[Counts] = []
        columns: list[Counts] = []
        signs: list[NDArray[np.float64]] = []
        number = 0
        for clique in self.cliques:
            shape = tuple(self.sizes[name] for name in clique)
            cells = np.arange(self.places[clique].start, self.places[clique].stop).reshape(shape)
            for axis, name in enumerate(clique):
                margin = self.places[tuple(c for c in clique if c != name)]
                sums = np.arange(margin.start, margin.stop)
                each = np.moveaxis(cells, axis, -1).reshape(len(sums), -1)
                equation = number + np.arange(len(sums))
                rows += [np.repeat(equation, each.shape[1]), equation]
                columns += [each.ravel(), sums]
                signs += [np.ones(each.size), -np.ones(len(sums))]
                number += len(sums)
        shape = (number, len(self.counts))
        if not rows:
            return sparse.csr_matrix(shape)
        found = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_matrix((np.concatenate(signs), found), shape=shape)


def margins_of(cliques: Iterable[Sequence[str]], order: Sequence[str]) -> tuple[Clique, ...]:
    """The sets of columns with all their subsets, smaller ones first, columns in a given order.

    >>> margins_of([("sex", "age")], ["age", "sex"])
    ((), ('age',), ('sex',), ('age', 'sex'))
    """
    found: set[Clique] = set()
    for clique in cliques:
        names = [name for name in order if name in clique]
        found.update(part for size in range(len(names) + 1) for part in combinations(names, size))
    return tuple(sorted(found, key=lambda part: (len(part), [order.index(name) for name in part])))


def number_of_cells(cliques: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> int:
    """The number of cells of some tables with all their margins, each margin once."""
    return sum(prod(sizes[name] for name in clique) for clique in margins_of(cliques, list(sizes)))


def linked_tables(
    cliques: Iterable[Sequence[str]], sizes: Mapping[str, int], counted: Callable[[Clique], Counts]
) -> LinkedTables:
    """The tables of some sets of columns, with all their margins; ``counted`` is in row-major order."""
    closed = margins_of(cliques, list(sizes))
    counts = [np.asarray(counted(clique), np.int64).reshape(-1) for clique in closed]
    return LinkedTables(sizes, closed, np.concatenate([np.zeros(0, np.int64), *counts]))


Method = Literal["nearest", "unbiased"]
METHODS: tuple[Method, ...] = ("nearest", "unbiased")


def rounded(counts: NDArray[np.int64], base: int, method: Method, names: Iterable[str]) -> NDArray[np.int64]:
    """The counts as multiples of a base, each less than the base from its count; multiples of it stay.

    Rounding without bias takes a count x up to the next multiple with the probability (x mod base)/base, else
    down, so that its expectation is x (Nargundkar and Saveland 1972). The choice follows from a hash of the
    cell's name and its count: one cell of one release is rounded once, in whatever table it stands.

    Args:
        counts: int64[cells], none negative.
        base: at least 2.
        method: "nearest", half a base up; or "unbiased".
        names: one name a cell, different for different cells, and the release's name in each.

    >>> rounded(np.array([0, 2, 3, 7, 10]), 5, "nearest", "abcde").tolist()
    [0, 0, 5, 5, 10]
    """
    rest = counts % base
    if method == "nearest":
        up = 2 * rest >= base
    else:
        up = np.array(
            [
                _uniform(f"{name}\n{count}") * base < r
                for name, count, r in zip(names, counts, rest, strict=True)
            ],
            dtype=np.bool_,
        )
    return counts - rest + base * up


def _uniform(text: str) -> float:
    """A number from 0 to below 1 that follows from a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2.0**48
