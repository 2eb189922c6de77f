"""Whole releases under constraints: no file violates one, and a table that does says nothing."""

import csv
import json
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsynth.errors import ConfigError, DpsynthError, Interrupted
from dpsynth.model import load
from dpsynth.pipeline.steps import Step
from dpsynth.statistics.verdict import CONTRADICTION
from dpsynth.testing import STRATEGIES
from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.place import Place, Row, people, release
from tests.release.stopping import stopped_at
from tests.thinned import some, thinned

COLUMNS: dict[str, object] = {
    "band": {"type": "derived", "formula": "if(age < 40, 'young', 'old')"},
    "spent": {"type": "number", "min": 0, "max": 150, "decimals": 1},
    "rest": {"type": "number", "min": -150, "max": 100, "decimals": 1},
    "code": {"type": "integer", "min": 1, "max": 3},
}
HEADER = ("person", "age", "sex", "income", "city", "smoker", "notes", "spent", "rest", "code")
RULES = [
    "age < 20 implies smoker == smoker and not smoker",
    "city == 'Cc' implies band == 'old'",
    "income >= age / 4 or sex is missing",
    "rest == income - spent",
    "rest <= 50",
    "city <-> code",
]


def rows(count: int, *, good: bool) -> list[Row]:
    """Rows that obey every rule, or of which each violates all that it can."""
    chance, found = random.Random(5), []
    for i, (person, _, sex, _, _, _, note) in enumerate(people(count)):
        age = chance.randrange(40, 90) if good else chance.randrange(8, 20)
        city = chance.choice(("Aa", "Bb", "Cc")) if good else "Cc"
        income = chance.randrange(300, 900) / 10 if good else 1.0
        spent = chance.randrange(0, 900) / 10 + (income - 50 if income > 50 else 0) if good else 140.0
        rest = income - spent if good else 99.9
        code = {"Aa": 2, "Bb": 1, "Cc": 3}[city] if good else 1 + i % 3
        smoker = chance.choice(("no", "yes")) if good else "yes"
        cells = (
            person,
            f"{age}",
            sex,
            f"{income:.1f}",
            city,
            smoker,
            note,
            f"{spent:.1f}",
            f"{rest:.1f}",
            f"{code}",
        )
        found.append(cells)
    return found


def violations(cells: Iterable[dict[str, str]]) -> list[int]:
    """Of each rule, by the texts of the file alone."""
    broken, partner = [0] * 6, [{}, {}]  # type: list[int], list[dict[str, str]]
    for row in cells:
        age, income = int(row["age"]), round(10 * float(row["income"]))
        assert row["band"] == ("young" if age < 40 else "old")
        broken[0] += age < 20 and row["smoker"] == "yes"
        broken[1] += row["city"] == "Cc" and row["band"] != "old"
        broken[2] += bool(row["sex"]) and 4 * income < 10 * age
        if row["rest"] and row["spent"]:
            broken[3] += round(10 * float(row["rest"])) != income - round(10 * float(row["spent"]))
        broken[4] += bool(row["rest"]) and float(row["rest"]) > 50
        if row["city"] != "?" and row["code"]:
            for i, (a, b) in enumerate((("city", "code"), ("code", "city"))):
                broken[5] += partner[i].setdefault(row[a], row[b]) != row[b]
    return broken


def read(public: Path) -> list[dict[str, str]]:
    with (public / "synthetic.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def furnish(place: Place, count: int, *, good: bool, method: str = "mst") -> None:
    place.table(rows(count, good=good), header=HEADER)
    place.configure(columns=COLUMNS, constraints=RULES, structure={"method": method})


@pytest.mark.parametrize(
    ("good", "method"),
    some(
        thinned([True, False], [m for m in STRATEGIES if m not in ("fixed", "aim", "privbayes")], strength=1),
        2,
    ),
)
def test_no_row_of_either_file_violates_a_rule(place: Place, method: str, good: bool) -> None:
    furnish(place, 800, good=good, method=method)
    assert violations(dict(zip(HEADER, row, strict=True)) | {"band": "young" if int(row[1]) < 40 else "old"}
                      for row in rows(800, good=good)) == [0] * 6 or not good  # fmt: skip
    public = release(place).folder / "public"
    written = read(public)
    assert violations(written) == [0] * 6
    typed = pq.read_table(public / "synthetic.parquet")
    for name in ("income", "rest", "spent"):
        of_parquet = [None if v is None else f"{v:.1f}" for v in typed[name].to_pylist()]
        assert of_parquet == [row[name] or None for row in written]
    assert typed["city"].to_pylist() == [None if row["city"] == "?" else row["city"] for row in written]


@pytest.mark.usefixtures("seeded_noise")
def test_rows_without_the_rules_violate_all_of_them(place: Place) -> None:
    """What the other tests would see if nothing were kept."""
    furnish(place, 800, good=False)
    config = json.loads((place.folder / "config.yaml").read_text())
    del config["constraints"]
    (place.folder / "config.yaml").write_text(json.dumps(config))
    broken = violations(read(release(place).folder / "public"))
    assert all(broken), broken


def test_a_table_that_violates_all_rules_neither_fails_nor_speaks(
    keeper: Keeper, place: Place, tmp_path: Path
) -> None:
    """Messages, exit codes and charges are those of a table that obeys, and so is what is asked."""
    told = []
    for good in (True, False):
        here = Place(tmp_path / f"work{good}", tmp_path / f"home{good}")
        here.folder.mkdir()
        here.home.mkdir()
        furnish(here, 800, good=good)
        # What is measured, and at what price, would else follow from noisy answers.
        fixed = {"method": "fixed", "cliques": [["age", "smoker"], ["income", "age"]], "merge_rare": 0}
        # So would the limits of sums, which means are measured by.
        asked = {"statistics": [{"crosstab": ["sex", "city"]}]}
        here.configure(columns=COLUMNS, constraints=RULES, structure=fixed, publish=asked)
        ended = keeper.run(here)
        folder = here.folder / ended.folder
        journal = evidence.records(folder / "private" / "journal.jsonl")
        charges = [r["event"] for r in evidence.charges(journal)]
        assert here.balance is not None
        manifest = json.loads((folder / "public" / "manifest.json").read_text())
        # Warnings and verdicts follow from noisy answers, as tests/guarantee shows; all else is the same.
        judged = manifest["verdict"]["columns"]
        said = [line for line in ended.err.splitlines() if not line.startswith("Note: Column ")]
        out = [line for line in ended.out.splitlines() if not line.startswith("Verdict: ")]
        told.append((ended.code, said, len(out), charges, here.balance.releases[0].cost))
        # A rule that most rows violate bends the table: the release says it of itself.
        assert good == (not any(one["beyond_noise"] > CONTRADICTION for one in judged))
        told[-1] += (manifest["constraints"], manifest["columns"], manifest["guarantee"])
        assert violations(read(folder / "public")) == [0] * 6
    assert told[0] == told[1]


def test_the_rules_stand_in_every_page_and_cells_they_shut_are_zeros_of_the_model(place: Place) -> None:
    furnish(place, 800, good=False)
    public = release(place).folder / "public"
    manifest = evidence.assert_whole(public.parent)
    told = manifest["constraints"]
    assert isinstance(told, dict)
    assert [way["rule"] for way in told["rules"]] == RULES
    assert [way["kept"].split(":")[0] for way in told["rules"]] == [
        "by zeros of the model", "by zeros of the model", "by repair of the rows that violate it",
        "by construction", "by repair of the rows that violate it", "by construction",
    ]  # fmt: skip
    for page in ("README.md", "report.html"):
        text = (public / page).read_text()
        assert "Rules that every row obeys" in text and "never compared with the private table" in text
    model = load(public / "model.npz")
    assert model.marginal(("age", "smoker"))[:2, 1].sum() == 0, "ages 0 to 19 don't smoke"
    assert np.isclose(model.total, model.marginal(("age",)).sum())


@pytest.mark.usefixtures("seeded_noise")
def test_groups_of_merged_values_are_shut_only_as_a_whole(place: Place) -> None:
    """Ages up to 29 may not smoke; merged with others they may, as groups, and no row does."""
    chance = random.Random(1)
    place.table([(r[0], "35" if chance.random() < 0.9 else r[1], *r[2:]) for r in people(2000)])
    place.configure(
        columns={"age": {"bins": 90}, "income": {"bins": 50}},
        constraints=["age < 30 implies not smoker"],
        structure={"method": "mst"},
    )
    public = release(place).folder / "public"
    model = load(public / "model.npz")
    merged = evidence.assert_whole(public.parent)["structure"]["merged_values"]["columns"]  # type: ignore[index]
    assert "age" in merged and any("groups" in c for c in model.tree.domain.columns)
    found = read(public)
    assert not [row for row in found if int(row["age"]) < 30 and row["smoker"] == "yes"]
    assert [row for row in found if int(row["age"]) >= 30 and row["smoker"] == "yes"]


def test_a_resumed_release_has_to_have_the_same_rules(place: Place) -> None:
    furnish(place, 300, good=True)

    stopped = stopped_at(Step.PUBLISH, Interrupted("Stopped by the test."))
    with stopped, pytest.raises(Interrupted):
        release(place)
    (left,) = {p.split("/")[1] for p in place.files}
    place.configure(columns=COLUMNS, constraints=RULES[:-1], structure={"method": "mst"})
    with pytest.raises(ConfigError):
        release(place, resume=left.removesuffix(".partial"))


FOUND: dict[str, object] = {
    "income": {"min": None, "max": None, "bounds": "private", "bins": 10, "missing": True},
    "city": {
        "type": "category",
        "values": None,
        "open": True,
        "most": 30,
        "other": "elsewhere",
        "missing": "?",
    },
}


@pytest.mark.usefixtures("seeded_noise")
def test_rules_hold_for_values_that_were_found(place: Place) -> None:
    place.table(people(3000))
    rules = ["income >= age / 2", "city == 'Aa' implies not smoker", "city <-> sex"]
    place.configure(privacy={"epsilon": 3.0}, columns=FOUND, constraints=rules)
    found = read(release(place).folder / "public")
    assert all(2 * float(row["income"]) >= int(row["age"]) for row in found if row["income"])
    assert not [row for row in found if row["city"] == "Aa" and row["smoker"] == "yes"]
    pairs = {(row["city"], row["sex"]) for row in found if row["city"] != "?" and row["sex"]}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 2


@pytest.mark.usefixtures("seeded_noise")
def test_rules_that_no_value_found_obeys_end_the_release_in_plain_words(place: Place) -> None:
    place.table(people(3000))
    place.configure(privacy={"epsilon": 3.0}, columns=FOUND, constraints=["age < 80", "income > 100000"])
    with pytest.raises(DpsynthError, match=r"No row was found that obeys the constraints 'income > 100000'"):
        release(place)
