"""The release as a Prefect flow: one task a step of ``dpsynth.pipeline``.

Invariant: Prefect sees paths, ids and step names. What a step takes and returns stays in
this process, in closures; no result is persisted or cached, nothing is retried, and only
public messages leave a step, for Prefect keeps the text of every exception.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

# Before prefect is imported: no telemetry, and time for a first start on a slow machine.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from dpsynth import load
from dpsynth.pipeline import guarded, run
from dpsynth.released import Release

T = TypeVar("T")


def as_task(name: str, action: Callable[[], T]) -> T:
    """Run a step as a Prefect task that takes and returns nothing."""
    outcome: list[T] = []

    @task(name=name, cache_policy=NO_CACHE, persist_result=False, retries=0, log_prints=False)
    def step() -> None:
        outcome.append(action())

    step()
    return outcome[0]


@flow(name="dpsynth-release", persist_result=False, retries=0, log_prints=False, validate_parameters=False)
def release(config: str, source: str | None = None, out: str = "outputs", resume: str | None = None) -> str:
    """Run a release and return its bundle's folder.

    Args:
        config: path of the YAML file.
        source: path of the table, in place of the config's.
        out: folder for bundles.
        resume: id of an interrupted release.
    """
    spec = load(config, source=source)
    done = run(spec, outputs=out, resume=resume, run_step=as_task)
    guarded("describe the release", lambda _: _describe(spec.release, done))
    return str(done.folder)


def _describe(name: str, done: Release) -> None:
    """A summary in Prefect's UI, made of published numbers only."""
    key = "release-" + "".join(c if c.isalnum() else "-" for c in name.lower())
    promise = done.guarantee
    create_markdown_artifact(
        key=key,
        description="What was released, and what it guarantees.",
        markdown=(
            f"## {name} {done.release_id}\n\n"
            f"| | |\n|---|---|\n| epsilon | {promise.epsilon:.6g} |\n| delta | {promise.delta:.3g} |\n"
            f"| unit | {promise.unit} |\n| neighbours | {promise.neighbours} |\n"
            f"| accountant | {promise.accountant} |\n| synthetic rows | {done.table.num_rows} |\n"
            f"| columns | {done.table.num_columns} |\n| bundle | `{done.folder}` |\n"
        ),
    )
