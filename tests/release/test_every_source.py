"""The same rows from every source: identical exact counts, and for the same journal identical bundles."""

import gzip
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config import Spec
from dpsynth.curator import MemoryTable, load_table
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import cells_of, inputs_of
from dpsynth.pipeline.reservation import Occasion
from dpsynth.wings.proof.audit.replay import observe
from tests.databases import Postgres

ROWS, COLUMNS, PLACES = 1_000_000, 6, 12
NAMES = [f"c{i}" for i in range(COLUMNS)]
QUERY = f"SELECT {', '.join(NAMES)} FROM visits"


def table() -> pa.Table:
    """Related columns, numbers and texts, some of them missing."""
    rng = np.random.default_rng(0)
    shared = rng.integers(0, 5, ROWS)
    codes = [(rng.integers(0, PLACES, ROWS) + shared * i) % PLACES for i in range(COLUMNS)]
    words = pa.array([f"word {i}" for i in range(PLACES)])
    none = rng.random(ROWS) < 0.01
    columns = [
        words.take(pa.array(c, mask=none)) if i % 2 else pa.array(c, mask=none) for i, c in enumerate(codes)
    ]
    return pa.table(columns, names=NAMES)


def spec_of(source: dict[str, object], folder: Path) -> Spec:
    declared = {
        n: {"type": "category", "values": [f"word {k}" for k in range(PLACES)]}
        if i % 2
        else {"type": "integer", "min": 0, "max": PLACES - 1}
        for i, n in enumerate(NAMES)
    }
    facts = {
        "release": "visits",
        "source": source,
        "privacy": {"epsilon": 1, "delta": 1e-9},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "visits"},
        "sample": {"rows": 5000},
        "columns": declared,
    }
    return Spec.from_dict(facts)


def to_csv(rows: pa.Table, folder: Path, _: Postgres) -> dict[str, object]:
    csv.write_csv(rows, folder / "t.csv")
    return {"path": str(folder / "t.csv")}


def to_gz(rows: pa.Table, folder: Path, server: Postgres) -> dict[str, object]:
    to_csv(rows, folder, server)
    with gzip.open(folder / "t.csv.gz", "wb", 1) as file:
        file.write((folder / "t.csv").read_bytes())
    return {"path": str(folder / "t.csv.gz")}


def to_folder(rows: pa.Table, folder: Path, _: Postgres) -> dict[str, object]:
    for i in range(4):
        parquet.write_table(rows.slice(i * ROWS // 4, ROWS // 4), folder / f"part-{i}.parquet")
    return {"path": str(folder), "format": "parquet"}


def to_url(rows: pa.Table, folder: Path, server: Postgres) -> dict[str, object]:
    return to_folder(rows, folder, server) | {"path": f"file://{folder}"}


def to_duckdb(rows: pa.Table, folder: Path, _: Postgres) -> dict[str, object]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        database.register("rows", rows)
        database.execute("CREATE TABLE visits AS SELECT * FROM rows")
    return {"url": f"duckdb:///{folder / 't.duckdb'}", "query": QUERY}


def to_sqlite(rows: pa.Table, folder: Path, _: Postgres) -> dict[str, object]:
    with sqlite3.connect(folder / "t.db") as database:
        database.execute(f"CREATE TABLE visits ({', '.join(NAMES)})")
        cells = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        database.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * COLUMNS)})", cells)
    database.close()
    return {"url": f"sqlite:///{folder / 't.db'}", "query": QUERY}


def to_postgresql(rows: pa.Table, folder: Path, server: Postgres) -> dict[str, object]:
    import psycopg

    url, path = server.make(), folder / "t.csv"
    to_csv(rows, folder, server)
    types = ", ".join(f"{n} {'text' if i % 2 else 'bigint'}" for i, n in enumerate(NAMES))
    server.execute(f"CREATE TABLE visits ({types})", url)
    with (
        psycopg.connect(url, autocommit=True) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY visits FROM STDIN (FORMAT csv, HEADER)") as copy,
        path.open("rb") as file,
    ):
        while block := file.read(1 << 20):
            copy.write(block)
    return {"url": url, "query": QUERY}


SOURCES: list[Callable[[pa.Table, Path, Postgres], dict[str, object]]] = [
    to_csv, to_gz, to_folder, to_url, to_postgresql, to_duckdb, to_sqlite,
]  # fmt: skip


def counts(spec: Spec, memory: MemoryTable | None = None) -> Iterator[np.ndarray]:
    inputs = inputs_of(spec, memory)
    loaded = load_table(
        cells_of(inputs, Occasion("", None)),
        inputs.compiled.columns,
        Neighbours("add_remove"),
        os.urandom(32),
    )
    pairs = list(combinations(NAMES, 2))
    return iter(loaded.counts_of([(), *pairs]))


def published(done: pipeline.Release) -> dict[str, bytes]:
    public = done.folder / "public"
    return {p.relative_to(public).as_posix(): p.read_bytes() for p in public.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_every_source_of_the_same_rows_has_the_same_counts_and_publishes_the_same_bytes(
    tmp_path: Path, postgres: Postgres
) -> None:
    rows = table()
    specs = {}
    for make in SOURCES:
        (folder := tmp_path / make.__name__).mkdir()
        specs[make.__name__] = spec_of(make(rows, folder, postgres), folder)
    first = specs["to_csv"]
    expected = list(counts(first))
    record = observe(first, tmp_path / "left")
    assert record.release_id
    bundles = {}
    for name, spec in specs.items():
        for mine, theirs in zip(counts(spec), expected, strict=True):
            assert np.array_equal(mine, theirs), name
        bundles[name] = _finished(spec, tmp_path, name, cast(str, record.release_id))
    for mine, theirs in zip(counts(first, MemoryTable(rows)), expected, strict=True):
        assert np.array_equal(mine, theirs), "in memory"
    assert len(bundles["to_csv"]) > 5
    for name, bundle in bundles.items():
        differing = [
            f for f in bundle.keys() | bundles["to_csv"] if bundle.get(f) != bundles["to_csv"].get(f)
        ]
        assert not differing, name


def _finished(spec: Spec, folder: Path, name: str, release_id: str) -> dict[str, bytes]:
    """The bundle of a release that was left when all its questions were asked, finished from a source."""
    shutil.copytree(folder / "left", folder / f"out-{name}")
    url = f"sqlite:///{folder}/ledger-{name}.db"
    fresh = spec.model_copy(update={"ledger": spec.ledger.model_copy(update={"url": url})})
    return published(pipeline.run(fresh, Request(folder / f"out-{name}", release_id)))
