"""Audits of every kind of release: strategies, found domains, units, relations, noise, rules and sources."""

import gzip
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.config import from_mapping
from dpsynth.config.source import Source
from dpsynth.config.structure import METHODS
from dpsynth.wings.proof.audit import Audit, Extent, audit, auditing
from dpsynth.wings.proof.audit.made_up import MadeUpTable

USUAL: Mapping[str, object] = {
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 4},
    "pay": {"type": "number", "bins": [0, 0.5, 10, 100], "decimals": 1},
    "sex": {"type": "category", "values": ["F", "M"], "other": "elsewhere"},
    "well": {"type": "boolean", "missing": False},
}
FOUND: Mapping[str, object] = {
    "age": {"type": "integer", "bounds": "private", "edges": "tree", "bins": 8},
    "pay": {"type": "number", "min": 0, "max": 100, "edges": "quantiles", "bins": 4, "decimals": 1},
    "sex": {"type": "category", "open": True, "values": ["F"], "most": 4},
    "well": {"type": "boolean"},
}
COLUMNS = {"declared": USUAL, "found": FOUND}
PERSON: Mapping[str, object] = {"unit": {"column": "who", "max_rows": 3}}
UNITS: Mapping[str, Mapping[str, object]] = {
    "row": {},
    "person": PERSON,
    "person, bound found": {"unit": {"column": "who", "max_rows": "private"}},
}
NOISES: Mapping[str, Mapping[str, object]] = {
    "gaussian": {"delta": 1e-6},
    "laplace": {"noise": "laplace"},
    "laplace with delta": {"noise": "laplace", "delta": 1e-6},
}
RULES: Mapping[str, Mapping[str, object]] = {
    "no rule": {},
    "rules": {"constraints": ["well implies age <= 90"]},
    "sums": {"publish": {"statistics": [{"mean": "pay"}]}},
}


def _as_csv(table: MadeUpTable, path: Path) -> Path:
    return written(table, path)


def _as_gzip(table: MadeUpTable, path: Path) -> Path:
    packed = path.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(written(table, path).read_bytes()))
    return packed


def _as_parquet(table: MadeUpTable, path: Path) -> Path:
    # A broken row can't be: its cells are cut off, or filled up.
    rows = [(*row, *[""] * len(table.names))[: len(table.names)] for row in table.rows]
    cells = zip(*rows, strict=True) if rows else [()] * len(table.names)
    columns = {name: pa.array(list(c), pa.string()) for name, c in zip(table.names, cells, strict=True)}
    file = path.with_suffix(".parquet")
    pq.write_table(pa.table(columns), file)
    return file


def _as_folder(table: MadeUpTable, path: Path) -> Path:
    folder = path.with_suffix("")
    folder.mkdir()
    half = len(table.rows) // 2
    for number, rows in enumerate((table.rows[:half], table.rows[half:])):
        _as_parquet(table.holding(rows), folder / f"{number}.csv")
    return folder


def _as_database(table: MadeUpTable, path: Path) -> Path:
    file = path.with_suffix(".source")
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE people ({', '.join(f'{n} TEXT' for n in table.names)})")
        marks = ", ".join("?" for _ in table.names)
        rows = [(*row, *[""] * len(table.names))[: len(table.names)] for row in table.rows]
        connection.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    connection.close()
    return file


written = MadeUpTable.write
SOURCES = {
    "csv": _as_csv,
    "csv.gz": _as_gzip,
    "parquet": _as_parquet,
    "folder": _as_folder,
    "sqlite": _as_database,
}


SECTIONS: Mapping[str, Callable[[str], dict[str, object]]] = {
    "folder": lambda path: {"path": path, "format": "parquet"},
    "sqlite": lambda path: {"url": f"sqlite:///{path}", "query": "SELECT * FROM people"},
}
"""The section of a source that its path doesn't say."""


def of_kind(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Have audits read their tables from another kind of source."""
    monkeypatch.setattr(MadeUpTable, "write", SOURCES[kind])
    if kind not in SECTIONS:
        return

    class Otherwise(Source):
        @classmethod
        def model_validate(cls, section: object, **more: object) -> Source:  # type: ignore[override]
            path = section["path"]  # type: ignore[index]
            return Source.model_validate(section if path == "made-up.csv" else SECTIONS[kind](path))

    monkeypatch.setattr(auditing, "Source", Otherwise)


def audited(method: str, columns: str, unit: str, relation: str, noise: str, rules: str) -> Audit:
    structure: dict[str, object] = {"method": method}
    if method == "fixed":
        structure["cliques"] = [["age", "pay"], ["pay", "sex", "well"]]
    declared = COLUMNS[columns]
    if noise == "laplace":
        # Values can't be found without a delta.
        declared = {**declared, "sex": USUAL["sex"]}
    spec = from_mapping(
        {
            "source": {"path": "nowhere.csv"},
            "privacy": {"epsilon": 2, "neighbours": relation, **NOISES[noise], **UNITS[unit]},
            "ledger": {"url": "sqlite:///nowhere/ledger.db", "dataset": "people"},
            "columns": declared,
            "structure": structure,
            **RULES[rules],
        }
    )
    return audit(spec, Extent(rows=60, neighbours=20, releases=0))


KINDS = (
    sorted(METHODS),
    list(COLUMNS),
    list(UNITS),
    ["add_remove", "replace_one"],
    list(NOISES),
    list(RULES),
    list(SOURCES),
)
ALL = [
    tuple(axis[(number + number // len(axis) * place) % len(axis)] for place, axis in enumerate(KINDS))
    for number in range(16)
]
"""Cases with each value of each kind, in different company."""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "columns", "unit", "relation", "noise", "rules", "source"), ALL)
def test_every_kind_of_release_is_replayed_without_a_contradiction(
    monkeypatch, method: str, columns: str, unit: str, relation: str, noise: str, rules: str, source: str
) -> None:
    of_kind(monkeypatch, source)
    found = audited(method, columns, unit, relation, noise, rules)
    assert found.faults == ()
    assert found.replayed.neighbours >= 16
    asked = {reached.ask for reached in found.replayed.reached}
    assert {"marginal", "exam"} <= asked
    assert rules != "sums" or "sums" in asked
    if columns == "found":
        assert asked & {"counts", "values", "medians"}
