"""The folder of an unfinished release is copied and resumed in both places: one bundle is published.

Two machines share a ledger, in SQLite or PostgreSQL, and each has a copy of the folder. Whatever the instant
of the copy, and whoever goes on: the ledger closes the release once, with the digest of what is published,
and the other copy says why it publishes nothing.
"""

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.curator.journal import Journal
from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, FEW_COLUMNS, Watch, apart, traced
from tests.release.place import Ended, Place, people
from tests.thinned import some, thinned

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

LAST = {"independent": 6, "mst": 10}
"""How many questions each strategy asks."""

DATABASES = ["sqlite", "postgresql"]
of_one_database = pytest.mark.parametrize("database", some(DATABASES, 1), indirect=True)

Make = Callable[[str, str], Place]


@pytest.fixture
def make(tmp_path: Path, database: str) -> Make:
    """Makes a machine by name, with the table, a config by strategy, and the ledger of all."""

    def made(name: str, method: str) -> Place:
        place = Place(tmp_path / name / "work", tmp_path / name, database)
        place.folder.mkdir(parents=True, exist_ok=True)
        place.table(people(300))
        place.configure(**FEW_COLUMNS, structure={"method": method})
        return place

    return made


def outputs(place: Place) -> Path:
    return place.folder / "outputs" / "people"


def copied(first: Place, make: Make, method: str) -> tuple[Place, str]:
    """The other machine, with a copy of the release under way; and the release's id."""
    second = make("second", method)
    shutil.copytree(first.folder / "outputs", second.folder / "outputs")
    (name,) = Watch(first).begun
    return second, name


def judged(name: str, *places: Place) -> None:
    """What must hold at the end: one bundle, be it in several places, of the answers that were settled."""
    whole = [outputs(place) / name for place in places if (outputs(place) / name).exists()]
    assert whole, "nothing was published"
    for folder in whole:
        evidence.assert_whole(folder)
        found = evidence.records(folder / "private" / "journal.jsonl")
        assert evidence.published_answers(folder / "public") == evidence.answers(found)
    public = [{p.name: p.read_bytes() for p in (f / "public").rglob("*") if p.is_file()} for f in whole]
    assert all(bundle == public[0] for bundle in public), "two bundles with different noise"
    ledger = places[0].ledger
    entry = ledger.release(name)
    assert entry is not None and entry.state == "closed" and ledger.verify().problems == ()
    assert [row.kind for row in ledger.rows() if row.release_id == name].count("closed") == 1
    journal = Journal.open(whole[0] / "private" / "journal.jsonl")
    journal.close()
    assert journal.digest == entry.digest
    assert len(entry.events) == len(journal.entries)


def raced(
    keeper: Keeper, other: Keeper, make: Make, method: str, number: int, fault: str | None = None
) -> tuple[Ended, Place]:
    """Copy a release before a question, and finish the copy while the first run is about to draw the answer.

    Returns:
        How the first run ended, and where.
    """
    first = make("first", method)
    before = ("end write answer", number - 1) if number > 1 else (f"end {Step.RESERVE}", 1)
    last = number > LAST[method]
    keeper.begin(
        first, pauses=[before, (f"begin {Step.COMPOSE}", 1) if last else ("begin draw", number)], fault=fault
    )
    keeper.reached()
    second, name = copied(first, make, method)
    keeper.go_on()
    keeper.reached()
    done = other.run(second, "--resume", name)
    assert done.code == 0, done
    drawn = Watch(first).draws
    keeper.go_on()
    ended = keeper.end()
    judged(name, first, second)
    # The three columns are charged together.
    assert (Watch(first).draws - drawn).total() <= 3, "the loser went on to draw"
    if ended.code:
        left = {path.name for path in outputs(first).glob(".*.partial/*")}
        assert left == {"private"}, "what the loser would have published is still there"
    return ended, first


@pytest.mark.parametrize(
    ("database", "method", "number"),
    thinned(DATABASES, list(LAST), [1, 3], strength=1),
    indirect=["database"],
)
def test_of_two_copies_the_one_that_was_resumed_last_publishes_and_the_other_says_why_it_does_not(
    keeper: Keeper, other: Keeper, make: Make, method: str, number: int
) -> None:
    ended, first = raced(keeper, other, make, method, number)
    assert ended.code == 1 and not ended.out and ended.err.count("\n") == 1, ended
    assert "finished elsewhere" in ended.err and "--resume" not in ended.err
    (name,) = Watch(first).begun
    again = keeper.run(first, "--resume", name)
    assert again.code == 1 and "finished elsewhere" in again.err, again
    assert not (outputs(first) / name).exists()


@pytest.mark.parametrize(
    ("database", "method"), thinned(DATABASES, list(LAST), strength=1), indirect=["database"]
)
def test_two_draws_of_the_last_answer_are_told_apart_when_they_are_settled(
    keeper: Keeper, other: Keeper, make: Make, method: str
) -> None:
    """No charge comes after it, so that the fence before a charge says nothing."""
    ended, _ = raced(keeper, other, make, method, LAST[method])
    assert ended.code == 1 and "finished elsewhere" in ended.err, ended


@of_one_database
def test_a_copy_with_all_answers_publishes_the_same_bundle(keeper: Keeper, other: Keeper, make: Make) -> None:
    ended, _ = raced(keeper, other, make, "mst", LAST["mst"] + 1)
    assert ended.code == 0, ended


@pytest.mark.parametrize(
    ("fault", "number", "caught"),
    [
        ("copies unfenced", 2, "the loser went on to draw"),
        ("every settlement believed", LAST["independent"], "different noise"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_release_without_its_fence_or_its_digest_is_caught(
    keeper: Keeper, other: Keeper, make: Make, fault: str, number: int, caught: str
) -> None:
    """The planted faults."""
    with pytest.raises(AssertionError, match=caught):
        raced(keeper, other, make, "independent", number, fault)


@of_one_database
def test_a_release_that_was_taken_over_can_be_taken_back(keeper: Keeper, other: Keeper, make: Make) -> None:
    """The copy that took it over died: the first says that another has it, and takes it back if told to."""
    first = make("first", "mst")
    keeper.begin(first, pauses=[("begin draw", 3)])
    keeper.reached()
    second, name = copied(first, make, "mst")
    assert other.run(second, "--resume", name, stop=("begin draw", 2)).code == DIED
    keeper.go_on()
    ended = keeper.end()
    assert ended.code == 1 and "being finished elsewhere" in ended.err, ended
    assert ended.err.endswith(f"--resume {name}\n")
    assert keeper.run(first, "--resume", name).code == 0
    late = other.run(second, "--resume", name)
    assert late.code == 1 and "finished elsewhere" in late.err, late
    judged(name, first, second)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_older_journal_that_is_put_back_draws_nothing_anew_and_charges_no_less(
    keeper: Keeper, make: Make
) -> None:
    place = make("first", "mst")
    keeper.begin(place, pauses=[("begin draw", 3)], stop=("end draw", 7))
    keeper.reached()
    (name,) = Watch(place).begun
    (journal,) = outputs(place).glob(".*.partial/private/journal.jsonl")
    old = journal.read_bytes()
    keeper.go_on()
    assert keeper.end().code == DIED
    whole, drawn = journal.read_bytes(), Watch(place).draws
    journal.write_bytes(old)
    refused = keeper.run(place, "--resume", name)
    assert refused.code == 2 and "an older copy was put back" in refused.err, refused
    given_up = ("ledger", "abandon", name, "--reason", "an older journal", "--yes")
    by_journal = keeper.call(place, *given_up, "--config", "config.yaml")
    assert by_journal.code == 2 and "or an older one" in by_journal.err, by_journal
    assert Watch(place).draws == drawn and place.ledger.state(name) == "reserved"
    journal.write_bytes(whole)
    assert keeper.run(place, "--resume", name).code == 0
    judged(name, place)


@of_one_database
def test_a_copy_that_asked_nothing_gives_no_budget_back(keeper: Keeper, other: Keeper, make: Make) -> None:
    """It was copied before the first question, and its table can't be read; the first run has asked much."""
    first = make("first", "mst")
    keeper.begin(first, pauses=[(f"end {Step.RESERVE}", 1), (f"begin {Step.FIT}", 1)])
    keeper.reached()
    second, name = copied(first, make, "mst")
    keeper.go_on()
    keeper.reached()
    (second.folder / "people.csv").unlink()
    failed = other.run(second, "--resume", name)
    assert failed.code == 4 and f"--resume {name}" in failed.err, failed
    assert first.ledger.state(name) == "reserved"
    keeper.send(signal.SIGKILL)
    assert keeper.end().code == DIED
    assert keeper.run(first, "--resume", name).code == 0
    judged(name, first, second)


@of_one_database
def test_an_old_copy_of_a_journal_does_not_abandon_a_release_that_runs_for_less_than_it_asks(
    keeper: Keeper, other: Keeper, make: Make
) -> None:
    first = make("first", "mst")
    keeper.begin(first, pauses=[("begin draw", 2), ("begin draw", 4)])
    keeper.reached()
    (name,) = Watch(first).begun
    journal = outputs(first) / f".{name}.partial" / "private" / "journal.jsonl"
    old = shutil.copy(journal, first.home / "old.jsonl")
    aside = Place(first.folder, first.home / "aside")
    aside.home.mkdir()
    keeper.go_on()
    keeper.reached()

    def abandon(*more: str) -> Ended:
        words = ("ledger", "abandon", name, "--reason", "lost", "--yes", "--ledger", first.url, *more)
        return other.call(aside, *words)

    refused = abandon("--journal", str(old))
    assert refused.code == 2 and "is a copy of the journal" in refused.err, refused
    running = abandon("--journal", str(journal))
    assert running.code == 1 and "is being run already" in running.err, running
    drawn = Watch(first).draws
    assert abandon().code == 0
    keeper.go_on()
    ended = keeper.end()
    assert ended.code == 1 and "was abandoned" in ended.err, ended
    assert (Watch(first).draws - drawn).total() <= 1 and not (outputs(first) / name).exists()
    entry = first.ledger.release(name)
    assert entry is not None and entry.state == "abandoned" and entry.cost == entry.reserved


def fought(
    keepers: tuple[Keeper, Keeper], make: Make, method: str, chance: random.Random, run: str
) -> Counter[str]:
    """Two copies, made at some place, are resumed in turn and at once, and killed, until one is done.

    Returns:
        How often a run ended in which way.
    """
    first = make(f"{run}-a", method)
    stops = [stop for stop in places_of(keepers[0], make, method) if stop[0] != f"begin {Step.PLAN}"]
    reserved = [name for name, _ in stops].index(f"end {Step.RESERVE}")
    assert keepers[0].run(first, stop=chance.choice(stops[reserved:])).code == DIED
    (name,) = Watch(first).begun
    ways = Counter({"killed": 1})
    second = make(f"{run}-b", method)
    shutil.copytree(first.folder / "outputs", second.folder / "outputs")
    for _ in range(chance.randrange(3)):
        for keeper, place in zip(keepers, (first, second), strict=True):
            keeper.begin(place, "--resume", name, after=chance.uniform(0, 0.3))
        ways.update(way(keeper.end()) for keeper in keepers)
    for keeper, place in zip(keepers, (first, second), strict=True):
        ended = keeper.run(place, "--resume", name)
        # So many lost answers leave nothing to ask with.
        assert ended.code in (0, 3) or "finished elsewhere" in ended.err, ended
        ways[way(ended)] += 1
    published = [place for place in (first, second) if (outputs(place) / name).exists()]
    if published:
        judged(name, first, second)
        # One winner, be it with the same bundle in two places.
        ways["one bundle published"] += 1
    else:
        assert first.ledger.state(name) == "reserved"
        ways["nothing left to ask with"] += 1
    return ways


_PLACES: dict[tuple[str, str], list[Stop]] = {}


def places_of(keeper: Keeper, make: Make, method: str) -> list[Stop]:
    """Places at which a fight may begin: those of a release of a ledger that has one already.

    The first release of a ledger reads and writes it less often, so that the same count of a commit is
    another moment. Each fight's ledger has one, so that all of them are later releases.
    """
    opening, look = (make(f"{name}-{method}", method) for name in ("opening", "look"))
    key = (opening.url.partition(":")[0], method)
    if opening.balance is None:
        assert keeper.run(opening).code == 0
    if key not in _PLACES:
        _PLACES[key] = apart(traced(keeper, look))
    return _PLACES[key]


def way(ended: Ended) -> str:
    """How a run ended, in words."""
    words = {DIED: "killed", 0: "done", 3: "out of budget"}
    return words.get(ended.code, "beaten" if "elsewhere" in ended.err else f"code {ended.code}")


@pytest.mark.parametrize(
    ("database", "method"), thinned(DATABASES, list(LAST), strength=1), indirect=["database"]
)
def test_two_copies_that_are_resumed_at_once_and_killed_publish_one_bundle(
    keeper: Keeper, other: Keeper, make: Make, method: str
) -> None:
    fought((keeper, other), make, method, random.Random(12), "once")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["independent", "mst"])
def test_two_copies_in_fifty_fights_publish_one_bundle_each(
    keeper: Keeper, other: Keeper, make: Make, method: str
) -> None:
    """Two hundred over both databases and strategies."""
    chance, ways = random.Random(13), Counter[str]()
    for number in range(50):
        ways += fought((keeper, other), make, method, chance, f"{number}")
    print(method, dict(ways))
    assert ways["one bundle published"] + ways["nothing left to ask with"] == 50
