"""Every text has a code, and what a code decodes to has this code again."""

import string
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpsynth.domain.column import MISSING_LABEL, Column
from dpsynth.domain.places import BooleanPlaces, CategoryPlaces, NumericPlaces
from dpsynth.errors import ConfigError
from dpsynth.spec import from_mapping

QUICK = settings(max_examples=300, deadline=None)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)


def declared(column):
    """The domain's column that a config declares, or no example where the config is refused."""
    values = {"source": {"path": "t.csv"}, "privacy": {"epsilon": Decimal(1)}, "columns": {"x": column}}
    try:
        return from_mapping({"release": "r", **values}).table_columns()[0]
    except ConfigError:
        assume(False)


MISSING = st.sampled_from([True, False, ("?", "NA")])


@st.composite
def integers(draw):
    low = draw(st.integers(-(10**12), 10**12))
    width = draw(st.integers(0, 400))
    bins = draw(st.none() | st.integers(1, min(50, width + 1)))
    column = {"type": "integer", "min": low, "max": low + width, "missing": draw(MISSING)}
    return declared(column | ({} if bins is None else {"bins": bins}))


@st.composite
def numbers(draw):
    places = draw(st.integers(0, 10))
    steps = draw(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=6, unique=True))
    edges = [Decimal(s).scaleb(-places) for s in sorted(steps)]
    bins = draw(st.just(edges) | st.integers(1, 12))
    column = {"type": "number", "bins": bins, "missing": draw(MISSING)}
    if isinstance(bins, int):
        column |= {"min": edges[0], "max": edges[-1]}
    if draw(st.booleans()):
        column["decimals"] = draw(st.integers(0, 9))
    return declared(column)


@st.composite
def categories(draw):
    values = draw(st.lists(WORDS | st.integers(-(10**15), 10**15), min_size=1, max_size=8, unique_by=str))
    column = {"type": "category", "values": values, "missing": draw(MISSING)}
    if draw(st.booleans()):
        column["other"] = draw(WORDS)
    return declared(column)


@st.composite
def booleans(draw):
    return declared({"type": "boolean", "values": [draw(WORDS), draw(WORDS)], "missing": draw(MISSING)})


COLUMNS = st.one_of(integers(), numbers(), categories(), booleans())
WILD = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.floats().map(str),
    st.integers().map(str),
    st.decimals().map(str),
    st.binary(max_size=12).map(lambda b: b.decode("utf-8", "replace")),
    st.text(" \t\r\n\v\f\u00a0\u2003\u3000\x00", max_size=4),
    st.text(string.digits + "+-.eE_", max_size=12),
    st.sampled_from(["nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e-400", "0x10", "1_000"]),
    st.sampled_from(["\uff11\uff12", "٣", "½", "1,5", "--1", "+", "1e", ".", "1.", "=1+1"]),
    st.sampled_from(["9" * 5000, "\ufeff7", "7\u0000", "null", "None"]),
)


@given(COLUMNS, st.lists(WILD, max_size=8))
@QUICK
def test_every_text_has_a_code_inside_the_domain(column, texts):
    codes = column.encode(pa.array(texts, pa.string()))
    assert codes.dtype == np.int64 and codes.shape == (len(texts),)
    assert all(0 <= code < column.size for code in codes)


@given(COLUMNS, st.integers(0, 2**32))
@QUICK
def test_the_written_text_of_any_decoded_value_has_the_same_code_again(column, seed):
    codes = np.repeat(np.arange(column.size), 3)
    values = column.decode(codes, np.random.default_rng(seed))
    texts = column.text(values)
    assert values.type == column.places.arrow_type and texts.null_count == 0
    assert column.encode(texts).tolist() == codes.tolist()


@given(COLUMNS, st.integers(0, 2**32))
@QUICK
def test_decoded_numbers_lie_within_half_a_width_of_their_centre(column, seed):
    centres, half = column.places.centres, column.places.half_widths
    assume(centres is not None)
    codes = np.tile(np.arange(len(centres)), 20)
    values = column.places.decode(codes, np.random.default_rng(seed))
    numbers = values.cast(pa.float64()).to_numpy()
    room = half[codes] + 1e-9 * np.maximum(1, np.abs(centres[codes]))
    assert (np.abs(numbers - centres[codes]) <= room).all()


@given(COLUMNS)
@QUICK
def test_there_is_one_public_label_a_code_and_missing_comes_last(column):
    assert len(column.labels) == column.size == len(set(column.labels))
    assert (column.labels[-1] == MISSING_LABEL) == column.missing


@given(COLUMNS, st.sampled_from(["", " ", "\t", "\u3000", None]))
@QUICK
def test_blank_and_absent_cells_are_missing_or_take_the_fallback(column, blank):
    expected = column.size - 1 if column.missing else column.fallback
    assert column.encode(pa.array([blank], pa.string())).tolist() == [expected]


@given(COLUMNS, WILD.filter(lambda t: t is not None))
@example(declared({"type": "category", "values": ["a", "b"]}), "a")
@QUICK
def test_blanks_around_a_cell_change_nothing(column, text):
    bare, padded = (column.encode(pa.array([t], pa.string())).tolist() for t in (text, f" \t{text}\u00a0 "))
    assert bare == padded


@pytest.mark.parametrize("integer", [True, False])
def test_the_mean_of_decoded_values_is_the_centre_and_the_draw_is_uniform(integer):
    places = NumericPlaces(
        (0.0, 5.0, 9.0, 10.5) if integer else (0.0, 0.5, 2.0, 2.25), 0 if integer else 2, integer
    )
    for code, centre in enumerate(places.centres):
        values = places.decode(np.full(20_000, code), np.random.default_rng(code)).to_numpy()
        sides, seen = np.unique(values, return_counts=True)
        expected = 20_000 / len(sides)
        assert np.square(seen - expected).sum() / expected < len(sides) + 5 * np.sqrt(2 * len(sides)) + 5
        assert values.mean() == pytest.approx(centre, abs=5 * values.std() / np.sqrt(20_000) + 1e-12)


def test_integers_outside_go_to_the_first_and_last_bin_and_fractions_are_cut_off():
    places = NumericPlaces((0.0, 10.0, 20.0, 30.5), 0, True)
    cells = ["-1e9", "-0.0", "9.999", "10", "19.5", "30", "31", "1e400", "-1e400"]
    assert places.encode(pa.array(cells)).tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 0]


def test_bins_are_closed_below_and_open_above_but_for_the_last():
    places = NumericPlaces((0.0, 0.1, 0.3, 1.0), 3, False)
    assert places.encode(pa.array(["0", "0.1", "0.0999", "0.3", "0.29999999999", "1.0"])).tolist() == [
        0, 1, 0, 2, 1, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("edge", ["0.5000000001", "0.4999999999", "0.123000000001", "0.3333333333"])
def test_a_value_on_the_grid_just_below_an_edge_belongs_to_the_bin_before(edge):
    column = declared({"type": "number", "bins": [Decimal(0), Decimal(edge), Decimal(1)], "decimals": 3})
    for code in (0, 1):
        values = column.decode(np.full(5000, code), np.random.default_rng(0))
        assert set(column.encode(column.text(values)).tolist()) == {code}


def test_no_decimal_of_another_notation_is_read_as_a_number():
    column = Column("x", NumericPlaces((0.0, 1.0, 100.0), 0, True))
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
    places = CategoryPlaces((7, 3, -1))
    assert Column("x", places).encode(pa.array([text])).tolist() == [1]
    assert Column("x", CategoryPlaces((7, 3, -1), other="rest")).encode(pa.array([text])).tolist() == [1]


@pytest.mark.parametrize("text", ["3.5", "33", "nan", "-3", "three", "1e400"])
def test_integer_categories_match_no_other_number(text):
    assert Column("x", CategoryPlaces((7, 3, -1))).encode(pa.array([text])).tolist() == [3]
    assert Column("x", CategoryPlaces((7, 3, -1), other="rest")).encode(pa.array([text])).tolist() == [3]


def test_text_categories_match_exactly_and_case_counts():
    column = Column("x", CategoryPlaces(("3", "b", "é")))
    assert column.encode(pa.array(["3", "3.0", "B", "b", "é", "e\u0301"])).tolist() == [0, 3, 3, 1, 2, 3]


def test_other_takes_unknown_texts_and_missing_takes_absent_ones():
    column = Column("x", CategoryPlaces(("a", "b"), other="rest"), markers=("?",))
    assert column.encode(pa.array(["b", "zzz", "?", "", None, "rest"])).tolist() == [1, 2, 3, 3, 3, 2]
    inside = Column("x", CategoryPlaces(("a", "b"), other="b"), missing=False, fallback=0)
    assert inside.size == 2 and inside.encode(pa.array(["a", "zzz", None])).tolist() == [0, 1, 0]


def test_without_a_missing_place_unusable_cells_take_the_declared_fallback():
    column = Column("x", NumericPlaces((0.0, 1.0, 2.0, 3.0), 0, True), missing=False, fallback=2)
    assert column.encode(pa.array(["0", "", "many", None, "nan"])).tolist() == [0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("false", "true"), [("no", "yes"), ("0", "1"), ("ΨΕΥΔΗΣ", "ΑΛΗΘΗΣ"), ("Hay\u0131r", "İyi")]
)
def test_both_declared_texts_of_a_boolean_are_read(false, true):
    column = Column("x", BooleanPlaces(false, true))
    assert column.encode(pa.array([false, true])).tolist() == [0, 1]


def test_declared_texts_of_a_boolean_overrule_the_usual_spellings():
    column = Column("x", BooleanPlaces("yes", "no"))
    assert column.encode(pa.array(["yes", "NO", "True", "0", "off", "maybe"])).tolist() == [0, 1, 1, 0, 0, 2]


def test_missing_is_written_as_the_first_marker_and_as_nothing_without_one():
    rng = np.random.default_rng(0)
    marked = Column("x", BooleanPlaces(), markers=("NA", "?"))
    assert marked.text(marked.decode(np.array([0, 2, 1]), rng)).to_pylist() == ["false", "NA", "true"]
    plain = Column("x", CategoryPlaces((1, 2)))
    assert plain.text(plain.decode(np.array([2, 1]), rng)).to_pylist() == ["", "2"]


def test_numbers_are_written_with_their_fixed_decimals_and_integers_with_none():
    places = NumericPlaces((-1.0, 0.0, 1000.0), 3, False)
    assert places.text(pa.array([-0.5, 0.1, 1000.0, None])).to_pylist() == [
        "-0.500",
        "0.100",
        "1000.000",
        None,
    ]
    large = NumericPlaces((0.0, 1e15), 0, True)
    assert large.text(pa.array([10**15, 0])).to_pylist() == ["1000000000000000", "0"]


def test_decoding_no_rows_gives_an_empty_column_of_the_same_type():
    for places in (NumericPlaces((0.0, 1.0), 1, False), CategoryPlaces(("a",)), BooleanPlaces()):
        empty = Column("x", places).decode(np.array([], dtype=np.int64), np.random.default_rng(0))
        assert len(empty) == 0 and empty.type == places.arrow_type


@pytest.mark.parametrize(
    "edges", [(), (1.0,), (1.0, 1.0), (2.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)]
)
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ValueError, match="rising finite"):
        NumericPlaces(edges, 0, False)
