"""The release as a Prefect flow: one task for each step of ``dpsynth.pipeline.spine``.

Invariant: Prefect sees paths, ids, step names and shares of long steps. Arguments and results of a step stay
in this process, in closures. No result is persisted or cached, and no step is retried. Only public messages
leave a step, as Prefect stores the text of every exception. The state and the event at its end are made of
our own message, its exit code, names, and numbers that are published. What a Secret block holds is no
parameter, no result and no log of Prefect's, and no message quotes it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

# Before prefect is imported: no telemetry, and time for a first start on a slow machine.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.blocks.system import Secret
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event
from prefect.runtime import flow_run
from prefect.states import Failed

from dpsynth.config import Source, Spec, load
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted, StepFailed
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import SECRET, hold
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.pipeline.reservation import occasion_of, table_of
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import StepWatcher, guarded, watched


def unlock(source: Source) -> None:
    """Hand the address of a source over that names a Secret block; no other source needs it.

    Raises:
        ConfigError: there is no such block, or it holds no text.
    """
    name = source.url_from
    if name is None or not name.startswith(SECRET):
        return
    block = name.removeprefix(SECRET)
    try:
        found = cast("Secret[str]", Secret.load(block)).get()
    except Exception:
        found = None
    if not isinstance(found, str) or not found:
        raise ConfigError(
            f"source.url_from names the Secret block {block}, and Prefect has none of this name with a text "
            "in it. Make it in Prefect, under Blocks, with the URL as its value. Nothing was charged."
        )
    hold(name, found)


_KINDS: Mapping[type[DpsynthError], str] = {BudgetRefused: "refused", Interrupted: "interrupted"}


def completed(dataset: str, name: str, done: Release) -> None:
    """Report a release in Prefect; reports that Prefect refuses are dropped."""
    # Of a sealed bundle nothing is shown but what was asked for.
    if done.handed_over.is_dir():
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


T = TypeVar("T")

_LONGEST_WAIT = 60.0
"""Largest lead of the clock of Prefect's server over this machine's, in seconds."""

_heard: ContextVar[Callable[[str], None] | None] = ContextVar("heard", default=None)


@contextmanager
def telling(heard: Callable[[str], None]) -> Iterator[None]:
    """Send public notes of a release to a caller in this process, in addition to Prefect's log."""
    token = _heard.set(heard)
    try:
        yield
    finally:
        _heard.reset(token)


def _tell(sentence: str) -> None:
    get_run_logger().info(sentence)
    heard = _heard.get()
    if heard is not None:
        heard(sentence)


class PlainErrors(logging.Filter):
    """A filter that says an error of our own in its paragraph, where Prefect would print a traceback.

    A schedule's run is a process of Prefect's, whose engine prints whatever a flow ends with.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, an error of our own without its traceback."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, DpsynthError):
            record.msg, record.args, record.exc_info = f"Nothing was released. {error}", (), None
        return True


for _name in ("prefect.engine", "prefect.flow_runs"):
    logging.getLogger(_name).addFilter(PlainErrors())


class _ProgressArtifact(StepWatcher):
    """A watcher that shows the share of a step as a progress artifact of the task under way.

    A server that can't be reached, or is too old, costs the picture and nothing else.
    """

    def __init__(self) -> None:
        self._shown: UUID | None = None

    def advanced(self, step: str, share: float) -> None:
        with suppress(Exception):
            if self._shown is not None:
                update_progress_artifact(self._shown, progress=100 * share)
            else:
                key = re.sub("[^a-z0-9]+", "-", step.lower()).strip("-")
                self._shown = cast(UUID, create_progress_artifact(100 * share, key=key, description=step))


def dataset_of(spec: Spec) -> str:
    """The name of the account of a config's table, recorded or new."""
    return Ledger(spec.ledger.url, spec.ledger.head).read().dataset_of(table_of(spec))


def as_task(name: str, action: Callable[[], T]) -> T:
    """Run a step as a Prefect task that takes nothing, and returns nothing but a failed state."""
    outcome: list[T] = []
    refusals: list[DpsynthError] = []

    @task(name=name, cache_policy=NO_CACHE, persist_result=False, retries=0, log_prints=False)
    def step() -> State[None] | None:
        try:
            with watched(_ProgressArtifact()):
                outcome.append(action())
        except DpsynthError as error:
            # An error raised here would be pickled to disk and logged with a traceback.
            refusals.append(error)
            return Failed(message=str(error))
        return None

    state = step(return_state=True)
    if refusals:
        raise refusals[0]
    if not outcome:
        state.result()  # raises the error of the step
    return outcome[0]


def _run_name() -> str:
    """Name of the run in Prefect, such as "visits 2026-11": the release, and its period, id or day.

    The name of the config's file, where that can't be used: the run itself says why.
    """
    given = flow_run.parameters
    config, resume, period = (given.get(key) for key in ("config", "resume", "period"))
    try:
        start = max(flow_run.scheduled_start_time, datetime.now(UTC))
        spec = load(str(config), source=given.get("source"))
        label = resume or occasion_of(spec, start, period).label
        return f"{spec.release} {label or start.date()}"
    except Exception:
        return str(config)


@flow(
    name="dpsynth-release",
    flow_run_name=_run_name,
    persist_result=False,
    retries=0,
    log_prints=False,
    validate_parameters=False,
)
def release(
    config: str,
    source: str | None = None,
    out: str = "outputs",
    resume: str | None = None,
    period: str | None = None,
) -> str | State[Exception]:
    """Run a release and return its bundle's folder.

    A run that does not release ends in a state of type Failed, named Refused, Interrupted or
    Failed, whose message is the paragraph that the command line shows.

    Args:
        config: path of the YAML file.
        source: path of a table that replaces the config's.
        out: folder for bundles.
        resume: id of an interrupted release.
        period: label of the slice to release, where the config has periods.
    """
    dataset: str | None = None
    title, release_id = config, resume

    def step(name: str, action: Callable[[], T]) -> T:
        nonlocal dataset, release_id
        outcome = as_task(name, action)
        if isinstance(outcome, ReleaseRun):
            dataset, release_id = outcome.dataset, outcome.release_id
        return outcome

    try:
        spec = load(config, source=source)
        title = spec.release
        for private in spec.sources:
            unlock(private)
        dataset = dataset_of(spec)
        time.sleep(too_early(flow_run.scheduled_start_time, datetime.now(UTC)))
        done = run(spec, Request(Path(out), resume, period), tell=_tell, run_step=step)
    except Exception as error:
        return failed(dataset, title, release_id, error)
    completed(str(dataset), title, done)
    return str(done.folder)


def too_early(scheduled: datetime, now: datetime) -> float:
    """Seconds until a run's scheduled time by this machine's clock; 0 if it has passed.

    Prefect starts a run up to half a second early, and by its server's clock. The occasion follows from the
    clock here: just before the first of a month, it would be the wrong month.

    Raises:
        DpsynthError: the clocks differ by more than is waited for.
    """
    early = (scheduled - now).total_seconds()
    if early > _LONGEST_WAIT:
        raise DpsynthError(
            f"This run's time is {scheduled:%Y-%m-%d %H:%M:%S} UTC by the clock of Prefect's server, and by "
            f"that of this machine it is {now:%Y-%m-%d %H:%M:%S} UTC. Which period is released goes by the "
            "clock, so nothing was. Set the clocks, and run it again."
        )
    return max(0.0, early)
