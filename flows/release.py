"""The release as a Prefect flow: one task for each step of ``dpsynth.pipeline.spine``.

Invariant: Prefect sees paths, ids, step names and shares of long steps. Arguments and results of a step stay
in this process, in closures. No result is persisted or cached, and no step is retried. Only public messages
leave a step, as Prefect stores the text of every exception.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
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
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Failed

from dpsynth.config import load
from dpsynth.errors import DpsynthError
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.pipeline.reservation import occasion_of, table_of
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import StepWatcher, watched
from flows.ending import completed, failed
from flows.secrets import unlock

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
        unlock(spec.source)
        dataset = Ledger(spec.ledger.url, spec.ledger.head).read().dataset_of(table_of(spec))
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
