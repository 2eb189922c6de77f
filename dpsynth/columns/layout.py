"""The layout of the synthetic table: its columns in their order, with the source of each.

A column is drawn from the model, made up, or computed from other columns. Only the first kind is read from
the private table. Computed columns are neither read nor modelled, so they cost nothing and no row contradicts
them.

Invariant: the table's columns, their types and their order follow from the config alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codec, Codes
from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import Expression, Kind, Operand, references
from dpsynth.columns.identifier import Surrogates
from dpsynth.columns.joint_density import JointDensity, Tilt, arranged, strongest, tilted
from dpsynth.columns.moment_parts import PartCodec, Parted, parts_of
from dpsynth.columns.sequences import Sequences

T = TypeVar("T")


def in_order(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """The results of tasks done by threads, in the order of the tasks.

    A task is taken from ``tasks`` when a thread is free for it, so no more are under way than there are
    threads. The first error of a task is raised in its turn, and no further task begins. One thread is the
    caller's own.
    """
    if threads <= 1:
        yield from (task() for task in tasks)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(task))
                if len(waiting) == threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


Part = Column | Surrogates | Derived


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows of the synthetic table, with the cells that their values were drawn from.

    Attributes:
        table: the typed rows.
        codes: integers[rows] for each of the layout's columns, but for those with computed values; unsigned
            ones only where ``Column.one_text_a_code`` holds.
        units: int64[rows], the person of each row, where rows follow each other.
    """

    table: pa.Table
    codes: Mapping[str, Codes]
    units: Codes | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Layout:
    """The synthetic table's columns in order.

    Attributes:
        joint: joint densities of columns inside their bins, the strongest first.
        tilts: tilts of densities inside bins by group, at most one a column.
    """

    parts: tuple[Part, ...]
    joint: tuple[JointDensity, ...] = ()
    tilts: tuple[Tilt, ...] = ()

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Layout:
        """The layout of modelled columns, of which some may be parts of moments of others."""
        return cls(tuple(column for column in columns if not column.part_of))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        own = [part for part in self.parts if isinstance(part, Column)]
        return tuple(c for column in own for c in (column, *parts_of(column)))

    @cached_property
    def named(self) -> Mapping[str, Part]:
        """All parts of the layout by name, with the columns of parts of moments."""
        return {part.name: part for part in (*self.columns, *self.parts)}

    @cached_property
    def modelled(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def parted(self) -> tuple[Parted, ...]:
        own = [part for part in self.parts if isinstance(part, Column)]
        return tuple(Parted(column, found) for column in own if (found := parts_of(column)))

    def reconciled(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> Mapping[str, Codes]:
        """Codes of rows in which each moment that isn't missing can have the parts of its row.

        Args:
            codes: codes of each of ``columns``, one a row.
        """
        for parted in self.parted:
            codes = {**codes, **parted.reconciled(codes, rng)}
        return codes

    def found(self, codecs: Mapping[str, Codec]) -> Layout:
        return Layout(
            tuple(
                replace(part, codec=codecs[part.name], search=None)
                if isinstance(part, Column) and part.name in codecs
                else part
                for part in self.parts
            )
        )

    def with_density(self, counts: Mapping[str, tuple[NDArray[np.float64], float]]) -> Layout:
        """The same layout, with densities inside bins of numbers that follow the counts of neighbouring bins.

        Args:
            counts: noisy counts of the codes of columns, and their standard deviation, above 0.
        """
        able = [p for p in self.parts if isinstance(p, Column) and p.name in counts]
        dense = {p.name: p.with_density(*counts[p.name]) for p in able}
        return replace(self, parts=tuple(dense.get(p.name, p) for p in self.parts))

    def with_joint_density(self, counts: Mapping[tuple[str, str], NDArray[np.float64]]) -> Layout:
        """The same layout, with columns that depend strongly on each other drawn together inside their bins.

        Args:
            counts: estimated counts of the codes of pairs of columns, not negative. Pairs of columns of which
                one has no order, or one value in each cell, don't count.
        """
        timed = {parted.column.name for parted in self.parted}
        bins = {c.name: len(c.codec.labels) for c in self.columns if c.drawn_inside and c.name not in timed}
        found = [
            JointDensity(first, second, some[: bins[first], : bins[second]])
            for (first, second), some in counts.items()
            if first in bins and second in bins
        ]
        return replace(self, joint=strongest(found))

    def following(self, rows: int) -> Layout:
        """The layout of the rows that follow so many rows of a table: their identifiers go on."""
        if not rows:
            return self
        parts = tuple(p.following(rows) if isinstance(p, Surrogates) else p for p in self.parts)
        return replace(self, parts=parts)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each column of the table.

        Raises:
            FormulaRefused: a formula can't be computed.
        """
        found: dict[str, Kind] = {}
        for part in self.named.values():
            if isinstance(part, Column):
                found[part.name] = part.codec.kind
            elif isinstance(part, Surrogates):
                found[part.name] = part.kind
        for derived in self.in_turn():
            try:
                found[derived.name] = derived.kind(found)
            except ValueError as error:
                raise FormulaRefused(derived.name, str(error)) from None
        return found

    def in_turn(self) -> Iterator[Derived]:
        """Derived columns in the order of their computation: each after the columns that it is computed from.

        Raises:
            FormulaRefused: a formula names an undeclared column, or its own column through other formulas.
        """
        waiting = dict(self._derived)
        available = {part.name for part in self.parts} - waiting.keys()
        while waiting:
            ready = [d for d in waiting.values() if available.issuperset(references(d.formula))]
            if not ready:
                raise self._unready(waiting)
            for derived in ready:
                available.add(derived.name)
                del waiting[derived.name]
                yield derived

    @cached_property
    def _derived(self) -> Mapping[str, Derived]:
        return {part.name: part for part in self.parts if isinstance(part, Derived)}

    def roots(self, formula: Expression) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for name in references(formula):
            derived = self._derived.get(name)
            found |= dict.fromkeys((name,) if derived is None else self.roots(derived.formula))
        return tuple(found)

    @property
    def computed(self) -> dict[str, tuple[str, ...]]:
        """For each derived column the modelled columns that it is computed from, in table order."""
        sources = {column.name: {column.name} for column in self.columns}
        for derived in self.in_turn():
            given = (sources.get(name, set[str]()) for name in references(derived.formula))
            sources[derived.name] = set[str]().union(*given)
        return {
            name: tuple(c.name for c in self.columns if c.name in sources[name]) for name in self._derived
        }

    def _unready(self, waiting: Mapping[str, Derived]) -> FormulaRefused:
        names = {part.name for part in self.parts}
        for derived in waiting.values():
            for column in references(derived.formula):
                if column not in names:
                    return FormulaRefused(
                        derived.name, f"names '{column}', which is no column of the synthetic table", column
                    )
        first = next(iter(waiting))
        return FormulaRefused(first, "is computed from itself, by way of the columns that it names")

    def decode(
        self, codes: Mapping[str, Codes], rng: np.random.Generator, sequences: Sequences | None = None
    ) -> pa.Table:
        """The typed table; a column with distinct markers has a companion column that names the marker.

        Args:
            codes: as ``DrawnRows`` has them, for each of ``columns``.
            sequences: the units of the rows, if these follow each other.
        """
        codes = self.reconciled(codes, rng)
        values = self.within_bins(codes, {c.name: c.decode(codes[c.name], rng) for c in self.columns}, rng)
        return self.whole(codes, values if sequences is None else sequences.values(codes, values, rng))

    def within_bins(
        self, codes: Mapping[str, Codes], drawn: Mapping[str, pa.Array], rng: np.random.Generator
    ) -> dict[str, pa.Array]:
        """Values that were drawn by column, moved within their bins: together, by group, and to their parts.

        Args:
            codes: int64[rows] for each of ``columns``, reconciled.
            drawn: a typed value for each row of each of ``columns``, null for missing.
        """
        named = {column.name: column for column in self.columns}
        moved = tilted(self.tilts, named, codes, arranged(self.joint, codes, drawn, rng), rng)
        return {**moved, **{p.column.name: p.values(codes, rng) for p in self.parted}}

    def whole(self, codes: Mapping[str, Codes], drawn: Mapping[str, pa.Array]) -> pa.Table:
        """The table of values that were drawn already.

        Args:
            codes: int64[rows] for each of ``columns``; used only to distinguish missing cells.
            drawn: a typed value for each row of each of ``columns``, null for missing.
        """
        rows = len(next(iter(codes.values())))
        arrays = {part.name: self._made(part, drawn, rows) for part in self.parts}
        for derived, found in self._computed(arrays, rows):
            arrays[derived] = found
        whole: dict[str, pa.Array] = {}
        for part in self.parts:
            whole[part.name] = arrays[part.name]
            if isinstance(part, Column) and part.distinct:
                whole[companion(part.name)] = part.distinct_texts(codes[part.name])
        return pa.table(list(whole.values()), names=list(whole))

    @staticmethod
    def _made(part: Part, drawn: Mapping[str, pa.Array], rows: int) -> pa.Array:
        if isinstance(part, Column):
            return drawn[part.name]
        return part.values(rows) if isinstance(part, Surrogates) else pa.nulls(rows)

    def _computed(self, arrays: Mapping[str, pa.Array], rows: int) -> Iterator[tuple[str, pa.Array]]:
        named = {column for derived in self._derived.values() for column in references(derived.formula)}
        operands: dict[str, Operand] = {}
        for part in self.parts:
            if part.name in named and not isinstance(part, Derived):
                values = arrays[part.name]
                texts = part.codec.text(values) if isinstance(part, Column) else part.text(values)
                operands[part.name] = Operand(self.kinds[part.name], values, texts)
        for derived in self.in_turn():
            operands[derived.name] = derived.operand(operands, rows)
            yield derived.name, operands[derived.name].values

    def texts(self, table: pa.Table) -> dict[str, pa.StringArray]:
        """The columns as they are written in a CSV file, without nulls; of a table that ``decode`` made."""
        return {name: texts.dictionary_decode() for name, texts in self.written(table).items()}

    def written(
        self, table: pa.Table, codes: Mapping[str, Codes] = MappingProxyType({})
    ) -> dict[str, pa.DictionaryArray]:
        """The same as ``texts``, with the text of each distinct value once.

        Args:
            table: rows that ``decode`` made.
            codes: the codes of columns from which they were made; a column of one text a code is not read.
        """
        found: dict[str, pa.DictionaryArray] = {}
        for part in self.parts:
            if isinstance(part, Column):
                by_code = codes.get(part.name) if part.one_text_a_code else None
                found[part.name] = self.text_of(part, table) if by_code is None else _coded(part, by_code)
                continue
            kind = (self.kinds[part.name],) if isinstance(part, Derived) else ()
            distinct = _distinct(table.column(part.name))
            written = part.text(distinct.dictionary, *kind)
            found[part.name] = pa.DictionaryArray.from_arrays(distinct.indices, written)
        return found

    @staticmethod
    def text_of(column: Column, table: pa.Table) -> pa.DictionaryArray:
        """One of ``columns`` as it is written in a CSV file; of rows that ``decode`` made.

        Of a part of moments it is the text of the moment.
        """
        if isinstance(column.codec, PartCodec):
            column = replace(column, name=column.part_of, codec=column.codec.of)
        if column.distinct:
            values, markers = (table.column(name) for name in (column.name, companion(column.name)))
            return column.text(values.combine_chunks(), markers.combine_chunks()).dictionary_encode()
        distinct = _distinct(table.column(column.name))
        return pa.DictionaryArray.from_arrays(distinct.indices, column.text(distinct.dictionary))


def _coded(column: Column, codes: Codes) -> pa.DictionaryArray:
    texts = column.text(column.decode(np.arange(column.size), np.random.default_rng(0)))
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), texts)


def _distinct(values: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = values.combine_chunks()
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return pc.dictionary_encode(whole, null_encoding="encode")


class FormulaRefused(ValueError):
    """A formula that can't be computed: its column, and the fault.

    ``unknown`` is the name of an undeclared column, if that is the fault.
    """

    def __init__(self, column: str, words: str, unknown: str | None = None) -> None:
        super().__init__(words)
        self.column = column
        self.unknown = unknown


def companion(name: str) -> str:
    """Name of the companion column, which names the marker of each missing cell.

    >>> companion("income")
    'income (missing)'
    """
    return f"{name} (missing)"
