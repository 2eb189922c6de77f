"""Columns of every modelled kind as a config may declare them, and cells that no config foresaw."""

import datetime as dt
import string
from decimal import Decimal

from hypothesis import assume
from hypothesis import strategies as st

from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from tests.specs import spec_of

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)


def column(**declared):
    """The domain's column that a declaration makes."""
    return compiled(spec_of({"x": declared})).columns[0]


def declared(declaration):
    """The same, or no example where the config is refused."""
    try:
        return column(**declaration)
    except ConfigError:
        assume(False)


MISSING = st.sampled_from(
    [
        True,
        False,
        ("?", "NA"),
        ("-9", "3", "03"),
        {"distinct": ["refused", "7"]},
        {"distinct": ["?"], "markers": ["NA"]},
    ]
)
FORMATS = st.fixed_dictionaries(
    {},
    optional={
        "width": st.integers(1, 9),
        "thousands": st.sampled_from([",", ".", " ", "'", "_"]),
        "decimal": st.sampled_from([".", ","]),
        "prefix": st.sampled_from(["$", "€ ", "Fr. ", "(", "x"]),
        "suffix": st.sampled_from(["%", " €", " kg", "x", ")"]),
    },
).map(lambda f: {k: v for k, v in f.items() if k != "width" or "thousands" not in f})


@st.composite
def integers(draw):
    low = draw(st.integers(-(10**12), 10**12))
    width = draw(st.integers(0, 400))
    bins = draw(st.none() | st.integers(1, min(50, width + 1)))
    found = {"type": "integer", "min": low, "max": low + width, "missing": draw(MISSING)}
    if draw(st.booleans()):
        found["format"] = draw(FORMATS)
    return declared(found | ({} if bins is None else {"bins": bins}))


@st.composite
def numbers(draw):
    places = draw(st.integers(0, 10))
    steps = draw(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=6, unique=True))
    edges = [Decimal(s).scaleb(-places) for s in sorted(steps)]
    bins = draw(st.just(edges) | st.integers(1, 12))
    found = {"type": "number", "bins": bins, "missing": draw(MISSING)}
    if isinstance(bins, int):
        found |= {"min": edges[0], "max": edges[-1]}
    if draw(st.booleans()):
        found["decimals"] = draw(st.integers(0, 9))
    if draw(st.booleans()):
        found["format"] = draw(FORMATS)
    return declared(found)


@st.composite
def categories(draw, kind):
    values = draw(st.lists(WORDS | st.integers(-(10**15), 10**15), min_size=1, max_size=8, unique_by=str))
    found = {"type": kind, "values": values, "missing": draw(MISSING)}
    if kind == "category" and draw(st.booleans()):
        found["other"] = draw(WORDS)
    return declared(found)


@st.composite
def booleans(draw):
    return declared({"type": "boolean", "values": [draw(WORDS), draw(WORDS)], "missing": draw(MISSING)})


DATE_FORMATS = [
    "%Y-%m-%d", "%d/%m/%Y", "%-m/%-d/%Y", "%Y%m%d", "%d %b %Y", "%B %-d, %Y", "%m/%Y", "%Y", "%d.%m.%y",
    "%Y-%d-%m",
]  # fmt: skip
TIME_FORMATS = ["%H:%M:%S", "%H:%M", "%-I:%M %p", "%H%M%S", "%H.%M.%S.%f", "%I%p", "%-Hh"]


PARTS = st.sampled_from([["month"], ["weekday"], ["month", "weekday"]])


@st.composite
def dates(draw):
    low = draw(st.dates(dt.date(1, 1, 1), dt.date(9999, 1, 1)))
    days = draw(st.integers(0, 4000))
    high = low + dt.timedelta(min(days, (dt.date.max - low).days))
    found = {"type": "date", "min": str(low), "max": str(high), "missing": draw(MISSING)}
    return declared(found | draw(st.fixed_dictionaries({}, optional={
        "unit": st.sampled_from(["day", "week", "month", "quarter", "year"]),
        "format": st.sampled_from(DATE_FORMATS),
        "parts": PARTS,
    })))  # fmt: skip


@st.composite
def datetimes(draw):
    low = draw(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9990, 1, 1)))
    high = low + draw(st.timedeltas(dt.timedelta(0), dt.timedelta(300)))
    found = {"type": "datetime", "min": low.isoformat(), "max": high.isoformat(), "missing": draw(MISSING)}
    days = st.sampled_from([f for f in DATE_FORMATS if "d" in f and "y" not in f])
    formats = st.tuples(days, st.sampled_from([" ", "T", ", "]), st.sampled_from(TIME_FORMATS)).map("".join)
    return declared(found | draw(st.fixed_dictionaries({}, optional={
        "unit": st.sampled_from(["minute", "hour", "day", "week", "month", "quarter", "year"]),
        "format": formats,
        "parts": PARTS | st.just(["hour"]) | st.just(["hour", "weekday"]),
        "step": st.sampled_from(["second", "minute", "15 minutes", "hour", "day"]),
    })))  # fmt: skip


@st.composite
def times(draw):
    found = {"type": "time", "unit": draw(st.sampled_from(["hour", "minute"])), "missing": draw(MISSING)}
    form = draw(st.none() | st.sampled_from(TIME_FORMATS))
    return declared(found | ({} if form is None else {"format": form}))


@st.composite
def durations(draw):
    form = draw(st.sampled_from(["seconds", "minutes", "hours", "days"]))
    low = draw(st.integers(-(10**5), 10**5))
    found = {"type": "duration", "min": low, "max": low + draw(st.integers(0, 5000)), "format": form}
    clock = draw(st.sampled_from([None, "iso", "HH:MM:SS", "HH:MM", "MM:SS"]))
    if clock == "iso":
        found |= {"min": f"PT{abs(low)}S", "max": f"P1DT{abs(low)}S", "format": clock}
    elif clock is not None:
        rest = clock[2:].replace("MM", "20").replace("SS", "07")
        found |= {"min": f"-{abs(low) % 50}{rest}", "max": f"{abs(low) % 90}{rest}", "format": clock}
    unit = draw(st.none() | st.sampled_from(["second", "minute", "hour", "day", "week"]))
    return declared(found | {"missing": draw(MISSING)} | ({} if unit is None else {"unit": unit}))


@st.composite
def codes(draw):
    items = st.sampled_from(["[A-C]", r"\d", "x", r"\-", "[é=+]", "[0-36]", "[ ab]"])
    positions = draw(st.lists(items, min_size=1, max_size=5))
    found = {"type": "text", "pattern": "".join(positions), "missing": draw(MISSING)}
    if draw(st.booleans()):
        return declared(found | {"keep": draw(st.integers(1, len(positions)))})
    prefix = st.text("ABC0123456x", min_size=1, max_size=2)
    found["prefixes"] = draw(st.lists(prefix, min_size=1, max_size=3, unique=True))
    return declared(found | ({"other": draw(WORDS)} if draw(st.booleans()) else {}))


STRATEGIES = {
    "integer": integers(),
    "number": numbers(),
    "boolean": booleans(),
    "category": categories("category"),
    "ordered": categories("ordered"),
    "date": dates(),
    "datetime": datetimes(),
    "time": times(),
    "duration": durations(),
    "text": codes(),
}
"""Columns of each kind that is read and modelled."""

COLUMNS = st.one_of(*STRATEGIES.values())

WILD = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.floats().map(str),
    st.integers().map(str),
    st.decimals().map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.times().map(str),
    st.timedeltas().map(str),
    st.binary(max_size=12).map(lambda b: b.decode("utf-8", "replace")),
    st.text(" \t\r\n\v\f\u00a0\u2003\u3000\x00", max_size=4),
    st.text(string.digits + "+-.eE_", max_size=12),
    st.text(string.digits + "PTDHMSW:/-. ", max_size=14),
    st.text("0123 $€.,'_%-", max_size=10),
    st.sampled_from(["nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e-400", "0x10", "1_000"]),
    st.sampled_from(["\uff11\uff12", "٣", "½", "1,5", "--1", "+", "1e", ".", "1.", "=1+1"]),
    st.sampled_from(["9" * 5000, "\ufeff7", "7\u0000", "null", "None"]),
    st.sampled_from(
        ["2020-02-30", "0000-01-01", "0000-00-00", "9999-12-31", "99999-01-01", "2020-13-01", "31/02/2020",
         "24:00:00", "23:59:60", "12:60", "13:00 PM", "0:00 AM", "P", "PT", "-PT", "P1Y", "99 Foo 2020",
         "2020-01-01T25:00:00", "2020-01-01T00:00:00+99:99", "9" * 9 + ":00:00", "P999999W"]
    ),
)  # fmt: skip
