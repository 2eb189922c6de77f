"""Values that are known to lie somewhere: ranges of numbers, possible truths, possible texts.

Invariant: what an operation comes to holds every value that it has for values out of what it works on.
These are taken to be free of each other, so it may hold more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.domain.expression import Expression
from dpsynth.domain.formula_kinds import MOST_DECIMALS, SPANS, whole_literal
from dpsynth.domain.formulas import LARGEST

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

YES: Mask = np.array(True)
NO: Mask = np.array(False)


@dataclass(frozen=True, eq=False)
class Range:
    """Numbers, or moments and durations in microseconds; arrays that broadcast to the cells.

    Attributes:
        low, high: float64, the ends.
        held: whether there may be a value.
        gone: whether it may be missing.
    """

    low: Array
    high: Array
    held: Mask
    gone: Mask


@dataclass(frozen=True, eq=False)
class Truth:
    """Which of true, false and missing it may be."""

    yes: Mask
    no: Mask
    gone: Mask

    @property
    def held(self) -> Mask:
        """Whether there may be a value."""
        return self.yes | self.no


@dataclass(frozen=True, eq=False)
class Word:
    """A text.

    Attributes:
        may: for a text, where it may be this one, and where another.
        held, gone: as of a range.
        exact: the one text of each cell, if it is known.
    """

    may: Callable[[str], tuple[Mask, Mask]]
    held: Mask
    gone: Mask
    exact: NDArray[np.object_] | None = None


Possible = Range | Truth | Word


def exactly(texts: NDArray[np.object_], held: Mask) -> Word:
    """A text of which each cell has one."""
    return Word(lambda text: (held & (texts == text), held & (texts != text)), held, ~held, texts)


def any_word(parts: Sequence[Possible]) -> Word:
    """Any text, there if all its parts are."""
    held, gone = np.array(True), np.array(not parts)
    for part in parts:
        held, gone = held & part.held, gone | part.gone
    return Word(lambda _: (held, held), held, gone)


def order(sign: str, a: Array, b: Array, c: Array, d: Array) -> tuple[Mask, Mask]:
    """Where a value of [a, b] may stand in an order to one of [c, d], and where it may not."""
    if sign in ("==", "!="):
        same, other = (a <= d) & (c <= b), ~((a == b) & (c == d) & (a == c))
        return (same, other) if sign == "==" else (other, same)
    if sign in (">", ">="):
        return order({">": "<", ">=": "<="}[sign], c, d, a, b)
    return (a < d, b >= c) if sign == "<" else (a <= d, b > c)


def logic(name: str, parts: Sequence[Truth]) -> Truth:
    """What ``and``, ``or``, ``not`` and ``implies`` may come to, in three-valued logic."""
    a = parts[0]
    if name == "not":
        return Truth(a.no, a.yes, a.gone)
    b = parts[1]
    if name == "and":
        gone = (a.gone & (b.gone | b.yes)) | (b.gone & (a.gone | a.yes))
        return Truth(a.yes & b.yes, (a.no & (b.held | b.gone)) | (b.no & (a.held | a.gone)), gone)
    # By De Morgan.
    left = a if name == "implies" else Truth(a.no, a.yes, a.gone)
    neither = logic("and", [left, Truth(b.no, b.yes, b.gone)])
    return Truth(neither.no, neither.yes, neither.gone)


def chosen(test: Truth, a: Possible, b: Possible) -> Possible:
    """What ``if`` may come to."""
    gone = test.gone | (test.yes & a.gone) | (test.no & b.gone)
    held = (test.yes & a.held) | (test.no & b.held)
    if isinstance(a, Range) and isinstance(b, Range):
        low = np.minimum(
            np.where(test.yes & a.held, a.low, np.inf), np.where(test.no & b.held, b.low, np.inf)
        )
        high = np.maximum(
            np.where(test.yes & a.held, a.high, -np.inf), np.where(test.no & b.held, b.high, -np.inf)
        )
        return Range(np.where(held, low, 0.0), np.where(held, high, 0.0), held, gone)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return Truth((test.yes & a.yes) | (test.no & b.yes), (test.yes & a.no) | (test.no & b.no), gone)
    assert isinstance(a, Word) and isinstance(b, Word)

    def may(text: str) -> tuple[Mask, Mask]:
        (this, other), (there, elsewhere) = a.may(text), b.may(text)
        return (test.yes & this) | (test.no & there), (test.yes & other) | (test.no & elsewhere)

    return Word(may, held, gone)


def arithmetic(name: str, parts: tuple[Expression, ...], ranges: Sequence[Range]) -> Range:
    """What an operation on numbers may come to, from ends to ends."""
    a = ranges[0]
    held, gone = np.array(True), np.array(False)
    for part in ranges:
        held, gone = held & part.held, gone | part.gone
    # Of infinite ends nothing is known but that.
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
        gone = gone | (held & (np.maximum(np.abs(low), np.abs(high)) > LARGEST))
    return Range(low, high, held, gone)


def span(name: str, ranges: Sequence[Range]) -> Range:
    """Whole units of time; the quotient is cut off towards zero, which keeps the order."""
    unit = SPANS[name] * 1e6
    if len(ranges) == 1:
        (taken,) = ranges
        return Range(np.trunc(taken.low / unit), np.trunc(taken.high / unit), taken.held, taken.gone)
    start, end = ranges
    low, high = np.trunc((end.low - start.high) / unit), np.trunc((end.high - start.low) / unit)
    return Range(low, high, start.held & end.held, start.gone | end.gone)


def year(micros: Array) -> Array:
    """The year of each moment."""
    return (
        np.asarray(micros).astype(np.int64).astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970
    ).astype(np.float64)


def rounded(values: Array, decimals: int) -> Array:
    """Rounded as formulas round."""
    flat = np.asarray(values, dtype=np.float64)
    return np.asarray(pc.round(pa.array(flat.reshape(-1)), decimals)).reshape(flat.shape)
