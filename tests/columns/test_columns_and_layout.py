"""Markers told apart, made-up identifiers, and the synthetic table's columns in their order."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import parse
from dpsynth.columns.identifier import Surrogates
from dpsynth.columns.layout import FormulaRefused, Layout, companion
from dpsynth.columns.numeric import NumericCodec

AGES = NumericCodec((0.0, 1.0, 2.0, 3.5), 0, True)
RNG = np.random.default_rng


def test_markers_told_apart_have_codes_of_their_own_after_missing_and_are_written_back():
    column = Column("x", AGES, markers=("?", "NA"), distinct=("refused", "-9"))
    cells = ["0", "", "?", "NA", "junk", "refused", "-9", None]
    codes = column.encode(pa.array(cells))
    assert codes.tolist() == [0, 3, 3, 3, 3, 4, 5, 3] and column.size == 6
    assert column.labels[3:] == ("(missing)", "(missing: refused)", "(missing: -9)")
    values = column.decode(codes, RNG(0))
    assert values.null_count == 7
    written = column.text(values, column.distinct_texts(codes)).to_pylist()
    assert written == ["0", "?", "?", "?", "?", "refused", "-9", "?"]


def test_markers_told_apart_need_no_place_for_missing():
    column = Column("x", AGES, missing=False, fallback=2, distinct=("refused",))
    assert column.labels[3:] == ("(missing: refused)",)
    assert column.encode(pa.array(["refused", "", "junk", "1"])).tolist() == [3, 2, 2, 1]
    assert column.text(
        column.decode(np.array([3]), RNG(0)), column.distinct_texts(np.array([3]))
    ).to_pylist() == ["refused"]


def test_a_value_that_a_marker_looks_like_is_never_drawn():
    """99 means unknown: the bin from 90 to 99 stands for 90 to 98, and a bin of 99 alone for nothing."""
    wide = Column("x", NumericCodec((0.0, 90.0, 99.5), 0, True), markers=("99",))
    drawn = wide.text(wide.decode(np.ones(5000, dtype=np.int64), RNG(0))).to_pylist()
    assert set(drawn) == {str(n) for n in range(90, 99)}
    alone = Column("x", NumericCodec((98.0, 99.0, 99.5), 0, True), markers=("99",))
    assert alone.decode(np.array([0, 1]), RNG(0)).to_pylist() == [98, None]


@given(st.text("abP-_0", max_size=5), st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 300))
def test_surrogates_count_up_from_the_first_and_are_all_different(start, number, width, rows):
    first = f"{start}{number:0{width}}"
    values = Surrogates("id", first).values(rows).to_pylist()
    assert len(set(map(str, values))) == rows
    assert [str(v) for v in values[:1]] == [first][:rows]
    kept = first.rstrip("0123456789")
    digits = [int(str(v)[len(kept) :]) for v in values]
    assert digits == list(range(digits[0] if digits else 0, (digits[0] if digits else 0) + rows))


def test_surrogates_are_whole_numbers_only_where_no_zero_is_lost():
    assert Surrogates("id").values(2).type == pa.int64()
    assert Surrogates("id", "001").values(2).to_pylist() == ["001", "002"]
    with pytest.raises(ValueError, match="must end in a digit"):
        Surrogates("id", "P")


def layout(*parts):
    return Layout(
        (
            Column("b", CategoryCodec(("low", "high"), ordered=True)),
            *parts,
            Column("a", AGES, missing=False, distinct=("refused",)),
        )
    )


def derived(name, formula, **more):
    return Derived(name, formula, parse(formula), **more)


CODES = {"a": np.array([0, 1, 2, 3]), "b": np.array([0, 1, 2, 0])}


def test_the_table_has_the_declared_order_and_a_companion_where_markers_are_told_apart():
    made = layout(Surrogates("id", "7"), derived("c", "a + 1"))
    table = made.decode(CODES, RNG(0))
    assert table.column_names == ["b", "id", "c", "a", companion("a")]
    assert table.column("id").to_pylist() == [7, 8, 9, 10]
    assert table.column(companion("a")).to_pylist() == [None, None, None, "refused"]
    texts = made.texts(table)
    assert list(texts) == ["b", "id", "c", "a"]
    assert texts["a"].to_pylist()[3] == "refused" and texts["c"].to_pylist()[3] == ""
    assert texts["b"].to_pylist() == ["low", "high", "", "low"]
    assert [c.name for c in made.columns] == ["b", "a"]


def test_ordered_texts_keep_their_order_in_arrow():
    table = layout().decode(CODES, RNG(0))
    kind = table.schema.field("b").type
    assert kind == pa.dictionary(pa.int32(), pa.string(), ordered=True) and kind.ordered
    assert table.column("b").combine_chunks().dictionary.to_pylist() == ["low", "high"]
    assert table.to_pandas()["b"].min() == "low"


def test_derived_columns_may_build_on_others_wherever_they_stand():
    made = layout(derived("d", "c * 2"), derived("c", "a + 1"))
    table = made.decode(CODES, RNG(0)).to_pydict()
    assert table["d"] == [None if v is None else 2 * (v + 1) for v in table["a"]]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("c", "c + 1")], "computed from itself"),
        ([("c", "d + 1"), ("d", "c + 1")], "computed from itself"),
        ([("c", "z + 1")], "names 'z', which is no column"),
        ([("c", "b + 1")], "uses '+' on text, number"),
    ],
)
def test_what_cant_be_computed_is_refused_before_anything_is_drawn(parts, words):
    with pytest.raises(FormulaRefused) as caught:
        _ = layout(*(derived(*part) for part in parts)).kinds
    assert words in str(caught.value) and caught.value.column == "c"
