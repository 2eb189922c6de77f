"""The address of a database comes out of a Secret block of Prefect, and goes nowhere else."""

from types import ModuleType, SimpleNamespace

import pytest

from dpsynth.config.source import Source
from dpsynth.errors import ConfigError
from dpsynth.lifecycle import addresses
from dpsynth.lifecycle.addresses import address_of, is_locked

ADDRESS = "postgresql://me:hunter2@host/clinic"


@pytest.fixture
def secrets() -> ModuleType:
    """The module that opens blocks, which loads Prefect."""
    from flows import secrets

    return secrets


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


def test_a_block_that_is_not_there_is_said_in_words(
    secrets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: str) -> None:
        raise ValueError("Unable to find block document named hunter2")

    monkeypatch.setattr(secrets, "Secret", SimpleNamespace(load=gone))
    with pytest.raises(ConfigError, match="Secret block clinic") as refused:
        secrets.unlock(source("secret/clinic"))
    assert "hunter2" not in str(refused.value)
