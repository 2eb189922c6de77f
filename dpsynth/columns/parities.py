"""Parities of columns of two places: how far the rows are from being even and odd equally often.

The parity of a set of columns is the sum over all rows of (-1)^(sum of the row's codes). It is the number of
rows, or its negative, where one column is the exclusive or of the others, whatever pairs of them show; it is
about 0 where the columns are independent and one of them is as often 0 as 1.

Invariant: a row adds 1 to each parity or takes 1, whatever its codes are. Parities add up over parts of the
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique

FEWEST = 3
"""Columns of the smallest sets: the counts of pairs tell the parities of smaller ones."""

_WORD = 64


def parity_sets(columns: Sequence[str], most: int) -> Iterator[Clique]:
    """The sets of three to ``most`` columns: smaller ones first, then in the order of the columns."""
    for number in range(FEWEST, most + 1):
        yield from combinations(columns, number)


def number_of_sets(columns: int, most: int) -> int:
    """Number of sets of three to ``most`` of so many columns."""
    return sum(comb(columns, number) for number in range(FEWEST, most + 1))


def parities(codes: Sequence[NDArray[np.integer]], most: int) -> NDArray[np.int64]:
    """The parities int64[sets] of some rows, in the order of ``parity_sets``.

    Args:
        codes: integers[rows] of each column; any code but 0 counts as 1.
    """
    rows = len(codes[0])
    bits = np.zeros((len(codes), -(-rows // _WORD) * _WORD), dtype=np.bool_)
    for line, column in zip(bits, codes, strict=True):
        line[:rows] = column
    words = np.packbits(bits, axis=1).view(np.uint64)
    odd: list[list[NDArray[np.int64]]] = [[] for _ in range(most + 1)]

    def extend(prefix: NDArray[np.uint64], size: int, later: NDArray[np.uint64]) -> None:
        """Count the odd rows of the sets that have one column, or several, more than a prefix of a size."""
        longer = later ^ prefix
        if size + 1 >= FEWEST:
            odd[size + 1].append(np.bitwise_count(longer).sum(axis=1, dtype=np.int64))
        if size + 1 < most:
            for i in range(len(later)):
                extend(longer[i], size + 1, later[i + 1 :])

    extend(np.zeros(words.shape[1], np.uint64), 0, words)
    found = [counts for of_size in odd for counts in of_size]
    return np.asarray(rows - 2 * np.concatenate(found))
