"""``dpsynth check`` prints for its owner, below a warning, and leaves nothing but a mark that it was run."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from dpsynth.config import from_mapping
from dpsynth.wings.owner.checked_mark import mark, never_checked
from tests.cli.here import Command, Ended
from tests.release import canaries
from tests.release.canaries import CANARIES, found_in, left_behind
from tests.release.place import BY_PERSON, HEADER, Place, furnished, people
from tests.wings.tables.linked import frames, two

LOADED = (
    "import sys; sys.argv[0] = 'dpsynth'\n"
    "from dpsynth.cli.app import main\n"
    "try:\n    main()\n"
    "finally:\n    print(sorted(m for m in sys.modules if m.split('.')[0] in ('prefect', 'flows')), "
    "file=sys.stderr)\n"
)


def check(place: Place) -> Ended:
    """``dpsynth check config.yaml``; its standard error says which modules of Prefect were loaded."""
    return place.call([sys.executable, "-c", LOADED, "check", "config.yaml"])


def everything(place: Place) -> dict[Path, bytes]:
    """All files of the place and the home of its processes, but compiled modules."""
    return {p: p.read_bytes() for p in place.home.rglob("*") if p.is_file() and p.suffix != ".pyc"}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, dict[Path, bytes], Ended]:
    """A table with canaries, all files before the check, and how the check ended."""
    place = furnished(tmp_path_factory.mktemp("checked"))
    place.table(canaries.table())
    place.configure(privacy=BY_PERSON)
    before = everything(place)
    return place, before, check(place)


MARK = ".config.yaml.checked"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return furnished(tmp_path)


@pytest.fixture
def dpsynth(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in that place."""
    return Command(place.folder, monkeypatch, capsys)


def test_a_check_writes_nothing_but_its_mark_and_never_loads_prefect(checked) -> None:
    """Hazard 33: neither a ledger nor a journal, nor Prefect's database."""
    place, before, ended = checked
    assert ended.code == 0 and ended.err == "[]\n", ended
    mark = place.folder / MARK
    assert {path for path in everything(place) if path not in before} == {mark}
    assert before.items() <= everything(place).items()
    assert re.fullmatch("[0-9a-f]{64}\n", mark.read_text()) and mark.stat().st_mode & 0o777 == 0o600
    assert found_in(left_behind(place.home)) == {}


def test_canaries_are_shown_to_the_owner_and_would_be_found_in_a_file(checked, tmp_path: Path) -> None:
    """The planted fault: an output that is kept."""
    _, _, ended = checked
    kept = tmp_path / "kept.txt"
    kept.write_text(ended.out)
    assert {"unknown category", "malformed number", "text in an integer column"} <= found_in([kept]).keys()


def test_no_row_enters_the_mark_of_a_check(place: Place, dpsynth: Command) -> None:
    marks = []
    for rows in (people(60), people(50, seed=2)):
        with (place.folder / "people.csv").open("r+", encoding="utf-8") as file:
            file.truncate()
            file.writelines(",".join(row) + "\n" for row in [HEADER, *rows])
        os.utime(place.folder / "people.csv", ns=(1, 1))
        dpsynth("check", "config.yaml")
        marks.append((place.folder / MARK).read_text())
    assert marks[0] == marks[1]


UNCHECKED = "Note: This config was never checked against this table. dpsynth check config.yaml "


def test_a_run_says_when_its_config_was_never_checked_against_its_table(
    place: Place, monkeypatch: pytest.MonkeyPatch, dpsynth: Command
) -> None:

    def stop(*_: object) -> None:
        """No release of this test goes further than its reservation."""
        raise RuntimeError

    def warned() -> bool:
        monkeypatch.setattr("dpsynth.pipeline.spine.earlier_answers", stop)
        ended = dpsynth("run", "config.yaml", "--plain")
        assert ended.code != 0, ended
        return any(line.startswith(UNCHECKED) for line in ended.err.splitlines())

    assert warned()
    dpsynth("check", "config.yaml")
    assert not warned()
    place.configure(columns={"age": {"max": 99}})
    assert warned()
    dpsynth("check", "config.yaml")
    assert not warned()
    os.utime(place.folder / "people.csv", ns=(1, 1))
    assert warned()
    dpsynth("check", "config.yaml")
    assert not warned()
    (place.folder / "people.csv").rename(place.folder / "old.csv")
    place.table(people(40))
    assert warned()


def test_a_change_of_any_linked_table_wants_another_check(tmp_path: Path) -> None:
    tables, config = two(), tmp_path / "homes.yaml"
    for name in tables:
        frames(9)[name].to_csv(tmp_path / f"{name}.csv", index=False)
        tables[name]["source"] = {"path": str(tmp_path / f"{name}.csv")}
    spec = from_mapping({"tables": tables, "privacy": {"epsilon": 1}, "ledger": {"dataset": "homes"}})
    for name in tables:
        mark(config, spec)
        assert never_checked(config, spec) == ""
        os.utime(tmp_path / f"{name}.csv", ns=(1, 1))
        assert never_checked(config, spec).startswith("This config was never checked")


def test_guesses_can_be_checked_before_they_are_reviewed(place: Place, dpsynth: Command) -> None:
    """Columns with a gap are left out, and a release is refused as before."""
    place.table(people(20))
    place.configure()
    config = place.folder / "config.yaml"
    values = json.loads(config.read_text())
    values["columns"]["gap"] = {"type": "integer", "min": 0, "max": None}
    config.write_text(json.dumps({**values, "review": ["columns.age", "columns.gap"]}))
    ended = dpsynth("check", "config.yaml")
    assert ended.code == 0 and "Still under review: 2 keys of config.yaml" in ended.out
    assert "\nage" in ended.out and "\ngap" not in ended.out
    facts = json.loads(dpsynth("check", "config.yaml", "--json").out)
    assert facts["under_review"] == ["columns.age", "columns.gap"]
    refused = dpsynth("run", "config.yaml")
    assert refused.code == 2 and "review still lists columns.age, columns.gap" in refused.err


def test_the_first_line_says_that_it_is_private_and_all_lines_fit(checked) -> None:
    _, _, ended = checked
    first, *lines = ended.out.splitlines()
    assert first.startswith("PRIVATE: exact counts and cells of people.csv") and "Don't share" in first
    assert all(len(line) <= 80 for line in lines if not line.startswith("      "))
    assert "are not private" in " ".join(lines[-5:])


def test_numbers_of_cells_and_persons_are_in_the_json(
    checked, dpsynth: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checked[0].folder)
    found = json.loads(dpsynth("check", "config.yaml", "--json").out)
    assert next(iter(found)) == "private"
    assert found["rows"] == len(canaries.table()) == found["columns"][0]["cells"]
    for column in found["columns"]:
        parts = ("read", "below_min", "above_max", "other", "missing", "unread")
        assert column["cells"] == sum(column[part] for part in parts)
    assert found["persons"]["number"] == len({row[0] for row in canaries.table()})
    assert {finding["about"] for finding in found["findings"]} >= {"age", "city", "privacy.unit"}


@pytest.mark.parametrize("cell", ["1", "", "x" * 9999, "\x1b[2J\x07", "'; drop", "\u202e9", "[red]9[/red]"])
def test_a_check_ends_alike_whatever_a_cell_holds_and_sends_no_sign_to_the_terminal(
    place: Place, cell: str, dpsynth: Command
) -> None:
    """Hazard 25: an exit code is logged by whatever calls the command."""
    place.table([(row[0], cell, *row[2:]) for row in people(60)])
    said = dpsynth("check", "config.yaml")
    assert (said.code, said.err) == (0, "")
    assert all(sign.isprintable() or sign == "\n" for sign in said.out)


def test_a_table_that_can_not_be_read_ends_as_a_release_does(place: Place, dpsynth: Command) -> None:
    table = place.folder / "people.csv"
    table.write_bytes(table.read_bytes().replace(b",", b";"))
    said = dpsynth("check", "config.yaml")
    assert said.code == 4 and said.err.startswith("Error: people.csv has no column")
    assert said.out == "" and "set source.separator: ';'" in said.err
    table.unlink()
    said = dpsynth("check", "config.yaml")
    assert (said.code, said.out) == (4, "") and "There is no file people.csv" in said.err


def test_a_good_table_needs_no_change(place: Place, dpsynth: Command) -> None:
    table = place.folder / "people.csv"
    person, lines = "person,", table.read_text().splitlines()
    said = dpsynth("check", "config.yaml")
    assert "97 values of person come 300 times: are they persons?" in said.out
    # A row for each person.
    rows = [f"p{number},{line.partition(',')[2]}" for number, line in enumerate(lines[1:])]
    table.write_text("\n".join([lines[0], *rows]) + "\n")
    said = dpsynth("check", "config.yaml")
    assert lines[0].startswith(person) and said.code == 0 and "Nothing to change" in said.out
    assert set(CANARIES) and "What to look at" not in said.out


def test_an_unforeseen_error_withholds_what_it_quotes(
    place: Place, monkeypatch: pytest.MonkeyPatch, dpsynth: Command
) -> None:

    def fail(*_: object) -> None:
        raise ValueError("cell p1 of people.csv")

    monkeypatch.setattr("dpsynth.wings.owner.assess.checking.ColumnTally.add", fail)
    said = dpsynth("check", "config.yaml")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "Error: Step 'check the table' failed: ValueError; details withheld; --debug writes them to a "
        "private file.\n"
    )


@pytest.mark.parametrize("words", ["check config.yaml", "init people.csv --look"])
def test_with_debug_details_are_in_a_file_of_the_owner_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, dpsynth: Command, words: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place.home))
    monkeypatch.setenv("DPSYNTH_DEBUG", "1")

    def fail(*_: object) -> None:
        raise ValueError("cell p1 of people.csv")

    monkeypatch.setattr("dpsynth.wings.owner.assess.checking.ColumnTally.add", fail)
    monkeypatch.setattr("dpsynth.wings.owner.assess.profiling.profile", fail)
    said = dpsynth(*words.split())
    written = Path(said.err.partition("details in ")[2].removesuffix(".\n"))
    assert said.code == 1 and "p1" not in said.err
    assert "cell p1" in written.read_text() and written.stat().st_mode & 0o777 == 0o600
