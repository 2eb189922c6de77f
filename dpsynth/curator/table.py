"""The private table in codes, and the exact figures of it: counts, bounded sums, numbers of units.

An engine makes exact figures of coded rows, and knows of no price, no noise and no journal: charge, draw and
record stay with the curator, in one process, whichever engine counts. All that it makes can be added up over
parts of the rows: counts and bounded sums. Distances to estimates can't, as a sum of absolute values is no
absolute value of a sum; so they follow from counts, in ``distances``. ``PrivateTable`` counts rows that lie
in this process; the cluster wing has many of these, each with whoever holds a part of the rows.

A pass over coded rows goes through them once, block by block, and makes all that is asked for of each block
while its codes are in the processor's cache. Arrays' operations, ``bincount`` among them, release the
interpreter's lock, so threads share the rows. Figures don't depend on the blocks or the number of threads.

Invariant: figures are exact and private, the same integers whichever engine makes them; every code is inside
the public domain. Texts are kept whole, so coding them later gives the same codes as coding on loading.
Numbers of units add up over parts of the rows, as long as all rows of a unit are in one part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Weighting, whole_weight
from dpsynth.columns.column import Column, codes_of, domain_of
from dpsynth.columns.domain import (
    Clique,
    Compression,
    Domain,
    StepCells,
    beside_first,
    cells_of,
    first_rows,
    row_before,
    step_of,
    with_rows_before,
)
from dpsynth.columns.finished_table import RIGHT, Classifier
from dpsynth.columns.parities import number_of_sets, parities
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.curator.rows.coded_columns import ALL_IN_MEMORY, Room, blocks, looked_up, rows_of
from dpsynth.work_shares import telling

Counts = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)


Block = Callable[[slice], Sequence[Counts]]
"""The figures of a block of rows."""

LEAST_BLOCK, MOST_BLOCK = 1 << 16, 1 << 21
"""Rows of a block: few enough for a processor's cache, unless there are more cells than rows."""
CELLS_A_PASS = 1 << 22
"""Largest number of cells that a thread adds up at once."""
_PAYS = 1 << 19
"""Rows times cliques from which more threads save more than they cost."""


_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


def cores() -> int:
    """Number of processors that the caller may use."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _allowed.get() or found)


def largest(whole: int, negative: bool) -> int:
    """A number whose type holds all sums of numbers: the whole of them, or less than the least sum."""
    return -whole - 1 if negative else whole


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Let whatever is counted within, by this thread, take so many processors at most."""
    token = _allowed.set(threads)
    try:
        yield
    finally:
        _allowed.reset(token)


def counted(
    codes: Callable[[str, slice], NDArray[np.unsignedinteger]],
    domain: Domain,
    rows: int,
    cliques: Sequence[Clique],
    times: NDArray[np.signedinteger] | None = None,
) -> list[Counts]:
    """Exact marginals of cliques, int64 of shape ``domain.shape(clique)``, in their order. Private.

    Args:
        codes: from a column and a range of rows to their codes.
        times: the times that each row counts, integers[rows]; None: once.
    """
    found: dict[Clique, Counts] = {}
    tell = telling("counting", rows * len(set(cliques)))
    # Alike in size: a clique of many cells wants large blocks, all others small ones.
    for together in domain.batches(sorted(dict.fromkeys(cliques), key=domain.cells), CELLS_A_PASS):
        sizes = [domain.cells(clique) for clique in together]

        def figures(
            block: slice, together: list[Clique] = together, sizes: list[int] = sizes
        ) -> list[Counts]:
            columns = {c: codes(c, block) for c in {c for clique in together for c in clique}}
            long = block.stop - block.start
            weights = None if times is None else times[block]
            # Floats are exact here: a block's sum of weights is below 2^53.
            counts = [
                np.bincount(cells_of(columns, domain, clique, long), weights, size).astype(
                    np.int64, copy=False
                )
                for clique, size in zip(together, sizes, strict=True)
            ]
            tell(long * len(together))
            return counts

        sums = added_up(figures, rows, sizes)
        found |= {c: s.reshape(domain.shape(c)) for c, s in zip(together, sums, strict=True)}
    return [found[clique] for clique in cliques]


def added_up(figures: Block, rows: int, sizes: Sequence[int]) -> list[Counts]:
    """Sums of the figures of all blocks of rows.

    Args:
        figures: from a range of rows to as many arrays int64[cells] as there are sizes.
    """
    long = min(max(LEAST_BLOCK, 2 * max(sizes, default=0)), MOST_BLOCK)
    threads = min(cores(), -(-rows // long)) if rows * len(sizes) >= _PAYS else 1

    def share(thread: int) -> list[Counts]:
        sums = [np.zeros(size, dtype=np.int64) for size in sizes]
        for block in blocks(rows, long, thread, threads):
            for total, part in zip(sums, figures(block), strict=True):
                np.add(total, part, out=total)
        return sums

    if threads <= 1:
        return share(0)
    with ThreadPoolExecutor(threads, "dpsynth-count") as pool:
        shares = list(pool.map(share, range(threads)))
    return [np.sum(parts, axis=0) for parts in zip(*shares, strict=True)]


class Engine(Protocol):
    """Coded rows that can be counted, wherever they lie."""

    @property
    def domain(self) -> Domain:
        """The public domain of the columns that are coded."""

    @property
    def texts_kept(self) -> frozenset[str]:
        """Names of the columns that keep their texts, as their domains are to be found. Public."""

    @property
    def numbers_kept(self) -> frozenset[str]:
        """Names of the columns whose numbers can be summed. Public."""

    @property
    def rows(self) -> int:
        """Number of rows after contribution bounding. Private unless the relation makes it public."""

    @property
    def largest(self) -> int:
        """Largest count that a cell may have, or less than the least where some are negative. Private."""

    def counts_of(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Exact marginals, int64 of shape ``domain.shape(clique)``, from one pass over the rows. Private."""

    def sums(self, column: str, by: Clique, centring: Centring) -> NDArray[np.int64]:
        """Exact sums of bounded distances by group, int64 of shape ``domain.shape(by)``. Private."""

    def finer_counts(self, column: str, by: Clique, pieces: Pieces) -> NDArray[np.int64]:
        """Exact counts of pieces by group, int64 of shape (*``domain.shape(by)``, pieces). Private."""

    def parities(self, columns: Sequence[str], most: int) -> NDArray[np.int64]:
        """Exact parities int64[sets] of three to ``most`` columns of two places. Private."""

    def classified(self, classifier: Classifier) -> NDArray[np.int64]:
        """Exact counts of rows by class and by whether it is guessed, int64[codes, 2]. Private."""

    def texts_of(self, column: str) -> TextCounts:
        """Exact numbers of rows and units of the texts of a column that keeps them. Private."""

    def coded(self, columns: Sequence[Column]) -> Engine:
        """The same rows with codes for all columns, after all domains are found."""

    def recoded(self, compression: Compression) -> Engine:
        """The same rows with groups in place of values."""

    def weighted(self, by: Weighting) -> Engine:
        """The same rows, each counted as often as ``Neighbours.weighted`` or ``surplus`` says."""

    def with_rows_before(self, steps: StepCells, firsts: StepCells) -> Engine:
        """The same rows, each with the codes of the row before it, and the cells of some steps."""


class UnboundedEngine(Protocol):
    """All rows of the slice, before contribution bounding, wherever they lie."""

    def rows_of_units(self, first: Sequence[int]) -> NDArray[np.int64]:
        """Numbers of persons by ranges of their number of rows, int64[ranges]. Private."""

    def bounded(self, max_rows: int, key: bytes) -> Engine:
        """The rows after contribution bounding: at most so many of each person, by a secret key."""


_BLOCK = 1 << 12
"""Number of texts that are read at once: together they stay far below Arrow's limit."""


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """The cells of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], without blanks around them, each once; a missing cell is empty.
        index: int32[rows], the text of each row.
    """

    distinct: pa.LargeStringArray
    index: NDArray[np.int32]

    def of_rows(self, kept: NDArray[np.bool_], room: Room) -> Texts:
        """The texts of some rows; texts without any row left stay among the distinct ones."""
        return Texts(self.distinct, rows_of({"": self.index}, kept, room)[""])

    @property
    def trimmed(self) -> Texts:
        """The same rows, without texts that none of them has."""
        used, index = np.unique(self.index, return_inverse=True)
        return Texts(self.distinct.take(pa.array(used, pa.int32())), index.astype(np.int32, copy=False))

    def counts(self, unit: NDArray[np.int32] | None) -> TextCounts:
        """Number of rows and of units of each distinct text. Private.

        Args:
            unit: int32[rows], the unit of each row, numbered from 0; None where each row is one.
        """
        texts = len(self.distinct)
        rows = np.bincount(self.index, minlength=texts).astype(np.int64, copy=False)
        if unit is None:
            return TextCounts(self.distinct, rows, rows)
        units = int(unit.max(initial=0)) + 1
        pairs = np.unique(self.index.astype(np.int64) * units + unit)
        each = np.bincount(pairs // units, minlength=texts).astype(np.int64, copy=False)
        return TextCounts(self.distinct, rows, each)

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        return _each(self.distinct, read)


@dataclass(frozen=True, eq=False, repr=False)
class TextCounts:
    """Exact numbers of rows and of units of the texts of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], each once.
        rows: int64[texts], rows of each.
        units: int64[texts], units with rows of each.
    """

    distinct: pa.LargeStringArray
    rows: Counts
    units: Counts

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function for each distinct text; it is called on some thousands of texts at a time."""
        return _each(self.distinct, read)

    @classmethod
    def added(cls, parts: Sequence[TextCounts]) -> TextCounts:
        """The counts of all parts of the rows, of which no two share a unit."""
        together = pa.chunked_array([part.distinct for part in parts], pa.large_string())
        coded = together.combine_chunks().dictionary_encode()
        at, texts = coded.indices.to_numpy(), len(coded.dictionary)
        rows, units = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        np.add.at(rows, at, np.concatenate([part.rows for part in parts]))
        np.add.at(units, at, np.concatenate([part.units for part in parts]))
        return cls(coded.dictionary, rows, units)


def _each(distinct: pa.LargeStringArray, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
    found = [read(pa.array([], pa.string()))]
    for start in range(0, len(distinct), _BLOCK):
        # A slice keeps its offset in the whole array, which may exceed 32 bits.
        spots = pa.array(np.arange(start, min(start + _BLOCK, len(distinct))))
        found.append(read(pc.cast(distinct.take(spots), pa.string())))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows. Its repr shows nothing, and only the curator holds one.

    Attributes:
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: number of rows after contribution bounding. Private unless the relation makes it public.
        texts: the cells of each column whose domain is to be found.
        unit: int32[rows], a number for the person of each row, if there are such columns and persons.
        steps: column to int32[rows], the number of each row in steps, for columns that are summed and coded.
        groups: the group of each code, for columns whose domain is compressed.
        of_each: integers[rows], the rows that the unit of each row has; None where each row is a unit.
        bound: the contribution bound.
        times: integers[rows], the times that each row counts, which may be negative; None: once.
        before: int64[rows], the place of the row before in the unit's order, -1 for none; None without order.
        room: where coded columns may lie.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int
    texts: Mapping[str, Texts] = field(default_factory=dict)
    unit: NDArray[np.int32] | None = None
    steps: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    summed: frozenset[str] = frozenset()
    groups: Mapping[str, NDArray[np.unsignedinteger]] = field(default_factory=dict)
    of_each: NDArray[np.unsignedinteger] | None = None
    bound: int = 1
    times: NDArray[np.signedinteger] | None = None
    before: NDArray[np.int64] | None = None
    room: Room = ALL_IN_MEMORY

    @property
    def texts_kept(self) -> frozenset[str]:
        return frozenset(self.texts)

    @property
    def numbers_kept(self) -> frozenset[str]:
        return frozenset(self.steps)

    @property
    def nbytes(self) -> int:
        held = [*self.codes.values(), *self.steps.values(), *(t.index for t in self.texts.values())]
        return sum(array.nbytes for array in held) + (0 if self.of_each is None else self.of_each.nbytes)

    @property
    def largest(self) -> int:
        return self.rows if self.times is None else largest(*self.times_added)

    @property
    def times_added(self) -> tuple[int, bool]:
        """The times that rows count, without their signs; and whether some are negative. Private."""
        assert self.times is not None
        return int(np.abs(self.times).sum()), bool(self.times.min(initial=0) < 0)

    def counts_of(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return counted(self._codes_in, self.domain, self.rows, cliques, self.times)

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64 of shape ``domain.shape(clique)``. Private."""
        return self.counts_of([clique])[0]

    def sums(self, column: str, by: Clique, centring: Centring) -> NDArray[np.int64]:
        cells, bins = self.domain.cells(by), len(centring.offsets)
        offsets = np.array([*centring.offsets, 0], dtype=np.int64)

        def figures(block: slice) -> list[NDArray[np.int64]]:
            code = np.minimum(self._codes_in(column, block).astype(np.int64), bins)
            distance = np.clip(self.steps[column][block] - offsets[code], -centring.limit, centring.limit)
            columns = {c: self._codes_in(c, block) for c in by}
            cell = cells_of(columns, self.domain, by, len(code))
            # Floats are exact here: a block's sum of distances is below 2^53.
            return [np.bincount(cell, weights=distance, minlength=cells).astype(np.int64)]

        return added_up(figures, self.rows, [cells])[0].reshape(self.domain.shape(by))

    def finer_counts(self, column: str, by: Clique, pieces: Pieces) -> NDArray[np.int64]:
        number, groups = len(pieces.first), self.domain.cells(by)

        def figures(block: slice) -> list[NDArray[np.int64]]:
            code = self._codes_in(column, block)
            piece = np.searchsorted(pieces.array, self.steps[column][block], side="right") - 1
            columns = {c: self._codes_in(c, block) for c in by}
            cell = cells_of(columns, self.domain, by, len(code)).astype(np.int64) * number + piece
            return [np.bincount(cell[code < pieces.bins], minlength=groups * number).astype(np.int64)]

        shape = (*self.domain.shape(by), number)
        return added_up(figures, self.rows, [groups * number])[0].reshape(shape)

    def parities(self, columns: Sequence[str], most: int) -> NDArray[np.int64]:
        def figures(block: slice) -> list[NDArray[np.int64]]:
            codes = [self._codes_in(c, block) for c in columns]
            if self.times is None:
                return [parities(codes, most)]
            # A sum over weighted rows is one of sums over the rows that have a bit in their weight.
            times, total = self.times[block], np.zeros(number_of_sets(len(columns), most), np.int64)
            for sign in (1, -1):
                part = np.maximum(sign * times, 0)
                for bit in range(int(part.max(initial=0)).bit_length()):
                    having = part >> bit & 1 == 1
                    total += sign * parities([c[having] for c in codes], most) << bit
            return [total]

        return added_up(figures, self.rows, [number_of_sets(len(columns), most)])[0]

    def classified(self, classifier: Classifier) -> NDArray[np.int64]:
        def codes(column: str, block: slice) -> NDArray[np.unsignedinteger]:
            if column != RIGHT:
                return self._codes_in(column, block)
            return classifier.right({c: self._codes_in(c, block) for c in (target, *classifier.scores)})

        target = classifier.target
        domain = Domain({target: self.domain.sizes[target], RIGHT: 2})
        return counted(codes, domain, self.rows, [(target, RIGHT)], self.times)[0]

    def texts_of(self, column: str) -> TextCounts:
        return self.texts[column].counts(self.unit)

    def _codes_in(self, column: str, block: slice) -> NDArray[np.unsignedinteger]:
        codes = self.codes[column][block]
        return self.groups[column][codes] if column in self.groups else codes

    def recoded(self, compression: Compression) -> PrivateTable:
        """The same rows with groups in place of values; a code's group is looked up when rows are counted.

        Raises:
            ValueError: the compression is not of this table's domain, or its values are grouped already.
        """
        if self.groups:
            raise ValueError("groups can't be grouped again")
        domain = compression.coarse(self.domain)
        groups = {
            column: groups.astype(np.min_scalar_type(domain.sizes[column] - 1))
            for column, groups in compression.groups.items()
        }
        return PrivateTable(
            domain,
            self.codes,
            self.rows,
            groups=groups,
            of_each=self.of_each,
            bound=self.bound,
            times=self.times,
        )

    def coded(self, columns: Sequence[Column]) -> PrivateTable:
        """The same rows with codes for all columns, after all domains are found; no texts are kept.

        Raises:
            ValueError: the domain of a column is not found yet.
        """
        codes, steps = dict(self.codes), dict(self.steps)
        for column in columns:
            if column.name in self.texts:
                texts = self.texts[column.name]
                read = texts.each(partial(codes_of, column))
                codes[column.name] = looked_up(read, texts.index, self.room)
                if column.name in self.summed:
                    numbers = texts.each(partial(steps_in, column))
                    steps[column.name] = looked_up(numbers, texts.index, self.room)
        own = {c.name: codes[c.name] for c in columns}
        return PrivateTable(
            domain_of(columns),
            own,
            self.rows,
            steps=steps,
            summed=self.summed,
            of_each=self.of_each,
            bound=self.bound,
            before=self.before,
            room=self.room,
        )

    def with_rows_before(self, steps: StepCells, firsts: StepCells) -> PrivateTable:
        """The same rows, each with the codes of the row before it; of counts only.

        Args:
            steps: cells of columns ``step_of`` some columns; the last step of all has the last cell.
            firsts: cells of columns ``beside_first`` some columns.

        Raises:
            ValueError: the rows of a unit have no order.
        """
        if self.before is None:
            raise ValueError("the rows of a unit have no order here")
        codes = with_rows_before(self.codes, self.domain, self.before)
        sizes = dict(self.domain.with_rows_before.sizes)
        for column, cells in steps.items():
            sizes[step_of(column)] = int(cells[-1, -1]) + 1
            narrow = cells.astype(np.min_scalar_type(cells[-1, -1]))
            codes[step_of(column)] = narrow[codes[column], codes[row_before(column)]]
        far = first_rows(self.before, self.bound)
        for column, cells in firsts.items():
            sizes[beside_first(column)] = int(cells.max()) + 1
            first = np.where(far < 0, self.domain.sizes[column], codes[column][far])
            codes[beside_first(column)] = cells.astype(np.min_scalar_type(cells.max()))[codes[column], first]
        return replace(self, domain=Domain(sizes), codes=codes, texts={}, steps={}, summed=frozenset())

    def weighted(self, by: Weighting) -> PrivateTable:
        """The same rows, each counted as often as its weight or surplus says; of counts only.

        Raises:
            ValueError: rows are units, or are weighted already.
        """
        if self.of_each is None or self.times is not None:
            raise ValueError("only rows of persons have weights, and these count once")
        whole = whole_weight(self.bound)
        rows = self.of_each.astype(np.int32 if whole * self.bound < 1 << 31 else np.int64)
        times = whole // np.maximum(rows, 1)
        if by == "surplus":
            times *= 2 * rows - self.bound - 1
        return replace(self, times=times, texts={}, steps={}, summed=frozenset())


def steps_in(column: Column, texts: pa.StringArray) -> NDArray[np.int32]:
    """The number of each text in steps, within the bin of its code; 0 for a text without a bin.

    Raises:
        ValueError: the column has no numbers to be summed.
    """
    steps = column.codec.steps
    if steps is None:
        raise ValueError(f"column {column.name} has no numbers to be summed")
    codes = column.encode(texts)
    bins = len(steps.low)
    low, high = (
        np.append(steps.low, 0)[np.minimum(codes, bins)],
        np.append(steps.high, 0)[np.minimum(codes, bins)],
    )
    return np.clip(steps.of(column.values_of(texts)), low, high).astype(np.int32)
