"""Dask's clusters without any process: a program and a scheduler that are made up by the test.

``test_dask`` tries the same with real processes, mostly in slow tests.
"""

from __future__ import annotations

import io
import json
import logging
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpsynth.errors import SourceError
from dpsynth.wings.cluster import dask_clusters
from dpsynth.wings.cluster.dask_clusters import Certificates, local_workers, workers_at
from tests.wings.cluster.made_up_dask import CANARY, Client, client, worker

distributed = pytest.importorskip("distributed")
__all__ = ["client", "worker"]


class Program:
    """The process of a cluster, which says an address or nothing, and ends by itself or must be killed."""

    def __init__(self, address: str = "tls://127.0.0.1:1", *, stays: bool = False) -> None:
        self.address, self.stays, self.ended = address, stays, False
        self.told = ""
        self.waits: list[float | None] = []

    def started(self, command: list[str], **how: Any) -> Program:
        assert command[1:] == ["-m", "dpsynth.wings.cluster.dask_clusters"]
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
