"""The same rows make the same release, byte by byte, from every source and by every engine.

A release is left before its first question, and finished in copies: each from another source, or counted by
another engine. Noise is of size none, and every choice is the best one, so that all that is published follows
from exact counts.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.config import Spec
from dpsynth.curator import MemoryTable, samplers
from dpsynth.errors import Interrupted
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.steps import Step
from tests.databases import Postgres
from tests.release.place import BY_PERSON, CONFIG, HEADER, changed, people
from tests.release.sources import FORMS, Section, in_csv, in_postgresql

ROWS = 4000
Made = tuple[Section, MemoryTable | None]


def rows() -> pa.Table:
    """The private table, all of it text."""
    return pa.table(dict(zip(HEADER, map(list, zip(*people(ROWS), strict=True)), strict=True)))


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
    """What is published, but for the form of the private table's file and what adds up the manifest."""
    found = {p.relative_to(folder).as_posix(): p for p in (folder / "public").rglob("*") if p.is_file()}
    published = {name: path.read_bytes() for name, path in found.items()}
    manifest = json.loads(published["public/manifest.json"])
    del manifest["source"], published["public/SHA256SUMS"]
    return published | {"public/manifest.json": json.dumps(manifest).encode()}


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
    source = in_csv(rows(), folder)
    with pytest.raises(Interrupted):
        pipeline.run(spec_of(folder, source, {}, privacy), Request(folder / "out"), run_step=leave)


def made(folder: Path, name: str, server: Postgres) -> Made:
    """The private table in a form of that name."""
    (folder / "table").mkdir(parents=True)
    if name == "postgresql":
        return in_postgresql(rows(), server.make()), None
    if name in ("arrow", "pandas"):
        source = in_csv(rows(), folder / "table")
        return source, MemoryTable(rows() if name == "arrow" else rows().to_pandas())
    return FORMS[name](rows(), folder / "table"), None


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [{}, BY_PERSON], ids=["rows", "persons"])
def test_every_source_and_both_engines_make_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres, privacy: Mapping[str, object]
) -> None:
    pytest.importorskip("distributed")
    exactly(monkeypatch)
    ways: dict[str, tuple[str, Section]] = {
        name: (name, {}) for name in (*FORMS, "postgresql", "arrow", "pandas")
    }
    ways["by Dask"] = "parquet", {"dask": "local"}
    ways["by Dask from csv"] = "csv", {"dask": "local", "memory": "1 MB"}
    begin(tmp_path / "begun", privacy)
    found = {}
    for way, (source, engine) in ways.items():
        here = tmp_path / way
        found[way] = public(finished(tmp_path / "begun", here, made(here, source, postgres), engine, privacy))
        left = sorted(p.name for p in (here / "out").rglob("*") if "dask" in p.name)
        assert not left, "files of Dask's stay in the release"
    first = found["csv"]
    assert len(first) > 5
    for way, other in found.items():
        assert first.keys() == other.keys(), way
        assert [name for name in first if first[name] != other[name]] == [], way
