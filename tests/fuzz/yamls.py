"""Configurations broken byte by byte, line by line and value by value."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path

import yaml

from tests.config.test_any_value import SOUGHT, TYPES, WHOLE

ODD = (
    None, True, False, 0, -1, 1, 2, 10**18, -(10**18), 10**59, 0.5, -0.0, 1e300, 1e-300, float("nan"),
    float("inf"), "", " ", "x", "K", "0", "1.0", "1e3", "nan", "\u00e9\u202e", "\u0663", "a" * 201,
    "a" * 5000, "a\nb", "\x07", "[0-9]{64}", "[0-9", "(" * 50, "%Q", "%Y-%m", "2020-02-30", "9999-12-31",
    "0001-01-01", "P1D", "1 + " * 300 + "1", "-" * 300 + "1", "i / 0", "9 ** 9 ** 9", "Europe/Paris",
    "* * * * *", "0 0 31 2 *", "sqlite://", "sqlite:///", "postgresql://", "../x", "/dev/zero", "private",
    "equal", "same", "auto", [], [[]], [None], [1, 2], ["a", "b"], ["a", "a"], [1, "1"], list(range(2000)),
    ["a" * 9] * 3, [["i", "b"]], {}, {"a": 1}, {"type": "integer"}, {"a": {"a": {"a": {"a": 1}}}},
    {"column": "i"},
)  # fmt: skip
SIGNS = (
    "\t", "&a ", "*a", "<<: *a\n", "!!python/object/apply:os.system [x]", "!!binary ", "!tag ", "? ", "- ",
    "---\n", "...\n", "%YAML 1.1\n", "|\n", ">-\n", "'", '"', "{", "}", "[", "]", ": ", ":", "#", " #", ",",
    "\x00", "\x1b", "\ufeff", "\u2028", "\x85", "@", "`", "0x1F", "0o17", "1e400", "-.inf", ".NaN",
    "2020-01-01", "~", "\r", "\n", "  ", "    ", "yes", "1_000", "12:30:00", "9" * 61,
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "\\x", "%", "\\",
)  # fmt: skip


@cache
def documents() -> tuple[dict[str, object], ...]:
    """Whole configurations: of every section, of every type, and those that are shipped."""
    folder = Path(__file__).parents[2] / "configs"
    shipped = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
    found = [json.loads(json.dumps(values, default=_plain)) for values in (WHOLE, TYPES, SOUGHT, *shipped)]
    assert len(found) > 2
    return tuple(found)


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else str(value)


def _spots(node: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _spots(value, (*path, key))


@cache
def _keys() -> tuple[str, ...]:
    found = {
        key for document in documents() for spot in _spots(document) for key in spot if isinstance(key, str)
    }
    return tuple(sorted(found))


def _changed(values: dict[str, object], chance: random.Random, times: int) -> dict[str, object]:
    found = copy.deepcopy(values)
    for _ in range(times):
        spots = [spot for spot in _spots(found) if spot]
        if not spots:
            break
        *above, key = chance.choice(spots)
        parent: object = found
        for step in above:
            parent = parent[step]  # type: ignore[index]
        assert isinstance(parent, dict | list)
        change = chance.randrange(8)
        if change == 0:
            del parent[key]  # type: ignore[arg-type]
        elif change == 1 and isinstance(parent, dict):
            parent[_renamed(str(key), chance)] = parent.pop(str(key))
        elif change == 2 and isinstance(parent, dict):
            parent[chance.choice(_keys())] = copy.deepcopy(chance.choice(ODD))
        elif change == 3 and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))  # type: ignore[call-overload]
        elif change == 4:
            *higher, other = chance.choice(spots)
            parent[key] = copy.deepcopy(_at(found, (*higher, other)))  # type: ignore[index, call-overload]
        elif change == 5:
            parent[key] = chance.choice(([parent[key]], {"a": parent[key]}))  # type: ignore[index, call-overload]
        else:
            parent[key] = copy.deepcopy(chance.choice(ODD))  # type: ignore[index, call-overload]
    return found


def _at(node: object, path: tuple[object, ...]) -> object:
    for step in path:
        node = node[step]  # type: ignore[index]
    return node


def _renamed(key: str, chance: random.Random) -> str:
    spot = chance.randrange(len(key) + 1)
    return chance.choice(
        (
            key[:spot] + key[spot + 1 :],
            key.upper(),
            key + " ",
            f"{key}\n",
            chance.choice(_keys()),
            "",
            "\u202e" + key,
        )
    )


def _text(values: object, chance: random.Random) -> str:
    return str(
        yaml.safe_dump(
            values,
            default_flow_style=chance.choice((False, None, True)),
            allow_unicode=chance.random() < 0.8,
            sort_keys=chance.random() < 0.3,
            width=chance.choice((40, 4000)),
        )
    )


@cache
def _written(which: int, manner: int) -> str:
    return _text(documents()[which], random.Random(manner))


def _whole(chance: random.Random) -> str:
    return _written(chance.randrange(len(documents())), chance.randrange(9))


def values(chance: random.Random) -> bytes:
    """One value or more replaced, moved, doubled, wrapped or gone."""
    times = chance.choice((1, 1, 2, 3, 8))
    return _text(_changed(chance.choice(documents()), chance, times), chance).encode("utf-8", "surrogatepass")


def lines(chance: random.Random) -> bytes:
    """Lines doubled, gone, moved, indented otherwise."""
    found = _whole(chance).splitlines()
    for _ in range(chance.choice((1, 1, 2, 4))):
        spot = chance.randrange(len(found))
        change = chance.randrange(5)
        if change == 0:
            found.insert(spot, found[spot])
        elif change == 1 and len(found) > 1:
            del found[spot]
        elif change == 2:
            found.insert(chance.randrange(len(found)), found.pop(spot))
        elif change == 3:
            found[spot] = " " * chance.randrange(9) + found[spot].lstrip()
        else:
            found[spot] = found[spot].partition(":")[0] + ": " + chance.choice(SIGNS)
    return "\n".join(found).encode()


def signs(chance: random.Random) -> bytes:
    """Signs that mean something in YAML, anywhere."""
    found = _whole(chance)
    for _ in range(chance.choice((1, 1, 2, 5))):
        spot = chance.randrange(len(found) + 1)
        found = found[:spot] + chance.choice(SIGNS) + found[spot + chance.choice((0, 0, 1, 5)) :]
    return found.encode()


def raw(chance: random.Random) -> bytes:
    """Bytes changed, cut off, or of another encoding."""
    found = bytearray(_whole(chance).encode())
    change = chance.randrange(6)
    if change == 0:
        return bytes(found[: chance.randrange(len(found))])
    if change == 1:
        return (
            bytes(found)
            .decode()
            .encode(chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp500")))
        )
    if change == 2:
        return chance.choice(
            (b"", b"\n", b"\x00", b"{}", b"[]", b"null", b"%PDF", b"PK\x03\x04")
        ) + chance.randbytes(chance.randrange(300))
    for _ in range(chance.choice((1, 3, 20))):
        spot = chance.randrange(len(found))
        found[spot : spot + chance.randrange(3)] = bytes(chance.choices(range(256), k=chance.randrange(3)))
        found = found or bytearray(b"a")
    return bytes(found)


def anchors(chance: random.Random) -> bytes:
    """Anchors, aliases and merge keys: shared values, values within themselves, a billion laughs."""
    found = _whole(chance)
    change = chance.randrange(5)
    if change == 0:
        laughs = "".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, chance.randrange(2, 12))
        )
        return (f"a0: &a0 [lol]\n{laughs}" + found).encode()
    if change == 1:
        return f"{found}\nx: &x\n  {chance.choice(_keys())}: *x\n".encode()
    if change == 2:
        return re.sub(r": (?=\S)", lambda m: chance.choice((": ", ": &a ")), found, count=9).encode()
    if change == 3:
        return re.sub(
            r": [^\s{\[]\S*$", lambda m: chance.choice((m[0], ": *a")), f"release: &a r\n{found}", flags=re.M
        ).encode()
    key = chance.choice(_keys())
    return f"x: &a {{{key}: 1}}\n{found}\n{key}:\n  <<: *a\n".encode()


def deep(chance: random.Random) -> bytes:
    """Lists in lists, mappings in mappings, long texts, long numbers, many keys."""
    many = chance.choice((10, 45, 200, 3000))
    what = chance.choice((
        "[" * many, "{a: " * many, "[" * many + "]" * many, "- " * many + "1",
        "{a: " * many + "1" + "}" * many, "9" * many, "'" + "x" * many * 20 + "'",
        "[" + "1, " * many + "1]", "(" * many, "&a " * many, "? " * many, "!" * many,
        "{" + ", ".join(f"k{i}: 1" for i in range(many)) + "}", '"' + "\\x41" * many + '"', '"' + "\\" * many,
    ))  # fmt: skip
    found = _whole(chance)
    spot = chance.choice([m.end() for m in re.finditer(r": ", found)] or [0])
    return (found[:spot] + what + found[spot:]).encode()


KINDS: Mapping[str, Callable[[random.Random], bytes]] = {
    "values": values, "lines": lines, "signs": signs, "raw bytes": raw, "anchors": anchors, "deep": deep,
}  # fmt: skip
