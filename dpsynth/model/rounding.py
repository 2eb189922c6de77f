"""Rounding of weights to whole numbers of rows, by integers drawn from raw random bits.

Weights become cumulative multiples of 2^-52 by a sequence of additions, divisions and truncations, which
every machine rounds alike. All further steps are integer arithmetic. So a saved model and a seed give the
same table everywhere.

Invariant: a cell of weight zero never gets a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array

Codes = NDArray[np.int64]
Bits = NDArray[np.uint64]

BITS = 52
"""Precision of probabilities, which are multiples of 2^-52."""

MOST_ROWS = 1 << 37
"""Exclusive bound on the rows that can be rounded at once without overflow."""

_HALF = np.uint64(BITS // 2)
_LOW = np.uint64((1 << BITS // 2) - 1)

_BLOCK = 1 << 19
"""Cells of weights that are processed together: arrays of 4 MB."""

_SHORT = 16
"""Length of a table's rows below which they are summed column by column."""

_DIGIT = 16
"""Bits of the numbers by which rows are sorted at a time."""

_FEW = 1 << 20
"""Rows up to which 24 random bits each make ties within a group negligibly rare; more rows have 32."""


class NoWeight(ValueError):
    """Rows in a group of which all cells have weight zero."""


def bits(rng: np.random.Generator, count: int) -> Bits:
    """Uniform 64-bit integers from the generator's raw stream, which numpy keeps; not of 32 bits."""
    if isinstance(rng.bit_generator, np.random.MT19937):
        raise ValueError("a generator with words of 64 bits is needed, such as PCG64; MT19937 has 32")
    return np.asarray(rng.bit_generator.random_raw(count), dtype=np.uint64)


def phases(rng: np.random.Generator, count: int) -> Bits:
    """Uniform integers below 2^52."""
    found = bits(rng, count)
    found >>= np.uint64(64 - BITS)
    return found


def cumulative(weights: Array) -> Bits:
    """Cumulative distribution of each row, in multiples of 2^-52, in place; ``NoWeight`` without any."""
    cells = weights.shape[1]
    if cells < _SHORT:
        for cell in range(1, cells):
            weights[:, cell] += weights[:, cell - 1]
    else:
        np.cumsum(weights, axis=1, out=weights)
    mass = weights[:, -1:].copy()
    if not mass.all():
        raise NoWeight("rows were drawn where no cell has weight: beliefs disagree on a separator")
    weights /= mass
    weights *= 2.0**BITS
    return weights.astype(np.uint64)


def rounded(reach: Bits, sizes: Codes, rng: np.random.Generator) -> Codes:
    """Whole numbers of rows for each cell: the floor or the ceiling of its expected number.

    Systematic sampling: with Q the cumulative distribution and v uniform in [0, 1), cells up to c get floor(m
    Q_c + v) of a group's m rows. Expectations are exact, as v is uniform.

    Args:
        reach: cumulative distributions, [groups, cells], multiples of 2^-52; overwritten.
        sizes: rows of each group, below 2^37.

    Returns:
        int64[groups, cells]; each row of it sums to its group's size.
    """
    size = sizes.astype(np.uint64)[:, None]
    low = reach & _LOW
    low *= size
    low += phases(rng, len(sizes))[:, None]
    low >>= _HALF
    reach >>= _HALF
    reach *= size
    reach += low
    reach >>= _HALF
    del low
    ends = reach.view(np.int64)
    counts = ends.copy()
    counts[:, 1:] -= ends[:, :-1]
    return counts


def shuffled(group: Codes, groups: int, rng: np.random.Generator) -> Codes:
    """Positions of all rows, ordered by ``group`` (below ``groups``) and at random within each group.

    Stable sorts by random bits, then by group, in digits of 8 or 16 bits: numpy sorts these by radix, several
    times as fast as whole words. A stable order is unique, so every machine finds it.
    """
    rows = len(group)
    low = np.dtype("u1" if rows <= _FEW else "<u2")
    words = bits(rng, -(-rows * (2 + low.itemsize) // 8)).astype("<u8", copy=False)
    order = np.argsort(words.view(low)[len(words.view(low)) - rows :], kind="stable")
    order = _reordered(order, words.view("<u2")[:rows])
    while groups > 1:
        order = _reordered(order, group.astype(np.uint8 if groups <= 1 << 8 else np.uint16))
        group, groups = group >> _DIGIT, -(-groups >> _DIGIT)
    return order


def permuted(count: int, rng: np.random.Generator) -> Codes:
    """The numbers below a count in random order, from the raw words of the generator."""
    return shuffled(np.zeros(count, dtype=np.int64), 1, rng)


def _reordered(order: Codes, digits: NDArray[np.unsignedinteger]) -> Codes:
    return order[np.argsort(digits[order], kind="stable")]


def position_of(codes: Mapping[str, Codes], columns: Clique, domain: Domain, rows: int) -> Codes:
    """Position of each row's codes in an array over some columns; 0 without columns."""
    found = np.zeros(rows, dtype=np.int64)
    for column in columns:
        found *= domain.sizes[column]
        found += codes[column]
    return found


def codes_of(position: Codes, columns: Clique, domain: Domain) -> dict[str, Codes]:
    """Codes at positions in an array over some columns."""
    if len(columns) < 2:
        return dict.fromkeys(columns, position)
    shape, cells = domain.shape(columns), domain.cells(columns)
    if cells < len(position):
        spots = np.unravel_index(np.arange(cells), shape)
        return {c: np.take(s, position) for c, s in zip(columns, spots, strict=True)}
    return dict(zip(columns, np.unravel_index(position, shape), strict=True))


def assigned(cells: Codes, order: Codes) -> Codes:
    """Cells of the rows in the rows' own order, from cells in another order of the rows."""
    found = np.empty_like(cells)
    found[order] = cells
    return found


def distributions(
    groups: Codes, sizes: Codes, cells: int, weights_of: Callable[[Codes], Array]
) -> Iterator[tuple[slice, Codes, Bits]]:
    """Cumulative distributions of groups, in blocks of groups to bound memory.

    ``weights_of`` gives the weights of some groups, a fresh float64[groups, cells].

    Yields:
        The slice of the groups in the block, their sizes, and their distributions.
    """
    step = max(1, _BLOCK // cells)
    for begin in range(0, len(groups), step):
        block = slice(begin, begin + step)
        yield block, sizes[block], cumulative(weights_of(groups[block]))


def drawn_cells(
    group: Codes, groups: int, cells: int, weights_of: Callable[[Codes], Array], rng: np.random.Generator
) -> Codes:
    """A cell for each row, from its group's fresh float64[groups, cells]; ``NoWeight`` if it has none."""
    if groups > 4 * len(group):
        known, rank = np.unique(group, return_inverse=True)
        return drawn_cells(rank, len(known), cells, lambda some: weights_of(known[some]), rng)
    order = shuffled(group, groups, rng)
    sizes = np.bincount(group, minlength=groups)
    visited = np.flatnonzero(sizes)
    found = np.empty(len(group), dtype=np.int64)
    begin = 0
    for _, rows_each, reach in distributions(visited, sizes[visited], cells, weights_of):
        end = begin + int(rows_each.sum())
        counts = rounded(reach, rows_each, rng).reshape(-1)
        spots = np.flatnonzero(counts)
        found[begin:end] = np.repeat(spots % cells, counts[spots])
        begin = end
    return assigned(found, order)
