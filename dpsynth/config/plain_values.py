"""Plain values, checked by one grammar: what YAML holds, and what the same configuration holds in Python.

A configuration in Python holds what people have there: tuples, arrays, dates, numbers of numpy. Each becomes
what the same configuration would hold in YAML. A configuration that is refused gets one plain paragraph.

Invariant: nothing is rounded or guessed; a value that YAML has no spelling for is refused with its key. A
message holds the file's name, lines, keys, and short values that a rule chose to quote. It holds no text of
pydantic's, and never the value of a key that may hold a password.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpsynth.columns.section import NESTED, REFUSED, Section, Value
from dpsynth.config.yaml_reader import Document, KeyPath
from dpsynth.errors import ConfigError

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
    deeper = {path[:-1] for path, _ in located if path}
    return [(path, d) for path, d in located if d["type"] != "too_short" or path not in deeper]


def _flat(details: Iterable[ErrorDetails]) -> Iterator[ErrorDetails]:
    """The errors, each nested one with its whole path."""
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

    Args:
        value: a text, a number, a truth value, None; a date, a time or a duration; a list, an array or a
            mapping of these.
        path: its key, for messages.

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

    Args:
        section: its type.
        values: plain values, or sections.
        document: the names and lines of its keys, for messages.

    Raises:
        ConfigError: a key is unknown, or a value isn't allowed; the message names the key.
    """
    try:
        return section.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(paragraph(error, document)) from None
