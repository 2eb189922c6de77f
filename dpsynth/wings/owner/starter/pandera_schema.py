"""A pandera schema as ``schema.to_yaml()`` or ``to_json()`` writes it: dtypes and checks of each column.

Checks have three notations: a list with the check's name among its options, a mapping from names,
and (since pandera 0.25) the names as keys of the column. A check that doesn't limit the values of a
column is ignored, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpsynth.columns.declaration import Declared
from dpsynth.columns.section import Value
from dpsynth.wings.owner.starter.documents import (
    Mapping,
    about,
    coded,
    inside,
    mapping,
    moment,
    named_values,
    shown,
    with_missing,
)
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Format, Sketch, fitted

_OF_A_COLUMN = {
    "title", "description", "dtype", "pandas_dtype", "nullable", "checks", "name", "unique", "coerce",
    "required", "regex", "default", "allow_duplicates", "report_duplicates", "drop_invalid_rows", "metadata",
}  # fmt: skip
_MOMENT = "%Y-%m-%d %H:%M:%S"
_KINDS = (
    ("boolean", r"bool.*"),
    ("unsigned", r"uint.*"),
    ("integer", r"(int|long|short|bigint|byte).*"),
    ("number", r"(float|double|decimal|real).*"),
    ("datetime", r"(datetime|timestamp).*"),
    ("date", r"date(type\(\))?(\[.*)?"),
    ("time", r"time(\(.*\))?"),
    ("duration", r"(timedelta|duration).*"),
    ("text", r"(str|object|utf8|category|categorical|enum|varchar).*"),
)


def is_schema(document: Mapping) -> bool:
    """True if a document looks like such a schema."""
    if "schema_type" in document:
        return True
    columns = document.get("columns")
    found = columns.values() if isinstance(columns, dict) else ()
    return any(isinstance(c, dict) and {"dtype", "pandas_dtype", "nullable"} & c.keys() for c in found)


def read_schema(document: Mapping, file: str, _: str | None = None) -> Draft:
    """A draft with the types, ranges and values that the schema checks.

    Raises:
        ConfigError: the schema or a column of it is no mapping.
    """
    columns = mapping(document.get("columns"), file, "columns")
    sketches = [_sketch(name, mapping(facts, file, f"columns.{name}")) for name, facts in columns.items()]
    origin = [f"{file} is a pandera schema."]
    if document.get("checks"):
        origin.append("Its checks across columns were not taken over.")
    return Draft(tuple(origin), tuple(sketches))


@dataclass(frozen=True)
class _Range:
    """Range and values of a column, by its checks."""

    low: Value = None
    low_inside: bool = False
    high: Value = None
    high_inside: bool = False
    values: Value = None
    pattern: str | None = None
    ignored: tuple[str, ...] = ()


def _checks(facts: Mapping) -> Iterator[tuple[str, Mapping]]:
    """Names of checks with their arguments; a single argument is named ``value``."""
    listed = facts.get("checks")
    if isinstance(listed, list):
        for check in listed:
            options = check.get("options") if isinstance(check, dict) else None
            name = options.get("check_name") if isinstance(options, dict) else None
            if isinstance(check, dict) and isinstance(name, str):
                yield name, check
        return
    named = listed if isinstance(listed, dict) else {k: v for k, v in facts.items() if k not in _OF_A_COLUMN}
    for name, arguments in named.items():
        yield name, arguments if isinstance(arguments, dict) else {"value": arguments}


def _argument(check: Mapping, *names: str) -> Value:
    return next((check[name] for name in ("value", *names) if name in check), None)


def _range(facts: Mapping) -> _Range:
    found = _Range()
    for name, check in _checks(facts):
        if name in ("greater_than_or_equal_to", "ge", "greater_than", "gt"):
            low = _argument(check, "min_value")
            found = replace(found, low=low, low_inside=name in ("greater_than", "gt"))
        elif name in ("less_than_or_equal_to", "le", "less_than", "lt"):
            high = _argument(check, "max_value")
            found = replace(found, high=high, high_inside=name in ("less_than", "lt"))
        elif name in ("in_range", "between"):
            low, high = check.get("min_value"), check.get("max_value")
            inner = check.get("include_min") is False, check.get("include_max") is False
            found = replace(found, low=low, low_inside=inner[0], high=high, high_inside=inner[1])
        elif name in ("isin", "unique_values_eq", "equal_to", "eq"):
            values = _argument(check, "allowed_values", "values")
            found = replace(found, values=values if isinstance(values, list) else [values])
        elif name == "str_matches" and isinstance(_argument(check, "pattern"), str):
            found = replace(found, pattern=str(_argument(check, "pattern")))
        else:
            found = replace(found, ignored=(*found.ignored, name))
    return found


def _sketch(name: str, facts: Mapping) -> Sketch:
    if facts.get("regex") is True:
        words = "Left out: the name stands for all columns that match it; declare each of them."
        return Sketch(name, None, (words,))
    found, missing = _range(facts), facts.get("nullable", False) is True
    notes = [about(facts.get("title"), facts.get("description"))]
    if found.ignored:
        notes.append(f"Checks left aside: {shown(', '.join(found.ignored), 100)}.")
    kind = _kind(facts.get("dtype", facts.get("pandas_dtype")))
    if facts.get("unique") is True and kind in ("text", "integer", "unsigned"):
        return fitted(Sketch(name, {"type": "identifier"})).noted(*notes)
    return fitted(Sketch(name, with_missing(_declared(kind, found), missing))).noted(*notes)


def _kind(dtype: Value) -> str:
    if not isinstance(dtype, str):
        return ""
    return next((kind for kind, pattern in _KINDS if re.fullmatch(pattern, dtype, re.IGNORECASE)), "")


def _declared(kind: str, found: _Range) -> Declared:
    if isinstance(found.values, list) and kind != "boolean":
        return named_values("category", found.values, True)
    if kind in ("integer", "unsigned", "number"):
        whole = kind != "number"
        low = inside(found.low, 1, exclusive=found.low_inside, whole=whole)
        high = inside(found.high, -1, exclusive=found.high_inside, whole=whole)
        least = 0 if kind == "unsigned" and low is None else low
        return {"type": "integer" if whole else "number", "min": least, "max": high}
    if kind in ("boolean", "time"):
        return {"type": kind}
    if kind == "date":
        low, high = (moment("date", None, end) for end in (found.low, found.high))
        return {"type": "date", "min": low, "max": high}
    if kind == "datetime":
        low, high = (moment("datetime", _MOMENT, end) for end in (found.low, found.high))
        return {"type": "datetime", "min": low, "max": high}
    if kind == "duration":
        return {"type": "duration", "min": None, "max": None, "format": None}
    if kind == "text":
        return _text(found.pattern)
    return dict(STUB)


def _text(pattern: str | None) -> Declared:
    # The check is of a text's beginning, unless the pattern says where the text ends.
    try:
        return coded(pattern if pattern is not None and pattern.endswith("$") else "")
    except ValueError:
        return {"type": "category", "values": None}


FORMAT = Format("pandera", "pandera schema", is_schema, read_schema)
