"""The wide table: a row for each row at the root, with the rows that belong to it beside.

Invariant: private, and only the curator reads it. A wide row follows from its root row and the rows that hold
its key, all the way down, and from nothing else: rows of any other root change nothing in it. Rows without a
key, and rows whose parent isn't there, are left out; of root rows with one key the first is taken. No such
row is an error, and none is counted anywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from numpy.typing import NDArray

from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.expression import MOMENTS, microseconds
from dpsynth.columns.identifier import NOBODY, canonical_id
from dpsynth.columns.number_texts import parse_numbers
from dpsynth.config import Spec
from dpsynth.config.files.place import place_of
from dpsynth.config.source import Source
from dpsynth.curator import Batch, MemoryTable, MemoryTables, check_source, read_cells
from dpsynth.curator.rows.cell_texts import distinct_cells
from dpsynth.curator.table import steps_in
from dpsynth.curator.units import nobody, person_codes
from dpsynth.errors import ConfigError
from dpsynth.figures import percent
from dpsynth.pipeline.inputs import queried
from dpsynth.wings.tables.keys import (
    OTHER,
    LinkedTable,
    children_of,
    key_column,
    most_of,
    root_of,
    slot,
    slots_of,
)
from dpsynth.wings.tables.widened import in_words

_ROWS = 1 << 16
_BETWEEN = " | "
_HALF = np.uint64(32)
_KINDS = {"sum": np.add, "min": np.fmin, "max": np.fmax}
_FEWEST, _NEARLY, _BY_CHANCE = 100, 0.995, 0.5
"""Fewest rows of a column that is seen to be a figure, the share of them that have it, and of those that have
another row's."""
_CHANCE = b"which of the others"
"""What numbers by chance follow from, beside the key of a row; nothing rests on their being secret."""

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]
"""Rows of a table by number; -1 where there is none."""


Findings = Iterator[tuple[str, int, str, str, str]]
"""The key that a finding is about, its rows, its sentence, what to do, and what to write."""
Words = Callable[[str], tuple[str, str, tuple[str, ...]]]


@dataclass(frozen=True)
class _Reader:
    """What reads one of the tables: its names are checked before any row is read."""

    check: Callable[[Sequence[str]], None]
    batches: Callable[[Sequence[str]], Iterator[Batch]]


@dataclass(eq=False, repr=False)
class _Loaded:
    """A table that is read, with the rows of its children by the row that they belong to. Private.

    Attributes:
        cells: each column that is needed, texts or their codes.
        codes: uint64[rows], the key of each row; empty for a table that is no parent.
        chance: uint64[rows + 1], numbers that follow from the key alone, the last for a row that isn't there.
        children: for each child table its rows in the order of this table's rows, the place of the first of
            each row, and the number of each; the last of all three stands for a row that isn't there.
    """

    cells: dict[str, pa.Array]
    codes: NDArray[np.uint64]
    chance: NDArray[np.uint64]
    children: dict[str, tuple[_Loaded, Rows, Rows, Rows]] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """What of a table is not used; private, and for its owner's eyes alone.

    Attributes:
        rows: all rows.
        nameless: rows without a key; below the root, without that of a parent.
        others: at the root, rows with the key of one before; below, rows whose parent isn't there.
        beyond: rows beyond the most of one row above.
        crowded: rows above that have more.
        largest: the most rows that one row above has.
        repeating: in a check, rows with another one's cell of order_by; None without such a column.
    """

    rows: int
    nameless: int
    others: int
    beyond: int = 0
    crowded: int = 0
    largest: int = 0
    repeating: int | None = None


class WideTable:
    """The wide table of some linked tables, with the interface of a table in a database."""

    def __init__(self, tables: Mapping[str, LinkedTable], readers: Mapping[str, _Reader]) -> None:
        self.tables, self._readers = tables, readers
        self._secret = secrets.token_bytes(32)
        self.left_out: dict[str, LeftOut] = {}
        self.holds = False
        self.held: _Loaded | None = None

    def __repr__(self) -> str:
        return "<the private rows of linked tables>"

    @property
    def names(self) -> list[str]:
        """The names of its columns, in order."""
        root = root_of(self.tables)
        return [key_column(self.tables), *self._names(root, "")]

    def _names(self, name: str, prefix: str) -> Iterator[str]:
        yield from (prefix + c for c, d in self.tables[name].columns.items() if d.type not in _NOT_READ)
        for child in children_of(self.tables, name):
            yield prefix + child
            for label, _ in slots_of(self.tables[child]):
                yield from self._names(child, slot(prefix, child, label))

    def check(self, columns: Sequence[str]) -> None:
        """Raise SourceError if the beginnings of the tables show that ``batches`` would."""
        for name in self.tables:
            self._readers[name].check(self.columns_of(name, columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of all wide rows, batch by batch.

        Raises:
            SourceError: a table can't be read, or lacks a column.
        """
        root = root_of(self.tables)
        whole = self.held or self._loaded(root, columns)
        self.held = whole if self.holds else None
        kept = _firsts_of(whole.codes, nobody(self._secret))
        nameless = int((whole.codes == nobody(self._secret)).sum())
        self.left_out[root] = LeftOut(len(whole.codes), nameless, len(whole.codes) - nameless - len(kept))
        key = key_column(self.tables)
        for start in range(0, len(kept), _ROWS):
            rows = kept[start : start + _ROWS]
            found = dict(self._cells(whole, root, "", rows))
            if key in columns:
                found[key] = pa.array(whole.codes[rows]).cast(pa.string())
            yield {c: found[c] if c in found else whole.cells[c].take(pa.array(rows)) for c in columns}

    def columns_of(self, name: str, columns: Sequence[str]) -> list[str]:
        """The columns of a table that are read: declared ones, keys, its order, and more at the root."""
        table = self.tables[name]
        declared = [c for c, d in table.columns.items() if d.type not in _NOT_READ]
        more = [table.order_by] if table.order_by else []
        if table.parent is None:
            known = {*self.names}
            more = [c for c in columns if c not in known]
        return list(dict.fromkeys([*declared, *table.keys, *more]))

    def _loaded(self, name: str, columns: Sequence[str]) -> _Loaded:
        table, names = self.tables[name], self.columns_of(name, columns)
        read: dict[str, list[pa.Array]] = {c: [] for c in names}
        for batch in self._readers[name].batches(names):
            for c in names:
                cells = distinct_cells(batch[c])
                read[c].append(pa.DictionaryArray.from_arrays(pa.array(cells.index), cells.texts))
        whole = {c: _joined(parts) for c, parts in read.items()}
        keys, none = [whole[c] for c in table.key or ()], np.zeros(0, np.uint64)
        codes = self._codes(keys, self._secret) if keys else none
        chance = np.append(self._codes(keys, _CHANCE) if keys else none, np.uint64(0))
        found = _Loaded(whole, codes, chance)
        for child in children_of(self.tables, name):
            found.children[child] = self._belonging(found, child, columns)
        return found

    @staticmethod
    def _codes(cells: Sequence[pa.Array], secret: bytes) -> NDArray[np.uint64]:
        """A code for each row's key, equal where all of its parts are one id, in any spelling."""
        if len(cells) == 1:
            return person_codes(cells[0], secret)
        parts = [_canonical(c) for c in cells]
        whole = pc.binary_join_element_wise(*parts, _BETWEEN)
        nameless = reduce(pc.or_, [pc.fill_null(pc.equal(p, NOBODY), True) for p in parts])
        return person_codes(pc.if_else(nameless, pa.scalar(None, pa.string()), whole), secret)

    def _belonging(
        self, above: _Loaded, child: str, columns: Sequence[str]
    ) -> tuple[_Loaded, Rows, Rows, Rows]:
        table = self.tables[child]
        assert table.parent is not None
        loaded = self._loaded(child, columns)
        parents = _firsts_of(above.codes, nobody(self._secret))
        by_code = parents[np.argsort(above.codes[parents])]
        known = above.codes[by_code]
        whose = self._codes([loaded.cells[c] for c in table.parent.key], self._secret)
        at = np.minimum(np.searchsorted(known, whose), max(len(known) - 1, 0))
        held = np.flatnonzero(known[at] == whose) if len(known) else np.zeros(0, np.int64)
        owner = by_code[at[held]] if len(held) else held
        places = np.zeros((1, len(held))) if table.order_by is None else _places(table, loaded.cells, held)
        in_turn = np.lexsort((*places, owner))
        number = np.bincount(owner, minlength=len(above.codes)).astype(np.int64)
        first = np.cumsum(number) - number
        repeating = None
        if self.holds and table.order_by in table.columns:
            cells = loaded.cells[str(table.order_by)]
            spots = cells.indices.to_numpy(zero_copy_only=False)[held] + owner * len(cells.dictionary)
            repeating = len(held) - len(np.unique(spots))
        self._count(child, whose, number, repeating)
        # The last place of each stands for a row that isn't there.
        return loaded, np.append(held[in_turn], -1), np.append(first, 0), np.append(number, 0)

    def _count(self, child: str, whose: NDArray[np.uint64], number: Rows, repeating: int | None) -> None:
        beyond = np.maximum(number - most_of(self.tables[child]), 0)
        nameless = int((whose == nobody(self._secret)).sum())
        lost = len(whose) - int(number.sum()) - nameless
        most = int(beyond.sum()), int((beyond > 0).sum()), int(number.max(initial=0))
        self.left_out[child] = LeftOut(len(whose), nameless, lost, *most, repeating)

    def _cells(self, loaded: _Loaded, name: str, prefix: str, rows: Rows) -> Iterator[tuple[str, pa.Array]]:
        absent = rows < 0
        taken = pa.array(rows, mask=absent)
        for column, declared in self.tables[name].columns.items():
            if declared.type not in _NOT_READ:
                yield prefix + column, loaded.cells[column].take(taken)
        for child, (below, held, first, number) in loaded.children.items():
            most = most_of(self.tables[child])
            many = number[rows]
            begin = first[rows] + self._windows(child, loaded.chance[rows], many)
            yield prefix + child, pa.array(np.minimum(many, most + 1), mask=absent)
            for label, least in slots_of(self.tables[child]):
                place = np.full(len(rows), least - 1)
                if label == OTHER:
                    # By a row's own key, so that a release that is resumed takes the same one.
                    further = np.maximum(np.minimum(many, most) - least + 1, 1)
                    place += (loaded.chance[rows] % further.astype(np.uint64)).astype(np.int64)
                own = held[np.where(many >= least, begin + place, -1)]
                yield from self._cells(below, child, slot(prefix, child, label), own)

    def _windows(self, child: str, chance: NDArray[np.uint64], many: Rows) -> Rows | int:
        """The first row that is used of each parent's row: a function of its own key and number of rows."""
        parent = self.tables[child].parent
        if parent is None or parent.keep == "first":
            return 0
        # The lower half of the same number takes one of the further rows.
        spare = np.maximum(many - parent.max_children, 0).astype(np.uint64) + np.uint64(1)
        return ((chance >> _HALF) % spare).astype(np.int64)


_NOT_READ = ("derived", "identifier")


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    if not parts:
        return pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string()))
    whole = pa.chunked_array(parts).unify_dictionaries()
    return pa.concat_arrays(whole.chunks)


def _canonical(cells: pa.Array) -> pa.StringArray:
    """The ids of cells, in one spelling, in which no id has what stands between two."""
    known = [canonical_id(text).replace("|", "||") for text in cells.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(cells.indices)


def _firsts_of(codes: NDArray[np.uint64], without: np.uint64) -> Rows:
    """The first row of each key, in their order; none of the rows without a key."""
    _, first = np.unique(codes, return_index=True)
    first = np.sort(first)
    return np.asarray(first[codes[first] != without], np.int64)


def _places(table: LinkedTable, cells: Mapping[str, pa.Array], rows: Rows) -> list[NDArray[np.generic]]:
    """Keys to sort rows by, the least important first: the declared order, or numbers, then texts."""
    assert table.order_by is not None
    column, declared = cells[table.order_by], table.columns.get(table.order_by)
    part = None if declared is None else declared.part(table.order_by)
    if isinstance(part, Column) and part.codec.ordered and part.search is None:
        found: list[NDArray[np.generic]] = [codes_of(part, column.dictionary)]
        if part.codec.steps is not None:
            found = [steps_in(part, column.dictionary), *found]
    else:
        texts = pc.fill_null(column.dictionary, "")
        by_text = np.empty(len(texts), np.int64)
        by_text[np.asarray(pc.array_sort_indices(texts))] = np.arange(len(texts))
        numbers = parse_numbers(texts)
        found = [by_text, np.where(np.isnan(numbers), np.inf, numbers)]
    spots = column.indices.to_numpy(zero_copy_only=False)[rows]
    return [keys[spots] for keys in found]


def wide_table(spec: Spec, frames: MemoryTable | None) -> WideTable:
    """The wide table of a configuration's linked tables.

    Args:
        frames: the tables, if they were handed over in memory.

    Raises:
        ConfigError: a table has no source, or the tables in memory are others.
    """
    tables: Mapping[str, LinkedTable] = spec.tables or {}  # type: ignore[assignment]
    if not tables:
        raise ConfigError("This configuration has no tables: it describes one table.")
    if frames is None:
        return WideTable(tables, {name: _reader(name, table.source) for name, table in tables.items()})
    found = frames.tables if isinstance(frames, MemoryTables) else {}
    if found.keys() != tables.keys():
        raise ConfigError(
            f"The tables in memory must be those under tables: hand over a frame for each of "
            f"{', '.join(tables)}, by name."
        )
    return WideTable(tables, {name: _Reader(frame.check, frame.batches) for name, frame in found.items()})


def _reader(name: str, source: Source | None) -> _Reader:
    if source is None:
        raise ConfigError(
            f"tables.{name}.source is missing: say where the table is, such as source: {{path: {name}.csv}}, "
            "or hand the tables over in Python."
        )
    if source.query is not None:
        try:
            table = queried(source)
        except ConfigError as error:
            raise ConfigError(str(error).replace("source.", f"tables.{name}.source.")) from None
        return _Reader(table.check, table.batches)
    path, form = place_of(str(source.path)), source.form
    # Workers of other processes may run in another folder.
    whole = path.absolute() if isinstance(path, Path) else path
    return _Reader(
        partial(check_source, path, form=form), partial(read_cells, whole, form=form, keep_broken=False)
    )


def checked_links(spec: Spec, frames: MemoryTable | None) -> tuple[WideTable, Findings, Words]:
    """The wide table that reads its files once; what a release doesn't use, after that; and words for rules.

    Private, but for the words.
    """
    table = wide_table(spec, frames)
    table.holds = True
    return table, _about_links(table), partial(in_words, table.tables)


def _about_links(table: WideTable) -> Findings:
    """Rows of the tables that aren't used, and columns that might be derived."""
    yield from _unused(table)
    if table.held is not None:
        yield from _figures(table.tables, root_of(table.tables), table.held)


def _figures(tables: Mapping[str, LinkedTable], name: str, loaded: _Loaded) -> Findings:
    """Columns whose cells are figures of the rows below; synthetic ones are if they are derived."""
    for child, (below, held, first, number) in loaded.children.items():
        made = [({"count": child}, number[:-1].astype(np.float64))]
        some = number[:-1] > 0
        for column in tables[child].columns if some.any() else ():
            values = _numbers(tables[child], column, below.cells)
            if values is None:
                continue
            for kind, figure in _KINDS.items():
                whole = np.full(len(some), 0.0 if kind == "sum" else np.nan)
                known = np.nan_to_num(values[held[:-1]]) if kind == "sum" else values[held[:-1]]
                whole[some] = figure.reduceat(known, first[:-1][some])
                made.append(({kind: child, "of": column}, whole))
        for column in tables[name].columns:
            own = _numbers(tables[name], column, loaded.cells)
            shares = [0.0 if own is None else _agreeing(own, figure) for _, figure in made]
            if max(shares):
                derived = {column: made[int(np.argmax(shares))][0]}
                block = yaml.safe_dump(
                    {"tables": {name: {"derived": derived}}}, default_flow_style=None, sort_keys=False
                )
                what = f"a figure of the rows of {child}, in {percent(max(shares))} of its rows"
                remedy = "take it out of columns, and let it be computed from the synthetic rows"
                yield f"tables.{name}.columns.{column}", 0, what, remedy, block.strip()
        yield from _figures(tables, child, below)


def _numbers(table: LinkedTable, column: str, cells: Mapping[str, pa.Array]) -> Numbers | None:
    """The cells of a column of numbers, dates or times, NaN where missing; None of another column."""
    declared = table.columns[column]
    part = None if declared.type in _NOT_READ else declared.part(column)
    if not isinstance(part, Column) or part.search is not None:
        return None
    word, distinct = part.codec.kind.word, cells[column].dictionary
    if word != "number" and word not in MOMENTS:
        return None
    values = part.codec.parsed(part.values_of(distinct))
    values = values if word == "number" else microseconds(values)
    numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan), np.float64)
    return np.asarray(numbers[cells[column].indices.to_numpy(zero_copy_only=False)], np.float64)


def _agreeing(own: Numbers, figure: Numbers) -> float:
    """The share of rows with a figure; 0 if it is small, or if many rows have that of another row."""
    known = ~np.isnan(own)
    same, by_chance = (
        np.isclose(own, of, rtol=0, atol=1e-6)[known] for of in (figure, np.roll(figure, len(figure) // 2))
    )
    able = known.sum() >= _FEWEST and same.mean() >= _NEARLY and by_chance.mean() < _BY_CHANCE
    return float(same.mean()) if able else 0.0


def _unused(table: WideTable) -> Findings:
    for name, found in table.left_out.items():
        above, key = table.tables[name].parent, f"tables.{name}"
        without = "without a key" if above is None else f"without the key of a row of {above.table}"
        other = "with the key of one before" if above is None else f"whose row of {above.table} isn't there"
        for rows, what in ((found.nameless, without), (found.others, other)):
            if rows:
                words = f"{_rows(rows)} of {found.rows:,} of {name} {what}, left out"
                yield key, rows, words, "see to the table" + ", and how both write the key" * bool(above), ""
        if above is not None and found.beyond:
            words = (
                f"{_rows(found.beyond)} of {found.rows:,} of {name} beyond max_children, left out: "
                f"{_rows(found.crowded)} of {above.table} with more than {above.max_children}, at most "
                f"{found.largest:,}"
            )
            remedy = "raise max_children if anyone could know that there are more, without the table"
            yield f"{key}.parent.max_children", found.beyond, words, remedy, ""
        own, alike = table.tables[name], found.repeating
        if alike is not None and own.distinct == (alike > 0):
            words = f"{_rows(alike)} of {found.rows:,} with the {own.order_by} of another of the same parent"
            remedy = "remove distinct" if own.distinct else "add distinct: true if anyone could say so"
            yield f"{key}.order_by", alike, words, remedy, ""


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
