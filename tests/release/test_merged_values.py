"""A release that merges rare values: which ones follows from published answers, and rows have values."""

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.config.structure import METHODS
from dpsynth.model import load
from dpsynth.model.rare_values import Numbers, rare_groups
from dpsynth.pipeline.result import Release
from tests.release import evidence
from tests.release.place import Place, people, release
from tests.thinned import some, thinned

pytestmark = pytest.mark.usefixtures("seeded_noise")
COLUMNS = {"age": {"bins": 90}, "income": {"bins": 50}}


@pytest.fixture
def skewed(place: Place) -> Place:
    """A table of 2000 rows of which four in five have one of four ages."""
    chance = random.Random(3)
    rows = [
        (row[0], chance.choice(("30", "31", "40", "50")) if chance.random() < 0.8 else row[1], *row[2:])
        for row in people(2000)
    ]
    place.table(rows)
    place.configure(columns=COLUMNS, structure={"method": "mst"})
    return place


def metadata(public: Path) -> dict[str, object]:
    found = pq.read_table(public / "measurements.parquet").schema.metadata
    return {
        key.decode().removeprefix("dpsynth."): json.loads(found[key]) for key in found if b"format" not in key
    }


def published(public: Path) -> list[Measurement]:
    """Each measurement, put together from the file alone."""
    table = pq.read_table(public / "measurements.parquet")
    found = []
    for number, m in enumerate(metadata(public)["measurements"]):  # type: ignore[arg-type, var-annotated]
        cells = table.filter(np.asarray(table["measurement"]) == number)
        values = np.zeros(m["shape"], dtype=np.int64)
        for codes, value in zip(cells["codes"].to_pylist(), cells["value"].to_pylist(), strict=True):
            values[tuple(codes)] = value
        found.append(Measurement(tuple(m["columns"]), values, m["noise"], m["scale"]))
    return found


def questions(done: Release) -> list[dict[str, object]]:
    journal = evidence.records(done.folder / "private" / "journal.jsonl")
    return [dict(r["question"]) for r in evidence.charges(journal)]  # type: ignore[call-overload]


def _together(question: dict[str, object]) -> bool:
    columns = question.get("columns")
    return question["ask"] == "marginal" and isinstance(columns, list) and len(columns) > 1


def test_what_is_merged_follows_from_published_answers_by_the_rule_in_the_config(skewed: Place) -> None:
    done = release(skewed)
    public = done.folder / "public"
    facts = metadata(public)
    sizes = {c["name"]: len(c["labels"]) for c in facts["columns"]}  # type: ignore[attr-defined]
    singles = [m for m in published(public) if len(m.clique) < 2]
    manifest = evidence.assert_whole(done.folder)
    least = manifest["structure"]["merged_values"]["below_rows"]  # type: ignore[index]
    rows = next(float(m.values) for m in singles if not m.clique)
    merged = [m for m in singles if not {"sex", "city", "income"} & set(m.clique)]
    again = rare_groups(Domain(sizes), merged, least, numbers=Numbers({"age"}, {"age"}, rows))
    groups = {c: g.tolist() for c, g in again.groups.items()}
    # Columns of requested pairs keep their values, though most of income's are rare.
    assert groups == facts["groups"] and "age" in groups and not {"sex", "city", "income"} & set(groups)
    assert len(set(groups["age"])) < 30
    digest = Compression({c: np.array(g) for c, g in groups.items()}).digest
    asked = questions(done)
    # Sums, and columns that are measured once more, are of values.
    by_group = [q for q in asked if q["ask"] in {"choose", "errors"} or _together(q)]
    assert {q.get("grouping") for q in by_group} == {digest}
    assert not any("grouping" in q for q in asked[: 1 + len(sizes)])


def test_marginals_are_published_by_group_as_they_were_answered(skewed: Place) -> None:
    done = release(skewed)
    public = done.folder / "public"
    facts = metadata(public)
    journal = evidence.records(done.folder / "private" / "journal.jsonl")
    assert evidence.published_answers(public) == evidence.answers(journal)
    by_group = [m for m in facts["measurements"] if m["by_group"]]  # type: ignore[attr-defined]
    assert by_group and all("age" in m["columns"] and m["by_group"] == ["age"] for m in by_group)
    manifest = evidence.assert_whole(done.folder)
    (merged,) = manifest["structure"]["merged_values"]["columns"].values()  # type: ignore[index]
    held = merged["held_together"]
    assert merged["values"] == 90 == sum(map(len, held)) + merged["groups"] - len(held)


def test_rows_and_statistics_are_of_values_and_rare_ones_keep_their_share(skewed: Place) -> None:
    done = release(skewed)
    ages = done.synthetic["age"].astype(int)
    frequent = ages.isin([30, 31, 40, 50]).mean()
    assert abs(frequent - 0.8) < 0.05 and ages.nunique() > 20
    assert tuple(done.synthetic.columns) == ("age", "sex", "income", "city", "smoker")
    assert done.tables["age"].table.num_rows == 90
    assert all(s.measured for s in done.tables.values())


@pytest.mark.parametrize("structure", some([{"merge_rare": 0}, {"method": "independent"}], 1))
def test_nothing_is_merged_where_that_is_off_or_has_no_use(
    skewed: Place, structure: dict[str, object]
) -> None:
    skewed.configure(columns=COLUMNS, structure=structure)
    done = release(skewed)
    assert metadata(done.folder / "public")["groups"] == {}
    assert not any("grouping" in q for q in questions(done))
    manifest = evidence.assert_whole(done.folder)
    assert manifest["structure"]["merged_values"]["why"] == "No values were merged."  # type: ignore[index]


PAIRS = thinned(sorted(METHODS), ("gaussian", "laplace"), strength=1)


@pytest.mark.parametrize(("method", "noise"), some(PAIRS, 1))
def test_every_method_publishes_what_it_was_answered_over_groups(
    skewed: Place, method: str, noise: str
) -> None:
    structure = {"method": method} | ({"cliques": [["age", "city", "smoker"]]} if method == "fixed" else {})
    privacy = {"noise": noise, "delta": 1e-6 if noise == "gaussian" else None}
    skewed.configure(columns=COLUMNS, structure=structure, privacy=privacy)
    done = release(skewed)
    journal = evidence.records(done.folder / "private" / "journal.jsonl")
    answers = sorted(evidence.answers(journal))
    assert sorted(evidence.published_answers(done.folder / "public")) == answers
    evidence.assert_whole(done.folder)
    assert done.synthetic["age"].astype(int).isin([30, 31, 40, 50]).mean() > 0.6


@pytest.mark.parametrize("method", some(["auto", "mst", "aim", "one_shot", "privbayes"], 1))
def test_the_model_that_is_published_keeps_to_its_bound_groups_and_values_and_all(
    skewed: Place, method: str
) -> None:
    skewed.configure(columns=COLUMNS, structure={"method": method, "max_model_mb": 0.03})
    done = release(skewed)
    assert load(done.folder / "public" / "model.npz").tree.cells <= 3750
    assert metadata(done.folder / "public")["groups"]


def test_codes_that_are_declared_as_integers_keep_what_follows_from_them(place: Place) -> None:
    """Planted: stations are merged with their neighbours, and most synthetic ones lie in another district."""
    chance = np.random.default_rng(0)
    districts = chance.permutation(40) % 8
    stations = chance.choice(40, 20_000, p=chance.dirichlet(np.full(40, 2.0)))
    rows = zip(stations.tolist(), districts[stations].tolist(), chance.integers(0, 90, 20_000), strict=True)
    place.table(rows, header=("station", "district", "age"))
    columns = {"station": (0, 39), "district": (0, 7), "age": (0, 89)}
    place.configure(
        privacy={"epsilon": 0.3},
        columns=dict.fromkeys(("sex", "income", "city", "smoker"))
        | {c: {"type": "integer", "min": low, "max": high} for c, (low, high) in columns.items()},
        publish=None,
        structure={"method": "auto"},
    )
    made = pd.read_csv(release(place).folder / "public" / "synthetic.csv")
    assert (districts[made["station"]] == made["district"]).mean() > 0.9
