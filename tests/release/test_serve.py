"""Releases by a schedule: once a period whatever befalls the ticks, within the cap, and seen in Prefect.

The clock is a test's own; Prefect's server, scheduler and runner are the real ones.
"""

import asyncio
import io
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest

import dpsynth
from dpsynth.accounting.measures import GDP, gdp_epsilon
from dpsynth.config import Spec, compiled
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError
from dpsynth.ledger.balance import Balance
from flows.served import StopSignals
from tests.release import canaries, clock
from tests.release.clock import Clock
from tests.release.place import HEADER, Place
from tests.release.served import Api, Json, Served, until

needs_clock = pytest.mark.skipif(bool(clock.reason_without()), reason=clock.reason_without() or "")


def whole(test: Callable[..., None]) -> Callable[..., None]:
    """A test of a year of schedules, with Prefect's server, which takes a minute."""
    return pytest.mark.slow(needs_clock(test))


MONTHLY: dict[str, Any] = {
    "privacy": {"epsilon": 1.0, "delta": 1e-6, "accountant": "gdp"},
    "ledger": {"filter": "gdp", "cap": {"epsilon": 1000, "delta": 1e-5}},
    "period": {"column": "visited", "every": "month"},
    "schedule": {"cron": "0 3 1 * *", "timezone": "Europe/Paris"},
}


def furnish(place: Place, **changes: Any) -> None:
    """A table with canaries, each row with a day of 2031, and a config that releases it month by month."""
    rows = canaries.table()
    visited = [f"2031-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(len(rows))]
    place.table([(*row, day) for row, day in zip(rows, visited, strict=True)], header=(*HEADER, "visited"))
    place.configure(**(MONTHLY | changes))


def cost_of(spec: Spec) -> Fraction:
    """mu^2/2 of one release as it is planned."""
    from dpsynth.plan.plan import make_plan
    from dpsynth.strategy import strategy_of

    plan = make_plan(compiled(spec), strategy_of(spec.structure.method, ()))
    assert plan.measure == GDP
    return plan.budget


def cap_for(place: Place, count: int, delta: float) -> float:
    """An epsilon at which that many releases fit, and not one more."""
    one = cost_of(dpsynth.load(place.folder / "config.yaml"))
    fits, more = (float(gdp_epsilon(n * one, Fraction(delta))) for n in (count, count + 1))
    return (fits + more) / 2


def released(place: Place) -> dict[str, Path]:
    """Bundles by the label of their period, from their manifests."""
    found = {}
    for manifest in (place.folder / "outputs").glob("*/*/public/manifest.json"):
        facts = json.loads(manifest.read_text())
        found[facts["period"]["label"]] = manifest.parent.parent
    return found


def account(place: Place) -> Balance:
    """What the ledger says."""
    balance = place.balance
    assert balance is not None
    return balance


@dataclass
class Year:
    """What was seen in a year of schedules: a balance and the runs of each step, in order."""

    place: Place
    runs: dict[str, Json]
    balances: dict[str, Balance]
    missed: list[Json]
    events: dict[str, Json]
    stranger: int
    code: int
    still_up: bool


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    """January's release, a second run, missed ticks and a cap that is reached."""
    home = tmp_path_factory.mktemp("served")
    (home / "work").mkdir()
    place = Place(home / "work", home)
    furnish(place)
    cap = {"epsilon": cap_for(place, 2, 1e-5), "delta": 1e-5}
    furnish(place, ledger={"filter": "gdp", "cap": cap})
    ours = Clock(home / "clock")
    ours.set(datetime(2031, 1, 20, 12, tzinfo=UTC))
    served = Served(place, ours)
    runs, balances, events = {}, {}, {}

    def note(step: str, since: datetime) -> None:
        balances[step] = account(place)
        events[step] = until(lambda: served.api.events(since))[-1]

    try:
        start = ours.now
        (runs["tick"],) = served.jump(datetime(2031, 2, 1, 2, 0, 1, tzinfo=UTC))
        note("tick", start)
        start = ours.now
        runs["again"] = served.api.ended(served.api.start("people"))
        note("again", start)
        start = ours.now
        missed = served.jump(datetime(2031, 5, 12, 9, tzinfo=UTC))
        note("missed", start)
        start = ours.now
        # Three o'clock in Paris, in summer.
        (runs["refused"],) = served.jump(datetime(2031, 6, 1, 1, 0, 1, tzinfo=UTC))
        note("refused", start)
        with pytest.raises(HTTPError) as refused:
            Api(served.port, "dpsynth:").runs()
        code = served.stop()
        yield Year(place, runs, balances, missed, events, refused.value.code, code, served.api.up)
    finally:
        if served.process.poll() is None:
            served.kill()


@whole
def test_a_tick_releases_the_month_that_has_ended(year: Year) -> None:
    assert year.runs["tick"]["state"]["type"] == "COMPLETED"
    (entry,) = year.balances["tick"].releases
    assert (entry.occasion, entry.state) == ("2031-01", "closed")
    assert released(year.place)["2031-01"].name == entry.release_id


@whole
def test_a_second_run_of_a_month_shows_the_first_bundle_and_charges_nothing(year: Year) -> None:
    assert year.runs["again"]["state"]["type"] == "COMPLETED"
    assert year.balances["again"] == year.balances["tick"]
    assert year.events["tick"]["payload"] == year.events["again"]["payload"]


@whole
def test_three_missed_runs_spend_once(year: Year) -> None:
    """Prefect #15886: without care each of them would be a spend."""
    assert len(year.missed) == 3
    assert sorted(run["state"]["type"] for run in year.missed).count("COMPLETED") >= 1
    assert {run["state"]["type"] for run in year.missed} <= {"COMPLETED", "CANCELLED"}
    assert [r.occasion for r in year.balances["missed"].releases] == ["2031-01", "2031-04"]


@whole
def test_a_refusal_is_a_failed_run_that_says_what_is_left(year: Year) -> None:
    state = year.runs["refused"]["state"]
    assert (state["type"], state["name"]) == ("FAILED", "Refused")
    assert state["message"].endswith("(Exit code 3.)") and "epsilon" in state["message"]
    before = year.balances["missed"]
    assert year.balances["refused"] == before
    assert released(year.place).keys() == {r.occasion for r in before.releases}
    last = year.events["refused"]
    assert last["event"] == "dpsynth.release.refused"
    assert last["resource"]["prefect.resource.id"] == "dpsynth.dataset.people"
    assert last["payload"]["exit_code"] == 3 and last["payload"]["message"] in state["message"]


def test_a_refusal_is_told_to_prefect_by_its_name_its_words_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As above, without a server."""
    from flows import release as ending

    sent: list[tuple[str, Json]] = []
    monkeypatch.setattr(ending, "emit_event", lambda event, **facts: sent.append((event, facts)))
    state = ending.failed("people", "visits", None, BudgetRefused("An epsilon of 0.2 is left."))
    assert (state.type.value, state.name) == ("FAILED", "Refused")
    assert state.message == "An epsilon of 0.2 is left. (Exit code 3.)"
    ((event, facts),) = sent
    assert event == "dpsynth.release.refused"
    assert facts["resource"]["prefect.resource.id"] == "dpsynth.dataset.people"
    assert facts["payload"]["exit_code"] == 3 and facts["payload"]["message"] in state.message


@whole
def test_a_completed_release_is_an_event_with_its_id(year: Year) -> None:
    for step, entry in zip(("tick", "missed"), year.balances["missed"].releases, strict=True):
        event = year.events[step]
        assert event["event"] == "dpsynth.release.completed" and event["payload"]["exit_code"] == 0
        assert event["payload"]["release_id"] == entry.release_id
        assert event["payload"]["bundle"].endswith(entry.release_id)


@whole
def test_a_schedule_keeps_no_cell_of_the_table(year: Year) -> None:
    """Hazard 33: Prefect's database, its log, the events, the bundles, what serve wrote."""
    files = canaries.left_behind(year.place.home)
    names = {p.relative_to(year.place.home).as_posix() for p in files}
    assert "prefect/prefect.db" in names and any(name.startswith("serve-") for name in names)
    assert canaries.found_in(files) == {}


@whole
def test_its_server_wants_a_password_and_its_files_are_their_owners(year: Year) -> None:
    """Else who works on the same machine could start releases, or a page in its browser could."""
    assert year.stranger == 401
    for file in (year.place.home / "prefect").glob("prefect.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert "test:secret" not in "".join(log.read_text() for log in year.place.home.glob("serve-*.log"))


@whole
def test_it_stops_when_asked_and_its_server_with_it(year: Year) -> None:
    assert year.code == 0 and not year.still_up


def test_a_deployment_runs_at_the_times_of_its_config_and_one_run_at_a_time(place: Place) -> None:
    """As above, without a server."""
    from flows.schedule import _deployment
    from flows.served import checked

    furnish(place)
    made = _deployment(checked([place.folder / "config.yaml"])[0], place.folder / "outputs")
    ((tick,), limit) = made.schedules or (), made.concurrency_options
    assert tick.schedule.model_dump(include={"cron", "timezone"}) == MONTHLY["schedule"]
    assert made.concurrency_limit == 1 and limit and limit.collision_strategy.value == "CANCEL_NEW"
    # A run has no period of its own: it follows from the clock.
    assert made.parameters.keys() == {"config", "out"} and made.entrypoint == "flows.release.release"


def test_files_of_its_server_are_their_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, without Prefect's own."""
    import uvicorn

    from flows import server

    made = tmp_path / "prefect.db"
    api = SimpleNamespace(create_app=lambda **_: None)
    monkeypatch.setitem(sys.modules, "prefect.server.api.server", api)
    monkeypatch.setattr(uvicorn.Server, "run", lambda _: made.touch())
    monkeypatch.setattr(server.signal, "signal", lambda *_: None)
    monkeypatch.setattr(server.sys, "argv", ["server", "4321"])
    monkeypatch.setattr(server.sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    before = os.umask(0o022)
    try:
        server.main()
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o600


@pytest.fixture
def stop() -> Iterator[StopSignals]:
    """Signals that end a service; the handlers of before are put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield StopSignals()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_that_comes_while_it_starts_ends_it_as_it_is_ended_later(
    place: Place, monkeypatch: pytest.MonkeyPatch, stop: StopSignals
) -> None:
    """Prefect's runner takes the signal for itself as it starts, and can't be stopped before it has."""
    from flows import schedule

    class Runner:
        """What is used of Prefect's, with a handler of its own that would end the process."""

        def __init__(self, pause_on_shutdown: bool) -> None:
            self.started, self.over = False, asyncio.Event()

        def handle_sigterm(self, *_: object) -> None:
            raise AssertionError("killed")

        async def start(self) -> None:
            signal.signal(signal.SIGTERM, self.handle_sigterm)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.5)
            self.started = True
            await self.over.wait()

        async def astop(self) -> None:
            assert self.started
            self.over.set()

    furnish(place)
    monkeypatch.setattr(schedule, "_server", lambda *_: nullcontext())
    monkeypatch.setattr(schedule, "Runner", Runner)
    said: list[str] = []
    schedule.serve_all([], place.folder / "outputs", said.append, stop)
    assert said == ["Stopped."]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_release_that_is_finished_at_the_start_is_interrupted_by_a_signal_and_not_killed(
    place: Place, monkeypatch: pytest.MonkeyPatch, stop: StopSignals, by: signal.Signals
) -> None:
    from flows import schedule
    from flows.served import checked

    furnish(place)
    (one,) = checked([place.folder / "config.yaml"])
    release = place.folder / "release"
    script = "#!/bin/sh\ntrap 'touch told; exit 5' TERM\ntouch begun\nwhile :; do sleep 0.1; done\n"
    release.write_text(script)
    release.chmod(0o700)
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr(schedule.sys, "executable", str(release))

    def signalled() -> None:
        until(Path("begun").exists, 30)
        os.kill(os.getpid(), by)

    stopping = threading.Thread(target=signalled)
    stopping.start()
    schedule._finish(one, "r1", Path("outputs"), stop)
    stopping.join()
    assert stop.asked and Path("told").exists()


def test_a_config_without_a_schedule_is_refused(place: Place) -> None:
    from flows.served import checked

    with pytest.raises(ConfigError, match="no key schedule"):
        checked([place.folder / "config.yaml"])


def test_two_configs_of_one_name_are_refused(place: Place) -> None:
    from flows.served import checked

    furnish(place)
    (place.folder / "other.yaml").write_text((place.folder / "config.yaml").read_text())
    with pytest.raises(ConfigError, match="the same name"):
        checked([place.folder / name for name in ("config.yaml", "other.yaml")])


def test_a_run_that_starts_just_before_its_time_waits_for_it() -> None:
    from flows.release import too_early

    tick = datetime(2031, 2, 1, 2, tzinfo=UTC)
    assert too_early(tick, tick - timedelta(seconds=0.4)) == pytest.approx(0.4)
    assert too_early(tick, tick) == too_early(tick, tick + timedelta(days=40)) == 0
    with pytest.raises(DpsynthError, match="Set the clocks"):
        too_early(tick, tick - timedelta(minutes=2))
