"""The wide table: each row follows from one root row and what belongs to it, whatever the keys are."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from dpsynth.columns.identifier import canonical_id
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import MemoryTable, MemoryTables
from dpsynth.errors import ConfigError, SourceError
from dpsynth.wings.owner.assess.checking import check
from dpsynth.wings.tables import wide_rows
from dpsynth.wings.tables.wide_rows import WideTable, wide_table

from .linked import TABLES, frames, two


def spec_of(tables=TABLES, **more: object) -> Spec:
    keys = {"privacy": {"epsilon": 1, "delta": 1e-6}, "ledger": {"dataset": "homes"}, **more}
    return Spec.from_dict({**keys, "tables": tables})


def wide_of(given: dict[str, pd.DataFrame], tables=TABLES) -> WideTable:
    held = MemoryTables({name: given[name] for name in tables})
    return wide_table(spec_of(tables), held)


def rows_of(given: dict[str, pd.DataFrame], tables=TABLES) -> list[tuple[str | None, ...]]:
    """The wide rows without their key, as texts, sorted."""
    table = wide_of(given, tables)
    names = table.names[1:]
    found = []
    for batch in table.batches(table.names):
        cells = [batch[name].cast(pa.string()).to_pylist() for name in names]
        found += list(zip(*cells, strict=True))
    return sorted(found, key=lambda row: [str(cell) for cell in row])


def id_of(key: object) -> str:
    return canonical_id(key if isinstance(key, str) else None)


def without(
    given: dict[str, pd.DataFrame], house: str, *, root_only: bool = False
) -> dict[str, pd.DataFrame]:
    return {
        name: frame[[id_of(key) != house for key in frame.house]]
        if name == "households" or not root_only
        else frame
        for name, frame in given.items()
    }


@pytest.mark.parametrize("wild", [False, True])
def test_a_household_that_comes_or_goes_moves_one_row(wild):
    given = frames(12, wild=wild)
    whole = rows_of(given)
    known = {id_of(key) for key in given["households"].house} - {""}
    assert len(whole) == len(known)
    for house in known:
        left = rows_of(without(given, house))
        gone = list(whole)
        for row in left:
            gone.remove(row)
        assert len(gone) == 1
        # Children without their parent are in no row, so it makes no difference whether they stay.
        assert rows_of(without(given, house, root_only=True)) == left


def windows(houses: int, most: int) -> tuple[dict[str, pd.DataFrame], dict[str, object]]:
    """Households of seven members whose ages are their turn, of whom some in a row are used."""
    persons = [(str(h), str(i), str(10 + i), "f") for h in range(houses) for i in range(7)]
    homes = [(str(h), "N", str(h)) for h in range(houses)]
    parent = {"table": "households", "key": "house", "max_children": most, "keep": "window"}
    given = {
        "households": pd.DataFrame(homes, columns=["house", "region", "rent"]),
        "persons": pd.DataFrame(persons, columns=["house", "number", "age", "sex"]),
    }
    return given, two(persons={**TABLES["persons"], "parent": parent})


def test_a_window_is_a_run_of_rows_from_any_one_on():
    given, tables = windows(600, 3)
    rows = rows_of(given, tables)
    names = wide_of(given, tables).names[1:]
    ages = [[int(row[names.index(f"persons_{i}_age")]) for i in (1, 2, 3)] for row in rows]
    assert all(b == a + 1 and c == a + 2 for a, b, c in ages)
    begins = pd.Series([a for a, _, _ in ages]).value_counts()
    # Each of the five beginnings is as likely: 120 of 600 times, give or take 9.8.
    assert {*begins.index} == {*range(10, 15)} and begins.between(60, 180).all()
    # A release that is resumed takes the same ones.
    assert rows_of(given, tables) == rows
    # Of as many as are used all stay, in their order.
    given, tables = windows(20, 7)
    assert {row[names.index("persons_1_age")] for row in rows_of(given, tables)} == {"10"}


@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_household_that_comes_or_goes_moves_no_window_of_others(most):
    given, tables = windows(8, most)
    whole = rows_of(given, tables)
    for house in map(str, range(8)):
        left = rows_of(without(given, house), tables)
        assert len(left) == 7 and {*left} <= {*whole}


def test_rows_of_nobody_and_of_no_parent_are_left_out():
    given = frames(12)
    plain = rows_of(given)
    nobody = pd.DataFrame(
        {"house": ["", None, "77"], "number": ["1"] * 3, "age": ["9"] * 3, "sex": ["f"] * 3}
    )
    assert rows_of({**given, "persons": pd.concat([given["persons"], nobody])}) == plain
    lost = pd.DataFrame({"house": ["1", "77", None], "number": ["88", "1", "1"], "mode": ["car"] * 3})
    assert rows_of({**given, "trips": pd.concat([given["trips"], lost])}) == plain


@pytest.mark.parametrize(
    ("ages", "distinct", "said"),
    [("123", False, "add"), ("112", False, ""), ("112", True, "remove"), ("123", True, "")],
)
def test_check_says_if_rows_of_one_parent_differ_in_their_order(ages, distinct, said):
    home = pd.DataFrame({"house": ["7"], "region": ["N"], "rent": ["5"]})
    persons = pd.DataFrame({"house": ["7"] * 3, "number": [*"123"], "age": [*ages], "sex": ["f"] * 3})
    tables = two(persons={**TABLES["persons"], "order_by": "age", "distinct": distinct})
    held = MemoryTables({"households": home, "persons": persons})
    rows, unused, _ = wide_rows.checked_links(spec_of(tables), held)
    list(rows.batches(rows.names))
    assert [remedy.split()[0] for *_, remedy, _ in unused] == [said] * bool(said)


def test_children_stand_in_their_order_and_only_the_first_are_used():
    home = pd.DataFrame({"house": ["7"], "region": ["N"], "rent": ["5"]})
    numbers = ["10", "9", "2", "x", "1"]
    persons = pd.DataFrame(
        {"house": ["07"] * 5, "number": numbers, "age": ["10", "9", "2", "0", "1"], "sex": ["f"] * 5}
    )
    (row,) = rows_of({"households": home, "persons": persons}, two())
    names = wide_of({"households": home, "persons": persons}, two()).names[1:]
    found = dict(zip(names, row, strict=True))
    assert found["persons"] == "4"
    assert [found[f"persons_{i}_age"] for i in (1, 2, 3)] == ["1", "2", "9"]
    assert "persons_4_age" not in found


def test_children_are_ordered_by_a_declared_order():
    tables = two()
    dated = {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "format": "%d.%m.%Y"}
    tables["persons"] = {**tables["persons"], "order_by": "born", "columns": {"born": dated}}
    tables["households"] = {"key": "house", "columns": TABLES["households"]["columns"]}
    home = pd.DataFrame({"house": ["7"], "region": ["N"], "rent": ["5"]})
    born = ["03.02.2020", "01.03.2020", "20.01.2020"]
    given = {"households": home, "persons": pd.DataFrame({"house": ["7"] * 3, "number": "123", "born": born})}
    (row,) = rows_of(given, tables)
    assert row[-3:] == ("20.01.2020", "03.02.2020", "01.03.2020")


def test_parts_of_a_key_are_not_mixed_up():
    tables = two()
    tables["households"] = {**TABLES["households"], "key": ["town", "house"]}
    tables["persons"] = {
        **TABLES["persons"],
        "key": ["town", "house", "number"],
        "parent": {"table": "households", "key": ["town", "house"], "max_children": 3},
    }
    homes = pd.DataFrame(
        {"town": ["1", "11", "a | b", "a"], "house": ["11", "1", "c", "b | c"], "region": "N", "rent": "1"}
    )
    persons = homes[["town", "house"]].assign(number="1", age=["1", "2", "3", "4"], sex="f")
    rows = rows_of({"households": homes, "persons": persons}, tables)
    assert sorted(row[3] for row in rows) == ["1", "2", "3", "4"]
    assert [row[2] for row in rows] == ["1"] * 4


def test_empty_tables_are_none():
    empty = {name: frame[:0] for name, frame in frames(3).items()}
    assert rows_of(empty) == []
    no_children = {**frames(3), "persons": frames(3)["persons"][:0]}
    assert [row[2] for row in rows_of(no_children)] == ["0"] * 3


def test_tables_are_neither_shown_nor_copied():
    held = MemoryTables(frames(3))
    assert "private" in repr(held) and "private" in repr(wide_of(frames(3)))
    with pytest.raises(TypeError):
        pickle.dumps(held)
    with pytest.raises(TypeError):
        copy.copy(held)


def test_a_column_that_is_not_there_is_named_before_anything_is_read():
    given = frames(3)
    given["trips"] = given["trips"].drop(columns="mode")
    with pytest.raises(SourceError, match="mode"):
        wide_of(given).check(wide_of(given).names)


def test_tables_that_are_handed_over_are_those_of_the_configuration():
    with pytest.raises(ConfigError, match="a frame for each of households, persons, trips"):
        wide_table(spec_of(), MemoryTables({"households": frames(3)["households"]}))
    with pytest.raises(ConfigError, match="a frame for each"):
        wide_table(spec_of(), MemoryTable(frames(3)["households"]))
    with pytest.raises(ConfigError, match=r"tables\.households\.source is missing"):
        wide_table(spec_of(), None)


def test_a_check_reads_each_table_once_and_a_release_holds_no_rows(tmp_path, monkeypatch):
    reads: list[str] = []
    given = frames(150)
    tables = two()
    for name in tables:
        given[name].to_csv(tmp_path / f"{name}.csv", index=False)
        tables[name]["source"] = {"path": str(tmp_path / f"{name}.csv")}
    real = wide_rows.read_cells

    def counted(path, *more, **keys):
        reads.append(str(path))
        return real(path, *more, **keys)

    monkeypatch.setattr(wide_rows, "read_cells", counted)
    privacy = {"epsilon": 1, "delta": Decimal("1e-6")}
    spec = from_mapping({"privacy": privacy, "ledger": {"dataset": "homes"}, "tables": tables})
    found = check(spec)
    assert len(reads) == 2 and found.persons is None
    assert not any("is missing" in finding.write for finding in found.findings)
    table = wide_table(spec, None)
    for _ in range(2):
        assert sum(len(next(iter(batch.values()))) for batch in table.batches(table.names)) == 150
    assert len(reads) == 6
