"""The engine of partitions: each worker counts the rows that it holds, and the counts are added up.

How data flow:

    pieces of the source -> coded rows, kept by the worker that read them              each
    coded rows -> all rows of a person on one worker (only where persons are the unit) regrouped
    coded rows -> at most k rows of each person                                        each
    coded rows -> counts of the cliques -> sums of two counts, of four, of eight ...   combined

A piece is what a worker can read by itself: some row groups of a Parquet file or folder. A CSV file is one
piece, as quotes decide where its rows end, and so is the query of a database, whose rows have no order.

A cluster has to offer three operations, those of ``Workers``. Spark has them as map, group by key and tree
reduce, Beam as Map, GroupByKey and CombineGlobally. The engine of one process codes, bounds and counts the
rows of each partition.

Invariant: figures are the same integers as those of one process. Every row is in one piece, and a worker that
is lost costs nothing but time: its piece is read again, and counted once. The number of pieces is bounded by
the number of workers, so it tells nothing of a large table. Nothing of partitions, counts and the key enters
a name, a message or a file; the path of a file within a folder may be a cell, so no repr shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter, methodcaller
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours, Weighting
from dpsynth.accounting.slices import Slice
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique, Compression, Domain, StepCells
from dpsynth.columns.finished_table import Classifier
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.config.files.form import FileForm
from dpsynth.config.files.opening import ParquetPart
from dpsynth.config.files.place import Place
from dpsynth.curator.loaded_rows import LoadedRows, joined, load_rows
from dpsynth.curator.rows.cell_texts import Batch
from dpsynth.curator.rows.coded_columns import Room
from dpsynth.curator.rows.database_table import DatabaseTable
from dpsynth.curator.rows.files import read_cells, read_row_groups, row_groups
from dpsynth.curator.table import PrivateTable, TextCounts, largest
from dpsynth.curator.units import UnitSample
from dpsynth.pipeline.inputs import LinkedRows


@dataclass(frozen=True, repr=False)
class WholeFile:
    """A file that is read by one worker.

    Attributes: see ``read_cells``.
        start: the place of its first row in the table.
    """

    path: Place
    columns: Sequence[str]
    form: FileForm
    keep_broken: bool
    keep_empty: bool
    start: int = 0

    def batches(self) -> Iterator[Batch]:
        broken, empty = self.keep_broken, self.keep_empty
        return read_cells(self.path, self.columns, self.form, keep_broken=broken, keep_empty=empty)


@dataclass(frozen=True, repr=False)
class WholeTable:
    """The rows of a query or of linked tables, which one worker reads. Its repr shows nothing of an address.

    Attributes:
        table: the database and the query, or the linked tables.
        columns: names of the columns to read.
        start: the place of its first row in the table.
    """

    table: DatabaseTable | LinkedRows
    columns: Sequence[str]
    start: int = 0

    def batches(self) -> Iterator[Batch]:
        return self.table.batches(self.columns)


@dataclass(frozen=True, repr=False)
class RowGroups:
    """Row groups of a Parquet file or folder that follow on one another.

    Attributes: see ``read_row_groups``.
        start: the place of their first row in the table.
    """

    path: Place
    columns: Sequence[str]
    form: FileForm
    chosen: Sequence[tuple[ParquetPart, Sequence[int]]]
    start: int

    def batches(self) -> Iterator[Batch]:
        return read_row_groups(self.path, self.columns, self.form, self.chosen)


def pieces_of_file(
    path: Place,
    columns: Sequence[str],
    form: FileForm,
    most: int,
    *,
    keep_broken: bool,
    keep_empty: bool = False,
) -> list[WholeFile] | list[RowGroups]:
    """The pieces of a file or a folder, in its order.

    Args:
        path: the file or the folder.
        columns: names of the columns to read.
        form: the form of the file, as it was declared.
        most: largest number of pieces.
        keep_broken: see ``read_cells``.
        keep_empty: see ``read_cells``.

    Raises:
        SourceError: a file can't be opened, or is no table.
    """
    # Where totals are left out, the place of a row follows from the rows before it.
    groups = row_groups(path, form) if form.kind == "parquet" and not form.totals else []
    if len(groups) < 2:
        return [WholeFile(path, columns, form, keep_broken, keep_empty)]
    whole = sum(rows for _, _, rows in groups)
    found: list[list[tuple[ParquetPart, list[int]]]] = []
    starts: list[int] = []
    before = 0
    for part, group, rows in groups:
        # As many rows in each piece, but for what a group can't be divided.
        if not found or (len(found) < most and before * most >= len(found) * whole):
            found.append([])
            starts.append(before)
        if not found[-1] or found[-1][-1][0] is not part:
            found[-1].append((part, []))
        found[-1][-1][1].append(group)
        before += rows
    return [
        RowGroups(path, columns, form, chosen, start) for chosen, start in zip(found, starts, strict=True)
    ]


Counts = NDArray[np.int64]

T = TypeVar("T")

Parts = Sequence[Any]
"""Values that lie with workers; what stands here for them is the workers' own."""

_HALF = np.uint64(0xFFFFFFFF)


class Workers(Protocol):
    """Processes that hold values and apply functions to them, which can be pickled and have no effects."""

    def each(self, make: Callable[[Any], object], parts: Parts) -> Parts:
        """The outcome of a function for each part, which stays with the workers."""

    def regrouped(
        self,
        split: Callable[[Any, int], Sequence[object]],
        join: Callable[[Sequence[Any]], object],
        parts: Parts,
    ) -> Parts:
        """As many parts as before: each is split into as many, and those of one place are joined in order."""

    def combined(self, figure: Callable[[Any], T], add: Callable[[Sequence[T]], T], parts: Parts) -> T:
        """The figures of all parts, added up in any order; each part counts once."""


class Piece(Protocol):
    """A piece of the private table that a worker reads by itself. Its repr shows nothing."""

    @property
    def start(self) -> int:
        """The place of its first row in the table, from 0."""

    def batches(self) -> Iterable[Batch]: ...


@dataclass(frozen=True, repr=False)
class Coding:
    """The rules, and the key, by which a worker codes a piece. Its repr shows nothing.

    Attributes:
        columns, neighbours, key, part, summed: see ``load_rows``.
        sample: the secret sample of units; None for all of them.
        room: a function that tells a worker where coded rows may lie.
    """

    columns: Sequence[Column]
    neighbours: Neighbours
    key: bytes
    part: Slice | None
    summed: frozenset[str]
    sample: UnitSample | None
    room: Callable[[], Room]

    def coded(self, piece: Piece) -> LoadedRows:
        """The rows of a piece, coded by whoever reads it."""
        batches = piece.batches()
        if self.sample is not None:
            batches = self.sample.of(batches, self.neighbours, piece.start)
        near, room = self.neighbours, self.room()
        return load_rows(batches, self.columns, near, self.key, self.part, self.summed, room)

    def joined(self, some: Sequence[LoadedRows]) -> LoadedRows:
        """The rows of some persons, in the order of the pieces that they are from."""
        return joined(some, self.room())


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedRows:
    """All rows of the slice, before contribution bounding, by the workers that hold them.

    Attributes:
        workers: the workers.
        coding: the rules by which the rows are coded.
        parts: coded rows (``LoadedRows``); all rows of a person are in one part.
    """

    workers: Workers
    coding: Coding
    parts: Parts

    @classmethod
    def read(cls, workers: Workers, pieces: Sequence[Piece], coding: Coding) -> PartitionedRows:
        """The rows of all pieces, once they are read and, where persons are units, grouped by person.

        Raises:
            SourceError: a worker can't read its piece.
        """
        parts = workers.each(coding.coded, pieces)
        if coding.neighbours.person is not None:
            parts = workers.regrouped(by_person, coding.joined, parts)
        # What is wrong with a source is to be known before a question is charged.
        workers.combined(_no_figure, _no_figure, parts)
        return cls(workers, coding, parts)

    def rows_of_units(self, first: Sequence[int]) -> Counts:
        """Numbers of persons by ranges of their number of rows, each worker's added up. Private."""
        return self.workers.combined(methodcaller("rows_of_units", tuple(first)), _added, self.parts)

    def bounded(self, max_rows: int, key: bytes) -> PartitionedTable:
        """The rows after contribution bounding, each person's by the worker that holds them all."""
        columns = self.coding.columns
        parts = self.workers.each(methodcaller("bounded", max_rows, key), self.parts)
        texts = frozenset(c.name for c in columns if c.kept_as_text)
        return PartitionedTable(
            domain_of(c for c in columns if not c.kept_as_text),
            self.workers,
            parts,
            texts,
            self.coding.summed,
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedTable:
    """Coded rows by the workers that hold them, an ``Engine``.

    Attributes:
        domain: the public domain of the columns that are coded.
        workers: the workers.
        parts: tables of coded rows (``PrivateTable``).
        texts_kept: see ``Engine``.
        summed: names of the columns that are summed.
        compression: the groups in place of values; None without any.
        weighting: the way in which rows count; None: once each.
    """

    domain: Domain
    workers: Workers
    parts: Parts
    texts_kept: frozenset[str]
    summed: frozenset[str]
    compression: Compression | None = None
    weighting: Weighting | None = None

    @property
    def numbers_kept(self) -> frozenset[str]:
        return self.summed - self.texts_kept if self.compression is None else frozenset()

    @cached_property
    def rows(self) -> int:
        rows: int = self.workers.combined(attrgetter("rows"), sum, self.parts)
        return rows

    @cached_property
    def largest(self) -> int:
        if self.weighting is None:
            return self.rows
        return largest(
            *self.workers.combined(self._coded(attrgetter("times_added")), _times_added, self.parts)
        )

    def counts_of(self, cliques: Sequence[Clique]) -> list[Counts]:
        """Exact marginals, each worker's added up. Private."""
        figure = self._coded(methodcaller("counts_of", tuple(cliques)))
        return self.workers.combined(figure, _added_each, self.parts)

    def sums(self, column: str, by: Clique, centring: Centring) -> Counts:
        """Exact sums of bounded distances by group, each worker's added up. Private."""
        return self.workers.combined(methodcaller("sums", column, by, centring), _added, self.parts)

    def finer_counts(self, column: str, by: Clique, pieces: Pieces) -> Counts:
        """Exact counts of pieces by group, each worker's added up. Private."""
        return self.workers.combined(methodcaller("finer_counts", column, by, pieces), _added, self.parts)

    def parities(self, columns: Sequence[str], most: int) -> Counts:
        """Exact parities of sets of columns, each worker's added up. Private."""
        figure = self._coded(methodcaller("parities", tuple(columns), most))
        return self.workers.combined(figure, _added, self.parts)

    def classified(self, classifier: Classifier) -> Counts:
        """Exact counts of rows by class and by whether it is guessed, each worker's added up. Private."""
        return self.workers.combined(self._coded(methodcaller("classified", classifier)), _added, self.parts)

    def texts_of(self, column: str) -> TextCounts:
        """Exact numbers of rows and units of the texts of a column, each worker's added up. Private."""
        found: TextCounts = self.workers.combined(
            methodcaller("texts_of", column), TextCounts.added, self.parts
        )
        return found

    def coded(self, columns: Sequence[Column]) -> PartitionedTable:
        parts = self.workers.each(methodcaller("coded", tuple(columns)), self.parts)
        return replace(self, domain=domain_of(columns), parts=parts, texts_kept=frozenset())

    def recoded(self, compression: Compression) -> PartitionedTable:
        """The same rows with groups in place of values, which are looked up when rows are counted.

        Raises:
            ValueError: the values are grouped already.
        """
        if self.compression is not None:
            raise ValueError("groups can't be grouped again")
        domain = compression.coarse(self.domain)
        return replace(self, domain=domain, compression=compression)

    def with_rows_before(self, steps: StepCells, firsts: StepCells) -> PartitionedTable:
        raise ValueError("the rows of a unit have no order here")

    def weighted(self, by: Weighting) -> PartitionedTable:
        """The same rows, each counted as often as its weight or surplus says when rows are counted.

        Raises:
            ValueError: they count so already.
        """
        if self.weighting is not None:
            raise ValueError("rows are weighted once")
        return replace(self, weighting=by, texts_kept=frozenset(), summed=frozenset())

    def _coded(self, figure: Callable[[PrivateTable], T]) -> Callable[[PrivateTable], T]:
        """The figure of a part once its values are grouped and its rows weighted."""
        return partial(_figure, figure=figure, compression=self.compression, weighting=self.weighting)


def by_person(rows: LoadedRows, number: int) -> list[LoadedRows]:
    """Some rows by the parts that their persons belong to, each part in the order of the rows.

    The part of a person follows from the code of the person, which is a keyed hash. Other bits of it than
    those by which ``contribution_bounding`` forms groups decide.

    Args:
        rows: coded rows with their persons.
        number: number of parts.
    """
    assert rows.persons is not None
    place = (rows.persons & _HALF) * np.uint64(number) >> np.uint64(32)
    parts = (rows.of_rows(place == part) for part in range(number))
    return [replace(part, texts={name: t.trimmed for name, t in part.texts.items()}) for part in parts]


def _figure(
    table: PrivateTable,
    figure: Callable[[PrivateTable], T],
    compression: Compression | None,
    weighting: Weighting | None,
) -> T:
    table = table if weighting is None else table.weighted(weighting)
    return figure(table if compression is None else table.recoded(compression))


def _times_added(parts: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    return sum(whole for whole, _ in parts), any(negative for _, negative in parts)


def _added(parts: Sequence[Counts]) -> Counts:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _added_each(parts: Sequence[list[Counts]]) -> list[Counts]:
    return [_added(of_clique) for of_clique in zip(*parts, strict=True)]


def _no_figure(_: object) -> None:
    return None
