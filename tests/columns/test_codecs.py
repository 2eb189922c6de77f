"""Every text has a code, and what a code decodes to has this code again."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import MISSING_LABEL, Column
from dpsynth.columns.numeric import NumericCodec
from tests.columns.declared import COLUMNS, WILD, declared
from tests.examples import examples

QUICK = examples(400)


@given(COLUMNS, st.lists(WILD, max_size=8))
@QUICK
def test_every_text_has_a_code_inside_the_domain(column, texts):
    codes = column.encode(pa.array(texts, pa.string()))
    assert codes.dtype == np.int64 and codes.shape == (len(texts),)
    assert all(0 <= code < column.size for code in codes)


def read_again(column, codes, seed):
    """Codes of what a CSV file holds for some codes; and whether a value was none but markers."""
    values = column.decode(codes, np.random.default_rng(seed))
    texts = column.text(values, column.distinct_texts(codes))
    assert values.type == column.codec.arrow_type and texts.null_count == 0
    unspeakable = np.asarray(values.is_null()) & (codes < len(column.codec.labels))
    return column.encode(texts), unspeakable


@given(COLUMNS, st.integers(0, 2**32))
@QUICK
def test_the_written_text_of_any_decoded_value_has_the_same_code_again(column, seed):
    codes = np.repeat(np.arange(column.size), 3)
    again, unspeakable = read_again(column, codes, seed)
    assert again[~unspeakable].tolist() == codes[~unspeakable].tolist()
    assert set(again[unspeakable]) <= {column.unusable, *range(column.unusable, column.size)}
    marks = pa.array([*column.markers, *column.distinct], pa.string())
    met = set(column.codec.encode(marks).tolist())
    assert set(codes[unspeakable]) <= met, "a value is missing though no marker looks like it"


def test_a_bin_that_spills_over_would_be_noticed(monkeypatch):
    """The planted fault: each place also decodes to the first step of the next one."""
    for kind in (
        {"type": "integer", "min": 0, "max": 99, "bins": 10},
        {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "month"},
        {"type": "duration", "min": 0, "max": 600, "format": "minutes", "unit": "hour"},
    ):
        column, codes = declared(kind), np.repeat(np.arange(5), 100)
        assert read_again(column, codes, 0)[0].tolist() == codes.tolist()
        low, high = column.codec._grid
        object.__setattr__(column.codec, "_grid", (low, high + 1))
        assert read_again(column, codes, 0)[0].tolist() != codes.tolist()


@given(COLUMNS, st.integers(0, 2**32))
@QUICK
def test_decoded_numbers_lie_within_half_a_width_of_their_centre(column, seed):
    centres, half = column.codec.centres, column.codec.half_widths
    assume(centres is not None)
    codes = np.tile(np.arange(len(centres)), 20)
    values = column.codec.decode(codes, np.random.default_rng(seed))
    if pa.types.is_duration(values.type):
        values = pa.array(values.cast(pa.int64()).to_numpy() / column.codec.grain * column.codec._scale)
    numbers = values.cast(pa.float64()).to_numpy()
    room = half[codes] + 1e-9 * np.maximum(1, np.abs(centres[codes]))
    assert (np.abs(numbers - centres[codes]) <= room).all()


@given(COLUMNS)
@QUICK
def test_there_is_one_public_label_a_code_and_those_of_missing_come_last(column):
    assert len(column.labels) == column.size == len(set(column.labels))
    after = column.labels[len(column.codec.labels) :]
    assert after == ((MISSING_LABEL,) * column.missing + tuple(f"(missing: {m})" for m in column.distinct))


@given(COLUMNS, st.sampled_from(["", " ", "\t", "\u3000", None]))
@QUICK
def test_blank_and_absent_cells_are_missing_or_take_the_fallback(column, blank):
    expected = len(column.codec.labels) if column.missing else column.fallback
    assert column.encode(pa.array([blank], pa.string())).tolist() == [expected]


@given(COLUMNS, WILD.filter(lambda t: t is not None))
@example(declared({"type": "category", "values": ["a", "b"]}), "a")
@QUICK
def test_blanks_around_a_cell_change_nothing(column, text):
    bare, padded = (column.encode(pa.array([t], pa.string())).tolist() for t in (text, f" \t{text}\u00a0 "))
    assert bare == padded


@pytest.mark.parametrize("integer", [True, False])
def test_the_mean_of_decoded_values_is_the_centre_and_the_draw_is_uniform(integer):
    codec = NumericCodec(
        (0.0, 5.0, 9.0, 10.5) if integer else (0.0, 0.5, 2.0, 2.25), 0 if integer else 2, integer
    )
    for code, centre in enumerate(codec.centres):
        values = codec.decode(np.full(20_000, code), np.random.default_rng(code)).to_numpy()
        sides, seen = np.unique(values, return_counts=True)
        expected = 20_000 / len(sides)
        assert np.square(seen - expected).sum() / expected < len(sides) + 5 * np.sqrt(2 * len(sides)) + 5
        assert values.mean() == pytest.approx(centre, abs=5 * values.std() / np.sqrt(20_000) + 1e-12)


def test_integers_outside_go_to_the_first_and_last_bin_and_fractions_are_cut_off():
    codec = NumericCodec((0.0, 10.0, 20.0, 30.5), 0, True)
    cells = ["-1e9", "-0.0", "9.999", "10", "19.5", "30", "31", "1e400", "-1e400"]
    assert codec.encode(pa.array(cells)).tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 0]


def test_bins_are_closed_below_and_open_above_but_for_the_last():
    codec = NumericCodec((0.0, 0.1, 0.3, 1.0), 3, False)
    assert codec.encode(pa.array(["0", "0.1", "0.0999", "0.3", "0.29999999999", "1.0"])).tolist() == [
        0, 1, 0, 2, 1, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("edge", ["0.5000000001", "0.4999999999", "0.123000000001", "0.3333333333"])
def test_a_value_on_the_grid_just_below_an_edge_belongs_to_the_bin_before(edge):
    column = declared({"type": "number", "bins": [Decimal(0), Decimal(edge), Decimal(1)], "decimals": 3})
    for code in (0, 1):
        values = column.decode(np.full(5000, code), np.random.default_rng(0))
        assert set(column.encode(column.text(values)).tolist()) == {code}


def test_no_decimal_of_another_notation_is_read_as_a_number():
    column = Column("x", NumericCodec((0.0, 1.0, 100.0), 0, True))
    for text in [
        "nan",
        "inf",
        "0x10",
        "1_0",
        "1,5",
        "\uff11\uff12",
        "٣",
        "1e",
        "½",
        "5 6",
        "--1",
        "True",
        "1.0.0",
    ]:
        assert column.encode(pa.array([text])).tolist() == [2], text


@pytest.mark.parametrize("text", ["3", "3.0", "03", "+3", "3e0", "30e-1", " 3 ", "3."])
def test_integer_categories_match_every_spelling_of_the_number(text):
    codec = CategoryCodec((7, 3, -1))
    assert Column("x", codec).encode(pa.array([text])).tolist() == [1]
    assert Column("x", CategoryCodec((7, 3, -1), other="rest")).encode(pa.array([text])).tolist() == [1]


@pytest.mark.parametrize("text", ["3.5", "33", "nan", "-3", "three", "1e400"])
def test_integer_categories_match_no_other_number(text):
    assert Column("x", CategoryCodec((7, 3, -1))).encode(pa.array([text])).tolist() == [3]
    assert Column("x", CategoryCodec((7, 3, -1), other="rest")).encode(pa.array([text])).tolist() == [3]


def test_text_categories_match_exactly_and_case_counts():
    column = Column("x", CategoryCodec(("3", "b", "é")))
    assert column.encode(pa.array(["3", "3.0", "B", "b", "é", "e\u0301"])).tolist() == [0, 3, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (("0 %", "2,5 %", "5 %"), [0.0, 2.5, 5.0]),
        (("1.3", "2.0", "5.0"), [1.3, 2.0, 5.0]),
        (("$1,000", "$20,000"), [1000.0, 20_000.0]),
        (("-1", 0, 1), [-1.0, 0.0, 1.0]),
        ((5, 3), [5.0, 3.0]),
        (("low", "high"), None),
        (("1.0", "1"), None),
        (("<10", "20"), None),
        (("0-9", "10-19"), None),
        (("1", "2", "more"), None),
        (("1e400", "1"), None),
    ],
)
def test_an_ordered_list_of_numbers_in_one_notation_has_means_whatever_that_is(values, numbers):
    codec = CategoryCodec(values, ordered=True)
    assert numbers is None if codec.centres is None else codec.centres.tolist() == numbers
    assert (codec.half_widths is None) == (numbers is None)
    # Names without an order are no numbers, whatever they look like.
    assert CategoryCodec(tuple(map(str, values))).centres is None


def test_other_takes_unknown_texts_and_missing_takes_absent_ones():
    column = Column("x", CategoryCodec(("a", "b"), other="rest"), markers=("?",))
    assert column.encode(pa.array(["b", "zzz", "?", "", None, "rest"])).tolist() == [1, 2, 3, 3, 3, 2]
    inside = Column("x", CategoryCodec(("a", "b"), other="b"), missing=False, fallback=0)
    assert inside.size == 2 and inside.encode(pa.array(["a", "zzz", None])).tolist() == [0, 1, 0]


def test_without_a_missing_place_unusable_cells_take_the_declared_fallback():
    column = Column("x", NumericCodec((0.0, 1.0, 2.0, 3.0), 0, True), missing=False, fallback=2)
    assert column.encode(pa.array(["0", "", "many", None, "nan"])).tolist() == [0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("false", "true"), [("no", "yes"), ("0", "1"), ("ΨΕΥΔΗΣ", "ΑΛΗΘΗΣ"), ("Hay\u0131r", "İyi")]
)
def test_both_declared_texts_of_a_boolean_are_read(false, true):
    column = Column("x", BooleanCodec(false, true))
    assert column.encode(pa.array([false, true])).tolist() == [0, 1]


def test_declared_texts_of_a_boolean_overrule_the_usual_spellings():
    column = Column("x", BooleanCodec("yes", "no"))
    assert column.encode(pa.array(["yes", "NO", "True", "0", "off", "maybe"])).tolist() == [0, 1, 1, 0, 0, 2]


def test_missing_is_written_as_the_first_marker_and_as_nothing_without_one():
    rng = np.random.default_rng(0)
    marked = Column("x", BooleanCodec(), markers=("NA", "?"))
    assert marked.text(marked.decode(np.array([0, 2, 1]), rng)).to_pylist() == ["false", "NA", "true"]
    plain = Column("x", CategoryCodec((1, 2)))
    assert plain.text(plain.decode(np.array([2, 1]), rng)).to_pylist() == ["", "2"]


def test_numbers_are_written_with_their_fixed_decimals_and_integers_with_none():
    codec = NumericCodec((-1.0, 0.0, 1000.0), 3, False)
    assert codec.text(pa.array([-0.5, 0.1, 1000.0, None])).to_pylist() == [
        "-0.500",
        "0.100",
        "1000.000",
        None,
    ]
    large = NumericCodec((0.0, 1e15), 0, True)
    assert large.text(pa.array([10**15, 0])).to_pylist() == ["1000000000000000", "0"]


def test_decoding_no_rows_gives_an_empty_column_of_the_same_type():
    for codec in (NumericCodec((0.0, 1.0), 1, False), CategoryCodec(("a",)), BooleanCodec()):
        empty = Column("x", codec).decode(np.array([], dtype=np.int64), np.random.default_rng(0))
        assert len(empty) == 0 and empty.type == codec.arrow_type


@pytest.mark.parametrize(
    "edges", [(), (1.0,), (1.0, 1.0), (2.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)]
)
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ValueError, match="rising finite"):
        NumericCodec(edges, 0, False)
