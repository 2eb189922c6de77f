"""CSV files as they come from careless programs, broken disks and people who mean ill."""

import csv
import io
import random
from collections.abc import Callable, Mapping

from tests.fuzz.tables import CANARY, HEADER, rows

CELLS = (
    "", " ", "NA", "nan", "NaN", "-nan", "inf", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "0x1f",
    "1_000", "\u0663", "\uff17", "\u00bd", "1.2.3", "--1", "1e", ".", "=1+1", "\u202e7", "\u200f7\u200e",
    "\ufeff7", "\u00a07", "e\u0301", "\u00e9", "\U0001f600", "\x1b[31m", "\x85", "\u2028", "a\nb", "a\r\nb",
    "a\rb", ",", '"', '""', "'", "\\", "\\N", ";", "\t", "9" * 400, "-" + "9" * 30, "0" * 300 + "7",
    "2020-02-30", "9999-12-31", "0000-00-00", "-2020-01-01", "24:00", "25:61", "PT", "P1D", "true", "TRUE",
    "F ", "\x00", "\x00" * 9, "\x07", "x" * 5000, CANARY,
)  # fmt: skip
RAW = (
    b"\xff", b"\xfe", b"\x80", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf",
    b"\xe2\x28\xa1", b"\x00", b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"\x1a", b"\xef\xbb\xbf",
    b"\x1f\x8b\x08", b"PAR1", b"\x0b", b"\x0c", b"\xe2\x80\xa8",
)  # fmt: skip
NAMES = (
    "", " ", "age", "Age", " age", "age ", "\ufeffage", "\u202eage", "a\u0301ge", "0", "nan", "=1",
    "x" * 300, "\x00", "\t", "'age'", "age;income", "a\nb", '"',
)  # fmt: skip


def text(header: object, body: list[list[str]], chance: random.Random) -> str:
    """A CSV file in one of the manners of writing them."""
    written = io.StringIO()
    quoting = chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_MINIMAL))
    writer = csv.writer(written, lineterminator=chance.choice(("\n", "\r\n")), quoting=quoting)
    writer.writerows([header, *body])  # type: ignore[list-item]
    return written.getvalue()


def good(chance: random.Random) -> bytes:
    return text(HEADER, rows(chance), chance).encode()


def odd_cells(chance: random.Random) -> bytes:
    body = rows(chance)
    for row in body:
        for _ in range(chance.randrange(4)):
            row[chance.randrange(len(row))] = chance.choice(CELLS)
    return text(HEADER, body, chance).encode()


def raw_cells(chance: random.Random) -> bytes:
    """Bytes thrown in after the header, unquoted."""
    data = bytearray(good(chance))
    first = data.index(b"\n") + 1
    for _ in range(chance.randrange(1, 9)):
        spot = chance.randrange(first, len(data) + 1)
        data[spot:spot] = chance.choice(RAW) * chance.choice((1, 1, 1, 50))
    return bytes(data)


def ragged(chance: random.Random) -> bytes:
    body = rows(chance)
    for row in body:
        if chance.random() < 0.3:
            del row[chance.randrange(len(row)) :]
        if chance.random() < 0.3:
            row.extend(chance.choices(CELLS, k=chance.randrange(5)))
    return text(HEADER, body, chance).encode()


def mutated(chance: random.Random) -> bytes:
    data = bytearray(good(chance))
    for _ in range(chance.choice((1, 2, 5, 30))):
        spot, many = chance.randrange(len(data)), chance.choice((0, 1, 1, 3, 40))
        data[spot : spot + many] = chance.choice((*RAW, bytes([chance.randrange(256)])))
        data = data or bytearray(b"\n")
    return bytes(data)


def truncated(chance: random.Random) -> bytes:
    data = good(chance)
    return data[: chance.randrange(len(data))]


def doubled(chance: random.Random) -> bytes:
    """A part of a file within itself: a header in the middle, half a row twice."""
    data = good(chance)
    start, stop = sorted(chance.choices(range(len(data)), k=2))
    spot = chance.randrange(len(data))
    return data[:spot] + data[start:stop] + data[spot:]


def odd_header(chance: random.Random) -> bytes:
    names = list(HEADER)
    for _ in range(chance.randrange(1, 4)):
        change, name = chance.randrange(4), chance.choice((*NAMES, *HEADER))
        spot = chance.randrange(len(names) + 1)
        if change == 0 or spot == len(names):
            names.insert(spot, name)
        elif change == 1:
            names[spot] = name
        elif change == 2:
            del names[spot]
        else:
            names[spot] = f"{names[spot]}\n{name}"
        names = names or [""]
    body = [[*row, *[CANARY] * (len(names) - len(row))][: len(names)] for row in rows(chance)]
    return text(names, body, chance).encode()


def wide(chance: random.Random) -> bytes:
    """A header of thousands of names, or of one that is too long."""
    if chance.random() < 0.5:
        more = [f"c{i}" for i in range(chance.choice((1000, 20_000)))]
        return text([*HEADER, *more], [[*row, *more] for row in rows(chance, 3)], chance).encode()
    return text([*HEADER, "x" * chance.choice((100_000, 200_000, 1 << 20))], rows(chance, 3), chance).encode()


def encoded(chance: random.Random) -> bytes:
    body = rows(chance)
    for row in body:
        row[-1] = "\u00e9t\u00e9 \u00df"
    codec = chance.choice(
        ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252", "cp500", "utf-7")
    )
    return text(HEADER, body, chance).encode(codec)


def line_ends(chance: random.Random) -> bytes:
    end = chance.choice((b"\r", b"\r\r\n", b"\n\n", b"\n\r", b"\x0b", b"\x1e", b"\xe2\x80\xa8", b""))
    return end.join(good(chance).splitlines())


def few(chance: random.Random) -> bytes:
    """No rows, one row, nothing but signs."""
    line = chance.choice((b"", b",".join(n.encode() for n in HEADER), b"\xef\xbb\xbf", b"\x00", b'"', b","))
    return line + chance.choice(
        (b"", b"\n", b"\r\n", b"\n\n\n", b"\n" + b"," * 10, b"\n" + b"\x00" * 99, b"\n,\n,")
    )


def quotes(chance: random.Random) -> bytes:
    data = good(chance)
    for _ in range(chance.randrange(1, 6)):
        spot = chance.randrange(len(data))
        data = (
            data[:spot]
            + chance.choice((b'"', b'""', b'"""', b',"', b'",', b'"\n', b'\n"', b'"' * 99))
            + data[spot:]
        )
    return data


def long_cells(chance: random.Random) -> bytes:
    """Cells longer than the reader's blocks, which tests make small."""
    body = rows(chance)
    for row in chance.choices(body, k=2) if body else []:
        size = chance.choice((3_000, 70_000, 300_000))
        row[chance.randrange(len(row))] = chance.choice(("x", "1", "\n", ",", '"', "\u00e9")) * size
    return text(HEADER, body, chance).encode()


def other_formats(chance: random.Random) -> bytes:
    data = good(chance)
    return chance.choice((
        b"\x1f\x8b\x08\x00" + data, b"PK\x03\x04" + data, b"PAR1" + data + b"PAR1",
        b"\x89PNG\r\n\x1a\n" + data, b"%PDF-1.4\n" + data, b"\x7fELF\x02" + data,
        b"SQLite format 3\x00" + data, b"<html><table><tr><td>" + data, b'{"a": [1, 2]}\n' + data,
        b"\xd0\xcf\x11\xe0" + data, data.replace(b",", b";"), data.replace(b",", b"\t"),
        chance.randbytes(chance.randrange(3000)), b"\x00" * chance.randrange(1, 5000),
    ))  # fmt: skip


WITHOUT_FAULT: Mapping[str, Callable[[random.Random], bytes]] = {
    "odd cells": odd_cells, "raw bytes in cells": raw_cells, "ragged rows": ragged, "long cells": long_cells,
}  # fmt: skip
"""Whatever these hold, the header is good: they are tables and must be accepted."""

KINDS: Mapping[str, Callable[[random.Random], bytes]] = {
    **WITHOUT_FAULT, "mutated": mutated, "truncated": truncated, "doubled": doubled, "odd header": odd_header,
    "wide": wide, "encoded": encoded, "line ends": line_ends, "few": few, "quotes": quotes,
    "other formats": other_formats,
}  # fmt: skip
