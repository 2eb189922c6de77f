"""Formulas mean what they say, and no value makes one fail."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import (
    Call,
    Kind,
    Literal,
    Operand,
    Reference,
    kind_of,
    parse,
    plain,
    references,
    renamed,
    value_of,
)
from tests.examples import examples

QUICK = examples(400)

DAYS = [dt.date(2020, 1, 31), dt.date(2019, 12, 29), None]
MOMENTS = [dt.datetime(2020, 1, 31, 23, 59), dt.datetime(2020, 2, 1, 0, 1), None]
TABLE = {
    "a": (pa.array([3.0, -0.5, None]), 1),
    "b": (pa.array([2, 0, 5]), 0),
    "two words": (pa.array([1, 1, 1]), 0),
    "word": (pa.array(["75011", "", None]), 0),
    "size": (pa.array(["S", "L", None]).dictionary_encode(), 0),
    "yes": (pa.array([True, False, None]), 0),
    "day": (pa.array(DAYS, pa.date32()), 0),
    "when": (pa.array(MOMENTS, pa.timestamp("us")), 0),
    "clock": (pa.array([dt.time(13, 45), dt.time(0), None], pa.time64("us")), 0),
    "took": (pa.array([dt.timedelta(hours=30), dt.timedelta(0), None], pa.duration("s")), 0),
}


WORDS = {
    pa.string(): "text", pa.bool_(): "truth", pa.date32(): "date", pa.timestamp("us"): "datetime",
    pa.time64("us"): "time", pa.duration("s"): "duration",
}  # fmt: skip


def operand(values, decimals):
    """A column as formulas see it."""
    whole = values.cast(pa.int64()) if pa.types.is_duration(values.type) else values
    text = pa.types.is_dictionary(values.type)
    kind = Kind("text") if text else Kind(WORDS.get(values.type, "number"), decimals)
    return Operand(kind, values, whole.cast(pa.string()))


OPERANDS = {name: operand(*column) for name, column in TABLE.items()}
KINDS = {name: operand.kind for name, operand in OPERANDS.items()}


def value(text):
    formula = parse(text)
    kind_of(formula, KINDS)
    return value_of(formula, OPERANDS, 3).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * 2", [7.0, -0.5, None]),
        ("(a + b) * 2", [10.0, -1.0, None]),
        ("-a - -b", [-1.0, 0.5, None]),
        ("b - 1 - 1", [0.0, -2.0, 3.0]),
        ("12 / b", [6.0, None, 2.4]),
        ("b / b / 2", [0.5, None, 0.5]),
        ("`two words` + 1", [2.0, 2.0, 2.0]),
        ("round(a / 4, 1)", [0.8, -0.1, None]),
        ("min(a, b, 1)", [1.0, -0.5, None]),
        ("max(a, b)", [3.0, 0.0, None]),
        ("a > 1", [True, False, None]),
        ("a == 3", [True, False, None]),
        ("not a > 1 or b == 0", [False, True, None]),
        ("b == 5 or a > 1", [True, False, True]),
        ("yes and b > 1", [True, False, None]),
        ("size == 'S'", [True, False, None]),
        ("if(a > 1, 'big', 'small')", ["big", "small", None]),
        ("if(b > 1, a, b)", [3.0, 0.0, None]),
        ("if(size != 'S', word, \"it's\")", ["it's", "", None]),
        ("first(word, 2)", ["75", "", None]),
        ("last(word, 3)", ["011", "", None]),
        ("last(word, 0)", ["", "", None]),
        ("first(day, 7)", ["2020-01", "2019-12", None]),
        ("join(size, '-', first(word, 2))", ["S-75", "L-", None]),
        ("year(day)", [2020, 2019, None]),
        ("month(when)", [1, 2, None]),
        ("day(day)", [31, 29, None]),
        ("weekday(day)", [5, 7, None]),
        ("hour(clock) * 60 + minute(clock)", [825, 0, None]),
        ("hour(when)", [23, 0, None]),
        ("days(day, day)", [0, 0, None]),
        ("hours(took)", [30, 0, None]),
        ("days(took)", [1, 0, None]),
        ("minutes(when, when)", [0, 0, None]),
        ("day < '2020-01-01'", [False, True, None]),
        ("'2020-02-01' <= when", [False, True, None]),
        ("clock == '13:45:00'", [True, False, None]),
        ("day >= day", [True, True, None]),
        ("took == took", [True, True, None]),
    ],
)  # fmt: skip
def test_what_formulas_come_to(text, expected):
    found = value(text)
    assert found == [pytest.approx(e) if isinstance(e, float) else e for e in expected]


NUMBERS = st.recursive(
    st.sampled_from(["a", "b", "1", "2.5", "0", "10"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner) | inner.map("-{}".format)
    ),
    max_leaves=12,
)


@given(NUMBERS, st.lists(st.tuples(*[st.integers(-1000, 1000) | st.none()] * 2), min_size=1, max_size=5))
@QUICK
def test_arithmetic_is_python_s_and_a_missing_or_impossible_part_makes_it_missing(text, rows):
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("ab")}
    operands = {n: Operand(Kind("number"), v, v.cast(pa.string())) for n, v in columns.items()}
    found = value_of(parse(text), operands, len(rows)).to_pylist()
    for row, value in zip(rows, found, strict=True):
        expected = by_hand(text, dict(zip("ab", row, strict=True)))
        if expected is None or abs(expected) > 1e14:
            assert value is None or expected is not None
        else:
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def by_hand(text, row):
    """The formula by Python's own parser; None is missing."""
    if any(v is None and name in text for name, v in row.items()):
        return None
    try:
        found = eval(text, {"__builtins__": {}}, {k: float(v) for k, v in row.items() if v is not None})
    except ZeroDivisionError:
        return None
    return found if math.isfinite(found) else None


@given(st.text("ab1.5'\"`()+-*/<>=!,if andotr", max_size=30))
@QUICK
def test_any_text_is_a_formula_or_a_refusal_in_words(text):
    try:
        formula = parse(text)
        kind_of(formula, KINDS | dict.fromkeys(references(formula), Kind("number")))
    except ValueError as error:
        assert str(error) and "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has the end where a column, a number"),
        ("a +", "has the end where a column, a number"),
        ("a b", "has b where an operator or the end"),
        ("a = b", "can't be read from '= b' on; write == to compare"),
        ("a ; b", "can't be read from '; b' on"),
        ("(a", "has the end where ) should stand"),
        ("f(a", "has the end where , or )"),
        ("'a", "can't be read from"),
        ("(" * 50 + "a" + ")" * 50, "nested too deeply"),
        ("not " * 500 + "yes", "nested too deeply"),
        ("-" * 500 + "a", "nested too deeply"),
        ("a.__class__", "can't be read from '.__class__' on"),
        ("a[0]", "has [ where an operator or the end should stand"),
        ("lambda: a", "can't be read from ': a' on"),
    ],
)
def test_what_is_no_formula_is_refused(text, words):
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("word + 1", "uses '+' on text, number; it works on 2 of kind number"),
        ("-word", "uses '-' on text"),
        ("a and b", "uses 'and' on number, number"),
        ("exec(word)", "uses 'exec', which is no function; those known are if, min"),
        ("__import__('os')", "uses '__import__', which is no function"),
        ("word < 'b'", "asks which text is larger"),
        ("word == 1", "compares a text with a number"),
        ("day == '2020-13-01'", "'2020-13-01', which is no date"),
        ("day < when", "compares a date with a datetime"),
        ("if(a, b, b)", "needs if(comparison, a, b)"),
        ("if(yes, day, day)", "needs if(comparison, a, b)"),
        ("if(yes, a, word)", "needs if(comparison, a, b)"),
        ("first(word)", "needs first(column, n)"),
        ("first(word, a)", "a whole number from 0"),
        ("first(word, 1.5)", "a whole number from 0"),
        ("first(a + 1, 2)", "needs first(column, n)"),
        ("round(a)", "uses round(x, decimals) on number; it works on 2"),
        ("min(a)", "uses min on number; it works on 2"),
        ("year(word)", "needs year(column), the column being a date or a datetime"),
        ("days(day, when)", "needs days(from, to)"),
        ("days(a)", "needs days(from, to)"),
        ("join(a + 1, word)", "needs join(a, b, ...)"),
    ],
)
def test_an_operation_that_does_not_suit_is_refused_with_what_it_needs(text, words):
    with pytest.raises(ValueError, match=r".") as caught:
        kind_of(parse(text), KINDS)
    assert words in str(caught.value)


def test_a_formula_is_a_value():
    assert parse("a <= 1.50") == Call("<=", (Reference("a"), Literal(Decimal("1.50"))))
    assert list(references(parse("if(x > y, x, 'x')"))) == ["x", "y", "x"]


def derived(formula, **more):
    return Derived("d", formula, parse(formula), **more)


def test_decimals_follow_those_of_the_parts_and_sums_are_exact_at_them():
    cents = {n: Operand(Kind("number", 2), v, v.cast(pa.string()))
             for n, v in {"x": pa.array([0.1, 1e6]), "y": pa.array([0.2, 0.33])}.items()}  # fmt: skip
    total = derived("x + y").operand(cents, 2)
    assert total.kind == Kind("number", 2)
    assert total.values.to_pylist() == [0.3, 1000000.33] and total.texts.to_pylist() == ["0.30", "1000000.33"]
    assert derived("x / y").operand(cents, 2).texts.to_pylist()[0] == "0.500000"
    assert derived("x / y", decimals=0).operand(cents, 2).values.type == pa.int64()
    assert derived("x * y").operand(cents, 2).texts.to_pylist() == ["0.0200", "330000.0000"]


def test_a_result_too_large_to_be_exact_is_missing():
    large = {"x": Operand(Kind("number", 9), pa.array([1e10, 1.0]), pa.array(["", ""]))}
    assert derived("x").operand(large, 2).values.to_pylist() == [None, 1.0]
    assert derived("x * x * 10000").operand(large, 2).values.to_pylist()[0] is None


def test_a_map_looks_up_written_texts_and_what_it_lacks_is_other_or_missing():
    pairs = (("S", 1), ("M", 2))
    found = derived("size", map=pairs).operand(OPERANDS, 3)
    assert found.values.to_pylist() == [1, None, None] and found.values.type == pa.int64()
    assert derived("size", map=pairs, other=9).operand(OPERANDS, 3).values.to_pylist() == [1, 9, None]
    texts = derived("size", map=(("S", "small"), ("L", 3))).operand(OPERANDS, 3)
    assert texts.values.to_pylist() == ["small", "3", None]
    with pytest.raises(ValueError, match="for map to look up"):
        derived("a + 1", map=pairs).kind(KINDS)
    with pytest.raises(ValueError, match="comes to a date"):
        derived("day").kind(KINDS)


def test_names_stand_in_backticks_where_they_are_no_plain_words():
    for name in ("in", "and", "a`b", "`", "``a", "two words", "a·b", "1"):
        assert parse(plain(name)) == Reference(name)
    names = {"in`come": "a", "in": "b", "is": "c", "missing": "d", "1": "e", "or": "f"}
    written = "not `in``come` in [in, 1] or in is not missing implies is == `or`"
    assert renamed(written, names) == "not a in [b, 1] or b is not missing implies c == f"
