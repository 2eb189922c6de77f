"""Discrete domains: the number of codes of each column of a table, and groups of rare values for fewer.

Invariant: a domain and a compression are public. They come from the config or from a private answer that was
paid for, never read off the table. A row's group depends on that row's own value alone, so a count of groups
counts each row in one cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
"""An ordered set of column names; () is the clique of the total count."""


def subsets(clique: Clique, most: int | None = None) -> Iterator[Clique]:
    """The subsets of a clique by size, the empty one first, of at most so many columns."""
    for size in range((len(clique) if most is None else most) + 1):
        yield from combinations(clique, size)


@dataclass(frozen=True)
class Domain:
    """Names and sizes of discrete columns, in table order.

    >>> d = Domain({"sex": 2, "age": 100})
    >>> d.shape(("age", "sex"))
    (100, 2)
    >>> d.cells(("age", "sex"))
    200
    """

    sizes: Mapping[str, int]

    @property
    def columns(self) -> Clique:
        return tuple(self.sizes)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Sizes of a clique's columns, in the clique's order; () for the empty clique."""
        sizes = self.sizes
        return tuple([sizes[c] for c in clique])

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells of the marginal over a clique; 1 for the empty clique."""
        # A wide table has some hundred thousand pairs, and a loop is several times as fast as ``shape``.
        sizes, found = self.sizes, 1
        for c in clique:
            found *= sizes[c]
        return found

    def batches(self, cliques: Iterable[Clique], most: int) -> Iterator[list[Clique]]:
        """Batches of cliques in the order given, each of at most so many cells, or of one larger clique."""
        batch: list[Clique] = []
        cells = 0
        for clique in cliques:
            size = self.cells(clique)
            if batch and cells + size > most:
                yield batch
                batch, cells = [], 0
            batch.append(clique)
            cells += size
        if batch:
            yield batch

    @property
    def with_rows_before(self) -> Domain:
        """The domain with the columns of the row before; see ``row_before``."""
        return Domain({**self.sizes, **{row_before(c): size + 1 for c, size in self.sizes.items()}})

    def canonical(self, clique: Iterable[str]) -> Clique:
        """The clique's columns in table order, each once."""
        places = self._places
        return tuple(sorted({c for c in clique if c in places}, key=places.__getitem__))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {c: i for i, c in enumerate(self.sizes)}


def cells_of(
    columns: Mapping[str, NDArray[np.unsignedinteger]], domain: Domain, clique: Clique, rows: int
) -> NDArray[np.integer]:
    """The cell of every row in the flat array of a clique.

    Args:
        columns: the codes of some rows, by column.
    """
    if len(clique) == 1:
        return columns[clique[0]]
    cells = domain.cells(clique)
    # Narrow integers are faster to compute.
    number = np.min_scalar_type(cells) if cells < 1 << 32 else np.dtype(np.int64)
    cell = np.zeros(rows, dtype=number)
    for i, column in enumerate(clique):
        if i > 0:
            np.multiply(cell, number.type(domain.sizes[column]), out=cell)
        np.add(cell, columns[column], out=cell, casting="unsafe")
    return cell


def row_before(column: str) -> str:
    """The name of the column that holds, for each row, the value of the row before it in its unit's order.

    It has the places of the column, and one more for a row without another one before it.
    """
    return f"{column} (row before)"


StepCells = Mapping[str, NDArray[np.integer]]
"""The cell of each step of some columns, integers[codes, codes + 1]: by its code, and the one before."""
NO_STEPS: StepCells = {}


def step_of(column: str) -> str:
    """The name of the column that holds, for each row, the kind of the step from the row before to it."""
    return f"{column} (step)"


def beside_first(column: str) -> str:
    """The name of the column that holds the cell of a row and of its unit's first row, two or more before."""
    return f"{column} (first row)"


def with_rows_before(
    codes: Mapping[str, NDArray[np.unsignedinteger]], domain: Domain, before: NDArray[np.integer]
) -> dict[str, NDArray[np.unsignedinteger]]:
    """The codes of rows with those of the row before, in the smallest types that hold them.

    Args:
        before: integers[rows], the place of the row before each row; -1 for none.
    """
    found = dict(codes)
    for column, size in domain.sizes.items():
        earlier = codes[column].astype(np.min_scalar_type(size))[before]
        earlier[before < 0] = size
        found[row_before(column)] = earlier
    return found


def first_rows(before: NDArray[np.integer], max_rows: int) -> NDArray[np.integer]:
    """The place of each row's person's first row, if two or more before, int64[rows]; else -1."""
    found = np.where(before < 0, np.arange(len(before)), before)
    for _ in range(max_rows.bit_length()):
        found = found[found]
    return np.where((before < 0) | (before[before] < 0), -1, found)


FEWEST_GROUPS = 10.0
"""Groups of a column of numbers or dates, at least, if all of its rows are in rare values. A pair of ten
groups each shows a relation that the noise of a thousand cells would hide."""
GROUPS = 0.75
"""Square of the number of groups, over the ratio of all rows to those of a rare value. Noise of K x K cells
grows as their number; what K groups hide falls with it; so K grows as the root of rows over noise."""


def rare_when_ordered(rest: float, least: float, rows: float) -> float:
    """Rows below which a value of a column of numbers or dates is rare.

    Neighbours are alike there, so more values are rare than elsewhere. Only rows in rare values are cut into
    groups: a value that many rows share, such as an income of 0, stays alone and makes no group larger.

    Args:
        rest: rows in rare values; all rows if that isn't known.
        least: rows below which a value of another column is rare; 0: nothing is rare.
    """
    if least <= 0 or rest <= 0 or rows <= 0:
        return least
    groups = max(FEWEST_GROUPS * sqrt(rest / rows), sqrt(GROUPS * rest / least), 2.0)
    return max(least, rest / groups)


@dataclass(frozen=True, eq=False)
class Compression:
    """The group of each cell of a column.

    Attributes:
        groups: column to integers[cells], the group of each cell, numbered from 0 without a gap; only columns
            that have merged cells.

    Raises:
        ValueError: a column's groups are not numbered from 0 without a gap.

    >>> few = Compression({"city": np.array([0, 1, 1])})
    >>> few.coarse(Domain({"sex": 2, "city": 3})).sizes
    {'sex': 2, 'city': 2}
    """

    groups: Mapping[str, NDArray[np.integer]]

    def __post_init__(self) -> None:
        for column, groups in self.groups.items():
            whole = groups.ndim == 1 and groups.size > 0 and np.issubdtype(groups.dtype, np.integer)
            if not whole or not np.array_equal(np.unique(groups), np.arange(groups.max() + 1)):
                raise ValueError(f"the groups of column {column} must be numbered from 0 without a gap")

    def coarse(self, domain: Domain) -> Domain:
        """The compressed domain: groups for cells, the same columns in the same order.

        Raises:
            ValueError: the domain lacks a compressed column, or it has another number of cells.
        """
        for column, groups in self.groups.items():
            if domain.sizes.get(column) != groups.size:
                raise ValueError(f"column {column} has other cells than its compression")
        sizes = {c: int(self.groups[c].max()) + 1 for c in self.groups}
        return Domain({c: sizes.get(c, size) for c, size in domain.sizes.items()})

    def cells(self, domain: Domain) -> dict[str, int]:
        """Cells of each column's groups beside its values: groups times values."""
        return {c: (int(groups.max()) + 1) * domain.sizes[c] for c, groups in self.groups.items()}

    @property
    def with_rows_before(self) -> Compression:
        """The same groups, and those of the row before, where no row is a group of its own."""
        found = dict(self.groups)
        for column, groups in self.groups.items():
            found[row_before(column)] = np.append(groups, groups.max() + 1)
        return Compression(found)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the columns and their groups, independent of the order of the columns."""
        listed = {column: groups.tolist() for column, groups in self.groups.items()}
        return sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()
