"""YAML as people expect it: 1.2 scalars, no duplicate keys, and a line for every key.

PyYAML follows YAML 1.1, where ``NO`` is false, ``1e-6`` a text, ``010`` eight, ``12:30`` 750,
``- ?`` a mapping, and a key given twice silently wins. In a file that decides what is
protected none of that may pass.

Invariant: what is read is plain data (dict, list, str, int, Decimal, bool, None), every number
exactly as it was written, and every failure is a ConfigError with file and line. No message
quotes more of the file than a key, a tag or an alias, since a file may hold passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NoReturn

from yaml.composer import Composer
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from dpsynth.columns.section import Value
from dpsynth.errors import ConfigError

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
    """PyYAML's parser without its 1.1 scalars, explicit keys and tags."""

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
