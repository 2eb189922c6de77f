"""A release that a schedule began, and that pauses: Prefect shows why, and only its owner goes on with it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.release import canaries, clock, evidence
from tests.release.clock import Clock
from tests.release.place import HEADER, Place
from tests.release.served import Served, until
from tests.release.test_serve import MONTHLY, account

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(clock.reason_without()), reason=clock.reason_without() or ""),
]


@pytest.fixture
def january(tmp_path: Path) -> tuple[Place, Clock]:
    """A place with the table of a January, in which sex is written in words, on a day of that month."""
    (tmp_path / "work").mkdir()
    place, ours = Place(tmp_path / "work", tmp_path), Clock(tmp_path / "clock")
    rows = [(*row[:2], f"{row[2]}emale", *row[3:], "2031-01-15") for row in canaries.table() * 5]
    place.table(rows, header=(*HEADER, "visited"))
    place.configure(**{**MONTHLY, "privacy": {**MONTHLY["privacy"], "on_empty": "stop"}})
    ours.set(datetime(2031, 1, 20, 12, tzinfo=UTC))
    return place, ours


def test_a_schedule_pauses_says_why_and_goes_on_by_its_owners_word_alone(
    january: tuple[Place, Clock],
) -> None:
    place, ours = january
    served = Served(place, ours)
    try:
        (run,) = served.jump(datetime(2031, 2, 1, 2, 0, 1, tzinfo=UTC))
        state = run["state"]
        assert (state["type"], state["name"]) == ("FAILED", "Interrupted"), state
        assert state["message"].startswith("Column sex: about ")
        assert state["message"].endswith("(Exit code 5.)") and "is paused after its" in state["message"]
        (entry,) = account(place).releases
        assert (entry.occasion, entry.state) == ("2031-01", "reserved")
        (path,) = (place.folder / "outputs").glob("people/.*/private/journal.jsonl")
        asked = evidence.charges(evidence.records(path))
        again = served.api.ended(served.api.start("people"))
        assert again["state"]["name"] == "Interrupted"
        assert served.stop() == 0
        said = served.log.read_text()
        assert "Traceback" not in said and "Nothing was released. Column sex: about " in said
    finally:
        if served.process.poll() is None:
            served.kill()
    later = Served(place, ours)
    try:
        until(lambda: "waits for your decision" in later.log.read_text())
        later.wait_for_ticks()
        assert account(place).releases[0].state == "reserved"
        assert evidence.charges(evidence.records(path)) == asked
        assert later.stop() == 0
    finally:
        if later.process.poll() is None:
            later.kill()
    assert canaries.found_in(canaries.left_behind(place.home)) == {}
    done = place.run("--plain", "--resume", entry.release_id)
    assert done.code == 0 and account(place).releases[0].state == "closed"
