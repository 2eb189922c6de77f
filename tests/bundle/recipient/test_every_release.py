"""Bundles of every kind of release are verified, asked and extended."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle.recipient import open_bundle
from tests.bundle.recipient.conftest import COLUMNS, released
from tests.seeded_noise import seed_noise

BY_PERSON = {"unit": {"column": "id", "max_rows": 2}}
CODES = {"type": "integer", "min": 0, "max": 89}


def by_unit(**more: object) -> Mapping[str, object]:
    unit = {"column": "id", "max_rows": 2, **more}
    privacy = {"epsilon": 3.0, "delta": 1e-6, "on_empty": "go", "unit": unit}
    return {"privacy": privacy, "structure": {"method": "mst"}}


KINDS: Mapping[str, Mapping[str, object]] = {
    "pure": {"privacy": {"epsilon": 4.0, "noise": "laplace", "on_empty": "go"}},
    "replace one, mst": {
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "neighbours": "replace_one", "on_empty": "go"},
        "structure": {"method": "mst"},
    },
    "persons, zcdp": {
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "accountant": "zcdp", "on_empty": "go", **BY_PERSON}
    },
    "rows, zcdp, Laplace": {
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "noise": "laplace", "accountant": "zcdp"}
    },
    "rows, sequential": {
        "privacy": {"epsilon": 4.0, "delta": 1e-6, "noise": "laplace", "accountant": "sequential"}
    },
    "persons' months": by_unit(per={"column": "seen", "every": "month"}),
    "households": by_unit(kind="household"),
    "events": {"privacy": {"epsilon": 4.0, "unit": "event"}},
    "merged values": {"columns": {**COLUMNS, "age": CODES}},
    "public shares": {
        "public_marginals": [{"columns": ["sex"], "shares": {"F": 0.5, "M": 0.5}}],
        "constraints": [],
    },
    "csv alone, ties": {
        "constraints": ["city determines smoker"],
        "publish": {"formats": ["csv"], "statistics": [{"crosstab": ["sex", "city", "smoker"]}]},
    },
}


def test_a_bundle_whose_search_found_no_value_is_opened_and_good(tmp_path):
    table = pd.DataFrame({"sex": ["F", "M"] * 100, "name": [f"n{i}" for i in range(200)]})
    columns = {"sex": {"type": "category", "values": ["F", "M"]}, "name": {"type": "category", "open": True}}
    keys = {"dataset": "d", "columns": columns, "privacy": {"on_empty": "go"}, "ledger": tmp_path / "l.db"}
    made = dpsynth.release(table, epsilon=1, outputs=tmp_path / "outputs", **keys)
    bundle = open_bundle(made.folder)
    assert {c.name: c.labels for c in bundle.layout.columns}["name"] == ("other", "(missing)")
    assert bundle.verify().good and set(bundle.query("count by name").frame.name) == {"other", "(missing)"}


def test_amounts_in_wide_bounds_have_quantiles(tmp_path, monkeypatch):
    """Bins of some cents begin at one of the steps, which are of tens of units between ends so far apart."""
    seed_noise(monkeypatch, 1)
    pay = np.exp(np.random.default_rng(1).normal(12, 2, 2000)).round(2)
    columns = {"pay": {"type": "number", "min": 0, "max": 10**10, "decimals": 2}}
    keys = {"dataset": "d", "columns": columns, "ledger": tmp_path / "l.db", "outputs": tmp_path / "outputs"}
    publish = {"statistics": [{"quantiles": "pay", "at": [0.5]}]}
    made = dpsynth.release(pd.DataFrame({"pay": pay}), epsilon=3, publish=publish, **keys)
    bundle = open_bundle(made.folder)
    (median,) = bundle.statistics["quantiles of pay"].to_dict("records")
    assert (Path(made.folder) / "public" / "finer_counts.json").exists()
    assert median["low"] <= np.median(pay) <= median["high"] < 1.2 * median["low"]
    assert bundle.verify().good


# Persons, whose columns are measured again, are the kind in which most of the figures come together.
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k == "persons, zcdp" else pytest.mark.slow) for k in KINDS]
)
def test_a_bundle_is_good_answers_questions_and_gives_rows(tmp_path, kind):
    release = released(tmp_path, KINDS[kind])
    bundle = open_bundle(release.folder)
    found = bundle.verify()
    assert found.good, found.findings
    privacy, promised = KINDS[kind].get("privacy", {}), bundle.manifest["guarantee"]
    asked = privacy.get("epsilon", promised["epsilon"])
    assert promised["epsilon"] <= asked and promised["epsilon"] == pytest.approx(asked, rel=1e-6)
    assert promised["accountant"] == privacy.get("accountant", promised["accountant"])
    assert [group["units"] for group in promised["groups"]] == [2, 5, 10, 20]
    assert all(group["epsilon"] > 1.5 * asked for group in promised["groups"])
    assert bundle.rows.seeded(30, 3).equals(release.rows.seeded(30, 3))
    for question in (
        "count by sex",
        "mean(age) by smoker",
        "median(`=pay ü`) where age >= 65 and city == 'Aa'",
    ):
        answer = bundle.query(question)
        assert answer.rows and all(row.rows is not None for row in answer.rows)
    more = bundle.sample(300, given="sex=F", seed=1)
    assert len(more) == 300 and set(more["sex"]) == {"F"}
    if kind.endswith("ties"):
        assert (bundle.sample(300, seed=1).groupby("city")["smoker"].nunique() == 1).all()


def test_a_column_that_a_strategy_measures_like_a_clique_counts_in_the_verdict(tmp_path, monkeypatch):
    seed_noise(monkeypatch, 1)
    privacy = {"epsilon": 1.0, "delta": 1e-6, "on_empty": "go", **BY_PERSON}
    bundle = open_bundle(released(tmp_path, {"privacy": privacy, "structure": {"method": "aim"}}).folder)
    measured = [answer.clique for answer in bundle.answers.singles]
    assert len(set(measured)) < len(measured)
    found = bundle.verify()
    assert found.good, found.findings


@pytest.mark.slow
def test_a_bundle_of_respondents_reports_is_verified_as_far_as_it_can_be(tmp_path, monkeypatch):
    from pathlib import Path

    from dpsynth.config import from_mapping
    from dpsynth.wings.local.aggregating import aggregate
    from dpsynth.wings.local.collecting import Side, collect_file

    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{'FM'[i % 2]},{'no' if i % 3 else 'yes'}\n" for i in range(900))
    Path("records.csv").write_text(f"id,sex,smoker\n{rows}")
    spec = from_mapping(
        {
            "release": "local",
            "trust": "local",
            "privacy": {"epsilon": 3},
            "columns": {key: COLUMNS[key] for key in ("sex", "smoker")},
        }
    )
    collect_file(spec, Path("records.csv"), "id", Side(Path("memory.db"), Path("reports"), ".jsonl", None))
    bundle = open_bundle(aggregate(spec, Path("reports"), Path("outputs")).folder)
    found = bundle.verify()
    assert found.good, found.findings
    assert any("each respondent's own" in sentence for sentence in found.proven)
    answer = bundle.query("count by sex")
    assert answer.interval.startswith("95 %: noise")
    assert all(row.estimate.low <= row.estimate.value <= row.estimate.high for row in answer.rows)
    assert len(bundle.sample(20)) == 20
