"""A release that seems to be of nothing, or of misread columns, waits for its owner's decision.

It is asked for by its id, or ended; no schedule and no second run of its period goes on with it, and no kill
makes it forget that it waits.
"""

import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest

import dpsynth
from dpsynth.config import compiled
from dpsynth.errors import ConfigError, Paused
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, Watch
from tests.release.place import Ended, Place, people, release
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

MakePlace = Callable[[], Place]
EMPTY = re.compile(r"Column sex: about (9\d|100) % of its cells are missing \(noise allows \d+ to 100 %\)")
SINGLES = 4
"""Questions before the pause: the number of rows, and three columns."""


STOP: Mapping[str, object] = {"on_empty": None}
"""What tests.release.place changes of the usual privacy section, taken back."""


def misread(place: Place, **changes: object) -> Place:
    """Write sex as words where F and M are declared."""
    words = {"F": "Female", "M": "Male"}
    place.table([(*row[:2], words[row[2]], *row[3:]) for row in people(1500)])
    place.configure(
        columns={"age": None, "city": None, "income": {"bins": [0, 25, 50, 75, 100]}},
        publish={"statistics": [{"mean": "income"}]},
        **{"privacy": STOP, **changes},
    )
    return place


@pytest.fixture
def unread(place: Place) -> Place:
    """A place whose column sex reads nothing."""
    return misread(place)


def journal_of(place: Place) -> list[evidence.Record]:
    (path,) = (place.folder / "outputs").glob("people/*/private/journal.jsonl")
    return evidence.records(path)


def paused(ended: Ended) -> str:
    """The id of a release that is paused as it should be."""
    assert (ended.code, ended.out) == (5, "")
    *notes, last = ended.err.splitlines()
    assert notes and all(line.startswith(("Note: Column ", "Note: The table ")) for line in notes)
    found = re.fullmatch(
        r"Error: Release (\S+) is paused (?:after its single columns|before its columns were asked for), "
        r"because of .+: see the warnings\. "
        r"To go on as it is: dpsynth run CONFIG --resume \1\. .+ dpsynth run CONFIG --abandon \1\. .+",
        last,
    )
    assert found is not None, last
    return found[1]


def test_a_column_that_reads_nothing_pauses_the_release_before_the_rest_is_spent(
    keeper: Keeper, unread: Place
) -> None:
    ended = keeper.run(unread)
    release_id = paused(ended)
    assert EMPTY.search(ended.err)
    assert "Its declared values are 'F', 'M'." in ended.err
    found = journal_of(unread)
    assert len(evidence.charges(found)) == SINGLES and found[-1] == {
        "kind": "paused",
        "at": Step.HEED_WARNINGS,
    }
    assert unread.ledger.state(release_id) == "reserved"
    assert not list((unread.folder / "outputs").glob("people/*/public"))


def test_a_paused_release_that_is_resumed_goes_on_and_keeps_its_planned_guarantee(
    keeper: Keeper, unread: Place
) -> None:
    watch = Watch(unread)
    release_id = paused(keeper.run(unread))
    watch.look()
    done = keeper.run(unread, "--resume", release_id)
    assert done.code == 0 and done.folder.name == release_id
    assert done.err.startswith("Note: Column sex: ") and EMPTY.search(done.err)
    # Each question was charged and drawn once, and the whole budget is spent.
    watch.ended(done.folder, deaths=0)
    public = unread.folder / done.folder / "public"
    manifest = json.loads((public / "manifest.json").read_text())
    assert 0.99 < manifest["guarantee"]["epsilon"] <= 1
    (warning,) = manifest["warnings"]
    assert (warning["kind"], warning["column"], warning["serious"]) == ("empty_column", "sex", True)
    for page in ("README.md", "report.html"):
        assert EMPTY.search((public / page).read_text())


def test_a_release_that_goes_on_with_another_table_says_so(keeper: Keeper, unread: Place) -> None:
    release_id = paused(keeper.run(unread))
    (unread.folder / "moved.csv").write_bytes((unread.folder / "people.csv").read_bytes())
    done = keeper.run(unread, "--resume", release_id, "--source", "moved.csv")
    assert done.code == 0 and re.search(
        r"began with the table \S+people\.csv, and goes on with \S+moved\.csv", done.err
    )


def paused_at(step: Step) -> bytes:
    """The line of a journal that says so."""
    return f'{{"kind":"paused","at":"{step}"}}\n'.encode()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_paused_release_that_is_abandoned_is_charged_with_what_it_asked(
    keeper: Keeper, places: MakePlace
) -> None:
    place = misread(places())
    release_id = paused(keeper.run(place))
    ended = keeper.run(place, "--abandon", release_id)
    assert ended.code == 0 and f"Release {release_id} is abandoned." in ended.out
    entry = place.ledger.release(release_id)
    assert entry is not None and entry.state == "abandoned"
    asked = sum(map(evidence.Protection().half_mu_squared, evidence.charges(journal_of(place))), Fraction(0))
    assert entry.cost.half_mu_squared is not None and entry.reserved.half_mu_squared is not None
    assert asked <= entry.cost.half_mu_squared <= asked * (1 + Fraction(1, 10**9))
    assert entry.cost.half_mu_squared < entry.reserved.half_mu_squared / 2
    refused = keeper.run(place, "--resume", release_id)
    assert refused.code != 0 and "abandoned" in refused.err
    columns = {"age": None, "city": None, "sex": {"values": ["Female", "Male"]}}
    place.configure(privacy=STOP, columns=columns, publish=None)
    assert keeper.run(place).code == 0


def test_an_abandoned_release_counts_in_full_where_only_the_whole_of_it_has_a_bound(
    keeper: Keeper, place: Place
) -> None:
    with pytest.raises(Paused) as stopped:
        release(misread(place, ledger={"filter": "sequential"}))
    said = keeper.run(place, "--abandon", stopped.value.release_id)
    assert said.code == 0 and "Abandoned, it counts for all of that: its ε at its δ" in said.out
    account = place.balance
    assert account is not None
    (entry,) = account.releases
    assert entry.state == "abandoned" and len(entry.events) == SINGLES
    assert account.share_of(entry.cost) == account.share_of(entry.reserved)
    assert entry.cost.amount == entry.reserved.amount


def test_a_second_run_of_a_period_does_not_go_on_with_what_waits(keeper: Keeper, place: Place) -> None:
    """A schedule would run it in just this way."""
    misread(place, period={"column": "city", "every": "value"})
    run = ("--period", "Aa")
    release_id = paused(keeper.run(place, *run))
    for _ in range(2):
        again = keeper.run(place, *run)
        reserved, begun, rest = again.err.split("\n", 2)
        assert "has been reserved since" in reserved and "was begun on" in begun
        assert paused(Ended(again.code, again.out, rest)) == release_id
        found = journal_of(place)
        assert len(evidence.charges(found)) == SINGLES
        assert sum(record["kind"] == "paused" for record in found) == 1
    done = keeper.run(place, "--resume", release_id)
    assert done.code == 0 and done.folder.name == release_id


KILLS = [
    pytest.param((f"begin {Step.HEED_WARNINGS}", 1), False, marks=pytest.mark.slow),
    (("begin sync paused", 1), True),
    pytest.param(("end sync paused", 1), True, marks=pytest.mark.slow),
]
"""Where a run is killed, and whether the pause is on record by then."""


@pytest.mark.parametrize(("stop", "on_record"), KILLS)
def test_a_kill_about_the_pause_neither_forgets_it_nor_draws_twice(
    keeper: Keeper, unread: Place, stop: Stop, on_record: bool
) -> None:
    watch = Watch(unread)
    ended = keeper.run(unread, stop=stop)
    assert ended.code == DIED
    # Nobody goes on with a warning that was not shown.
    assert ("Note: Column sex" in ended.err) == on_record
    watch.look()
    (release_id,) = watch.begun
    if not on_record:
        assert paused(keeper.run(unread, "--resume", release_id)) == release_id
    done = keeper.run(unread, "--resume", release_id)
    assert done.code == 0
    watch.ended(done.folder, deaths=0)


def test_what_goes_on_by_decision_is_finished_after_a_kill_and_not_paused_again(
    keeper: Keeper, place: Place
) -> None:
    misread(place, period={"column": "city", "every": "value"})
    run = ("--period", "Aa")
    release_id = paused(keeper.run(place, *run))
    # Killed before the first question that comes after the pause, nothing says yet that it was decided.
    assert (
        keeper.run(place, "--resume", release_id, stop=(f"begin {Step.MEASURE_STATISTICS}", 1)).code == DIED
    )
    assert keeper.run(place, *run).code == 5
    assert keeper.run(place, "--resume", release_id, stop=("end sync charge", 1)).code == DIED
    assert len(evidence.charges(journal_of(place))) == SINGLES + 1
    done = keeper.run(place, *run)
    assert done.code == 0 and done.folder.name == release_id


def test_on_empty_go_releases_with_the_warning(keeper: Keeper, place: Place) -> None:
    misread(place, privacy={})
    done = keeper.run(place)
    assert done.code == 0 and EMPTY.search(done.err)
    manifest = json.loads((place.folder / done.folder / "public" / "manifest.json").read_text())
    assert [w["column"] for w in manifest["warnings"]] == ["sex"]


SEARCHED: Mapping[str, object] = {
    "columns": {
        "city": {"values": None, "open": True, "most": 9},
        "income": {"min": None, "max": None, "bounds": "private"},
    },
    "publish": {"statistics": []},
}
"""Two columns whose domains are to be found, at a quarter of the budget and more."""
BY_PERSON: Mapping[str, object] = {"unit": {"column": "person", "max_rows": "private"}}
"""One question comes before the number of rows: how many of them persons have."""
EMPTY_TABLES = {
    "declared": (0, {}, {}, 1),
    "of one row": (1, {}, {}, 1),
    "searched": (0, SEARCHED, {}, 1),
    "pure": (0, {}, {"delta": None, "noise": "laplace"}, 1),
    "persons": (0, {}, {"unit": {"column": "person", "max_rows": 3}}, 2),
    "persons of whom nothing more is asked": (
        0,
        {},
        {"unit": {"column": "person", "max_rows": 3}, "split": {"cutoff": 0}},
        1,
    ),
    "persons with a bound to be found": (0, SEARCHED, BY_PERSON, 2),
    "one column": (0, {"columns": {"age": None, "city": None, "sex": None}, "publish": None}, {}, 1),
    "rows exchanged": (0, {}, {"neighbours": "replace_one"}, 0),
}
"""Rows, changes of the config, of its section privacy, and the number of questions before the pause."""


@pytest.mark.parametrize("name", some(EMPTY_TABLES, 4))
def test_a_table_without_rows_pauses_before_all_but_its_number_of_rows_is_asked(
    keeper: Keeper, place: Place, name: str
) -> None:
    rows, changes, privacy, asked = EMPTY_TABLES[name]
    place.table(people(rows))
    place.configure(**{"privacy": {**STOP, **privacy}, **changes})
    # By its noise an empty table seems to have some rows in one of forty releases.
    ended = keeper.run(place, fault="answers without noise")
    release_id = paused(ended)
    nothing = "The table has no rows." if name == "rows exchanged" else "it can't be told from an empty one"
    assert nothing in ended.err and "before its columns were asked for, because of the table" in ended.err
    found = journal_of(place)
    assert len(evidence.charges(found)) == asked and found[-1] == {"kind": "paused", "at": Step.HEED_SIZE}
    # Its owner decides once: nothing pauses for the same reason after the columns.
    assert keeper.run(place, "--resume", release_id).code == 0


@pytest.mark.parametrize(
    "kept",
    some(
        [
            {"privacy": STOP},
            {"privacy": STOP, **SEARCHED},
            {"privacy": {**STOP, "delta": None, "noise": "laplace"}},
            {
                "privacy": {**STOP, "accountant": "zcdp", "noise": "laplace"},
                "ledger": {"filter": "sequential"},
            },
        ],
        2,
    ),
    ids=["declared", "searched", "pure", "in sequence"],
)
def test_an_empty_period_is_charged_for_a_look_at_its_size(
    keeper: Keeper, place: Place, kept: Mapping[str, object]
) -> None:
    table = [(*row[:-1], "2026-01-15") for row in people(900)]
    place.table(table)
    place.configure(**{**kept, "period": {"column": "notes", "every": "month"}})
    empty = ("--period", "2026-02")
    release_id = paused(keeper.run(place, *empty, fault="answers without noise"))
    # A second run of the period asks nothing.
    assert keeper.run(place, *empty).code == 5
    (charge,) = evidence.charges(journal_of(place))
    plan = inputs_of(dpsynth.load(place.folder / "config.yaml")).plan
    (singles,) = (step for step in plan.steps if step.step == "one_way")
    assert charge["question"] == {"ask": "marginal", "columns": []}
    scale = charge["event"].get("sigma", charge["event"].get("scale"))
    assert scale == pytest.approx(singles.scale_of["(total)"], rel=1e-9)
    assert keeper.run(place, "--abandon", release_id).code == 0
    entry = place.ledger.release(release_id)
    assert entry is not None and entry.state == "abandoned"
    if kept["privacy"].get("accountant"):
        # Only the reservation bounds an epsilon at a delta where such are added up.
        assert entry.cost.amount == entry.reserved.amount
        return
    spent = entry.cost.amount.epsilon if kept["privacy"].get("noise") else entry.cost.half_mu_squared
    assert 0 < spent <= plan.total_price < Fraction(1, 50) * plan.budget
    # The period may be released anew, and one with rows is as it ever was.
    assert paused(keeper.run(place, *empty, fault="answers without noise")) != release_id
    assert keeper.run(place, "--period", "2026-01", fault="answers without noise").code == 0


def test_a_table_that_is_read_as_declared_gives_no_warning(keeper: Keeper, place: Place) -> None:
    place.table(people(1500))
    place.configure(privacy=STOP, columns={"city": {"expected": {"missing": 0.25}}})
    done = keeper.run(place)
    assert (done.code, done.err) == (0, "")
    public = place.folder / done.folder / "public"
    assert json.loads((public / "manifest.json").read_text())["warnings"] == []
    assert "Warnings" not in (public / "README.md").read_text() + (public / "report.html").read_text()


def test_a_question_to_the_owner_is_said_and_not_published(keeper: Keeper, place: Place) -> None:
    place.table(people(1500))
    place.configure(privacy=STOP)
    done = keeper.run(place)
    assert done.code == 0 and done.err.startswith("Note: Column city: about ") and "expected" in done.err
    public = place.folder / done.folder / "public"
    assert json.loads((public / "manifest.json").read_text())["warnings"] == []
    assert "they are empty, or can't be read" not in (public / "README.md").read_text()


def test_in_python_the_pause_is_an_error_with_the_sentences_and_what_it_advises_works(unread: Place) -> None:
    for advice in ("resume", "abandon"):
        with pytest.raises(Paused, match=EMPTY) as stopped:
            release(unread)
        said, release_id = str(stopped.value), stopped.value.release_id
        assert stopped.value.exit_code == 5
        assert f"resume='{release_id}'" in said and "CONFIG --resume" not in said
        if advice == "resume":
            done = release(unread, resume=release_id)
            assert [w.column for w in done.warnings] == ["sex"] and done.release_id == release_id
            continue
        found = re.search(r"dpsynth\.abandon\(.*\)", said)
        assert found is not None and release_id in found[0]
        eval(found[0], {"dpsynth": dpsynth})
        entry = unread.ledger.release(release_id)
        assert entry is not None and entry.state == "abandoned"
        assert 0 < entry.cost.rho < entry.reserved.rho


def test_the_answer_to_warnings_may_be_changed_for_a_release_under_way(unread: Place) -> None:
    with pytest.raises(Paused) as stopped:
        release(unread)
    release_id = stopped.value.release_id
    spec = dpsynth.load(unread.folder / "config.yaml")
    path = unread.folder / "config.yaml"
    path.write_text(path.read_text().replace('"privacy": {', '"privacy": {"on_empty": "go",'))
    other = dpsynth.load(path)
    assert other.privacy.on_empty == "go"
    assert compiled(spec).fingerprint == compiled(other).fingerprint
    assert compiled(spec).whole_fingerprint == compiled(other).whole_fingerprint
    assert release(unread, resume=release_id).release_id == release_id


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--abandon", "x", "--resume", "x"), "give one of them"),
        (("--abandon", "20300101-00000000"), "has no release"),
        (("--abandon", "THIS", "--out", "elsewhere"), "no journal of release"),
    ],
)
def test_an_abandonment_that_can_not_be_meant_changes_nothing(
    keeper: Keeper, unread: Place, arguments: tuple[str, ...], said: str
) -> None:
    release_id = paused(keeper.run(unread))
    rows = unread.ledger.rows()
    ended = keeper.run(unread, *(release_id if a == "THIS" else a for a in arguments))
    assert ended.code == 2 and said in ended.err and ended.err.count("\n") == 1
    assert unread.ledger.rows() == rows


RULED: Mapping[str, object] = {
    "columns": {"sex": {"values": ["F", "M"]}, "city": None, "income": {"bins": [0, 25, 50, 75, 100]}},
    "constraints": ["age >= 60"],
    "publish": {"statistics": [{"mean": "income"}]},
    "privacy": STOP,
}
"""A rule that two rows in three violate: the table that obeys it contradicts the counts of the ages."""


def ruled(place: Place) -> Place:
    place.table(people(1500))
    place.configure(**RULED)
    return place


def contradicts(ended: Ended) -> str:
    """The id of a release that is paused because of its finished table."""
    assert (ended.code, ended.out) == (5, "")
    *notes, last = ended.err.splitlines()  # rarely another column contradicts its counts too
    said = " The table contradicts the column's own noisy counts: "
    assert any(note.startswith(f"Note: Column age:{said}") for note in notes), notes
    assert all(said in note for note in notes), notes
    found = re.fullmatch(
        r"Error: Release (\S+) is paused before it is shown, because its table contradicts its own counts in "
        r"(?:\w+, )*age\b.+ --resume \1\. .+ --abandon \1\. .+",
        last,
    )
    assert found is not None, last
    return found[1]


def test_a_finished_table_that_contradicts_its_counts_is_paused_before_it_is_shown(
    keeper: Keeper, place: Place
) -> None:
    watch = Watch(ruled(place))
    release_id = contradicts(keeper.run(place))
    assert journal_of(place)[-1] == {"kind": "paused", "at": Step.JUDGE}
    assert place.ledger.state(release_id) == "reserved"
    assert not list((place.folder / "outputs").glob("people/[!.]*/public"))
    watch.look()
    # A second run decides nothing, nor does a kill as the owner's decision is carried out.
    assert keeper.run(place, "--resume", release_id, stop=(f"begin {Step.SETTLE}", 1)).code == DIED
    done = keeper.run(place, "--resume", release_id)
    assert done.code == 0 and done.folder.name == release_id
    watch.ended(done.folder, deaths=0)
    public = place.folder / done.folder / "public"
    verdict = json.loads((public / "manifest.json").read_text())["verdict"]
    (age,) = (column for column in verdict["columns"] if column["columns"] == ["age"])
    assert age["verdict"] == "don't use" and age["beyond_noise"] > 0.2
    assert "Don't use: age. The table contradicts" in done.out
    first = (public / "README.md").read_text().split("\n## ")[1]
    assert first.startswith("The verdict") and "Don't use: age. The table contradicts" in first


def test_a_contradiction_is_ended_by_its_owner_and_charged_with_all_that_was_asked(
    keeper: Keeper, place: Place
) -> None:
    release_id = contradicts(keeper.run(ruled(place)))
    ended = keeper.run(place, "--abandon", release_id)
    assert ended.code == 0 and place.ledger.state(release_id) == "abandoned"
    entry = place.ledger.release(release_id)
    assert entry is not None and entry.cost.amount.epsilon > 0.99 * entry.reserved.amount.epsilon
    # The corrected config is another release, and is not paused.
    place.configure(**{**RULED, "constraints": ["age >= 0"]})
    assert keeper.run(place).code == 0


@pytest.mark.parametrize(
    "stop", [("begin sync paused", 1), pytest.param((f"end {Step.EXAMINE}", 1), marks=pytest.mark.slow)]
)
def test_a_kill_about_the_verdict_doesnt_show_what_nobody_decided_on(
    keeper: Keeper, place: Place, stop: Stop
) -> None:
    watch = Watch(ruled(place))
    assert keeper.run(place, stop=stop).code == DIED
    watch.look()
    (release_id,) = watch.begun
    again = keeper.run(place, "--resume", release_id)
    assert again.code == (5 if "sync" not in stop[0] else 0)
    if again.code:
        assert contradicts(again) == release_id
        again = keeper.run(place, "--resume", release_id)
    assert again.code == 0
    watch.ended(again.folder, deaths=0)


def test_each_pause_is_decided_by_itself(keeper: Keeper, place: Place) -> None:
    """A release that was resumed after its single columns pauses once more for its table."""
    misread(place, constraints=["age >= 60"])
    place.configure(**{**RULED, "constraints": ["age >= 60"]})
    release_id = paused(keeper.run(place))
    second = keeper.run(place, "--resume", release_id)
    assert second.code == 5 and "is paused before it is shown" in second.err
    assert keeper.run(place, "--resume", release_id).code == 0


def test_on_empty_go_shows_a_contradiction_with_its_verdict(keeper: Keeper, place: Place) -> None:
    ruled(place)
    place.configure(**{**RULED, "privacy": {}})
    done = keeper.run(place)
    assert done.code == 0 and "contradicts the column's own noisy counts" in done.err


def test_a_finished_release_is_not_abandoned(keeper: Keeper, place: Place) -> None:
    done = keeper.run(place)
    ended = keeper.run(place, "--abandon", done.folder.name)
    assert ended.code == 2 and "has ended" in ended.err
    assert place.ledger.state(done.folder.name) == "closed"


def test_a_schedule_that_starts_again_leaves_what_waits_to_its_owner(
    unread: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import schedule
    from flows.served import StopSignals, checked

    monthly = {
        "period": {"column": "notes", "every": "month"},
        "schedule": {"cron": "0 3 1 * *", "timezone": "UTC"},
    }
    misread(unread, **monthly, ledger={"url": unread.url})
    table = (unread.folder / "people.csv").read_text()
    (unread.folder / "people.csv").write_text(re.sub(r"note \d+", "2026-09-10", table))
    monkeypatch.chdir(unread.folder)
    config = Path("config.yaml")
    spec = dpsynth.load(config)
    with pytest.raises(Paused):
        dpsynth.release(spec, period="2026-09")
    (one,) = checked([config])
    finished: list[str] = []
    monkeypatch.setattr(schedule, "_finish", lambda one, release_id, *_: finished.append(release_id))
    said: list[str] = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    stop = StopSignals()
    schedule._take_up(one, Path("outputs"), said.append, stop)
    assert not finished and "is paused, and waits for your decision" in said[0]
    # One that was cut short elsewhere is finished.
    (journal,) = unread.folder.glob("outputs/people/.*/private/journal.jsonl")
    journal.write_bytes(journal.read_bytes().replace(paused_at(Step.HEED_WARNINGS), b""))
    schedule._take_up(one, Path("outputs"), said.append, stop)
    assert len(finished) == 1
    # Nothing is begun by a service that is being stopped.
    stop.ask()
    schedule._take_up(one, Path("outputs"), said.append, stop)
    assert len(finished) == 1


def test_prefect_is_told_of_the_warnings_as_of_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import release as ending

    monkeypatch.setattr(ending, "emit_event", lambda *_, **__: None)
    error = Paused("r1", ["Column sex: about 100 % of its cells are missing."], "sex", "Go on, or end it.")
    state = ending.failed("people", "people", "r1", error)
    assert (state.name, state.type.value) == ("Interrupted", "FAILED")
    assert state.message == f"{error} (Exit code 5.)"
    assert "about 100 %" in state.message and "r1 is paused" in state.message


@pytest.mark.filterwarnings("ignore:Logger .prefect.flow_runs.:UserWarning")
@pytest.mark.parametrize("ours", [True, False])
def test_a_schedule_prints_no_traceback_of_a_pause(ours: bool) -> None:
    """The engine of Prefect's that runs a schedule's release; an error that isn't ours is left as it is."""
    import logging

    from prefect.engine import handle_engine_signals

    import flows.release

    assert flows.release
    written = StringIO()
    handler = logging.StreamHandler(written)
    loggers = [logging.getLogger(name) for name in ("prefect.engine", "prefect.flow_runs")]
    for logger in loggers:
        logger.addHandler(handler)
    error = Paused("r1", ["Column sex is empty."], "here", "Go on, or end it.") if ours else KeyError("x")
    try:
        with pytest.raises(SystemExit), handle_engine_signals():
            try:
                raise error
            except Exception:
                # The run's own log has it first.
                loggers[1].error("Engine execution exited with unexpected exception", exc_info=True)
                raise
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    said = written.getvalue()
    assert said.count("Traceback") == (0 if ours else 2)
    if ours:
        assert said.startswith("Nothing was released. Column sex is empty. Release r1 is paused here.")


def test_a_paused_release_is_not_abandoned_twice(keeper: Keeper, unread: Place) -> None:
    release_id = paused(keeper.run(unread))
    assert keeper.run(unread, "--abandon", release_id).code == 0
    again = keeper.run(unread, "--abandon", release_id)
    assert again.code == ConfigError.exit_code and "has ended" in again.err
