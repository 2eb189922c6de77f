"""A source in a database is a URL without a password, or the name of one, and one SELECT."""

import json

import pytest

from dpsynth.errors import ConfigError
from dpsynth.pipeline import inputs as addresses
from dpsynth.pipeline.inputs import address_of
from dpsynth.pipeline.reservation import table_of

SOURCE = "source: {path: data/table.csv}\n"
NAMED = "ledger: {dataset: visits}\n"


def told(load_with, source, added=NAMED):
    return load_with(added, replace=(SOURCE, f"source: {json.dumps(source)}\n"))


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///a.db",
        "duckdb:///a.duckdb",
        "postgresql://reader@host:5432/x?sslmode=require",
        "mysql+pymysql://u@h/x",
    ],
)
def test_a_url_and_a_query_are_a_source(load_with, url: str) -> None:
    spec = told(load_with, {"url": url, "query": "WITH a AS (SELECT age FROM v) SELECT age FROM a;"})
    assert spec.source.in_database and address_of(spec.source)[0] == url
    assert table_of(spec).dataset == "visits" and table_of(spec).source == ""


def test_a_file_behind_a_url_is_known_to_the_ledger_by_its_url(load_with) -> None:
    spec = told(load_with, {"path": "s3://bucket/visits.csv.gz"})
    assert spec.source.form.compression == "gz"
    assert table_of(spec).source == "s3://bucket/visits.csv.gz"


def test_the_rows_of_a_query_need_the_name_of_an_account(load_with) -> None:
    with pytest.raises(ConfigError, match=r"ledger\.dataset is missing"):
        told(load_with, {"url": "sqlite:///a.db", "query": "select 1"}, "")


def test_an_address_comes_from_the_environment_or_from_a_vault_and_is_never_said(
    load_with, monkeypatch
) -> None:
    spec = told(load_with, {"url_from": "CLINIC_URL", "query": "select 1"})
    monkeypatch.delenv("CLINIC_URL", raising=False)
    with pytest.raises(ConfigError, match="CLINIC_URL, and it isn't set"):
        address_of(spec.source)
    monkeypatch.setenv("CLINIC_URL", "hunter2")
    with pytest.raises(ConfigError, match="has no URL") as refused:
        address_of(spec.source)
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("CLINIC_URL", "postgresql://me:hunter2@db/x")
    address, named = address_of(spec.source)
    assert "hunter2" in address and "hunter2" not in named

    kept = told(load_with, {"url_from": "secret/clinic", "query": "select 1"})
    with pytest.raises(ConfigError, match="--prefect"):
        address_of(kept.source)
    monkeypatch.setattr(addresses, "_held", {})
    addresses.hold("secret/clinic", "sqlite:///clinic.db")
    assert address_of(kept.source)[0] == "sqlite:///clinic.db"
