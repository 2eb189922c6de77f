"""A clock that is set back changes no figure, and no date in the ledger runs backwards.

The clock is one that a test may set under way.
"""

import os
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from dpsynth.pipeline.steps import Step
from tests.release.clock import Clock, reason_without
from tests.release.keeper import Keeper
from tests.release.killed import Watch
from tests.release.place import HEADER, Ended, Place, people
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    """The clock of ``elsewhen``."""
    if reason := reason_without():
        pytest.skip(reason)
    return Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def elsewhen(clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """A process that forks releases, at the time of the clock."""
    with Keeper(tmp_path_factory.mktemp("keeper"), **clock.environment) as kept:
        yield kept


def at(day: str) -> datetime:
    """Noon of a day."""
    return datetime.fromisoformat(f"{day}T12:00:00+00:00")


def dates(place: Place) -> list[str]:
    """The date of each row of the ledger."""
    assert place.ledger.verify().problems == ()
    return [row.created for row in place.ledger.rows()]


def test_a_clock_set_back_between_runs_sets_no_date_back_and_is_told(
    elsewhen: Keeper, makers: Callable[[], Place], clock: Clock
) -> None:
    place = makers()
    watch = Watch(place)
    clock.set(at("2030-05-10"))
    first = elsewhen.run(place)
    assert first.code == 0 and not first.err, first
    watch.ended(first.folder, deaths=0)
    clock.set(at("2030-04-20"))
    second = elsewhen.run(place)
    assert second.code == 0 and second.folder != first.folder, second
    watch.ended(second.folder, deaths=0)
    told, repeated = second.err.splitlines()
    assert "2030-04-20" in told and "2030-05-10" in told and "was released on 2030-05-10" in repeated
    # The dataset, two releases and their ends.
    assert dates(place) == ["2030-05-10"] * 5
    clock.set(at("2030-05-11"))
    third = elsewhen.run(place)
    assert third.code == 0 and "The clock says" not in third.err
    assert dates(place)[-1] == "2030-05-11"


def test_dates_that_run_backwards_are_caught(
    elsewhen: Keeper, makers: Callable[[], Place], clock: Clock
) -> None:
    """The planted fault: rows dated by the clock alone. The ledger takes none that is before the last."""
    place = makers()
    clock.set(at("2030-05-10"))
    assert elsewhen.run(place).code == 0
    clock.set(at("2030-04-20"))
    assert elsewhen.run(place, fault="dates by the clock").code == 1
    assert dates(place) == ["2030-05-10"] * 3


@pytest.mark.parametrize("step", some([Step.RESERVE, Step.MEASURE_SINGLES, Step.SETTLE], 1))
def test_a_clock_set_back_within_a_run_sets_no_date_back(
    elsewhen: Keeper, makers: Callable[[], Place], clock: Clock, step: str
) -> None:
    place = makers()
    clock.set(at("2030-05-10"))
    elsewhen.begin(place, pauses=[(f"end {step}" if step == Step.RESERVE else f"begin {step}", 1)])
    elsewhen.reached()
    clock.set(at("2030-04-20"))
    elsewhen.go_on()
    ended = elsewhen.end()
    assert ended.code == 0 and not ended.err, ended
    Watch(place).ended(ended.folder, deaths=0)
    assert ended.folder.name.startswith("20300510-")
    assert dates(place) == ["2030-05-10"] * 3


def test_a_month_that_a_clock_set_back_asks_for_again_is_shown_again(
    elsewhen: Keeper, makers: Callable[[], Place], clock: Clock
) -> None:
    """The default period follows the clock: a wrong one can only bring up an earlier month."""
    place = makers()
    place.table([(*row, "2030-03-10") for row in people(300)], header=(*HEADER, "visited"))
    place.configure(
        columns={"age": None, "city": None},
        publish={"statistics": [{"mean": "income"}]},
        period={"column": "visited", "every": "month"},
    )
    told: dict[str, Ended] = {}
    for now in ("2030-04-05", "2030-05-05", "2030-04-06"):
        clock.set(at(now))
        told[now] = elsewhen.run(place)
        assert told[now].code == 0, told[now]
    assert told["2030-04-06"].folder == told["2030-04-05"].folder != told["2030-05-05"].folder
    balance = place.balance
    assert balance is not None
    assert [(r.occasion, r.state) for r in balance.releases] == [("2030-03", "closed"), ("2030-04", "closed")]
