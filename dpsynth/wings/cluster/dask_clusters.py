"""Dask clusters: one that is started on this machine for a release, or a scheduler that runs already.

A cluster that is started here is a process of its own with a scheduler and a worker for each processor; it
ends when its standard input does, so it never outlives a release, however that ends. Its key and certificate
are made for it, and handed over through that input: another user of the machine who finds the port learns
nothing.

Run as a program, this is that process.

Invariant: no page of a dashboard is served, nothing is spilled to a disk, and nothing is printed but an
address. Workers keep their files in a private folder of the release.
"""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.curator.table import cores
from dpsynth.errors import SourceError
from dpsynth.wings.cluster.dask_workers import DaskWorkers, missing_extra, quiet, unfit, versions

if TYPE_CHECKING:
    from distributed import Client, Security

_SECONDS = 10
"""Seconds until a scheduler has to answer."""
_LOOK = 2.0
"""Seconds between two looks at the number of workers."""
_ENDING = 20
"""Seconds in which a cluster has to end by itself."""

OFF = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 20,
    "distributed.deploy.lost-worker-timeout": "30s",
}
"""Dask's settings for a cluster on this machine: no spill, no profile, no page."""


@dataclass(frozen=True)
class Certificates:
    """Paths of the PEM files with which this process proves itself to a scheduler, and tells it from others.

    Attributes:
        ca: the authority that signed the scheduler's certificate and the workers'.
        cert, key: this process's certificate and its key.
    """

    ca: Path
    cert: Path
    key: Path


def local_workers(folder: Path) -> tuple[DaskWorkers, Callable[[], None]]:
    """Workers on this machine, one for each processor and two at least, and a function that ends them.

    Args:
        folder: a private folder for their files, which is removed at the end.

    Raises:
        ConfigError: Dask isn't installed.
        SourceError: they don't start.
    """
    _check_installed()
    from distributed import Security

    security = Security.temporary()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    given = {
        "ca": security.tls_ca_file,
        "cert": security.tls_scheduler_cert,
        "key": security.tls_scheduler_key,
        "workers": max(2, cores()),
        "folder": str(folder.absolute()),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth.wings.cluster.dask_clusters"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # An interruption of this process is not one of theirs.
        start_new_session=True,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    workers: DaskWorkers | None = None

    def end() -> None:
        if workers is not None:
            workers.close()
        with suppress(OSError):
            stdin.close()
        stdout.close()
        try:
            process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    try:
        with suppress(OSError):
            stdin.write(json.dumps(given) + "\n")
            stdin.flush()
        address = stdout.readline().strip()
        if not address:
            raise SourceError(
                "Dask's workers didn't start on this machine. See that it has memory and processes left, or "
                "leave out engine.dask: then this process counts by itself."
            )
        workers = DaskWorkers(_client(address, security), lambda: process.poll() is not None)
    except BaseException:
        end()
        raise
    return workers, end


def workers_at(address: str, certificates: Certificates | None) -> DaskWorkers:
    """The workers of a scheduler that runs already, each of which may hold rows of a private table.

    Args:
        address: the address of the scheduler.
        certificates: those for a tls:// address.

    Raises:
        ConfigError: Dask isn't installed.
        SourceError: the scheduler can't be reached, or its workers may not hold private rows.
    """
    _check_installed()
    from distributed import Security

    try:
        security = (
            None
            if certificates is None
            else Security(
                require_encryption=True,
                tls_ca_file=str(certificates.ca),
                tls_client_cert=str(certificates.cert),
                tls_client_key=str(certificates.key),
            )
        )
        client = _client(address, security)
    except Exception as error:
        raise SourceError(
            f"The Dask scheduler at {address} can't be reached ({type(error).__name__}). See that it runs "
            "there and, for a tls:// address, that engine.tls names the authority that signed its "
            "certificate, and a certificate and key that the scheduler accepts."
        ) from None
    try:
        workers = DaskWorkers(client)
        for why in client.run(unfit, versions()).values():
            if why:
                raise SourceError(why)
    except SourceError:
        client.close(timeout=_SECONDS)
        raise
    except Exception as error:
        client.close(timeout=_SECONDS)
        raise SourceError(
            f"The workers of the Dask scheduler at {address} can't run dpsynth ({type(error).__name__}). "
            "Install the same version of it, and of Dask, for the scheduler and all workers."
        ) from None
    return workers


def _check_installed() -> None:
    missing = missing_extra()
    if missing is not None:
        raise missing
    quiet()


def _client(address: str, security: Security | None) -> Client:
    from distributed import Client

    return Client(address, security=security, timeout=_SECONDS, set_as_default=False)


def main() -> None:
    """Hold a cluster until standard input ends."""
    import dask

    given = json.loads(sys.stdin.readline())
    dask.config.set(OFF)
    from distributed import LocalCluster, Security

    security = Security(
        require_encryption=True,
        tls_ca_file=given["ca"],
        **{f"tls_{role}_cert": given["cert"] for role in ("client", "scheduler", "worker")},
        **{f"tls_{role}_key": given["key"] for role in ("client", "scheduler", "worker")},
    )
    with LocalCluster(
        n_workers=given["workers"],
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        memory_limit=0,
        local_directory=given["folder"],
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=50,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        while not select.select([sys.stdin], [], [], _LOOK)[0]:
            # Each worker's keeper starts it again. Where a keeper has given up, this starts another.
            cluster.scale(given["workers"])


if __name__ == "__main__":
    main()
