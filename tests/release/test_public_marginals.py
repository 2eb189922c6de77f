"""Releases with known marginals: not asked for, kept exactly, and said to be known."""

import csv
import json
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest

from dpsynth.pipeline.result import Release
from tests.release.place import Place, people, release
from tests.thinned import some

ROWS = people(300)
SEX = Counter(row[2] for row in ROWS)
PAIRS = Counter((row[2], row[4]) for row in ROWS)


def manifest(made: Release) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / "public" / "manifest.json").read_text())
    return found


def with_file(place: Place, counts: dict[tuple[str, str], int], kind: str = "count") -> dict[str, object]:
    with (place.folder / "totals.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sex", "city", kind), *((*cell, n) for cell, n in counts.items())])
    return {"columns": ["sex", "city"], "file": str(place.folder / "totals.csv")}


def counted(made: Release) -> Counter[tuple[str, str]]:
    table = made.table.select(["sex", "city"]).to_pylist()
    return Counter((row["sex"], row["city"] or "?") for row in table)


@pytest.mark.parametrize("method", some(["mst", "auto", "independent", "aim", "privbayes"], 3))
def test_counts_come_out_exactly_and_are_not_asked(place: Place, method: str) -> None:
    place.configure(public_marginals=[with_file(place, PAIRS)], structure={"method": method})
    made = release(place)
    assert made.table.num_rows == 300 and counted(made) == PAIRS
    asked = [m["columns"] for m in manifest(made)["mechanisms"] if m["question"] in ("marginal", "count")]
    assert [] not in asked and None not in asked
    assert asked[:4] != [["age"], ["income"], ["smoker"], ["sex", "city"]], "as a statistic is first asked"
    if method in ("mst", "independent"):
        assert ["sex"] not in asked and ["city"] not in asked
        schema = pq.read_schema(made.folder / "public" / "measurements.parquet")
        paid = [m["columns"] for m in json.loads(schema.metadata[b"dpsynth.measurements"])]
        assert paid == [[], *asked], "the total is exact"
    table = made.tables["sex and city"].table
    assert set(table["basis"].to_pylist()) == {"public"}
    assert set(table["standard_error"].to_pylist()) == {0.0}
    told = {(r["sex"], r["city"].replace("(missing)", "?")): r["estimate"] for r in table.to_pylist()}
    assert all(told[cell] == pytest.approx(n) for cell, n in PAIRS.items())
    assert manifest(made)["public_marginals"] == [{"columns": ["sex", "city"], "rows": 300}]
    assert "sex with city" in (made.folder / "public" / "README.md").read_text()


def test_shares_leave_the_number_of_rows_to_be_asked(place: Place) -> None:
    """As of a census a thousand times as large."""
    shares = {value: 1000 * n for value, n in SEX.items()}
    place.configure(public_marginals=[{"columns": ["sex"], "shares": shares}], sample={"rows": 600})
    made = release(place)
    assert Counter(made.table["sex"].to_pylist()) == {v: 2 * n for v, n in SEX.items()}
    asked = [m["columns"] for m in manifest(made)["mechanisms"]]
    assert [] in asked and ["sex"] not in asked
    table = made.tables["sex"].table.to_pylist()
    assert all(r["share_standard_error"] == 0 for r in table)
    assert all(r["standard_error"] > 0 for r in table if r["share"] > 0)


def test_totals_that_are_wrong_of_the_table_neither_fail_nor_speak(place: Place) -> None:
    """Planted: nobody of the table is F, as the totals have it, and there are 1,000 rows."""
    place.configure(public_marginals=[{"columns": ["sex"], "counts": {"F": 0, "M": 1000}}])
    made = release(place)
    assert Counter(made.table["sex"].to_pylist()) == {"M": 1000}


def test_the_total_is_not_asked_of_a_table_whose_rows_are_public_either(place: Place) -> None:
    place.configure(
        public_marginals=[{"columns": ["sex"], "counts": dict(SEX)}], privacy={"neighbours": "replace_one"}
    )
    made = release(place)
    assert [] not in [m["columns"] for m in manifest(made)["mechanisms"]]
    assert made.table.num_rows == 300
