"""A ledger's database goes away in the middle of a release, and comes back.

Whatever the instant: nothing is drawn twice, nothing reserved is lost sight of, and the
next run finishes what this one could not.
"""

import os
import re
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pytest

from dpsynth.errors import ConfigError
from dpsynth.ledger import store as ledger_store
from dpsynth.pipeline.steps import Step
from tests.databases import Postgres
from tests.examples import cases
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, LEDGER, Watch, finished, passed
from tests.release.place import HEADER, Ended, Place, people
from tests.thinned import some, thinned

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

MakePlace = Callable[[], Place]
Away = Callable[[Postgres, Place], None]


@pytest.fixture
def kind() -> str:
    """PostgreSQL, unless a test says otherwise."""
    return "postgresql"


def stopped(server: Postgres, place: Place) -> None:
    """Stop the server in order."""
    server.stop()


def died(server: Postgres, place: Place) -> None:
    """Stop the server as by a loss of power."""
    server.stop("immediate")


def cut_off(server: Postgres, place: Place) -> None:
    """End all sessions of the ledger; the server stays."""
    assert place.database is not None
    server.end_sessions(place.database)


def paused_run(
    keeper: Keeper, place: Place, *stops: Stop, then: Callable[[], None], fault: str | None = None
) -> Ended:
    """A run that waits at places, at each of which something is done."""
    keeper.begin(place, pauses=stops, fault=fault)
    for _ in stops:
        keeper.reached()
        then()
        keeper.go_on()
    return keeper.end()


def assert_told(ended: Ended) -> None:
    # A month of a small table may be warned of before.
    said = [line for line in ended.err.splitlines() if not line.startswith("Note: The table seems")]
    assert len(said) == 1 and not ended.out, ended
    assert "Traceback" not in ended.err and "ledger" in ended.err, ended


def test_a_server_that_is_away_between_the_last_question_and_settlement_is_not_missed(
    keeper: Keeper, small: Place, postgres: Postgres
) -> None:
    watch = Watch(small)

    def turn() -> None:
        postgres.stop() if postgres.running else postgres.start()

    done = paused_run(keeper, small, (f"begin {Step.TABULATE}", 1), (f"begin {Step.SETTLE}", 1), then=turn)
    assert postgres.running
    assert done.code == 0 and not done.err, done
    watch.ended(done.folder, deaths=0)


def test_nothing_is_asked_while_the_server_is_away(keeper: Keeper, small: Place, postgres: Postgres) -> None:
    """Nobody knows then whether another copy went on. The last column is charged with the two before."""
    watch = Watch(small)
    ended = paused_run(keeper, small, ("end write answer", 3), then=postgres.stop)
    drawn, charged = watch.draws, watch.charges
    assert ended.code == 5 and drawn.total() == charged.total() == 4, ended
    assert_told(ended)
    postgres.start()
    finished(keeper, small, watch, deaths=0)
    assert watch.lost.total() == 0


@pytest.mark.parametrize("again", some(["by its id", "by running again"], 1))
def test_a_server_that_is_away_at_settlement_is_told_of_the_bundle_later(
    keeper: Keeper, small: Place, postgres: Postgres, again: str
) -> None:
    by_month(small)
    watch = Watch(small)
    ended = paused_run(keeper, small, ("begin ledger settlement", 1), then=postgres.stop)
    assert ended.code == 5, ended
    assert_told(ended)
    (name,) = watch.begun
    bundle = small.folder / "outputs" / "people" / name
    written = bundle.with_name(f".{name}.partial")
    evidence.assert_whole(written)
    assert not bundle.exists() and "is written" in ended.err
    assert ended.err.endswith(f"--resume {name}\n")
    public, drawn = contents(written / "public"), watch.draws
    postgres.start()
    assert small.ledger.state(name) == "reserved"
    done = keeper.run(small, *(("--resume", name) if again == "by its id" else ()))
    assert done.code == 0 and done.folder.name == name, done
    watch.ended(done.folder, deaths=0)
    assert (contents(bundle / "public"), watch.draws) == (public, drawn)


def test_a_server_that_is_away_before_the_reservation_stops_a_release_before_anything_is_read(
    keeper: Keeper, small: Place, postgres: Postgres
) -> None:
    watch = Watch(small)
    postgres.stop()
    ended = keeper.run(small)
    assert ended.code == 2, ended
    assert_told(ended)
    assert small.files == set() and not watch.draws
    postgres.start()
    assert small.balance is None
    finished(keeper, small, watch, deaths=0)


def survived(
    keeper: Keeper, makers: MakePlace, postgres: Postgres, away: Away, stops: Sequence[Stop]
) -> set[int]:
    """Let the server go away at each of some places, and come back when the run has ended; exit codes."""
    codes = set()
    for stop in stops:
        place = makers()
        watch = Watch(place)
        ended = paused_run(keeper, place, stop, then=lambda here=place: away(postgres, here))
        if not postgres.running:
            postgres.start()
        codes.add(ended.code)
        settle_what_is_left(keeper, watch, stop, ended)
    return codes


@pytest.mark.parametrize(("away", "which"), some(list(product([stopped, died, cut_off], [0, 1, 2])), 1))
def test_a_server_that_goes_away_at_an_entry_leaves_a_release_that_can_be_finished(
    keeper: Keeper, makers: MakePlace, postgres: Postgres, away: Away, which: int
) -> None:
    """Before the reservation is committed, after it, and before the settlement is.

    A connection that is cut off after a commit is made again, so the release may even be done.
    """
    stops = passed(keeper, makers())
    begin, end = commit_of("entry", stops)
    codes = survived(keeper, makers, postgres, away, [[begin, end, commit_of("settlement", stops)[0]][which]])
    assert codes <= {2, 5} | ({0} if (away, which) == (cut_off, 1) else set())


@pytest.mark.slow
@pytest.mark.parametrize("away", [stopped, died, cut_off])
def test_a_server_that_goes_away_at_any_entry_leaves_a_release_that_can_be_finished(
    keeper: Keeper, makers: MakePlace, postgres: Postgres, away: Away
) -> None:
    """At each place around the ledger's rows and commits."""
    stops = [stop for stop in passed(keeper, makers()) if stop[0].partition(" ")[2] in LEDGER]
    assert 5 in survived(keeper, makers, postgres, away, stops)


@pytest.mark.parametrize("kind", some(["sqlite", "postgresql"], 1))
def test_a_commit_whose_answer_is_lost_is_neither_forgotten_nor_made_twice(
    keeper: Keeper, makers: MakePlace
) -> None:
    """The database has committed, and the client hears of an error."""
    stops = [stop for stop in passed(keeper, makers()) if stop[0] == "end ledger commit"]
    for stop in stops[:: -(-len(stops) // cases(len(stops), part=2, least=2))]:
        place = makers()
        watch = Watch(place)
        ended = keeper.run(place, stop=stop, by="an answer lost")
        settle_what_is_left(keeper, watch, stop, ended)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_reservation_that_was_thought_to_have_failed_is_caught(keeper: Keeper, makers: MakePlace) -> None:
    """The planted fault: whoever hears of an error does not ask the ledger what it has."""
    _, stop = commit_of("entry", passed(keeper, makers()))
    place = makers()
    keeper.run(place, stop=stop, by="an answer lost", fault="lost answers believed")
    with pytest.raises(AssertionError, match="reserved without a journal"):
        Watch(place).look()


def settle_what_is_left(keeper: Keeper, watch: Watch, stop: Stop, ended: Ended) -> None:
    """Check a release whose ledger failed it at a place, and finish it."""
    watch.look()
    where = (stop, ended)
    if ended.code == 0:
        watch.ended(ended.folder, deaths=0)
        return
    assert ended.code in (2, 5), where
    assert_told(ended)
    named = re.search(r"--resume (\S+)\n$", ended.err)
    assert (named is not None) == (ended.code == 5) == bool(watch.begun), where
    if ended.code == 2:
        assert not watch.draws, where
    drawn = watch.draws
    finished(keeper, watch.place, watch, deaths=0)
    if (watch.place.folder / "outputs").exists() and drawn:
        assert watch.draws == drawn, where
    balance = watch.place.balance
    assert balance is not None and [r.state for r in balance.releases] == ["closed"], where


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_client_leaves_no_lock(keeper: Keeper, makers: MakePlace) -> None:
    """A transaction that died holds nobody up: the next one begins at once."""
    stop, _ = commit_of("entry", passed(keeper, makers()))
    place = makers()
    assert keeper.run(place, stop=stop).code == DIED
    started = time.monotonic()
    assert place.balance is None
    assert time.monotonic() - started < ledger_store.BUSY_SECONDS / 2


@pytest.mark.parametrize("kind", some(["sqlite", "postgresql"], 1))
def test_a_client_that_hangs_holds_the_others_up_no_longer_than_they_are_ready_to_wait(
    keeper: Keeper, makers: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that the test before would find: the lock is held. Whoever waits is told, in the end."""
    stop, _ = commit_of("settlement", passed(keeper, makers()))
    place = makers()
    keeper.begin(place, pauses=[stop])
    keeper.reached()
    waiting = ledger_store._SETTINGS["postgresql"].replace(f"'{ledger_store.BUSY_SECONDS}s'", "'1s'")
    monkeypatch.setitem(ledger_store._SETTINGS, "postgresql", waiting)
    usual = ledger_store.BUSY_SECONDS
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 1)
    started = time.monotonic()
    with pytest.raises(ConfigError, match="lock"):
        _ = place.balance
    assert 1 <= time.monotonic() - started < usual / 2
    keeper.go_on()
    assert keeper.end().code == 0


def test_a_killed_client_leaves_no_session(keeper: Keeper, makers: MakePlace, postgres: Postgres) -> None:
    stop, _ = commit_of("entry", passed(keeper, makers()))
    place = makers()
    assert keeper.run(place, stop=stop).code == DIED and place.database is not None
    end = time.monotonic() + ledger_store.IDLE_SECONDS / 2
    while postgres.sessions(place.database):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("what", "fault"), thinned(["entry", "settlement"], [None, "commits answered unwritten"], strength=1)
)
def test_what_is_committed_outlives_the_server_even_where_its_settings_would_lose_it(
    keeper: Keeper, makers: MakePlace, postgres: Postgres, what: str, fault: str | None
) -> None:
    """Hazard 31: a database set up to answer before it has written; planted: the ledger lets it.

    An entry that is lost is missed before the first draw; a settlement that is lost, by nobody.
    """
    _, stop = commit_of(what, passed(keeper, makers()))
    place = makers()
    assert place.database is not None
    name = place.database.partition("?")[0].rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        ended = paused_run(keeper, place, stop, then=lambda: died(postgres, place), fault=fault)
        postgres.start()
        if fault and what == "entry":
            assert ended.code == 5 and not Watch(place).draws and place.balance is None, ended
        elif fault:
            assert ended.code == 0 and place.ledger.state(ended.folder.name) != "closed", ended
        else:
            settle_what_is_left(keeper, Watch(place), stop, ended)
    finally:
        postgres.execute(f"ALTER DATABASE {name} RESET synchronous_commit")


def commit_of(what: str, stops: Sequence[Stop]) -> tuple[Stop, Stop]:
    """The places before and after the commit of a release's entry, or of its settlement."""
    until = stops.index((f"end ledger {what}", 1))
    number = sum(name == "begin ledger commit" for name, _ in stops[:until])
    return ("begin ledger commit", number), ("end ledger commit", number)


def by_month(place: Place) -> None:
    """Give the table a date and the config a period: the last whole month, in which there are no rows."""
    place.table([(*row, "2020-01-10") for row in people(300)], header=(*HEADER, "visited"))
    place.configure(
        columns={"age": None, "city": None},
        publish={"statistics": [{"mean": "income"}]},
        period={"column": "visited", "every": "month"},
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
