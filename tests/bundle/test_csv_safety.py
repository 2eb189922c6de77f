import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle import neutralise, restore
from dpsynth.columns.number_texts import is_number

risky_texts = st.builds(
    str.__add__, st.text(alphabet="=+-@'\t\r\n \u200b\uff1d0123.eE", max_size=6), st.text(max_size=6)
)


@given(st.lists(st.one_of(st.none(), st.text(), risky_texts)))
def test_the_original_texts_come_back(texts):
    array = pa.array(texts, pa.string())
    assert restore(neutralise(array)).to_pylist() == texts


@given(risky_texts)
def test_no_text_begins_as_a_formula_unless_it_is_a_number(text):
    safe = neutralise(pa.array([text], pa.string()))[0].as_py()
    first = safe.lstrip(" \t\r\n\u200b")[:1] if not safe.startswith("'") else "'"
    digits = re.fullmatch(r"[+-][$€£¥]?[0-9][0-9.,:' _\u00a0\u202f]*[%€£¥$]?", safe)
    assert first not in {"=", "+", "-", "@", "\uff1d"} or is_number(safe) or digits
    assert safe[:1] not in {"\t", "\r", "\n"}


FORMULAS = ["=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u200b=1", "\uff1d1"]
NO_NUMBERS = ["'a", "-", "--5", "-1\n", "+inf", "-nan", "+0x1F", "-1a", "-A1", "-$A1", "-1|2", "-1(2)"]
HARMLESS = ["-5", "+3.5", "-1e-9", "-.5", "0", "", "a=b", "5-6", "(missing)", " a", "é",
            "-1 000", "-$1,234.50", "-1'234.5", "-00:30", "-5%"]  # fmt: skip


@pytest.mark.parametrize("text", [*FORMULAS, *NO_NUMBERS])
def test_a_formula_gets_an_apostrophe(text):
    assert neutralise(pa.array([text])).to_pylist() == ["'" + text]


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_and_harmless_texts_stay_as_they_are(text):
    assert neutralise(pa.array([text])).to_pylist() == [text]
