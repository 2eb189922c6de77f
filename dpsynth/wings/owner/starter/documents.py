"""Foreign documents in JSON or YAML, read as plain values within limits.

Invariant: nothing of a document is run. No tag, pickle, import or address is
followed. Every file becomes plain values or one ConfigError.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path

from dpsynth.columns.section import Value
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
