"""A whole release: what it hands over, what it promises, and what it leaves alone."""

import csv
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.curator import samplers
from dpsynth.errors import DpsynthError
from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, HEADER, Place, people, release

DECLARED = HEADER[1:6]


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


# What it hands over.


def test_python_gets_what_was_published(place: Place, tmp_path: Path) -> None:
    done = release(place)
    table = done.synthetic
    assert tuple(table.columns) == DECLARED and len(table) > 0
    texts = str(pd.DataFrame({"a": ["b"]}).dtypes["a"])
    assert [str(t) for t in table.dtypes] == ["Int64", texts, "float64", texts, "boolean"]
    published = pq.read_table(done.folder / "public" / "synthetic.parquet")
    assert published.equals(done.table)
    manifest = evidence.assert_whole(done.folder)
    promised = manifest["guarantee"]
    assert isinstance(promised, dict)
    assert (done.guarantee.epsilon, done.guarantee.delta) == (promised["epsilon"], promised["delta"])
    assert {*DECLARED, "sex and city", "income by sex"} == set(done.tables)
    for statistic in done.tables.values():
        assert {"estimate", "standard_error", "low", "high"} <= set(statistic.table.column_names)
    estimates = done.tables["sex and city"].table.to_pandas()
    # An unbiased count may be negative; its interval holds what a count can be.
    possible = estimates["estimate"].clip(lower=0)
    assert estimates["low"].le(possible).all() and possible.le(estimates["high"]).all()
    assert (estimates["standard_error"] > 0).all()
    saved = done.save(tmp_path / "elsewhere")
    assert evidence.there(saved) == evidence.there(done.folder)
    evidence.assert_whole(saved)
    assert done.save(place.folder / "outputs") == done.folder
    with pytest.raises(DpsynthError, match="never overwritten"):
        done.save(tmp_path / "elsewhere")


def test_the_last_line_is_the_bundles_folder(keeper: Keeper, place: Place) -> None:
    done = keeper.run(place)
    assert (done.code, done.err) == (0, "")
    last = done.out.splitlines()[-1]
    assert re.fullmatch(r"outputs/people/\d{8}-[0-9a-f]{8}", last)
    evidence.assert_whole(place.folder / last)
    other = keeper.run(place, "--out", "there")
    assert other.folder.parent == Path("there/people") and (place.folder / other.folder).is_dir()


HEAVY = ("prefect", "pandas", "matplotlib", "scipy", "sklearn")
IMPORTS = """
import sys
from dpsynth.cli.app import main
for arguments in {commands!r}:
    sys.argv = ["dpsynth", *arguments]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code
print(*(name for name in {names!r} if name in sys.modules))
"""
IN_PYTHON = """
import sys, dpsynth
done = dpsynth.release(dpsynth.load("config.yaml"))
print(*(name for name in {names!r} if name in sys.modules))
done.synthetic
print(*(name for name in {names!r} if name in sys.modules))
"""


def test_the_quick_commands_import_nothing_heavy(place: Place) -> None:
    commands = [["--version"], ["plan", "config.yaml"], ["run", "config.yaml", "--plain"]]
    done = place.call([sys.executable, "-c", IMPORTS.format(commands=commands, names=HEAVY)])
    assert done.code == 0, done
    assert done.out.splitlines()[-1] == ""


def test_python_releases_without_prefect_and_imports_pandas_for_its_table_only(place: Place) -> None:
    done = place.call([sys.executable, "-c", IN_PYTHON.format(names=("prefect", "flows"))])
    assert done.code == 0 and done.out.split() == [], done


def test_what_is_private_is_for_the_owner_only(keeper: Keeper, place: Place) -> None:
    folder = place.folder / keeper.run(place).folder
    for path, mode in (
        (folder / "private", 0o700),
        (folder / "private" / "journal.jsonl", 0o600),
        (place.folder / "ledger.db", 0o600),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path


# What the table looks like.


def test_synthetic_rows_lie_in_the_declared_domains_in_the_declared_formats(
    keeper: Keeper, place: Place
) -> None:
    folder = place.folder / keeper.run(place).folder / "public"
    header, *rows = rows_of(folder / "synthetic.csv")
    assert tuple(header) == DECLARED and len(rows) > 100
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert all(re.fullmatch(r"\d+", v) and 0 <= int(v) <= 89 for v in columns["age"])
    assert set(columns["sex"]) <= {"F", "M", ""}
    assert all(re.fullmatch(r"\d+\.\d", v) and 0 <= float(v) <= 100 for v in columns["income"])
    assert set(columns["city"]) == {"Aa", "Bb", "Cc", "?"}
    assert set(columns["smoker"]) == {"no", "yes"}
    typed = pq.read_table(folder / "synthetic.parquet")
    assert [str(t) for t in typed.schema.types] == ["int64", "string", "double", "string", "bool"]
    assert typed["age"].to_pylist() == [int(v) for v in columns["age"]]
    assert typed["income"].to_pylist() == [float(v) for v in columns["income"]]
    assert typed["smoker"].to_pylist() == [v == "yes" for v in columns["smoker"]]
    assert typed["city"].to_pylist() == [None if v == "?" else v for v in columns["city"]]


def test_without_noise_the_synthetic_table_is_like_the_private_one(keeper: Keeper, place: Place) -> None:
    """Nothing is shuffled, shifted or swapped on the way from cells to counts to cells.

    300 rows are drawn from cliques of thousands of cells, hence a few rows' difference.
    """
    place.configure(privacy={"epsilon": 500, "neighbours": "replace_one"}, sample={"seed": 1})
    done = keeper.run(place, fault="answers without noise")
    header, *rows = rows_of(place.folder / done.folder / "public" / "synthetic.csv")
    made = pd.DataFrame(rows, columns=header)
    true = pd.DataFrame(people(300), columns=HEADER)[list(DECLARED)]
    for column in ("sex", "city", "smoker"):
        gap = made[column].value_counts().sub(true[column].value_counts(), fill_value=0).abs().max()
        assert gap <= 10, column
    assert abs(made["income"].astype(float).mean() - true["income"].astype(float).mean()) < 3
    assert abs(made["age"].astype(float).mean() - true["age"].astype(float).mean()) < 2
    both = [pd.crosstab(t["sex"], t["city"]) for t in (made, true)]
    assert (both[0] - both[1]).abs().max().max() <= 10


def test_a_seed_decides_nothing_but_which_rows_are_drawn(
    place: Place, without_noise: Callable[[], None]
) -> None:
    without_noise()
    tables = {}
    for seed in (7, 7, 8):
        place.configure(sample={"seed": seed})
        tables.setdefault(seed, []).append(release(place).table)
    assert tables[7][0].equals(tables[7][1]) and not tables[7][0].equals(tables[8][0])


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes mechanisms answer exactly, for tests of what comes before and after them."""

    def silence() -> None:
        monkeypatch.setattr(samplers, "add_gaussian", lambda values, sigma: values)
        monkeypatch.setattr(samplers, "add_laplace", lambda values, scale: values)
        monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: int(np.argmax(scores)))

    return silence


def test_a_parquet_source_gives_the_same_answers_as_a_csv(
    place: Place, without_noise: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise, and with one key to choose rows by, journals are the same line by line."""
    without_noise()
    token = secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda n: token(n) if n < 32 else "ab" * n)
    table = pyarrow.csv.read_csv(
        place.folder / "people.csv",
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["?"]),
    )
    pq.write_table(table, place.folder / "people.parquet", row_group_size=70)
    assert {str(t) for t in table.schema.types} >= {"int64", "double", "string"}
    journals = []
    for name in ("people.csv", "people.parquet"):
        place.configure(
            privacy={"noise": "laplace", **BY_PERSON},
            source={"path": str(place.folder / name)},
            ledger={"url": f"sqlite:///{place.folder / 'ledger.db'}"},
        )
        spec = dpsynth.load(place.folder / "config.yaml")
        done = dpsynth.release(spec, outputs=place.folder / "outputs")
        _, held, *lines = evidence.records(done.folder / "private" / "journal.jsonl")
        assert held["kind"] == "held"
        journals.append(lines)
    assert journals[0] == journals[1] and len(journals[0]) > 20
