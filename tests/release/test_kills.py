"""A release can die at any place and be resumed: nothing is drawn twice for one charge.

Hazards 16, 28, 30 and 39. The releases run in forks of one process (``mortal``), which
makes each of them cost a tenth of a second; they die by real signals.
"""

import base64
import os
import re
import signal
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, FEW_COLUMNS, LEDGER, STEPS, WITH_HEAD, Watch, apart, finished, passed
from tests.release.place import Place
from tests.thinned import some, thinned

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

MakePlace = Callable[[], Place]

SUM = 5
"""Number of the question for the sum of incomes, after the total and three columns."""


def released(place: Place, name: str) -> Path:
    return place.folder / "outputs" / "people" / name


def test_the_places_cover_every_step(keeper: Keeper, small: Place) -> None:
    names = [name for name, _ in passed(keeper, small)]
    assert [name for name in names if name in STEPS] == STEPS
    questions = 1 + 3 + 1 + 2 + 2 + 1
    for name in ("begin draw", "begin write answer"):
        assert names.count(name) == questions
    for name in ("begin write charge", "begin sync charge"):
        # The columns are charged together, and so are the pairs.
        assert names.count(name) == questions - 2 - 1
    once = ("open synthetic.csv", "end write measurements.parquet", "os.rename model.npz", "open report.html")
    for name in (*once, "open manifest.json", "os.rename bundle", "begin ledger settlement"):
        assert names.count(name) == 1


def test_each_charge_is_on_disk_before_its_draw_and_each_answer_is_written_before_the_next_draw(
    keeper: Keeper, small: Place
) -> None:
    """Hazard 28; the order that holds through a loss of power too, which no kill can show."""
    wanted = {"begin sync charge": "c", "end sync charge": "C", "begin draw": "d", "end draw": "D"}
    wanted |= {"begin write answer": "a", "end write answer": "A"}
    order = "".join(wanted.get(name, "") for name, _ in passed(keeper, small))
    assert re.fullmatch("(cC(dDaA)+)+", order)


def with_head(makers: MakePlace) -> Place:
    place = makers()
    place.configure(**WITH_HEAD)
    return place


def killed_at(keeper: Keeper, makers: MakePlace, stop: Stop) -> int:
    """Kill a release at a place and finish it; how many draws were lost."""
    place = with_head(makers)
    watch = Watch(place)
    assert keeper.run(place, stop=stop).code == DIED, stop
    watch.look()
    before, begun = dict(watch.kept), watch.begun
    balance = place.balance
    if not begun:
        assert balance is None or not balance.releases, stop
    done = finished(keeper, place, watch, deaths=1)
    after = watch.draws
    assert sum(after.values()) <= sum(watch.charges.values())
    if begun:
        assert done.folder.name == begun[-1] and before[begun[-1]]
    return sum(after.values()) - 10


def swept(keeper: Keeper, makers: MakePlace, names: Collection[str] | None, every: int) -> None:
    """Kill a release at each of some places of these names, or of all names, and finish it."""
    stops = apart(passed(keeper, with_head(makers)))
    assert len(stops) >= 90
    wanted = [stop for stop in stops if names is None or stop[0].partition(" ")[2] in names]
    lost = sum(killed_at(keeper, makers, stop) for stop in wanted[::every])
    assert lost or names is not None, "no kill made a question be asked again: the sweep missed the draws"


def test_a_release_killed_at_some_places_is_finished_by_one_resumption(
    keeper: Keeper, makers: MakePlace
) -> None:
    """Hazards 16, 28, 30, 39: SIGKILL at one in 74 of more than a hundred places."""
    swept(keeper, makers, None, every=74)


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_release_killed_at_some_entries_in_postgresql_is_finished_by_one_resumption(
    keeper: Keeper, makers: MakePlace
) -> None:
    """As above, where the ledger has a part in it."""
    swept(keeper, makers, LEDGER, every=22)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "names"), [("sqlite", None), ("postgresql", LEDGER)])
def test_a_release_killed_at_any_place_is_finished_by_one_resumption(
    keeper: Keeper, makers: MakePlace, names: Collection[str] | None
) -> None:
    """As above, at each place."""
    swept(keeper, makers, names, every=1)


@pytest.mark.parametrize(
    "stop",
    some([(s,) for s in (("end sync charge", 3), ("begin draw", 3), ("end draw", 3), ("end draw", SUM))], 1),
)
def test_a_question_lost_to_a_kill_stays_charged_and_is_asked_again_for_more(
    keeper: Keeper, small: Place, stop: Stop
) -> None:
    """Hazards 16 and 30."""
    watch = Watch(small)
    assert keeper.run(small, stop=stop).code == DIED
    finished(keeper, small, watch, deaths=1)
    # The second column is lost with the third, which was charged with it.
    lost = [question for question, times in watch.charges.items() if times == 2]
    assert len(lost) == (2 if stop[0].endswith("draw") and stop[1] != SUM else 1)
    drawn = sum(watch.draws[asked] for asked in lost)
    assert drawn == len(lost) + (stop[0] != "end sync charge")
    found = evidence.records(released(small, watch.begun[0]) / "private" / "journal.jsonl")
    for asked in lost:
        twice = [r for r in evidence.charges(found) if evidence.named(r["question"]) == asked]
        first, second = (r["seq"] for r in twice)
        assert first != second
        assert [r["kind"] for r in found if r.get("seq") == first] == ["charge", "lost"]
        assert [r["kind"] for r in found if r.get("seq") == second] == ["charge", "answer"]


def test_columns_that_are_all_lost_leave_enough_for_the_sums(keeper: Keeper, small: Place) -> None:
    """Without marginals of several columns little of the budget comes later."""
    small.configure(**FEW_COLUMNS, structure={"method": "independent"})
    watch = Watch(small)
    assert keeper.run(small, stop=("end sync charge", 2)).code == DIED
    finished(keeper, small, watch, deaths=1)
    assert sorted(watch.charges.values()) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "stop", [("end draw", 10), pytest.param(("end sync charge", 7), marks=pytest.mark.slow)]
)
def test_an_exam_lost_to_a_kill_stays_charged_and_is_missing_from_the_bundle(
    keeper: Keeper, small: Place, stop: Stop
) -> None:
    """All that is left of the budget is the exam's, so it can't be asked again."""
    watch = Watch(small)
    assert keeper.run(small, stop=stop).code == DIED
    done = finished(keeper, small, watch, deaths=1)
    (asked,) = [question for question in watch.charges if '"exam"' in question]
    assert watch.charges[asked] == 1 and watch.lost[done.folder.name] == 1
    manifest = evidence.assert_whole(small.folder / done.folder)
    assert manifest["exam"]["answered"] is False
    assert not (small.folder / done.folder / "public" / "exam.csv").exists()


@pytest.mark.parametrize(
    "stop", [("end write answer", 10), pytest.param((f"begin {Step.COMPOSE}", 1), marks=pytest.mark.slow)]
)
def test_an_exam_that_is_on_record_is_published_as_it_was_drawn(
    keeper: Keeper, small: Place, stop: Stop
) -> None:
    watch = Watch(small)
    assert keeper.run(small, stop=stop).code == DIED
    done = finished(keeper, small, watch, deaths=0)
    journal = evidence.records(small.folder / done.folder / "private" / "journal.jsonl")
    exam = [r for r in evidence.charges(journal) if r["question"]["ask"] == "exam"]
    (answer,) = [r["answer"] for r in journal if r["kind"] == "answer" and r["seq"] == exam[0]["seq"]]
    drawn = np.frombuffer(base64.b64decode(answer["int64"]), dtype="<i8")
    table = pd.read_csv(small.folder / done.folder / "public" / "exam.csv")
    assert table.distance.tolist() == drawn.tolist() and len(exam) == 1


def test_a_draw_before_its_charge_is_caught(keeper: Keeper, makers: MakePlace) -> None:
    """The planted fault: with the charge written after the draw, the same kill is noticed."""
    for fault, caught in ((None, False), ("charged late", True)):
        place = makers()
        watch = Watch(place)
        assert keeper.run(place, stop=("end draw", SUM), fault=fault).code == DIED
        if caught:
            with pytest.raises(AssertionError, match="drawn more often than charged"):
                watch.look()
        else:
            watch.look()


def test_a_release_that_is_running_cannot_be_resumed_beside_itself(
    keeper: Keeper, other: Keeper, small: Place, tmp_path: Path
) -> None:
    """Hazard 29, within one release: the second of two processes is turned away and changes nothing."""
    watch = Watch(small)
    assert keeper.run(small, stop=(f"begin {Step.FIT}", 1)).code == DIED
    (name,) = watch.begun
    other.begin(small, "--resume", name, stop=(f"begin {Step.TABULATE}", 1), by=signal.SIGSTOP)
    journal = small.folder / "outputs" / "people" / f".{name}.partial" / "private" / "journal.jsonl"
    other.reached()
    before = journal.read_bytes()
    refused = keeper.run(Place(small.folder, tmp_path), "--resume", name)
    assert refused.code == 1 and refused.err.count("\n") == 1 and not refused.out
    assert "is being run already" in refused.err and str(name) in refused.err
    assert journal.read_bytes() == before
    other.send(signal.SIGKILL)
    assert other.end().code == DIED
    finished(keeper, small, watch, deaths=2)


@pytest.mark.parametrize(
    "change",
    some(
        [
            {"privacy": {"epsilon": 0.5}},
            {"privacy": {"neighbours": "replace_one"}},
            {"columns": {"income": {"bins": [0, 50, 100]}}},
            {"columns": {"sex": None}},
            {"structure": {"method": "independent"}},
        ],
        1,
    ),
    ids=["epsilon", "neighbours", "bins", "a column less", "structure"],
)
def test_a_changed_config_cannot_resume_a_release(
    keeper: Keeper, small: Place, change: dict[str, object]
) -> None:
    watch = Watch(small)
    assert keeper.run(small, stop=("end draw", 2)).code == DIED
    watch.look()
    (name,) = watch.begun
    kept, balance = dict(watch.kept), small.balance
    config = (small.folder / "config.yaml").read_text()
    small.configure(**{**FEW_COLUMNS, **merged(change)})
    refused = keeper.run(small, "--resume", name)
    assert refused.code == 2 and "config has changed" in refused.err and name in refused.err
    assert refused.err.count("\n") == 1
    watch.look()
    assert (watch.kept, small.balance) == (kept, balance)
    (small.folder / "config.yaml").write_text(config)
    finished(keeper, small, watch, deaths=1)


def merged(change: dict[str, object]) -> dict[str, object]:
    columns = change.get("columns")
    base = FEW_COLUMNS["columns"]
    assert isinstance(base, dict)
    return {**change, "columns": {**base, **columns}} if isinstance(columns, dict) else change


@pytest.mark.parametrize(
    ("stop", "place_in_line"),
    some(thinned([("begin draw", SUM), ("end write answer", 3)], [0.0, 0.01, 0.5, 0.99, 1.0], strength=1), 2),
)
def test_a_torn_last_line_is_dropped_and_its_question_never_answered_twice_for_one_charge(
    keeper: Keeper, small: Place, stop: Stop, place_in_line: float
) -> None:
    """Hazards 16 and 39: the power fails while a line of the journal is being written."""
    watch = Watch(small)
    assert keeper.run(small, stop=stop).code == DIED
    (name,) = watch.begun
    journal = small.folder / "outputs" / "people" / f".{name}.partial" / "private" / "journal.jsonl"
    *whole, last = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(whole) + last[: round(place_in_line * (len(last) - 1))])
    if stop[0] == "begin draw":
        # A charge that is not whole on disk comes before its mark and any draw.
        if hasattr(os, "setxattr"):
            os.setxattr(journal, "user.dpsynth.charges", b"4")
        drawn = (small.home / "draws").read_text().splitlines(keepends=True)
        (small.home / "draws").write_text("".join(drawn[: SUM - 1]))
    finished(keeper, small, watch, deaths=1)


def test_a_damaged_journal_is_refused_and_stays_charged(keeper: Keeper, small: Place) -> None:
    watch = Watch(small)
    assert keeper.run(small, stop=(f"begin {Step.FIT}", 1)).code == DIED
    (name,) = watch.begun
    journal = small.folder / "outputs" / "people" / f".{name}.partial" / "private" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    balance = small.balance
    for damage in (lines[2][:9] + b"\n", b"{}\n", b"\xff\n", lines[1], b'{"kind":"answer","seq":99}\n'):
        journal.write_bytes(b"".join([*lines[:2], damage, *lines[3:]]))
        refused = keeper.run(small, "--resume", name)
        assert refused.code == 1 and "is damaged" in refused.err, (damage, refused)
        assert refused.err.count("\n") == 1 and not refused.out
    assert small.balance == balance and small.ledger.state(name) == "reserved"


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_release_killed_between_its_settlement_and_its_appearance_appears_as_it_was_written(
    keeper: Keeper, small: Place
) -> None:
    """Hazard 39: nothing is shown before the ledger has closed it, and then the same, byte for byte."""
    watch = Watch(small)
    assert keeper.run(small, stop=(f"begin {Step.PUBLISH}", 1)).code == DIED
    (name,) = watch.begun
    partial = released(small, f".{name}.partial")
    written = contents(partial)
    assert not released(small, name).exists() and small.ledger.state(name) == "closed"
    told = keeper.run(small)
    assert told.code == 0 and f"--resume {name}" in told.err, told
    done = keeper.run(small, "--resume", name)
    assert done.code == 0 and not done.err, done
    watch.ended(done.folder, deaths=0)
    assert contents(released(small, name)) == written


def test_resuming_a_finished_release_asks_nothing_and_changes_nothing(keeper: Keeper, small: Place) -> None:
    """Hazard 31."""
    done = keeper.run(small)
    shown = {p: p.read_bytes() for p in (small.folder / done.folder).rglob("*") if p.is_file()}
    drawn, balance = Watch(small).draws, small.balance
    again = keeper.run(small, "--resume", done.folder.name)
    assert (again.code, again.out, again.err) == (done.code, done.out, done.err)
    assert {p: p.read_bytes() for p in (small.folder / done.folder).rglob("*") if p.is_file()} == shown
    assert (Watch(small).draws, small.balance) == (drawn, balance)


@pytest.mark.parametrize("name", ["20300131-0a1b2c3d", "../people", "", "/etc", "."])
def test_an_unknown_release_cannot_be_resumed(keeper: Keeper, small: Place, name: str) -> None:
    refused = keeper.run(small, "--resume", name)
    assert refused.code == 2 and refused.err.count("\n") == 1 and not refused.out
    assert small.files == set() and small.balance is None
