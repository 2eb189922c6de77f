"""A release can die at any instant and be finished: nothing is drawn uncharged, twice, or in vain.

Hazards 16, 28, 30 and 39, on both databases. The instants are drawn with a seed from the
whole length of a run; how many kills there were and what they cost is printed (``-s``).
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.release.keeper import Keeper
from tests.release.killed import DIED, WITH_HEAD, Watch
from tests.release.place import HEADER, Ended, Place, people
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

MakePlace = Callable[[], Place]
BOTH = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


SOUGHT = {
    "age": {"min": None, "max": None, "missing": None, "bounds": "private"},
    "income": {"missing": None, "edges": "quantiles"},
    "city": {"values": None, "open": True, "most": 30},
}
"""What is found of columns in place of what the usual config declares of them."""


@dataclass
class Tally:
    """What many kills came to."""

    kills: int = 0
    finished: int = 0
    charged: int = 0
    drawn: int = 0
    lost: int = 0

    def count(self, watch: Watch, deaths: int) -> None:
        """Add a release that is done."""
        self.kills += deaths
        self.finished += 1
        self.charged += sum(watch.charges.values())
        self.drawn += sum(watch.draws.values())
        self.lost += sum(watch.lost.values())


def killed_until_done(
    keeper: Keeper, watch: Watch, chance: random.Random, kills: int, span: float, *more: str
) -> tuple[Ended, int]:
    """Kill one release after random delays until it is done, at most so many times; how many it took.

    With more arguments the release is found by them, and not by its id.
    """
    deaths = 0
    while True:
        begun = watch.begun
        arguments = more or (("--resume", begun[-1]) if begun else ())
        ended = keeper.run(watch.place, *arguments, after=chance.uniform(0, span) if deaths < kills else None)
        if ended.code != DIED:
            break
        deaths += 1
        watch.look()
    assert ended.code == 0, ended
    watch.ended(ended.folder, deaths)
    return ended, deaths


def time_of_a_run(keeper: Keeper, makers: MakePlace) -> float:
    """Seconds that a run takes."""
    assert keeper.run(makers()).code == 0
    return keeper.seconds


def seeded_kills(
    keeper: Keeper, makers: MakePlace, seed: int, wanted: int, method: str = "mst", **changes: object
) -> None:
    """Kill releases, up to six times each, until there have been so many kills."""
    chance = random.Random(seed)

    def made() -> Place:
        place = makers()
        place.configure(**{**WITH_HEAD, "structure": {"method": method}, **changes})
        return place

    span = time_of_a_run(keeper, made)
    tally = Tally()
    while tally.kills < wanted:
        watch = Watch(made())
        _, deaths = killed_until_done(keeper, watch, chance, min(6, wanted - tally.kills), span)
        # A whole run that ended before its kill says how long one takes now.
        span = span if deaths else min(span, keeper.seconds)
        tally.count(watch, deaths)
    print(method, tally)
    assert tally.kills == wanted and tally.drawn <= tally.charged


@pytest.mark.parametrize(
    ("kind", "method"), some([("postgresql", "mst"), ("sqlite", "mst"), ("sqlite", "auto")], 1)
)
def test_kills_at_random_instants(keeper: Keeper, makers: MakePlace, method: str) -> None:
    """Hazards 16, 28, 30, 39: seeded delays from the first step to the end, resumed until done."""
    seeded_kills(keeper, makers, 20_260, 2, method)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_kills_of_releases_that_find_their_places(keeper: Keeper, makers: MakePlace) -> None:
    """Answers that are texts, and all that follows from them, are the same after a kill."""
    seeded_kills(keeper, makers, 7, 3, columns=SOUGHT)


@pytest.mark.slow
@BOTH
def test_many_kills_of_releases_that_find_their_places(keeper: Keeper, makers: MakePlace) -> None:
    """As above, more often."""
    seeded_kills(keeper, makers, seed=8, wanted=50, columns=SOUGHT)


@pytest.mark.slow
@BOTH
def test_five_hundred_kills_at_random_instants(keeper: Keeper, makers: MakePlace) -> None:
    """As above, more often."""
    seeded_kills(keeper, makers, seed=4, wanted=250)
    seeded_kills(keeper, makers, seed=5, wanted=250, method="auto")


def killed_months(keeper: Keeper, makers: MakePlace, months: int, kills: int) -> None:
    """Kill the release of each month, run the same command again until it is done, and then once more.

    Further months follow where a machine that has become faster let the first ones end before their kills.
    """
    chance = random.Random(20_261)

    def made() -> Place:
        place = makers()
        rows = [(*row, f"2025-{chance.randrange(1, 13):02}-10") for row in people(300)]
        place.table(rows, header=(*HEADER, "visited"))
        place.configure(**{**WITH_HEAD, "period": {"column": "visited", "every": "month"}})
        return place

    span = time_of_a_run(keeper, made)
    place, kills_made, month = made(), 0, 0
    watch = Watch(place)
    while month < months or kills_made < months // 2:
        month += 1
        arguments = ("--period", f"2025-{month:02}")
        done, deaths = killed_until_done(keeper, watch, chance, kills, span, *arguments)
        shown, drawn, balance = contents(place), watch.draws, place.balance
        again = keeper.run(place, *arguments)
        assert (again.code, again.out) == (0, done.out)
        assert "shown again" in again.err
        assert (contents(place), watch.draws, place.balance) == (shown, drawn, balance)
        kills_made += deaths
        if not deaths:
            span /= 2
    print(f"{month} months, {kills_made} kills, {sum(watch.lost.values())} answers lost")
    assert balance is not None
    assert [entry.occasion for entry in balance.releases] == [f"2025-{m:02}" for m in range(1, month + 1)]
    assert {entry.state for entry in balance.releases} == {"closed"}
    assert not list((place.folder / "outputs" / "people").glob(".*"))


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_killed_months_are_finished_by_running_the_same_command_again(
    keeper: Keeper, makers: MakePlace
) -> None:
    """No id is given: the release of the month is found, finished, and later shown again for nothing."""
    killed_months(keeper, makers, months=2, kills=2)


@pytest.mark.slow
@BOTH
def test_a_year_of_killed_months(keeper: Keeper, makers: MakePlace) -> None:
    """As above, more often."""
    killed_months(keeper, makers, months=12, kills=6)


def contents(place: Place) -> dict[str, bytes]:
    """Every file under outputs."""
    return {name: (place.folder / "outputs" / name).read_bytes() for name in place.files}
