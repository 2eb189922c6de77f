"""Releases through Prefect: no cell of the private table gets into any file, log or terminal.

Hazards 25, 33 and 36. Canaries are planted in the table; releases run through Prefect on its
own server, in one Prefect home: a good one, failing ones, one terminated, one killed. Every file
left behind is then searched. Each kind of leak is planted too, and must be found.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release import evidence
from tests.release.canaries import CANARIES, found_in, left_behind, table
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, Ended, Place, environment, furnished, people, release

FAULTS = (
    "a cast fails",
    "a value error",
    "an error within an error",
    "an error of ours with a cause",
    "a decoding error",
    "a panic",
    "an exit",
    "a value error with --debug",
)
# Noise so little that no release warns of its 240 rows, which stand 40 standard deviations above none.
BY_PERSON_WITH_LITTLE_NOISE = {**BY_PERSON, "epsilon": 8}
Flown = tuple[Place, Ended]


def driver(place: Place, *faults: str) -> list[str]:
    """A command that runs a flow for each fault, in one process."""
    return [sys.executable, "-m", "tests.release.flown", *faults]


def kept(place: Place, ended: Ended, name: str) -> Ended:
    """Write what a command said to files, so that the search finds them; returns it."""
    (place.home / f"{name}.out").write_text(ended.out)
    (place.home / f"{name}.err").write_text("\n".join([ended.err, *ended.under_way]))
    return ended


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Flown:
    """A table with canaries, and how a release of it through Prefect ended, in a home new to Prefect."""
    place = furnished(tmp_path_factory.mktemp("flown"))
    place.table(table())
    place.configure(privacy=BY_PERSON_WITH_LITTLE_NOISE)
    return place, place.run("--prefect")


@pytest.fixture(scope="module")
def failed(flown: Flown) -> Ended:
    """Releases that fail, one after another, on errors that quote cells; then one terminated, one killed."""
    place, good = flown
    kept(place, good, "good")
    process = subprocess.Popen(
        driver(place, *FAULTS, "a hang", "a hang"),
        cwd=place.folder,
        env=environment(place.home, CANARIES=json.dumps(CANARIES)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines = []
    try:
        assert process.stdout is not None
        for by in (signal.SIGTERM, signal.SIGKILL):
            while (line := process.stdout.readline()) != "hanging\n":
                assert line, lines
                lines.append(line)
            process.send_signal(by)
        assert process.wait(timeout=120) == -signal.SIGKILL
    finally:
        # Prefect's server outlives a process that is killed; it is in the session begun here.
        os.killpg(process.pid, signal.SIGKILL)
    rest, err = process.communicate(timeout=120)
    return kept(place, Ended.of(process.returncode, "".join([*lines, rest]), err), "failed")


def test_the_search_finds_every_canary_in_the_private_table(flown: Flown) -> None:
    place, _ = flown
    assert found_in([place.folder / "people.csv"]).keys() == CANARIES.keys()


def test_a_good_run_succeeds_on_the_table_with_canaries(flown: Flown) -> None:
    """Hazard 24 and 26: every kind of unusable cell is in it."""
    place, good = flown
    assert good.code == 0 and good.err == "", good
    assert (place.folder / good.folder / "public" / "manifest.json").is_file()


def test_the_command_and_python_and_prefect_hand_over_the_same_files(
    flown: Flown, keeper: Keeper, place: Place
) -> None:
    through_prefect, ended = flown
    place.table(people(300))
    place.configure(privacy=BY_PERSON_WITH_LITTLE_NOISE)
    bundles = [
        through_prefect.folder / ended.folder,
        place.folder / keeper.run(place).folder,
        release(place).folder,
    ]
    files = [evidence.there(bundle) for bundle in bundles]
    assert files[0] == files[1] == files[2]
    schemas = [evidence.assert_whole(bundle)["columns"] for bundle in bundles]
    assert schemas[0] == schemas[1] == schemas[2]
    said = [re.sub(r"[\d,]+ synthetic|\d{8}-\w{8}", "", run.out) for run in (ended, keeper.run(place))]
    assert said[0] == said[1]


def test_a_run_that_is_piped_says_what_it_waits_for_and_each_step(flown: Flown) -> None:
    _, ended = flown
    assert ended.under_way[0] == "Loading Prefect ..." and ended.under_way[1].startswith("Waiting for ")
    assert ended.under_way[2] == "Step: plan" and "Step: publish the bundle" in ended.under_way
    assert ended.out.splitlines()[-1] == str(ended.folder)


def test_a_flow_run_is_named_after_its_release_and_its_day(flown: Flown) -> None:
    place, _ = flown
    account = place.balance
    assert account is not None
    with sqlite3.connect(place.home / "prefect" / "prefect.db") as database:
        names = [name for (name,) in database.execute("SELECT name FROM flow_run ORDER BY created")]
    assert names[0] == f"people {account.releases[0].created}"


def test_failing_runs_say_the_step_and_the_kind_of_error_and_nothing_else(failed: Ended) -> None:
    """Hazard 25."""
    codes = dict(line.split(" -> ") for line in failed.out.splitlines() if " -> " in line)
    assert codes.pop("a hang") == "5"
    assert codes.keys() == set(FAULTS)
    assert all(code in ("1", "5") for code in codes.values()), codes
    kinds = ("ArrowInvalid", "ValueError", "KeyError", "ledger has gone away", "UnicodeDecodeError",
             "interrupted", "interrupted")  # fmt: skip
    noted = re.compile(
        r"Note: Release \S+ (has been reserved since \S+ and has not ended|"
        r"is settled, and its bundle was not put in its place)\. .*|Note: This configuration was released .*"
    )
    lines = [line for line in failed.err.splitlines() if not noted.fullmatch(line)]
    for kind, line in zip(kinds, lines, strict=False):
        assert line.startswith("Error: ") and kind in line
    assert "Traceback" in lines[len(kinds)] and len(kinds) == len(FAULTS) - 1


def test_no_canary_is_left_behind_by_good_failing_and_killed_runs(flown: Flown, failed: Ended) -> None:
    """Hazard 33: Prefect's files, logs, the bundles, the journals, the ledger, the terminal."""
    place, _ = flown
    files = [p for p in left_behind(place.home) if not is_detail(p)]
    names = {p.relative_to(place.home).as_posix() for p in files}
    assert {"prefect/prefect.db", "good.out", "good.err", "failed.out", "failed.err"} <= names
    assert len([n for n in names if n.endswith("private/journal.jsonl")]) >= 3
    assert any("/public/" in n for n in names)
    assert found_in(files) == {}


def test_a_release_that_was_terminated_says_how_to_finish_it(flown: Flown, failed: Ended) -> None:
    """Prefect has a handler of its own for SIGTERM; the release can be finished without Prefect."""
    place, _ = flown
    told = re.findall(r"^Error: Release \S+ was interrupted\. .*--resume (\S+)$", failed.err, re.MULTILINE)
    name = told[-1]
    done = place.run("--plain", "--resume", name)
    assert done.code == 0 and done.folder.name == name
    evidence.assert_whole(place.folder / done.folder)
    assert place.ledger.state(name) == "closed"


def is_detail(path: Path) -> bool:
    return path.name.startswith("dpsynth-debug-")


def test_details_go_to_a_file_of_the_owners_and_only_if_asked_for(flown: Flown, failed: Ended) -> None:
    """Hazard 25, with --debug."""
    place, _ = flown
    (detail,) = (p for p in left_behind(place.home) if is_detail(p))
    assert stat.S_IMODE(detail.stat().st_mode) == 0o600
    assert found_in([detail]).keys() == {"a person"} and str(detail) in failed.err


def test_prefect_recorded_the_steps_that_failed(flown: Flown, failed: Ended) -> None:
    """The search above would be empty too if Prefect's files lay elsewhere."""
    place, _ = flown
    database = place.home / "prefect"
    content = b"".join(p.read_bytes() for p in database.rglob("*") if p.is_file())
    for words in (b"fit the model", b"settle the ledger", b"ValueError; details withheld"):
        assert words in content


@pytest.fixture(scope="module")
def leaky(flown: Flown, failed: Ended, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A copy of the place in which every kind of leak was then planted, each of another canary."""
    place, _ = flown
    home = tmp_path_factory.mktemp("leaky") / "home"
    shutil.copytree(place.home, home)
    copy = Place(home / place.folder.name, home)
    faults = [
        f"planted: {f}" for f in ("no guard", "a kept result", "in the journal", "in the table", "printed")
    ]
    ended = kept(copy, copy.call(driver(copy, *faults), CANARIES=json.dumps(CANARIES)), "leaky")
    assert ended.out.count(" -> ") == len(faults), ended
    return copy


@pytest.mark.parametrize(
    ("canary", "where"),
    [
        ("person id", "prefect/prefect.db"),
        ("unknown category", "prefect/storage/"),
        ("a whole record", "private/journal.jsonl"),
        ("undeclared column", "public/synthetic.csv"),
        ("undeclared column", "public/synthetic.parquet"),
        ("formula", "leaky.out"),
    ],
)
def test_a_planted_leak_is_found(leaky: Place, canary: str, where: str) -> None:
    found = found_in(left_behind(leaky.home))
    assert any(where in p.as_posix() for p in found[canary]), found


def test_progress_on_a_terminal_shows_steps_and_no_cell(flown: Flown, tmp_path: Path) -> None:
    """Hazard 25: what is only shown on a terminal is searched too."""
    place, _ = flown
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
