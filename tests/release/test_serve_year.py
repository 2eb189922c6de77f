"""A year of monthly releases of the RAND table, by the config that is shipped: twelve, and no thirteenth."""

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth import load
from dpsynth.accounting.composition import float_up
from dpsynth.accounting.measures import GDP
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.owner.starter.examples import write_example
from tests.release import clock
from tests.release.clock import Clock
from tests.release.place import Place
from tests.release.served import Served, until
from tests.release.test_serve import cost_of, released

CONFIG = "configs/randhie-monthly.yaml"


@pytest.mark.slow
@pytest.mark.skipif(bool(clock.reason_without()), reason=clock.reason_without() or "")
def test_a_year_of_months_is_released_and_the_thirteenth_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels")
    place = Place(tmp_path / "work", tmp_path)
    write_example("randhie-monthly", place.folder)
    spec = load(place.folder / CONFIG)
    one = cost_of(spec)
    ledger = f"sqlite:///{place.folder / 'ledger.db'}"
    ours = Clock(tmp_path / "clock")
    ours.set(datetime(2026, 1, 20, 12, tzinfo=UTC))
    served = Served(place, ours, CONFIG)
    try:
        for month in range(1, 13):
            year, following = (2026, month + 1) if month < 12 else (2027, 1)
            (run,) = served.jump(datetime(year, following, 1, 2, 0, 1, tzinfo=UTC))
            assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
            balance = Ledger(ledger).balance("randhie-monthly")
            assert balance is not None and balance.filter == GDP
            last = balance.releases[-1]
            assert (last.occasion, last.state) == (f"2026-{month:02}", "closed")
            # As planned, and no more: what the journals say is within what was reserved.
            spent = [r.cost.half_mu_squared or Fraction(0) for r in balance.releases]
            assert len(spent) == month and all(0.99 * one < s <= one for s in spent)
            bundle = released(place)[last.occasion]
            manifest = json.loads((bundle / "public" / "manifest.json").read_text())
            assert manifest["release_id"] == last.release_id == bundle.name
            assert manifest["period"]["label"] == last.occasion
            assert manifest["guarantee"]["epsilon"] <= float_up(spec.privacy.epsilon)
        before = balance
        since = ours.now
        (run,) = served.jump(datetime(2027, 2, 1, 2, 0, 1, tzinfo=UTC))
        assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Refused")
        assert "an epsilon up to " in run["state"]["message"]
        (event,) = until(lambda: served.api.events(since))
        assert event["event"] == "dpsynth.release.refused" and event["payload"]["exit_code"] == 3
        assert Ledger(ledger).balance("randhie-monthly") == before
        assert sorted(released(place)) == [f"2026-{month:02}" for month in range(1, 13)]
        assert Ledger(ledger).verify().problems == ()
        assert served.stop() == 0
    finally:
        if served.process.poll() is None:
            served.kill()
