"""Parquet files with broken bytes, and whole ones of every type that Arrow can write."""

import datetime as dt
import io
import random
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.tables import CANARY, HEADER, rows

_CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
_FAR = (0, 1, -1, 2**63 - 1, -(2**63), 10**18, -(10**15), 253_402_300_800)
_NEAR = (0, 1, -1, 2**31 - 1, -(2**31), 90_000, 18_000)


def _far(kind: pa.DataType) -> pa.Array:
    return pa.array(_FAR, pa.int64()).view(kind)


def _near(kind: pa.DataType) -> pa.Array:
    return pa.array(_NEAR, pa.int32()).view(kind)


@cache
def plain() -> Mapping[str, pa.Array]:
    """Cells of every type that is read, the strangest included."""
    return {
        **{f"{t}": _far(t) for u in ("ms", "us", "ns") for t in (pa.timestamp(u), pa.timestamp(u, "UTC"),
           pa.timestamp(u, "Europe/Paris"), pa.timestamp(u, "-09:30"), pa.duration(u))},
        "seconds": _far(pa.duration("s")), "date64": _far(pa.date64()), "date32": _near(pa.date32()),
        "time64": _far(pa.time64("us")), "time64 ns": _far(pa.time64("ns")), "time32": _near(pa.time32("ms")),
        "float16": pa.array(np.array([np.nan, np.inf, -0.0, 65504], np.float16)),
        "float32": pa.array([float("nan"), 1e38, -1e-45, None], pa.float32()),
        "float64": pa.array([float("nan"), float("-inf"), 1e308, 5e-324, -0.0]),
        "uint64": pa.array([2**64 - 1, 0, None], pa.uint64()), "int8": pa.array([-128, 127], pa.int8()),
        "decimal128": pa.array([Decimal("9" * 38), Decimal("-1"), None], pa.decimal128(38, 0)),
        "small decimals": pa.array([Decimal("0." + "0" * 37 + "1")], pa.decimal128(38, 38)),
        "decimal256": pa.array([Decimal("9" * 76)], pa.decimal256(76, 0)),
        "boolean": pa.array([True, False, None]), "null": pa.nulls(5),
        "text": pa.array(["", " ", "\x00", "\u202e7", "9" * 400, CANARY, None]),
        "large text": pa.array([CANARY, ""], pa.large_string()), "text view": pa.array(["x", CANARY * 9],
        pa.string_view()), "bytes": pa.array([b"\xff", b"\x00", None]),
        "bytes view": pa.array([b"\xff" * 20], pa.binary_view()), "large bytes": pa.array([b"\xff"],
        pa.large_binary()), "fixed bytes": pa.array([b"\xff\x00"], pa.binary(2)),
        "no text": pa.array([b"\xff" + CANARY.encode(), b"ok", None]).view(pa.string()),
        "no large text": pa.array([b"ok", b"\xc0\xaf"], pa.large_binary()).view(pa.large_string()),
        "codes of texts": pa.array(["x", CANARY, None]).dictionary_encode(),
        "codes of bytes": pa.array([b"\xff", b"x"]).dictionary_encode(),
        "codes of dates": pa.array([dt.date(2020, 1, 1), None]).dictionary_encode(),
        "codes of numbers": pa.array([7, 8, 7]).dictionary_encode(),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', "{"])),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcde\xff", None],
        pa.binary(16))), "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 77],
        pa.int8())), "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "t", "v"), pa.array([1])),
    }  # fmt: skip


@cache
def nested() -> Mapping[str, pa.Array]:
    """Cells that are no single values, or that Arrow can't tell as text."""
    pairs = pa.array([[1, 0]], pa.list_(pa.int8(), 2))
    return {
        "list": pa.array([[CANARY]]), "large list": pa.array([[1]], pa.large_list(pa.int8())),
        "list view": pa.array([[1]], pa.list_view(pa.int8())), "fixed list": pairs,
        "record": pa.array([{CANARY: 1}]), "map": pa.array([[(CANARY, 1)]], pa.map_(pa.string(), pa.int8())),
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), [2]), pairs),
        "unknown zone": pa.array([0], pa.timestamp("us", "Foo/Bar")),
    }  # fmt: skip


def bytes_of(table: pa.Table, chance: random.Random) -> bytes:
    """A Parquet file in one of the manners of writing them."""
    written = io.BytesIO()
    pq.write_table(
        table,
        written,
        compression=chance.choice(_CODECS),
        row_group_size=chance.choice((1, 5, 1000)),
        data_page_version=chance.choice(("1.0", "2.0")),
        data_page_size=chance.choice((20, 1 << 20)),
        use_dictionary=chance.random() < 0.5,
        write_page_checksum=chance.random() < 0.2,
        store_schema=chance.random() < 0.8,
        version=chance.choice(("1.0", "2.4", "2.6")) if "ns" not in str(table.schema) else "2.6",
    )
    return written.getvalue()


def table(chance: random.Random) -> pa.Table:
    """The good table, of texts or of types of their own."""
    columns = list(zip(*rows(chance), strict=True)) or [()] * len(HEADER)
    found = {name: pa.array(cells, pa.string()) for name, cells in zip(HEADER, columns, strict=True)}
    if chance.random() < 0.7:
        casts = {"age": pa.int16(), "income": pa.float64(), "born": pa.date32(), "seen": pa.timestamp("us")}
        found |= {name: found[name].cast(kind) for name, kind in casts.items()}
        found["stay"] = found["stay"].cast(pa.int64()).cast(pa.duration("s"))
        found["sex"] = found["sex"].dictionary_encode()
    return pa.table(found)


@cache
def _good(number: int) -> bytes:
    chance = random.Random(number)
    return bytes_of(table(chance), chance)


def good(chance: random.Random) -> bytes:
    """One of some hundred whole files: writing takes longer than reading."""
    return _good(chance.randrange(300))


def _damaged(data: bytes, start: int, stop: int, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 20))):
        spot = chance.randrange(start, max(start + 1, min(stop, len(found))))
        change = chance.randrange(5)
        if change == 0:
            found[spot] ^= 1 << chance.randrange(8)
        elif change == 1:
            found[spot] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))
        elif change == 2:
            many = chance.choice((2, 4, 8))
            found[spot : spot + many] = chance.choice((b"\xff", b"\x00", b"\x7f")) * many
        elif change == 3:
            # Sizes are varints: as long as one can be, in place of what is there.
            found[spot : spot + 5] = b"\xff\xff\xff\xff" + bytes([chance.choice((0x07, 0x0F, 0x7F))])
        else:
            found[spot : spot + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
    return bytes(found)


def _footer(data: bytes) -> int:
    return len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]


def pages(chance: random.Random) -> bytes:
    data = good(chance)
    return _damaged(data, 4, _footer(data), chance)


def footer(chance: random.Random) -> bytes:
    data = good(chance)
    return _damaged(data, _footer(data), len(data) - 8, chance)


def ends(chance: random.Random) -> bytes:
    """Another magic word, another length of the footer."""
    data = good(chance)
    length = chance.choice((0, 1, 8, len(data), 2**31 - 1, 2**31, 2**32 - 1, chance.randrange(1 << 16)))
    tail = chance.choice((data[-8:-4], struct.pack("<I", length))) + chance.choice(
        (b"PAR1", b"PARE", b"PAR2", b"ORC\x00", b"")
    )
    return chance.choice((data[:4], b"PARE", b"ORC\x00", b"Obj\x01", b"")) + data[4:-8] + tail


def truncated(chance: random.Random) -> bytes:
    """Cut anywhere, or with a hole."""
    data = good(chance)
    start, stop = sorted(chance.choices(range(len(data)), k=2))
    return chance.choice(
        (
            data[:stop],
            data[start:],
            data[:start] + data[stop:],
            data[:start] + bytes(stop - start) + data[stop:],
        )
    )


def spliced(chance: random.Random) -> bytes:
    """The pages of one file under the footer of another."""
    one, other = good(chance), good(chance)
    return one[: _footer(one)] + other[_footer(other) :]


def odd_types(chance: random.Random) -> bytes:
    """Every column of some type or other, whatever the config declares."""
    kinds = list(plain().values())
    chosen = [chance.choice(kinds) for _ in HEADER]
    length = chance.randrange(5)
    cells = [chance.choices(range(len(c)), k=length) for c in chosen]
    columns = [_taken(c, spots) for c, spots in zip(chosen, cells, strict=True)]
    return bytes_of(pa.table(dict(zip(HEADER, columns, strict=True))), chance)


def _taken(cells: pa.Array, spots: list[int]) -> pa.Array:
    if isinstance(cells.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(cells.type, cells.storage.take(pa.array(spots, pa.int64())))
    if pa.types.is_dictionary(cells.type) or "view" in str(cells.type):
        return pa.concat_arrays([cells.slice(s, 1) for s in spots] or [cells.slice(0, 0)])
    return cells.take(pa.array(spots, pa.int64()))


def odd_columns(chance: random.Random) -> bytes:
    """Columns that are lists, gone, twice there, or have strange names; no columns at all."""
    found = table(random.Random(chance.randrange(9)))
    names = list(found.column_names)
    for _ in range(chance.randrange(1, 4)):
        spot = chance.randrange(len(names))
        change = chance.randrange(4)
        if change == 0 and len(names) > 1:
            found, names = found.remove_column(spot), names[:spot] + names[spot + 1 :]
        elif change == 1:
            names[spot] = chance.choice(("", "age", "age.x", "a\x00b", "\u202eage", "x" * 3000, "\n"))
        elif change == 2:
            cells = chance.choice(list(nested().values()))
            repeated = pa.concat_arrays([cells] * found.num_rows) if found.num_rows else cells.slice(0, 0)
            found = found.set_column(spot, names[spot], repeated)
        elif chance.random() < 0.1:
            return bytes_of(pa.table({}), chance)
    return bytes_of(found.rename_columns(names), chance)


def many_rows(chance: random.Random) -> bytes:
    """A small file that says it has very many rows."""
    data = bytearray(good(chance))
    start = _footer(bytes(data))
    # num_rows of the file and its row groups are zigzag varints of the footer.
    for spot in [i for i in range(start, len(data) - 8) if data[i] == 0x16][: chance.randrange(1, 9)]:
        data[spot + 1 : spot + 2] = chance.choice(
            (b"\xfe\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x01")
        )
    return bytes(data[:-8]) + struct.pack("<I", len(data) - 8 - start) + b"PAR1"


WITHOUT_FAULT: Mapping[str, Callable[[random.Random], bytes]] = {"odd types": odd_types}
KINDS: Mapping[str, Callable[[random.Random], bytes]] = {
    **WITHOUT_FAULT, "broken pages": pages, "broken footer": footer, "broken ends": ends,
    "truncated": truncated, "spliced": spliced, "odd columns": odd_columns, "many rows": many_rows,
}  # fmt: skip
