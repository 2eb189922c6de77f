"""Loading: batches of cells become coded rows of a slice and, with contribution bounding, the private table.

A slice is public. Each row is taken by its own cell alone, never by other rows, their order, or the
dates in the table. So tables that differ in one unit differ in at most that unit's rows within the slice:
sensitivities under add_remove stay the same, and a contribution bound that is enforced afterwards holds
within the slice.

Invariant: after loading, only rows of the slice are left, at most ``max_rows`` of each person. No message
quotes a cell; a cell that is no date, or no value, is in no slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import Slice
from dpsynth.columns.column import Column, codes_of, domain_of
from dpsynth.columns.domain import Domain
from dpsynth.columns.layout import in_order
from dpsynth.curator.rows.cell_texts import Batch, distinct_cells, of_rows
from dpsynth.curator.rows.coded_columns import ALL_IN_MEMORY, CodedColumns, Room, rows_of
from dpsynth.curator.table import PrivateTable, Texts, cores, steps_in
from dpsynth.curator.units import (
    Person,
    dates_written,
    nobody,
    numbered,
    rows_before,
    rows_kept,
    rows_of_each,
    rows_of_persons,
    unit_codes,
    windows_kept,
)


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRows:
    """All rows of the slice, before contribution bounding. Only the curator holds them.

    Attributes:
        codes: column to unsigned codes[rows], see ``PrivateTable``.
        texts: the cells of each column whose domain is to be found.
        persons: uint64[rows], the person of each row; None where each row is a unit.
        steps: column to int32[rows], see ``PrivateTable``.
        room: where coded columns may lie.
        order: the column by which the rows of a person follow each other; empty where that doesn't count.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    texts: Mapping[str, Texts]
    persons: Person | None
    steps: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    summed: frozenset[str] = frozenset()
    room: Room = ALL_IN_MEMORY
    order: str = ""

    def rows_of_units(self, first: Sequence[int]) -> NDArray[np.int64]:
        """Numbers of persons by ranges of their number of rows, int64[ranges]. Private.

        Raises:
            ValueError: each row is a unit.
        """
        if self.persons is None:
            raise ValueError("only a person has a number of rows to be found")
        ranges = np.searchsorted(first, rows_of_persons(self.persons), side="right") - 1
        return np.bincount(ranges, minlength=len(first)).astype(np.int64, copy=False)

    def bounded(self, max_rows: int, key: bytes) -> PrivateTable:
        """The private table after contribution bounding.

        Args:
            max_rows: the bound; no row is left out if each row is a unit.
        """
        unit: NDArray[np.int32] | None = None
        of_each: NDArray[np.unsignedinteger] | None = None
        before: NDArray[np.int64] | None = None
        left = self
        if self.persons is not None:
            if self.order:
                left = self.of_rows(windows_kept(self.persons, self.places, max_rows, key))
                assert left.persons is not None
                before = rows_before(left.persons, left.places)
            else:
                left = self.of_rows(rows_kept(self.persons, max_rows, key))
            assert left.persons is not None
            rows = rows_of_each(left.persons)
            if rows.max(initial=0) > max_rows:
                raise RuntimeError("contribution bounding failed")
            of_each = rows.astype(np.min_scalar_type(max_rows))
            if left.texts:
                unit = numbered(left.persons)
        return PrivateTable(
            self.domain,
            left.codes,
            left.rows,
            left.texts,
            unit,
            left.steps,
            self.summed,
            of_each=of_each,
            bound=max_rows,
            before=before,
            room=self.room,
        )

    @property
    def places(self) -> NDArray[np.integer]:
        """Numbers that rise with the order column, integers[rows]; by its steps within bins, if any."""
        codes, steps = self.codes[self.order], self.steps.get(self.order)
        return codes if steps is None else (codes.astype(np.int64) << 32) + steps

    @property
    def rows(self) -> int:
        held = [*self.codes.values(), *(t.index for t in self.texts.values())]
        return len(held[0]) if held else 0

    def of_rows(self, kept: NDArray[np.bool_]) -> LoadedRows:
        return replace(
            self,
            codes=rows_of(self.codes, kept, self.room),
            texts={name: t.of_rows(kept, self.room) for name, t in self.texts.items()},
            persons=None if self.persons is None else rows_of({"": self.persons}, kept, self.room)[""],
            steps=rows_of(self.steps, kept, self.room),
        )

    @property
    def nbytes(self) -> int:
        held = [*self.codes.values(), *self.steps.values(), *(t.index for t in self.texts.values())]
        return sum(a.nbytes for a in held) + (0 if self.persons is None else self.persons.nbytes)


@dataclass(frozen=True, eq=False, repr=False)
class _CodedBatch:
    """The coded rows of a batch.

    Attributes:
        columns: arrays of one length, by what they hold and the column: codes, steps, texts, persons.
        texts: the distinct texts of each column whose domain is to be found.
    """

    columns: Mapping[tuple[str, str], NDArray[np.generic]]
    texts: Mapping[str, pa.LargeStringArray]


@dataclass(frozen=True)
class _Coding:
    """The public rules, and the key, by which a row is coded from its own cells; see ``load_rows``."""

    columns: Sequence[Column]
    neighbours: Neighbours
    key: bytes
    part: Slice | None
    summed: frozenset[str]

    def coded(self, batch: Batch) -> _CodedBatch:
        kept = None
        found: dict[tuple[str, str], NDArray[np.generic]] = {}
        texts: dict[str, pa.LargeStringArray] = {}
        if self.part is not None:
            batch = rows_within(batch, self.part)
        if self.neighbours.person is not None:
            people = unit_codes(batch, self.neighbours, self.key)
            if self.neighbours.nameless == "left_out":
                named = people != nobody(self.key)
                kept, people = named, people[named]
            found["person", ""] = people
        for column in self.columns:
            cells = distinct_cells(batch[column.source])
            if kept is not None:
                cells = cells.of_rows(kept)
            if column.kept_as_text:
                coded = coded_texts(cells.texts)
                texts[column.name] = coded.dictionary
                found["text", column.name] = coded.indices.to_numpy()[cells.index]
            else:
                found["code", column.name] = cells.each(partial(codes_of, column))
                if column.name in self.summed:
                    found["step", column.name] = cells.each(partial(steps_in, column))
        return _CodedBatch(found, texts)

    @property
    def nothing(self) -> _CodedBatch:
        names = [c.source for c in self.columns]
        names += self.neighbours.columns
        names += [self.part.column] if self.part is not None else []
        return self.coded(dict.fromkeys(names, pa.array([], pa.string())))


def load_rows(
    batches: Iterable[Batch],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
    summed: frozenset[str] = frozenset(),
    room: Room = ALL_IN_MEMORY,
) -> LoadedRows:
    """Coded rows of the slice, before contribution bounding.

    A row is left out by its own cells alone, so tables that differ in one unit still differ in at most
    that unit's rows. Batches are coded by threads while the next ones are read, and kept in their order.

    Args:
        batches: cells by column, the person's and the slice's included where there are any.
        neighbours: relation and unit; its ``nameless`` decides on rows without an id.
        key: secret bytes from which the code of each person follows.
    """
    coding = _Coding(columns, neighbours, key, part, summed)
    if neighbours.person is not None:
        # They are copied when contributions are bounded.
        room = replace(room, memory=room.memory // 2)
    found, lengths = CodedColumns(room), []
    texts: dict[str, list[pa.LargeStringArray]] = {c.name: [] for c in columns if c.kept_as_text}
    for batch in chain(
        [coding.nothing], in_order((partial(coding.coded, batch) for batch in batches), cores())
    ):
        found.add(batch.columns)
        lengths.append(max(map(len, batch.columns.values()), default=0))
        for name, distinct in batch.texts.items():
            texts[name].append(distinct)
    coded = [c.name for c in columns if not c.kept_as_text]
    return LoadedRows(
        domain_of(c for c in columns if not c.kept_as_text),
        {name: found.array(("code", name)) for name in coded},
        {name: gathered(t, lengths, found.array(("text", name)), room) for name, t in texts.items()},
        None if neighbours.person is None else found.array(("person", "")),
        {name: found.array(("step", name)) for name in coded if name in summed},
        summed,
        room,
    )


def joined(some: Sequence[LoadedRows], room: Room) -> LoadedRows:
    """Rows that were loaded apart, one after another."""
    first = some[0]
    # They are copied when contributions are bounded.
    room = room if first.persons is None else replace(room, memory=room.memory // 2)
    lengths = [rows.rows for rows in some]

    def whole(of: Callable[[LoadedRows], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        found = CodedColumns(room)
        for rows in some:
            found.add(of(rows))
        return {name: found.array(name) for name in of(first)}

    index = whole(lambda rows: {name: t.index for name, t in rows.texts.items()})
    distinct = {name: [rows.texts[name].distinct for rows in some] for name in first.texts}
    return replace(
        first,
        codes=whole(lambda rows: rows.codes),
        texts={name: gathered(distinct[name], lengths, index[name], room) for name in first.texts},
        persons=whole(lambda rows: {} if rows.persons is None else {"": rows.persons}).get(""),
        steps=whole(lambda rows: rows.steps),
        room=room,
    )


def rows_within(batch: Batch, part: Slice) -> dict[str, pa.Array]:
    """The rows of a batch that lie in a slice."""
    inside = in_slice(batch[part.column], part)
    return of_rows(batch, inside)


def in_slice(cells: pa.Array, part: Slice) -> pa.BooleanArray:
    """Membership of each row in a slice, by the text of its cell; each distinct cell is read once.

    The date of a cell with a date and a time is the one written there, whatever the time zone.
    """
    return pa.array(distinct_cells(cells).each(lambda texts: _held(texts, part)))


def _held(cells: pa.StringArray, part: Slice) -> NDArray[np.bool_]:
    texts = pc.utf8_trim_whitespace(cells) if part.start is None else dates_written(cells)
    # Many times have one day.
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    known = coded.dictionary.to_pylist()
    held = np.array([text is not None and part.holds(text) for text in known], dtype=np.bool_)
    return np.asarray(held[coded.indices.to_numpy(zero_copy_only=False)])


def coded_texts(cells: pa.StringArray) -> pa.DictionaryArray:
    """The cells of a batch without blanks around them, each distinct text once."""
    stripped = pc.fill_null(pc.utf8_trim_whitespace(cells), "")
    return pc.dictionary_encode(pc.cast(stripped, pa.large_string()))


def gathered(
    batches: Sequence[pa.LargeStringArray], lengths: Sequence[int], index: NDArray[np.int32], room: Room
) -> Texts:
    """The texts of all batches, in their order.

    Args:
        batches: the distinct texts of each batch.
        index: int32[rows], the text of each row among those of its batch.
    """
    each = (pa.array(np.arange(len(texts)), pa.int32()) for texts in batches)
    known = [pa.DictionaryArray.from_arrays(i, texts) for i, texts in zip(each, batches, strict=True)]
    whole = pa.chunked_array(known, pa.dictionary(pa.int32(), pa.large_string())).unify_dictionaries()
    found, start = CodedColumns(room), 0
    for chunk, length in zip(whole.chunks, lengths, strict=True):
        found.add({"": chunk.indices.to_numpy()[index[start : start + length]].astype(np.int32, copy=False)})
        start += length
    return Texts(whole.chunks[0].dictionary, found.array(""))
