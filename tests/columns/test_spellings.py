"""Numbers, durations and codes as cells spell them: what is read, what is not, and what is written."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.duration import read_durations
from dpsynth.columns.number_texts import NumberFormat, fixed_texts
from dpsynth.columns.text import TextCodec, alphabets, regex_of, texts_of
from tests.columns.declared import FORMATS, column
from tests.examples import examples

QUICK = examples(300)


@given(FORMATS, st.integers(-(10**12), 10**12), st.integers(0, 6))
@QUICK
def test_a_written_number_is_read_back_as_the_same(form, step, decimals):
    if form.get("thousands") == form.get("decimal", "."):
        return
    plain = f"{step // 10**decimals}.{step % 10**decimals:0{decimals}}" if decimals else str(step)
    value = float(plain)
    declared = NumberFormat(**form)
    written = declared.write(pa.array([plain, None]))
    assert declared.read(written).tolist()[0] == value and written[1].as_py() is None


@pytest.mark.parametrize(
    ("form", "plain", "written"),
    [
        ({"width": 5}, "42", "00042"),
        ({"width": 5}, "-42", "-00042"),
        ({"width": 3}, "12345", "12345"),
        ({"thousands": ","}, "1234567", "1,234,567"),
        ({"thousands": ".", "decimal": ","}, "-1234.50", "-1.234,50"),
        ({"thousands": " ", "decimal": ",", "suffix": " €"}, "999.00", "999,00 €"),
        ({"prefix": "$", "thousands": ","}, "-1234.5", "-$1,234.5"),
        ({"suffix": "%"}, "7.5", "7.5%"),
    ],
)
def test_numbers_are_written_in_the_declared_format(form, plain, written):
    assert NumberFormat(**form).write(pa.array([plain])).to_pylist() == [written]


@pytest.mark.parametrize(
    ("form", "cell", "value"),
    [
        ({"width": 5}, "42", 42),
        ({"thousands": ","}, "1234", 1234),
        ({"thousands": ","}, "1,23", None),
        ({"thousands": ","}, "1,2345", None),
        ({"thousands": ","}, ",123", None),
        ({"thousands": " "}, "1\u202f234", 1234),
        ({"thousands": " "}, "1\u00a0234 567", 1234567),
        ({"decimal": ","}, "1,5", 1.5),
        ({"decimal": ","}, ",5", 0.5),
        ({"decimal": ","}, "1.5", 1.5),
        ({"thousands": ".", "decimal": ","}, "1.234", 1234),
        ({"thousands": ".", "decimal": ","}, "1.2345", 1.2345),
        ({"prefix": "$"}, "$5", 5),
        ({"prefix": "$"}, "5", 5),
        ({"prefix": "$"}, "-$5", -5),
        ({"prefix": "$"}, "$-5", -5),
        ({"prefix": "$"}, "-$-5", None),
        ({"prefix": "$"}, "€5", None),
        ({"suffix": " €"}, "5€", 5),
        ({"suffix": " €"}, "5\u00a0€", 5),
        ({"suffix": " €"}, "5 $", None),
        ({"suffix": "%"}, "%", None),
        ({}, "1,5", None),
        ({"prefix": "("}, "(5)", None),
    ],
)
def test_numbers_are_read_in_the_declared_format_or_plainly(form, cell, value):
    (found,) = NumberFormat(**form).read(pa.array([cell])).tolist()
    assert found == value if value is not None else np.isnan(found)


def test_many_decimals_are_written_without_an_exponent():
    """Arrow writes the decimal 0.0000002 as 2E-7, which no column of fixed decimals should show."""
    values = pa.array([2e-7, -1e-7, 0.0, -0.0, 12345678.1234567, None])
    assert fixed_texts(values, 7).to_pylist() == [
        "0.0000002", "-0.0000001", "0.0000000", "0.0000000", "12345678.1234567", None,
    ]  # fmt: skip
    made = column(type="number", min=-1, max=1, bins=4, decimals=9, missing=False)
    texts = made.text(made.decode(np.arange(4).repeat(50), np.random.default_rng(0))).to_pylist()
    assert all(len(t.removeprefix("-")) == 11 for t in texts)


@pytest.mark.parametrize(
    ("form", "cell", "grains"),
    [
        ("iso", "P1DT2H3M4S", 93784),
        ("iso", "PT1.9S", 1),
        ("iso", "P2W", 1209600),
        ("iso", "-PT5M", -300),
        ("iso", "P1Y", None),
        ("iso", "P1M", None),
        ("iso", "P", None),
        ("iso", "PT", None),
        ("iso", "1:00", None),
        ("HH:MM:SS", "100:00:01", 360001),
        ("HH:MM:SS", "1:2:3", 3723),
        ("HH:MM:SS", "-0:00:01.5", -1),
        ("HH:MM:SS", "0:60:00", None),
        ("HH:MM", "1:30", 90),
        ("HH:MM", "1:30:00", None),
        ("MM:SS", "90:05", 5405),
        ("minutes", "12.7", 12),
        ("minutes", "-12.7", -13),
        ("hours", "1e400", np.inf),
        ("days", "three", None),
        ("minutes", "PT90.5S", 1),
        ("hours", "-PT1S", -1),
        ("HH:MM", "P1DT30M", 1470),
        ("seconds", "PT9223372036854775807S", float(2**63)),
    ],
)
def test_which_durations_are_read(form, cell, grains):
    (found,) = read_durations(form, pa.array([cell])).tolist()
    assert found == grains if grains is not None else np.isnan(found)


def test_durations_outside_go_to_the_first_and_last_place_and_means_say_their_unit():
    made = column(type="duration", min=0, max=119, unit="hour", format="minutes")
    assert made.encode(pa.array(["-5", "59.9", "60", "1e400", "nan"])).tolist() == [0, 0, 1, 1, 2]
    assert made.centres.tolist() == [29.5, 89.5] and made.codec.schema["means_in"] == "minutes"
    clock = column(type="duration", min="0:00", max="1:59", unit="hour", format="HH:MM")
    assert clock.centres.tolist() == [29.5 * 60, 89.5 * 60] and clock.codec.schema["means_in"] == "seconds"


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"\d{5}", 10**5),
        ("[A-Z]{2}-[0-9]{3}", 26**2 * 1000),
        (r"^F\d[0-9]$", 100),
        (r"[\dA-F]{2}", 256),
        (r"[-a]\.\[\\", 2),
        ("[a-]x{3}", 2),
        ("é[àâ]{2}", 4),
    ],
)
def test_a_pattern_stands_for_so_many_texts(pattern, texts):
    assert texts_of(alphabets(pattern)) == texts


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a?", "has '?' (an optional part)"),
        ("[0-9]+", "has '+' (a part of any length)"),
        ("(a|b)", "has '(' (groups)"),
        ("a|b", "has '|' (alternatives)"),
        ("a.b", "has '.' (any character)"),
        ("[^a]", "what must not stand there"),
        ("[0-9", "a [ without its ]"),
        ("[]", "a class that is empty"),
        ("[z-a]", "isn't one from a lower to a higher"),
        ("a{2,3}", "a repetition other than {n}"),
        ("a{2", "a repetition other than {n}"),
        (r"\w", r"has '\w'"),
        ("\\", "isn't supported"),
        ("", "the empty text only"),
        ("x{0}", "the empty text only"),
        (" a", "blanks at an end"),
        ("[0-9]{65}", "more than 64 characters"),
        ("[\u0100-\uffff]", "more than 1000 characters"),
    ],
)
def test_any_other_pattern_is_refused_with_what_is_wrong(pattern, words):
    with pytest.raises(ValueError, match=r".") as caught:
        alphabets(pattern)
    assert words in str(caught.value)


@given(st.text(r"ab[]\-{}d01.^$=", max_size=10))
@QUICK
def test_a_pattern_that_is_read_draws_texts_that_it_matches(pattern):
    try:
        positions = alphabets(pattern)
    except ValueError:
        return
    codec = TextCodec(pattern, tuple(positions[0]))
    codes = np.repeat(np.arange(len(positions[0])), 20)
    values = codec.decode(codes, np.random.default_rng(0))
    assert all(pa.compute.match_substring_regex(values, regex_of(positions)).to_pylist())
    assert codec.encode(values).tolist() == codes.tolist()


def test_the_rest_of_a_code_is_drawn_evenly_and_nothing_beyond_the_prefix_is_remembered():
    codec = TextCodec("[0-9]{3}", ("7", "60"))
    for code, start in enumerate(codec.prefixes):
        draws = codec.decode(np.full(20_000, code), np.random.default_rng(2)).to_pylist()
        assert all(text.startswith(start) and len(text) == 3 for text in draws)
        sides = 10 ** (3 - len(start))
        _, seen = np.unique(draws, return_counts=True)
        assert len(seen) == sides
        expected = 20_000 / sides
        assert np.square(seen - expected).sum() / expected < sides + 5 * np.sqrt(2 * sides)
    one, other = (codec.encode(pa.array([t])).tolist() for t in ("700", "799"))
    assert one == other == [0]


def test_codes_with_another_prefix_are_other_and_malformed_ones_are_missing():
    made = column(type="text", pattern=r"\d{5}", prefixes=["75", "69"], other="elsewhere")
    cells = ["75011", "01000", "elsewhere", "7501", "75O11", None]
    assert made.encode(pa.array(cells)).tolist() == [0, 2, 2, 3, 3, 3]
    plain = column(type="text", pattern=r"\d{5}", prefixes=["75", "69"])
    assert plain.encode(pa.array(cells)).tolist() == [0, 2, 2, 2, 2, 2]
