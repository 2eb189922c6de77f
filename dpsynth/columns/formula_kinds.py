"""Kinds of formulas, from the kinds of the columns that they name.

Invariant: a formula that has a kind can be computed in every row, whatever the row holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from dpsynth.columns.expression import COMPARISONS, Expression, Literal, Reference
from dpsynth.columns.moment_fields import Moments
from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind

MOST_DECIMALS = 9
_QUOTIENT = 6
_LONGEST = 1000

MOMENTS: dict[str, MomentKind] = {"date": "date", "datetime": "datetime", "time": "time"}
"""Kinds of moments, which can be compared with a text in ISO 8601."""

SPANS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
"""Functions of the time between two moments, in seconds."""

_FIELDS = {
    "year": ("date", "datetime"), "month": ("date", "datetime"), "day": ("date", "datetime"),
    "weekday": ("date", "datetime"), "hour": ("datetime", "time"), "minute": ("datetime", "time"),
}  # fmt: skip
FUNCTIONS = ("if", "min", "max", "round", "first", "last", "join", *_FIELDS, *SPANS)
"""The functions of formulas."""


@dataclass(frozen=True)
class Kind:
    """The kind of values.

    Attributes:
        word: "number", "text", "truth", "date", "datetime", "time" or "duration".
        decimals: largest number of decimals of numbers.
    """

    word: str
    decimals: int = 0


def kind_of(formula: Expression, kinds: Mapping[str, Kind]) -> Kind:
    """The kind of a formula's values.

    Args:
        formula: a formula over columns that all have a kind here.
        kinds: the kinds by column.

    Raises:
        ValueError: an operation does not suit its operands; the message gives the reason, in words that
            follow the formula's name.
    """
    if isinstance(formula, Literal):
        if isinstance(formula.value, str):
            return Kind("text")
        return Kind("number", max(0, -int(formula.value.as_tuple().exponent)))
    if isinstance(formula, Reference):
        return kinds[formula.column]
    name, operands = formula.operation, formula.operands
    found = [kind_of(operand, kinds) for operand in operands]
    words = [kind.word for kind in found]
    decimals = max((kind.decimals for kind in found), default=0)
    if name in ("+", "-", "negative", "*", "/"):
        _need(words, ["number"] * len(words), f"'{name.replace('negative', '-')}'")
        if name == "*":
            decimals = sum(kind.decimals for kind in found)
        return Kind("number", min(_QUOTIENT if name == "/" else decimals, MOST_DECIMALS))
    if name == "missing":
        return Kind("truth")
    if name in ("and", "or", "not", "implies"):
        _need(words, ["truth"] * len(words), f"'{name}'")
        return Kind("truth")
    if name in COMPARISONS:
        _comparable(name, operands, words)
        return Kind("truth")
    if name in ("min", "max"):
        _need(words, ["number"] * max(2, len(words)), name)
        return Kind("number", decimals)
    if name == "round":
        _need(words, ["number"] * 2, "round(x, decimals)")
        return Kind("number", whole_literal(operands[1], "round(x, decimals)", MOST_DECIMALS))
    if name == "if":
        if (
            len(words) != 3
            or words[0] != "truth"
            or words[1] != words[2]
            or words[1] in (*MOMENTS, "duration")
        ):
            raise ValueError("needs if(comparison, a, b), with two numbers or two texts for a and b")
        return Kind(words[1], decimals)
    if name in ("first", "last"):
        written = isinstance(operands[0], Reference) or words[0] == "text"
        if len(words) != 2 or not written:
            raise ValueError(f"needs {name}(column, n), the first or last n characters")
        whole_literal(operands[1], f"{name}(column, n)", _LONGEST)
        return Kind("text")
    if name == "join":
        if not all(isinstance(o, Reference) or w == "text" for o, w in zip(operands, words, strict=True)):
            raise ValueError("needs join(a, b, ...) of columns and texts")
        return Kind("text")
    if name in _FIELDS:
        if len(words) != 1 or words[0] not in _FIELDS[name]:
            raise ValueError(f"needs {name}(column), the column being a {' or a '.join(_FIELDS[name])}")
        return Kind("number")
    if name in SPANS:
        if words not in (["duration"], ["date"] * 2, ["datetime"] * 2, ["time"] * 2):
            raise ValueError(f"needs {name}(from, to) of two dates, datetimes or times, or {name}(duration)")
        return Kind("number")
    raise ValueError(f"uses '{name}', which is no function; those known are {', '.join(FUNCTIONS)}")


def _need(words: list[str], wanted: list[str], what: str) -> None:
    if words != wanted:
        found = ", ".join(words)
        raise ValueError(f"uses {what} on {found}; it works on {len(wanted)} of kind {wanted[0]}")


def whole_literal(operand: Expression, what: str, most: int) -> int:
    """The whole number that an operand is; refused if it is anything else."""
    value = operand.value if isinstance(operand, Literal) else None
    if not isinstance(value, Decimal) or value != int(value) or not 0 <= value <= most:
        raise ValueError(f"needs {what} with a whole number from 0 to {most} in second place")
    return int(value)


def _comparable(sign: str, operands: tuple[Expression, ...], words: list[str]) -> None:
    for operand, this, other in zip(operands, words, reversed(words), strict=True):
        if isinstance(operand, Literal) and this == "text" and other in MOMENTS:
            if np.isnat(moment_of(str(operand.value), other)[0]):
                raise ValueError(f"compares with '{operand.value}', which is no {other} of ISO 8601")
            return
    if words[0] != words[1]:
        raise ValueError(f"compares a {words[0]} with a {words[1]}")
    if words[0] in ("text", "truth") and sign not in ("==", "!="):
        raise ValueError(f"asks which {words[0]} is larger; only == and != work on them")


def moment_of(text: str, kind: str) -> Moments:
    """The one moment in a text of ISO 8601, NaT if there is none."""
    return MomentFormat(MOMENTS[kind], ISO[MOMENTS[kind]]).read(pa.array([text]))
