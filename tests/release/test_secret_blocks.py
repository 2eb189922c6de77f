"""The address of a database comes out of a Secret block of Prefect, and goes nowhere else."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import dpsynth
from dpsynth.config import load
from dpsynth.config.source import Source
from dpsynth.errors import ConfigError
from dpsynth.pipeline import inputs as addresses
from dpsynth.pipeline.beginning import Request, check_beginning
from dpsynth.pipeline.inputs import address_of, is_locked
from dpsynth.wings.tables.wide_rows import wide_table
from tests.databases import Postgres
from tests.release.place import Place
from tests.wings.tables.linked import frames, two

ADDRESS = "postgresql://me:hunter2@host/clinic"


@pytest.fixture
def secrets() -> ModuleType:
    """The module that opens blocks, which loads Prefect."""
    from flows import release

    return release


def source(name: str) -> Source:
    return Source.model_validate({"url_from": name, "query": "SELECT age FROM visits"})


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_held", {})


def test_a_secret_block_unlocks_the_source_that_names_it(
    secrets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    block = SimpleNamespace(load=lambda name: asked.append(name) or SimpleNamespace(get=lambda: ADDRESS))
    monkeypatch.setattr(secrets, "Secret", block)
    kept = source("secret/clinic")
    assert is_locked(kept)
    secrets.unlock(kept)
    assert asked == ["clinic"] and not is_locked(kept)
    address, named = address_of(kept)
    assert address == ADDRESS and "hunter2" not in named
    secrets.unlock(source("CLINIC"))
    assert asked == ["clinic"]


def test_blocks_of_linked_tables_are_opened_before_any_table_is(
    secrets: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The flow opens them all; without it the one that is closed is named, and nothing is read."""
    url = f"sqlite:///{tmp_path}/clinic.db"
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as base:
        for name, frame in frames(300).items():
            frame.to_sql(name, base, index=False)
    tables = two()
    for name in tables:
        query = f"SELECT * FROM {name}"
        tables[name]["source"] = {"url_from": f"secret/{name}", "query": query, "row_by_row": True}
    config = {
        "tables": tables,
        "privacy": {"epsilon": 2, "delta": 1e-6},
        "ledger": {"url": f"sqlite:///{tmp_path}/ledger.db", "dataset": "homes"},
    }
    path = tmp_path / "homes.yaml"
    path.write_text(json.dumps(config))
    spec = load(path)
    with pytest.raises(ConfigError, match=r"tables\.households\.source\.url_from names the Secret block"):
        wide_table(spec, None)
    check_beginning(spec, Request(tmp_path / "out"))
    asked: list[str] = []
    block = SimpleNamespace(load=lambda name: asked.append(name) or SimpleNamespace(get=lambda: url))
    monkeypatch.setattr(secrets, "Secret", block)
    for private in spec.sources:
        secrets.unlock(private)
    assert asked == ["households", "persons"]
    assert len(dpsynth.release(spec, outputs=tmp_path / "out").bundle.tables) == 2


def test_a_block_that_is_not_there_is_said_in_words(
    secrets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: str) -> None:
        raise ValueError("Unable to find block document named hunter2")

    monkeypatch.setattr(secrets, "Secret", SimpleNamespace(load=gone))
    with pytest.raises(ConfigError, match="Secret block clinic") as refused:
        secrets.unlock(source("secret/clinic"))
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
def test_a_release_by_a_secret_block_leaves_its_password_nowhere(place: Place, postgres: Postgres) -> None:
    """A real Prefect server, whose database keeps the block encrypted; and a real PostgreSQL server."""
    url, password = postgres.make(), "canary-hunter-raccoon"
    postgres.execute("CREATE TABLE visits (age bigint, sex text)", url)
    postgres.execute(
        "INSERT INTO visits SELECT i % 90, substr('fm', 1 + i % 2, 1) FROM generate_series(1, 3000) i", url
    )
    columns = {
        "age": {"type": "integer", "min": 0, "max": 89, "bins": 9},
        "sex": {"type": "category", "values": ["f", "m"]},
    }
    config = {
        "source": {"url_from": "secret/clinic", "query": "SELECT age, sex FROM visits"},
        "privacy": {"epsilon": 1, "delta": 1e-6},
        "ledger": {"url": place.url, "dataset": "clinic"},
        "columns": columns,
    }
    (place.folder / "config.yaml").write_text(json.dumps(config))
    save = "import os; from prefect.blocks.system import Secret; Secret(value=os.environ['X']).save('clinic')"
    secret = url.replace("dpsynth@", f"dpsynth:{password}@")
    assert password in secret
    patient = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "240"}
    kept = place.call([sys.executable, "-c", save], X=secret, **patient)
    assert kept.code == 0, kept
    ended = place.call(place.command("--prefect", "--out", "out"), **patient)
    assert ended.code == 0, ended
    assert password not in repr(ended)
    assert list(place.folder.glob("out/*/*/public/synthetic.csv"))
    files = [p for folder in (place.folder, place.home) for p in folder.rglob("*") if p.is_file()]
    database = [p for p in files if p.name == "prefect.db"]
    assert database and b"clinic" in database[0].read_bytes()
    assert not [p for p in files if password.encode() in p.read_bytes()]
    postgres.empty(url)
