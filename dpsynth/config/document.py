"""Documents: the plain values of a configuration, their lines, their checks, and what is said of wrong ones.

PyYAML follows YAML 1.1, where ``NO`` is false, ``1e-6`` a text, ``010`` eight, ``12:30`` 750, ``- ?`` a
mapping, and a key given twice silently wins. In a file that decides what is protected none of that may pass.
So a file is read as people expect it: 1.2 scalars, no duplicate keys, and a line for every key. A
configuration in Python holds what people have there: tuples, arrays, dates, numbers of numpy. Each becomes
what YAML would hold.

Invariant: what is read is plain data (dict, list, str, int, Decimal, bool, None), and every number exactly as
it was written: nothing is rounded or guessed. Every failure is a ConfigError of one plain paragraph. It holds
the file's name, lines, keys, and short values that a rule chose to quote; no text of pydantic's, and never
the value of a key that may hold a password. A wing is imported only where its key is given, or where the
grammar as a whole is described.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path, PurePath
from typing import NoReturn, TypeVar

import numpy as np
from pydantic import GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema
from yaml.composer import Composer
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from dpsynth.columns.section import NESTED, REFUSED, Checked, JsonSchema, Section, Value, refused
from dpsynth.errors import ConfigError
from dpsynth.wing import Point

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the top of a file down to a value."""

MAX_BYTES = 1_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 40
_MAX_DIGITS = 60

_NULLS = {"", "~", "null", "Null", "NULL"}
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = {".nan", ".NaN", ".NAN"}


class OddInteger(int):
    """An integer with another spelling than Python's: 010, +5, 0x1F.

    It is a valid number. As a category or a marker it would lose its spelling.
    """


@dataclass(frozen=True)
class Document:
    """A YAML file's values, with the line of each.

    Attributes:
        name: the file as the user named it, for messages.
        values: the top-level mapping.
        lines: line, from 1, of every key and list item.
    """

    name: str
    values: dict[str, Value]
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int | None:
        """Line of the nearest known key at or above a path, None in a document without lines."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def read_yaml(path: str | Path) -> Document:
    """Read a YAML file whose top level is a mapping.

    Raises:
        ConfigError: the file can't be read, is no UTF-8, no YAML, or no mapping; the message
            names file and line.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"There is no file {name}. Check the path of the configuration.") from None
    except IsADirectoryError:
        raise ConfigError(f"{name} is a folder. Give the path of a YAML file in it.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"{name} can't be read: {reason}.") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{name} is larger than {MAX_BYTES:,} bytes, too large for a configuration.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{name}, line {line}: this is not UTF-8 text. Save the file as UTF-8.") from None
    return parse_yaml(text, name)


def parse_yaml(text: str, name: str) -> Document:
    """The document in a text; see ``read_yaml``."""
    try:
        root = _NodeReader(text, name).get_single_node()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = (error.problem or error.context or "it can't be parsed").strip()
        if mark and error.context_mark and error.context_mark.line != mark.line:
            problem += f" (in what began on line {error.context_mark.line + 1})"
        raise ConfigError(f"{name}{where}: this is not valid YAML: {problem}.{_advice(problem)}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{name}, line {line}: a control character is not allowed here.") from None
    except RecursionError:
        raise ConfigError(f"{name}: lists and mappings are nested too deeply.") from None
    if root is None or (isinstance(root, ScalarNode) and root.style is None and root.value in _NULLS):
        raise ConfigError(f"{name} is empty. It needs at least the keys source, privacy and columns.")
    if not isinstance(root, MappingNode):
        raise ConfigError(
            f"{name}, line {root.start_mark.line + 1}: the top level must be a mapping of keys to values, "
            "such as 'privacy: {epsilon: 1.0}'."
        )
    builder = _Builder(name)
    return Document(name, builder.mapping(root, ()), builder.lines)


def _advice(problem: str) -> str:
    if "undefined alias" in problem:
        return " A text that begins with '*' stands in quotes; an alias needs its anchor, '&', before it."
    if r"\t" in problem or "tab" in problem:
        return " Indent with spaces, not with tabs."
    if "'%'" in problem or "'@'" in problem or "'`'" in problem:
        return " Put the value in quotes."
    if "expected alphabetic or numeric character" in problem:
        return " Put a value that starts with '*' or '&' in quotes."
    if "mapping values are not allowed" in problem:
        return " Put a value that contains ': ' in quotes, and check the indentation."
    if "another document" in problem:
        return " A configuration is one document: remove the second '---'."
    return " Check quotes, brackets and indentation on this line and the one before."


class _NodeReader(Reader, Scanner, Parser, Composer, BaseResolver):
    def __init__(self, text: str, name: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._file = name

    def fetch_key(self) -> None:
        raise ConfigError(
            f"{self._file}, line {self.line + 1}: YAML reads a bare question mark as the start of a "
            "mapping. If the text ? is meant, put it in quotes: '?'."
        )

    def fetch_tag(self) -> None:
        raise ConfigError(
            f"{self._file}, line {self.line + 1}: YAML tags (words that start with '!') are not allowed. "
            "If the text itself starts with '!', put it in quotes."
        )


class _Builder:
    """Plain values and line numbers of YAML nodes; bounded in depth and number."""

    def __init__(self, name: str) -> None:
        self.lines: dict[KeyPath, int] = {(): 1}
        self._name = name
        self._open: set[int] = set()
        self._count = 0

    def _refuse(self, node: Node, problem: str) -> NoReturn:
        raise ConfigError(f"{self._name}, line {node.start_mark.line + 1}: {problem}")

    def mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Value]:
        values: dict[str, Value] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._refuse(key_node, "a key must be a plain text, not a list or a mapping.")
            key, line = key_node.value, key_node.start_mark.line + 1
            where = ".".join(map(str, (*path, key)))
            if key in first:
                self._refuse(key_node, f"the key {where} is given twice (first on line {first[key]}).")
            if key == "<<" and key_node.style is None:
                self._refuse(key_node, "merge keys (<<) are not supported. Write the keys out.")
            first[key] = line
            self.lines[*path, key] = line
            values[key] = self._value(value_node, (*path, key))
        return values

    def _value(self, node: Node, path: KeyPath) -> Value:
        self._count += 1
        if self._count > MAX_VALUES:
            self._refuse(node, f"the file expands to more than {MAX_VALUES:,} values.")
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            self._refuse(node, "an alias (*) refers to a value that contains it.")
        if len(path) > MAX_DEPTH:
            self._refuse(node, "lists and mappings are nested too deeply.")
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self.mapping(node, path)
            assert isinstance(node, SequenceNode)
            return [self._item(item, (*path, i)) for i, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _item(self, node: Node, path: KeyPath) -> Value:
        self.lines[path] = node.start_mark.line + 1
        return self._value(node, path)

    def _scalar(self, node: ScalarNode) -> Value:
        text: str = node.value
        if node.style is not None:
            return text
        if text in _NULLS:
            return None
        if text in _TRUTHS:
            return _TRUTHS[text]
        if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
            return self._number(node, text)
        if _INFINITY.fullmatch(text):
            return Decimal("-Infinity" if text[0] == "-" else "Infinity")
        return Decimal("NaN") if text in _NAN else text

    def _number(self, node: ScalarNode, text: str) -> int | Decimal:
        if len(text) > _MAX_DIGITS:
            self._refuse(node, f"a number has more than {_MAX_DIGITS} characters; put it in quotes if text.")
        if _INTEGER.fullmatch(text):
            base = {"0o": 8, "0x": 16}.get(text[:2], 10)
            value = int(text, base)
            return value if str(value) == text else OddInteger(value)
        try:
            return Decimal(text)
        except InvalidOperation:
            self._refuse(node, "a number's exponent is out of range.")


S = TypeVar("S", bound=Section)

SHOWN = 4


_SECTIONS_NEEDED = {
    "source": "say where the table is, such as source: {path: data/table.csv}",
    "privacy": "say what to protect, such as privacy: {epsilon: 1.0}",
    "columns": "declare each column, such as age: {type: integer, min: 0, max: 110}",
}


_NEEDED = {
    "epsilon": "give a number above 0; 0.1 to 5 is usual",
    "unit.column": "name the column that says whose row it is",
    "period.column": "name the column that says which slice a row is in, such as column: visited",
    "every": "say how long a slice is, such as every: month",
    "cron": "give five cron fields, such as cron: '0 3 1 * *'",
    "timezone": "give a time zone, such as timezone: Europe/Paris",
    "max_rows": "give the most rows of one person that are used, such as 4, or private to have it found",
    "columns": "list two or more, such as columns: [age, sex]",
    "crosstab": "list columns, such as crosstab: [age, sex]",
}


_WORDS = {
    "tuple_type": "must be a list in brackets or of '- ' lines",
    "dict_type": "must be a mapping of keys to values",
    "mapping_type": "must be a mapping of keys to values",
    "too_short": "must not be an empty list",
    "too_long": "lists too many values",
}


def paragraph(error: ValidationError, document: Document) -> str:
    """The first few problems, in the order of the file, one sentence or two each."""
    problems = sorted(
        ((document.line(path) or 0, _sentence(path, detail)) for path, detail in _located(error, document)),
        key=lambda problem: problem[0],
    )
    if len(problems) == 1:
        line, sentence = problems[0]
        return f"{document.name}{f', line {line}' if line else ''}: {sentence}"
    listed = [f"line {line}: {text}" if line else text for line, text in problems[:SHOWN]]
    left = len(problems) - len(listed)
    more = f" And {left} more." if left else ""
    sentences = " ".join(text[0].upper() + text[1:] for text in listed)
    return f"{document.name} has {len(problems)} problems. {sentences}{more}"


def _located(error: ValidationError, document: Document) -> list[tuple[KeyPath, ErrorDetails]]:
    details = list(_flat(error.errors(include_url=False, include_input=False)))
    located = [(_path(detail, document), detail) for detail in details]
    # pydantic counts the valid items of a list: one bad item also makes a list of one too short.
    deeper = {path[:end] for path, _ in located for end in range(len(path))}
    return [(path, d) for path, d in located if d["type"] != "too_short" or path not in deeper]


def _flat(details: Iterable[ErrorDetails]) -> Iterator[ErrorDetails]:
    for detail in details:
        if detail["type"] != NESTED:
            yield detail
            continue
        for inner in _flat(detail["ctx"]["errors"]):
            yield {**inner, "loc": (*detail["loc"], *inner["loc"])}


def _path(detail: ErrorDetails, document: Document) -> KeyPath:
    """Keys from the top of the file; the names of alternatives (with @) are no keys."""
    path: KeyPath = ()
    node: object = document.values
    for part in (*detail["loc"], *detail.get("ctx", {}).get("path", ())):
        known = isinstance(node, dict) and part in node
        if isinstance(part, str) and part.startswith("@") and not known:
            continue
        path = (*path, part)
        if known and isinstance(node, dict):
            node = node[str(part)]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            node = None
    return path


def dotted(path: KeyPath) -> str:
    """A path as people write it.

    >>> dotted(("publish", "statistics", 0, "mean"))
    'publish.statistics[0].mean'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the configuration"


def _sentence(path: KeyPath, detail: ErrorDetails) -> str:
    key, context = dotted(path), detail.get("ctx", {})
    if detail["type"] == REFUSED:
        return f"{key} {context['words']}."
    if detail["type"] == "missing":
        known = _SECTIONS_NEEDED if len(path) == 1 else _NEEDED
        needed = known.get(".".join(map(str, path[-2:])), known.get(str(path[-1]) if path else "", ""))
        return f"{key} is missing{': ' if needed else ''}{needed}."
    return f"{key} {_WORDS.get(detail['type'], 'is not what is expected here')}."


def plain_mapping(values: Mapping[str, object], path: KeyPath = ()) -> dict[str, Value]:
    """A mapping of keys to plain values.

    Raises:
        ConfigError: a key is no text, or a value has no plain form; the message names the key.
    """
    for key in values:
        if not isinstance(key, str):
            raise ConfigError(
                f"{dotted(path)} has a key of type {type(key).__name__}; a key must be a text, such as 'age'."
            )
    return {key: plain_value(value, (*path, key)) for key, value in values.items()}


def plain_value(value: object, path: KeyPath) -> Value:
    """A value as YAML would have it.

    Raises:
        ConfigError: it has no plain form.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, np.generic | np.ndarray):
        value = value.item() if np.ndim(value) == 0 else value.tolist()
    elif hasattr(value, "to_numpy") and hasattr(value, "__len__"):
        # A column or an index of pandas or Polars.
        value = list(value.to_numpy())
    if isinstance(value, str | bool | int | Decimal | None):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return Decimal(repr(float(value)))
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, timedelta):
        return f"PT{Decimal(value // timedelta(microseconds=1)).scaleb(-6).normalize():f}S"
    if isinstance(value, Mapping):
        return plain_mapping(value, path)
    if isinstance(value, Set):
        raise ConfigError(f"{dotted(path)} must be a list: a set has no order of its own.")
    if isinstance(value, list | tuple | range):
        return [plain_value(item, (*path, i)) for i, item in enumerate(value)]
    raise ConfigError(
        f"{dotted(path)} is of type {type(value).__name__}, which no configuration can hold: give a text, a "
        "number, a date, a list or a mapping."
    )


def checked(section: type[S], values: Mapping[str, object], document: Document) -> S:
    """A section of some values.

    Raises:
        ConfigError: a key is unknown, or a value isn't allowed; the message names the key.
    """
    try:
        return section.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(paragraph(error, document)) from None


def nested(error: ValidationError, *path: str) -> PydanticCustomError:
    """The errors of a value that was validated by itself, at a path below the one being validated."""
    details = error.errors(include_url=False, include_input=False)
    placed = [{**detail, "loc": (*path, *detail["loc"])} for detail in details]
    return PydanticCustomError(NESTED, "{errors}", {"errors": placed})


class OfWing(Checked):
    """An annotation for a field whose type a wing defines."""

    def __init__(self, key: str, *, without: type | None = None, optional: bool = False) -> None:
        """The annotation of a key.

        Args:
            key: its path, such as "publish.rounding": the name of the point that the wing fills with a type.
            without: the type where no wing fills the point; None: the key is then refused.
            optional: True if the key may be there without a value.
        """
        self._point: Point[type] = Point(key)
        self._without, self._optional = without, optional

    @cached_property
    def _adapter(self) -> TypeAdapter[object] | None:
        kind = self._point.filled() or self._without
        return None if kind is None else TypeAdapter(kind)

    def given(self, value: object) -> object:
        return None if value is None and self._optional else self.check(value)

    def check(self, value: object) -> object:
        if self._adapter is None:
            raise refused("needs a wing that is not installed here; remove it")
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            raise nested(error) from None

    def json_schema(self) -> JsonSchema:
        return {}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        if self._adapter is None:
            return {}
        # Inside of another schema the type is described under its own name, like that of a key of the core.
        inner = handler(core_schema.with_default_schema(self._adapter.core_schema))
        return {"anyOf": [inner, {"type": "null"}]} if self._optional else inner
