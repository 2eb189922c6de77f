"""Sets of possible values: ranges of numbers, possible truth values, possible texts.

Invariant: the result of an operation holds its value for all possible values of its operands. Operands are
assumed to be independent of each other, so it may hold more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.expression import Expression
from dpsynth.columns.formula_kinds import MOST_DECIMALS, SPANS, whole_literal
from dpsynth.columns.formulas import LARGEST

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

YES: Mask = np.array(True)
NO: Mask = np.array(False)


@dataclass(frozen=True, eq=False)
class Range:
    """Numbers, or moments and durations in microseconds; arrays that broadcast to the cells.

    Attributes:
        low, high: float64, the ends.
        present: True where there may be a value.
        missing: True where the value may be missing.
    """

    low: Array
    high: Array
    present: Mask
    missing: Mask


@dataclass(frozen=True, eq=False)
class Truth:
    """Truth values: masks of cells that may be true, false, or missing."""

    yes: Mask
    no: Mask
    missing: Mask

    @property
    def present(self) -> Mask:
        """True where there may be a value."""
        return self.yes | self.no


@dataclass(frozen=True, eq=False)
class Word:
    """Texts.

    Attributes:
        may: a function from a text to the cells that may hold it, and the cells that may hold another.
        present: True where there may be a text.
        missing: True where the text may be missing.
        exact: the one text of each cell, if it is known.
    """

    may: Callable[[str], tuple[Mask, Mask]]
    present: Mask
    missing: Mask
    exact: NDArray[np.object_] | None = None


Possible = Range | Truth | Word


def exactly(texts: NDArray[np.object_], present: Mask) -> Word:
    """Texts of which each cell has one."""
    return Word(lambda text: (present & (texts == text), present & (texts != text)), present, ~present, texts)


def any_word(parts: Sequence[Possible]) -> Word:
    """Any text, present if all its parts are."""
    present, missing = np.array(True), np.array(not parts)
    for part in parts:
        present, missing = present & part.present, missing | part.missing
    return Word(lambda _: (present, present), present, missing)


def order(sign: str, a: Array, b: Array, c: Array, d: Array) -> tuple[Mask, Mask]:
    """Cells where a value of [a, b] may compare so to one of [c, d], and cells where it may not."""
    if sign in ("==", "!="):
        same, other = (a <= d) & (c <= b), ~((a == b) & (c == d) & (a == c))
        return (same, other) if sign == "==" else (other, same)
    if sign in (">", ">="):
        return order({">": "<", ">=": "<="}[sign], c, d, a, b)
    return (a < d, b >= c) if sign == "<" else (a <= d, b > c)


def logic(name: str, parts: Sequence[Truth]) -> Truth:
    """Possible results of ``and``, ``or``, ``not`` and ``implies``, in three-valued logic."""
    a = parts[0]
    if name == "not":
        return Truth(a.no, a.yes, a.missing)
    b = parts[1]
    if name == "and":
        missing = (a.missing & (b.missing | b.yes)) | (b.missing & (a.missing | a.yes))
        return Truth(
            a.yes & b.yes, (a.no & (b.present | b.missing)) | (b.no & (a.present | a.missing)), missing
        )
    # By De Morgan.
    left = a if name == "implies" else Truth(a.no, a.yes, a.missing)
    neither = logic("and", [left, Truth(b.no, b.yes, b.missing)])
    return Truth(neither.no, neither.yes, neither.missing)


def chosen(test: Truth, a: Possible, b: Possible) -> Possible:
    """Possible results of ``if``."""
    missing = test.missing | (test.yes & a.missing) | (test.no & b.missing)
    present = (test.yes & a.present) | (test.no & b.present)
    if isinstance(a, Range) and isinstance(b, Range):
        low = np.minimum(
            np.where(test.yes & a.present, a.low, np.inf), np.where(test.no & b.present, b.low, np.inf)
        )
        high = np.maximum(
            np.where(test.yes & a.present, a.high, -np.inf), np.where(test.no & b.present, b.high, -np.inf)
        )
        return Range(np.where(present, low, 0.0), np.where(present, high, 0.0), present, missing)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return Truth((test.yes & a.yes) | (test.no & b.yes), (test.yes & a.no) | (test.no & b.no), missing)
    assert isinstance(a, Word) and isinstance(b, Word)

    def may(text: str) -> tuple[Mask, Mask]:
        (this, other), (there, elsewhere) = a.may(text), b.may(text)
        return (test.yes & this) | (test.no & there), (test.yes & other) | (test.no & elsewhere)

    return Word(may, present, missing)


def arithmetic(name: str, parts: tuple[Expression, ...], ranges: Sequence[Range]) -> Range:
    """Possible results of an operation on numbers, by interval arithmetic."""
    a = ranges[0]
    present, missing = np.array(True), np.array(False)
    for part in ranges:
        present, missing = present & part.present, missing | part.missing
    # A result of infinite ends may be any number.
    with np.errstate(all="ignore"):
        if name in ("min", "max"):
            pick = np.minimum if name == "min" else np.maximum
            low, high = a.low, a.high
            for part in ranges[1:]:
                low, high = pick(low, part.low), pick(high, part.high)
        elif name == "round":
            decimals = whole_literal(parts[1], "round", MOST_DECIMALS)
            low, high = rounded(a.low, decimals), rounded(a.high, decimals)
        elif name == "negative":
            low, high = -a.high, -a.low
        else:
            b = ranges[1]
            work = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[name]
            corners = [work(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
            low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
            if name == "/":
                zero = (b.low <= 0) & (b.high >= 0)
                low, high = np.where(zero, -np.inf, low), np.where(zero, np.inf, high)
        unknown = np.isnan(low) | np.isnan(high)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
        missing = missing | (present & (np.maximum(np.abs(low), np.abs(high)) > LARGEST))
    return Range(low, high, present, missing)


def span(name: str, ranges: Sequence[Range]) -> Range:
    """Whole units of time; the quotient is truncated towards zero, which keeps the order."""
    unit = SPANS[name] * 1e6
    if len(ranges) == 1:
        (taken,) = ranges
        return Range(np.trunc(taken.low / unit), np.trunc(taken.high / unit), taken.present, taken.missing)
    start, end = ranges
    low, high = np.trunc((end.low - start.high) / unit), np.trunc((end.high - start.low) / unit)
    return Range(low, high, start.present & end.present, start.missing | end.missing)


def year(micros: Array) -> Array:
    """The year of each moment."""
    return (
        np.asarray(micros).astype(np.int64).astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970
    ).astype(np.float64)


def rounded(values: Array, decimals: int) -> Array:
    """Values rounded in the way of formulas."""
    flat = np.asarray(values, dtype=np.float64)
    return np.asarray(pc.round(pa.array(flat.reshape(-1)), decimals)).reshape(flat.shape)
