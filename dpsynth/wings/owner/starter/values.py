"""Single facts of foreign descriptions, as the grammar writes them: cells, bounds, moments, markers.

Values that make no sense are passed on unchanged; the grammar then refuses them with its own message.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa

from dpsynth.columns.declaration import Declared
from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind
from dpsynth.columns.section import Value
from dpsynth.columns.text import alphabets, texts_of
from dpsynth.wings.owner.starter.documents import shown

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
