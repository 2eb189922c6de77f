"""The exam: the marginals whose distances from the finished synthetic table are asked for at the end.

All pairs of columns are examined, the requested statistics of three columns and more, and some sets of three
columns. So a release states the error of its own table, not that of a model.

Invariant: the marginals follow from the config and from the columns' sizes, never from answers about rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import combinations
from math import comb

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.examined import Examined

MOST_CELLS = 1 << 22
"""Largest number of cells of a marginal that is examined."""
MOST_PAIRS = 3000
"""Largest number of pairs that are examined; of more, those of fewest cells."""
TRIPLES_A_PAIR, MOST_TRIPLES = 4, 100
"""One set of three columns for so many pairs; and at most so many sets."""
_TRIES = 50
_PAIR, _TRIPLE = 2, 3


def exam_of(domain: Domain, statistics: Sequence[Clique]) -> tuple[Examined, ...]:
    """The marginals of the exam, each once; none for a table of one column.

    Args:
        domain: the columns, with all their values.
        statistics: the columns of each requested statistic.
    """
    pairs = _pairs(domain)
    asked = dict.fromkeys(domain.canonical(columns) for columns in statistics if len(columns) > _PAIR)
    named = [clique for clique in asked if domain.cells(clique) <= MOST_CELLS]
    number = min(-(-len(pairs) // TRIPLES_A_PAIR), MOST_TRIPLES)
    triples = [clique for clique in _triples(domain, number) if clique not in asked]
    return (
        *(Examined("pair", clique) for clique in pairs),
        *(Examined("statistic", clique) for clique in named),
        *(Examined("triple", clique) for clique in triples),
    )


def _pairs(domain: Domain) -> list[Clique]:
    """The pairs of fewest cells, in table order; of pairs alike, the first ones."""
    names, sizes = domain.columns, np.array(domain.shape(domain.columns), dtype=np.float64)
    first, second = np.triu_indices(len(names), 1)
    cells = sizes[first] * sizes[second]
    few = np.sort(np.argsort(cells, kind="stable")[:MOST_PAIRS])
    return [(names[first[i]], names[second[i]]) for i in few.tolist() if cells[i] <= MOST_CELLS]


def _triples(domain: Domain, number: int) -> Iterator[Clique]:
    """At most so many sets of three columns, in table order; the same for the same names and sizes."""
    columns = list(domain.columns)
    if comb(len(columns), _TRIPLE) <= number:
        drawn = set(combinations(range(len(columns)), _TRIPLE))
    else:
        drawn = set()
        for turn in range(_TRIES * number):
            # The choice is public. It follows from the names, so it repeats for a release that is resumed.
            digest = sha256(repr((columns, turn)).encode()).digest()
            at = {int.from_bytes(digest[8 * i : 8 * i + 8]) % len(columns) for i in range(_TRIPLE)}
            if len(at) == _TRIPLE and domain.cells([columns[i] for i in at]) <= MOST_CELLS:
                drawn.add(tuple(sorted(at)))
            if len(drawn) == number:
                break
    cliques = (tuple(columns[i] for i in at) for at in sorted(drawn))
    return (clique for clique in cliques if domain.cells(clique) <= MOST_CELLS)
