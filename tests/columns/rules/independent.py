"""Rules as nested tuples, evaluated on the texts of a CSV file by plain Python: no code of ours.

Three truth values, as in SQL: None is unknown. A rule is violated where it is False.
"""

import datetime as dt
import operator
from decimal import Decimal

from hypothesis import strategies as st

COLUMNS = {
    "n": {"type": "integer", "min": 0, "max": 30, "bins": 7},
    "m": {"type": "integer", "min": -3, "max": 8},
    "x": {"type": "number", "min": 0, "max": 10, "bins": 4, "decimals": 1},
    "y": {"type": "number", "min": -5, "max": 10, "bins": 5, "decimals": 2, "missing": "?"},
    "from": {"type": "date", "min": "2020-01-15", "max": "2020-06-10", "unit": "month"},
    "to": {"type": "date", "min": "2020-01-01", "max": "2020-06-30", "unit": "week"},
    "at": {"type": "datetime", "min": "2020-02-01T00:00:00", "max": "2020-02-03T12:00:00", "unit": "hour"},
    "c": {"type": "category", "values": ["red", "blue", "it's"]},
    "e": {"type": "ordered", "values": ["low", "mid", "red"], "missing": {"distinct": ["refused"]}},
    "flag": {"type": "boolean", "missing": False},
    "post": {"type": "text", "pattern": "[0-2]{3}", "prefixes": ["00", "1", "2"]},
    "band": {"type": "derived", "formula": "if(n < 10, 'few', 'many')"},
    "double": {"type": "derived", "formula": "x * 2 - m"},
}
KIND = {"n": "number", "m": "number", "x": "number", "y": "number", "double": "number", "from": "date",
        "to": "date", "at": "datetime", "c": "text", "e": "text", "post": "text", "band": "text",
        "flag": "truth"}  # fmt: skip
LITERALS = {
    "c": ["red", "blue", "it's"], "e": ["low", "mid", "red"], "post": ["000", "121", "222", "999"],
    "band": ["few", "many"],
}  # fmt: skip
MISSING = {"", "?", "refused"}

_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
          "!=": operator.ne}  # fmt: skip
_WORK = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def typed(name, text):
    """The value of a cell; None if it is missing."""
    if text in MISSING:
        return None
    kind = KIND.get(name, "number")
    if kind == "number":
        return Decimal(text)
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind == "datetime":
        return dt.datetime.fromisoformat(text)
    return text == "true" if kind == "truth" else text


def value(rule, row):
    """What a rule or a part of it comes to in a row of typed values; None if unknown."""
    head, *parts = rule
    if head == "column":
        return row[parts[0]]
    if head == "literal":
        return parts[0]
    found = [value(part, row) for part in parts]
    if head == "missing":
        return found[0] is None
    if head == "not":
        return None if found[0] is None else not found[0]
    if head == "implies":
        return _either(None if found[0] is None else not found[0], found[1])
    if head == "or":
        return _either(*found)
    if head == "and":
        negative = _either(*(None if f is None else not f for f in found))
        return None if negative is None else not negative
    if None in found:
        return None
    if head in _ORDER:
        return _ORDER[head](*found)
    if head in _WORK:
        return _WORK[head](*found)
    if head in ("min", "max"):
        return {"min": min, "max": max}[head](*found)
    if head == "days":
        return Decimal((found[1] - found[0]).days)
    if head == "year":
        return Decimal(found[0].year)
    if head == "month":
        return Decimal(found[0].month)
    if head == "first":
        return found[0][:1]
    raise AssertionError(head)


def _either(a, b):
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def written(rule):
    """The rule as a configuration has it."""
    head, *parts = rule
    if head == "column":
        return f"`{parts[0]}`"
    if head == "literal":
        found = parts[0]
        quote = '"' if "'" in str(found) else "'"
        return f"{found}" if isinstance(found, Decimal) else f"{quote}{found}{quote}"
    texts = [written(part) for part in parts]
    if head == "missing":
        return f"({texts[0]}) is missing"
    if head == "not":
        return f"not ({texts[0]})"
    if head in ("min", "max", "days", "year", "month"):
        return f"{head}({', '.join(texts)})"
    if head == "first":
        return f"first({texts[0]}, 1)"
    return f"({texts[0]}) {head} ({texts[1]})"


def _columns(kind):
    return st.sampled_from([("column", name) for name, k in KIND.items() if k == kind])


numbers = st.recursive(
    _columns("number") | st.integers(-5, 32).map(lambda i: ("literal", Decimal(abs(i)))),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner),
        st.tuples(st.just("days"), _columns("date"), _columns("date")),
        st.tuples(st.just("month"), _columns("date")),
        st.tuples(st.just("year"), _columns("datetime")),
    ),
    max_leaves=3,
)
_days = st.dates(dt.date(2020, 1, 1), dt.date(2020, 6, 30)).map(lambda d: ("literal", d))
_signs = st.sampled_from(list(_ORDER))
_equal = st.sampled_from(["==", "!="])
_words = st.sampled_from([(n, v) for n, listed in LITERALS.items() for v in listed])
comparisons = st.one_of(
    st.tuples(_signs, numbers, numbers).filter(lambda r: r[1][0] != "literal" or r[2][0] != "literal"),
    st.tuples(_signs, _columns("date"), _columns("date") | _days),
    st.tuples(_equal, _words, st.none()).map(lambda r: (r[0], ("column", r[1][0]), ("literal", r[1][1]))),
    st.tuples(_equal, _columns("text"), _columns("text")),
    st.tuples(_equal, st.just(("first", ("column", "post"))), st.just(("literal", "1"))),
    st.just(("column", "flag")),
    st.tuples(st.just("missing"), st.sampled_from([("column", n) for n in KIND])),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["and", "or", "implies"]), inner, inner)
    ),
    max_leaves=4,
)


def rows_of(texts):
    """Rows of typed values, from a mapping of columns to their texts."""
    columns = {name: [typed(name, text) for text in cells] for name, cells in texts.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def violations(rule, texts):
    """How many rows make a rule false."""
    return sum(value(rule, row) is False for row in rows_of(texts))
