"""A release that is to be counted by Dask and can't be: one paragraph, the right code, nothing charged."""

import importlib.util

import pytest

from dpsynth.config import load
from dpsynth.curator import MemoryTable
from dpsynth.errors import ConfigError, DpsynthError, SourceError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from tests.release.place import Place


def refused(place: Place, engine: dict[str, object], kind: type[DpsynthError], **more: object) -> str:
    place.configure(engine=engine, ledger={"url": f"sqlite:///{place.folder}/ledger.db"})
    spec = load(place.folder / "config.yaml", source=str(place.folder / "people.csv"))
    with pytest.raises(kind) as said:
        run(spec, Request(place.folder / "outputs"), **more)  # type: ignore[arg-type]
    assert said.value.__cause__ is None and place.balance is None and place.files == set()
    return str(said.value)


def test_dask_that_is_not_installed_is_a_config_error(place: Place, monkeypatch) -> None:
    sound = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "distributed" else sound(n))
    said = refused(place, {"dask": "local"}, ConfigError)
    assert "engine.dask" in said and "pip install 'dpsynth[dask]'" in said


def test_a_scheduler_that_is_not_there_is_a_source_error(place: Place, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("dpsynth.wings.cluster.dask_clusters._SECONDS", 0.3)
    said = refused(place, {"dask": "tcp://127.0.0.1:1"}, SourceError)
    assert "tcp://127.0.0.1:1 can't be reached" in said and SourceError.exit_code == 4


def test_a_table_in_memory_is_counted_where_it_lies(place: Place) -> None:
    import pandas as pd

    table = MemoryTable(pd.read_csv(place.folder / "people.csv"))
    assert "in the memory of this process" in refused(place, {"dask": "local"}, ConfigError, table=table)
