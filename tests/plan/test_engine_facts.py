"""A plan says how rows are coded and where they lie, from the configuration and public facts alone."""

import numpy as np
import pytest

from dpsynth.cli.plan_command import describe
from dpsynth.config.loading import from_mapping
from dpsynth.pipeline.forecast import forecast
from dpsynth.plan.resources import READ_COLUMN_MEGABYTES, bytes_of_row, forecast_of

CONFIG = {
    "source": {"url_from": "A_DATABASE_THAT_IS_NOT_THERE", "query": "SELECT * FROM visits"},
    "privacy": {"epsilon": 1, "delta": "1e-9"},
    "columns": {
        "age": {"type": "integer", "min": 0, "max": 110},
        "wide": {"type": "integer", "min": 0, "max": 299, "bins": 300},
    },
}


def facts(folder, rows=None, **changes):
    ledger = {"dataset": "visits", "url": f"sqlite:///{folder}/ledger.db"}
    privacy = {"epsilon": 1, "delta": 1e-9, **changes.pop("privacy", {})}
    return forecast(from_mapping({**CONFIG, **changes, "ledger": ledger, "privacy": privacy}), rows)


def test_a_row_has_the_bytes_of_its_codes():
    assert bytes_of_row([2, 256, 257, 70_000, None], 0, person=False) == 1 + 1 + 2 + 4 + 4
    assert bytes_of_row([2], 3, person=True) == 1 + 12 + 8
    assert np.min_scalar_type(255).itemsize == 1


def test_memory_stops_growing_where_rows_go_into_a_file():
    rough = forecast_of(15, 10**6, 2, chooses=True)
    small, large = (rough.of_rows(n, held=2 * 10**9, coded=15 * n) for n in (10**8, 10**9))
    assert small.seconds < large.seconds and large.megabytes < 1.5 * small.megabytes
    assert rough.of_rows(0, held=1, coded=0) == rough


def test_few_synthetic_rows_take_little_and_as_many_as_there_are_take_more_with_each():
    few, same = (forecast_of(15, 10**6, 2, chooses=True, made=made) for made in (10_000, None))
    assert few.seconds_per_million_rows < same.seconds_per_million_rows / 3
    million, nothing = (forecast_of(15, 10**6, 2, chooses=True, made=made) for made in (10**6, 0))
    assert million.seconds - nothing.seconds == pytest.approx(
        same.seconds_per_million_rows - few.seconds_per_million_rows
    )
    assert nothing.megabytes < few.megabytes < million.megabytes
    whole = same.of_rows(10**6, held=10**9, coded=10**6)
    again = same.of_rows(2 * 10**6, held=10**9, coded=10**6)
    assert again.megabytes - whole.megabytes == pytest.approx(READ_COLUMN_MEGABYTES * 15)


@pytest.mark.parametrize(
    ("rows", "seconds", "megabytes"),
    [(10**5, 2.4, 207), (10**6, 2.8, 324), (10**7, 5.6, 505), (10**8, 39.7, 1850)],
)
def test_a_forecast_is_within_a_factor_of_what_was_measured(rows, seconds, megabytes):
    """Releases by mst, 15 columns of 20 values from Parquet, 10 000 rows made: seconds and megabytes."""
    said = forecast_of(15, 15 * 20 * 20, 2, chooses=True, made=10_000)
    whole = said.of_rows(rows, held=2 * 10**9, coded=15 * rows)
    assert 1 / 1.5 < whole.seconds / seconds < 1.5
    assert 1 / 1.5 < whole.megabytes / megabytes < 1.5


def test_a_plan_says_where_coded_rows_lie_without_looking_at_any(tmp_path, capsys):
    engine = facts(tmp_path)["engine"]
    assert engine["bytes_of_a_row"] == 1 + 2 and engine["rows"] is None and engine["memory"] == 2 * 10**9
    few, many = (facts(tmp_path, rows)["engine"] for rows in (10**6, 10**9))
    assert few["coded_bytes"] == 3 * 10**6 and few["cache_bytes"] == 0
    assert many["cache_bytes"] == many["coded_bytes"] == 3 * 10**9 and many["seconds"] > few["seconds"]
    describe(facts(tmp_path, 10**9), detail=True)
    said = " ".join(capsys.readouterr().out.split())
    assert "1,000,000,000 rows are coded to 3 GB, held in a private file" in said


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"path": "visits.csv.gz"}, "columns that are not declared; the .gz file has fewer."),
        ({"path": "visits.csv"}, "MB of text, and the cells of columns"),
        ({"path": "visits.parquet"}, "MB, the text of the declared columns before Parquet packs it."),
        (CONFIG["source"], "MB, the text of the declared columns."),
    ],
)  # fmt: skip
def test_a_plan_says_what_is_read_by_declared_columns_and_rows(tmp_path, capsys, source, said):
    describe(facts(tmp_path, 10**6, source=source), detail=True)
    assert said in " ".join(capsys.readouterr().out.split())
    described = facts(tmp_path, source=source)
    assert described["engine"]["read_bytes_of_a_row"] == 6.6 and "read_bytes" not in described["engine"]
    describe(described, detail=True)
    assert "7 bytes a row" in " ".join(capsys.readouterr().out.split())


def test_what_is_read_is_near_the_size_of_the_file(tmp_path):
    """All values alike: then the forecast is of the file itself, but for its header."""
    columns = {
        "age": {"type": "integer", "min": 0, "max": 110},
        "pay": {"type": "number", "min": 0, "max": 1000, "decimals": 2},
        "city": {"type": "category", "values": ["Bern", "Zürich"]},
        "when": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
        "well": {"type": "boolean"},
    }
    rng, rows = np.random.default_rng(1), 4000
    days = np.datetime64("2020-01-01") + rng.integers(0, 366, rows)
    city, well = (np.array(c)[rng.integers(0, 2, rows)] for c in (["Bern", "Zürich"], ["true", "false"]))
    ages, cents = rng.integers(0, 111, rows), rng.integers(0, 100_001, rows)
    lines = [
        f"{age},{pay / 100:.2f},{c},{day},{w}\n"
        for age, pay, c, day, w in zip(ages, cents, city, days, well, strict=True)
    ]
    said = facts(tmp_path, rows, columns=columns, source={"path": "visits.csv"})["engine"]["read_bytes"]
    assert said / len("".join(lines).encode()) == pytest.approx(1.0, abs=0.05)


def test_rows_of_persons_take_half_of_the_memory_as_they_are_copied(tmp_path):
    person = {"unit": {"column": "who", "max_rows": 3}}
    engine = facts(tmp_path, 10**8, privacy=person, engine={"memory": "2 GB"})["engine"]
    assert engine["bytes_of_a_row"] == 3 + 8 and engine["cache_bytes"] == 11 * 10**8


@pytest.mark.parametrize("memory", ["1 GB", "4 GB"])
def test_the_bound_decides_what_lies_in_a_file(tmp_path, memory):
    engine = facts(tmp_path, 10**9, engine={"memory": memory})["engine"]
    assert (engine["cache_bytes"] > 0) == (memory == "1 GB")


def test_a_plan_says_that_workers_of_dask_count(tmp_path, capsys):
    for rows in (None, 10**8):
        found = facts(tmp_path, rows, engine={"dask": "local"})
        assert found["engine"]["name"].startswith("Dask") and not found["engine"].get("cache_bytes")
        describe(found, detail=True)
        said = " ".join(capsys.readouterr().out.split())
        assert "Rows are read and counted by Dask, with a worker for each processor of this machine;" in said
        assert "2.0 GB" in said or "2 GB" in said
    assert facts(tmp_path)["engine"]["name"] == "this process"
