"""Exact counts of many cliques: each counted once, several in one pass over the rows.

A pass over the rows costs their number, whatever is counted; so cliques whose columns together
have few cells are counted as one and summed down. What was counted is kept in the smallest type
that holds the number of rows, as long as there is room; what finds no room is counted again
whenever it is asked for.

Invariant: exact and private; how passes are shared and what is kept depends on the domain, the
number of rows and the cliques asked for, never on what a row holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.table import PrivateTable
from dpsynth.domain.domain import Clique, Domain

ROOM = 1 << 28
"""Most bytes of counts that are kept."""
_MOST_SHARED = 1 << 16
"""Most cells of cliques that are counted together: the result stays in the processor's cache."""
_ROWS_A_CELL = 8
"""Rows that it takes for a cell more to be cheaper than another pass."""

Kept = NDArray[np.unsignedinteger]


@dataclass(repr=False)
class Store:
    """Counts that are kept, by a name of the coding and the clique; within a number of bytes."""

    room: int = ROOM
    kept: dict[tuple[str, Clique], Kept] = field(default_factory=dict)

    def keep(self, key: tuple[str, Clique], counts: Kept) -> None:
        """Keep counts if there is room."""
        if counts.nbytes <= self.room:
            self.room -= counts.nbytes
            self.kept[key] = counts


@dataclass(frozen=True, eq=False, repr=False)
class ExactCounts:
    """The counts of one coding of a private table.

    Attributes:
        table: the rows.
        store: where counts are kept; may be shared with other codings of the same rows.
        recoded: columns whose codes are not those of the table as it was loaded.
        coding: names these codes.
    """

    table: PrivateTable
    store: Store
    recoded: frozenset[str] = frozenset()
    coding: str = ""

    def of(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64, axes in the clique's order. Private."""
        ordered = self._ordered(clique)
        counts = self.store.kept.get(self._key(ordered))
        if counts is None:
            counts = self._compact(self.table.counts(ordered))
            self.store.keep(self._key(ordered), counts)
        return np.transpose(counts, [ordered.index(c) for c in clique]).astype(np.int64)

    def prepare(self, cliques: Iterable[Clique]) -> None:
        """Count those cliques that are not kept yet and for which there is room."""
        domain, room = self.table.domain, self.store.room
        wanted = []
        for clique in dict.fromkeys(map(self._ordered, cliques)):
            size = domain.cells(clique) * self._type.itemsize
            if self._key(clique) not in self.store.kept and size <= room:
                room -= size
                wanted.append(clique)
        most = min(_MOST_SHARED, self.table.rows // _ROWS_A_CELL)
        for union, members in _together(domain, wanted, most):
            counts = self._compact(self.table.counts(union))
            for clique in members:
                axes = tuple(i for i, c in enumerate(union) if c not in clique)
                part = counts if not axes else np.sum(counts, axis=axes, dtype=self._type)
                self.store.keep(self._key(clique), part)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {column: i for i, column in enumerate(self.table.domain.columns)}

    def _ordered(self, clique: Clique) -> Clique:
        return tuple(sorted(clique, key=self._place.__getitem__))

    @cached_property
    def _type(self) -> np.dtype[np.unsignedinteger]:
        return np.min_scalar_type(self.table.rows)

    def _compact(self, counts: NDArray[np.int64]) -> Kept:
        return counts.astype(self._type)

    def _key(self, clique: Clique) -> tuple[str, Clique]:
        return ("" if self.recoded.isdisjoint(clique) else self.coding), clique


def _together(
    domain: Domain, cliques: Sequence[Clique], most: int
) -> Iterator[tuple[Clique, Sequence[Clique]]]:
    """Cliques to be counted in one pass, each group with its union.

    Columns are put in blocks, so small that as many of them as a clique has columns have at most
    ``most`` cells together; cliques that touch the same blocks are counted in one pass.
    """
    sizes = defaultdict(list)
    for clique in cliques:
        sizes[len(clique)].append(clique)
    for ways, alike in sizes.items():
        block = _blocks(domain, {c for clique in alike for c in clique}, most ** (1 / max(ways, 1)))
        groups = defaultdict(list)
        for clique in alike:
            groups[frozenset(block[c] for c in clique)].append(clique)
        for group in groups.values():
            union = domain.canonical(c for clique in group for c in clique)
            if domain.cells(union) <= most:
                yield union, group
            else:
                yield from ((clique, [clique]) for clique in group)


def _blocks(domain: Domain, columns: Iterable[str], most: float) -> dict[str, int]:
    """A block for each column, the first in which it fits; a column too large has its own."""
    cells: list[int] = []
    found = {}
    for column in sorted(columns, key=lambda c: (-domain.sizes[c], c)):
        size = domain.sizes[column]
        at = next((i for i, n in enumerate(cells) if n * size <= most), len(cells))
        if at == len(cells):
            cells.append(1)
        cells[at] *= size
        found[column] = at
    return found
