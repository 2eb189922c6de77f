"""Linked tables at their recipients: joined, more of them drawn, and read elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsynth
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError, DpsynthError
from tests.cli.here import Command
from tests.thinned import some

from .conftest import street


def test_a_child_has_the_columns_of_its_own_parents(linked: Path) -> None:
    bundle = dpsynth.open_bundle(linked)
    homes, persons, trips, cars = bundle.tables.values()
    of_homes = ["region", "rent", "minors", "has_adult", "cars_age", "newest"]
    whole = bundle.join("trips")
    assert len(whole) == len(trips)
    assert list(whole) == ["house", "number", "mode", "age", "sex", *of_homes]
    ages = {(p.house, p.number): p.age for p in persons.itertuples()}
    rents = dict(zip(homes.house, homes.rent.fillna(-1), strict=True))
    assert [ages[key] for key in zip(whole.house, whole.number, strict=True)] == list(whole.age)
    assert [rents[key] for key in whole.house] == list(whole.rent.fillna(-1))
    assert list(bundle.join("trips", "persons")) == ["house", "number", "mode", "age", "sex"]
    assert bundle.join("trips", "trips").equals(trips)
    # The key of the parent has another name here, and no column takes the place of another.
    assert list(bundle.join("cars")) == ["home", "age", "born in", *of_homes]
    assert len(bundle.join("cars")) == len(cars)


def test_a_column_of_the_same_name_is_told_apart(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = dpsynth.open_bundle(linked)
    tables = {name: frame.rename(columns={"mode": "age"}) for name, frame in bundle.tables.items()}
    monkeypatch.setitem(vars(bundle), "tables", tables)
    assert list(bundle.join("trips", "persons")) == ["house", "number", "age", "persons.age", "sex"]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (("trip",), "'trip' is no table .*Those are: households, persons, trips, cars"),
        (("trips", "homes"), "'homes' is no table"),
        (("trips", "cars"), "'cars' is not above trips"),
        (("households", "persons"), "'persons' is not above households"),
    ],
)
def test_tables_that_can_not_be_joined_are_refused(linked: Path, tables: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        dpsynth.open_bundle(linked).join(*tables)


def test_new_roots_come_with_all_that_belongs_to_them(linked: Path) -> None:
    bundle = dpsynth.open_bundle(linked)
    found = bundle.sample_tables(300, seed=4)
    homes, persons, trips, cars = found.values()
    assert {name: list(frame) for name, frame in found.items()} == {
        name: list(frame) for name, frame in bundle.tables.items()
    }
    assert list(homes.house) == list(range(1, 301))
    assert persons.house.isin(homes.house).all() and cars.home.isin(homes.house).all()
    assert not persons.duplicated(["house", "number"]).any() and persons.groupby("house").size().max() <= 5
    assert len(trips.merge(persons, on=["house", "number"])) == len(trips)
    minors = persons[persons.age < 18].groupby("house").size().reindex(homes.house, fill_value=0)
    assert list(minors) == list(homes.minors)
    again = bundle.sample_tables(300, seed=4)
    assert all(again[name].equals(frame) for name, frame in found.items())
    wide = bundle.sample(300, seed=4)
    assert list(wide.persons.clip(upper=5)) == list(
        persons.groupby("house").size().reindex(homes.house, fill_value=0)
    )


def test_further_members_of_one_new_household_differ(linked: Path) -> None:
    """Among one household's own rows there is one of further members, which would stand for all of these."""
    bundle = dpsynth.open_bundle(linked)
    found = bundle.sample_tables(1, given="persons == 5", seed=1)
    assert len(found["households"]) == 1 and len(found["persons"]) == 5
    persons = pd.concat(bundle.sample_tables(1, given="persons == 5", seed=s)["persons"] for s in range(9))
    assert (persons[persons.number > 2].groupby("number").age.nunique() > 2).all()
    further = [
        own[own.number > 2].age.nunique() for _, own in persons.groupby((persons.number == 1).cumsum())
    ]
    assert max(further) > 1


def test_sample_writes_a_folder_of_tables_with_what_they_are(linked: Path, dpsynth: Command) -> None:
    done = dpsynth(
        "sample", str(linked), "--rows", "40", "--given", "region=N", "--seed", "1", "--out", "more"
    )
    assert done.code == 0 and re.search(r"^40 rows of households, \d+ rows of persons", done.out)
    assert {str(p.relative_to("more")) for p in Path("more").rglob("*.*")} == {
        str(p.relative_to(linked)) for p in (*linked.glob("tables/*"), linked / "tables.json")
    }
    homes, persons = (pd.read_csv(f"more/tables/{name}.csv") for name in ("households", "persons"))
    assert len(homes) == 40 and (homes.region == "N").all() and persons.house.isin(homes.house).all()
    assert Path("more/tables.json").read_bytes() == (linked / "tables.json").read_bytes()
    again = dpsynth("sample", str(linked), "--rows", "40", "--out", "more")
    assert (again.code, again.err) == (1, "Error: more exists already. Give a new name.\n")
    wide = dpsynth("sample", str(linked), "--rows", "2", "--seed", "1")
    assert wide.out.startswith("region,rent,persons,persons_1_age")
    assert len([p for p in Path().iterdir() if p.name.startswith(".")]) == 0


def test_nobody_has_what_is_given(linked: Path, tmp_path: Path) -> None:
    with pytest.raises(DpsynthError, match="no row with what is given"):
        dpsynth.open_bundle(linked).sample_tables(
            5, given="persons == 0 and persons == 1", out=tmp_path / "x"
        )
    assert not (tmp_path / "x").exists()


HAVING = [
    ("households.region=N", lambda homes, *_: homes.region == "N"),
    ("households.region == 'N' and households.rent > 500", lambda h, *_: (h.region == "N") & (h.rent > 500)),
    ("minors=1", lambda homes, *_: homes.minors == 1),
    ("has_adult=no", lambda homes, *_: homes.has_adult == "no"),
    ("households.cars_age >= 12", lambda homes, *_: homes.cars_age >= 12),
    ("persons.age >= 85", lambda h, p, *_: h.house.isin(p.house[p.age >= 85])),
    ("persons.age=80", lambda h, p, *_: h.house.isin(p.house[p.age == 80])),
    ("persons.sex=f", lambda h, p, *_: h.house.isin(p.house[p.sex == "f"])),
    (
        {"persons.sex": "f", "region": "S"},
        lambda h, p, *_: h.house.isin(p.house[p.sex == "f"]) & (h.region == "S"),
    ),
    # One member is both; and two conditions may be met by two.
    (
        "persons.age < 10 and persons.sex == 'm'",
        lambda h, p, *_: h.house.isin(p.house[(p.age < 10) & (p.sex == "m")]),
    ),
    (
        ["persons.age < 10", "persons.age > 50"],
        lambda h, p, *_: h.house.isin(p.house[p.age < 10]) & h.house.isin(p.house[p.age > 50]),
    ),
    ("count(persons.age < 18) >= 2", lambda homes, *_: homes.minors >= 2),
    ("not any(persons.age >= 18)", lambda homes, *_: homes.has_adult == "no"),
    ("trips.mode=bus", lambda h, p, t, c: h.house.isin(t.house[t["mode"] == "bus"])),
    (
        "trips.mode == 'bus' and persons.age > 80",
        lambda h, p, t, c: h.house.isin(
            t.merge(p, on=["house", "number"]).query("mode == 'bus' and age > 80").house
        ),
    ),
    ("any(cars.age > 5) and count(persons) == 1", lambda h, p, t, c: h.house.isin(c.home[c.age > 5])),
    ("cars.`born in` < '2003-01-01'", lambda h, p, t, c: h.house.isin(c.home[years(c) < 2003])),
    ("cars.born in=2005-Q1", lambda h, p, t, c: h.house.isin(c.home[years(c) == 2005])),
]


def years(cars: pd.DataFrame) -> pd.Series:
    return cars["born in"].astype("datetime64[ns]").dt.year


@pytest.mark.parametrize(
    ("given", "having"), some(HAVING, 6), ids=lambda one: one if isinstance(one, str) else None
)
def test_new_roots_have_what_is_given_in_words_of_tables(
    linked: Path, given: object, having: Callable[..., pd.Series]
) -> None:
    bundle = dpsynth.open_bundle(linked)
    found = bundle.sample_tables(60, given=given, seed=2)  # type: ignore[arg-type]
    homes, persons, trips, cars = found.values()
    assert having(homes, persons, trips, cars).all() and list(homes.house) == list(range(1, 61))
    # Each comes with all rows that belong to it, and no others.
    assert not persons.duplicated(["house", "number"]).any()
    assert (persons.groupby("house").size() <= 5).all()
    assert persons.house.isin(homes.house).all() and cars.home.isin(homes.house).all()
    assert len(trips.merge(persons, on=["house", "number"])) == len(trips)
    minors = persons[persons.age < 18].groupby("house").size().reindex(homes.house, fill_value=0)
    assert list(minors) == list(homes.minors)
    ages = cars.groupby("home").age.sum().reindex(homes.house, fill_value=0)
    assert list(ages) == list(homes.cars_age)


def test_roots_that_have_what_is_given_are_like_those_of_more_rows(linked: Path) -> None:
    """They are drawn and kept, so their shares are those among all roots that have it."""
    bundle = dpsynth.open_bundle(linked)
    every = bundle.sample_tables(20_000, seed=5)
    old = every["persons"].house[every["persons"].age >= 80]
    having = every["households"].house.isin(old)
    found, again = (bundle.sample_tables(4000, given="persons.age >= 80", seed=6) for _ in range(2))
    assert all(again[name].equals(frame) for name, frame in found.items())
    for name, share in (("minors", 0), ("cars_age", 0), ("region", "N")):
        of_all, drawn = (frame[name] == share for frame in (every["households"][having], found["households"]))
        assert abs(of_all.mean() - drawn.mean()) < 0.03
    sizes = [
        len(persons) / homes
        for persons, homes in (
            (every["persons"][every["persons"].house.isin(old)], having.sum()),
            (found["persons"], 4000),
        )
    ]
    assert abs(sizes[0] - sizes[1]) < 0.1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("age > 9", r"'age' is no column of households \(of persons there is one: persons\.age\)"),
        ("house=5", "'house' is no column of households"),
        ("person.age > 9", r"'person' is no table \(did you mean 'persons'\?\)"),
        ("persons.agee > 9", r"'agee' is no column of persons \(did you mean 'age'\?\)"),
        ("persons.sex=x", "'persons.sex' has no value 'x'; its values are labelled f, m"),
        ("cars_age=many", "'many', must be a number"),
        ("count(persons)=2", "write == to compare"),
        (
            "persons.age > 5 and cars.age > 3",
            "is about rows of persons and of cars, and no row of one belongs",
        ),
        ("persons.age > 100", "No row can have what is given"),
        ("count(persons) == 9", "The model has no row with what is given"),
        ("sum(persons.sex) > 3", "sum is of numbers"),
    ],
)
def test_what_no_root_can_have_is_refused(linked: Path, tmp_path: Path, given: str, words: str) -> None:
    with pytest.raises(DpsynthError, match=words):
        dpsynth.open_bundle(linked).sample_tables(5, given=given, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_no_rows_are_tables_without_rows_and_fewer_are_refused(linked: Path) -> None:
    bundle = dpsynth.open_bundle(linked)
    found = bundle.sample_tables(0, given="persons.age >= 80")
    assert [len(frame) for frame in found.values()] == [0] * 4
    assert [list(frame) for frame in found.values()] == [list(frame) for frame in bundle.tables.values()]
    with pytest.raises(DpsynthError, match="The number of rows must be from 0"):
        bundle.sample_tables(-1, given="persons.age >= 80")


def test_what_no_root_that_is_drawn_has_is_refused_after_many(
    linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.bundle.recipient.more_rows._SOME", 2000)
    bundle = dpsynth.open_bundle(linked)
    with pytest.raises(DpsynthError, match=r"None of [\d,]+ rows that were drawn has what is given"):
        bundle.sample_tables(1, given="min(persons.age) > 50 and max(persons.age) < 50")
    monkeypatch.setattr("dpsynth.bundle.recipient.more_rows._MOST_TIMES", 1)
    with pytest.raises(DpsynthError, match=r"\d+ of [\d,]+ rows that were drawn have what is given: ask for"):
        bundle.sample_tables(1000, given="trips.mode == 'bus' and persons.age > 80")


def test_words_of_tables_are_for_a_folder_of_tables(linked: Path, dpsynth: Command) -> None:
    asked = ("sample", str(linked), "--rows", "7", "--given", "persons.age >= 70", "--seed", "1")
    refused = dpsynth(*asked)
    assert refused.code == 2 and "name a new folder with --out" in refused.err
    assert dpsynth(*asked, "--out", "rows.csv").code == 2 and not Path("rows.csv").exists()
    done = dpsynth(*asked, "--out", "more")
    assert done.code == 0 and done.out.startswith("7 rows of households, ") and done.err == ""
    persons = pd.read_csv("more/tables/persons.csv")
    assert set(persons.house[persons.age >= 70]) == set(range(1, 8))


def test_a_bundle_of_one_table_has_none_to_join(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 50})
    done = dpsynth.release(
        frame,
        columns={"a": {"type": "category", "values": ["x", "y"]}},
        epsilon=1,
        dataset="one",
        ledger=tmp_path / "l.db",
        outputs=tmp_path / "out",
    )
    assert done.bundle.tables == {}
    for asked in (lambda: done.bundle.join("a"), lambda: done.bundle.sample_tables(3)):
        with pytest.raises(ConfigError, match="This bundle has one table"):
            asked()


def test_metadata_of_sdv_names_each_column_and_each_link(linked: Path) -> None:
    """By the rules of its format: a key is a column of sdtype id, and each link is of keys of one length."""
    found = json.loads((linked / "tables" / "metadata.json").read_text())
    assert found["METADATA_SPEC_VERSION"] == "V1" and list(found) == [
        "METADATA_SPEC_VERSION",
        "tables",
        "relationships",
    ]
    kinds = {
        name: {c: facts["sdtype"] for c, facts in t["columns"].items()} for name, t in found["tables"].items()
    }
    for name, columns in kinds.items():
        assert list(columns) == list(pd.read_csv(linked / "tables" / f"{name}.csv", nrows=0))
    assert kinds["persons"] == {"house": "id", "number": "id", "age": "numerical", "sex": "categorical"}
    assert kinds["households"]["cars_age"] == "numerical" and kinds["households"]["newest"] == "datetime"
    assert kinds["households"]["minors"] == "numerical" and kinds["households"]["has_adult"] == "categorical"
    born = found["tables"]["cars"]["columns"]["born in"]
    assert born == {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"}
    dates = pd.read_csv(linked / "tables" / "cars.csv")["born in"].dropna()
    assert len(pd.to_datetime(dates, format=born["datetime_format"])) == len(dates) > 100
    links = {(one["parent_table_name"], one["child_table_name"]): one for one in found["relationships"]}
    assert set(links) == {("households", "persons"), ("persons", "trips"), ("households", "cars")}
    for (parent, child), one in links.items():
        held, refers = (
            [k] if isinstance(k, str) else k for k in (one["parent_primary_key"], one["child_foreign_key"])
        )
        assert one["parent_primary_key"] == found["tables"][parent]["primary_key"]
        assert len(held) == len(refers)
        assert {kinds[parent][k] for k in held} == {kinds[child][k] for k in refers} == {"id"}
    assert links["households", "cars"]["child_foreign_key"] == "home"
    assert "primary_key" not in found["tables"]["trips"]


def test_init_reads_the_metadata_of_a_bundle(linked: Path, dpsynth: Command) -> None:
    done = dpsynth("init", str(linked / "tables" / "metadata.json"), "--pick", "cars", "--out", "cars.yaml")
    assert done.code == 0, done
    assert "%d.%m.%Y" in Path("cars.yaml").read_text()


@pytest.mark.parametrize("file", ["tables.json", "tables/metadata.json"])
def test_init_reads_keys_and_parents_from_both_descriptions_of_a_bundle(
    linked: Path, tmp_path: Path, dpsynth: Command, file: str
) -> None:
    assert dpsynth("init", str(linked / file), "--out", str(tmp_path / "street.yaml")).code == 0
    found = parse_yaml((tmp_path / "street.yaml").read_text(), "street")
    released, _ = street(1)
    assert set(found.values["tables"]) == set(released)
    for name, table in found.values["tables"].items():
        above = released[name].get("parent", {})
        assert table.get("parent", {}).get("table") == above.get("table")
        assert table.get("parent", {}).get("key") == above.get("key")
        assert table.get("key") == released[name].get("key")
        # What is counted of rows below is a column of the bundle's tables like others.
        assert table["columns"].keys() == released[name]["columns"].keys() | released[name].get("derived", {})
        path = linked / "tables" / f"{name}.csv" if file == "tables.json" else None
        assert table["source"]["path"] == (path and str(path))
        assert (f"tables.{name}.source.path" in found.values["review"]) == (path is None)


@pytest.mark.parametrize("file", ["tables.json", "tables/metadata.json", "tables/cars.csv"])
def test_verify_finds_a_file_that_does_not_follow_from_the_rows(
    linked: Path, tmp_path: Path, file: str
) -> None:
    from dpsynth.bundle.recipient.verification import CHECKED_TABLES

    public = Path(shutil.copytree(linked, tmp_path / "public"))
    check = CHECKED_TABLES.needed("this")
    assert check(dpsynth.open_bundle(public))[1] == []
    text = (public / file).read_text()
    (public / file).write_text(
        text.replace('"home"', '"age"') if file.endswith("json") else text[: text.rindex("\n", 0, -1) + 1]
    )
    assert (file, "is not what follows from the synthetic table.") in check(dpsynth.open_bundle(public))[1]


def test_tables_without_parquet_are_compared_with_their_rows_too(linked: Path, tmp_path: Path) -> None:
    from dpsynth.bundle.recipient.verification import CHECKED_TABLES

    public = Path(shutil.copytree(linked, tmp_path / "public"))
    for path in public.rglob("*.parquet"):
        if path.name != "measurements.parquet":
            path.unlink()
    words, faults = CHECKED_TABLES.needed("this")(dpsynth.open_bundle(public))
    assert faults == [] and "each key is there once" in words[0]
    path = public / "tables" / "persons.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert CHECKED_TABLES.needed("this")(dpsynth.open_bundle(public))[1]


def test_the_report_draws_the_links_and_says_what_to_use_of_each_table(linked: Path) -> None:
    page = (linked / "report.html").read_text()
    (picture,) = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    boxes = re.findall(r'<a href="tables/(\w+)\.csv"><rect x="(\d+)" y="(\d+)"', picture)
    assert [name for name, *_ in boxes] == ["households", "persons", "trips", "cars"]
    assert [int(x) for _, x, _ in boxes] == [1, 57, 113, 57] and [int(y) for *_, y in boxes] == [
        1,
        55,
        109,
        163,
    ]
    # A line leads from below each parent to each child's side.
    assert re.findall(r'd="M(\d+) (\d+)V(\d+)H(\d+)"', picture) == [
        ("21", "41", "75", "57"),
        ("77", "95", "129", "113"),
        ("21", "41", "183", "57"),
    ]
    assert "up to 5 for each row of households" in picture and "key: house, number" in picture
    assert [*re.findall(r"<summary>(\w+): what to use", page)] == ["households", "persons", "trips", "cars"]
    (persons,) = re.findall(r"<summary>persons: what.*?</table>", page, re.DOTALL)
    assert re.findall(r'scope="col">(\w+)', persons) == ["Column", "persons_1", "persons_2", "persons_other"]
    links = re.findall(r'<a href="#([^"]+)">', persons)
    assert len(links) == 9 and all(f'<article id="{link}"' in page for link in links)


def test_wide_rows_have_no_trip_of_a_person_who_is_not_there(linked: Path) -> None:
    rows = dpsynth.open_bundle(linked).synthetic
    for person in ("persons_1", "persons_2", "persons_other"):
        for turn in (1, 2):
            there = rows[f"{person}_trips"].fillna(0) >= turn
            assert (rows[f"{person}_trips_{turn}_mode"].notna() == there).all()
            assert there.sum() > 50
