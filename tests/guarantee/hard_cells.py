"""Cells that readers and drivers stumble over, in every source that holds them, among harmless cells."""

import gzip
import math
import sqlite3
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.config.files.workbooks import parts_of, write_parts, write_workbook
from tests.databases import Postgres

HALF = "a\ud800b"
"""A text with half of a surrogate pair."""
BROKEN = b"a\xff\xed\xa0\x80"
"""Bytes that are no UTF-8."""

DECLARED: Mapping[str, Mapping[str, object]] = {
    "number": {"type": "number", "min": 0, "max": 10, "bins": 5, "decimals": 2},
    "whole": {"type": "integer", "min": 0, "max": 9},
    "text": {"type": "category", "values": ["a", "b"], "other": "rest"},
    "moment": {
        "type": "datetime",
        "min": "2024-01-01",
        "max": "2024-12-31",
        "unit": "month",
        "parts": ["hour", "weekday"],
    },
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31", "unit": "month"},
    "clock": {"type": "time", "unit": "hour"},
    "span": {"type": "duration", "min": "PT0H", "max": "PT48H", "unit": "hour"},
    "truth": {"type": "boolean"},
}
"""A column for each type; the number is summed."""


@dataclass(frozen=True)
class Column:
    """The cells of a column, in the form of their source.

    Attributes:
        plain: harmless cells.
        hard: cells that a table need not hold.
    """

    plain: Sequence[object]
    hard: Sequence[object]


Cells = Mapping[str, Sequence[object]]
Source = Mapping[str, object]
"""The key ``source`` of a configuration, or a table in memory under "table"."""


@dataclass(frozen=True)
class Kind:
    """A kind of source.

    Attributes:
        columns: its columns, by the names of ``DECLARED``.
        write: makes a table of cells in a folder.
    """

    columns: Mapping[str, Column]
    write: Callable[[Path, Cells], Source]

    def rows(self, plain: int, hard: Sequence[tuple[str, object]]) -> Cells:
        """A table of harmless rows, then one row for each hard cell, harmless but for it."""
        found = {name: [c.plain[i % len(c.plain)] for i in range(plain)] for name, c in self.columns.items()}
        for column, cell in hard:
            for name, cells in found.items():
                cells.append(cell if name == column else self.columns[name].plain[0])
        return found

    @property
    def hard(self) -> list[tuple[str, object]]:
        """Each hard cell, with its column."""
        return [(name, cell) for name, column in self.columns.items() for cell in column.hard]


# Files of text

_TEXTS = {
    "number": Column(
        [b"1.25", b"7"],
        [
            b"1e308",
            b"-1e308",
            b"1e309",
            b"9" * 5000,
            b"NaN",
            b"inf",
            b"-0",
            b"5e-324",
            b"1,5",
            b"0x1p3",
            BROKEN,
        ],
    ),
    "whole": Column([b"1", b"2"], [b"1e308", b"99999999999999999999", b"-9e18", b"1.5", b"\0", "٣".encode()]),
    "text": Column([b"a", b"b"], [BROKEN, b"\xef\xbf\xbf", b"a" * 100_000, b"\r", b"'", b"=1+1"]),
    "moment": Column(
        [b"2024-03-01 08:00", b"2024-07-01 09:00"],
        [
            b"infinity",
            b"292277026596-12-04 15:30:08",
            b"2024-02-30 25:61",
            b"0000-00-00",
            b"-4713-11-24",
            BROKEN,
        ],
    ),
    "day": Column(
        [b"2024-03-01", b"2024-07-01"], [b"99999-01-01", b"2024-13-45", b"0000-00-00", b"-infinity"]
    ),
    "clock": Column([b"08:00", b"09:00"], [b"24:00:00", b"25:00", b"-01:00", b"99999999999:00"]),
    "span": Column(
        [b"PT8H", b"PT9H"],
        [b"P9" + b"9" * 400 + b"Y", b"PT1e308S", b"-PT8H", b"P", b"PT9223372036854775808S"],
    ),
    "truth": Column([b"true", b"false"], [b"2", b"TRUEISH", b"\xfe"]),
}


def _as_csv(cells: Cells) -> bytes:
    rows = zip(*cells.values(), strict=True)
    quoted = (b",".join(b'"%s"' % cell for cell in row) for row in rows)
    return b"\n".join([",".join(cells).encode(), *quoted, b""])


def _csv(folder: Path, cells: Cells) -> Source:
    (folder / "t.csv").write_bytes(_as_csv(cells))
    return {"path": str(folder / "t.csv")}


def _lines(folder: Path, cells: Cells) -> Source:
    return {**_csv(folder, cells), "multiline": False}


def _gz(folder: Path, cells: Cells) -> Source:
    (folder / "t.csv.gz").write_bytes(gzip.compress(_as_csv(cells), 1))
    return {"path": str(folder / "t.csv.gz")}


def _zip(folder: Path, cells: Cells) -> Source:
    with zipfile.ZipFile(folder / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", _as_csv(cells))
    return {"path": str(folder / "t.csv.zip")}


def _utf_16(folder: Path, cells: Cells) -> Source:
    texts = _as_csv(cells).decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")
    (folder / "t.csv").write_bytes(texts)
    return {"path": str(folder / "t.csv"), "encoding": "utf-16-le"}


# Arrow

_MOST, _LEAST = 2**63 - 1, -(2**63)
_FLOATS = Column([1.25, 7.0], [1e308, -1e308, math.nan, math.inf, -math.inf, -0.0, 5e-324])


def _arrow(types: Mapping[str, pa.DataType], cells: Cells) -> pa.Table:
    return pa.table({name: _array(types[name], some) for name, some in cells.items()})


def _array(kind: pa.DataType, cells: Sequence[object]) -> pa.Array:
    """An array of any cells, those that its type forbids among them: only their bits are looked at."""
    if pa.types.is_dictionary(kind):
        distinct = list(dict.fromkeys(cells))
        places = pa.array([distinct.index(cell) for cell in cells], kind.index_type)
        return pa.DictionaryArray.from_arrays(places, _array(kind.value_type, distinct))
    if pa.types.is_string_view(kind):
        raw = pa.array(cells, pa.binary_view())
        return pa.Array.from_buffers(kind, len(raw), raw.buffers())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array(cells, pa.binary() if pa.types.is_string(kind) else pa.large_binary()).view(kind)
    if pa.types.is_temporal(kind) and kind != pa.month_day_nano_interval():
        return pa.array(cells, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(cells, kind)


def _of_types(**types: pa.DataType) -> tuple[Mapping[str, pa.DataType], Mapping[str, Column]]:
    wide = {name: 2**31 if kind.bit_width == 32 else 2**63 for name, kind in types.items() if name in _UNITS}
    ends = {name: [most - 1, -most, -1] for name, most in wide.items()}
    columns = {
        "number": _FLOATS,
        "whole": Column([1, 2], [_MOST, _LEAST]),
        "text": Column([b"a", b"b"], [BROKEN, b"\0"]),
        **{
            name: Column([_UNITS[name](kind, n) for n in (0, 1)], ends[name])
            for name, kind in types.items()
            if name in _UNITS
        },
        "truth": Column([True, False], [None]),
    }
    if types.get("span") == pa.month_day_nano_interval():
        columns["span"] = Column(
            [(0, 1, 0), (0, 0, 0)], [(2**31 - 1, 2**31 - 1, _MOST), (-(2**31), -(2**31), _LEAST)]
        )
    return types, {name: columns[name] for name in types}


def _seconds(kind: pa.DataType) -> int:
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]


_UNITS: Mapping[str, Callable[[pa.DataType, int], int]] = {
    "moment": lambda kind, n: (1_709_280_000 + n * 10**7) * _seconds(kind),
    "day": lambda kind, n: (19_783 + 100 * n) * (1 if kind.bit_width == 32 else 86_400_000),
    "clock": lambda kind, n: (8 + n) * 3_600 * _seconds(kind),
    "span": lambda kind, n: (8 + n) * 3_600 * _seconds(kind) if pa.types.is_duration(kind) else 0,
}
"""The bits of a harmless cell of each type that has a unit."""

_TYPES = {
    "plain": _of_types(
        number=pa.float64(),
        whole=pa.int64(),
        text=pa.string(),
        moment=pa.timestamp("us"),
        day=pa.date32(),
        clock=pa.time64("us"),
        span=pa.duration("ms"),
        truth=pa.bool_(),
    ),
    "large": _of_types(
        number=pa.float64(),
        whole=pa.int64(),
        text=pa.large_string(),
        moment=pa.timestamp("ns", "UTC"),
        day=pa.date64(),
        clock=pa.time32("ms"),
        span=pa.duration("ns"),
        truth=pa.bool_(),
    ),
    "view": _of_types(
        number=pa.float64(),
        whole=pa.int64(),
        text=pa.binary_view(),
        moment=pa.timestamp("ms", "Europe/Paris"),
        span=pa.duration("us"),
        truth=pa.bool_(),
    ),
    "text-view": _of_types(number=pa.float64(), text=pa.string_view(), clock=pa.time64("ns")),
    "dictionary": _of_types(
        number=pa.dictionary(pa.int16(), pa.float64()),
        whole=pa.int64(),
        text=pa.dictionary(pa.int8(), pa.string()),
        truth=pa.bool_(),
    ),
    "bytes-in-dictionary": _of_types(
        number=pa.float64(), text=pa.dictionary(pa.int32(), pa.large_binary()), truth=pa.bool_()
    ),
}
_IN_MEMORY = _TYPES | {
    "views-in-dictionary": _of_types(
        number=pa.float64(),
        text=pa.dictionary(pa.int32(), pa.binary_view()),
        moment=pa.timestamp("s"),
        span=pa.month_day_nano_interval(),
    )
}


def _parquet(types: Mapping[str, pa.DataType]) -> Callable[[Path, Cells], Source]:
    def write(folder: Path, cells: Cells) -> Source:
        parquet.write_table(_arrow(types, cells), folder / "t.parquet", row_group_size=50)
        return {"path": str(folder / "t.parquet")}

    return write


def _held(types: Mapping[str, pa.DataType]) -> Callable[[Path, Cells], Source]:
    return lambda folder, cells: {"table": _arrow(types, cells)}


def _polars(types: Mapping[str, pa.DataType]) -> Callable[[Path, Cells], Source]:
    def write(folder: Path, cells: Cells) -> Source:
        polars = pytest.importorskip("polars")
        return {"table": polars.from_arrow(_arrow(types, cells))}

    return write


# pandas

_OBJECTS = {
    "number": Column(
        [1.25, 7], [1e308, 10**400, 10**6000, math.nan, Decimal("sNaN"), Decimal("1e999999"), 2j]
    ),
    "whole": Column([1, 2], [2**70, np.uint64(2**64 - 1), np.longdouble("1e4000"), True, [1], {}, object]),
    "text": Column(["a", "b"], [HALF, BROKEN, None, pd.NA, 7]),
    "moment": Column(
        [pd.Timestamp(2024, 3, 1), pd.Timestamp(2024, 7, 1)],
        [pd.NaT, np.datetime64(2**62, "Y"), date.max, HALF],
    ),
    "span": Column(
        [pd.Timedelta("8h"), pd.Timedelta("9h")],
        [pd.NaT, np.timedelta64(2**62, "Y"), np.timedelta64("NaT"), -1],
    ),
    "truth": Column([True, False], [None, 2, "yes?"]),
}
_TYPED = {
    "number": _FLOATS,
    "whole": Column([1, 2], [_MOST, _LEAST]),
    "text": Column(["a", "b"], [HALF, "c", None]),
    "moment": Column([1_709_280_000, 1_719_280_000], [_MOST, _LEAST, -_MOST]),
    "span": Column([8 * 3_600, 9 * 3_600], [_MOST, _LEAST, -_MOST]),
}


def _objects(folder: Path, cells: Cells) -> Source:
    columns = {}
    for name, some in cells.items():
        columns[name] = np.empty(len(some), dtype=object)
        columns[name][:] = some
    return {"table": pd.DataFrame({n: pd.Series(c, dtype=object) for n, c in columns.items()})}


def _typed(folder: Path, cells: Cells) -> Source:
    texts = pd.Index(list(dict.fromkeys(t for t in cells["text"] if t is not None)), dtype=object)
    codes = [-1 if text is None else texts.tolist().index(text) for text in cells["text"]]
    columns = {
        "number": pd.Series(cells["number"], dtype="float64"),
        "whole": pd.Series(cells["whole"], dtype="Int64"),
        "text": pd.Series(pd.Categorical.from_codes(codes, texts)),
        "moment": pd.Series(np.array(cells["moment"], "int64").view("datetime64[s]")),
        "span": pd.Series(np.array(cells["span"], "int64").view("timedelta64[s]")),
    }
    return {"table": pd.DataFrame({name: columns[name] for name in cells})}


# Workbooks

_SHEET = "xl/worksheets/sheet1.xml"
_XLSX = {
    "number": Column(
        ["<v>1.25</v>", "<v>7</v>"],
        [
            't="n"><v>NaN</v>',
            't="n"><v>INF</v>',
            't="n"><v>-INF</v>',
            't="n"><v>1,5</v>',
            't="n"><v>word</v>',
            "<v>1e308</v>",
            "<v>1e999</v>",
            f"<v>{'9' * 400}</v>",
            f"<v>{'9' * 5000}</v>",
            's="x"><v>5</v>',
            's="99"><v>5</v>',
            't="zz"><v>5</v>',
            "<f>1/0</f>",
            "<v></v>",
            "",
        ],
    ),
    "text": Column(
        ['t="s"><v>0</v>', 't="str"><v>b</v>'],
        [
            't="s"><v>99</v>',
            't="s"><v>-1</v>',
            't="s"><v>word</v>',
            't="s"><v>1e308</v>',
            't="s"/',
            't="e"><v>#DIV/0!</v>',
            't="inlineStr"><is/>',
            't="str"><v>_xD800_</v>',
            't="d"><v>garbage</v>',
        ],
    ),
    "moment": Column(
        ['s="1"><v>45352.5</v>', 's="1"><v>45452</v>'],
        [
            's="1"><v>1e10</v>',
            's="1"><v>-5</v>',
            's="1"><v>1e308</v>',
            's="1"><v>NaN</v>',
            's="1"><v>INF</v>',
            't="d"><v>10000-01-01</v>',
            't="d"><v>2024-02-30</v>',
        ],
    ),
    "span": Column(
        ['s="2"><v>0.25</v>', 's="2"><v>0.5</v>'],
        ['s="2"><v>1e15</v>', 's="2"><v>INF</v>', 's="2"><v>-1e300</v>'],
    ),
    "truth": Column(
        ['t="b"><v>1</v>', 't="b"><v>0</v>'], ['t="b"><v>2</v>', 't="b"><v>x</v>', 't="b"><v>-</v>']
    ),
}


def _xlsx(folder: Path, cells: Cells) -> Source:
    path = folder / "t.xlsx"
    write_workbook(path, {"S": [[*cells]]})
    parts = {name: data.decode() for name, data in parts_of(path).items()}
    rows = []
    for number, row in enumerate(zip(*cells.values(), strict=True), start=2):
        inner = "".join(f"<c {_attributed(cell)}" for cell in row)
        rows.append(f'<row r="{number}">{inner}</row>')
    parts[_SHEET] = parts[_SHEET].replace("</sheetData>", "".join(rows) + "</sheetData>")
    one, _ = parts["xl/styles.xml"].split("</cellXfs>")
    start = one.rindex("<cellXfs")
    formats = one[start:] + '<xf numFmtId="22"/><xf numFmtId="46"/>'
    parts["xl/styles.xml"] = parts["xl/styles.xml"].replace(one[start:], formats)
    parts["xl/sharedStrings.xml"] = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>a</t></si></sst>'
    )
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(
        "</Types>",
        '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
        'officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
    )
    write_parts(path, {name: text.encode() for name, text in parts.items()})
    return {"path": str(path)}


def _attributed(cell: object) -> str:
    text = str(cell)
    if text.endswith("/"):
        return f"{text}>"
    return f"{text if '>' in text.split('<', 1)[0] else '>' + text}</c>"


# Databases

_SQLITE = {
    "number": Column(
        ["1.25", "7"], ["1e308", "9e999", "-9e999", "'1e308'", "CAST(X'ff41' AS TEXT)", "X'ff'", "NULL"]
    ),
    "whole": Column(
        ["1", "2"], ["9223372036854775807", "-9223372036854775808", "'x'", "1e308", "zeroblob(9)"]
    ),
    "text": Column(
        ["'a'", "'b'"],
        ["CAST(X'ff41' AS TEXT)", "CAST(X'eda080' AS TEXT)", "char(55296)", "X'ff'", "'a' || char(0)"],
    ),
    "moment": Column(
        ["'2024-03-01 08:00'", "'2024-07-01'"],
        ["1e308", "'0000-00-00'", "CAST(X'ff' AS TEXT)", "9223372036854775807"],
    ),
    "span": Column(["'PT8H'", "'PT9H'"], ["1e308", "'P'", "X'00'"]),
    "truth": Column(["1", "0"], ["2", "CAST(X'ff' AS TEXT)", "1e308"]),
}
_DUCKDB = {
    "number": Column(["1.25::double", "7::double"], ["1e308", "'nan'", "'inf'", "'-inf'", "'-0'", "5e-324"]),
    "whole": Column(
        ["1::hugeint", "2::hugeint"], ["170141183460469231731687303715884105727", "-1e37::hugeint"]
    ),
    "text": Column(["'a'", "'b'"], ["'a' || chr(0)", "chr(1114111)", "repeat('x', 100000)"]),
    "moment": Column(
        ["timestamp '2024-03-01 08:00'", "'2024-07-01'"],
        ["'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'"],
    ),
    "day": Column(["date '2024-03-01'", "'2024-07-01'"], ["'infinity'", "'-infinity'", "'5881580-07-10'"]),
    "clock": Column(["time '08:00'", "'09:00'"], ["'24:00:00'"]),
    "span": Column(
        ["interval '8 hours'", "'9 hours'"],
        [
            "to_microseconds(9223372036854775807)",
            "to_months(2147483647)",
            "to_days(-2147483648)",
            "interval '300 years'",
        ],
    ),
    "truth": Column(["true", "false"], ["NULL"]),
}
_POSTGRESQL = {
    "number": Column(["1.25::float8", "7"], ["'1e308'", "'nan'", "'inf'", "'-inf'", "'-0'", "'5e-324'"]),
    "whole": Column(["1::numeric", "2"], ["1e1000", "'nan'", "1e-400", "-1e131071"]),
    "text": Column(["'a'::text", "'b'"], ["chr(1114111)", "repeat('x', 100000)", "E'\\x01'"]),
    "moment": Column(
        ["timestamptz '2024-03-01 08:00+00'", "'2024-07-01'"],
        ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'294276-12-31'"],
    ),
    "day": Column(
        ["date '2024-03-01'", "'2024-07-01'"],
        ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'5874897-12-31'"],
    ),
    "clock": Column(["time '08:00'", "'09:00'"], ["'24:00:00'"]),
    "span": Column(
        ["interval '8 hours'", "'9 hours'"],
        [
            "'9223372037 seconds'",
            "'-9223372037 seconds'",
            "'178000000 years'",
            "make_interval(hours => 2147483647)",
            "'-178000000 years 2000000000 days'",
        ],
    ),
    "truth": Column(["true", "false"], ["NULL"]),
}


def _statements(cells: Cells, typed: bool) -> list[str]:
    """Statements that make a table of SQL expressions; the first row's types are those of the columns."""
    rows = [f"SELECT {', '.join(map(str, row))}" for row in zip(*cells.values(), strict=True)]
    names = ", ".join(cells)
    if not typed:
        return [f"CREATE TABLE t ({names})", *(f"INSERT INTO t {row}" for row in rows)]
    aliases = ", ".join(f"{some[0]} AS {name}" for name, some in cells.items())
    values = ", ".join(f"({row.removeprefix('SELECT ')})" for row in rows)
    return [f"CREATE TABLE t AS SELECT {aliases} LIMIT 0", f"INSERT INTO t VALUES {values}"]


def _sqlite(folder: Path, cells: Cells) -> Source:
    (folder / "t.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "t.db") as database:
        for statement in _statements(cells, typed=False):
            database.execute(statement)
    database.close()
    return {"url": f"sqlite:///{folder / 't.db'}", "query": "SELECT * FROM t"}


def _duckdb(folder: Path, cells: Cells) -> Source:
    duckdb = pytest.importorskip("duckdb")
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        for statement in _statements(cells, typed=True):
            database.execute(statement)
    return {"url": f"duckdb:///{folder / 't.duckdb'}", "query": "SELECT * FROM t"}


def in_postgresql(server: Postgres, url: str, cells: Cells) -> Source:
    """A table of SQL expressions in a database of a server."""
    server.execute("DROP TABLE IF EXISTS t", url)
    for statement in _statements(cells, typed=True):
        server.execute(statement, url)
    return {"url": url, "query": "SELECT * FROM t"}


POSTGRESQL = Kind(_POSTGRESQL, lambda folder, cells: {})
"""Cells of PostgreSQL, which ``in_postgresql`` writes."""

KINDS: Mapping[str, Kind] = {
    "csv": Kind(_TEXTS, _csv),
    "lines": Kind(_TEXTS, _lines),
    "gz": Kind(_TEXTS, _gz),
    "zip": Kind(_TEXTS, _zip),
    "utf-16": Kind(_TEXTS, _utf_16),
    **{f"parquet-{n}": Kind(columns, _parquet(types)) for n, (types, columns) in _TYPES.items()},
    **{f"arrow-{n}": Kind(columns, _held(types)) for n, (types, columns) in _IN_MEMORY.items()},
    "polars": Kind(_TYPES["plain"][1], _polars(_TYPES["plain"][0])),
    "objects": Kind(_OBJECTS, _objects),
    "pandas": Kind(_TYPED, _typed),
    "xlsx": Kind(_XLSX, _xlsx),
    "sqlite": Kind(_SQLITE, _sqlite),
    "duckdb": Kind(_DUCKDB, _duckdb),
}
