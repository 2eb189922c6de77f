"""A table counts in one account, whatever its configurations are called and whichever path leads to it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.release.keeper import Keeper
from tests.release.place import Place
from tests.thinned import some

SMALL = {"structure": {"method": "independent"}, "ledger": {"dataset": None}}


def accounts(place: Place) -> dict[str, list[str]]:
    """The releases of each account."""
    return {a.dataset: [r.release for r in a.releases] for a in place.ledger.balances()}


def test_a_copy_of_a_config_counts_where_its_table_counts(keeper: Keeper, place: Place) -> None:
    for name in ("first", "copy"):
        place.configure(**SMALL, release=name)
        assert keeper.run(place).code == 0
    (place.folder / "link.csv").symlink_to("people.csv")
    (place.folder / "hard.csv").hardlink_to(place.folder / "people.csv")
    for name, path in (
        ("link", "./link.csv"),
        ("hard", "hard.csv"),
        ("url", f"file://{place.folder}/./link.csv"),
    ):
        place.configure(**SMALL, release=name, source={"path": path})
        assert keeper.run(place).code == 0
    assert accounts(place) == {"people": ["first", "copy", "link", "hard", "url"]}
    assert place.ledger.verify().problems == ()


def test_a_copy_of_a_table_has_no_account_that_could_be_found_and_a_note_says_so(
    keeper: Keeper, place: Place
) -> None:
    place.configure(**SMALL)
    assert keeper.run(place).code == 0
    shutil.copy(place.folder / "people.csv", place.folder / "copy.csv")
    place.configure(**SMALL, release="copy", source={"path": "copy.csv"})
    done = keeper.run(place)
    assert (
        done.code == 0 and "If the same people are in one of these, name it with ledger.dataset" in done.err
    )
    assert accounts(place) == {"people": ["people"], "copy": ["copy"]}


@pytest.mark.parametrize(
    ("out", "words"), [("file:///tmp/x", "is a URL"), ("data/outputs", "lies in the private table's folder")]
)
def test_bundles_go_to_a_folder_of_this_machine_outside_of_the_table(
    keeper: Keeper, place: Place, out: str, words: str
) -> None:
    (place.folder / "data").mkdir()
    place.configure(source={"path": "data", "format": "parquet"})
    before = place.files
    for more in ((), ("--rehearse",)):
        refused = keeper.run(place, "--out", out, *more)
        assert refused.code == 2 and words in refused.err, refused
    assert place.files == before


def test_a_second_account_is_refused_and_a_declared_one_is_on_record(keeper: Keeper, place: Place) -> None:
    place.configure(**SMALL)
    assert keeper.run(place).code == 0
    before = place.ledger.rows(), place.files
    second = {"dataset": "others", "other_people": "a new intake of patients"}
    place.configure(structure=SMALL["structure"], ledger={"dataset": "others"})
    refused = keeper.run(place)
    assert refused.code == 2 and "would give the same people a second cap" in refused.err
    assert (place.ledger.rows(), place.files) == before
    place.configure(structure=SMALL["structure"], ledger=second)
    assert keeper.run(place).code == 0
    assert accounts(place) == {"people": ["people"], "others": ["people"]}
    assert place.ledger.balances()[1].releases[0].other_people == second["other_people"]


def test_a_table_that_was_moved_is_asked_about(keeper: Keeper, place: Place) -> None:
    place.configure(**SMALL)
    assert keeper.run(place).code == 0
    (place.folder / "archive").mkdir()
    shutil.move(place.folder / "people.csv", place.folder / "archive" / "people.csv")
    place.configure(**SMALL, release="later", source={"path": "archive/people.csv"})
    refused = keeper.run(place)
    assert refused.code == 2 and "moved or renamed" in refused.err
    place.configure(structure=SMALL["structure"], release="later", source={"path": "archive/people.csv"})
    assert keeper.run(place).code == 0
    assert accounts(place) == {"people": ["people", "later"]}


@pytest.mark.parametrize("change", some([{"ledger": {"dataset": None, "cap": {"epsilon": 5000}}}, {}], 1))
def test_a_plan_says_what_the_release_will_say_of_its_account(
    keeper: Keeper, place: Place, change: dict[str, object]
) -> None:
    place.configure(**SMALL)
    assert keeper.run(place).code == 0
    place.configure(**{**SMALL, **change})
    planned = keeper.call(place, "plan", "config.yaml", "--json")
    notes = json.loads(planned.out)["notes"]
    assert any("the recorded one holds. If it may be raised: dpsynth ledger cap" in n for n in notes) == bool(
        change
    )
    assert "This is a further release, number 2 of dataset 'people'" in notes[-1]
    assert "Note: This configuration was released" in keeper.run(place).err


@pytest.mark.parametrize("most", some(["6", "unknown"], 1))
def test_an_account_of_rows_goes_on_with_persons_and_every_bundle_says_what_came_before(
    keeper: Keeper, place: Place, most: str
) -> None:
    place.configure(**SMALL)
    first = keeper.run(place)
    persons = {"privacy": {"unit": {"column": "person", "max_rows": 4}}}
    place.configure(**SMALL, **persons)
    refused = keeper.run(place)
    assert refused.code == 2 and "dpsynth ledger unit 'people' --config CONFIG" in refused.err
    changing = (
        "ledger",
        "unit",
        "--config",
        "config.yaml",
        "--most-rows",
        most,
        "--reason",
        "a form a month",
    )
    assert keeper.call(place, *changing).code == 0
    said = (
        "nobody has more than 6 rows in any of them, so by group privacy they come to"
        if most == "6"
        else "nothing bounds what they tell of one person: all rows with the same person"
    )
    assert said in keeper.call(place, "plan", "config.yaml").out
    second = keeper.run(place)
    assert second.code == 0
    bundle = place.folder / second.out.splitlines()[-1]
    manifest = json.loads((bundle / "public/manifest.json").read_text())
    assert any(said in sentence for sentence in manifest["guarantee"]["in_words"])
    assert said in (bundle / "public/README.md").read_text() and "a form a month" not in json.dumps(manifest)
    assert keeper.call(place, "verify", str(bundle)).code == 0
    # The bundle from before is what it was, and can be shown again under its own config.
    place.configure(**SMALL)
    again = keeper.run(place, "--resume", Path(first.out.splitlines()[-1]).name)
    assert (again.code, again.out) == (0, first.out)
    assert place.ledger.verify().problems == ()
