"""A first configuration of linked tables: keys, parents, order, numbers of rows, and no accidents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.config import Spec
from dpsynth.config.document import parse_yaml
from tests.wings.owner.starter.reviewing import loaded, without_list


def hospital(folder: Path, patients: int = 300, seed: int = 5) -> dict[str, pd.DataFrame]:
    """Patients with visits, laboratory values of visits, and the regions that patients live in."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], patients)
    ids = [f"P{i:05}" for i in range(patients)]
    region = rng.integers(1, 9, patients)
    above = pd.DataFrame({"id": ids, "sex": sex, "region_id": region})
    whose = np.repeat(np.arange(patients), rng.integers(0, 6, patients))
    # A patient has one visit a day.
    days = rng.integers(0, 150, len(whose)) + 150 * pd.Series(whose).groupby(whose).cumcount().to_numpy()
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")
    visits = pd.DataFrame(
        {
            "visit_id": rng.permutation(len(whose)) + 1,
            "patient_id": above.id.to_numpy()[whose],
            "seen": days.strftime("%Y-%m-%d"),
            "sex": sex[whose],
            "cost": np.round(rng.lognormal(5, 1, len(whose)), 2),
        }
    )
    row = np.repeat(np.arange(len(visits)), rng.integers(0, 4, len(visits)))
    number = pd.Series(row).groupby(row).cumcount() + 1
    labs = pd.DataFrame(
        {
            "patient": visits.patient_id.to_numpy()[row],
            "visit_id": visits.visit_id.to_numpy()[row],
            "no": number,
            "lab_id": [f"L{i:06}" for i in rng.permutation(len(row))],
            "value": np.round(rng.normal(5, 1, len(row)), 1),
        }
    )
    regions = pd.DataFrame({"region_id": range(1, 9), "name": list("ABCDEFGH")})
    tables = {"labs": labs, "regions": regions, "patients": above, "visits": visits}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return tables


def started(folder: Path, name: str = "patients.yaml") -> dict:
    return parse_yaml((folder / name).read_text(), "starter").values


def test_a_look_finds_keys_parents_order_and_the_number_of_rows(dpsynth, tmp_path):
    hospital(tmp_path)
    done = dpsynth("init", "labs.csv", "visits.csv", "regions.csv", "patients.csv", "--look")
    assert done.out == "labs.yaml\n" and "All rows of the tables were read." in done.err
    assert (tmp_path / "labs.yaml").stat().st_mode & 0o777 == 0o600
    values = started(tmp_path, "labs.yaml")
    tables = values["tables"]
    assert list(tables) == ["patients", "visits", "labs"]
    assert tables["patients"]["key"] == "id" and "parent" not in tables["patients"]
    assert tables["visits"]["key"] == ["patient_id", "visit_id"]
    assert tables["visits"]["parent"] == {"table": "patients", "key": "patient_id", "max_children": 5}
    assert tables["visits"]["order_by"] == "seen" and tables["visits"]["distinct"] is True
    # What a visit has of its patient is not asked twice.
    assert list(tables["visits"]["columns"]) == ["seen", "cost"]
    assert tables["labs"]["parent"] == {"table": "visits", "key": ["patient", "visit_id"], "max_children": 3}
    # A column that counts the rows of a parent is made anew.
    assert tables["labs"]["order_by"] == "no" and "distinct" not in tables["labs"]
    assert list(tables["labs"]["columns"]) == ["lab_id", "value"]
    text = (tmp_path / "labs.yaml").read_text()
    assert "regions is left out: it refers to none of the tables, and patients to it." in text
    assert {"tables.visits.parent", "tables.labs.columns.value"} <= set(values["review"])


def test_what_a_look_wrote_is_checked_and_released(dpsynth, tmp_path):
    tables = hospital(tmp_path, 150)
    dpsynth("init", "patients.csv", "visits.csv", "labs.csv", "--look")
    assert "Still under review" in dpsynth("check", "patients.yaml").out
    text = without_list((tmp_path / "patients.yaml").read_text())
    spec = loaded(text, tmp_path)
    # A release says of each row that is told apart what a look told of its table.
    assert {"sex", "visits", "visits_1_seen", "visits_5_labs_3_value"} <= set(spec.provenance.looked_at)
    assert set(spec.provenance.looked_at) <= {*spec.columns}
    (tmp_path / "patients.yaml").write_text(text.replace("epsilon: 1.0", "epsilon: 9.0"))
    assert "Released" in dpsynth("run", "patients.yaml", "--plain").out
    (public,) = tmp_path.glob("outputs/patients/*/public/tables")
    made = {name: pd.read_csv(public / f"{name}.csv") for name in ("patients", "visits", "labs")}
    assert set(made["visits"].patient_id) <= set(made["patients"].id)
    assert list(made["labs"]) == ["patient", "visit_id", "no", "value"]
    assert 0.5 < len(made["patients"]) / len(tables["patients"]) < 2


def test_a_table_of_keys_alone_is_looked_at(dpsynth, tmp_path):
    (tmp_path / "persons.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(30)))
    (tmp_path / "visits.csv").write_text("id,cost\n" + "".join(f"{i % 30},{i}\n" for i in range(90)))
    dpsynth("init", "persons.csv", "visits.csv", "--look")
    tables = started(tmp_path, "persons.yaml")["tables"]
    assert tables["persons"] == {"source": {"path": "persons.csv"}, "key": "id", "columns": {}}
    assert list(tables["visits"]["columns"]) == ["cost"]


@pytest.mark.parametrize("look", [False, True])
def test_persons_and_households_by_a_name_they_share(dpsynth, tmp_path, look):
    rng = np.random.default_rng(2)
    houses = pd.DataFrame({"hh": range(100, 200), "rent": rng.integers(1, 900, 100)})
    members = rng.integers(1, 5, 100)
    persons = pd.DataFrame({"age": rng.integers(0, 90, members.sum()), "hh": np.repeat(houses.hh, members)})
    houses.to_csv(tmp_path / "homes.csv", index=False)
    persons.to_csv(tmp_path / "members.csv", index=False)
    dpsynth("init", "homes.csv", "members.csv", *["--look"] * look)
    tables = started(tmp_path, "homes.yaml")["tables"]
    assert tables["homes"]["key"] == "hh"
    assert tables["members"]["parent"] == {"table": "homes", "key": "hh", "max_children": 4 if look else None}
    assert list(tables["members"]["columns"]) == ["age"]


def test_two_columns_that_tell_rows_together_are_a_key(dpsynth, tmp_path):
    rng = np.random.default_rng(4)
    persons = pd.DataFrame([(h, n) for h in range(60) for n in range(1, 4)], columns=["house", "number"])
    persons = persons.assign(age=rng.integers(0, 90, len(persons)))
    trips = persons[["house", "number"]].sample(400, replace=True, random_state=1)
    trips = trips.assign(mode=rng.choice(["walk", "bus"], len(trips)))
    pd.DataFrame({"house": range(60), "rooms": rng.integers(1, 5, 60)}).to_csv(
        tmp_path / "households.csv", index=False
    )
    persons.to_csv(tmp_path / "persons.csv", index=False)
    trips.to_csv(tmp_path / "trips.csv", index=False)
    dpsynth("init", "trips.csv", "persons.csv", "households.csv", "--look")
    tables = started(tmp_path, "trips.yaml")["tables"]
    assert list(tables) == ["households", "persons", "trips"]
    assert tables["households"]["unit"] == "household"
    assert tables["persons"]["key"] == ["house", "number"]
    assert tables["trips"]["parent"]["key"] == ["house", "number"]
    persons.to_csv(tmp_path / "mode.csv", index=False)
    dpsynth("init", "mode.csv", "trips.csv")
    parent = started(tmp_path, "mode.yaml")["tables"]["trips"]["parent"]
    assert (parent["table"], parent["key"]) == ("mode", "number")


def test_values_of_one_household_are_not_listed(dpsynth, tmp_path):
    rng = np.random.default_rng(3)
    pd.DataFrame({"hh_id": range(200), "n": 1}).to_csv(tmp_path / "households.csv", index=False)
    whose = np.append(np.repeat(np.arange(200), 3), np.full(40, 7))
    sort = np.append(rng.choice(["a", "b"], 600), np.full(40, "K4N4RY"))
    pd.DataFrame({"hh_id": whose, "sort": sort}).to_csv(tmp_path / "events.csv", index=False)
    done = dpsynth("init", "households.csv", "events.csv", "--look")
    assert "K4N4RY" not in (tmp_path / "households.yaml").read_text() + done.err
    columns = started(tmp_path, "households.yaml")["tables"]["events"]["columns"]
    assert columns["sort"]["values"] == ["a", "b"]


def test_tables_without_a_link_leave_gaps_and_end_alike(dpsynth, tmp_path):
    pd.DataFrame({"a": range(80), "b": range(80)}).to_csv(tmp_path / "one.csv", index=False)
    pd.DataFrame({"c": range(80), "d": 1}).to_csv(tmp_path / "two.csv", index=False)
    for look in (False, True):
        dpsynth("init", "one.csv", "two.csv", "--out", f"{look}.yaml", *["--look"] * look)
        tables = started(tmp_path, f"{look}.yaml")["tables"]
        assert tables["one"]["key"] is None
        assert tables["two"]["parent"]["table"] is None and tables["two"]["parent"]["key"] is None
        text = (tmp_path / f"{look}.yaml").read_text()
        assert "two is left out" not in text and "# to fill in" in text


def test_keys_whose_names_are_not_alike_are_found_by_their_values(dpsynth, tmp_path):
    tables = hospital(tmp_path)
    tables["patients"].rename(columns={"id": "no"}).to_parquet(tmp_path / "people.parquet")
    tables["visits"].rename(columns={"patient_id": "client"}).to_csv(tmp_path / "seen.csv", index=False)
    dpsynth("init", "people.parquet", "seen.csv", "--look")
    tables = started(tmp_path, "people.yaml")["tables"]
    assert tables["people"]["key"] == "no" and tables["seen"]["parent"]["key"] == "client"


@pytest.mark.parametrize("look", [False, True])
def test_a_row_of_two_parents_and_a_circle_are_left_to_the_owner_in_words(dpsynth, tmp_path, look):
    rng = np.random.default_rng(6)
    pd.DataFrame({"customer_id": range(80), "region": "N"}).to_csv(tmp_path / "customers.csv", index=False)
    for name in ("order", "invoice"):
        rows = pd.DataFrame({f"{name}_id": range(160), "customer_id": np.repeat(np.arange(80), 2)})
        # An order names an invoice, and an invoice an order.
        other = "invoice" if name == "order" else "order"
        rows.assign(**{f"{other}_id": range(160)}).to_csv(tmp_path / f"{name}s.csv", index=False)
    both = rng.integers(0, 160, 300)
    payments = {"customer_id": both // 2, "order_id": both, "invoice_id": both, "sum": both}
    pd.DataFrame(payments).to_csv(tmp_path / "payments.csv", index=False)
    files = ("payments.csv", "customers.csv", "orders.csv", "invoices.csv")
    dpsynth("init", *files, "--out", "started.yaml", *["--look"] * look)
    tables = started(tmp_path, "started.yaml")["tables"]
    assert next(iter(tables)) == "customers" and {"orders", "payments"} <= set(tables)
    pd.DataFrame({"student_id": range(80), "year": 1}).to_csv(tmp_path / "students.csv", index=False)
    pd.DataFrame({"course_id": range(60), "name": "x"}).to_csv(tmp_path / "courses.csv", index=False)
    attended = {"student_id": rng.integers(0, 80, 300), "course_id": rng.integers(0, 60, 300), "mark": 1}
    pd.DataFrame(attended).to_csv(tmp_path / "attended.csv", index=False)
    files = ("students.csv", "courses.csv", "attended.csv")
    dpsynth("init", *files, "--out", "school.yaml", *["--look"] * look)
    assert list(started(tmp_path, "school.yaml")["tables"]) == ["students", "attended"]
    text = " ".join((tmp_path / "school.yaml").read_text().replace("#", "").split())
    assert "courses is left out: it refers to none of the tables, and attended to it." in text


def test_of_two_parents_the_other_one_is_said(dpsynth, tmp_path):
    pd.DataFrame({"patient_id": range(80), "sex": "f"}).to_csv(tmp_path / "patients.csv", index=False)
    for name in ("visit", "study"):
        rows = {f"{name}_id": range(160), "patient_id": np.repeat(np.arange(80), 2), f"of_{name}": 1}
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}s.csv", index=False)
    both = np.arange(320) // 2
    labs = pd.DataFrame({"patient_id": both // 2, "visit_id": both, "study_id": both, "value": 1})
    labs.to_csv(tmp_path / "labs.csv", index=False)
    dpsynth("init", "patients.csv", "visits.csv", "studys.csv", "labs.csv", "--look")
    assert started(tmp_path)["tables"]["labs"]["parent"]["table"] == "studys"
    assert "labs refers to visits too: is studys its parent?" in (tmp_path / "patients.yaml").read_text()


@pytest.mark.parametrize(("patients", "visits"), [(0, 0), (0, 3), (300, 0), (1, 1)])
def test_tables_with_hardly_a_row_end_like_others(dpsynth, tmp_path, patients, visits):
    tables = hospital(tmp_path)
    tables["patients"].head(patients).to_csv(tmp_path / "patients.csv", index=False)
    tables["visits"].head(visits).to_csv(tmp_path / "visits.csv", index=False)
    dpsynth("init", "patients.csv", "visits.csv", "--look")
    assert list(started(tmp_path)["tables"]) == ["patients", "visits"]


SDV = {
    "tables": {
        "patients": {"columns": {"id": {"sdtype": "id"}, "sex": {"sdtype": "categorical"}}},
        "visits": {"columns": {"patient_id": {"sdtype": "id"}, "cost": {"sdtype": "numerical"}}},
    },
    "relationships": [
        {
            "parent_table_name": "patients",
            "parent_primary_key": "id",
            "child_table_name": "visits",
            "child_foreign_key": "patient_id",
        }
    ],
}


@pytest.mark.parametrize("look", [False, True])
def test_metadata_of_several_tables_says_the_links_and_their_files_the_rest(dpsynth, tmp_path, look):
    hospital(tmp_path)
    (tmp_path / "hospital.json").write_text(json.dumps(SDV))
    dpsynth("init", "hospital.json", "visits.csv", "patients.csv", "--out", "h.yaml", *["--look"] * look)
    tables = started(tmp_path, "h.yaml")["tables"]
    assert [*tables] == ["patients", "visits"] and tables["visits"]["source"] == {"path": "visits.csv"}
    assert tables["visits"]["parent"] == {
        "table": "patients",
        "key": "patient_id",
        "max_children": 5 if look else None,
    }
    assert tables["visits"].get("order_by") == ("seen" if look else None)
    assert tables["visits"]["columns"]["cost"]["type"] == "number"
    assert (tables["visits"]["columns"]["cost"]["max"] is None) != look


def _package(*keys: object) -> dict[str, object]:
    return {"resources": [{"name": "a", "schema": {"fields": [{"name": "x"}], "foreignKeys": [*keys]}}]}


@pytest.mark.parametrize(
    ("document", "more", "words"),
    [
        (SDV, ["--look"], "--look needs the file of patients: give patients.csv after the description."),
        (SDV, ["labs.csv"], "labs.csv is called like none of the tables of d.json, patients and visits."),
        ({**SDV, "relationships": []}, ["labs.csv"], "d.json describes no linked tables."),
        ({**SDV, "relationships": []}, [], "d.json describes several tables. Say which one with --pick"),
        ({**SDV, "relationships": 7}, [], "d.json: 'relationships' must be a list."),
        (
            {**SDV, "relationships": [{"child_table_name": "x"}]},
            [],
            "'relationships[0]' must name two of the",
        ),
        (_package(7), [], "d.json: 'a.foreignKeys' must be a mapping"),
        (_package({"fields": "x"}), [], "d.json: 'a.foreignKeys.reference' must be a mapping"),
        (
            _package({"fields": "x", "reference": {"resource": "b", "fields": "x"}}),
            [],
            "d.json: 'a.foreignKeys' must name fields, and as many of one of the resources.",
        ),
    ],
)
def test_wrong_descriptions_of_several_tables_are_refused_in_words(dpsynth, tmp_path, document, more, words):
    hospital(tmp_path)
    (tmp_path / "d.json").write_text(json.dumps(document))
    assert words in dpsynth("init", "d.json", *more, code=2).err
    assert not list(tmp_path.glob("*.yaml"))


def test_wrong_tables_are_refused_in_words(dpsynth, tmp_path):
    hospital(tmp_path)
    done = dpsynth("init", "visits.csv", "./visits.csv", code=2)
    assert "visits.csv is given twice. Give each of the linked tables once." in done.err
    done = dpsynth("init", "visits.csv", "patients.csv", "--pick", "labs", code=2)
    assert "give several tables alone" in done.err
    assert "no file nobody.csv" in dpsynth("init", "visits.csv", "nobody.csv", code=4).err
    assert not list(tmp_path.glob("*.yaml"))


def test_a_table_that_does_not_say_whose_row_it_is_is_left_out_in_words(dpsynth, tmp_path):
    tables = hospital(tmp_path)
    tables["labs"].drop(columns="patient").to_csv(tmp_path / "labs.csv", index=False)
    dpsynth("init", "patients.csv", "visits.csv", "labs.csv", "--look")
    values = started(tmp_path)
    assert list(values["tables"]) == ["patients", "visits"]
    text = " ".join((tmp_path / "patients.yaml").read_text().replace("#", "").split())
    assert "labs is left out: it refers to visits by visit_id of the tables" in text
    assert isinstance(loaded(without_list((tmp_path / "patients.yaml").read_text()), tmp_path), Spec)
