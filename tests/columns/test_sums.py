"""Steps of numbers: every text has one, within its bin; centrings bound what a row adds."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.number_texts import NumberFormat
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import MOST_STEPS, Centring
from dpsynth.columns.text import TextCodec
from dpsynth.curator.table import steps_in
from tests.examples import examples

PAY = Column("pay", NumericCodec((-10.0, 0.0, 0.5, 10.0, 100.0), 2, integer=False), markers=("-1",))
AGE = Column("age", NumericCodec((0.0, 18.0, 65.0, 110.5), 0, integer=True), missing=False, fallback=1)
HOSTILE = [
    "",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-1e999",
    "x" * 5000,
    "1,5",
    "0x1F",
    "\U0001f4a5",
    "--3",
    "1e-400",
    "1e308",
    "-1e308",
    "5e-324",
]


def steps(column: Column, *texts: str | None) -> list[int]:
    return steps_in(column, pa.array(texts, pa.string())).tolist()


def test_a_number_is_its_step_from_the_smallest_in_units_of_the_last_decimal():
    assert steps(PAY, "-10", "-9.99", "0", "12.345", "100") == [0, 1, 1000, 2234, 11000]
    assert PAY.codec.steps.number(np.array([0.0, 2234.0])).tolist() == [-10.0, 12.34]


def test_numbers_beyond_the_ends_are_the_ends_and_fractions_of_whole_numbers_are_cut_off():
    assert steps(PAY, "-11", "1e9", "1e999", "-1e999") == [0, 11000, 11000, 0]
    assert steps(AGE, "17.99", "18", "-0.5", "999") == [17, 18, 0, 110]


def test_a_cell_without_a_number_has_no_step_or_the_first_of_the_bin_that_takes_it():
    assert steps(PAY, None, "", "-1", "many") == [0, 0, 0, 0]
    assert steps(AGE, None, "", "many") == [18, 18, 18]


@pytest.mark.parametrize("column", [PAY, AGE], ids=lambda c: c.name)
@pytest.mark.filterwarnings("error")
def test_no_cell_is_too_hostile_to_have_a_step(column):
    found = np.array(steps(column, *HOSTILE))
    assert ((found >= 0) & (found <= column.codec.steps.last)).all()


@examples(300)
@given(st.floats(-1e3, 1e3), st.integers(0, 4))
def test_a_step_lies_within_the_bin_that_its_number_is_counted_in(number, decimals):
    column = Column("x", NumericCodec((-500.0, -0.3, 0.0, 7.25, 600.0), decimals, integer=False))
    text = pa.array([repr(number)], pa.string())
    (code,), (step,), every = column.encode(text), steps_in(column, text), column.codec.steps
    assert every.low[code] <= step <= every.high[code]


def test_a_range_of_too_many_steps_has_coarser_ones():
    wide = NumericCodec((-1e15, 0.0, 1e15), 0, integer=True).steps
    assert wide.last <= MOST_STEPS and wide.exponent == 6
    ends = pa.array(["-1e15", "0", "1e15", "999999"], pa.string())
    assert wide.number(wide.of(ends).astype(float)).tolist() == [-1e15, 0.0, 1e15, 0.0]


def test_numbers_are_read_in_their_format():
    dollars = NumericCodec((0.0, 10.0, 5000.0), 2, False, NumberFormat(thousands=",", prefix="$"))
    assert steps(Column("cost", dollars), "$1,234.50", "7", "($9)") == [123450, 700, 0]


def test_a_limit_bounds_and_what_it_cuts_off_is_known_by_bin():
    every = AGE.codec.steps
    assert Centring((9, 41, 88), 24).beyond(every).tolist() == [0, 0, 0]
    assert Centring((9, 41, 88), 10).beyond(every).tolist() == [0, 13, 13]
    for limit in (0, -1, MOST_STEPS + 1):
        with pytest.raises(ValueError, match="limit"):
            Centring((1,), limit)


@pytest.mark.parametrize("codec", [BooleanCodec(), CategoryCodec((1, 2)), TextCodec("[0-9]", ("1",))])
def test_columns_without_bins_of_numbers_have_no_steps(codec):
    assert codec.steps is None
    with pytest.raises(ValueError, match="no numbers to be summed"):
        steps(Column("x", codec), "1")
