"""Dask's workers without any process: a client that is made up by the test.

``test_dask`` tries the same with real processes, mostly in slow tests.
"""

import logging
import sys
from asyncio import CancelledError as LoopCancelled
from collections.abc import Callable
from concurrent.futures import CancelledError
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsynth.curator import table as counting
from dpsynth.curator.rows.coded_columns import Room
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, SourceError, StepFailed
from dpsynth.wings.cluster import dask_workers
from dpsynth.wings.cluster.dask_clusters import local_workers, workers_at
from dpsynth.wings.cluster.dask_workers import DaskWorkers, _Outcome
from tests.wings.cluster.made_up_dask import CANARY, VERSIONS, Client, Future, client, versions, worker
from tests.wings.cluster.test_partitioned import KEY, NEAR, both

distributed = pytest.importorskip("distributed")
__all__ = ["client", "worker"]


@pytest.fixture
def workers(client: Client) -> DaskWorkers:
    return DaskWorkers(client)


def held(values: Any) -> list[Future]:
    return [Future(_Outcome(value)) for value in values]


def test_the_figures_are_those_of_one_process(tmp_path: Path, workers: DaskWorkers) -> None:
    one, many = both(tmp_path, NEAR[1], workers)
    assert len(many.parts) == 8
    np.testing.assert_array_equal(one.rows_of_units((1, 2, 5)), many.rows_of_units((1, 2, 5)))
    here, there = one.bounded(3, KEY), many.bounded(3, KEY)
    for a, b in zip(here.counts_of([("age", "sex"), ()]), there.counts_of([("age", "sex"), ()]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_are_made_of_eight_at_most_and_each_part_counts_once(
    client: Client, workers: DaskWorkers
) -> None:
    many: list[int] = []

    def added(some: list[int]) -> int:
        many.append(len(some))
        return sum(some)

    assert workers.combined(abs, added, held(range(20))) == 190
    assert many == [8, 8, 4, 3]
    assert len(set(client.keys)) == len(client.keys) == 3
    assert workers.combined(abs, added, held([-7])) == 7 and many == [8, 8, 4, 3]
    assert [workers.combined(abs, sum, held(range(number))) for number in (2, 9)] == [1, 36]


def test_the_size_of_a_cluster_decides_on_pieces_and_room(
    tmp_path: Path, client: Client, workers: DaskWorkers
) -> None:
    assert (workers.threads, workers.processes, workers.pieces) == (4, 3, 8)
    assert workers.room(1000)() == Room(375, tmp_path / "worker" / "dpsynth")
    client.threads = {}
    with pytest.raises(SourceError, match="has no workers"):
        DaskWorkers(client)


@pytest.mark.parametrize(("parts", "each"), [(1, 4), (2, 2), (4, 1), (9, 1)])
def test_a_task_takes_its_share_of_the_threads(
    monkeypatch: pytest.MonkeyPatch, workers: DaskWorkers, parts: int, each: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64))
    made = workers.each(lambda _: counting.cores(), list(range(parts)))
    assert [future.value.value for future in made] == [each] * parts


def test_an_error_of_a_worker_comes_without_the_words_of_others(workers: DaskWorkers) -> None:
    def failing(error: Exception) -> Callable[[object], object]:
        def fail(given: object) -> object:
            if given in ([2], 2):
                raise error
            return given

        return fail

    for error, kind, words in (
        (ValueError(CANARY), StepFailed, "A Dask worker failed: ValueError; details"),
        (SourceError("There is no file."), SourceError, "A Dask worker says: There is no file."),
        (ConfigError("Not so."), DpsynthError, "^Not so.$"),
    ):
        parts = workers.each(failing(error), [1, 2, 3])
        with pytest.raises(kind, match=words) as raised:
            workers.combined(abs, sum, parts)
        assert CANARY not in str(raised.value)
        with pytest.raises(kind, match=words):
            workers.combined(len, sum, workers.regrouped(lambda part, number: [part] * number, list, parts))


def test_a_worker_that_is_not_fit_does_nothing(
    monkeypatch: pytest.MonkeyPatch, worker: SimpleNamespace, workers: DaskWorkers
) -> None:
    from distributed.spill import SpillBuffer

    task = workers._task(abs, 1)
    assert task(-2).value == 2
    monkeypatch.setattr(dask_workers, "versions", lambda: {**VERSIONS, "numpy": "0"})
    assert f"has numpy 0, and this process has {VERSIONS['numpy']}" in str(task(-2).error)
    monkeypatch.setattr(dask_workers, "versions", lambda: VERSIONS)

    class Spilling(SpillBuffer):
        def __init__(self) -> None:
            pass

        def close(self) -> None:
            pass

    worker.data = Spilling()
    assert "may write what it holds to its disk" in str(task(-2).error)
    # Where Dask says which worker it is, no task is asked for it.
    assert dask_workers.unfit(VERSIONS, SimpleNamespace(data={})) == ""


def test_a_package_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {*versions()} == {"python", "dpsynth", "numpy", "pyarrow"}
    assert versions()["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(dask_workers, "version", missing)
    assert {*versions()} == {"python"}


def test_dask_is_told_the_size_of_what_is_held() -> None:
    eight, nine = np.zeros(1), np.zeros(9, np.int8)
    assert _Outcome([eight, nine]).__sizeof__() == 17
    assert _Outcome(nine).__sizeof__() == 9
    assert _Outcome([eight, "text"]).__sizeof__() == 8 + _Outcome("text").__sizeof__()
    assert CANARY not in repr(_Outcome(CANARY))


def test_whoever_waits_looks_whether_there_is_anybody_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    now = [0.0]

    def waiting(event: object, seconds: float) -> bool:
        now[0] += 50
        if now[0] == 100:
            client.threads = {"tcp://d": 1}
        if now[0] == 150:
            client.threads = {}
        return False

    class Never(Future):
        def add_done_callback(self, told: object) -> None:
            pass

    monkeypatch.setattr(dask_workers.Event, "wait", waiting)
    monkeypatch.setattr(dask_workers, "monotonic", lambda: now[0])
    monkeypatch.setattr(dask_workers, "_PATIENCE", 200.0)
    workers = DaskWorkers(client)
    client.threads = {}
    with pytest.raises(Interrupted, match="has had no worker for 200 seconds"):
        workers._outcome(Never(None))
    # More than 200 seconds after the last look at which there was a worker.
    assert now[0] == 350
    client.threads = {"tcp://a": 1}
    ended = DaskWorkers(client, lambda: now[0] > 600)
    with pytest.raises(Interrupted, match="scheduler has ended"):
        ended._outcome(Never(None))
    assert now[0] == 650


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (distributed.KilledWorker(CANARY, None, 3), Interrupted, "died again and again"),
        (LoopCancelled(CANARY), Interrupted, "scheduler has ended"),
        (CancelledError(CANARY), Interrupted, "scheduler has ended"),
        (OSError(CANARY), Interrupted, "scheduler has ended"),
        (SourceError("Said."), SourceError, "Said."),
        (KeyError(CANARY), StepFailed, "was given to Dask failed: KeyError"),
    ],
)
def test_an_error_of_dask_itself_comes_without_its_words(
    monkeypatch: pytest.MonkeyPatch, client: Client, error: BaseException, kind: type, words: str
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise error

    workers = DaskWorkers(client)
    future = Future(None)
    for owner, name, use in (
        (client, "map", lambda: workers.each(abs, [1])),
        (future, "result", lambda: workers._outcome(future)),
        (client, "nthreads", lambda: DaskWorkers(client)),
    ):
        monkeypatch.setattr(owner, name, failing)
        with pytest.raises(kind, match=words) as raised:
            use()
        assert CANARY not in str(raised.value)


def test_what_the_workers_hold_is_let_go_even_where_the_scheduler_has_ended(
    monkeypatch: pytest.MonkeyPatch, client: Client, workers: DaskWorkers
) -> None:
    workers.close()
    assert len(client.closed) == 1

    def gone(timeout: float) -> None:
        raise OSError(CANARY)

    monkeypatch.setattr(client, "close", gone)
    workers.close()


def test_dask_logs_nothing_and_others_log_as_before() -> None:
    theirs, other = (
        logging.getLogger("distributed.test_of_quiet"),
        logging.getLogger("test_of_quiet.distributed"),
    )
    theirs.setLevel(logging.INFO)
    other.setLevel(logging.INFO)
    dask_workers.quiet()
    assert (theirs.level, other.level) == (logging.CRITICAL, logging.INFO)


def test_an_installation_without_dask_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert dask_workers.missing_extra() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for use in (lambda: local_workers(tmp_path / "dask"), lambda: workers_at("tcp://here:1", None)):
        with pytest.raises(ConfigError, match=r"dpsynth\[dask\]"):
            use()
    assert not (tmp_path / "dask").exists()
