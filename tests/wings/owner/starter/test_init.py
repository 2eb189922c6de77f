"""The command: what it reads, what it says, what it writes, and that nothing unreviewed is run."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from dpsynth.errors import StepFailed
from dpsynth.wings.owner.assess import profiling as guessing
from dpsynth.wings.owner.assess.value_guesses import FEWEST_UNITS
from dpsynth.wings.owner.starter import FORMATS, Draft, draft_of
from dpsynth.wings.owner.starter.sketch import DESCRIBED, LOOKED
from tests.wings.owner.starter import described
from tests.wings.owner.starter.reviewing import taken_over, to_review, without_list

CANARY = "K4N4RY"


def table(folder, rows, name="visits.csv"):
    path = folder / name
    path.write_text("age,city,name\n" + "".join(f"{row}\n" for row in rows))
    return path


def people(extra=()):
    cities = ["Oslo", "Bergen", "Molde"]
    return [*(f"{20 + i % 60},{cities[i % 3]},person {i}" for i in range(90)), *extra]


def test_a_header_alone_gives_a_starter_and_no_other_file(dpsynth, tmp_path):
    table(tmp_path, people())
    done = dpsynth("init", "visits.csv")
    assert done.out.splitlines() == ["visits.yaml"]
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "visits.yaml"}
    assert "The header of visits.csv was read, its first line. No row of the table was read." in done.err
    text = (tmp_path / "visits.yaml").read_text()
    assert text.startswith("# Started by `dpsynth init visits.csv`.") and "$schema" not in text
    assert set(taken_over(text)) == {"age", "city", "name"}


def test_neither_plan_nor_run_takes_a_starter_before_its_list_is_empty(dpsynth, tmp_path):
    table(tmp_path, people())
    dpsynth("init", "visits.csv", "--look", "--out", "looked.yaml")
    for command in (["plan", "looked.yaml"], ["run", "looked.yaml", "--plain"], ["run", "looked.yaml"]):
        done = dpsynth(*command, code=2)
        assert "review still lists privacy, columns.age, columns.city, columns.name." in done.err
    assert not (tmp_path / "outputs").exists() and not (tmp_path / "ledger.db").exists()
    text = (tmp_path / "looked.yaml").read_text()
    assert to_review(text) == ["privacy", "columns.age", "columns.city", "columns.name"]
    (tmp_path / "looked.yaml").write_text(text[: text.index("review:")])
    assert "3 columns of dataset visits" in dpsynth("plan", "looked.yaml").out


def test_a_constant_column_is_left_out_of_all_lists(dpsynth, tmp_path):
    (tmp_path / "visits.csv").write_text("age,ward\n" + "".join(f"{20 + i % 60},0\n" for i in range(90)))
    dpsynth("init", "visits.csv", "--look")
    text = (tmp_path / "visits.yaml").read_text()
    assert list(taken_over(text)) == ["age"] and to_review(text) == ["privacy", "columns.age"]
    (tmp_path / "visits.yaml").write_text(without_list(text))
    assert "columns of dataset visits" in dpsynth("plan", "visits.yaml").out


def test_a_look_says_what_it_means_and_guesses_are_for_the_owners_eyes(dpsynth, tmp_path):
    table(tmp_path, people())
    done = dpsynth("init", "visits.csv", "--look")
    assert "All rows of visits.csv were read." in done.err
    assert "so it is a private fact" in done.err and "keep this file as you keep the table" in done.err
    path = tmp_path / "visits.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert taken_over(path.read_text()) == {
        "age": {
            "type": "integer",
            "min": 0,
            "max": 70,
            "missing": False,
            "expected": {"last": Decimal("0.15")},
        },
        "city": {
            "type": "category",
            "values": ["Bergen", "Molde", "Oslo"],
            "missing": False,
            "expected": {"default": Decimal("0.35")},
        },
        "name": {"type": "identifier"},
    }


@pytest.fixture
def printed(dpsynth, tmp_path):
    """What a look at a table of some rows prints."""
    dpsynth("example", "minimal", "--folder", tmp_path)

    def run(rows):
        (tmp_path / "visits.yaml").unlink(missing_ok=True)
        table(tmp_path, rows)
        return dpsynth("init", "visits.csv", "--look")

    return run


def test_nothing_that_is_printed_depends_on_a_cell(printed):
    usual = printed(people())
    for extra in (
        [f"{CANARY},{CANARY},{CANARY}"],
        ["1e999,,"],
        [f'99,"{CANARY},broken'],
        ["too,many,cells,here"],
        [f"{'9' * 5000},\x00,\ufffd"],
        [f"{i},{CANARY}{i},x" for i in range(300)],
    ):
        assert printed(people(extra)) == usual
    assert printed([]) == usual
    assert CANARY not in usual.out + usual.err


def test_a_print_of_what_was_guessed_is_caught(printed, monkeypatch):
    monkeypatch.setattr(Draft, "summary", lambda self: tuple(str(sketch.declared) for sketch in self.columns))
    assert printed(people()) != printed(people([f"{CANARY},{CANARY},{CANARY}"]))


def test_a_failure_while_looking_withholds_what_it_quotes(tmp_path, monkeypatch):
    def quoting(*_):
        raise ValueError(CANARY)

    path = table(tmp_path, people())
    monkeypatch.setattr(guessing, "profile", quoting)
    with pytest.raises(StepFailed) as raised:
        guessing.look_at(str(path), "csv", ["age"])
    assert CANARY not in str(raised.value)
    assert raised.value.__cause__ is None and raised.value.__context__ is None


def test_only_columns_with_gaps_are_looked_at(tmp_path):
    path = table(tmp_path, people())
    (tmp_path / "d.json").write_text('{"age": 90, "name": 3}')
    draft = draft_of(tmp_path / "d.json", table=path)
    assert draft.to_look_at == ("city",)
    assert guessing.look_at(draft.table, draft.form, draft.to_look_at).columns.keys() == {"city"}


def test_a_look_at_no_table_is_refused(dpsynth, tmp_path):
    (tmp_path / "d.json").write_text(described.HOTEL_METADATA)
    assert "--look needs the table" in dpsynth("init", "d.json", "--look", code=2).err
    assert "There is no file visits.csv" in dpsynth("init", "visits.csv", code=4).err
    assert not list(tmp_path.glob("*.yaml"))


def test_a_file_that_is_there_is_kept_and_the_table_is_not_looked_at_first(dpsynth, tmp_path):
    (tmp_path / "visits.yaml").write_text("mine")
    table(tmp_path, people())
    done = dpsynth("init", "visits.csv", "--look", code=2)
    assert "There is a file visits.yaml already, and it is kept." in done.err
    assert "All rows" not in done.err
    assert (tmp_path / "visits.yaml").read_text() == "mine"


def test_a_starter_can_be_printed_and_nothing_else_is_then(dpsynth, tmp_path):
    (tmp_path / "domain.json").write_text(described.MBI_DOMAIN)
    done = dpsynth("init", "domain.json", "--out", "-")
    assert taken_over(done.out) == described.MBI_DECLARED
    assert {path.name for path in tmp_path.iterdir()} == {"domain.json"}


@pytest.mark.parametrize("place", ["dpsynth.schema.json", "schemas/dpsynth.schema.json"])
def test_a_schema_that_someone_has_printed_is_named_in_the_starter(dpsynth, tmp_path, place):
    table(tmp_path, people())
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(dpsynth("schema").out)
    assert json.loads((tmp_path / place).read_text())["properties"]["review"]
    dpsynth("init", "visits.csv")
    head = (tmp_path / "visits.yaml").read_text().splitlines()[0]
    assert head == f"# yaml-language-server: $schema={place}"


def test_the_schema_of_a_checkout_is_named(dpsynth, tmp_path):
    dpsynth("example", "minimal", "--folder", tmp_path)
    table(tmp_path, people())
    done = dpsynth("init", "visits.csv", "--out", "configs/visits.yaml")
    assert done.out.splitlines() == ["configs/visits.yaml"]
    head = (tmp_path / "configs" / "visits.yaml").read_text().splitlines()[0]
    assert head == "# yaml-language-server: $schema=../schemas/dpsynth.schema.json"


def test_a_folder_that_cannot_be_written_is_one_plain_error(dpsynth, tmp_path):
    table(tmp_path, people())
    done = dpsynth("init", "visits.csv", "--out", "absent/visits.yaml", code=1)
    assert (
        done.err.splitlines()[-1] == "Error: absent/visits.yaml can't be written: No such file or directory."
    )


PAGE = Path(__file__).parents[4] / "docs" / "starting.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation stands in a checkout")
def test_the_documentation_names_every_format_and_says_what_the_command_says():
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in FORMATS)
    assert LOOKED in page and DESCRIBED in page
    assert f"from what {FEWEST_UNITS} rows reach, or {FEWEST_UNITS} persons" in LOOKED
