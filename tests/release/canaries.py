"""Cells that occur nowhere else, and the search for them in whatever a run leaves behind."""

import base64
import io
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from tests.release.place import Row, people

TEXTS: Mapping[str, str] = {
    "person id": "canary-person-zq7731",
    "unknown category": "CanaryCityzq4470",
    "malformed number": "12,canaryzq5519",
    "text in an integer column": "canaryagezq8802",
    "malformed truth": "canarysmokezq3346",
    "formula": "=canaryzq6627()",
    "undeclared column": "canary note zq9915",
    "a whole record": "canaryzq1204",
}
NUMBERS: Mapping[str, str] = {
    "far out of range": "918273645001",
    "decimals": "61.80339887498",
    "a person": "400800120016",
    "undeclared number": "271828182845904",
}
CANARIES: Mapping[str, str] = {**TEXTS, **NUMBERS}
PLANTED: Mapping[str, str] = {"no guard": "canary-unguarded-zq2093", "a kept result": "canary-kept-zq7158"}
"""What is let out on purpose beside runs that must keep their cells; no table holds them."""


def table() -> list[Row]:
    """A good table, and rows that hold every canary, in declared columns and others."""
    t, n = TEXTS, NUMBERS
    planted: list[Row] = [
        (t["person id"], "33", "F", "10.5", "Aa", "no", t["undeclared column"]),
        ("p1", "40", "M", n["decimals"], t["unknown category"], "yes", n["undeclared number"]),
        ("p2", t["text in an integer column"], "F", t["malformed number"], "Bb", t["malformed truth"], ""),
        ("p3", n["far out of range"], "F", n["far out of range"], t["formula"], "no", "x"),
        (n["a person"], "9", "M", "77.7", "?", "yes", "y"),
        (t["a whole record"],) * 7,
    ]
    rows = people(300)
    for i, row in enumerate(planted):
        rows.insert(40 * i + 7, row)
    return rows


def forms(canary: str) -> list[bytes]:
    """What a cell looks like in files: as text, in base64 at any offset, in hex, as a machine number."""
    text = canary.encode()
    found = [text, canary.encode("utf-16-le"), text.hex().encode()]
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + text)
        first = (offset * 8 + 5) // 6
        last = (offset + len(text)) * 8 // 6
        found.append(coded[first:last])
    if canary.isdigit():
        found += [struct.pack("<q", int(canary)), struct.pack("<d", float(canary))]
    return found


def _readable(path: Path) -> Iterable[bytes]:
    content = path.read_bytes()
    yield content
    if content[:4] == b"PAR1":
        written = io.StringIO()
        for column in pq.read_table(path).columns:
            print(*column.to_pylist(), sep="\n", file=written)
        yield written.getvalue().encode()
    for start in (0, 2):
        try:
            yield zlib.decompress(content[start:])
        except zlib.error:
            continue


def found_in(paths: Iterable[Path], canaries: Mapping[str, str] = CANARIES) -> dict[str, set[Path]]:
    """Which canaries are in which files."""
    wanted = {name: forms(canary) for name, canary in canaries.items()}
    found: dict[str, set[Path]] = {}
    for path in paths:
        for content in _readable(path):
            for name, needles in wanted.items():
                if any(needle in content for needle in needles):
                    found.setdefault(name, set()).add(path)
    return found


def left_behind(*folders: Path) -> list[Path]:
    """Every file under some folders but private tables themselves."""
    return [p for f in folders for p in sorted(f.rglob("*")) if p.is_file() and p.name != "people.csv"]
