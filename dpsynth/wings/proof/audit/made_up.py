"""Made-up tables of a config, and neighbours of them, random and adversarial.

Invariant: they follow from the config alone. A neighbour differs from its table in one unit, as the config
counts units.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.pipeline.inputs import Inputs
from dpsynth.pipeline.rehearsal import made_up_table
from dpsynth.pipeline.reservation import Occasion

Row = tuple[str, ...]

WILD = (
    "",
    " ",
    "NaN",
    "inf",
    "-1e999",
    "99999999999",
    "-0",
    "\U0001f4a5",
    "e\u0301",
    "x" * 5000,
    "=1+1",
    "?",
    "None",
    "2024-02-30",
    'a,b\n"c"',
)
"""Cells that no config foresees."""
_MANY = 40
"""Rows of a unit that has far more than its contribution bound allows."""


@dataclass(frozen=True)
class MadeUpTable:
    """A made-up table of texts.

    Attributes:
        names: its columns.
        rows: its rows; one with another number of cells is broken.
        near: the neighbour relation of the config.
        slice_column: the column of the period; None without periods.
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    near: Neighbours
    slice_column: str | None = None

    def write(self, path: Path) -> Path:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.names, *self.rows])
        return path

    def person_of(self, row: Row) -> str | None:
        """The text in the person's column; None where rows are the units."""
        return None if self.near.person is None else row[self.names.index(self.near.person)]

    def with_cells(self, row: Row, cells: Mapping[str, str]) -> Row:
        return tuple(cells.get(name, text) for name, text in zip(self.names, row, strict=True))

    def holding(self, rows: Sequence[Row]) -> MadeUpTable:
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class Neighbour:
    """A table that differs in one unit.

    Attributes:
        change: the change in words.
        table: the table after it.
    """

    change: str
    table: MadeUpTable


def made_up(inputs: Inputs, occasion: Occasion, rows: int, seed: int) -> MadeUpTable:
    """A table whose columns depend on each other a little; see ``lifecycle.rehearsal.made_up_table``.

    Args:
        inputs: the inputs of a release of the config.
        occasion: its occasion, with the slice.
        rows: number of rows.
        seed: decides the rows.
    """
    table = made_up_table(inputs, occasion, rows, np.random.default_rng(seed))
    cells = [[cell or "" for cell in table.column(name).to_pylist()] for name in table.column_names]
    slice_column = None if occasion.part is None else occasion.part.column
    return MadeUpTable(
        tuple(table.column_names), tuple(zip(*cells, strict=True)), inputs.plan.neighbours, slice_column
    )


def rarest(table: MadeUpTable) -> Row:
    """The row whose cells are the rarest: the unit that stands out most."""
    counts = [Counter(cells) for cells in zip(*table.rows, strict=True)]
    skipped = (table.near.person, table.slice_column)
    return max(
        table.rows,
        key=lambda row: sum(
            1 / count[text]
            for name, count, text in zip(table.names, counts, row, strict=True)
            if name not in skipped
        ),
    )


def extreme_pair(
    table: MadeUpTable, full: Mapping[str, str] | None = None
) -> tuple[MadeUpTable, MadeUpTable, Row]:
    """Two neighbours that are as far apart as the relation allows, and the row by which they differ.

    A unit with as many equal rows as its bound allows comes. Where units are exchanged, it takes the place of
    one whose rows are equal too.

    Args:
        full: cells that the row has in any case.
    """
    here = table.with_cells(rarest(table), full or {})
    common = tuple(Counter(cells).most_common(1)[0][0] for cells in zip(*table.rows, strict=True))
    near, name = table.near, "the one in question"

    def unit(row: Row) -> list[Row]:
        own = {near.person: name} if near.person is not None else {}
        kept = {table.slice_column: here[table.names.index(table.slice_column)]} if table.slice_column else {}
        return [table.with_cells(row, {**kept, **own})] * near.max_rows

    others = list(table.rows)
    with_unit = [*others, *unit(here)]
    without = [*others, *unit(common)] if near.relation == "replace_one" else others
    return table.holding(with_unit), table.holding(without), with_unit[-1]


def neighbours(table: MadeUpTable, rng: np.random.Generator) -> Iterator[Neighbour]:
    """Neighbours without end: every kind of change in turn, each time with another unit.

    An empty table has none where units are exchanged.

    Args:
        table: the table.
        rng: decides the unit and its place.
    """
    while table.rows or table.near.relation == "add_remove":
        for words, rows in _arriving(table, rng).items():
            if table.near.relation == "replace_one":
                changed = _placed(table, _without_one(table, rng), rows, rng)
                yield Neighbour(f"a unit is exchanged for {words}", changed)
            else:
                yield Neighbour(f"{words} comes", _placed(table, list(table.rows), rows, rng))
        if table.near.relation == "add_remove" and table.rows:
            yield Neighbour("the first unit goes", table.holding(_without(table, table.rows[0])))
            yield Neighbour("the last unit goes", table.holding(_without(table, table.rows[-1])))
            yield Neighbour("a unit goes", table.holding(_without_one(table, rng)))


def _without_one(table: MadeUpTable, rng: np.random.Generator) -> list[Row]:
    return _without(table, table.rows[rng.integers(len(table.rows))])


def _without(table: MadeUpTable, row: Row) -> list[Row]:
    """The rows without the unit of one of them."""
    if table.near.person is None:
        at = table.rows.index(row)
        return [*table.rows[:at], *table.rows[at + 1 :]]
    person = table.person_of(row)
    return [r for r in table.rows if table.person_of(r) != person]


def _placed(
    table: MadeUpTable, kept: list[Row], arriving: list[Row], rng: np.random.Generator
) -> MadeUpTable:
    rows = list(kept)
    for row in arriving:
        rows.insert(int(rng.integers(len(rows) + 1)), row)
    return table.holding(rows)


def _arriving(table: MadeUpTable, rng: np.random.Generator) -> dict[str, list[Row]]:
    """Units that may come, by a description."""
    usual = table.rows[rng.integers(len(table.rows))] if table.rows else ("",) * len(table.names)
    columns = [sorted(set(cells)) for cells in zip(*table.rows, strict=True)] or [[""]] * len(table.names)
    make: dict[str, Callable[[], Row]] = {
        "a unit like another": lambda: usual,
        "a unit of the rarest cells": lambda: rarest(table) if table.rows else usual,
        "a unit of the first values": lambda: tuple(cells[0] for cells in columns),
        "a unit of the last values": lambda: tuple(cells[-1] for cells in columns),
        "a unit without any cell": lambda: ("",) * len(table.names),
        "a unit with a new value in each column": lambda: ("never seen before",) * len(table.names),
        "a unit of cells that no config foresees": lambda: tuple(
            WILD[rng.integers(len(WILD))] for _ in table.names
        ),
    }
    single = {words: [_inside(table, row(), usual)] for words, row in make.items()}
    if table.near.person is None:
        # A row with too few or too many cells is one unit too.
        return {**single, "a row cut short": [usual[:1]], "a row with a cell too many": [(*usual, "more")]}
    most = table.near.max_rows
    many = {
        f"{words}, in {number} rows": [_inside(table, row(), usual) for _ in range(number)]
        for words, row in make.items()
        for number in (most, most + _MANY)
    }
    named = {
        words: [_named(table, row, "somebody new") for row in rows] for words, rows in (single | many).items()
    }
    spelled = [" somebody  new ", "Somebody NEW\t"]
    usual_rows = [_named(table, _inside(table, usual, usual), name) for name in spelled for _ in range(most)]
    named["a unit whose name is spelled in two ways"] = usual_rows
    named["a unit whose name no alphabet holds alone"] = [
        _named(table, row, "Zo\u00eb \u5f20\U0001f4a5\u200b e\u0301") for row in single["a unit like another"]
    ]
    if table.near.nameless == "left_out":
        named["rows without a name"] = [_named(table, usual, "")] * (most + 1)
    return named


def _inside(table: MadeUpTable, row: Row, usual: Row) -> Row:
    """The row, within the slice that the release is about: rows outside it count for nothing."""
    if table.slice_column is None:
        return row
    return table.with_cells(row, {table.slice_column: usual[table.names.index(table.slice_column)]})


def _named(table: MadeUpTable, row: Row, name: str) -> Row:
    person = table.near.person
    return row if person is None else table.with_cells(row, {person: name})
