"""Foreign documents in JSON or YAML, read as plain values within limits, and their facts in the grammar.

Values that make no sense are passed on unchanged; the grammar then refuses them with its own message.

Invariant: nothing of a document is run. No tag, pickle, import or address is followed. Every file becomes
plain values or one ConfigError.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpsynth.columns.declaration import Declared
from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind
from dpsynth.columns.section import Value
from dpsynth.columns.text import alphabets, texts_of
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError

MAX_JSON_BYTES = 5_000_000
MAX_YAML_BYTES = 1_000_000
_MAX_DEPTH = 40
_MAX_DIGITS = 60

Mapping = dict[str, Value]


def read_document(path: Path) -> Mapping:
    """The top-level mapping of a JSON or YAML file.

    Raises:
        ConfigError: the file can't be read, is neither, is too large or too deep, or has no mapping
            at its top.
    """
    text = _text(path)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return mapping(_json(text), f"{path}", "")
        except json.JSONDecodeError as error:
            if path.suffix.lower() not in (".yaml", ".yml"):
                where = f"{path}, line {error.lineno}, column {error.colno}"
                raise ConfigError(f"{where}: this is not valid JSON: {error.msg}.") from None
        except RecursionError:
            raise ConfigError(f"{path}: lists and mappings are nested too deeply.") from None
        except _Refused as error:
            raise ConfigError(f"{path} {error}.") from None
    if len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_YAML_BYTES:,} bytes, too large for a YAML file.")
    return parse_yaml(text, str(path)).values


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_JSON_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"There is no file {path}. Give a table (.csv or .parquet), or a description of one."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"{path} can't be read: {reason}.") from None
    if len(data) > MAX_JSON_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_JSON_BYTES:,} bytes, too large for a description.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no description: it is not UTF-8 text.") from None
    if not text.strip():
        raise ConfigError(f"{path} is empty. Give a table, or a description of one.")
    return text


class _Refused(ValueError):
    """A value that JSON allows and a description can't have; the message follows the file's name."""


def _json(text: str) -> Value:
    found: Value = json.loads(
        text,
        object_pairs_hook=_without_repeats,
        parse_float=_decimal,
        parse_int=_integer,
        parse_constant=lambda word: Decimal(word.replace("Infinity", "inf")),
    )
    if _depth(found) > _MAX_DEPTH:
        raise _Refused("holds lists and mappings that are nested too deeply")
    return found


def _without_repeats(pairs: list[tuple[str, Value]]) -> Mapping:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise _Refused(f"gives the key '{shown(twice)}' twice")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _Refused(f"holds a number of more than {_MAX_DIGITS} digits")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    if len(digits) > _MAX_DIGITS:
        raise _Refused(f"holds a number of more than {_MAX_DIGITS} digits")
    try:
        return Decimal(digits)
    except InvalidOperation:
        raise _Refused("holds a number whose exponent is out of range") from None


def _depth(value: Value) -> int:
    """Depth of nested lists and mappings, computed without recursion."""
    depth, level = 0, [value]
    while level:
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
        depth += 1
    return depth


def shown(text: object, longest: int = 60) -> str:
    """A text of a foreign document for a message or a comment: short, printable, on one line."""
    plain = "".join(c if c.isprintable() else " " for c in str(text))
    plain = " ".join(plain.split())
    return plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "…"


def mapping(value: Value, file: object, where: str) -> Mapping:
    """The value if it is a mapping.

    Args:
        value: the value found.
        file: the document, for the message.
        where: keys down to the value, such as "columns.age"; empty for the top.

    Raises:
        ConfigError: the value is no mapping.
    """
    if not isinstance(value, dict):
        place = f"'{shown(where)}'" if where else "the top level"
        raise ConfigError(f"{file}: {place} must be a mapping of keys to values.")
    return value


def sequence(value: Value, file: object, where: str) -> list[Value]:
    """The value if it is a list; ConfigError otherwise."""
    if not isinstance(value, list):
        raise ConfigError(f"{file}: '{shown(where)}' must be a list.")
    return value


def texts(names: Value) -> tuple[str, ...]:
    """One name, or a list of names; none for a null."""
    return tuple(map(str, names if isinstance(names, list) else [] if names is None else [names]))


def picked(tables: Mapping, file: str, pick: str | None) -> tuple[str, Value]:
    """The name and value of the one table that is meant.

    Raises:
        ConfigError: there are several tables and none is picked; the message lists them.
    """
    if pick is None and len(tables) == 1:
        return next(iter(tables.items()))
    names = ", ".join(f"'{shown(name)}'" for name in list(tables)[:10]) + (", …" if len(tables) > 10 else "")
    if not tables:
        raise ConfigError(f"{file} describes no table.")
    if pick is None:
        raise ConfigError(f"{file} describes several tables. Say which one with --pick: {names}.")
    if pick not in tables:
        raise ConfigError(f"{file} describes no table '{shown(pick)}'. Its tables are {names}.")
    return pick, tables[pick]


_LARGEST = 10**15
_BEGINNINGS = 1_000


def number(value: Value) -> Value:
    """A number as an int where it is whole, otherwise as a Decimal; a quoted one unquoted."""
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return value
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < 10 * _LARGEST:
        return int(value) if value == value.to_integral_value() else value
    return value


def inside(value: Value, step: int, *, exclusive: bool, whole: bool) -> Value:
    """A bound as the outermost value allowed; an exclusive bound of whole numbers is one step further in."""
    bound = number(value)
    return bound + step if exclusive and whole and type(bound) is int else bound


def cells(values: Value) -> Value:
    """Listed values as category values: whole numbers and texts, each once; null is no value."""
    if not isinstance(values, list):
        return values
    found: list[Value] = []
    for value in values:
        cell: Value = number(value) if isinstance(value, int | Decimal) and type(value) is not bool else value
        if isinstance(cell, bool | Decimal):
            cell = str(cell)
        if cell is not None and cell not in found:
            found.append(cell)
    return found


def named_values(kind: str, values: Value, missing: Value) -> Declared:
    """A column of listed values; two truth values make it boolean; markers of missing cells are left out."""
    listed = cells(values)
    if isinstance(values, list):
        said = [value for value in values if value is not None]
        if all(isinstance(value, bool) for value in said) and True in said and False in said:
            return with_missing({"type": "boolean"}, missing)
    if isinstance(listed, list):
        markers = {"", *(str(marker) for marker in _markers(missing))}
        listed = [cell for cell in listed if str(cell) not in markers]
    return with_missing({"type": kind, "values": listed or None}, missing)


def _markers(missing: Value) -> list[Value]:
    if isinstance(missing, dict):
        return [*_markers(missing.get("distinct")), *_markers(missing.get("markers"))]
    return missing if isinstance(missing, list) else [missing] if isinstance(missing, str) else []


def with_missing(declared: Declared, missing: Value) -> Declared:
    """A declaration with its rule for missing cells, unless that is the grammar's default."""
    if missing is True or missing is None:
        return declared
    alone = isinstance(missing, list) and len(missing) == 1
    return {**declared, "missing": missing[0] if alone and isinstance(missing, list) else missing}


def coded(pattern: str) -> Declared:
    """A text with a pattern, modelled by the most first characters that make at most 1 000 prefixes.

    Raises:
        ValueError: the pattern is outside the grammar; the message follows the pattern's name.
    """
    positions = alphabets(pattern)
    keep = max((n for n in range(1, len(positions) + 1) if texts_of(positions[:n]) <= _BEGINNINGS), default=1)
    return {"type": "text", "pattern": pattern, "keep": keep}


def moment(kind: MomentKind, pattern: str | None, value: Value) -> Value:
    """A date, datetime or time in ISO 8601, from a text in the column's format or in ISO 8601.

    Any other text is passed on unchanged.
    """
    if not isinstance(value, str):
        return value
    try:
        form = MomentFormat(kind, pattern or ISO[kind])
    except ValueError:
        form = MomentFormat(kind, ISO[kind])
    try:
        found = form.read(pa.array([value.strip()], pa.string()))[0]
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError):
        return value
    if np.isnat(found):
        return value
    finest = {"date": "D", "datetime": "s", "time": "s"}[kind]
    return str(found.astype(f"M8[{finest}]"))


def has_clock(pattern: str) -> bool:
    """True if a strptime format writes an hour."""
    return any(code in pattern for code in ("%H", "%I", "%-H", "%-I", "%c", "%X", "%T", "%R"))


def about(*texts: Value) -> str:
    """The first of some titles and descriptions that is a text, as a note; empty if none is."""
    return next((shown(text, 100) for text in texts if isinstance(text, str) and shown(text)), "")
