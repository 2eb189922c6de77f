"""Questions in words of linked tables: what they mean, what answers them, and how far off that may be."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle.recipient import Bundle
from dpsynth.bundle.recipient.query import QuestionRefused
from tests.cli.here import Command
from tests.seeded_noise import seed_noise

from .conftest import street
from .linked import TABLES, frames
from .test_wide_rows import wide_of

PERSONS, HOMES, TRIPS, CARS = "persons", "households", "trips", "cars"


@pytest.fixture(scope="module")
def bundle(linked: Path) -> Bundle:
    return dpsynth.open_bundle(linked)


@pytest.fixture(scope="module")
def whole(bundle: Bundle) -> dict[str, pd.DataFrame]:
    """The synthetic tables, each with the columns of those above, and what is counted of those below."""
    homes, persons, trips, cars = (bundle.tables[name].copy() for name in (HOMES, PERSONS, TRIPS, CARS))
    own = persons.set_index(["house", "number"])
    made = trips.groupby(["house", "number"]).size()
    persons["trips"] = made.reindex(own.index, fill_value=0).to_numpy()
    by_home = persons.groupby("house")
    homes["persons"] = by_home.size().reindex(homes.house, fill_value=0).to_numpy()
    homes["cars"] = cars.groupby("home").size().reindex(homes.house, fill_value=0).to_numpy()
    homes["youngest"] = by_home.age.min().reindex(homes.house).to_numpy()
    homes["mean"] = by_home.age.mean().reindex(homes.house).to_numpy()
    homes["bus"] = homes.house.isin(trips.house[trips["mode"] == "bus"])
    busy = persons[persons.trips > 1].groupby("house").size()
    homes["busy"] = busy.reindex(homes.house, fill_value=0).to_numpy()
    homes["old"] = homes.youngest >= 40
    persons = persons.merge(homes, on="house")
    cars = cars.merge(homes[["house", "old"]], left_on="home", right_on="house")
    cars["year"] = cars["born in"].astype("datetime64[ns]").dt.year
    trips = trips.merge(persons.drop(columns="trips"), on=["house", "number"])
    return {HOMES: homes, PERSONS: persons, TRIPS: trips, CARS: cars}


def figure(bundle: Bundle, question: str) -> tuple[float, str]:
    (row,) = bundle.query(question).rows
    return row.estimate.value, row.basis


COUNTED = [
    ("share(households) where count(persons.age < 18) >= 2", lambda w: (w[HOMES].minors >= 2).mean()),
    ("share(households) where minors >= 2", lambda w: (w[HOMES].minors >= 2).mean()),
    ("count(households) where has_adult == 'yes'", lambda w: (w[HOMES].has_adult == "yes").sum()),
    ("count(households) where any(trips.mode == 'bus')", lambda w: w[HOMES].bus.sum()),
    ("count(households) where not any(trips.mode == 'bus')", lambda w: (~w[HOMES].bus).sum()),
    ("share(households) where min(persons.age) < 10", lambda w: (w[HOMES].youngest < 10).mean()),
    (
        "mean(households.rent) where mean(persons.age) > 50",
        lambda w: w[HOMES].rent[w[HOMES]["mean"] > 50].mean(),
    ),
    (
        "share(households) where count(count(trips) > 1 and persons.age >= 0) > 1",
        lambda w: (w[HOMES].busy > 1).mean(),
    ),
    ("share(households) where max(persons.age) is missing", lambda w: (w[HOMES].persons == 0).mean()),
    ("count(persons) where age < 18", lambda w: (w[PERSONS].age < 18).sum()),
    ("count(persons) where number == 2", lambda w: (w[PERSONS].number == 2).sum()),
    (
        "mean(persons.age) where households.region == 'N'",
        lambda w: w[PERSONS].age[w[PERSONS].region == "N"].mean(),
    ),
    ("sum(persons.age) where count(persons) >= 3", lambda w: w[PERSONS].age[w[PERSONS].persons >= 3].sum()),
    ("quantile(persons.age, 0.9)", lambda w: w[PERSONS].age.quantile(0.9, interpolation="higher")),
    (
        "share(trips) where minors > 0 and mode == 'walk'",
        lambda w: ((w[TRIPS].minors > 0) & (w[TRIPS]["mode"] == "walk")).mean(),
    ),
    ("mean(households.minors)", lambda w: w[HOMES].minors.mean()),
    ("sum(households.cars_age)", lambda w: w[CARS].age.sum()),
    ("share(households) where cars_age >= 5", lambda w: (w[HOMES].cars_age >= 5).mean()),
    (
        "share(persons) where newest >= '2010-01-01'",
        lambda w: (pd.to_datetime(w[PERSONS].newest, format="%d.%m.%Y") >= "2010-01-01").mean(),
    ),
    (
        "count(trips) where persons.age < 18 and persons.number > 2",
        lambda w: ((w[TRIPS].age < 18) & (w[TRIPS].number > 2)).sum(),
    ),
    (
        "count(cars) where `born in` < '2010-01-01' and min(persons.age) >= 40",
        lambda w: (w[CARS].old & (w[CARS].year < 2010)).sum(),
    ),
    (
        "count(cars) where year(cars.`born in`) == 2003 and min(persons.age) >= 40",
        lambda w: (w[CARS].old & (w[CARS].year == 2003)).sum(),
    ),
]


@pytest.mark.parametrize(("question", "wanted"), COUNTED)
def test_what_is_counted_in_the_tables_is_what_pandas_counts(bundle, whole, question, wanted):
    found, basis = figure(bundle, question)
    assert basis == "synthetic"
    assert math.isclose(found, float(wanted(whole)), rel_tol=1e-9), question


def test_a_number_from_rows_alone_has_no_interval_and_says_so(bundle):
    answer = bundle.query(COUNTED[0][0])
    assert all(math.isnan(end) for row in answer.rows for end in (row.estimate.low, row.estimate.high))
    assert answer.interval.startswith("None: the number is counted in the synthetic tables.")
    assert "None: the number is counted" in repr(answer)
    assert any(name in answer.verdict for name in ("persons_1_age", "persons_2_age", "persons_other_age"))


def test_groups_are_columns_of_the_row_or_of_those_above_or_computed(bundle, whole):
    homes, persons, trips, _ = whole.values()
    for question, wanted in (
        ("count(persons) by sex where age >= 0", persons.groupby(persons.sex.astype(str)).size()),
        ("count(trips) by persons.sex, mode", trips.groupby([trips.sex.astype(str), "mode"]).size()),
        ("mean(persons.age) by households.region", persons.groupby("region").age.mean()),
        ("count(households) by has_adult", homes.groupby("has_adult").size()),
        ("count(households) by minors", homes.groupby("minors").size()),
        ("count(households) by count(persons)", homes.groupby("persons").size()),
        ("share(persons) by number", persons.groupby("number").size() / len(persons)),
        ("share(persons) by region where age < 18", (persons.age < 18).groupby(persons.region).mean()),
    ):
        answer = bundle.query(question)
        assert {row.basis for row in answer.rows} == {"synthetic"}
        found = {row.labels: row.estimate.value for row in answer.rows if "(missing)" not in row.labels}
        given = {k if isinstance(k, tuple) else (k,): v for k, v in wanted.items()}
        given = {tuple(map(str, k)): v for k, v in given.items() if "nan" not in map(str, k)}
        assert found.keys() == given.keys(), question
        assert all(math.isclose(found[k], given[k], rel_tol=1e-9) for k in given), question


# --- by columns of the wide table ---


def test_a_question_about_the_root_is_one_about_the_table_beside(bundle):
    for own, wide in (
        ("count(households) by region", "count by region"),
        ("share(households) where count(persons) >= 2", "share(persons >= 2)"),
        ("mean(households.rent) by region", "mean(rent) by region"),
        ("median(households.rent) where persons >= 2", "median(rent) where persons >= 2"),
        ("share(households) by persons", "share by persons"),
        ("share(households) by region where any(cars)", "share(cars >= 1) by region"),
        ("mean(households.persons)", "mean(persons)"),
    ):
        mine, theirs = bundle.query(own), bundle.query(wide)
        assert [(r.labels, r.estimate, r.rows, r.basis) for r in mine.rows] == [
            (r.labels, r.estimate, r.rows, r.basis) for r in theirs.rows
        ]
        assert (mine.interval, mine.verdict) == (theirs.interval, theirs.verdict)
        assert mine.question.written == own


def test_rows_in_all_places_are_put_together_and_so_are_their_errors(bundle):
    answer = bundle.query("count(cars) by age")
    first, second = (
        bundle.query(f"count by cars_{i}_age where cars_{i}_age is not missing").rows for i in (1, 2)
    )
    assert len(answer.rows) == 10 and {row.basis for row in answer.rows} == {"measured"}
    for row, one, other in zip(answer.rows, first, second, strict=True):
        assert row.labels == one.labels == other.labels
        assert math.isclose(row.estimate.value, one.estimate.value + other.estimate.value, abs_tol=1e-6)
        width = sum(e.high - e.value for e in (one.estimate, other.estimate))
        assert math.isclose(row.estimate.high - row.estimate.value, width, rel_tol=0.05)
    mean = bundle.query("mean(cars.age)").rows[0].estimate
    parts = [bundle.query(f"mean(cars_{i}_age)").rows[0] for i in (1, 2)]
    together = sum(p.estimate.value * p.rows for p in parts) / sum(p.rows for p in parts)
    assert math.isclose(mean.value, together, rel_tol=1e-6) and mean.low < mean.value < mean.high


def test_rows_without_columns_of_their_own_are_counted_by_their_numbers(bundle):
    by_number = {int(r.labels[0]): r.estimate.value for r in bundle.query("count by persons").rows}
    found = bundle.query("count(persons)").rows[0]
    assert found.basis == "measured"
    assert math.isclose(found.estimate.value, sum(min(n, 5) * v for n, v in by_number.items()), rel_tol=1e-9)
    shares = bundle.query("share(persons) by region").rows
    assert math.isclose(sum(row.estimate.value for row in shares), 1)


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        ("count(households)", lambda g: len(g[HOMES])),
        ("count(persons)", lambda g: g[PERSONS].groupby("house").size().clip(upper=5).sum()),
        ("count(cars)", lambda g: len(g[CARS])),
        (
            "share(households) where count(persons) >= 3",
            lambda g: (g[PERSONS].groupby("house").size() >= 3).sum() / 700,
        ),
        ("count(cars) where age >= 5", lambda g: (g[CARS].age >= 5).sum()),
        ("mean(cars.age)", lambda g: g[CARS].age.mean()),
        ("share(cars) where cars.age == 0", lambda g: (g[CARS].age == 0).mean()),
        ("share(households) where any(cars)", lambda g: g[CARS].home.nunique() / 700),
    ],
)
def test_the_private_figure_is_within_half_again_the_interval(bundle, question, truth):
    """By noise that is the same each time: one interval in twenty doesn't hold it, one in 300 by so far."""
    (row,) = bundle.query(question).rows
    assert row.basis == "measured"
    reach = max(row.estimate.high - row.estimate.value, row.estimate.value - row.estimate.low)
    assert abs(truth(street()[1]) - row.estimate.value) <= 1.5 * reach
    assert row.estimate.high - row.estimate.low < row.estimate.value


# --- what can't be asked ---


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("count(trip)", r"'trip' is no table \(did you mean 'trips'"),
        ("mean(house.age)", "'house' is no table .*Those are: households, persons, trips, cars"),
        (
            "mean(persons.agee)",
            "'agee' is no column of persons .did you mean 'age'.*Those are: age, sex, trips, number",
        ),
        ("count(persons) by rentt", "'rentt' is no column of households and persons .did you mean 'rent'"),
        (
            "mean(persons.age) where trips.mode == 'bus'",
            "'trips.mode' is of other rows than those of persons. Write",
        ),
        ("count(persons) where sex == 'x'", "compares 'persons.sex' with 'x', which is none of its values"),
        ("count(persons) where age == 'x'", "The condition compares a number with a text"),
        ("count(persons) where age", "The condition comes to a number; it must be a comparison"),
        ("share(persons)", "share needs a condition or groups, such as share.persons. where"),
        ("mean(persons.sex)", "mean can't be made of 'persons.sex': its values are not numbers"),
        (
            "mean(age) where persons.age > 3",
            "doesn't say what it measures of which table. A question about tables",
        ),
        ("count(persons.age)", "doesn't say what it measures"),
        ("mean(persons.age, households.rent)", "doesn't say what it measures"),
        ("mean(persons.age", "The question has the end where , or . should stand. A question about tables"),
        ("quantile(persons.age, 2)", "quantile needs a column and a level"),
        ("count(persons) by sex, sex", "names a column twice after by"),
        (
            "share(households) where count(households.region == 'N') > 1",
            "count must be about columns of one table below",
        ),
        ("share(households) where count(rent > 1) > 1", "count must be about columns of one table below"),
        ("share(households) where max(persons) > 1", "max must be about columns"),
        (
            "share(households) where count(persons.age > cars.age) > 1",
            "count must be about columns of one table below",
        ),
        ("share(households) where max(persons.sex) > 1", "max is of numbers, and here of a text"),
        ("share(households) where any(persons.age > 9) > 1", "compares a truth with a number"),
        ("share(households) where count(persons.age + 'x' > 1) > 1", "uses '.' on number, text"),
    ],
)
def test_what_can_not_be_asked_is_refused_in_words_of_the_tables(bundle, question, words):
    with pytest.raises(QuestionRefused, match=words):
        bundle.query(question)


def test_questions_about_the_table_beside_stay_as_they_are(bundle):
    assert bundle.query("mean(persons)").rows[0].basis == "measured"
    assert bundle.query("count where persons_1_age >= 18 and persons >= 2").rows[0].basis in (
        "measured",
        "model",
    )
    with pytest.raises(QuestionRefused, match="'rentt' after mean is no column that the model holds"):
        bundle.query("mean(rentt)")


def test_the_owners_rules_hold_for_these_questions_too(bundle):
    def ruled(**rules: object) -> Bundle:
        return Bundle(bundle.folder, bundle.facts.model_copy(update=rules))

    for question in (
        "count(persons) by sex where age < 18",
        "count(cars) by age",
        "count(households) by persons",
    ):
        shown = bundle.query(question)
        least = 1 + int(np.median([row.rows for row in shown.rows]))
        few = ruled(minimum_set_size=least)
        kept = few.query(question)
        assert [row.basis == "withheld" for row in kept.rows] == [row.rows < least for row in shown.rows]
        assert {row.basis for row in kept.rows} > {"withheld"}
    assert dataclasses.asdict(few.query("count(persons)").question)["measure"] == "count"


def test_a_bundle_without_parquet_answers_alike(bundle, linked, tmp_path):
    import shutil

    public = Path(
        shutil.copytree(linked, tmp_path / "public", ignore=shutil.ignore_patterns("synthetic.parquet"))
    )
    plain = dpsynth.open_bundle(public)
    for question, _ in COUNTED[::4]:
        assert figure(plain, question) == figure(bundle, question)


def test_the_command_line_answers(linked: Path, dpsynth: Command) -> None:
    done = dpsynth("query", str(linked), "share(households) where count(persons.age < 18) >= 2")
    assert done.code == 0 and done.out.splitlines()[0].split() == ["estimate", "low", "high", "rows", "basis"]
    told = json.loads(dpsynth("query", str(linked), "count(cars) by cars.age", "--json").out)
    assert told["by"] == ["cars.age"] and told["rows"][0]["group"] == {"cars.age": "0"}
    refused = dpsynth("query", str(linked), "mean(person.age)")
    assert refused.code == 2 and refused.err.startswith(
        "Error: 'person' is no table (did you mean 'persons'?)"
    )


def test_rows_of_a_third_table_are_counted_with_limits(tmp_path, monkeypatch):
    seed_noise(monkeypatch, 5)
    given, wide = frames(500), wide_of(frames(500), TABLES)
    released = dpsynth.release(
        given, tables=TABLES, epsilon=9, dataset="homes", ledger=tmp_path / "l.db", outputs=tmp_path / "out"
    )
    found = released.query("count(trips) where mode == 'bus'").frame.iloc[0]
    modes = [column for column in wide.names if column.endswith("_mode")]
    true = sum(batch[c].to_pylist().count("bus") for batch in wide.batches(modes) for c in modes)
    assert found.basis == "measured" and found.low <= true <= found.high


def test_tables_and_columns_of_any_names_are_asked(monkeypatch, tmp_path):
    seed_noise(monkeypatch, seed=4)
    digit, letter = {"type": "integer", "min": 0, "max": 3}, {"type": "category", "values": ["x", "y"]}
    tables = {
        "or": {
            "key": "id",
            "columns": {"a`b": letter},
            "derived": {"big": {"count": "not", "where": "in > 1"}},
        },
        "not": {
            "parent": {"table": "or", "key": "id", "max_children": 2},
            "columns": {"in": digit, "and": digit},
            "constraints": ["or.`a``b` == 'x' implies `and` in [0, 1] or in > 0"],
        },
    }
    rows = np.arange(900)
    above = pd.DataFrame({"id": rows, "a`b": np.array(["x", "y"])[rows % 2]})
    below = pd.DataFrame({"id": rows // 2, "in": rows % 4, "and": rows % 3})
    made = dpsynth.release(
        {"or": above, "not": below}, tables=tables, epsilon=9, dataset="or", ledger=tmp_path / "l.db"
    )
    bundle = dpsynth.open_bundle(made.save(tmp_path / "out"))
    whole = bundle.join("not")
    kept = (whole["a`b"] != "x") | (whole["and"] < 2) | (whole["in"] > 0)
    assert kept.all() and bundle.verify().good
    wanted = (whole["a`b"] == "x") & (whole["in"] == 1)
    assert (
        figure(bundle, "count(`not`) where or.`a``b` == 'x' and in in [1] and or.big >= 0")[0] == wanted.sum()
    )
    assert {*bundle.sample_tables(9, given="or.`a``b`=y", seed=1)["or"]["a`b"]} == {"y"}
    assert bundle.sample_tables(9, given="not.`and` >= 3 or in > 2", seed=1)["or"].shape[0] == 9
