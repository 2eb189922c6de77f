"""Releases through Prefect: no cell of the private table gets into any file, log or terminal.

Hazards 25, 33 and 36. Canaries are planted in the table; releases run through Prefect on its
own server, in one Prefect home: a good one, failing ones, one terminated, one killed. Every file
left behind is then searched. Each kind of leak is planted too, and must be found.
"""

import os
import pty
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.release import evidence
from tests.release.canaries import CANARIES, PLANTED, found_in, left_behind, table
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, Ended, Place, environment, furnished, people, release
from tests.release.served import until

KINDS = {
    "a value error": "ValueError",
    "an error within an error": "KeyError",
    "an error of ours with a cause": "ledger has gone away",
    "an exit": "interrupted",
    "a value error with --debug": "Traceback",
}
"""Faults, and what is said of each."""
MORE_KINDS = {
    "a cast fails": "ArrowInvalid",
    "a decoding error": "UnicodeDecodeError",
    "a panic": "interrupted",
}
LEAKS = tuple(f"planted: {name}" for name in PLANTED)
# Noise so little that no release warns of its 240 rows, which stand 40 standard deviations above none. If
# missing cities are told from noise is chance, so they are expected.
SURE = {"privacy": {**BY_PERSON, "epsilon": 8}, "columns": {"city": {"expected": {"missing": 0.9}}}}


@dataclass(frozen=True)
class Flown:
    """Ends of releases of a table with canaries, which one process made in turn, in a home new to Prefect.

    Attributes:
        place: where.
        ended: by fault; "none" is a good one, and "a hang" was terminated. One more was killed at the end.
        kinds: what is said of each fault.
    """

    place: Place
    ended: dict[str, Ended]
    kinds: dict[str, str]

    @property
    def good(self) -> Ended:
        """The release without a fault."""
        return self.ended["none"]


@pytest.fixture(scope="module", params=["some kinds", pytest.param("all kinds", marks=pytest.mark.slow)])
def flown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Flown:
    """A good release, failing ones on errors that quote cells, leaks; then one terminated, one killed."""
    kinds = KINDS if request.param == "some kinds" else {**MORE_KINDS, **KINDS}
    place = furnished(tmp_path_factory.mktemp("flown"))
    place.table(table())
    place.configure(**SURE)
    faults = ("none", *kinds, *LEAKS, "a hang")
    out, err = place.home / "flown.out", place.home / "flown.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.release.flown", *faults, "a hang"],
            cwd=place.folder,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        for count, by in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
            until(lambda n=count: out.read_text().count("hanging\n") == n or process.poll() is not None)
            assert process.poll() is None, err.read_text()
            process.send_signal(by)
        assert process.wait(timeout=120) == -signal.SIGKILL
    finally:
        # Prefect's server outlives a process that is killed; it is in the session begun here.
        os.killpg(process.pid, signal.SIGKILL)
    ended: dict[str, Ended] = {}
    said, told = out.read_text(), err.read_text()
    for fault in faults:
        mark = re.compile(rf"^{fault} -> (\d+)\n", re.MULTILINE)
        (own, code, said), (own_err, _, told) = mark.split(said, 1), mark.split(told, 1)
        ended[fault] = Ended.of(int(code), own, own_err)
    return Flown(place, ended, kinds)


def test_the_search_finds_every_canary_in_the_private_table(flown: Flown) -> None:
    assert found_in([flown.place.folder / "people.csv"]).keys() == CANARIES.keys()


def test_a_good_run_succeeds_on_the_table_with_canaries(flown: Flown) -> None:
    """Hazard 24 and 26: every kind of unusable cell is in it."""
    assert (flown.good.code, flown.good.err) == (0, ""), flown.good
    assert (flown.place.folder / flown.good.folder / "public" / "manifest.json").is_file()


@pytest.mark.slow
def test_a_process_of_its_own_ends_as_one_of_several_runs(place: Place, flown: Flown) -> None:
    place.table(table())
    place.configure(**SURE)
    ended = place.run("--prefect")
    assert (ended.code, ended.err) == (0, "") and ended.under_way == flown.good.under_way
    assert evidence.there(place.folder / ended.folder) == evidence.there(
        flown.place.folder / flown.good.folder
    )


def test_the_command_and_python_and_prefect_hand_over_the_same_files(
    flown: Flown, keeper: Keeper, place: Place
) -> None:
    place.table(people(300))
    place.configure(**SURE)
    bundles = [
        flown.place.folder / flown.good.folder,
        place.folder / keeper.run(place).folder,
        release(place).folder,
    ]
    files = [evidence.there(bundle) for bundle in bundles]
    assert files[0] == files[1] == files[2]
    schemas = [evidence.assert_whole(bundle)["columns"] for bundle in bundles]
    assert schemas[0] == schemas[1] == schemas[2]
    said = [
        re.sub(r"[\d,]+ synthetic|\d{8}-\w{8}|Verdict: .*\n", "", run.out)
        for run in (flown.good, keeper.run(place))
    ]
    assert said[0] == said[1]


def test_a_run_that_is_piped_says_what_it_waits_for_and_each_step(flown: Flown) -> None:
    ended = flown.good
    unchecked, loading, waiting, first, *_ = ended.under_way
    assert unchecked.startswith("Note: This config was never checked against this table.")
    assert loading == "Loading Prefect ..." and waiting.startswith("Waiting for ")
    assert first == "Step: plan" and "Step: publish the bundle" in ended.under_way
    assert ended.out.splitlines()[-1] == str(ended.folder)


def test_a_flow_run_is_named_after_its_release_and_its_day(flown: Flown) -> None:
    account = flown.place.balance
    assert account is not None
    with sqlite3.connect(flown.place.home / "prefect" / "prefect.db") as database:
        names = [name for (name,) in database.execute("SELECT name FROM flow_run ORDER BY created")]
    assert names[0] == f"people {account.releases[0].created}"


def test_failing_runs_say_the_step_and_the_kind_of_error_and_nothing_else(flown: Flown) -> None:
    """Hazard 25."""
    noted = re.compile(
        r"Note: Release \S+ (has been reserved since \S+ and has not ended|"
        r"is settled, and its bundle was not put in its place)\. .*|Note: This configuration was released .*"
        # Of noisy answers.
        r"|Note: Column .*"
    )
    for fault, kind in flown.kinds.items():
        ended = flown.ended[fault]
        assert ended.code in (1, 5) and not ended.out, (fault, ended)
        first, *more = [line for line in ended.err.splitlines() if not noted.fullmatch(line)]
        assert kind in first, (fault, ended)
        # With --debug, a traceback tells where, and a file of the owner's tells what.
        assert kind == "Traceback" or (first.startswith("Error: ") and not more), (fault, ended)


def test_no_canary_is_left_behind_by_good_failing_and_killed_runs(flown: Flown) -> None:
    """Hazard 33: Prefect's files, logs, the bundles, the journals, the ledger, the terminal."""
    home = flown.place.home
    files = [p for p in left_behind(home) if not is_detail(p)]
    names = {p.relative_to(home).as_posix() for p in files}
    assert {"prefect/prefect.db", "flown.out", "flown.err"} <= names
    assert len([n for n in names if n.endswith("private/journal.jsonl")]) >= 3
    assert any("/public/" in n for n in names)
    assert found_in(files) == {}


def test_a_release_that_was_terminated_says_how_to_finish_it(flown: Flown, keeper: Keeper) -> None:
    """Prefect has a handler of its own for SIGTERM; the release can be finished without Prefect."""
    ended = flown.ended["a hang"]
    assert ended.code == 5
    (name,) = re.findall(r"^Error: Release \S+ was interrupted\. .*--resume (\S+)$", ended.err, re.MULTILINE)
    done = keeper.run(flown.place, "--resume", name)
    assert done.code == 0 and done.folder.name == name
    evidence.assert_whole(flown.place.folder / done.folder)
    assert flown.place.ledger.state(name) == "closed"


def is_detail(path: Path) -> bool:
    return path.name.startswith("dpsynth-debug-")


def test_details_go_to_a_file_of_the_owners_and_only_if_asked_for(flown: Flown) -> None:
    """Hazard 25, with --debug."""
    (detail,) = (p for p in left_behind(flown.place.home) if is_detail(p))
    assert stat.S_IMODE(detail.stat().st_mode) == 0o600
    assert found_in([detail]).keys() == {"a person"}
    assert str(detail) in flown.ended["a value error with --debug"].err


def test_prefect_recorded_the_steps_that_failed(flown: Flown) -> None:
    """The search above would be empty too if Prefect's files lay elsewhere."""
    database = flown.place.home / "prefect"
    content = b"".join(p.read_bytes() for p in database.rglob("*") if p.is_file())
    for words in (b"fit the model", b"settle the ledger", b"ValueError; details withheld"):
        assert words in content


@pytest.mark.parametrize(
    ("leak", "where"), [("no guard", "prefect/prefect.db"), ("a kept result", "prefect/storage/")]
)
def test_a_leak_that_is_planted_in_prefect_is_found(flown: Flown, leak: str, where: str) -> None:
    """Each lets out a text of its own, in the midst of the runs that let out nothing."""
    found = found_in(left_behind(flown.place.home), PLANTED)
    assert any(where in p.as_posix() for p in found[leak]), found


@pytest.mark.parametrize(
    ("fault", "canary", "where"),
    [
        ("a cell in the journal", "a whole record", {"private/journal.jsonl"}),
        ("a cell in the table", "undeclared column", {"public/synthetic.csv", "public/synthetic.parquet"}),
        ("a cell on the terminal", "formula", {"out"}),
    ],
)
def test_a_leak_that_is_planted_in_a_release_is_found(
    keeper: Keeper, place: Place, fault: str, canary: str, where: set[str]
) -> None:
    place.table(table())
    keeper.run(place, fault=fault)
    found = found_in(left_behind(place.home))
    assert found.keys() == {canary}
    assert all(any(p.as_posix().endswith(name) for p in found[canary]) for name in where), found


def test_progress_on_a_terminal_shows_steps_and_no_cell(place: Place, tmp_path: Path) -> None:
    """Hazard 25: what is only shown on a terminal is searched too."""
    place.table(table())
    reader, terminal = pty.openpty()
    with subprocess.Popen(
        place.command("--plain"),
        cwd=place.folder,
        env=environment(tmp_path, TERM="xterm", COLUMNS="120"),
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        shown = tmp_path / "shown"
        shown.write_bytes(b"".join(chunks(reader)))
        assert process.wait(timeout=120) == 0
    for step in (b"open the table", b"fit the model", b"settle the ledger"):
        assert step in shown.read_bytes()
    assert found_in([shown]) == {}


def chunks(reader: int) -> Iterator[bytes]:
    """What is written to a terminal, until nobody is left to write."""
    while True:
        try:
            chunk = os.read(reader, 1 << 16)
        except OSError:
            return
        if not chunk:
            return
        yield chunk
