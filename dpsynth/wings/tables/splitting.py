"""The synthetic tables of a release: its wide rows, split again, with new keys.

Invariant: post-processing of the synthetic rows. Every key is there once, every row below the root has its
parent, and no row of a parent has more children than the configuration allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth.bundle.manifest import MANIFEST
from dpsynth.bundle.recipient.opened import OpenedBundle, csv_texts, synthetic_texts
from dpsynth.bundle.row_files import SyntheticTable, write_csv
from dpsynth.columns.layout import Layout, companion
from dpsynth.config import Spec
from dpsynth.figures import count, listed
from dpsynth.wings.tables.keys import LinkedTable, children_of, most_of, root_of, slot

FOLDER, FILE = "tables", "tables.json"

_TYPES = {"int": "integer", "double": "number", "bool": "boolean", "date32": "date"}


@dataclass(frozen=True)
class Shape:
    """One of linked tables, as the wide rows have it.

    Attributes:
        key: the columns that tell its rows apart; none where nothing refers to them.
        above: the columns that hold its parent's key; none at the root.
        number: a column that numbers the rows of one parent's row; "" without.
        columns: its other columns.
        most: the most rows of one parent's row.
    """

    name: str
    key: tuple[str, ...]
    above: tuple[str, ...]
    number: str
    columns: tuple[str, ...]
    most: int
    children: tuple[Shape, ...]

    @staticmethod
    def of(tables: Mapping[str, LinkedTable], name: str) -> Shape:
        table = tables[name]
        columns = tuple(c for c, d in table.columns.items() if d.type != "identifier")
        order = table.order_by or ""
        return Shape(
            name,
            table.key or (),
            table.parent.key if table.parent else (),
            "" if order in (*columns, *(table.key or ())) else order,
            (*columns, *table.derived),
            most_of(table) if table.parent else 1,
            tuple(Shape.of(tables, child) for child in children_of(tables, name)),
        )

    @staticmethod
    def from_json(stated: Mapping[str, Any]) -> Shape:
        """The shape that a manifest states.

        Raises:
            KeyError, TypeError: it states none.
        """
        texts = {c: tuple(map(str, stated[c])) for c in ("key", "above", "columns")}
        below = tuple(Shape.from_json(child) for child in stated["children"])
        return Shape(
            str(stated["name"]),
            texts["key"],
            texts["above"],
            str(stated["number"]),
            texts["columns"],
            int(stated["most"]),
            below,
        )

    def to_json(self) -> dict[str, Any]:
        own = {c: list(getattr(self, c)) for c in ("key", "above", "columns")}
        children = [child.to_json() for child in self.children]
        return {"name": self.name, "number": self.number, "most": self.most, **own, "children": children}

    @property
    def all(self) -> Iterator[Shape]:
        """It, and all tables below."""
        yield self
        for child in self.children:
            yield from child.all

    def wide(self, present: Sequence[str]) -> list[str]:
        """The columns that one of its rows takes in wide rows, with those for missing markers."""
        found = [c for own in self.columns for c in (own, companion(own))]
        for child in self.children:
            found.append(child.name)
            for i in range(1, child.most + 1):
                found += [slot("", child.name, i) + c for c in child.wide(present)]
        return found


def split(wide: pa.Table, shape: Shape) -> dict[str, pa.Table]:
    """The tables that wide rows stand for, by name; those of one parent's row follow each other.

    Args:
        wide: wide rows; numbers of child rows are integers, all else is typed or text.
    """
    found: dict[str, pa.Table] = {}
    _split(wide, shape, {}, None, found)
    return {table.name: found[table.name] for table in shape.all}


def _split(
    wide: pa.Table,
    shape: Shape,
    above: Mapping[str, pa.Array],
    number: pa.Array | None,
    found: dict[str, pa.Table],
) -> None:
    keys = dict(above)
    new = [c for c in shape.key if c not in above]
    scoped = len(new) < len(shape.key) and number is not None
    for c in new:
        # A key that begins with that of the parent numbers the rows of one parent.
        keys[c] = number if scoped else pa.array(np.arange(1, wide.num_rows + 1))
    if shape.number and number is not None:
        keys.setdefault(shape.number, number)
    held = {*wide.column_names}
    own = {c: wide[c] for name in shape.columns for c in (name, companion(name)) if c in held}
    found[shape.name] = pa.table({**keys, **own})
    for child in shape.children:
        many = np.minimum(pc.fill_null(wide[child.name], 0).to_numpy(), child.most)
        rows = np.repeat(np.arange(wide.num_rows), many)
        turn = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)
        columns = child.wide(wide.column_names)
        parts, spots = [], []
        for i in range(child.most):
            names = [slot("", child.name, i + 1) + c for c in columns]
            known = {c: n for c, n in zip(columns, names, strict=True) if n in held}
            here = np.flatnonzero(turn == i)
            part = wide.select(list(known.values())).rename_columns(list(known)).take(pa.array(rows[here]))
            parts.append(part)
            spots.append(here)
        together = pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(spots), kind="stable")))
        refers = zip(child.above, (keys[c] for c in shape.key), strict=True)
        key = {c: pc.take(values, pa.array(rows)) for c, values in refers}
        _split(together, child, key, pa.array(turn + 1), found)


def _texts(texts: Mapping[str, pa.Array], typed: pa.Table, shape: Shape) -> pa.Table:
    """Wide rows as texts, but for the numbers of child rows."""
    numbers = {*_numbers(shape, "")}
    columns = {c: typed[c] if c in numbers else t for c, t in texts.items()}
    return pa.table(columns)


def _numbers(shape: Shape, prefix: str) -> Iterator[str]:
    for child in shape.children:
        yield prefix + child.name
        for i in range(1, child.most + 1):
            yield from _numbers(child, slot(prefix, child.name, i))


@dataclass(frozen=True, eq=False)
class Database:
    """The synthetic tables of a release.

    Attributes:
        typed: each table, by name.
        texts: the same as they are written in CSV files.
    """

    release: str
    shape: Shape
    typed: Mapping[str, pa.Table]
    texts: Mapping[str, pa.Table]
    formats: tuple[str, ...]

    @property
    def in_words(self) -> tuple[str, ...]:
        root, below = self.shape, [*self.shape.all][1:]
        rows = listed([f"{count(self.typed[t.name].num_rows)} of {t.name}" for t in root.all])
        child = root.children[0]
        column = slot("", child.name, 1) + child.columns[0]
        first = listed([f"{t.name} beyond the first {t.most}" for t in below])
        return (
            f"The folder {FOLDER} has {count(len(below) + 1)} linked tables with new keys; their rows are "
            f"{rows}. {FILE} says which columns hold keys.",
            "The synthetic table has the same rows beside each other, one for each row of "
            f"{root.name}. There {child.name} is the number of its rows of {child.name}, and {column} is "
            f"{child.columns[0]} of the first one. All figures here are about these columns.",
            f"What is protected is a row of {root.name} with all rows that belong to it. Private rows of "
            f"{first} of one row above are left out.",
        )

    def to_json(self) -> dict[str, Any]:
        return {"in_words": list(self.in_words), "root": self.shape.to_json(), "file": FILE}

    def write(self, folder: Path) -> Iterator[str]:
        """Write the tables and their description, and yield the name of each file."""
        (folder / FOLDER).mkdir()
        for name, table in self.typed.items():
            if self._has_texts:
                file, texts = f"{FOLDER}/{name}.csv", self.texts[name]
                cells = [c.combine_chunks().cast(pa.string()) for c in texts.columns]
                write_csv(folder / file, texts.column_names, cells)
                yield file
            if "parquet" in self.formats:
                file = f"{FOLDER}/{name}.parquet"
                pq.write_table(table.replace_schema_metadata(None), folder / file, compression="zstd")
                yield file
        text = json.dumps(self._described(), ensure_ascii=False, indent=1)
        (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")
        yield FILE

    @property
    def _has_texts(self) -> bool:
        return any(name.startswith("csv") for name in self.formats)

    def _described(self) -> dict[str, Any]:
        """A Data Package (Frictionless) of the tables, with their keys."""
        above = {child.name: table for table in self.shape.all for child in table.children}
        shown, ending = (self.texts, "csv") if self._has_texts else (self.typed, "parquet")
        resources = []
        for table in self.shape.all:
            types = self.typed[table.name].schema
            fields = [{"name": c, "type": _type(types.field(c).type)} for c in shown[table.name].column_names]
            schema: dict[str, Any] = {"fields": fields}
            if table.key:
                schema["primaryKey"] = list(table.key)
            if table.name in above:
                parent = above[table.name]
                reference = {"resource": parent.name.lower(), "fields": list(parent.key)}
                schema["foreignKeys"] = [{"fields": list(table.above), "reference": reference}]
            path = f"{FOLDER}/{table.name}.{ending}"
            resources.append({"name": table.name.lower(), "path": path, "schema": schema})
        name = "".join(c if c.isalnum() or c in "-._" else "-" for c in self.release.lower())
        return {"name": name, "resources": resources}


def _type(kind: pa.DataType) -> str:
    word = str(pa.string() if pa.types.is_dictionary(kind) else kind)
    return next((known for start, known in _TYPES.items() if word.startswith(start)), "string")


def database_of(spec: Spec, layout: Layout, table: SyntheticTable) -> Database:
    """The tables of a release, from its synthetic rows."""
    tables: Mapping[str, LinkedTable] = spec.tables  # type: ignore[assignment]
    shape, wide = Shape.of(tables, root_of(tables)), table.table
    texts = split(_texts(layout.texts(wide), wide, shape), shape)
    return Database(spec.release, shape, split(wide, shape), texts, spec.publish.formats)


def opened_tables(bundle: OpenedBundle) -> dict[str, pa.Table]:
    """The tables of a bundle, by name; typed, where it has Parquet files."""
    found = {}
    for table in _shape(bundle).all:
        path = bundle.folder / FOLDER / f"{table.name}.parquet"
        typed = path.exists()
        found[table.name] = pq.read_table(path) if typed else pa.table(csv_texts(path.with_suffix(".csv")))
    return found


def _shape(bundle: OpenedBundle) -> Shape:
    return Shape.from_json((bundle.facts.tables or {})["root"])


def checked_tables(bundle: OpenedBundle) -> tuple[list[str], list[tuple[str, str]]]:
    """Sentences on what of a bundle's tables was found to be right, and faults."""
    try:
        shape, texts = _shape(bundle), synthetic_texts(bundle)
        numbers = {c: _whole(texts[c]) for c in _numbers(shape, "")}
        faults = []
        for name, expected in split(pa.table({**texts, **numbers}), shape).items():
            wanted = {c: expected[c].cast(pa.string()) for c in expected.column_names}
            path = bundle.folder / FOLDER / f"{name}.csv"
            if path.exists() and pa.table(csv_texts(path)) != pa.table(wanted):
                faults.append((f"{FOLDER}/{name}.csv", "has other rows than the synthetic table."))
        path = bundle.folder / "synthetic.parquet"
        for name, table in split(pq.read_table(path), shape).items() if path.exists() else ():
            file = f"{FOLDER}/{name}.parquet"
            if pq.read_table(bundle.folder / file) != table.replace_schema_metadata(None):
                faults.append((file, "has other rows than the synthetic table."))
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        return [], [(MANIFEST, f"describes tables that are damaged or missing ({type(error).__name__}).")]
    names = listed([table.name for table in shape.all])
    words = f"The rows of {names} are those of the synthetic table: each key is there once, and each row has "
    return [] if faults else [f"{words}its parent."], faults


def _whole(texts: pa.Array) -> pa.Array:
    return pc.cast(pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts), pa.int64())
