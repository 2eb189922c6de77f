"""Wide rows split into tables again: what was widened comes back, with new keys."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsynth.wings.tables.splitting import Shape, split

from .linked import TABLES, frames, two
from .test_wide_rows import spec_of, wide_of


def wide_table_of(given, tables=TABLES) -> tuple[pa.Table, Shape]:
    table = wide_of(given, tables)
    batches = [pa.table({c: a.cast(pa.string()) for c, a in b.items()}) for b in table.batches(table.names)]
    wide = pa.concat_tables(batches)
    # The numbers of child rows are read as the model's integers.
    for spot, name in enumerate(wide.column_names):
        if name == "persons" or name.endswith("_trips"):
            wide = wide.set_column(spot, name, wide[name].cast(pa.int64()))
    return wide, Shape.of(spec_of(tables).tables, "households")


def sorted_rows(frame: pd.DataFrame) -> list[tuple]:
    return sorted(map(tuple, frame.fillna("").astype(str).to_numpy()))


def test_tables_come_back_with_new_keys():
    given = frames(40)
    wide, shape = wide_table_of(given)
    found = {name: table.to_pandas() for name, table in split(wide, shape).items()}
    assert list(found) == ["households", "persons", "trips"]
    houses, persons, trips = found.values()
    assert list(persons.columns) == ["house", "number", "age", "sex"]
    assert list(trips.columns) == ["house", "number", "mode"]
    assert houses.house.is_unique and not persons.duplicated(["house", "number"]).any()
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
    wide, shape = wide_table_of(frames(40))
    found = split(wide, shape)
    houses, persons = found["households"].to_pandas(), found["persons"].to_pandas()
    trips = found["trips"].to_pandas()
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
    found = split(*wide_table_of(given, tables))["persons"].to_pandas()
    assert list(found.columns) == ["house", "person", "number", "age", "sex"]
    assert list(found.person) == list(range(1, len(found) + 1))
    assert found.groupby("house").number.apply(lambda own: list(own) == list(range(1, len(own) + 1))).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(rows):
    wide, shape = wide_table_of(frames(1))
    found = split(wide.slice(0, rows), shape)
    assert found["households"].num_rows == rows
    assert found["trips"].column_names == ["house", "number", "mode"]


def test_a_shape_is_what_its_statement_says():
    _, shape = wide_table_of(frames(2))
    assert Shape.from_json(shape.to_json()) == shape
