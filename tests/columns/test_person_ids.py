"""An id is read the same however it is spelt, reading it twice changes nothing, and empty cells hold none."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.identifier import NOBODY, canonical_id
from tests.examples import cases, examples

UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202a\u202e\ufe0f\u034f\x00\x07"


@given(st.text(max_size=12))
@examples(500)
def test_reading_an_id_twice_changes_nothing(cell):
    assert canonical_id(canonical_id(cell)) == canonical_id(cell)


@given(st.text(max_size=12), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
@examples(500)
def test_case_and_composition_make_no_other_person(cell, form):
    for variant in (cell.upper(), cell.lower(), cell.casefold(), unicodedata.normalize(form, cell)):
        assert canonical_id(variant) == canonical_id(cell)


def test_no_sign_of_unicode_is_read_two_ways():
    """All signs in a whole run; else those of the usual scripts, and one in so many others."""
    common, signs = 0x3100, 0x110000
    for number in (*range(common), *range(common, signs, signs // cases(signs, part=20))):
        sign = chr(number)
        if unicodedata.category(sign) != "Cs":
            found = canonical_id(f"x{sign}7")
            assert canonical_id(found) == canonical_id(f"X{sign.upper()}7") == found, hex(number)


@given(
    st.text("abc79 -", min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(UNSEEN))),
)
@examples(300)
def test_signs_that_cannot_be_seen_make_no_other_person(plain, signs):
    spoilt = plain
    for place, sign in signs:
        spoilt = spoilt[:place] + sign + spoilt[place:]
    assert canonical_id(spoilt) == canonical_id(plain)


@given(st.integers(-(10**30), 10**30), st.integers(0, 5), st.integers(0, 5))
def test_a_number_is_its_value(number, zeros, decimals):
    sign, digits = ("-", str(-number)) if number < 0 else ("", str(number))
    padded = f"{sign}{'0' * zeros}{digits}" + (f".{'0' * decimals}" if decimals else "")
    assert canonical_id(padded) == canonical_id(str(number))


NO_ID = [
    "",
    "  ",
    "\u200b",
    "NaN",
    "nan",
    "NA",
    "N/A",
    "#N/A",
    "null",
    "None",
    "<NA>",
    "NaT",
    "?",
    "-",
    "\u2013",
]


@pytest.mark.parametrize("cell", [None, *NO_ID, "\u2013", ".", "''", '""', '=""', " ' "])
def test_cells_that_hold_no_id_are_nobodys(cell):
    assert canonical_id(cell) == NOBODY


@pytest.mark.parametrize(
    "cell", ["0", "-1", "n", "nana", "none of them", "nullable", "x", "inf", "--", "9999"]
)
def test_what_only_may_mean_nobody_is_somebody(cell):
    assert canonical_id(cell) != NOBODY


def test_letters_that_can_not_be_seen_are_these_and_no_others():
    unseen = {0x034F, 0x115F, 0x1160, *range(0xFE00, 0xFE10)}
    near = range(0x034E, 0x0351), range(0x115E, 0x1162), range(0xFDFC, 0xFE11)
    for code in (code for some in near for code in some):
        assert (canonical_id(f"a{chr(code)}7") == "a7") == (code in unseen), hex(code)
