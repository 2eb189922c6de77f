"""The section of linked tables: what follows from it, and what is refused, each at its own key."""

from __future__ import annotations

import copy
import re
from itertools import pairwise

import pyarrow as pa
import pytest

from dpsynth.columns.kinds import layout_of
from dpsynth.columns.rules import Checks, rules_of
from dpsynth.config import Spec, from_mapping
from dpsynth.errors import ConfigError

from .linked import TABLES, two

BASE = {"privacy": {"epsilon": 1, "delta": 1e-6}, "ledger": {"dataset": "homes"}}


def spec_of(tables=TABLES, **more: object) -> Spec:
    return Spec.from_dict({**BASE, "tables": tables, **more})


def test_the_wide_table_has_a_column_for_each_cell_of_a_household():
    columns = spec_of().columns
    person = ["age", "sex", "trips", "trips_1_mode", "trips_2_mode"]
    slots = [f"persons_{i}_{name}" for i in (1, 2, 3) for name in person]
    assert list(columns) == ["region", "rent", "persons", *slots]
    assert (columns["persons"].min, columns["persons"].max) == (0, 4)
    assert columns["persons_2_age"].missing is True
    assert columns["region"].missing is False


@pytest.mark.parametrize("most", [126, 127, 200, 1000])
def test_small_numbers_of_rows_are_told_apart_however_many_there_may_be(most):
    tables = two()
    tables["persons"]["parent"] = {**TABLES["persons"]["parent"], "max_children": most, "roles": 2}
    labels = layout_of(spec_of(tables).columns).named["persons"].codec.labels
    assert list(labels[:6]) == [*"012345"] and labels[-1] == str(most + 1) and len(labels) <= 128


def test_what_is_not_there_is_missing_by_rules():
    rules = spec_of().constraints
    assert "(persons >= 2) == (persons_2_age is not missing)" in rules
    assert "persons < 2 implies persons_2_sex is missing" in rules
    assert "(persons >= 2) == (persons_2_trips is not missing)" in rules
    there = "persons_2_trips is not missing and persons_2_trips >= 1"
    assert f"({there}) == (persons_2_trips_1_mode is not missing)" in rules
    assert "persons == 0 or persons_1_age >= 18" in rules


def test_the_root_with_all_that_belongs_to_it_is_protected():
    near = spec_of().privacy.protected
    assert (near.person, near.max_rows, near.kind) == ("house", 1, "household")
    assert spec_of(privacy={"epsilon": 1, "delta": 1e-6, "unit": "households"}).privacy.protected == near
    assert spec_of().privacy.cutoff == 0


def test_rules_and_formulas_of_a_child_hold_in_each_of_its_rows():
    tables = two()
    years = {"type": "derived", "formula": "2026 - `age`"}
    tables["persons"] = {
        **tables["persons"],
        "columns": {**TABLES["persons"]["columns"], "born": years},
        "constraints": ["age < 15 implies sex == 'f'"],
    }
    spec = spec_of(tables)
    assert spec.columns["persons_3_born"].formula == "2026 - persons_3_age"
    assert "persons_3_age < 15 implies persons_3_sex == 'f'" in spec.constraints


def across(*rules: str, trips: tuple[str, ...] = (), **parent: object) -> dict:
    """The tables with rules of persons, and of trips, about rows above."""
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"] |= {"constraints": [*rules]}
    tables["persons"]["parent"] |= parent
    tables["trips"] |= {"constraints": [*trips]}
    return tables


def test_rules_about_rows_above_hold_in_each_row():
    rules = spec_of(
        across(
            "households.rent >= 2.5 * age",
            "households.persons == 1 implies sex == 'f'",
            trips=("persons.age >= 18 or mode != 'car'", "households.region == 'N' implies mode == 'bus'"),
        )
    ).constraints
    for i in (1, 2, 3):
        assert f"rent >= 2.5 * persons_{i}_age" in rules
        assert f"persons == 1 implies persons_{i}_sex == 'f'" in rules
        assert f"persons_{i}_age >= 18 or persons_{i}_trips_2_mode != 'car'" in rules
        assert f"region == 'N' implies persons_{i}_trips_1_mode == 'bus'" in rules


def test_a_mapping_is_one_for_all_rows_that_are_told_apart():
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"] |= {"constraints": ["age determines sex", "`age` < 90"]}
    tables["trips"]["columns"] |= {"paid by": {"type": "category", "values": ["card", "ticket", "coins"]}}
    tables["trips"] |= {"constraints": ["mode <-> `paid by`"]}
    rules = spec_of(tables).constraints
    places = [f"persons_{i}_trips_{j}_" for i in (1, 2, 3) for j in (1, 2)]
    sides = ", ".join(f"{p}mode" for p in places), ", ".join(f"`{p}paid by`" for p in places)
    persons = "persons_1_age, persons_2_age, persons_3_age determines persons_1_sex, persons_2_sex, "
    assert {f"{persons}persons_3_sex", " <-> ".join(sides)} <= {*rules}
    assert sum("determines" in rule or "<->" in rule for rule in rules) == 2


def test_a_mapping_from_a_column_above_is_one_for_all_rows():
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"] |= {"constraints": ["households.region determines sex"]}
    tables["trips"] |= {"constraints": ["persons.sex <-> mode"]}
    rules = spec_of(tables).constraints
    modes = ", ".join(f"persons_{i}_trips_{j}_mode" for i in (1, 2, 3) for j in (1, 2))
    sexes = ", ".join(f"persons_{i}_sex" for i in (1, 2, 3) for _ in (1, 2))
    regions = "region, region, region determines persons_1_sex, persons_2_sex, persons_3_sex"
    assert {regions, f"{sexes} <-> {modes}"} <= {*rules}


@pytest.mark.parametrize(
    ("rule", "guarded"),
    [
        ("households.rent > 9 implies age is not missing", True),
        ("sex is not missing or age is not missing", True),
        ("households.rent > 9 and age > 3", True),
        ("not (households.rent > 9)", True),
        ("if(sex == 'f', 1, households.rent) > 9", True),
        ("(households.rent is missing) == (sex is missing)", True),
        ("(age is missing) == (sex is missing)", False),
        ("households.rent == 2 * age or households.rent > 9", False),
        ("households.region == 'N' implies not (sex == 'f')", False),
        ("age is not missing implies households.rent > age", False),
        ("households.rent + age > 3 and age < 90", False),
    ],
)
def test_a_rule_says_nothing_of_a_row_that_is_not_there(rule, guarded):
    rules = spec_of(across(rule)).constraints
    own = rule.replace("households.", "").replace("age", "persons_2_age").replace("sex", "persons_2_sex")
    assert (f"persons < 2 or ({own})" if guarded else own) in rules


@pytest.mark.parametrize(
    ("rules", "more", "words"),
    [
        (["age <= rent"], {}, "names 'rent', which is no column of persons; write households.rent"),
        (["age <= households.rint"], {}, "names 'households.rint', which is no column of persons (did you"),
        (["age <= trips.mode"], {}, "names 'trips.mode', which is no column of persons"),
        (["age <= households.region"], {}, "compares a number with a text"),
        (["households.rent < 0"], {}, "is obeyed by no row of the declared values"),
        (["households.region <-> sex"], {"roles": 2}, "ties columns of two tables, and not all"),
        (["sex determines households.region"], {}, "gives values to 'households.region', a column of"),
        (["sex <-> households.region"], {}, "gives values to 'households.region', a column of"),
        (["households.region determines age, sex"], {}, "must have as many columns on the right"),
        (["households.regin determines sex"], {}, "names 'households.regin', which is no column"),
        (["age, sex <-> sex"], {}, "must have as many columns on the right of <-> as on the left"),
        (["households.rent == age"], {}, "computes 'households.rent', and may compute columns of persons"),
        (["age == households.rent"], {"roles": 2}, "computes 'age' from a row above, and not all rows of"),
    ],
)
def test_rules_about_rows_above_that_nobody_can_keep_are_refused(rules, more, words):
    with pytest.raises(ConfigError, match=re.escape(f"tables.persons.constraints[0] {words}")):
        spec_of(across(*rules, **more))


def test_the_order_of_children_decides_what_is_asked():
    from dpsynth.config import compiled

    tables = two()
    tables["persons"] = {key: value for key, value in tables["persons"].items() if key != "order_by"}
    tables["persons"]["key"] = "house"
    other = two()
    other["persons"] = {**other["persons"], "key": "house"}
    assert compiled(spec_of(tables)).fingerprint != compiled(spec_of(other)).fingerprint


def test_a_file_of_several_tables_is_read_from_yaml(tmp_path):
    from dpsynth.config import load

    path = tmp_path / "homes.yaml"
    path.write_text(
        "tables:\n"
        "  houses: {source: {path: h.csv}, key: id, columns: {a: {type: boolean}}}\n"
        "  people:\n"
        "    source: {url: 'sqlite:///x.db', query: SELECT id FROM people}\n"
        "    parent: {table: houses, key: id, max_children: 2}\n"
        "    columns: {b: {type: boolean}}\n"
        "privacy: {epsilon: 1}\n"
        "ledger: {dataset: d}\n"
    )
    assert list(load(path).columns) == ["a", "people", "people_1_b", "people_2_b"]


def changed(path: str, value: object) -> dict:
    """The tables with another value at a path; with ``...`` without it."""
    tables = copy.deepcopy(dict(TABLES))
    *way, last = path.split(".")
    spot: dict = tables
    for key in way:
        spot = spot[key]
    if value is ...:
        del spot[last]
    else:
        spot[last] = value
    return tables


REFUSED = [
    ("households.key", ..., "tables.households.key is missing"),
    ("households.order_by", "rent", "tables.households.order_by is for tables with a parent"),
    ("persons.unit", "person", "tables.persons.unit is for the table at the root"),
    ("persons.parent.table", "homes", "tables.persons.parent.table names 'homes', which is none of tables"),
    ("persons.parent.max_children", 0, "tables.persons.parent.max_children must be a whole number"),
    ("persons.parent.key", ["house", "x"], "tables.persons.parent.key must name as many columns"),
    ("persons.key", ["number", "house"], "tables.persons.key must begin with the columns of"),
    ("persons.key", ["house", "house"], "tables.persons.key lists a column twice"),
    ("trips.parent", ..., "tables.trips.key is missing"),
    (
        "households.columns.house",
        {"type": "integer", "min": 0, "max": 9},
        "tables.households.columns.house is a key",
    ),
    (
        "households.columns.region",
        {"type": "categori"},
        "tables.households.columns.region.type must be one of",
    ),
    ("persons.columns.age", {"type": "integer", "min": 9, "max": 0}, "tables.persons.columns.age"),
    ("persons.columns", {}, "tables.persons.columns must declare at least one column beside the key"),
    ("persons.colums", {}, "tables.persons.colums is not a known key"),
    ("households.at_most_one", ["rent > 3"], "tables.households.at_most_one is for tables with a parent"),
    ("persons.at_most_one", ["agee > 4"], r"tables.persons.at_most_one\[0\] names 'agee'"),
    ("persons.at_most_one", ["age > 4", "rent > 4"], r"tables.persons.at_most_one\[1\] names 'rent'"),
    ("persons.at_most_one", ["age > 4", "age"], r"tables.persons.at_most_one\[1\]"),
    ("persons.at_most_one", ["age >= 0"], r"tables.persons.at_most_one\[0\] is obeyed by no row"),
    ("persons.at_most_one", ["age determines sex"], r"tables.persons.at_most_one\[0\] has"),
    ("households.distinct", True, "tables.households.distinct is for tables with a parent"),
    ("persons.distinct", True, "tables.persons.distinct needs order_by, and it among columns"),
    ("trips.distinct", True, "tables.trips.distinct needs order_by, and it among columns"),
    ("persons.distinct", "yes", "tables.persons.distinct must be true or false"),
    ("persons.constraints", ["agee < 4"], r"tables.persons.constraints\[0\] names 'agee'"),
    ("persons.constraints", ["age <"], r"tables.persons.constraints\[0\] has the end"),
    (
        "households.constraints",
        ["adults > 1"],
        r"tables.households.constraints\[0\] names 'adults', which is no",
    ),
    (
        "households.derived.minors",
        {"count": "trips"},
        "tables.households.derived.minors names 'trips', which is no child",
    ),
    (
        "households.derived.minors",
        {"count": "persons", "where": "old"},
        "tables.households.derived.minors.where",
    ),
    ("households.derived.minors", {"total": "persons"}, "tables.households.derived.minors must have one of"),
    ("households.derived.minors", {"sum": "persons"}, "tables.households.derived.minors.of is missing"),
    ("households.derived.minors", {"count": "persons", "of": "age"}, "derived.minors.of is not a known key"),
    (
        "households.derived.minors",
        {"sum": "persons", "of": "agee"},
        r"derived.minors.of must be a column of persons of numbers; 'agee' is none \(did you mean 'age'",
    ),
    (
        "households.derived.minors",
        {"max": "persons", "of": "sex"},
        "derived.minors.of must be a column of persons of numbers, dates or times; 'sex' is none",
    ),
    ("households.derived.rent", {"count": "persons"}, "tables.households.derived.rent is also among columns"),
    ("households.derived.house", {"count": "persons"}, "tables.households.derived.house is also a key"),
    ("persons.derived", {"number": {"count": "trips"}}, "tables.persons.derived.number is also a key, or"),
    ("households.derived.minors.where", "age <", "derived.minors.where has the end where a column"),
    ("households.derived.minors.where", "sex > 3", "derived.minors.where compares a text with a number"),
    ("households.derived.minors.where", "age + 1", "derived.minors.where comes to a number: write"),
    ("Persons", TABLES["persons"], "tables.persons is another table's name but for capitals"),
    (
        "households.columns.persons",
        {"type": "boolean"},
        "tables.households.columns.persons and another column",
    ),
    (
        "trips.parent",
        {**TABLES["trips"]["parent"], "max_children": 99, "roles": 90},
        "tables need .* constraints",
    ),
    (
        "persons.parent",
        {**TABLES["persons"]["parent"], "max_children": 100, "roles": 99},
        "tables make a table",
    ),
]


@pytest.mark.parametrize(("path", "value", "words"), REFUSED)
def test_what_is_refused_is_named_by_its_own_key(path, value, words):
    with pytest.raises(ConfigError, match=words):
        spec_of(changed(path, value))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"columns": {"a": {"type": "boolean"}}}, "columns is given beside tables"),
        ({"constraints": ["a == b"]}, "constraints is given beside tables"),
        ({"source": {"path": "x.csv"}}, "source is given beside tables"),
        ({"privacy": {"epsilon": 1, "unit": "persons"}}, "privacy.unit must be households"),
        ({"ledger": {}}, "ledger.dataset is missing"),
        ({"tables": {}}, "tables must have one table without a parent"),
        ({"tables": {"a": {"key": "k", "columns": {"b": {"type": "boolean"}}}}}, "tables has one table"),
        ({"tables": {"a b": TABLES["households"], "p": TABLES["persons"]}}, "tables.a b as a name"),
        ({"tables": 3}, "tables"),
    ],
)
def test_other_keys_that_do_not_go_with_tables(more, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        spec_of(**more)


def test_tables_that_belong_to_each_other_are_refused():
    tables = changed("trips.parent.table", "trips")
    tables["trips"]["key"] = ["house", "number"]
    with pytest.raises(ConfigError, match=r"tables\.trips\.parent\.table belongs to itself"):
        spec_of(tables)


def test_a_table_without_tables_is_what_it_was():
    plain = {**BASE, "source": {"path": "x.csv"}, "columns": {"a": {"type": "boolean"}}}
    assert from_mapping(plain).tables is None


def test_of_many_children_the_first_two_are_told_apart_and_one_stands_for_the_others():
    columns = spec_of(changed("persons.parent.max_children", 9)).columns
    assert [c for c in columns if c.endswith("_age")] == [
        "persons_1_age",
        "persons_2_age",
        "persons_other_age",
    ]
    assert columns["persons"].max == 10
    rules = spec_of(changed("persons.parent.max_children", 9)).constraints
    assert "(persons >= 3) == (persons_other_age is not missing)" in rules
    every = changed("persons.parent", {**TABLES["persons"]["parent"], "max_children": 7, "roles": 7})
    assert "persons_7_age" in spec_of(every).columns


def test_pairs_of_the_first_rows_matter_more_unless_the_owner_says_what_matters():
    marginals = {m.columns: m.weight for m in spec_of().structure.workload.marginals}
    assert marginals["persons_1_age", "persons_2_sex"] == 2 * marginals["persons_2_age", "persons_3_sex"]
    assert spec_of(structure={"workload": {"ways": 2}}).structure.workload.marginals == ()
    assert spec_of(structure="independent").structure.workload is None


def test_conditions_take_no_bins_from_a_column():
    from dpsynth.config import compiled

    number = {"type": "number", "min": 0, "max": 9000, "decimals": 2, "bins": 20}
    tables = changed("persons.columns.cost", number)
    tables["households"]["columns"] = {**tables["households"]["columns"], "cap": number}
    columns = compiled(spec_of(tables)).layout.modelled
    assert len(columns["persons_1_cost"].codec.labels) > 100
    tables["persons"]["constraints"] = ["cost <= households.cap", "age < 50 or sex == 'f'"]
    ruled = compiled(spec_of(tables)).layout.modelled
    assert all(ruled[c].codec.labels == column.codec.labels for c, column in columns.items())
    tables["persons"]["constraints"] = ["cost == round(households.cap * 0.9, 2)"]
    summed = compiled(spec_of(tables)).layout.modelled
    assert all(len(summed[c].codec.labels) == 20 for c in ("cap", "persons_1_cost", "persons_3_cost"))


def test_rows_that_are_not_there_are_expected_beside_cells_that_are_missing():
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"]["columns"]["sex"]["expected"] = {"missing": 0.3, "one_value": 0.6}
    columns = spec_of(tables).columns
    assert [float(columns[f"persons_{i}_sex"].expected["missing"]) for i in (1, 2)] == [0.98, 1]
    assert float(columns["persons_2_sex"].expected["one_value"]) == 0.6


def test_at_most_one_is_a_rule_of_each_two_rows_that_are_told_apart():
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"] |= {"at_most_one": ["age > 90 and sex == 'f'"]}
    tables["persons"]["parent"] = {"table": "households", "key": "house", "max_children": 6, "roles": 2}
    met = [f"not (persons_{i}_age > 90 and persons_{i}_sex == 'f')" for i in ("1", "2", "other")]
    pairs = {f"{met[0]} or {met[1]}", f"{met[0]} or {met[2]}", f"{met[1]} or {met[2]}"}
    assert {rule for rule in spec_of(tables).constraints if rule.startswith("not (")} == pairs


@pytest.mark.parametrize(("most", "roles"), [(6, 2), (15, 15)])
def test_distinct_is_a_rule_of_rows_that_follow_each_other(most, roles):
    tables = copy.deepcopy(dict(TABLES))
    parent = {"table": "households", "key": "house", "max_children": most, "roles": roles}
    tables["persons"] |= {"order_by": "age", "distinct": True, "parent": parent}
    del tables["trips"]
    labels = [*map(str, range(1, roles + 1)), *["other"] * (roles < most)]
    rules = {f"persons_{i}_age < persons_{j}_age" for i, j in pairwise(labels)}
    assert {rule for rule in spec_of(tables).constraints if rule in rules} == rules
    tables["persons"]["order_by"] = "sex"
    with pytest.raises(ConfigError, match="as a number, a date or a time"):
        spec_of(tables)


def test_what_a_look_told_of_a_table_is_said_of_each_row_that_is_told_apart():
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"]["columns"]["name"] = {"type": "identifier"}
    listed = ["households.rent", "persons", "trips", "persons.sex", "persons.name", "trips.mode"]
    found = spec_of(tables, provenance={"looked_at": listed}).provenance.looked_at
    trips = [f"persons_{i}_trips" for i in (1, 2, 3)]
    modes = [f"persons_{i}_trips_{j}_mode" for i in (1, 2, 3) for j in (1, 2)]
    sexes = [f"persons_{i}_sex" for i in (1, 2, 3)]
    assert list(found) == ["rent", "persons", *trips, *sexes, *modes]
    with pytest.raises(ConfigError, match=r"names 'persons\.wage', which is not among columns"):
        spec_of(provenance={"looked_at": ["persons.wage"]})


@pytest.mark.parametrize("cell", ["persons_2_trips_1_mode", "persons_1_trips_1_mode", "persons_2_age"])
def test_no_row_is_below_one_that_is_not_there(cell):
    spec = spec_of()
    layout = layout_of(spec.columns)
    row = {"region": "N", "rent": "5", "persons": "1", "persons_1_age": "30", "persons_1_trips": "0"}
    for cells, broken in ((row, False), (row | {cell: "bus" if "mode" in cell else "7"}, True)):
        codes = {c.name: c.encode(pa.array([cells.get(c.name, "")])) for c in layout.columns}
        found = Checks(rules_of(spec.constraints, layout), layout).violating_cells(codes)
        assert found.tolist() == [broken]
