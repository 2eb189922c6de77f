"""Chunks: a table of any length in pieces, which together are one rounded sample.

First each cell of each clique gets its whole number of rows for the entire stream. Then each
chunk takes its share of the remaining rows, rounded again, and leaves the rest to later chunks.
Remaining counts are whole numbers that sum to the remaining rows, so errors do not add up. The error of
the whole stream is that of one rounded sample, below one row a cell given its separator, for any number
of chunks. Counts do not depend on the order of rows, so a chunk in the middle is reached by counts alone.

Invariant: for every clique, the remaining rows of a group's cells sum to the remaining rows of the
group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.conditioning import Predicate
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import Edge
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.rounding import (
    MOST_ROWS,
    Codes,
    assigned,
    bits,
    codes_of,
    distributions,
    position_of,
    rounded,
    shuffled,
)
from dpsynth.model.sampling import METHODS, at, sample

_LARGEST_CHUNK = 1 << 25
"""Largest number of rows of a chunk; products with the remaining rows fit 63 bits."""


@dataclass(frozen=True, eq=False)
class _Reserve:
    """Remaining rows of a clique's cells, for the cells that get any.

    Attributes:
        known, new: columns of the separator, and the other columns.
        groups: int64, separator values that have rows, ascending.
        starts: int64[groups + 1], index of the first cell of each group.
        cells: int64, position of each cell among the cells of its group; ascending in each group.
        left: int64, remaining rows of each cell.
    """

    known: Clique
    new: Clique
    groups: Codes
    starts: Codes
    cells: Codes
    left: Codes

    def codes(self, domain: Domain) -> dict[str, Codes]:
        """The code of each cell in every column of the clique."""
        group = np.repeat(self.groups, np.diff(self.starts))
        return codes_of(group, self.known, domain) | codes_of(self.cells, self.new, domain)

    def take(self, sizes: Codes, rng: np.random.Generator) -> Codes:
        """Rows of each cell in a chunk, which are taken from the remaining rows.

        Systematic sampling from the remaining rows: with L the cumulative remaining rows of a group, R
        of them in all, and u uniform below R, cells up to c get floor((m L_c + u) / R) of the
        chunk's m rows. No cell gets more than its remaining rows.

        Args:
            sizes: int64[groups], rows of each group in this chunk.
            rng: generator.
        """
        ends = np.cumsum(self.left)
        starts = self.starts[:-1]
        before = ends[starts] - self.left[starts]
        rest = ends[self.starts[1:] - 1] - before
        phase = _below(np.maximum(rest, 1), rng)
        lengths = np.diff(self.starts)
        ends -= np.repeat(before, lengths)
        ends *= np.repeat(sizes, lengths)
        ends += np.repeat(phase, lengths)
        ends //= np.repeat(np.maximum(rest, 1), lengths)
        counts = ends.copy()
        counts[1:] -= ends[:-1]
        counts[starts] = ends[starts]
        self.left[:] -= counts
        return counts


def _below(bounds: Codes, rng: np.random.Generator) -> Codes:
    """Uniform integers below bounds of at most 2^37, to within 2^-26."""
    return (bits(rng, len(bounds)) % bounds.astype(np.uint64)).astype(np.int64)


def _allotted(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> list[_Reserve]:
    """Number of rows of each cell in the entire stream, for each clique in the tree's order."""
    domain = model.tree.domain
    found: dict[int, _Reserve] = {}
    steps = [(0, 0, ()), *((e.child, e.parent, e.separator) for e in model.tree.edges)]
    for index, parent, known in steps:
        clique = model.tree.cliques[index]
        new = tuple(c for c in clique if c not in known)
        table = model.beliefs[index].transpose([clique.index(c) for c in (*known, *new)])
        groups, sizes = np.zeros(1, dtype=np.int64), np.array([rows])
        if index != parent:
            position = position_of(found[parent].codes(domain), known, domain, len(found[parent].cells))
            groups, feed = np.unique(position, return_inverse=True)
            sizes = _summed(feed, found[parent].left, len(groups))

        def weights_of(some: Codes, table: Array = table, known: Clique = known) -> Array:
            return at(table, tuple(codes_of(some, known, domain).values()), len(some)).reshape(len(some), -1)

        cells, counts, lengths = [], [], []
        for _, rows_each, reach in distributions(groups, sizes, domain.cells(new), weights_of):
            whole = rounded(reach, rows_each, rng)
            group, cell = np.nonzero(whole)
            cells.append(cell)
            counts.append(whole[group, cell])
            lengths.append(np.bincount(group, minlength=len(rows_each)))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        found[index] = _Reserve(known, new, groups, starts, np.concatenate(cells), np.concatenate(counts))
    return [found[index] for index in range(len(found))]


def _summed(places: Codes, counts: Codes, length: int) -> Codes:
    """Sums of counts by place; exact, since they stay far below 2^53."""
    return np.bincount(places, weights=counts, minlength=length).astype(np.int64)


def sample_chunks(
    model: MarkovRandomField,
    rows: int,
    seed: int,
    *,
    chunk: int = 1 << 20,
    method: str = "rounding",
    given: Predicate | None = None,
    start: int = 0,
) -> Iterator[dict[str, Codes]]:
    """A table of any length, drawn in chunks.

    With rounding, all chunks together are one rounded sample: in the whole stream each cell of a
    clique has the floor or the ceiling of its expected number of rows given its separator.
    Each chunk by itself follows the model too, with an error about as small.

    Chunk t follows from the model, the rows, the seed and the chunk size, on every machine.
    To start with chunk t takes one pass over the counts, without rows, for each chunk before it.

    Memory: that of ``sample`` for one chunk, and 24 bytes for each cell of the tree that gets
    rows, and 8 more for each edge below it.

    Args:
        model: the Markov random field.
        rows: number of rows of the whole stream, below 2^37.
        seed: seed of every draw.
        chunk: number of rows of each chunk but the last, up to 2^25.
        method: "rounding", or "independent" for rows independent of each other.
        given: a code, several codes, or a mask, of any columns, for all rows.
        start: number of chunks to leave out at the beginning.

    Yields:
        int64 codes of every column of the domain, in table order.

    Raises:
        ImpossibleEvidence: if the model gives probability zero to ``given``.
        ValueError: for an unknown method, or a number out of range.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if not 0 <= rows < MOST_ROWS or not 0 < chunk <= _LARGEST_CHUNK or start < 0:
        raise ValueError(
            f"rows must be in 0 to {MOST_ROWS - 1}, chunk in 1 to {_LARGEST_CHUNK}, start not below 0"
        )
    source = model.given(given) if given else model
    return (draw() for draw in _chunks(source, rows, seed, chunk, method, start))


def chunk_draws(
    model: MarkovRandomField, rows: int, seed: int, *, chunk: int
) -> Iterator[Callable[[], dict[str, Codes]]]:
    """The chunks of ``sample_chunks``, each as a function that draws it; any thread may call it.

    Args:
        model: the Markov random field.
        rows: number of rows of the whole stream, below 2^37.
        seed: seed of every draw.
        chunk: number of rows of each chunk but the last, up to 2^25.
    """
    return _chunks(model, rows, seed, chunk, "rounding", 0)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _chunks(
    model: MarkovRandomField, rows: int, seed: int, chunk: int, method: str, start: int
) -> Iterator[Callable[[], dict[str, Codes]]]:
    sizes = [min(chunk, rows - begin) for begin in range(0, rows, chunk)]
    if method == "independent":
        for number, size in enumerate(sizes[start:], start):
            yield partial(sample, model, size, _generator(seed, 1, number), method=method)
        return
    if not sizes:
        return
    domain, edges = model.tree.domain, model.tree.edges
    reserves = _allotted(model, rows, _generator(seed, 0))
    feeds = {}
    for edge in edges:
        above, here = reserves[edge.parent], reserves[edge.child]
        position = position_of(above.codes(domain), edge.separator, domain, len(above.cells))
        feeds[edge.child] = np.searchsorted(here.groups, position)
    for number, size in enumerate(sizes):
        rng = _generator(seed, 1, number)
        counts = {0: reserves[0].take(np.array([size]), rng)}
        for edge in edges:
            here = reserves[edge.child]
            taken = _summed(feeds[edge.child], counts[edge.parent], len(here.groups))
            counts[edge.child] = here.take(taken, rng)
        if number >= start:
            yield partial(_arranged, domain, reserves, edges, counts, size, _generator(seed, 2, number))


def _arranged(
    domain: Domain,
    reserves: list[_Reserve],
    edges: Sequence[Edge],
    counts: Mapping[int, Codes],
    size: int,
    rng: np.random.Generator,
) -> dict[str, Codes]:
    """Rows in random order with the given counts of cells."""
    drawn: dict[str, Codes] = {}
    for index in (0, *(e.child for e in edges)):
        here = reserves[index]
        if not here.new:
            continue
        group = position_of(drawn, here.known, domain, size)
        cell = assigned(np.repeat(here.cells, counts[index]), shuffled(group, domain.cells(here.known), rng))
        drawn |= codes_of(cell, here.new, domain)
    return {c: drawn[c] for c in domain.columns}
