"""The same rows make the same release, byte by byte, from every source and by every engine.

A release is left before its first question, and finished in copies: each from another source, or counted by
another engine. Noise is of size none, and every choice is the best one, so that all that is published follows
from exact counts.
"""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from dpsynth.config import Spec
from dpsynth.curator import MemoryTable, samplers
from dpsynth.errors import Interrupted
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.steps import Step
from tests.release.place import BY_PERSON, CONFIG, HEADER, changed, people

ROWS = 4000
Section = dict[str, object]
Made = tuple[Section, MemoryTable | None]


def rows() -> pa.Table:
    """The private table, all of it text."""
    return pa.table(dict(zip(HEADER, map(list, zip(*people(ROWS), strict=True)), strict=True)))


def in_csv(folder: Path) -> Made:
    csv.write_csv(rows(), folder / "people.csv")
    return {"path": str(folder / "people.csv")}, None


def in_gz(folder: Path) -> Made:
    in_csv(folder)
    packed = gzip.compress((folder / "people.csv").read_bytes())
    (folder / "people.csv.gz").write_bytes(packed)
    return {"path": str(folder / "people.csv.gz")}, None


def in_parquet(folder: Path) -> Made:
    (folder / "people").mkdir()
    for part, start in enumerate(range(0, ROWS, 1500)):
        piece = rows()[start : start + 1500]
        parquet.write_table(piece, folder / "people" / f"part-{part}.parquet", row_group_size=400)
    return {"path": str(folder / "people"), "format": "parquet"}, None


def in_sqlite(folder: Path) -> Made:
    with sqlite3.connect(folder / "people.db") as database:
        rows().to_pandas().to_sql("people", database, index=False)
    database.close()
    return {"url": f"sqlite:///{folder / 'people.db'}", "query": "SELECT * FROM people"}, None


def in_duckdb(folder: Path) -> Made:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.register("rows", rows())
        database.execute("CREATE TABLE people AS SELECT * FROM rows")
    return {"url": f"duckdb:///{folder / 'people.duckdb'}", "query": "SELECT * FROM people"}, None


def in_arrow(folder: Path) -> Made:
    return in_csv(folder)[0], MemoryTable(rows())


def in_pandas(folder: Path) -> Made:
    return in_csv(folder)[0], MemoryTable(rows().to_pandas())


SOURCES = {
    "csv": in_csv, "gz": in_gz, "parquet": in_parquet, "sqlite": in_sqlite, "duckdb": in_duckdb,
    "arrow": in_arrow, "pandas": in_pandas,
}  # fmt: skip


def spec_of(folder: Path, source: Section, engine: Section, privacy: Mapping[str, object]) -> Spec:
    config = changed(CONFIG, {"privacy": privacy, "ledger": {"url": f"sqlite:///{folder}/ledger.db"}})
    return Spec.from_dict({**config, "source": source, "engine": engine})


def leave(name: str, action: Callable[[], object]) -> object:
    if name == Step.MEASURE_SINGLES:
        raise KeyboardInterrupt
    return action()


def exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of size none, and choices of the best."""
    for name in ("add_gaussian", "add_laplace"):
        monkeypatch.setattr(samplers, name, lambda values, scale: values.copy())
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: int(np.argmax(scores)))


def public(folder: Path) -> dict[str, bytes]:
    """What is published."""
    found = {p.relative_to(folder).as_posix(): p for p in (folder / "public").rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def finished(begun: Path, folder: Path, made: Made, engine: Section, privacy: Mapping[str, object]) -> Path:
    """The bundle of a copy of the release that was left."""
    shutil.copytree(begun / "out", folder / "out")
    shutil.copy(begun / "ledger.db", folder / "ledger.db")
    (left,) = (folder / "out" / "people").glob(".*.partial")
    release_id = left.name.removeprefix(".").removesuffix(".partial")
    source, table = made
    spec = spec_of(folder, source, engine, privacy)
    return pipeline.run(spec, Request(folder / "out", release_id), table=table).folder


def begin(folder: Path, privacy: Mapping[str, object]) -> None:
    """A release that has asked nothing."""
    folder.mkdir()
    source, _ = in_csv(folder)
    with pytest.raises(Interrupted):
        pipeline.run(spec_of(folder, source, {}, privacy), Request(folder / "out"), run_step=leave)


def assert_same_bytes(
    tmp_path: Path, privacy: Mapping[str, object], ways: Mapping[str, tuple[str, Section]]
) -> None:
    begin(tmp_path / "begun", privacy)
    found = {}
    for way, (source, engine) in ways.items():
        (tmp_path / way).mkdir()
        found[way] = public(
            finished(tmp_path / "begun", tmp_path / way, SOURCES[source](tmp_path / way), engine, privacy)
        )
        left = sorted(p.name for p in (tmp_path / way / "out").rglob("*") if "dask" in p.name)
        assert not left, "files of Dask's stay in the release"
    first, *others = found.values()
    assert len(first) > 5
    for way, other in zip(list(found)[1:], others, strict=True):
        assert first.keys() == other.keys(), way
        assert [name for name in first if first[name] != other[name]] == [], way


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [{}, BY_PERSON], ids=["rows", "persons"])
def test_every_source_and_both_engines_make_the_same_bytes(tmp_path: Path, monkeypatch, privacy) -> None:
    pytest.importorskip("distributed")
    exactly(monkeypatch)
    ways: dict[str, tuple[str, Section]] = {name: (name, {}) for name in SOURCES}
    ways["by Dask"] = "parquet", {"dask": "local"}
    ways["by Dask from csv"] = "csv", {"dask": "local", "memory": "1 MB"}
    assert_same_bytes(tmp_path, privacy, ways)
