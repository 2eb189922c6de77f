"""Runs one release to a chosen end: ``python -m tests.release.ending TABLE END``, in the folder of a config.

TABLE is "config" for the source of the configuration, or "arrow" or "pandas" for a table in memory. END is
"success"; "failure", an error that quotes cells, or with Dask the death of its scheduler; or "kill".
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from pyarrow import parquet

from dpsynth.config import load
from dpsynth.curator import MemoryTable, loaded_rows
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import Step


def _quoting(_: object, texts: Any) -> None:
    raise ValueError(texts.to_pylist())


def cluster(of: int) -> psutil.Process:
    """The process that holds the Dask cluster of a process."""
    (found,) = [
        p for p in psutil.Process(of).children() if "dpsynth.wings.cluster.dask_clusters" in p.cmdline()
    ]
    return found


def main(kind: str, end: str) -> int:
    """Run the release; the exit code of the command line."""
    spec = load("config.yaml")
    table = None
    if kind != "config":
        spec = spec.in_memory()
        found = parquet.read_table(os.environ["TABLE"])
        table = MemoryTable(found if kind == "arrow" else found.to_pandas())
    if end == "failure" and spec.engine.dask is None:
        loaded_rows.codes_of = _quoting  # type: ignore[assignment, attr-defined]

    def step(name: str, action: Callable[[], Any]) -> Any:
        if name == Step.SELECT and end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == Step.SELECT and end == "failure":
            cluster(os.getpid()).kill()
        return action()

    try:
        resume = os.environ.get("RESUME")
        print(run(spec, Request(Path("outputs"), resume), table=table, run_step=step, tell=print).folder)
    except DpsynthError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
