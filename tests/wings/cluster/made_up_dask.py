"""A client of Dask that is made up by the test, whose work this process does."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpsynth.wings.cluster import dask_clusters, dask_workers

CANARY = "canary-badger"
versions = dask_workers.versions
VERSIONS = versions()


class Future:
    """A value that is there already."""

    def __init__(self, value: object) -> None:
        self.value = value

    def add_done_callback(self, told: Callable[[object], object]) -> None:
        told(self)

    def result(self, timeout: float) -> object:
        return self.value


class Client:
    """A client of three processes with four threads that this process does the work of."""

    def __init__(self) -> None:
        self.threads = {"tcp://a": 2, "tcp://b": 1, "tcp://c": 1}
        self.keys: list[str] = []
        self.closed: list[float] = []
        self.ran: object = {"tcp://a": "", "tcp://b": ""}

    def nthreads(self) -> dict[str, int]:
        return self.threads

    def map(self, task: Callable[[Any], object], parts: Any, *, key: str, pure: bool) -> list[Future]:
        assert not pure, "Dask would take two sums for one"
        self.keys.append(key)
        held = ([one.value for one in p] if isinstance(p, list) else p for p in parts)
        return [Future(task(one.value if isinstance(one, Future) else one)) for one in held]

    def run(self, function: object, *given: object) -> object:
        assert function is dask_workers.unfit and given == (VERSIONS,)
        if isinstance(self.ran, Exception):
            raise self.ran
        return self.ran

    def close(self, timeout: float) -> None:
        self.closed.append(timeout)


@pytest.fixture
def client() -> Client:
    """A client that nothing was asked of yet."""
    return Client()


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The worker that each task finds itself with. Versions are looked up once, as that takes time."""
    import distributed

    found = SimpleNamespace(data={}, local_directory=str(tmp_path / "worker"))
    monkeypatch.setattr(distributed, "get_worker", lambda: found)
    for module in (dask_workers, dask_clusters):
        monkeypatch.setattr(module, "versions", lambda: VERSIONS)
    return found
