"""The synthetic tables of a release: its wide rows, split again, with new keys.

Where not all child rows are told apart, the wide row has one further row, which stands for all others. Then
each other row of a parent is the further row of a parent that is like it.

Invariant: post-processing of the synthetic rows. Every key is there once, every row below the root has its
parent, and no row of a parent has more children than the configuration allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import TypeAdapter

from dpsynth.columns.column import Column
from dpsynth.columns.expression import Operand, parse, references, renamed, value_of
from dpsynth.columns.layout import Layout, companion
from dpsynth.columns.number_texts import fixed_texts
from dpsynth.columns.rules.rule import tie_of
from dpsynth.wings.tables.keys import (
    OTHER,
    LinkedTable,
    children_of,
    most_of,
    roles_of,
    slot,
    slots,
    undotted,
)
from dpsynth.wings.tables.widened import across, ties

SEED = 7
"""The seed of draws among rows that are alike: whoever splits the same wide rows has the same tables."""
_MATCHED, _LEAST_ALIKE, _SIZES = 20, 5, 3
"""The most columns that rows are alike in, the fewest rows of a size to choose from, and how many numbers of
child rows are told apart beyond the least that has others."""
_CANDIDATES = 100
"""Rows at random of which the one is taken that is most alike."""
_TRIES = 20
"""Draws among rows that are alike, until no condition of at_most_one is met twice."""
_AT_ONCE, _FAR = 1 << 22, 1e9
"""Cells of values that are weighed at once, and a factor that takes a value behind others."""
_DISTINCT = 12
"""The most values of a column that are told apart where rows that are alike are sought."""

Places = NDArray[np.int64]
Shares = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Shape:
    """One of linked tables, as the wide rows have it.

    Attributes:
        key: the columns that tell its rows apart; none where nothing refers to them.
        above: the columns that hold its parent's key; none at the root.
        number: a column that numbers the rows of one parent's row; "" without.
        order: a column of its own by which these follow each other; "" without.
        columns: its other columns, but for those that are computed from child rows.
        most, roles: the most rows of one parent's row, and the number of those that are told apart.
        derived: columns computed from child rows: the child table, the kind, a condition, and for all kinds
            but count and any the column of the child.
        once: conditions that at most one of the rows of one parent's row meets.
        distinct: True if the rows of one parent's row differ in ``order``.
        across: constraints that name columns of rows above.
        ties: constraints that give each value of a column one of another, in all rows.
        window: True if a run of private rows was used where there were more than ``most``, not the first.
    """

    name: str
    key: tuple[str, ...]
    above: tuple[str, ...]
    number: str
    order: str
    columns: tuple[str, ...]
    most: int
    roles: int
    derived: Mapping[str, tuple[str, ...]]
    children: tuple[Shape, ...]
    once: tuple[str, ...] = ()
    distinct: bool = False
    across: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    window: bool = False

    @staticmethod
    def of(tables: Mapping[str, LinkedTable], name: str) -> Shape:
        table = tables[name]
        columns = tuple(c for c, d in table.columns.items() if d.type != "identifier")
        order, below = table.order_by or "", children_of(tables, name)
        return Shape(
            name,
            table.key or (),
            table.parent.key if table.parent else (),
            "" if order in (*columns, *(table.key or ())) else order,
            order if order in columns else "",
            columns,
            *((most_of(table), roles_of(table)) if table.parent else (1, 1)),
            {
                c: (asked.table, asked.kind, asked.where or "", *filter(None, [getattr(asked, "of", None)]))
                for c, asked in table.derived.items()
            },
            tuple(Shape.of(tables, child) for child in below),
            table.at_most_one,
            table.distinct,
            across(tables, name),
            ties(table),
            table.parent is not None and table.parent.keep == "window",
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = TypeAdapter(Shape).dump_python(self, mode="json", exclude_defaults=True)
        return found

    @property
    def all(self) -> Iterator[Shape]:
        """It, and all tables below."""
        yield self
        for child in self.children:
            yield from child.all

    @property
    def slots(self) -> list[tuple[str, int]]:
        """Its rows beside its parent's, and the number of rows from which each is there."""
        return slots(self.most, self.roles)

    @property
    def obeyed(self) -> str:
        """The sentence on its constraints about rows above, and on ties; "" without any."""
        rules = "; ".join((*self.across, *self.ties))
        return f"Every row of {self.name} obeys: {rules}." if rules else ""

    def _beside(self, child: Shape) -> Iterator[str]:
        """The beginnings of the names of columns of each of a child's rows beside one of its own."""
        return (slot("", child.name, label) for label, _ in child.slots)

    @property
    def _named(self) -> list[str]:
        """The names that rules may use of a row."""
        below = [
            f"{start}{c}" for child in self.children for start in self._beside(child) for c in child._named
        ]
        return [*self.columns, *(child.name for child in self.children), *below]

    @property
    def rules(self) -> list[str]:
        """Rules about rows above, of its rows and of those that come with them from another wide row."""
        found = [*map(undotted, self.across)]
        own = {f"{self.name}.{c}": c for c in self._named}
        for child in self.children if self.above else ():
            for start in self._beside(child):
                names = own | {c: start + c for c in child._named}
                rules = (renamed(rule, names) for rule in child.rules)
                found += [rule for rule in rules if any("." in c for c in references(parse(rule)))]
        return found


@dataclass(frozen=True, eq=False)
class Placed:
    """The rows of one table, by where they stand in wide rows.

    Attributes:
        starts: what stands before the names of columns in wide rows.
        start: int64[rows], which of these it is for each row.
        row: int64[rows], its wide row.
        owner: int64[rows], the row that it belongs to, by number.
        number: int64[rows], which row of that one it is, from 1.
    """

    starts: Sequence[str]
    start: Places
    row: Places
    owner: Places
    number: Places

    def taken(self, wide: pa.Table, column: str) -> pa.ChunkedArray:
        """A column of these rows, from wide rows."""
        parts, spots = [], []
        for i, start in enumerate(self.starts):
            here = np.flatnonzero(self.start == i)
            parts.append(wide[start + column].take(pa.array(self.row[here])))
            spots.append(here)
        whole = pa.concat_tables([pa.table({"": part}) for part in parts])
        return whole[""].take(pa.array(np.argsort(np.concatenate(spots), kind="stable")))

    def in_order(self, order: Places) -> Placed:
        return Placed(self.starts, self.start[order], self.row[order], self.owner[order], self.number)


def split(wide: pa.Table, shape: Shape, layout: Layout, seed: int = SEED) -> Split:
    """The tables that wide rows stand for.

    Args:
        wide: typed wide rows.
        layout: that of the wide rows.
    """
    rows = np.arange(wide.num_rows)
    none = np.zeros(wide.num_rows, np.int64)
    found = Split(shape, layout, wide, {})
    _place(found, shape, Placed([""], none, rows, rows, none + 1), seed)
    return found


def _place(found: Split, shape: Shape, own: Placed, seed: int) -> None:
    found.placed[shape.name], wide = own, found.wide
    for child in shape.children:
        starts = [slot(start, child.name, label) for start in own.starts for label, _ in child.slots]
        many = np.minimum(pc.fill_null(own.taken(wide, child.name), 0).to_numpy(), child.most)
        owner, number = _counted(many)
        start = own.start[owner] * len(child.slots) + np.minimum(number, len(child.slots)) - 1
        below = Placed(starts, start, own.row[owner], owner, number)
        further = np.flatnonzero(number > len(child.slots))
        if len(further):
            alike = _Alike(wide, shape, child, own, many)
            turns = _Turns.of(wide, child, starts) if child.distinct else None
            for turn in range(_TRIES):
                fits = partial(_fitting, found, child, below, own) if child.rules and turn else None
                below.row[further] = alike.rows(owner[further], seed + turn, fits=fits)
                further = _repeating(found, child, below, turns)
                if not len(further):
                    break
            if turns is not None and len(further):
                turns = replace(turns, anywhere=True)
                pool = turns.codes[len(child.slots) * (own.start + 1) - 1, own.row]
                free = turns.free(below, further, pool[alike.able], seed)
                below.row[further] = alike.rows(owner[further], seed + _TRIES, pool, free)
                further = _repeating(found, child, below, turns)
        if len(further):
            # Rows without one are like a row of their parent that is told apart, or else are left out.
            for place in reversed(range(len(child.slots))):
                below.row[further] = own.row[owner[further]]
                below.start[further] = own.start[owner[further]] * len(child.slots) + place
                further = _repeating(found, child, below, turns)
            kept = np.setdiff1d(np.arange(len(owner)), further)
            left = np.bincount(owner[kept], minlength=len(many))
            below = replace(below.in_order(kept), number=_counted(left)[1])
        owner = below.owner
        if child.order:
            values = below.taken(wide, child.order)
            if not pa.types.is_dictionary(values.type) and not pa.types.is_string(values.type):
                by = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy()
                below = below.in_order(np.lexsort((by, owner)))
        _place(found, child, below, seed)


def _counted(many: Places) -> tuple[Places, Places]:
    """Of so many rows for each row above, that row and the number from 1."""
    owner = np.repeat(np.arange(len(many)), many)
    return owner, 1 + np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)


def _fitting(found: Split, shape: Shape, placed: Placed, own: Placed, owner: Places, row: Places) -> Truths:
    """Of further rows from other wide rows, those that break no rule about the rows above an owner."""
    last = (own.start[owner] + 1) * len(shape.slots) - 1
    tried = Placed(placed.starts, last, row, owner, owner)
    return ~replace(found, placed={**found.placed, shape.name: tried}).breaking(shape, np.arange(len(row)))


def _repeating(found: Split, shape: Shape, placed: Placed, turns: _Turns | None) -> Places:
    """The rows that meet a condition, or have a value, which an earlier row of the same parent's row has.

    And further rows that break a rule about rows above.
    """
    twice, begins = np.zeros(len(placed.row), bool), np.arange(len(placed.row)) - placed.number + 1
    here = replace(found, placed={**found.placed, shape.name: placed})
    further = np.flatnonzero(placed.number > len(shape.slots))
    twice[further] = here.breaking(shape, further)
    for where in map(parse, shape.once):
        operands = {c: here.operand(shape.name, c) for c in references(where)}
        meets = met(value_of(where, operands, len(placed.row)))
        before = np.append(0, np.cumsum(meets))
        twice |= meets & (before[:-1] > before[begins])
    return np.flatnonzero(twice if turns is None else twice | turns.wrong(placed))


@dataclass(frozen=True, eq=False)
class _Turns:
    """The values of a child table's order, which the rows of one parent's row have once.

    Attributes:
        codes: int64[starts, wide rows], the values by rank; -1 where one is missing.
        roles: the number of rows that are told apart; further ones come after these, or anywhere.
    """

    codes: Places
    roles: int
    anywhere: bool = False

    @staticmethod
    def of(wide: pa.Table, shape: Shape, starts: Sequence[str]) -> _Turns:
        values = pa.concat_tables([pa.table({"": wide[start + shape.order]}) for start in starts])[""]
        ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
        codes = np.where(values.is_null().to_numpy(), -1, ranks - 1)
        return _Turns(codes.reshape(len(starts), -1), shape.roles)

    def _at(self, placed: Placed) -> tuple[Places, Places]:
        """The value of each row, and that of its parent's last row that is told apart."""
        at = self.codes[placed.start, placed.row]
        last = np.arange(len(at)) - placed.number + self.roles
        return at, at[np.minimum(last, len(at) - 1)]

    def wrong(self, placed: Placed) -> NDArray[np.bool_]:
        """Further rows that have the value of another one, or that of no later row."""
        at, last = self._at(placed)
        by_value = np.lexsort((placed.number, at, placed.owner))
        same = (np.diff(placed.owner[by_value]) == 0) & (np.diff(at[by_value]) == 0)
        found = (at <= last) & (not self.anywhere)
        found[by_value[1:][same]] = True
        return np.asarray(found & (at >= 0) & (placed.number > self.roles + 1), np.bool_)

    def free(self, placed: Placed, further: Places, pool: Places, seed: int) -> Places:
        """Values for further rows that none of their parent's rows has, by shares in a pool; -1 without."""
        rng, found = np.random.default_rng(seed), np.full(len(further), -1)
        at, last = self._at(placed)
        shares = np.bincount(pool[pool >= 0], minlength=int(self.codes.max()) + 1)
        rare = np.divide(1.0, shares, where=shares > 0, out=np.full(len(shares), np.inf))
        owners, whose = np.unique(placed.owner[further], return_inverse=True)
        nth = np.arange(len(further)) - np.searchsorted(whose, whose)
        kept = np.setdiff1d(np.flatnonzero(at >= 0), further)
        for some in np.array_split(np.arange(len(owners)), 1 + len(owners) * len(shares) // _AT_ONCE):
            until = rng.exponential(size=(len(some), len(shares))) * rare
            until[np.arange(len(shares)) <= last[further[np.searchsorted(whose, some)], None]] *= _FAR
            line = np.searchsorted(owners[some], placed.owner[kept]).clip(max=len(some) - 1)
            held = owners[some][line] == placed.owner[kept]
            until[line[held], at[kept[held]]] = np.inf
            here = np.flatnonzero((whose >= some[0]) & (whose <= some[-1]) & (nth < len(shares)))
            lines = whose[here] - some[0]
            value = np.argsort(until, axis=1)[lines, nth[here]]
            found[here] = np.where(np.isfinite(until[lines, value]), value, -1)
        return found


class _Alike:
    """Rows whose other child row stands for further ones of rows that are like them.

    Rows are alike in the number of their child rows, and by the columns that they agree in: columns of their
    own, and of the child rows that are told apart, each by what it tells of the other child row.
    """

    def __init__(self, wide: pa.Table, shape: Shape, child: Shape, own: Placed, many: Places) -> None:
        self._own, self._many, self._least = own, many, child.roles + 1
        sides = [slot("", child.name, label) for label, _ in child.slots[:-1]]
        names = [*shape.columns, *(side + c for side in sides for c in child.columns)]
        known = [c for c in names if own.starts[0] + c in wide.column_names]
        other = slot("", child.name, OTHER)
        there = many >= self._least
        self.able = np.flatnonzero(there)
        codes = {c: _few_values(own.taken(wide, c)) for c in known}
        told = [_few_values(own.taken(wide, other + c))[there] for c in child.columns]
        worth = {c: sum(_information(own[there], of) for of in told) for c, own in codes.items()}
        best = sorted(known, key=lambda c: -worth[c])[:_MATCHED]
        self._by = [(worth[c], codes[c]) for c in best if worth[c] > 0]

    def rows(
        self,
        needy: Places,
        seed: int,
        held: Places | None = None,
        wanted: Places | None = None,
        fits: Callable[[Places, Places], Truths] | None = None,
    ) -> Places:
        """For rows, int64[needy], the wide rows of rows that are alike.

        With ``held``, a value of each row's other child row, of rows that hold the ``wanted`` value of the
        needy one; where there is none, it stands for itself. ``fits`` says which wide rows a needy row may
        take.
        """
        rng, size = np.random.default_rng(seed), np.minimum(self._many, self._least + _SIZES)
        found, left = needy.copy(), np.arange(len(needy))
        held = np.zeros_like(self._many) if held is None else held
        wanted = np.zeros_like(needy) if wanted is None else wanted
        wide = int(max(held.max(initial=0), wanted.max(initial=0))) + 2
        for sizes in (size, np.zeros_like(size)):
            key = (self._own.start * (int(size.max(initial=0)) + 1) + sizes) * wide
            of, sought = key[self.able] + held[self.able], key[needy[left]] + wanted[left]
            order = np.argsort(of, kind="stable")
            known, pool = of[order], self.able[order]
            first, end = (np.searchsorted(known, sought, side) for side in ("left", "right"))
            some = np.flatnonzero(end - first >= (_LEAST_ALIKE if sizes is size else 1))
            for part in np.array_split(some, 1 + len(some) * _CANDIDATES // _AT_ONCE):
                among = (end - first)[part, None]
                tried = pool[
                    first[part, None] + (rng.random((len(part), _CANDIDATES)) * among).astype(np.int64)
                ]
                asked = needy[left[part]]
                alike = sum(w * (codes[tried] == codes[asked][:, None]) for w, codes in self._by)
                alike = alike + 1e-9 * rng.random(tried.shape)
                if fits is not None:
                    able = fits(np.repeat(asked, _CANDIDATES), self._own.row[tried.reshape(-1)])
                    alike = np.where(able.reshape(tried.shape), alike, -1.0)
                found[left[part]] = tried[np.arange(len(part)), np.argmax(alike, axis=1)]
            left = np.delete(left, some)
        return np.asarray(self._own.row[found], np.int64)


def _few_values(values: pa.ChunkedArray) -> Places:
    """Codes of values, int64[rows]: of many numbers or moments their tenths, of many texts the commonest."""
    codes = pc.dictionary_encode(values.combine_chunks().cast(pa.string()), null_encoding="encode")
    found: Places = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(codes.dictionary) <= _DISTINCT:
        return found
    if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
        common = np.argsort(np.argsort(-np.bincount(found), kind="stable"), kind="stable")
        return np.asarray(np.minimum(common[found], _DISTINCT), np.int64)
    ranks: Places = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy()
    edges = np.unique(np.quantile(ranks, np.arange(1, 10) / 10))
    return np.asarray(np.searchsorted(edges, ranks, "right"), np.int64)


def _information(first: Places, second: Places) -> float:
    """The mutual information of two columns, in nats, less what columns that are independent show."""
    if not len(first):
        return 0.0
    width = int(second.max()) + 1
    joint = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    shares = joint / len(first)
    alone = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    held = shares > 0
    cells = (np.count_nonzero(joint.sum(axis=1)) - 1) * (np.count_nonzero(joint.sum(axis=0)) - 1)
    return float((shares[held] * np.log(shares[held] / alone[held])).sum()) - cells / (2 * len(first))


@dataclass(frozen=True, eq=False)
class Split:
    """Wide rows, split into tables."""

    shape: Shape
    layout: Layout
    wide: pa.Table
    placed: dict[str, Placed]

    @cached_property
    def above(self) -> Mapping[str, str]:
        """The table above each one below the root."""
        return {child.name: shape.name for shape in self.shape.all for child in shape.children}

    def of_roots(self, roots: Places) -> Split:
        """The tables of some rows at the root, in rising order, with the wide rows that these need."""
        kept, placed = {self.shape.name: roots}, dict[str, Placed]()
        for name, own in self.placed.items():
            above = kept[self.above.get(name, name)]
            rows = kept[name] = np.flatnonzero(np.isin(own.owner, above))
            owner = np.searchsorted(above, own.owner[rows])
            placed[name] = Placed(own.starts, own.start[rows], own.row[rows], owner, own.number[rows])
        used = np.unique(np.concatenate([own.row for own in placed.values()]))
        moved = {name: replace(own, row=np.searchsorted(used, own.row)) for name, own in placed.items()}
        return replace(self, wide=self.wide.take(pa.array(used)), placed=moved)

    @staticmethod
    def together(parts: Sequence[Split]) -> Split:
        """The tables of several parts, one after the other."""
        whole, placed = parts[0], dict[str, Placed]()
        for name, first in whole.placed.items():
            own = [part.placed[name] for part in parts]
            above = [len(part.placed[whole.above.get(name, name)].row) for part in parts]
            places = ([place.row for place in own], [part.wide.num_rows for part in parts])
            row, owner = (
                np.concatenate([*map(np.add, some, accumulate(sizes, initial=0))])
                for some, sizes in (places, ([place.owner for place in own], above))
            )
            start, number = (np.concatenate([getattr(p, of) for p in own]) for of in ("start", "number"))
            placed[name] = Placed(first.starts, start, row, owner, number)
        return replace(whole, wide=pa.concat_tables([part.wide for part in parts]), placed=placed)

    def up(self, table: str, to: str, rows: Places | None = None) -> Places:
        """For rows of a table, or for all, the number of the row of one above that each belongs to."""
        found = np.arange(len(self.placed[table].row)) if rows is None else rows
        while table != to:
            found, table = self.placed[table].owner[found], self.above[table]
        return found

    def breaking(self, shape: Shape, rows: Places) -> Truths:
        """Of some rows of a table, those that break one of its rules about rows above."""
        broken = np.zeros(len(rows), np.bool_)
        for rule in map(parse, shape.rules if len(rows) else ()):
            operands = {}
            for name in references(rule):
                table, _, column = name.partition(".")
                whose = (table, column) if table in self.above.values() else (shape.name, name)
                operands[name] = self.operand(*whose, self.up(shape.name, whose[0], rows))
            broken |= np.asarray(pc.fill_null(pc.invert(value_of(rule, operands, len(rows))), False))
        return broken

    def off_the_tie(self, table: str, tie: str) -> int:
        """The rows whose value on one side of a tie has another partner in most rows."""
        left, sign, right = tie_of(undotted(tie)) or ((), "", ())
        texts = [[self._texts(table, c) for c in side] for side in (left, right)]
        rows = pa.concat_tables([pa.table({"left": a, "right": b}) for a, b in zip(*texts, strict=True)])
        pairs = rows.drop_null().group_by(["left", "right"]).aggregate([([], "count_all")])
        sides = ("left", "right") if sign == "<->" else ("left",)
        kept = [pairs.group_by(side).aggregate([("count_all", "max")])["count_all_max"] for side in sides]
        return int(np.sum(pairs["count_all"]) - min(map(np.sum, kept)))

    def _texts(self, table: str, name: str) -> pa.ChunkedArray:
        """A column of a table, or of a row above each of its rows."""
        above, _, column = name.partition(".")
        if above not in self.above.values() or not column:
            return self.placed[table].taken(self.wide, name).cast(pa.string())
        return self._texts(above, column).take(pa.array(self.up(table, above)))

    def operand(self, table: str, column: str, spots: Places | None = None) -> Operand:
        """A column of a table, or that of some of its rows."""
        placed = self.placed[table]
        name = placed.starts[0] + column
        part, values = self.layout.named[name], placed.taken(self.wide, column).combine_chunks()
        values = values if spots is None else values.take(pa.array(spots))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        texts = part.codec.text(values) if isinstance(part, Column) else values.cast(pa.string())
        return Operand(self.layout.kinds[name], values, texts)

    @cached_property
    def derived(self) -> Mapping[str, Mapping[str, pa.Array]]:
        """For each table the columns that are computed from child rows."""
        return {shape.name: self._derived(shape) for shape in self.shape.all}

    def _derived(self, shape: Shape) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, (table, kind, where, *of) in shape.derived.items():
            below, rows = self.placed[table], len(self.placed[shape.name].row)
            operands = {c: self.operand(table, c) for c in references(parse(where or "1"))}
            truths = met(value_of(parse(where or "1 == 1"), operands, len(below.row)))
            values = self.operand(table, of[0]).values.filter(pa.array(truths)) if of else None
            found = aggregated(kind, below.owner[truths], values, rows)
            if kind == "any":
                found = pc.if_else(found, "yes", "no")
            elif of and (decimals := self.decimals(shape, name)) is not None:
                found = pc.round(pc.fill_null(found, 0) if kind == "sum" else found, decimals)
                found = found.cast(pa.float64() if decimals else pa.int64())
            columns[name] = found
        return columns

    def decimals(self, shape: Shape, column: str) -> int | None:
        """The decimals of a column computed from child rows; None if it is no number."""
        table, kind, _, *of = shape.derived[column]
        if not of:
            return 0 if kind == "count" else None
        read = self.layout.kinds[self.placed[table].starts[0] + of[0]]
        return read.decimals + 2 * (kind == "mean") if read.word == "number" else None

    def _derived_texts(self, shape: Shape, column: str, values: pa.Array) -> pa.Array:
        """A column computed from child rows as it is written."""
        table, _, _, *of = shape.derived[column]
        part = self.layout.named[self.placed[table].starts[0] + of[0]] if of else None
        if of and (decimals := self.decimals(shape, column)) is not None:
            found = fixed_texts(values, decimals)
        else:
            found = part.codec.text(values) if isinstance(part, Column) else values.cast(pa.string())
        return pc.fill_null(found, "")

    def tables(self, wide: pa.Table, *, texts: bool = False) -> dict[str, pa.Table]:
        """The tables, by name, with the cells of some wide rows, typed or as texts.

        The rows of one parent's row follow each other.
        """
        found: dict[str, pa.Table] = {}
        self._gather(wide, self.shape, {}, found)
        for shape in self.shape.all if texts else ():
            for spot, column in enumerate(found[shape.name].column_names):
                if column in shape.derived:
                    written = self._derived_texts(shape, column, self.derived[shape.name][column])
                    found[shape.name] = found[shape.name].set_column(spot, column, written)
        return {table.name: found[table.name] for table in self.shape.all}

    def _gather(
        self, wide: pa.Table, shape: Shape, above: Mapping[str, pa.Array], found: dict[str, pa.Table]
    ) -> None:
        placed, keys = self.placed[shape.name], dict(above)
        new = [c for c in shape.key if c not in above]
        # A key that begins with that of the parent numbers the rows of one parent.
        scoped = above and len(new) < len(shape.key)
        for c in new:
            keys[c] = pa.array(placed.number if scoped else np.arange(1, len(placed.row) + 1))
        if shape.number:
            keys.setdefault(shape.number, pa.array(placed.number))
        own = [c for name in shape.columns for c in (name, companion(name))]
        cells = {c: placed.taken(wide, c) for c in own if placed.starts[0] + c in wide.column_names}
        found[shape.name] = pa.table({**keys, **cells, **self.derived[shape.name]})
        for child in shape.children:
            owner = pa.array(self.placed[child.name].owner)
            refers = {c: keys[of].take(owner) for c, of in zip(child.above, shape.key, strict=True)}
            self._gather(wide, child, refers, found)


def met(truths: pa.Array) -> NDArray[np.bool_]:
    """The rows for which a condition is true, bool[rows]."""
    return np.asarray(pc.fill_null(truths, False)).astype(np.bool_)


def aggregated(kind: str, owner: Places, values: pa.Array | None, rows: int) -> pa.Array:
    """Of the rows that belong to each of some rows their count, if there are any, or a figure of values."""
    if values is None:
        counts = np.bincount(owner, minlength=rows)
        return pa.array(counts if kind == "count" else counts > 0)
    values = values if kind in ("min", "max") else pc.cast(values, pa.float64())
    found = pa.table({"row": owner, "": values}).group_by("row").aggregate([("", kind)])
    spots = pc.index_in(pa.array(np.arange(rows)), found["row"].combine_chunks())
    return found[f"_{kind}"].combine_chunks().take(spots)
