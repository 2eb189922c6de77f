"""The synthetic tables of a bundle: their files, their description, and their verification.

Invariant: they follow from the wide rows alone, so whoever has these has the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from dpsynth.bundle.manifest import MANIFEST, BundleRefused
from dpsynth.bundle.recipient.opened import OpenedBundle, csv_texts, synthetic_codes, synthetic_texts
from dpsynth.bundle.row_files import SyntheticTable, write_csv
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.config import Spec
from dpsynth.errors import ConfigError
from dpsynth.figures import count, listed, percent
from dpsynth.page_templates import environment
from dpsynth.statistics.estimates import Z95, Unbiased
from dpsynth.statistics.exam import Exam
from dpsynth.wings.tables.keys import OTHER, LinkedTable, root_of, slot
from dpsynth.wings.tables.splitting import Shape, Split, split

FOLDER, FILE, METADATA = "tables", "tables.json", "tables/metadata.json"

_TYPES = {"int": "integer", "double": "number", "bool": "boolean", "date32": "date"}


@dataclass(frozen=True, eq=False)
class Database:
    """The synthetic tables of a release.

    Attributes:
        typed: each table, by name.
        texts: the same as they are written in CSV files.
        errors: measured errors of pairs of columns, by how the tables link them.
        numbers: how many rows the tables right below the root have, with limits.
    """

    release: str
    shape: Shape
    typed: Mapping[str, pa.Table]
    texts: Mapping[str, pa.Table]
    formats: tuple[str, ...]
    layout: Layout
    errors: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def in_words(self) -> tuple[str, ...]:
        root, below = self.shape, [*self.shape.all][1:]
        rows = listed([f"{count(self.typed[t.name].num_rows)} of {t.name}" for t in root.all])
        child = root.children[0]
        column = slot("", child.name, "1") + child.columns[0]
        runs = {
            t.name: f"{t.most} that follow each other" if t.window else f"the first {t.most}" for t in below
        }
        used = listed([f"{name} beyond {run}" for name, run in runs.items()])
        for_all = [
            f"Columns {slot('', t.name, OTHER)}… are of one row of {t.name} beyond the first {t.roles}, at "
            "random, which stands for all of these. Such rows of one parent are drawn independently of each "
            "other, given the first ones."
            for t in below
            if t.roles < t.most
        ]
        said = (
            f"By the exam, so many rows of {root.name} are off in two columns, on average, with 95 % limits"
        )
        by_links = [f"{said}: {'; '.join(self.errors)}."] if self.errors else []
        told = listed(self.numbers)
        rows_below = [f"By noisy counts the private tables have {told}, with 95 % limits."] if told else []
        return (
            f"The folder {FOLDER} has {count(len(below) + 1)} linked tables with new keys; their rows are "
            f"{rows}. {FILE} says which columns hold keys.",
            *rows_below,
            "The synthetic table has the same rows beside each other, one for each row of "
            f"{root.name}. There {child.name} is the number of its rows of {child.name}, and {column} is "
            f"{child.columns[0]} of the first one. All figures here are about these columns.",
            *for_all,
            *(t.obeyed for t in below if t.obeyed),
            *by_links,
            f"What is protected is a row of {root.name} with all rows that belong to it. Private rows of "
            f"{used} of one row above are left out.",
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
        for file in (FILE, METADATA):
            text = json.dumps(self._described(Path(file).name), ensure_ascii=False, indent=1)
            (folder / file).write_text(f"{text}\n", encoding="utf-8", newline="\n")
            yield file

    @property
    def _has_texts(self) -> bool:
        return any(name.startswith("csv") for name in self.formats)

    def _described(self, file: str) -> dict[str, Any]:
        """The tables with their keys as a Data Package (Frictionless), or in SDV's metadata."""
        above: dict[str, tuple[str, Shape | None]] = {self.shape.name: ("", None)}
        pages, tables = environment("wings/tables"), []
        pages.policies["json.dumps_kwargs"] = {"sort_keys": False}
        shown, ending = (self.texts, "csv") if self._has_texts else (self.typed, "parquet")
        for table in self.shape.all:
            start, parent = above[table.name]
            above |= {c.name: (slot(start, c.name, "1"), table) for c in table.children}
            types = self.typed[table.name].schema
            fields = [
                {"name": c, "type": _type(types.field(c).type), "sdv": self._sdtype(table, start, c)}
                for c in shown[table.name].column_names
            ]
            keys = {"name": table.name, "key": table.key, "above": table.above}
            tables.append({**keys, "parent": parent, "fields": fields})
        filled = pages.get_template(f"{file}.j2").render(release=self.release, tables=tables, ending=ending)
        found: dict[str, Any] = json.loads(filled)
        return found

    def _sdtype(self, table: Shape, start: str, column: str) -> dict[str, str]:
        below, kind, _, *of = table.derived.get(column, ("", "", ""))
        read = slot(start, below, "1") + of[0] if of else start + column
        part = self.layout.named.get(read)
        counted = column == table.number or kind == "count"
        word = "number" if counted else "" if part is None else self.layout.kinds[part.name].word
        if isinstance(part, Column) and word in ("date", "datetime"):
            return {"sdtype": "datetime", "datetime_format": str(part.codec.schema["format"])}
        kinds = {"number": "numerical", "truth": "boolean"}
        return {"sdtype": "id" if column in table.key + table.above else kinds.get(word, "categorical")}


def _type(kind: pa.DataType) -> str:
    word = str(pa.string() if pa.types.is_dictionary(kind) else kind)
    return next((known for start, known in _TYPES.items() if word.startswith(start)), "string")


def _errors(shape: Shape, exam: Exam | None) -> Iterator[str]:
    """The measured errors of pairs of columns by how the tables link them, as parts of a sentence."""
    if exam is None:
        return
    whose = dict.fromkeys(shape.columns, "")
    for child in shape.children:
        whose[child.name] = ""
        for label, _ in child.slots:
            whose |= {slot("", child.name, label) + c: f"{child.name} {label}" for c in child.columns}
    for child in shape.children:
        own = {f"{child.name} {label}" for label, _ in child.slots}

        for kind, words in (
            ("above", f"a column of {shape.name} and one of {child.name}"),
            ("within", f"two columns of one row of {child.name}"),
            ("between", f"columns of two rows of {child.name}"),
        ):
            pairs = partial(_linked, kind, whose, own)
            found = exam.mean_error("pair", of=pairs)
            if found is not None:
                limits = f"{percent(found.low)} to {percent(found.high)}"
                yield f"{percent(found.mean_error)} for {words} ({limits})"


def _linked(kind: str, whose: Mapping[str, str], own: Set[str], clique: Clique) -> bool:
    """True of columns of a child's rows that are linked so: to those above, in one row, or of two rows."""
    sides = {whose.get(c, "?") for c in clique}
    if kind == "above":
        return len(sides & own) == 1 and sides - own == {""}
    return sides <= own and (len(sides) == 1) == (kind == "within")


def _numbers(shape: Shape, layout: Layout, direct: Unbiased) -> Iterator[str]:
    """The rows of each table right below the root, ``max_children`` of one root at most, as parts of a list.

    Large numbers of rows share cells, and count as the middle of theirs.
    """
    for child in shape.children:
        column = layout.named[child.name]
        assert isinstance(column, Column) and column.centres is not None
        rows = np.zeros(column.size)
        rows[: column.centres.size] = np.minimum(column.centres, child.most)
        total = float(direct.marginal((child.name,)) @ rows)
        half = Z95 * sqrt(direct.variance((child.name,), rows))
        limits = " to ".join(count(max(round(end), 0)) for end in (total - half, total + half))
        yield f"{limits} rows of {child.name} (at most {child.most} for one of {shape.name})"


def database_of(
    spec: Spec, layout: Layout, table: SyntheticTable, exam: Exam | None, direct: Unbiased
) -> Database:
    """The tables of a release, from its synthetic rows.

    Args:
        direct: estimates by noisy counts alone.
    """
    tables: Mapping[str, LinkedTable] = spec.tables  # type: ignore[assignment]
    shape = Shape.of(tables, root_of(tables))
    made = database(spec.release, split(table.table, shape, layout), spec.publish.formats)
    numbers = tuple(_numbers(shape, layout, direct))
    return replace(made, errors=tuple(_errors(shape, exam)), numbers=numbers)


def database(release: str, found: Split, formats: tuple[str, ...]) -> Database:
    """The tables that typed wide rows were split into, as they are written."""
    texts = found.tables(pa.table(dict(found.layout.texts(found.wide))), texts=True)
    return Database(release, found.shape, found.tables(found.wide), texts, formats, found.layout)


def opened_tables(bundle: OpenedBundle) -> dict[str, pa.Table]:
    """The tables of a bundle, by name; typed, where it has Parquet files."""
    found = {}
    for table in shape_of(bundle).all:
        path = bundle.folder / FOLDER / f"{table.name}.parquet"
        typed = path.exists()
        found[table.name] = pq.read_table(path) if typed else pa.table(csv_texts(path.with_suffix(".csv")))
    return found


def shape_of(bundle: OpenedBundle) -> Shape:
    """The tables of a bundle.

    Raises:
        ConfigError: it has a single one.
    """
    if bundle.facts.tables is None:
        raise ConfigError("This bundle has one table, and no linked ones: use its synthetic rows.")
    return TypeAdapter(Shape).validate_python(bundle.facts.tables["root"])


def wide_rows(bundle: OpenedBundle) -> pa.Table:
    """The synthetic rows of a bundle, typed."""
    path = bundle.folder / "synthetic.parquet"
    if path.exists():
        return pq.read_table(path)
    texts = synthetic_texts(bundle)
    drawn = {}
    for column in bundle.layout.columns:
        values, kind = column.codec.parsed(column.values_of(texts[column.source])), column.codec.arrow_type
        drawn[column.name] = values if pa.types.is_dictionary(kind) else values.cast(kind)
    codes = {c: own.astype(np.int64) for c, own in synthetic_codes(bundle).items()}
    return bundle.layout.whole(codes, drawn)


def formats_of(bundle: OpenedBundle) -> tuple[str, ...]:
    """The formats of a bundle's tables."""
    return tuple(sorted({path.suffix[1:] for path in (bundle.folder / FOLDER).iterdir()}))


def checked_tables(bundle: OpenedBundle) -> tuple[list[str], list[tuple[str, str]]]:
    """Sentences on what of a bundle's tables was found to be right, and faults."""
    try:
        shape = shape_of(bundle)
        faults = [*_differing(bundle, shape), *_wrong_keys(opened_tables(bundle), shape)]
        if any(table.obeyed for table in shape.all):
            faults += _breaking(split(wide_rows(bundle), shape, bundle.layout))
        names = listed([table.name for table in shape.all])
    except (KeyError, TypeError, ValueError, OSError, BundleRefused, pa.ArrowException) as error:
        return [], [(MANIFEST, f"describes tables that are damaged or missing ({type(error).__name__}).")]
    words = f"The rows of {names} are those of the synthetic table: each key is there once, and each row has "
    kept = [table.obeyed for table in shape.all if table.obeyed]
    return [] if faults else [f"{words}its parent.", *kept], faults


def _differing(bundle: OpenedBundle, shape: Shape) -> Iterator[tuple[str, str]]:
    """Files that are not what the synthetic table makes."""
    found = split(wide_rows(bundle), shape, bundle.layout)
    made = database(bundle.facts.release, found, formats_of(bundle))
    with TemporaryDirectory() as folder:
        for file in made.write(Path(folder)):
            path = bundle.folder / file
            if path.exists() and _content(path) != _content(Path(folder) / file):
                yield file, "is not what follows from the synthetic table."


def _breaking(found: Split) -> Iterator[tuple[str, str]]:
    """Tables with rows that break rules about rows above, or ties."""
    for table in found.shape.all:
        rows = np.arange(len(found.placed[table.name].row))
        broken = int(found.breaking(table, rows).sum())
        if broken:
            words = f"has {count(broken)} rows that break one of: {'; '.join(table.across)}."
            yield f"{FOLDER}/{table.name}", words
        for tie in table.ties:
            if off := found.off_the_tie(table.name, tie):
                yield f"{FOLDER}/{table.name}", f"has {count(off)} rows that break {tie}."


def _wrong_keys(tables: Mapping[str, pa.Table], shape: Shape) -> Iterator[tuple[str, str]]:
    """Faults of keys, and of numbers of child rows."""
    for table in shape.all:
        own = tables[table.name]
        if table.key and len(own.group_by(list(table.key)).aggregate([])) < own.num_rows:
            yield f"{FOLDER}/{table.name}", "has a key twice."
        for child in table.children:
            owners = tables[child.name].group_by(list(child.above)).aggregate([([], "count_all")])
            met = owners.join(own, list(child.above), list(table.key), "inner")
            if met.num_rows < owners.num_rows:
                yield f"{FOLDER}/{child.name}", f"has rows without a row of {table.name}."
            if (pc.max(owners["count_all"]).as_py() or 0) > child.most:
                yield f"{FOLDER}/{child.name}", f"has more than {child.most} rows of one row of {table.name}."


def _content(path: Path) -> object:
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    return csv_texts(path) if path.suffix == ".csv" else pq.read_table(path)
