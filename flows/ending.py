"""The end of a release in Prefect: a state with our message, and an event for automations.

Invariant: both are made of public facts alone: our own message, its exit code, names, and
numbers that are published.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from prefect import State
from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event
from prefect.states import Failed

from dpsynth.errors import BudgetRefused, DpsynthError, Interrupted, StepFailed
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import guarded

_KINDS: Mapping[type[DpsynthError], str] = {BudgetRefused: "refused", Interrupted: "interrupted"}


def completed(dataset: str, name: str, done: Release) -> None:
    """Report a release in Prefect; reports that Prefect refuses are dropped."""
    with suppress(DpsynthError):
        guarded("describe the release", lambda: _describe(name, done))
    _emit(
        "completed",
        f"dpsynth.dataset.{dataset}",
        {
            "release": name,
            "release_id": done.release_id,
            "exit_code": 0,
            "epsilon": done.guarantee.epsilon,
            "delta": done.guarantee.delta,
            "bundle": str(done.folder),
        },
    )


def failed(dataset: str | None, name: str, release_id: str | None, error: Exception) -> State[Exception]:
    """The state of a run that did not release, and the event that goes with it.

    Args:
        dataset: the dataset's name in the ledger; None if the config could not be read.
        name: the name of the release, or the config's path.
        release_id: the id of the release, if one was begun.
        error: the error. An error that isn't ours may quote a cell, so only its type is published.
    """
    if not isinstance(error, DpsynthError):
        error = StepFailed.of("run the flow", error)
    kind = next((k for of, k in _KINDS.items() if isinstance(error, of)), "failed")
    _emit(
        kind,
        f"dpsynth.config.{name}" if dataset is None else f"dpsynth.dataset.{dataset}",
        {"release": name, "release_id": release_id, "exit_code": error.exit_code, "message": str(error)},
    )
    # The caller of the flow in this process gets the error itself. Prefect gets it in memory only: an
    # error that is raised would be pickled to disk.
    return Failed(name=kind.capitalize(), message=f"{error} (Exit code {error.exit_code}.)", data=error)


def _emit(kind: str, resource: str, payload: Mapping[str, object]) -> None:
    with suppress(Exception):
        emit_event(
            f"dpsynth.release.{kind}",
            resource={"prefect.resource.id": resource, "prefect.resource.name": str(payload["release"])},
            payload=dict(payload),
        )


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
