"""Wide rows split into tables again: what was widened comes back, with new keys."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pydantic import TypeAdapter

import dpsynth
from dpsynth.columns.kinds import layout_of
from dpsynth.wings.tables.database import _breaking, database
from dpsynth.wings.tables.splitting import Shape, split

from .linked import TABLES, frames, two
from .test_wide_rows import spec_of, wide_of


def typed_rows(given, tables=TABLES) -> pa.Table:
    """The wide rows of tables, typed as their columns are."""
    table = wide_of(given, tables)
    batches = [pa.table({c: a.cast(pa.string()) for c, a in b.items()}) for b in table.batches(table.names)]
    wide = pa.concat_tables(batches)
    for spot, name in enumerate(wide.column_names):
        if name in ("persons", "rent") or name.endswith(("_trips", "_age")):
            wide = wide.set_column(spot, name, wide[name].cast(pa.int64()))
    return wide


def tables_of(wide: pa.Table, tables=TABLES) -> dict[str, pd.DataFrame]:
    spec = spec_of(tables)
    found = split(wide, Shape.of(spec.tables, "households"), layout_of(spec.columns)).tables(wide)
    return {name: table.to_pandas() for name, table in found.items()}


def of_few_roles(once: list[str], most: int = 8) -> dict[str, object]:
    parent = {"table": "households", "key": "house", "max_children": most, "roles": 2}
    return two(persons={**TABLES["persons"], "parent": parent, "at_most_one": once})


@pytest.mark.parametrize("once", [["age >= 70"], ["sex == 'f'"], ["age < 60", "sex == 'm'"]])
def test_a_condition_is_met_by_one_row_of_a_parent_at_most(once):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 9, 400)
    house = np.repeat(np.arange(400), sizes)
    number = np.arange(len(house)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    # The head is old, and anywhere; the conditions are about her alone.
    head = number == np.repeat(rng.integers(1, sizes + 1), sizes)
    age = np.where(head, rng.integers(70, 99, len(house)), rng.integers(60, 70, len(house)))
    young = head & (rng.random(len(house)) < 0.3)
    age = np.where(young & (once[0] == "age < 60"), 20, age)
    sex = np.where(head, "f", "m") if len(once) == 1 else np.where(head, "m", "f")
    persons = pd.DataFrame({"house": house, "number": number, "age": age, "sex": sex}).astype(str)
    homes = pd.DataFrame({"house": range(400), "region": "N", "rent": 1}).astype(str)
    given = {"households": homes, "persons": persons}
    made = {}
    for asked in ([], once):
        tables = of_few_roles(asked)
        found = tables_of(typed_rows(given, tables), tables)
        assert len(found["persons"]) == len(persons)
        made[len(asked)] = found["persons"]
    meets = [eval_of(made[n], once[0]).groupby(made[n].house).sum() for n in (0, len(once))]
    assert meets[0].max() > 1 and meets[1].max() == 1
    for where in once[1:]:
        assert eval_of(made[len(once)], where).groupby(made[len(once)].house).sum().max() == 1
    # Its share stays that of the real rows, but for what repeats.
    real, kept = (eval_of(rows.astype({"age": int}), once[0]).mean() for rows in (persons, made[len(once)]))
    assert abs(real - kept) < 0.05


@pytest.mark.parametrize("crowded", [False, True])
def test_rows_of_a_parent_differ_in_their_order(crowded):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, 400)
    house = np.repeat(np.arange(400), sizes)
    # In a crowd most households have all values that there are.
    ages = np.concatenate([np.sort(rng.choice(9 if crowded else 30, n, replace=False)) for n in sizes])
    persons = pd.DataFrame({"house": house, "age": ages, "sex": "f"})
    persons["number"] = persons.groupby("house").cumcount() + 1
    homes = pd.DataFrame({"house": range(400), "region": "N", "rent": 1}).astype(str)
    tables, made = of_few_roles([]), []
    for distinct in (False, True):
        tables["persons"] |= {"order_by": "age", "distinct": distinct}
        typed = typed_rows({"households": homes, "persons": persons.astype(str)}, tables)
        made.append(tables_of(typed, tables)["persons"])
    repeating, kept = made
    assert repeating.duplicated(["house", "age"]).mean() > 0.05 and len(kept) == len(persons)
    assert (kept.groupby("house").age.diff().dropna() > 0).all()
    far = kept.age.value_counts(normalize=True).sub(persons.age.value_counts(normalize=True), fill_value=0)
    assert far.abs().sum() / 2 < 0.1


def eval_of(rows: pd.DataFrame, where: str) -> pd.Series:
    return rows.astype({"age": int}).eval(where)


def test_rows_that_nothing_else_replaces_are_left_out():
    persons = pd.DataFrame({"house": "1", "number": [1, 2, 3, 4], "age": [5, 6, 80, 81], "sex": "f"})
    given = {
        "households": pd.DataFrame({"house": ["1"], "region": ["N"], "rent": ["1"]}),
        "persons": persons.astype(str),
    }
    tables = of_few_roles(["age == 5", "age == 6", "age >= 80"])
    found = tables_of(typed_rows(given, tables), tables)["persons"]
    assert sorted(found.age)[:2] == [5, 6] and len(found) == 3
    given["persons"]["age"] = [*"5677"]
    tables["persons"] |= {"at_most_one": [], "order_by": "age", "distinct": True}
    assert [*tables_of(typed_rows(given, tables), tables)["persons"].age] == [5, 6, 7]


def sorted_rows(frame: pd.DataFrame) -> list[tuple]:
    return sorted(map(tuple, frame.fillna("").astype(str).to_numpy()))


def test_tables_come_back_with_new_keys():
    given = frames(40)
    found = tables_of(typed_rows(given))
    assert list(found) == ["households", "persons", "trips"]
    houses, persons, trips = found.values()
    assert list(persons.columns) == ["house", "number", "age", "sex"]
    assert list(trips.columns) == ["house", "number", "mode"]
    assert houses.house.is_unique and not persons.duplicated(["house", "number"]).any()
    assert list(houses.columns) == ["house", "region", "rent", "minors", "has_adult"]
    assert sorted_rows(houses[["region", "rent"]]) == sorted_rows(given["households"][["region", "rent"]])
    # Of each household the first three persons, of each of them the first two trips.
    real = given["persons"].astype({"number": int}).sort_values(["house", "number"]).groupby("house").head(3)
    assert sorted_rows(persons[["age", "sex"]]) == sorted_rows(real[["age", "sex"]])
    kept = given["trips"].merge(real.astype({"number": str})[["house", "number"]], on=["house", "number"])
    assert sorted_rows(trips[["mode"]]) == sorted_rows(kept.groupby(["house", "number"]).head(2)[["mode"]])

    # Whose they are: the same persons live together, and make the same trips.
    def together(a, b, c):
        whole = a.merge(b, on="house", how="left").merge(c, on=["house", "number"], how="left")
        return sorted_rows(whole[["region", "rent", "age", "sex", "mode"]])

    kept = kept.groupby(["house", "number"]).head(2)
    assert together(houses, persons, trips) == together(
        given["households"], real.astype({"number": str}), kept
    )


def test_every_row_has_its_parent_and_none_has_too_many():
    houses, persons, trips = tables_of(typed_rows(frames(40))).values()
    assert persons.house.isin(houses.house).all()
    assert len(trips.merge(persons, on=["house", "number"])) == len(trips)
    assert persons.groupby("house").size().max() <= 3
    assert trips.groupby(["house", "number"]).size().max() <= 2
    assert (np.diff(persons.house) >= 0).all()


def test_a_key_of_its_own_numbers_all_rows():
    tables = two()
    tables["persons"] = {**tables["persons"], "key": "person"}
    given = frames(20)
    given["persons"]["person"] = [str(i) for i in range(len(given["persons"]))]
    found = tables_of(typed_rows(given, tables), tables)["persons"]
    assert list(found.columns) == ["house", "person", "number", "age", "sex"]
    assert list(found.person) == list(range(1, len(found) + 1))
    assert found.groupby("house").number.apply(lambda own: list(own) == list(range(1, len(own) + 1))).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(rows):
    found = tables_of(typed_rows(frames(1)).slice(0, rows))
    assert len(found["households"]) == rows
    assert list(found["trips"]) == ["house", "number", "mode"]


def test_a_shape_is_what_its_statement_says():
    shape = Shape.of(spec_of().tables, "households")
    assert TypeAdapter(Shape).validate_python(json.loads(json.dumps(shape.to_json()))) == shape


MANY = {
    **TABLES,
    "persons": {**TABLES["persons"], "parent": {**TABLES["persons"]["parent"], "max_children": 6}},
}


def test_of_many_children_each_further_one_is_that_of_a_parent_that_is_like_it():
    given = frames(600)
    wide = typed_rows(given, MANY)
    assert "persons_3_age" not in wide.column_names
    houses, persons, trips = tables_of(wide, MANY).values()
    sizes = given["persons"].groupby("house").size().value_counts()
    assert persons.groupby("house").size().value_counts().to_dict() == sizes.to_dict()
    assert persons.groupby("house").number.apply(lambda own: list(own) == list(range(1, len(own) + 1))).all()
    # Further members are minors in these tables, the first two hardly ever: none takes the place of another.
    further = persons[persons.number > 2]
    assert (further.age < 18).all() and len(further) > 100
    minors = persons[persons.age < 18].groupby("house").size().reindex(houses.house, fill_value=0)
    assert (houses.minors.to_numpy() == minors.to_numpy()).all()
    assert len(trips.merge(persons, on=["house", "number"])) == len(trips)
    # The same rows make the same tables.
    assert tables_of(wide, MANY)["persons"].equals(persons)


def test_the_other_child_is_any_of_the_further_ones():
    given = frames(600)
    wide = typed_rows(given, MANY).to_pandas()
    many = wide[wide.persons == 5]
    ages = given["persons"].astype({"age": int, "number": int}).set_index(["house", "number"]).age
    further = ages[ages.index.get_level_values(1) > 2]
    assert set(many.persons_other_age) <= set(further)
    assert abs(wide.persons_other_age.mean() - further.mean()) < 1.5


def test_children_with_an_order_of_their_own_stay_in_it():
    tables = {name: dict(table) for name, table in MANY.items() if name != "trips"}
    tables["persons"] = {**tables["persons"], "order_by": "age"}
    _, persons = tables_of(typed_rows(frames(300), tables), tables).values()
    assert (persons.groupby("house").age.diff().dropna() >= 0).all()


def test_a_bundle_states_what_one_row_alone_meets_only_where_it_is_asked_for():
    spec = spec_of(of_few_roles(["age >= 70"]))
    shape = Shape.of(spec.tables, "households")
    stated = shape.to_json()
    assert "once" not in stated and stated["children"][0]["once"] == ["age >= 70"]
    assert TypeAdapter(Shape).validate_python(json.loads(json.dumps(stated))) == shape


RENTED = ["households.rent >= 10 * age"]


def rented(houses: int, roles: int, rules: list[str]) -> tuple[dict[str, pd.DataFrame], dict[str, object]]:
    """Households of 1 to 8 members of which none is older than a tenth of the rent, and their tables."""
    rng = np.random.default_rng(5)
    rent, sizes = rng.integers(0, 1000, houses), rng.integers(1, 9, houses)
    house = np.repeat(np.arange(houses), sizes)
    persons = pd.DataFrame(
        {"house": house, "age": (rng.random(len(house)) * (rent[house] // 10 + 1)).astype(int)}
    )
    persons["number"], persons["sex"] = persons.groupby("house").cumcount() + 1, "f"
    homes = pd.DataFrame({"house": range(houses), "region": "N", "rent": rent})
    parent = {"table": "households", "key": "house", "max_children": 8, "roles": roles}
    tables = two(persons={**TABLES["persons"], "parent": parent, "constraints": rules})
    return {"households": homes.astype(str), "persons": persons.astype(str)}, tables


def too_old(made: dict[str, pd.DataFrame]) -> float:
    both = made["persons"].merge(made["households"], on="house")
    return float((both.rent < 10 * both.age).mean())


def test_further_rows_obey_rules_about_rows_above():
    given, free = rented(600, 2, [])
    _, ruled = rented(600, 2, RENTED)
    before, after = (tables_of(typed_rows(given, tables), tables) for tables in (free, ruled))
    assert too_old(before) > 0.01 and too_old(after) == 0
    # None is left out for that, and hardly any is a copy of another member.
    assert len(after["persons"]) == len(before["persons"]) == len(given["persons"])
    ages, real = after["persons"].age, given["persons"].age.astype(int)
    far = (ages // 10).value_counts(normalize=True) - (real // 10).value_counts(normalize=True)
    assert far.abs().sum() / 2 < 0.05


def test_rows_below_a_further_row_obey_rules_about_all_rows_above():
    """A further member brings trips of another household; and a further trip is another member's."""
    given, tables = rented(600, 2, [])
    trips = given["persons"].assign(
        rent=given["persons"].house.map(given["households"].set_index("house").rent)
    )
    trips = trips.loc[trips.index.repeat(4)].astype({"rent": int, "age": int})
    by_bus = (trips.age > 20) & (np.arange(len(trips)) % 3 > 0)
    trips["mode"] = np.where(trips.rent > 500, "car", np.where(by_bus, "bus", "walk"))
    given["trips"] = trips[["house", "number", "mode"]]
    rules = ["(households.rent > 500) == (mode == 'car')", "mode != 'bus' or persons.age > 20"]
    below = {**TABLES["trips"], "parent": {**TABLES["trips"]["parent"], "max_children": 4, "roles": 1}}
    broken = []
    for asked in ([], rules):
        tables["trips"] = {**below, "constraints": asked}
        made = tables_of(typed_rows(given, tables), tables)
        assert len(made["trips"]) == len(trips)
        whole = (
            made["trips"].merge(made["persons"], on=["house", "number"]).merge(made["households"], on="house")
        )
        wrong = (whole.rent > 500) != (whole["mode"] == "car")
        broken.append((wrong.mean(), ((whole["mode"] == "bus") & (whole.age <= 20)).mean()))
    assert min(broken[0]) > 0 and broken[1] == (0, 0)


def test_rows_that_break_a_rule_about_rows_above_are_found():
    given, tables = rented(50, 8, RENTED)
    given["persons"].loc[:4, "age"] = "99"
    given["households"]["rent"] = "100"
    spec = spec_of(tables)
    found = split(typed_rows(given, tables), Shape.of(spec.tables, "households"), layout_of(spec.columns))
    ((file, words),) = _breaking(found)
    many = int((given["persons"].age.astype(int) > 10).sum())
    assert file == "tables/persons" and words == f"has {many} rows that break one of: {RENTED[0]}."


def test_rows_off_a_mapping_are_found():
    given = frames(50)
    persons = given["persons"]
    persons["sex"] = np.where(persons.age.astype(int) % 2, "f", "m")
    tables = two(persons={**TABLES["persons"], "constraints": ["age determines sex"]})
    for odd, found in ((0, []), (1, ["has 1 rows that break age determines sex."])):
        # Someone's second member, of an age that others have too.
        twice = persons[(persons.number == "2") & persons.age.duplicated(keep=False)]
        persons.loc[twice.index[:odd], "sex"] = np.where(twice.sex[:odd] == "f", "m", "f")
        spec = spec_of(tables)
        rows = split(typed_rows(given, tables), Shape.of(spec.tables, "households"), layout_of(spec.columns))
        assert [words for _, words in _breaking(rows)] == found


def test_rows_off_a_mapping_from_a_column_above_are_found():
    given = frames(50)
    persons, homes = given["persons"], given["households"]
    of = homes.set_index("house").region
    persons["sex"] = np.where(of.loc[persons.house] == "N", "f", "m")
    tables = two(persons={**TABLES["persons"], "constraints": ["households.region determines sex"]})
    for odd, found in ((0, []), (2, ["has 2 rows that break households.region determines sex."])):
        spots = persons.index[persons.number == "1"][:odd]
        persons.loc[spots, "sex"] = np.where(persons.sex[spots] == "f", "m", "f")
        spec = spec_of(tables)
        rows = split(typed_rows(given, tables), Shape.of(spec.tables, "households"), layout_of(spec.columns))
        assert [words for _, words in _breaking(rows)] == found


def test_figures_of_children_are_those_of_all_rows_that_belong_to_each():
    tables = copy.deepcopy(MANY)
    tables["households"]["derived"] = {
        "years": {"sum": "persons", "of": "age"},
        "oldest": {"max": "persons", "of": "age"},
        "girl": {"min": "persons", "of": "age", "where": "sex == 'f'"},
        "mean_age": {"mean": "persons", "of": "age"},
        "bills": {"sum": "persons", "of": "paid"},
    }
    tables["persons"]["columns"]["paid"] = {"type": "number", "min": 0, "max": 9, "decimals": 2}
    given, rng = frames(300), np.random.default_rng(2)
    paid = rng.integers(0, 900, len(given["persons"])) / 100
    given["persons"]["paid"] = np.where(rng.random(len(paid)) < 0.1, "", [f"{x:.2f}" for x in paid])
    wide = typed_rows(given, tables)
    for name in wide.column_names:
        if name.endswith("_paid"):
            cents = pc.cast(pc.if_else(pc.equal(wide[name], ""), None, wide[name]), pa.float64())
            wide = wide.set_column(wide.column_names.index(name), name, cents)
    spec = spec_of(tables)
    whole = split(wide, Shape.of(spec.tables, "households"), layout_of(spec.columns))
    made = database("homes", whole, ("csv",))
    homes, persons, _ = (table.to_pandas() for table in made.typed.values())
    of = persons.groupby("house")
    wanted = {
        "years": of.age.sum().reindex(homes.house, fill_value=0),
        "oldest": of.age.max().reindex(homes.house),
        "girl": persons[persons.sex == "f"].groupby("house").age.min().reindex(homes.house),
        "mean_age": of.age.mean().round(2).reindex(homes.house),
        "bills": of.paid.sum().round(2).reindex(homes.house, fill_value=0),
    }
    for name, figures in wanted.items():
        assert np.allclose(homes[name], figures, equal_nan=True), name
    assert (
        persons.paid.isna().any()
        and homes.oldest.isna().any()
        and (homes.bills[homes.oldest.isna()] == 0).all()
    )
    texts = made.texts["households"].to_pandas()
    for name, decimals in (("years", 0), ("oldest", 0), ("girl", 0), ("mean_age", 2), ("bills", 2)):
        written = ["" if np.isnan(x) else f"{x:.{decimals}f}" for x in homes[name]]
        assert list(texts[name].fillna("")) == written


@pytest.mark.parametrize("rule", ["patients.region determines hospital", "patients.region <-> hospital"])
def test_every_visit_is_in_the_hospital_of_its_patients_region(tmp_path, rule):
    rng = np.random.default_rng(1)
    regions = rng.integers(0, 4, 2000)
    whose = np.repeat(np.arange(2000), rng.integers(0, 4, 2000))
    values = {"type": "category", "values": ["0", "1", "2", "3"], "missing": False}
    tables = {
        "patients": {"key": "pid", "columns": {"region": values}},
        "visits": {
            "parent": {"table": "patients", "key": "pid", "max_children": 3},
            "columns": {"hospital": values, "cost": {"type": "integer", "min": 0, "max": 9}},
            "constraints": [rule],
        },
    }
    given = {
        "patients": pd.DataFrame({"pid": np.arange(2000), "region": regions}),
        "visits": pd.DataFrame(
            {"pid": whose, "hospital": (3 * regions[whose] + 1) % 4, "cost": rng.integers(0, 9, len(whose))}
        ),
    }
    folder = {"ledger": tmp_path / "l.db", "outputs": tmp_path / "out"}
    done = dpsynth.release(given, tables=tables, epsilon=0.5, delta=1e-6, dataset="hospital", **folder)
    found = done.bundle.join("visits")
    assert len(found) > 500 and (found.groupby("region").hospital.nunique() == 1).all()
    if "<->" in rule:
        assert (found.groupby("hospital").region.nunique() == 1).all()
    assert done.bundle.verify().good
    assert f"Every row of visits obeys: {rule}." in str(done.bundle.facts.tables["in_words"])
