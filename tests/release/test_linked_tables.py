"""Whole releases of linked tables: from files and a database to tables with new keys."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.bundle.recipient.verification import CHECKED_TABLES
from dpsynth.config import Spec, from_mapping
from dpsynth.errors import ConfigError, Paused, SourceError
from tests.release.killed_by_charges import killed_release
from tests.wings.tables.linked import TABLES, frames, two

HOMES = "Zebrahome"
"""Beginning of all private keys."""


def keyed(given: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables with keys that are known again wherever they are written."""
    return {name: frame.assign(house=HOMES + frame.house) for name, frame in given.items()}


def spec_of(folder: Path, given: dict[str, pd.DataFrame] | None = None, **more: object) -> Spec:
    """A configuration of a CSV file, a Parquet file and a database with the tables."""
    found = keyed(frames(1500)) if given is None else given
    found["households"].to_csv(folder / "households.csv", index=False)
    found["persons"].to_parquet(folder / "persons.parquet")
    with closing(sqlite3.connect(folder / "trips.db")) as base:
        found["trips"].to_sql("trips", base, index=False, if_exists="replace")
    tables = copy.deepcopy(dict(TABLES))
    tables["households"]["source"] = {"path": str(folder / "households.csv")}
    tables["persons"]["source"] = {"path": str(folder / "persons.parquet")}
    query = "SELECT house, number, mode FROM trips"
    tables["trips"]["source"] = {"url": f"sqlite:///{folder}/trips.db", "query": query}
    keys = {
        "release": "homes",
        "tables": tables,
        "privacy": {"epsilon": 4, "delta": 1e-6, "on_empty": "go"},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "homes", "cap": {"epsilon": 90}},
    }
    return from_mapping({**keys, **more})


def released(folder: Path, spec: Spec, **more: object) -> dpsynth.Release:
    return dpsynth.release(spec, outputs=folder / "out", **more)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("linked")


@pytest.fixture(scope="module")
def release(place):
    return released(place, spec_of(place))


def test_each_table_comes_back_with_keys_that_fit(release):
    tables = release.bundle.tables
    assert list(tables) == ["households", "persons", "trips"]
    homes, persons, trips = tables.values()
    assert homes.house.is_unique and persons.house.isin(homes.house).all()
    assert not persons.duplicated(["house", "number"]).any()
    assert len(trips.merge(persons, on=["house", "number"])) == len(trips)
    assert persons.groupby("house").size().max() <= 3 and trips.groupby(["house", "number"]).size().max() <= 2
    assert abs(len(homes) - 1500) < 60
    real = frames(1500)["persons"].groupby("house").size().clip(upper=3).sum()
    assert abs(len(persons) / real - 1) < 0.1


def test_what_is_computed_of_children_contradicts_none_of_them(release):
    homes, persons, _ = release.bundle.tables.values()
    ages = persons.astype({"age": int})
    minors = ages[ages.age < 18].groupby("house").size().reindex(homes.house, fill_value=0)
    adults = ages[ages.age >= 18].groupby("house").size().reindex(homes.house, fill_value=0)
    assert (homes.minors.to_numpy() == minors.to_numpy()).all()
    assert ((homes.has_adult == "yes").to_numpy() == (adults > 0).to_numpy()).all()
    lived_in = persons.groupby("house").size().reindex(homes.house, fill_value=0).to_numpy() > 0
    assert (adults.to_numpy()[lived_in] > 0).all()
    assert persons.age.notna().all()


def test_members_of_one_household_are_alike(release):
    persons = release.bundle.tables["persons"].astype({"age": float, "number": int})
    first, second = (persons[persons.number == i].set_index("house").age for i in (1, 2))
    both = pd.concat([first, second], axis=1, keys=["a", "b"]).dropna()
    assert both.a.corr(both.b) > 0.6


def test_the_files_say_which_columns_hold_keys(release):
    public = release.handed_over
    described = json.loads((public / "tables.json").read_text())
    homes, persons, trips = described["resources"]
    assert homes["schema"]["primaryKey"] == ["house"] and "foreignKeys" not in homes["schema"]
    reference = {
        "fields": ["house", "number"],
        "reference": {"resource": "persons", "fields": ["house", "number"]},
    }
    assert trips["schema"]["foreignKeys"] == [reference] and "primaryKey" not in trips["schema"]
    for resource in (homes, persons, trips):
        header = pd.read_csv(public / resource["path"], nrows=0)
        assert list(header) == [field["name"] for field in resource["schema"]["fields"]]
    readme = (public / "README.md").read_text()
    assert "The folder tables has 3 linked tables with new keys" in readme
    assert "Private rows of persons beyond the first 3 and trips beyond the first 2" in readme
    assert re.search(r"[\d.]+ % for columns of two rows of persons \([\d.]+ % to [\d.]+ %\)", readme)
    (said,) = re.findall(r"private tables have ([\d,]+) to ([\d,]+) rows of persons \(at most 3 ", readme)
    low, high = (int(end.replace(",", "")) for end in said)
    real = frames(1500)["persons"].groupby("house").size().clip(upper=3).sum()
    # Six standard deviations: a test that fails by chance would do so once in a thousand million runs.
    assert low < high and abs((low + high) / 2 - real) < 6 * (high - low) / 2 / 1.96
    report = (public / "report.html").read_text()
    assert "up to 3 for each row of households" in report
    assert "What is protected is a row of households with all rows that belong to it" in readme


def test_the_bundle_is_verified_and_no_private_key_is_left_anywhere(place, release):
    found = release.bundle.verify()
    assert not found.findings
    assert any("each key is there once, and each row has its parent" in words for words in found.proven)
    assert release.guarantee.unit.startswith("one household: all rows with the same house")
    told = {path.name for path in place.rglob("*") if path.is_file() and HOMES.encode() in path.read_bytes()}
    # Neither in the journal nor in the ledger: in the private tables alone.
    assert told == {"households.csv", "persons.parquet", "trips.db"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_other_rows_in_a_table_are_found(release, tmp_path, ending):
    public = tmp_path / "public"
    shutil.copytree(release.handed_over, public)
    file = public / "tables" / f"persons.{ending}"
    if ending == "csv":
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join([lines[0], lines[2], lines[1], *lines[3:]]))
    else:
        pq.write_table(pq.read_table(file).slice(1), file)
    _, faults = CHECKED_TABLES.needed("this")(dpsynth.open_bundle(public))
    assert faults[0] == (f"tables/persons.{ending}", "is not what follows from the synthetic table.")


@pytest.fixture(scope="module")
def by_csv(tmp_path_factory) -> Path:
    """The public folder of a release with CSV files alone."""
    folder = tmp_path_factory.mktemp("csv")
    given = {name: frame for name, frame in frames(300).items() if name != "trips"}
    keys = {"tables": two(), "epsilon": 4, "dataset": "homes", "ledger": folder / "l.db"}
    done = dpsynth.release(given, outputs=folder / "out", publish={"formats": ["csv"]}, **keys)
    assert not done.bundle.verify().findings and list(done.bundle.tables) == ["households", "persons"]
    return done.handed_over


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("number", "1", "has a key twice"),
        ("house", "99999", "has rows without a row of households"),
        ("house", "1", "has more than 3 rows of one row of households"),
    ],
)
def test_wrong_keys_are_found_in_a_bundle_of_csv_files_alone(by_csv, tmp_path, column, value, words):
    public = shutil.copytree(by_csv, tmp_path / "public")
    file = public / "tables" / "persons.csv"
    persons = pd.read_csv(file, dtype=str)
    persons.loc[:20, column] = value
    persons.to_csv(file, index=False)
    _, faults = CHECKED_TABLES.needed("this")(dpsynth.open_bundle(public))
    assert any(words in fault for _, fault in faults)


def test_tables_that_are_handed_over_in_python(tmp_path):
    keys = {"tables": two(), "epsilon": 4, "dataset": "homes", "ledger": tmp_path / "l.db"}
    given = {name: frame for name, frame in frames(400).items() if name != "trips"}
    done = dpsynth.release(given, outputs=tmp_path / "out", **keys)
    assert list(done.bundle.tables) == ["households", "persons"]
    with pytest.raises(ConfigError, match="a frame for each of households, persons"):
        dpsynth.release(frames(400), outputs=tmp_path / "out", **keys)
    one = {**keys, "dataset": "rents", "columns": {"rent": {"type": "integer", "min": 0, "max": 9}}}
    del one["tables"]
    with pytest.raises(SourceError, match="3 tables were handed over, and the configuration describes one"):
        dpsynth.release(frames(400), outputs=tmp_path / "out", **one)


def test_a_release_that_is_killed_is_finished_by_its_id(tmp_path):
    spec = spec_of(tmp_path)
    finished = released(tmp_path, spec, resume=killed_release(__name__, tmp_path, 25))
    assert not finished.bundle.verify().findings and 3.9 < finished.guarantee.epsilon <= 4


def test_linked_tables_in_files_are_released_again(tmp_path):
    spec = spec_of(tmp_path, frames(200))
    first, again = (released(tmp_path, spec).handed_over for _ in range(2))
    assert first.parent != again.parent and first.is_dir()


def test_synthetic_rows_obey_rules_about_rows_above_where_private_ones_break_them(tmp_path):
    rule = "households.rent >= 5 * age"
    given = {name: frame for name, frame in frames(600).items() if name != "trips"}
    oldest = given["persons"].astype({"age": int}).groupby("house").age.max()
    homes = given["households"]
    homes["rent"] = (5 * homes.house.map(oldest).fillna(0).astype(int) + 40).astype(str)
    homes.loc[:5, "rent"] = "0"
    tables = two()
    tables["persons"] |= {"constraints": [rule]}
    tables["persons"]["parent"] = {**tables["persons"]["parent"], "max_children": 6, "roles": 2}
    keys = {"tables": tables, "epsilon": 4, "dataset": "homes", "ledger": tmp_path / "l.db"}
    done = dpsynth.release(given, outputs=tmp_path / "out", **keys)
    found = done.bundle.verify()
    assert not found.findings and f"Every row of persons obeys: {rule}." in found.proven
    report = (done.handed_over / "report.html").read_text()
    assert f"Every row of persons obeys: {rule.replace('>', '&gt;')}." in report
    more = done.bundle.sample_tables(300, seed=1)
    for made in (done.bundle.tables, more):
        both = made["persons"].merge(made["households"], on="house")
        assert len(both) > 300 and (both.rent.isna() | (both.rent >= 5 * both.age)).all()


@pytest.mark.usefixtures("seeded_noise")
def test_a_mapping_holds_in_all_rows_of_a_child(tmp_path):
    given, tables = frames(300), two()
    persons, job = given["persons"], [*"abcdefgh"]
    persons["job"] = [job[int(age) * 8 // 100] for age in persons.age]
    persons["trade"] = [*map(dict(zip(job, "wxywxyxw", strict=True)).get, persons.job)]
    named = {"job": {"type": "category", "values": job}, "trade": {"type": "category", "values": [*"wxy"]}}
    tables["persons"] |= {"columns": TABLES["persons"]["columns"] | named}
    tables["persons"]["parent"] = {**TABLES["persons"]["parent"], "max_children": 5, "roles": 3}
    two_trades = []
    for rules in ([], ["job determines trade"]):
        tables["persons"]["constraints"] = rules
        done = dpsynth.release(
            {name: given[name] for name in tables},
            tables=tables,
            epsilon=0.7,
            dataset=f"homes {len(rules)}",
            ledger=tmp_path / "ledger.db",
            outputs=tmp_path / "out",
        )
        rows = done.bundle.tables["persons"].dropna(subset=["job", "trade"])
        two_trades.append(int((rows.groupby("job", observed=True).trade.nunique() > 1).sum()))
        found = done.bundle.verify()
        assert not found.findings
    assert two_trades[0] > 3 and two_trades[1] == 0
    assert "Every row of persons obeys: job determines trade." in found.proven


def test_a_neighbour_ends_the_same_way_with_the_same_files(tmp_path):
    """Broken keys, orphans and cells that can't be read change no exit and no name of a file."""
    said = []
    for wild in (False, True):
        folder = tmp_path / str(wild)
        folder.mkdir()
        given = keyed(frames(300, wild=wild))
        done = released(folder, spec_of(folder, given))
        assert not done.bundle.verify().findings
        said.append({path.relative_to(done.handed_over) for path in done.handed_over.rglob("*")})
    assert said[0] == said[1]


def test_a_table_whose_keys_fit_nothing_is_empty_to_the_owner(tmp_path):
    given = keyed(frames(1500))
    given["households"] = given["households"].assign(house="")
    with pytest.raises(Paused):
        released(tmp_path, spec_of(tmp_path, given, privacy={"epsilon": 4, "delta": 1e-6}))


def test_the_owner_is_told_what_of_the_tables_is_left_out(tmp_path):
    from dpsynth.wings.owner.assess.checking import check

    given = keyed(frames(300, wild=True))
    found = check(spec_of(tmp_path, given))
    told = {(finding.about, finding.cells): finding.what for finding in found.findings}
    plain = frames(300)
    sizes = plain["persons"].groupby("house").size()
    beyond = int((sizes - 3).clip(lower=0).sum())
    assert told["tables.households", 1].startswith("1 row of 304 of households with the key of one before")
    assert any(about == "tables.persons.parent.max_children" and cells >= beyond for about, cells in told)
    assert any("without the key of a row of households" in words for words in told.values())
    (lost,) = (f for f in found.findings if "whose row of households isn't there" in f.what)
    assert lost.remedy == "see to the table, and how both write the key"


def test_a_release_is_compared_with_the_private_tables_of_its_configuration(tmp_path):
    from dpsynth.wings.owner.assess.evaluation import evaluate

    found = frames(600)
    released_one = released(tmp_path, spec_of(tmp_path, keyed(found)))
    path = tmp_path / "homes.yaml"
    tables = copy.deepcopy(dict(TABLES))
    tables["households"]["source"] = {"path": str(tmp_path / "households.csv")}
    tables["persons"]["source"] = {"path": str(tmp_path / "persons.parquet")}
    query = "SELECT house, number, mode FROM trips"
    tables["trips"]["source"] = {"url": f"sqlite:///{tmp_path}/trips.db", "query": query}
    path.write_text(json.dumps({"tables": tables, "privacy": {"epsilon": 4}, "ledger": {"dataset": "homes"}}))
    compared = evaluate(released_one.folder, None, path)
    assert compared.rows[0] == 600 and len(compared.columns) == len(released_one.drawn.source.layout.columns)
    with pytest.raises(ConfigError, match="compared with --config, which describes them"):
        evaluate(released_one.folder, tmp_path / "households.csv")
    in_memory = dpsynth.evaluate(released_one, found, config=path)
    by_spec = dpsynth.evaluate(released_one, found, config=dpsynth.load(path))
    assert in_memory.frame.equals(by_spec.frame) and in_memory.frame.equals(compared.frame)
    with pytest.raises(ConfigError, match="compared with the argument config, which describes them"):
        dpsynth.evaluate(released_one, found)


def test_no_private_table_is_a_public_one_or_the_folder_of_bundles(tmp_path):
    path = str(tmp_path / "households.csv")
    with pytest.raises(ConfigError, match=r"public_table\.path must be another file than source\.path"):
        released(tmp_path, spec_of(tmp_path, public_table={"path": path}))
    given = {name: frame for name, frame in frames(30).items() if name != "trips"}
    tables = two()
    for name, frame in given.items():
        (tmp_path / name).mkdir()
        frame.to_parquet(tmp_path / name / "1.parquet")
        tables[name]["source"] = {"path": str(tmp_path / name), "format": "parquet"}
    spec = spec_of(tmp_path, tables=tables)
    with pytest.raises(ConfigError, match="lies in the private table's folder"):
        dpsynth.release(spec, outputs=tmp_path / "persons" / "out")
    assert not (tmp_path / "ledger.db").exists()


def test_a_rehearsal_reads_none_of_the_tables(tmp_path, monkeypatch):
    from dpsynth.pipeline.rehearsal import rehearse
    from dpsynth.wings.tables import wide_rows

    def opened(*_: object) -> object:
        raise AssertionError("a private table was opened")

    monkeypatch.setattr(wide_rows, "wide_table", opened)
    spec = spec_of(tmp_path, keyed(frames(300)))
    for name in ("households.csv", "persons.parquet", "trips.db"):
        (tmp_path / name).unlink()
    done = rehearse(spec, rows=400, outputs=tmp_path / "out")
    assert abs(len(done.bundle.tables["households"]) - 400) < 60
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_report_leads_to_tables_that_are_there(tmp_path, ending):
    given = {name: frame for name, frame in frames(200).items() if name != "trips"}
    keys = {"tables": two(), "epsilon": 4, "dataset": "homes", "ledger": tmp_path / "l.db"}
    done = dpsynth.release(given, outputs=tmp_path / "out", publish={"formats": [ending]}, **keys)
    links = re.findall(r'href="(tables/[^"]+)"', (done.handed_over / "report.html").read_text())
    assert links == [f"tables/{name}.{ending}" for name in two()]
    assert all((done.handed_over / link).is_file() for link in links)
