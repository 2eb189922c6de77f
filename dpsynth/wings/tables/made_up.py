"""Linked tables that made-up wide rows stand for, written as files: an audit reads them as a release does.

Invariant: a wide row makes rows of its own key alone, so tables of neighbours differ in rows of one root.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpsynth.config import Spec
from dpsynth.config.source import InTables, Source
from dpsynth.wings.tables.keys import LinkedTable, children_of, key_column, most_of, root_of, slot, slots_of
from dpsynth.wings.tables.wide_rows import WideTable

_MANY = 40
"""Rows beyond max_children that a number of rows stands for which is larger, or no number."""

Cells = Mapping[str, str]


def fullest(spec: Spec) -> Cells:
    """The cells of a wide row with as many child rows as are used, in all tables."""
    tables: Mapping[str, LinkedTable] = spec.tables or {}  # type: ignore[assignment]
    return dict(_numbers(tables, root_of(tables), ""))


def _numbers(tables: Mapping[str, LinkedTable], name: str, prefix: str) -> Iterator[tuple[str, str]]:
    for child in children_of(tables, name):
        yield prefix + child, str(most_of(tables[child]))
        for label, _ in slots_of(tables[child]):
            yield from _numbers(tables, child, slot(prefix, child, label))


def written(spec: Spec, names: Sequence[str], rows: Sequence[Sequence[str]], folder: Path) -> Spec:
    """The configuration with tables of wide rows as its sources.

    Args:
        names: the columns of the wide table, with the key of its rows.
        rows: texts; an empty one where nothing is.
        folder: where a CSV file of each table is written.
    """
    tables: Mapping[str, LinkedTable] = spec.tables or {}  # type: ignore[assignment]
    root, key, wide = root_of(tables), key_column(tables), WideTable(tables, {})
    heads = {name: wide.columns_of(name, names) for name in tables}
    found: dict[str, list[list[str]]] = {name: [head] for name, head in heads.items()}
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        for name, own in _rows(tables, heads, root, "", cells, (), cells[key]):
            found[name].append(own)
    for name, lines in found.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
    changed = {
        name: table.model_copy(
            update={"source": Source.model_validate({"path": str(folder / f"{name}.csv")})}
        )
        for name, table in tables.items()
    }
    return spec.model_copy(update={"tables": changed, "source": InTables()})


def _rows(
    tables: Mapping[str, LinkedTable],
    heads: Mapping[str, Sequence[str]],
    name: str,
    prefix: str,
    cells: Cells,
    above: Sequence[str],
    own: str,
) -> Iterator[tuple[str, list[str]]]:
    """The rows of a wide row, each with the name of its table.

    Args:
        heads: the columns of each table.
        above: the parts of the parent's key.
        own: what tells the row among those of one parent's row.
    """
    table = tables[name]
    key = dict(zip(table.parent.key if table.parent else (), above, strict=True))
    row = {c: key.get(c, cells.get(prefix + c, own)) for c in heads[name]}
    yield name, [*row.values()]
    for child in children_of(tables, name):
        number, told = cells.get(prefix + child, ""), slots_of(tables[child])
        most = most_of(tables[child]) + _MANY
        many = min(int(number), most) if number.isascii() and number.isdecimal() else most * (number != "")
        for place in range(many):
            start = slot(prefix, child, told[min(place, len(told) - 1)][0])
            whole = [row[c] for c in table.key or ()]
            yield from _rows(tables, heads, child, start, cells, whole, str(place + 1))
