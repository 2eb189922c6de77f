"""Rows of units in order: cells and values that never change or never fall, and units in place of others."""

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.config import compiled
from dpsynth.wings.histories.sequences import UnitRows
from tests.specs import spec_of

COLUMNS = {c: {"type": "integer", "min": 0, "max": 9} for c in ("day", "born", "grade")}
UNIT = np.repeat(np.arange(4), [3, 1, 4, 2])
ROWS = len(UNIT)


@pytest.fixture
def sequences():
    return UnitRows(UNIT, "day", ("born",), ("grade",))


def steps(values, unit=UNIT):
    return np.diff(values)[unit[1:] == unit[:-1]]


def test_cells_are_those_of_the_first_row_or_in_order_and_missing_ones_stay(sequences):
    rng = np.random.default_rng(0)
    codes = {c: rng.integers(0, 10, ROWS) for c in COLUMNS}
    codes["grade"][[1, 5]] = 10
    found = sequences.cells(codes, compiled(spec_of(COLUMNS, [])).layout.columns)
    assert not steps(found["born"]).any()
    assert np.array_equal(found["born"][[0, 3, 4, 8]], codes["born"][[0, 3, 4, 8]])
    assert np.array_equal(found["day"], codes["day"])
    held = found["grade"] < 10
    assert np.flatnonzero(~held).tolist() == [1, 5]
    assert (steps(found["grade"][held], UNIT[held]) >= 0).all()
    for unit in range(4):
        own = unit == UNIT
        assert sorted(found["grade"][own]) == sorted(codes["grade"][own])


def test_values_of_a_unit_change_places_within_their_cells_alone(sequences):
    rng = np.random.default_rng(1)
    cells = np.sort(rng.integers(0, 3, (ROWS,)))
    codes = {c: np.where(UNIT > 1, 2, cells) for c in COLUMNS}
    values = {c: pa.array(10.0 * codes[c] + rng.random(ROWS)) for c in COLUMNS}
    found = sequences.values(codes, values, rng)
    assert not sequences.unsteady(codes, found).any() and sequences.unsteady(codes, values).any()
    for column in ("day", "grade"):
        own = found[column].to_numpy()
        assert sorted(own) == sorted(values[column].to_numpy()) and (steps(own) >= 0).all()
    assert np.array_equal(np.floor(found["born"].to_numpy() / 10), codes["born"])
    assert len(set(found["born"].to_pylist())) == len(set(zip(UNIT, codes["born"], strict=True)))


def test_a_value_that_changes_or_falls_is_seen_across_missing_ones(sequences):
    steady = {"day": pa.array(range(ROWS)), "born": pa.array([5] * ROWS), "grade": pa.array(range(ROWS))}
    codes = dict.fromkeys(COLUMNS, np.zeros(ROWS, np.int64))
    assert not sequences.unsteady(codes, steady).any()
    born = pa.array([5, 5, 6, *[5] * 7])
    assert np.flatnonzero(sequences.unsteady(codes, steady | {"born": born})).tolist() == [2]
    grade = pa.array([3, None, 2, 1, 0, 1, None, 0, 0, 9])
    assert np.flatnonzero(sequences.unsteady(codes, steady | {"grade": grade})).tolist() == [2, 7]


def test_units_with_a_bad_row_are_the_first_rows_of_others_that_are_as_long(sequences):
    bad = np.zeros(ROWS, np.bool_)
    bad[[1, 3]] = True
    steady = {c: pa.array([0] * ROWS) for c in COLUMNS}
    codes = dict.fromkeys(COLUMNS, np.zeros(ROWS, np.int64))
    found = sequences.replaced(codes, steady, bad, np.random.default_rng(0))
    assert found[:3].tolist() == [4, 5, 6] and found[3] in (4, 8)
    assert np.array_equal(found[4:], np.arange(4, ROWS))
    bad[4] = True
    # No other unit has four rows, and none without a bad row has three.
    assert np.array_equal(
        sequences.replaced(codes, steady, bad, np.random.default_rng(0))[[0, 1, 2, 4, 5, 6, 7]],
        [0, 1, 2, 4, 5, 6, 7],
    )


def test_texts_are_in_the_order_of_their_cells(sequences):
    codes = {c: np.zeros(ROWS, np.int64) for c in COLUMNS} | {
        "grade": np.array([0, 1, 2, 0, 0, 0, 1, 2, 1, 2])
    }
    words = pa.array(np.array(["low", "high", "highest"])[codes["grade"]])
    steady = {"day": pa.array([0] * ROWS), "born": pa.array(["x"] * ROWS), "grade": words}
    assert not sequences.unsteady(codes, steady).any()
    assert sequences.values(codes, steady, np.random.default_rng(0))["grade"].equals(words)


def long(within, rising=()):
    """3 000 units of 1 to 6 rows with cells 0 to 3, and code 4 for missing; values are drawn within cells."""
    rng = np.random.default_rng(5)
    unit = np.repeat(np.arange(3000), rng.integers(1, 7, 3000))
    cells = rng.integers(0, 5, 3000)[unit]
    cells = np.where(rng.random(unit.size) < 0.2, rng.integers(0, 5, unit.size), cells)
    cells = cells[np.lexsort((cells, unit))] if rising else cells
    values = pa.array(10.0 * cells + 10 * rng.random(unit.size), mask=cells == 4)
    sequences = UnitRows(unit, "day", (), rising, {"income": np.full(4, within)})
    codes = {"income": cells, "day": np.arange(unit.size)}
    found = sequences.values(codes, {"income": values, "day": pa.array(codes["day"])}, rng)["income"]
    return unit, cells, values, found


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_rows_that_stay_in_a_cell_keep_their_value_as_often_as_is_known(share):
    unit, cells, values, found = long(share)
    stay = (np.diff(unit) == 0) & (np.diff(cells) == 0) & (cells[1:] < 4)
    drawn, own = values.to_numpy(zero_copy_only=False), found.to_numpy(zero_copy_only=False)
    assert abs(np.mean((np.diff(own) == 0)[stay]) - share) < 0.03
    fresh = np.append(True, ~stay)
    assert np.array_equal(own[fresh & (cells < 4)], drawn[fresh & (cells < 4)])
    held = cells < 4
    assert np.array_equal(own[held] // 10, cells[held]) and np.isnan(own[~held]).all()


def test_rows_go_through_a_cell_of_a_rising_column_in_equal_steps():
    unit, cells, _, found = long(0.3, ("income",))
    own, held = found.to_numpy(zero_copy_only=False), cells < 4
    assert np.array_equal(own[held] // 10, cells[held]) and np.isnan(own[~held]).all()
    same = (np.diff(unit) == 0) & held[1:]
    assert (np.diff(own)[same] >= 0).all()
    stay = same & (np.diff(cells) == 0)
    begins = np.flatnonzero(np.append(True, ~stay))
    lengths = np.diff(begins, append=unit.size)
    short = stay & (np.repeat(lengths, lengths)[1:] <= 4)
    assert np.mean(np.abs(np.diff(own)[short] - 3) < 0.5) > 0.9
    # Units come into a cell within its first step, and those that stay in one alone are anywhere in it.
    came = np.flatnonzero(same & (np.diff(cells) > 0)) + 1
    assert (own[came] % 10 < 3.2).all()
    assert np.abs(np.histogram(own[held] % 10, 5, (0, 10))[0] / held.sum() - 0.2).max() < 0.06


def test_no_rows_have_no_values():
    none = np.zeros(0, np.int64)
    sequences = UnitRows(none, "day", (), ("age",), {"age": np.ones(3), "income": np.ones(3)})
    values = {c: pa.array([], pa.float64()) for c in ("day", "age", "income")}
    found = sequences.values(dict.fromkeys(values, none), values, np.random.default_rng(0))
    assert {len(own) for own in found.values()} == {0}
