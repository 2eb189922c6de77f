"""A schedule cut short at any moment goes on from there; and each safeguard is needed, shown by its lack."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.release import clock
from tests.release.clock import Clock
from tests.release.place import Place
from tests.release.served import Served, until
from tests.release.test_serve import account, furnish, released

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(clock.reason_without()), reason=clock.reason_without() or ""),
]

FEBRUARY, MARCH, MAY = (
    datetime(2031, 2, 1, 2, 0, 1, tzinfo=UTC),
    datetime(2031, 3, 1, 2, 0, 1, tzinfo=UTC),
    datetime(2031, 5, 12, 9, tzinfo=UTC),
)

FAULTY = '''
"""dpsynth with faults planted: run as a script it serves, and runs of releases import it."""
import sys

import dpsynth.cli.app
import dpsynth.pipeline.beginning
import flows.release
import flows.schedule
import prefect.runner
from prefect.runtime import flow_run

FAULTS = {faults!r}
if "each tick a spend" in FAULTS:
    run = dpsynth.pipeline.beginning
    real = run.occasion_of
    run.occasion_of = lambda spec, now, label=None: real(spec, flow_run.scheduled_start_time, label)
if "runs left open" in FAULTS:
    flows.schedule._run_again_what_was_cut_short = lambda names: None
if "paused at the end" in FAULTS:
    flows.schedule.Runner = lambda pause_on_shutdown: prefect.runner.Runner(pause_on_shutdown=True)
release = flows.release.release
deployed = flows.schedule._deployment


def deployment(*arguments):
    made = deployed(*arguments)
    made.entrypoint = "faulty.release"
    if "no limit" in FAULTS:
        made.concurrency_limit = made.concurrency_options = None
    return made


if __name__ == "__main__":
    flows.schedule._deployment = deployment
    dpsynth.cli.app.main()
'''


def faulty(place: Place, *faults: str) -> list[str]:
    """A command with faults planted, in place of ``python -m dpsynth``."""
    (place.folder / "faulty.py").write_text(FAULTY.format(faults=faults))
    return [sys.executable, "faulty.py"]


@pytest.fixture
def january(tmp_path: Path) -> tuple[Place, Clock]:
    """A place with the table of a year, on a day in January."""
    (tmp_path / "work").mkdir()
    made, ours = Place(tmp_path / "work", tmp_path), Clock(tmp_path / "clock")
    furnish(made)
    ours.set(datetime(2031, 1, 20, 12, tzinfo=UTC))
    return made, ours


def cut(served: Served, how: str) -> None:
    """Have a tick come, and end all of it while the release is under way."""
    served.wait_for_ticks()
    served.clock.set(FEBRUARY)
    journals = served.place.folder / "outputs" / "people"
    until(lambda: [j for j in journals.glob(".*/private/journal.jsonl") if j.read_text().count("\n") > 2])
    if how == "killed":
        served.kill()
    else:
        assert served.stop() == 0
    until(lambda: not served.api.up, 30)
    assert [(r.occasion, r.state) for r in account(served.place).releases] == [("2031-01", "reserved")]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_release_that_was_cut_short_is_finished_at_the_next_start(
    january: tuple[Place, Clock], how: str
) -> None:
    place, ours = january
    cut(Served(place, ours), how)
    again = Served(place, ours)
    try:
        until(lambda: account(place).releases[0].state == "closed")
        (entry,) = account(place).releases
        assert released(place)["2031-01"].name == entry.release_id
        left = "COMPLETED" if how == "killed" else "CANCELLED"
        until(lambda: again.api.runs(left, before=FEBRUARY))
        (run,) = again.jump(MARCH)
        assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
        assert [r.occasion for r in account(place).releases] == ["2031-01", "2031-02"]
    finally:
        again.kill()


@pytest.mark.parametrize("moment", ["Runs are shown at", "will run at"])
def test_it_is_stopped_at_any_moment_of_its_start_without_a_failure(
    january: tuple[Place, Clock], moment: str
) -> None:
    served = Served(*january)
    try:
        until(lambda: moment in served.log.read_text())
        assert served.stop() == 0
        said = served.log.read_text()
        assert "Traceback" not in said and said.endswith("Stopped.\n")
        until(lambda: not served.api.up, 30)
    finally:
        if served.process.poll() is None:
            served.kill()


def test_if_runs_stayed_open_a_cut_would_stop_the_schedule_for_good(january: tuple[Place, Clock]) -> None:
    """The planted fault: Prefect keeps the place of a run that nobody runs any more."""
    place, ours = january
    cut(Served(place, ours), "killed")
    again = Served(place, ours, first=faulty(place, "runs left open"))
    try:
        (run,) = again.jump(MARCH)
        assert run["state"]["type"] == "CANCELLED"
    finally:
        again.kill()


@pytest.mark.parametrize(
    ("faults", "occasions"), [((), ["2031-01", "2031-04"]), (("paused at the end",), ["2031-01"])]
)
def test_what_was_missed_while_it_was_stopped_is_made_up_for_once(
    january: tuple[Place, Clock], faults: tuple[str, ...], occasions: list[str]
) -> None:
    place, ours = january
    served = Served(place, ours, first=faulty(place, *faults))
    (run,) = served.jump(FEBRUARY)
    assert run["state"]["type"] == "COMPLETED" and served.stop() == 0
    ours.set(MAY)
    again = Served(place, ours)
    try:
        again.wait_for_ticks()
        until(lambda: not again.api.runs("SCHEDULED", "PENDING", "RUNNING", before=again.clock.now))
        assert [r.occasion for r in account(place).releases] == occasions
    finally:
        again.kill()


@pytest.mark.parametrize(
    ("faults", "occasions"),
    [(("no limit",), ["2031-04"]), (("no limit", "each tick a spend"), ["2031-01", "2031-02", "2031-03"])],
)
def test_missed_runs_spend_once_by_the_occasion_alone(
    january: tuple[Place, Clock], faults: tuple[str, ...], occasions: list[str]
) -> None:
    """Prefect may well run all of them; and if each were a release of its own, each would be a spend."""
    place, ours = january
    served = Served(place, ours, first=faulty(place, *faults))
    try:
        runs = served.jump(MAY)
        # Of runs at the same time the first has the journal; the others fail, or come later and show it.
        ends = {run["state"]["type"] for run in runs}
        assert len(runs) == 3 and {"COMPLETED"} <= ends <= {"COMPLETED", "FAILED"}
        assert sorted(str(r.occasion) for r in account(place).releases) == occasions
    finally:
        served.kill()
