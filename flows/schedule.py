"""Schedules: one process in which releases run at the times of their configs, through Prefect.

Invariant: a tick only starts a run. The occasion follows from the clock at the start of the run and is
released once, so runs that are late, doubled or repeated spend nothing more.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from prefect import State, get_client
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_SERVER_API_PORT,
    get_current_settings,
    temporary_settings,
)
from prefect.states import AwaitingRetry, Cancelled
from prefect.types.entrypoint import EntrypointType

from dpsynth.config import Spec, compiled
from dpsynth.config.period import ticks
from dpsynth.ledger.balance import ReleaseEntry
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.forecast import approval, plan_of
from dpsynth.pipeline.release_run import waits_for_its_owner
from dpsynth.pipeline.reservation import occasion_of, table_of
from dpsynth.wing import Point
from flows.release import dataset_of, release
from flows.served import Served, StopSignals
from flows.server import check_usable, configured_server, running

Say = Callable[[str], None]

DUE: Point[Callable[[Path], Iterator[str]]] = Point("sealed bundles that are due", "governance")
"""Opens the sealed bundles in the folder of a release's name whose embargo has ended, and says so of each."""


def serve_all(served: Sequence[Served], outputs: Path, say: Say, stop: StopSignals) -> None:
    """Release at the times of some configs, until stopped.

    Runs are kept by the server that PREFECT_API_URL names, else by one of its own.

    Args:
        served: the configs.
        outputs: folder for bundles.
        say: takes public sentences about the configs served and the releases found.
        stop: the signals that end it.

    Raises:
        ConfigError: a ledger can't be used.
        DpsynthError: Prefect's server can't be reached or started.
    """
    with _server(served, say):
        for one in served:
            _take_up(one, outputs, say, stop)
        folders = [outputs / one.spec.release for one in served]
        asyncio.run(_serve([_deployment(one, outputs) for one in served], folders, say, stop))
    say("Stopped.")


def _take_up(one: Served, outputs: Path, say: Say, stop: StopSignals) -> None:
    """Finish a release that was begun, and report its state."""
    spec, name, now = one.spec, one.spec.release, datetime.now(UTC)
    for begun in (r for r in _releases(spec) if r.state == "reserved"):
        if stop.asked:
            return
        unfinished = f"{begun.occasion} of '{name}' was begun as {begun.release_id} and not finished."
        if waits_for_its_owner(outputs / name, begun.release_id):
            say(
                f"{unfinished} It is paused, and waits for your decision: dpsynth run "
                f"{one.config} --resume {begun.release_id}, or --abandon {begun.release_id}"
            )
            continue
        say(f"{unfinished} Finishing it:")
        _finish(one, begun.release_id, outputs, stop)
    last = occasion_of(spec, now).label
    if not any(r.occasion == last and r.state == "closed" for r in _releases(spec)):
        say(
            f"{last} of '{name}' has not been released. If its run was missed while this command was "
            f"stopped, it is made up for now; if not, release it with: dpsynth run {one.config}"
        )
    worked_out = compiled(spec)
    said = approval(worked_out, plan_of(worked_out), Ledger(spec.ledger.url, spec.ledger.head).read())
    if said is not None:
        say(f"Approval of '{name}': {said}")
    tick = next(ticks(one.schedule, now))
    say(f"'{name}' will run at {tick:%Y-%m-%d %H:%M %Z}, for {occasion_of(spec, tick).label}.")


def _releases(spec: Spec) -> Sequence[ReleaseEntry]:
    account = Ledger(spec.ledger.url, spec.ledger.head).read().account_of(table_of(spec))
    return [] if account is None else [r for r in account.releases if r.release == spec.release]


@contextmanager
def _server(served: Sequence[Served], say: Say) -> Iterator[None]:
    """Prefect's server: the one that is configured, else one that ends with this process."""
    address = configured_server()
    if address is not None:
        check_usable(address, "leave PREFECT_API_URL out, and this command starts a server of its own")
        say(f"Runs are kept by Prefect's server at {address}, which PREFECT_API_URL names.")
        yield
        return
    with running(PREFECT_SERVER_API_PORT.value()) as own:
        where = "your password" if own.password_file is None else f"what stands in {own.password_file}"
        say(f"Runs are shown at {own.page}; sign in with {where}.")
        with temporary_settings({PREFECT_API_URL: f"{own.page}/api", PREFECT_API_AUTH_STRING: own.sign_in}):
            _run_again_what_was_cut_short([one.spec.release for one in served])
            yield


def _run_again_what_was_cut_short(names: Sequence[str]) -> None:
    """Make runs due again that a killed server has left open.

    No process can be running them, as the server's port was free. An open run would block its deployment's
    only slot, and all later runs would be cancelled.
    """
    open_ones = {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}}
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(
            deployment_filter=DeploymentFilter.model_validate({"name": {"any_": list(names)}}),
            flow_run_filter=FlowRunFilter.model_validate(open_ones),
            sort=FlowRunSort.ID_DESC,
            limit=200,
        ):
            state: State[None] = Cancelled() if run.state_type == StateType.CANCELLING else AwaitingRetry()
            client.set_flow_run_state(run.id, state, force=True)


def _finish(one: Served, release_id: str, outputs: Path, stop: StopSignals) -> None:
    """Resume a release in a process of its own, before other runs may start; that process reports the end."""
    command = [sys.executable, "-m", "dpsynth", "run", str(one.config), "--resume", release_id]
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    with subprocess.Popen([*command, "--out", str(outputs)], env={**os.environ, **settings}) as process:
        while not _ended(process, within=0.2):
            # A terminal, or a service manager, sends the signal to both; whoever sends it to this one alone
            # means the release too.
            if stop.asked and not _ended(process, within=2):
                process.terminate()
                process.wait()


def _ended(process: subprocess.Popen[bytes], within: float) -> bool:
    """True if a process ends within so many seconds."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(within)
    return process.returncode is not None


async def _open_sealed(folders: Sequence[Path], say: Say) -> None:
    """Open sealed bundles when they are due, for as long as it is let; say the same only once."""
    due, said = DUE.filled(), set[str]()
    while due is not None:
        for folder in folders:
            for sentence in await asyncio.to_thread(list, due(folder)):
                if sentence not in said:
                    say(sentence)
                    said.add(sentence)
        await asyncio.sleep(20)


async def _serve(
    deployments: Sequence[RunnerDeployment], folders: Sequence[Path], say: Say, stop: StopSignals
) -> None:
    """Run all due runs until a signal, which interrupts the current ones."""
    # Not paused at the end: runs that fall due until the next start stay listed, and are made up for.
    runner = Runner(pause_on_shutdown=False)
    # Prefect's handler, which its runner installs, kills current runs before they can report their ends.
    runner.handle_sigterm = stop.ask  # type: ignore[method-assign]
    for deployment in deployments:
        await runner.aadd_deployment(deployment)
    opening = asyncio.create_task(_open_sealed(folders, say))
    serving = asyncio.create_task(runner.start())
    while not serving.done():
        await asyncio.sleep(0.2)
        if stop.asked and runner.started:
            await runner.astop()
            break
    opening.cancel()
    await serving


def _deployment(one: Served, outputs: Path) -> RunnerDeployment:
    """A deployment with one run at a time: a run that falls due during another is cancelled."""
    spec = one.spec
    made = release.to_deployment(
        spec.release,
        schedule=Cron(one.schedule.cron, timezone=one.schedule.timezone),
        parameters={"config": str(one.config), "out": str(outputs.resolve())},
        concurrency_limit=ConcurrencyLimitConfig(
            limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
        ),
        tags=["dpsynth", f"dataset {dataset_of(spec)}"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    assert isinstance(made, RunnerDeployment)
    # Set explicitly; otherwise the work pool of an earlier "prefect deploy" of this name would get the runs.
    made.work_pool_name = made.work_queue_name = None
    return made
