"""Dask's workers, as real processes: exact counts whoever dies, and nothing for others to read."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import psutil
import pytest

from dpsynth.config.files import FileForm
from dpsynth.errors import Interrupted, SourceError, StepFailed
from dpsynth.testing import same_figures
from dpsynth.wings.cluster import dask_clusters, dask_workers
from dpsynth.wings.cluster.dask_clusters import Certificates, local_workers, workers_at
from dpsynth.wings.cluster.dask_workers import DaskWorkers
from dpsynth.wings.cluster.partitioned import pieces_of_file
from tests.wings.cluster.test_partitioned import KEY, NAMES, NEAR, both

pytest.importorskip("distributed")
CANARY = "canary-badger"


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[DaskWorkers]:
    found, end = local_workers(tmp_path / "private" / "dask")
    yield found
    end()
    assert not (tmp_path / "private" / "dask").exists()


def program() -> psutil.Process:
    """The process that holds the cluster."""
    (found,) = [p for p in psutil.Process().children() if any("dask_clusters" in a for a in p.cmdline())]
    return found


def pids(workers: DaskWorkers) -> list[int]:
    """The processes of the workers that are there; one that has just died is left out."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = workers._client.run(os.getpid, on_error="ignore")
        if found:
            return list(found.values())
        time.sleep(0.1)
    raise AssertionError("no worker was replaced")


@pytest.mark.slow
@pytest.mark.parametrize("near", NEAR, ids=str)
def test_two_processes_make_the_figures_of_one(tmp_path: Path, workers: DaskWorkers, near) -> None:
    assert len(set(pids(workers)) - {os.getpid()}) >= 2
    one, many = both(tmp_path, near, workers)
    if near.person is not None:
        np.testing.assert_array_equal(one.rows_of_units((1, 2, 5)), many.rows_of_units((1, 2, 5)))
    same_figures(one.bounded(near.max_rows, KEY), many.bounded(near.max_rows, KEY))


@pytest.mark.slow
def test_workers_are_killed_twenty_times_and_every_count_stays_exact(
    tmp_path: Path, workers: DaskWorkers
) -> None:
    """Each time one dies while counts are under way, or rows are read; what it held is made again."""
    near = NEAR[1]
    one, many = both(tmp_path, near, workers, rows=20_000)
    here = one.bounded(near.max_rows, KEY)
    cliques = list(combinations(here.domain.columns, 2))
    expected = here.counts_of(cliques)
    there = many.bounded(near.max_rows, KEY)
    for number in range(20):
        alive = pids(workers)
        victim = alive[number % len(alive)]
        killed = threading.Timer(0.02 * (number % 7), os.kill, (victim, signal.SIGKILL))
        killed.start()
        for _ in range(2):
            for a, b in zip(expected, there.counts_of(cliques), strict=True):
                np.testing.assert_array_equal(a, b)
        killed.join()
        assert there.rows == here.rows
    same_figures(here, there)


@pytest.mark.slow
def test_when_the_scheduler_is_killed_an_interruption_is_raised_and_nothing_hangs(
    tmp_path: Path, workers: DaskWorkers
) -> None:
    _, many = both(tmp_path, NEAR[0], workers)
    there = many.bounded(1, KEY)
    children = program().children(recursive=True)
    os.kill(program().pid, signal.SIGKILL)
    with pytest.raises(Interrupted, match="scheduler has ended"):
        there.counts_of([("age",)])
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive, "workers outlive their cluster"


@pytest.mark.slow
def test_when_this_process_dies_its_cluster_ends_too(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            local_workers(tmp_path / "dask")
            (tmp_path / "tree").write_text(
                " ".join(str(p.pid) for p in psutil.Process().children(recursive=True))
            )
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    tree = [int(pid) for pid in (tmp_path / "tree").read_text().split()]
    assert len(tree) >= 3
    end = time.monotonic() + 60
    while any(psutil.pid_exists(pid) for pid in tree) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in tree if psutil.pid_exists(pid)]


def quoting(_: object) -> object:
    raise ValueError(CANARY)


def refusing(_: object) -> object:
    raise SourceError("There is no file visits.parquet.")


@pytest.mark.slow
def test_no_error_of_a_worker_quotes_a_cell_and_no_page_or_file_tells_anything(
    tmp_path: Path, workers: DaskWorkers, caplog
) -> None:
    with pytest.raises(StepFailed, match="ValueError") as failed:
        workers.combined(quoting, quoting, workers.each(quoting, [CANARY, 2]))
    assert CANARY not in str(failed.value) and failed.value.__cause__ is None
    with pytest.raises(SourceError, match=r"visits\.parquet"):
        workers.combined(quoting, quoting, workers.each(refusing, [1, 2]))
    held = workers.each(partial(np.full, fill_value=CANARY), [100_000, 100_000])
    assert workers.combined(len, sum, held) == 200_000
    ports = {
        c.laddr.port
        for p in [program(), *program().children(recursive=True)]
        for c in p.net_connections()
        if c.status == psutil.CONN_LISTEN
    }
    hosts = {
        c.laddr.ip
        for p in [program(), *program().children(recursive=True)]
        for c in p.net_connections()
        if c.status == psutil.CONN_LISTEN
    }
    assert hosts == {"127.0.0.1"} and len(ports) >= 3
    for port in ports:
        for page in ("", "status", "info/main/workers.html", "info/logs.html", "metrics", "json/index.html"):
            with pytest.raises((urllib.error.URLError, ConnectionError, TimeoutError, OSError)):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5)
    folder = tmp_path / "private" / "dask"
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.rglob("*"):
        assert file.is_dir() or CANARY.encode() not in file.read_bytes()
    assert CANARY not in caplog.text


@pytest.mark.slow
def test_nobody_without_the_key_is_let_in(workers: DaskWorkers) -> None:
    from distributed import Client, Security

    address = workers._client.scheduler.address
    assert address.startswith("tls://127.0.0.1")
    for security in (Security.temporary(), None):
        with pytest.raises(Exception):  # noqa: B017
            Client(address if security else address.replace("tls", "tcp"), security=security, timeout=3)


def test_a_scheduler_that_is_not_there_is_said_in_one_paragraph(monkeypatch) -> None:
    monkeypatch.setattr(dask_clusters, "_SECONDS", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SourceError, match="can't be reached") as refused:
            workers_at(address, None)
    assert refused.value.__cause__ is None
    with pytest.raises(SourceError, match=r"engine\.tls"):
        workers_at("tls://127.0.0.1:1", Certificates(Path("none"), Path("none"), Path("none")))


def test_a_worker_that_spills_or_has_another_version_holds_nothing(tmp_path: Path, monkeypatch) -> None:
    """A cluster in this process: its workers may write to disk unless they are told not to."""
    import dask
    from distributed import LocalCluster

    dask_workers.quiet()
    near = NEAR[0]
    # A worker of this process counts all of its memory, and would wait for ever where that is much.
    settings = {"memory.target": 0.6, "memory.pause": False, "memory.terminate": False}
    of_workers = {f"distributed.worker.{key}": value for key, value in settings.items()}
    with dask.config.set({**of_workers, "distributed.scheduler.http.routes": []}):
        cluster = LocalCluster(
            n_workers=1, processes=False, memory_limit="1 GB", protocol="inproc://",
            dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
            local_directory=str(tmp_path),
        )  # fmt: skip
    with cluster, cluster.get_client() as client:
        workers = DaskWorkers(client)
        with pytest.raises(SourceError, match="may write what it holds to its disk"):
            both(tmp_path, near, workers)
        monkeypatch.setattr(dask_workers, "versions", lambda: {"dpsynth": "0.0.1"})
        task = workers._task(len, 1)
        monkeypatch.undo()
        (told,) = workers._mapped(task, [[1]])
        with pytest.raises(SourceError, match=r"has dpsynth .* and this process has 0\.0\.1"):
            raise told.result().error


def test_one_process_of_many_is_enough_for_a_file_without_row_groups(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex,city,pay\n" + "33,F,Oslo,10\n" * 5)
    (piece,) = pieces_of_file(tmp_path / "t.csv", NAMES, FileForm(), 8, keep_broken=True)
    assert sum(len(batch["age"]) for batch in piece.batches()) == 5 and piece.start == 0


@pytest.mark.slow
def test_certificates_in_files_open_a_scheduler_that_runs_already(tmp_path: Path) -> None:
    """As of another machine: the cluster is known by its address and an authority alone."""
    from distributed import Security

    def written(name: str, security: object) -> Certificates:
        paths = [tmp_path / f"{name}.{part}" for part in ("ca", "cert", "key")]
        texts = (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return Certificates(*paths)

    own = Security.temporary()
    given = {"ca": own.tls_ca_file, "cert": own.tls_scheduler_cert, "key": own.tls_scheduler_key}
    (tmp_path / "dask").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "dpsynth.wings.cluster.dask_clusters"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as held:
        assert held.stdin is not None and held.stdout is not None
        print(
            json.dumps({**given, "workers": 2, "folder": str(tmp_path / "dask")}), file=held.stdin, flush=True
        )
        address = held.stdout.readline().strip()
        workers = workers_at(address, written("own", own))
        one, many = both(tmp_path, NEAR[1], workers)
        same_figures(one.bounded(3, KEY), many.bounded(3, KEY))
        workers.close()
        with pytest.raises(SourceError, match=r"can't be reached \(\w+\).*engine\.tls") as refused:
            workers_at(address, written("other", Security.temporary()))
        assert refused.value.__cause__ is None
        held.stdin.close()
