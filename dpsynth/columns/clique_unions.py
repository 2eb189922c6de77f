"""Unions of cliques that are counted instead of the cliques themselves, each of which is then summed down.

A pass over the rows costs the number of rows for each union, whatever its cells. So cliques whose columns
together have few cells are counted as one.

Invariant: every clique lies within the union it is given with. The choice depends on public sizes, the bound
and the cliques alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from dpsynth.columns.domain import Clique, Domain

_TRIED = 64
"""Largest number of blocks among which the best one is sought that a union grows by."""

Blocks = frozenset[int]


def unions(domain: Domain, cliques: Sequence[Clique], most: int) -> Iterator[tuple[Clique, list[Clique]]]:
    """Cliques to be counted as one, each group with its union.

    Columns are put in blocks. The blocks are so small that any of them, as many as a clique has columns, have
    at most ``most`` cells together. Cliques that touch the same blocks are counted as one, and so are those
    of several such groups, as long as their blocks have few cells.

    Args:
        domain: the sizes of the columns.
        cliques: the cliques, each once.
        most: largest number of cells of a union of several cliques.
    """
    ways: dict[int, list[Clique]] = defaultdict(list)
    for clique in cliques:
        ways[len(clique)].append(clique)
    for number, alike in ways.items():
        block = _blocks(domain, {c for clique in alike for c in clique}, most ** (1 / max(number, 1)))
        members: dict[int, list[str]] = defaultdict(list)
        for column, at in block.items():
            members[at].append(column)
        cells = {at: domain.cells(columns) for at, columns in members.items()}
        groups: dict[Blocks, list[Clique]] = defaultdict(list)
        for clique in alike:
            groups[frozenset(block[c] for c in clique)].append(clique)
        groups = dict(sorted(groups.items(), key=lambda group: -len(group[0])))
        while groups:
            joined = _joined(groups, cells, most)
            group = [clique for part in joined for clique in groups.pop(part)]
            union = domain.canonical(c for clique in group for c in clique)
            if domain.cells(union) <= most:
                yield union, group
            else:
                yield from ((clique, [clique]) for clique in group)


def _joined(groups: dict[Blocks, list[Clique]], cells: dict[int, int], most: int) -> list[Blocks]:
    """The first group, and others that few more blocks bring: always the block that brings the most."""
    first = next(iter(groups))
    union, found = set(first), [first]
    room = most
    for at in first:
        room //= cells[at]
    open_blocks = sorted(at for at in cells if at not in union and cells[at] <= room)
    while open_blocks and len(first) > 1:
        brought = {
            at: [
                part
                for rest in combinations(sorted(union), len(first) - 1)
                if (part := frozenset((*rest, at))) in groups
            ]
            for at in open_blocks[:_TRIED]
        }
        best = max(brought, key=lambda at: (len(brought[at]) / cells[at] ** 0.5, -at))
        if not brought[best]:
            break
        found += brought[best]
        union.add(best)
        room //= cells[best]
        open_blocks = [at for at in open_blocks if at != best and cells[at] <= room]
    within = (frozenset(part) for few in range(1, len(first)) for part in combinations(sorted(union), few))
    return [*found, *(part for part in within if part in groups)]


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
