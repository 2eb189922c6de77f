"""Dask's workers and clusters without any process: a client and a program that are made up by the test.

``test_dask`` tries the same with real processes, mostly in slow tests.
"""

from __future__ import annotations

import io
import json
import logging
import stat
import subprocess
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

from dpsynth.curator import counting, dask_clusters, dask_workers
from dpsynth.curator.coded_columns import Room
from dpsynth.curator.dask_clusters import Certificates, local_workers, workers_at
from dpsynth.curator.dask_workers import DaskWorkers, _Outcome
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, SourceError, StepFailed
from tests.curator.test_partitioned import KEY, NEAR, both

distributed = pytest.importorskip("distributed")
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
    return Client()


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The worker that each task finds itself with."""
    found = SimpleNamespace(data={}, local_directory=str(tmp_path / "worker"))
    monkeypatch.setattr(distributed, "get_worker", lambda: found)
    for module in (dask_workers, dask_clusters):
        monkeypatch.setattr(module, "versions", lambda: VERSIONS)
    return found


@pytest.fixture
def workers(client: Client) -> DaskWorkers:
    return DaskWorkers(client)


def held(values: Any) -> list[Future]:
    return [Future(_Outcome(value)) for value in values]


def test_the_figures_are_those_of_one_process(tmp_path: Path, workers: DaskWorkers) -> None:
    one, many = both(tmp_path, NEAR[1], workers)
    assert len(many.parts) == 8
    np.testing.assert_array_equal(one.rows_of_units(6), many.rows_of_units(6))
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


class Program:
    """The process of a cluster, which says an address or nothing, and ends by itself or must be killed."""

    def __init__(self, address: str = "tls://127.0.0.1:1", *, stays: bool = False) -> None:
        self.address, self.stays, self.ended = address, stays, False
        self.told = ""
        self.waits: list[float | None] = []

    def started(self, command: list[str], **how: Any) -> Program:
        assert command[1:] == ["-m", "dpsynth.curator.dask_clusters"]
        # Text, and a session of its own, so that Ctrl-C is not for it; its errors are for nobody.
        assert how["text"] and how["start_new_session"] and how["stderr"] == subprocess.DEVNULL
        program = self

        class Input(io.StringIO):
            def flush(self) -> None:
                program.told = self.getvalue()

        self.stdin, self.stdout = Input(), io.StringIO(f"{self.address}\n" if self.address else "")
        return self

    def poll(self) -> int | None:
        return 0 if self.ended else None

    def kill(self) -> None:
        self.ended = True

    def wait(self, seconds: float | None = None) -> None:
        self.waits.append(seconds)
        assert self.stdin.closed and self.stdout.closed
        if self.stays and not self.ended:
            raise subprocess.TimeoutExpired("dask", seconds or 0)
        self.ended = True


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch, client: Client) -> Callable[[Program], Program]:
    """A function that lets a program be the one that is started."""
    pem = SimpleNamespace(tls_ca_file="CA", tls_scheduler_cert="CERT", tls_scheduler_key="PEM")
    monkeypatch.setattr(distributed, "Security", SimpleNamespace(temporary=lambda: pem))
    monkeypatch.setattr(dask_clusters, "_client", lambda address, security: client)
    monkeypatch.setattr(dask_clusters, "cores", lambda: 5)

    def begin(program: Program) -> Program:
        monkeypatch.setattr(dask_clusters.subprocess, "Popen", program.started)
        return program

    return begin


def test_a_cluster_is_told_its_secrets_by_its_input_and_ends_with_it(
    tmp_path: Path, begin, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "private" / "dask"
    folder.mkdir(parents=True)
    (folder / "left.over").touch()
    program = begin(Program())
    workers, end = local_workers(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and not list(folder.iterdir())
    told = json.loads(program.told)
    assert told == {"ca": "CA", "cert": "CERT", "key": "PEM", "workers": 5, "folder": str(folder)}
    assert not workers._gone()
    end()
    assert client.closed and program.ended and workers._gone() and not folder.exists()
    assert program.waits == [dask_clusters._ENDING]
    # One that stays is killed; a folder that is gone already is no error.
    monkeypatch.setattr(dask_clusters, "cores", lambda: 1)
    stays = begin(Program(stays=True))
    _, end = local_workers(folder)
    assert json.loads(stays.told)["workers"] == 2
    folder.rmdir()
    end()
    assert stays.ended and stays.waits == [dask_clusters._ENDING, None]


def test_a_cluster_that_does_not_start_leaves_nothing(tmp_path: Path, begin) -> None:
    program = begin(Program(address=""))
    with pytest.raises(SourceError, match="didn't start on this machine"):
        local_workers(tmp_path / "new" / "dask")
    assert program.ended and not list((tmp_path / "new").iterdir())


def test_a_cluster_that_ends_at_once_is_no_broken_pipe(
    tmp_path: Path, begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Program):
        def started(self, command: list[str], **how: Any) -> Program:
            super().started(command, **how)

            class Pipe(io.StringIO):
                def flush(self) -> None:
                    raise BrokenPipeError

                def close(self) -> None:
                    super().close()
                    raise BrokenPipeError

            self.stdin = Pipe()
            return self

    program = begin(Broken(address=""))
    with pytest.raises(SourceError, match="didn't start"):
        local_workers(tmp_path / "dask")
    assert program.ended


def test_a_scheduler_that_runs_already_is_spoken_to_as_its_certificates_say(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    asked: list[object] = []
    loud = logging.getLogger("distributed.test_of_a_scheduler")
    loud.setLevel(logging.INFO)
    monkeypatch.setattr(distributed, "Security", lambda **how: how)
    monkeypatch.setattr(dask_clusters, "_client", lambda *how: asked.append(how) or client)
    assert workers_at("tcp://here:1", None).processes == 3
    workers_at("tls://here:1", Certificates(Path("a"), Path("b"), Path("c")))
    pem = {"tls_ca_file": "a", "tls_client_cert": "b", "tls_client_key": "c"}
    assert asked == [("tcp://here:1", None), ("tls://here:1", {"require_encryption": True, **pem})]
    assert client.closed == [] and loud.level == logging.CRITICAL


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        ({"tcp://a": "", "tcp://b": "It spills."}, "^It spills.$"),
        (KeyError(CANARY), r"at tcp://here:1 can't run dpsynth \(KeyError\)"),
    ],
)
def test_workers_that_may_not_hold_rows_are_let_go(
    monkeypatch: pytest.MonkeyPatch, client: Client, ran: object, words: str
) -> None:
    monkeypatch.setattr(dask_clusters, "_client", lambda *how: client)
    client.ran = ran
    with pytest.raises(SourceError, match=words) as refused:
        workers_at("tcp://here:1", None)
    assert CANARY not in str(refused.value) and len(client.closed) == 1


def test_a_scheduler_that_can_not_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*how: object) -> None:
        raise OSError(CANARY)

    monkeypatch.setattr(dask_clusters, "_client", unreachable)
    with pytest.raises(SourceError, match=r"can't be reached \(OSError\)") as refused:
        workers_at("tcp://here:1", None)
    assert CANARY not in str(refused.value)


def test_a_client_is_not_the_default_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "Client", lambda *given, **how: (given, how))
    given, how = dask_clusters._client("tcp://here:1", None)  # type: ignore[misc]
    assert given == ("tcp://here:1",) and how["set_as_default"] is False and how["security"] is None


def test_the_program_holds_a_cluster_without_pages_or_spills_until_its_input_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask

    class Out(io.StringIO):
        told = ""

        def flush(self) -> None:
            self.told = self.getvalue()

    seen: dict[str, Any] = {}
    scaled: list[int] = []
    looks = iter([[], [], [sys.stdin]])

    class Cluster:
        scheduler_address = "tls://127.0.0.1:1234"

        def __init__(self, **how: Any) -> None:
            seen.update(how)
            seen["config"] = {name: dask.config.get(name) for name in dask_clusters.OFF}

        def __enter__(self) -> Cluster:
            return self

        def __exit__(self, *_: object) -> None:
            seen["ended"] = True

        def scale(self, number: int) -> None:
            scaled.append(number)

    def looked(reading: list[object], *_: object) -> tuple[object, list[object], list[object]]:
        # Whoever started it reads the address before it waits.
        assert out.told == "tls://127.0.0.1:1234\n"
        return next(looks), [], []

    out = Out()
    monkeypatch.setattr(sys, "stdout", out)
    given = {"ca": "CA", "cert": "CERT", "key": "PEM", "workers": 3, "folder": "/private"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given) + "\n"))
    monkeypatch.setattr(distributed, "LocalCluster", Cluster)
    monkeypatch.setattr(distributed, "Security", lambda **how: how)
    monkeypatch.setattr(dask_clusters.select, "select", looked)
    with dask.config.set({}):
        dask_clusters.main()
    assert scaled == [3, 3] and seen.pop("ended")
    off = {"memory.target", "memory.spill", "memory.pause", "memory.terminate", "profile.enabled"}
    assert seen.pop("config") == {f"distributed.worker.{name}": False for name in off} | {
        "distributed.worker.http.routes": [],
        "distributed.scheduler.http.routes": [],
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.allowed-failures": 20,
        "distributed.deploy.lost-worker-timeout": "30s",
    }
    pems = {f"tls_{role}_{part}" for role in ("client", "scheduler", "worker") for part in ("cert", "key")}
    security = seen.pop("security")
    assert security.pop("require_encryption") is True and security.pop("tls_ca_file") == "CA"
    assert security == {name: "CERT" if name.endswith("cert") else "PEM" for name in pems}
    assert seen.pop("scheduler_kwargs") == {"dashboard": False}
    assert seen == {
        "n_workers": 3, "threads_per_worker": 1, "host": "127.0.0.1", "protocol": "tls://", "memory_limit": 0,
        "local_directory": "/private", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL,
    }  # fmt: skip
