"""``dpsynth serve`` with a real Prefect server, under a policy and an embargo."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dpsynth
from dpsynth.wings.governance.asking import Uses, ask, reservation_for
from tests.release import clock
from tests.release.clock import Clock
from tests.release.place import Place
from tests.release.served import Served, until
from tests.release.test_serve import account, furnish
from tests.wings.governance.boards import approved, governed, key, kinds, now

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(clock.reason_without()), reason=clock.reason_without() or ""),
]


def test_a_tick_is_refused_without_approval_released_with_it_and_opened_after_its_embargo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    place, ours = Place(tmp_path / "work", tmp_path), Clock(tmp_path / "clock")
    furnish(place, embargo="2031-02-10T09:00+01:00")
    monkeypatch.chdir(place.folder)
    ours.set(datetime(2031, 1, 20, 12, tzinfo=UTC))
    ledger = governed("sqlite:///ledger.db")
    served = Served(place, ours)
    try:
        start = ours.now
        (run,) = served.jump(datetime(2031, 2, 1, 2, 0, 1, tzinfo=UTC))
        state = run["state"]
        assert (state["type"], state["name"]) == ("FAILED", "Refused"), state
        assert "nobody has asked for this one" in state["message"]
        assert state["message"].endswith("(Exit code 3.)")
        event = until(lambda: served.api.events(start))[-1]
        assert (event["event"], event["payload"]["exit_code"]) == ("dpsynth.release.refused", 3)
        assert place.balance is None and kinds(ledger) == ["policy", "refused"]

        wanted = reservation_for(dpsynth.load("config.yaml"), now(), None)
        request = ask(ledger, wanted, Uses(occasions=1), key("anna"), "open data", now())
        assert approved(ledger, request, "boris", "clara") == 0
        # The month that was refused is made up for by hand, by the same deployment.
        done = served.api.ended(served.api.start("people"))
        assert done["state"]["type"] == "COMPLETED", done["state"]
        (entry,) = account(place).releases
        assert (entry.occasion, entry.state) == ("2031-01", "closed")
        folder = place.folder / "outputs/people" / entry.release_id
        assert {p.name for p in folder.iterdir()} == {"private", "sealed"}
        assert served.api.ask("/artifacts/filter", {"artifacts": {"key": {"like_": "release-%"}}}) == []

        (run,) = served.jump(datetime(2031, 3, 1, 2, 0, 1, tzinfo=UTC))
        assert run["state"]["name"] == "Refused" and "is used up" in run["state"]["message"]
        assert [r.occasion for r in account(place).releases] == ["2031-01"]
        # The embargo has ended by that clock, and the schedule has opened what it sealed.
        until(lambda: " has ended: outputs/people/" in served.log.read_text())
        assert (folder / "public/manifest.json").is_file()
        assert served.stop() == 0
    finally:
        if served.process.poll() is None:
            served.kill()
    said = served.log.read_text()
    assert "Approval of 'people': the ledger would refuse this release: its policy asks for 2" in said
    assert f"The embargo of {entry.release_id} has ended: outputs/people/" in said
    assert place.call([sys.executable, "-m", "dpsynth", "verify", str(folder)]).code == 0
    assert "Nothing was released. The ledger " in said and "Traceback" not in said
    assert ledger.verify().problems == ()
