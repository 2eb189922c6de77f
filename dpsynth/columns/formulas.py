"""The values of formulas, in every row at once.

Invariant: a formula that has a kind has a value for every row, missing where one of its operands is;
nothing in it can fail on a value. A logical operation whose result does not depend on its missing operand has
a value all the same, as in SQL; and a test for missing always has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.expression import (
    MOMENTS,
    MOST_DECIMALS,
    SPANS,
    Expression,
    Kind,
    Literal,
    Reference,
    kind_of,
    moment_of,
    whole_literal,
)

LARGEST = 10.0**15
_FIELDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": lambda values: pc.day_of_week(values, count_from_zero=False),
    "hour": pc.hour,
    "minute": pc.minute,
}
_COMPARISONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal,
    ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Operand:
    """A column's values with their texts; null where missing.

    Attributes:
        kind: their kind.
        values: typed values.
        texts: the values as they are written in a CSV file, null where missing.
    """

    kind: Kind
    values: pa.Array
    texts: pa.StringArray


def value_of(formula: Expression, operands: Mapping[str, Operand], rows: int) -> pa.Array:
    """Values of a formula that has a kind; numbers as float64, null where missing.

    Raises:
        KeyError: a column is not among the operands.
    """
    return _Values(operands, rows).of(formula)


class _Values:
    def __init__(self, operands: Mapping[str, Operand], rows: int) -> None:
        self._operands = operands
        self._rows = rows
        self._kinds = {name: operand.kind for name, operand in operands.items()}

    def _kind(self, formula: Expression) -> Kind:
        return kind_of(formula, self._kinds)

    def of(self, formula: Expression) -> pa.Array:
        if isinstance(formula, Literal):
            value = formula.value if isinstance(formula.value, str) else float(formula.value)
            return pa.repeat(value, self._rows)
        if isinstance(formula, Reference):
            return self._plain(self._operands[formula.column])
        name, parts = formula.operation, formula.operands
        if name in _COMPARISONS:
            return self._compared(name, parts)
        if name in ("first", "last", "join"):
            return self._texts(name, parts)
        if name in SPANS:
            return self._span(name, parts)
        if name in _FIELDS:
            return pc.cast(_FIELDS[name](self.of(parts[0])), pa.float64())
        values = [self.of(part) for part in parts]
        if name == "if":
            chosen = pc.if_else(values[0].is_valid(), pc.if_else(values[0], values[1], values[2]), None)
            return pc.cast(chosen, values[1].type)
        if name in ("and", "or", "not"):
            logic = {"and": pc.and_kleene, "or": pc.or_kleene, "not": pc.invert}[name]
            return logic(*values)
        if name == "implies":
            return pc.or_kleene(pc.invert(values[0]), values[1])
        if name == "missing":
            return values[0].is_null()
        return self._numbers(name, parts, values)

    @staticmethod
    def _plain(operand: Operand) -> pa.Array:
        """Numbers as doubles, texts without a dictionary, all else as it is."""
        if operand.kind.word == "number":
            return pc.cast(operand.values, pa.float64())
        return operand.texts if operand.kind.word == "text" else operand.values

    def _numbers(self, name: str, parts: tuple[Expression, ...], values: list[pa.Array]) -> pa.Array:
        if name in ("min", "max"):
            return (pc.min_element_wise if name == "min" else pc.max_element_wise)(*values, skip_nulls=False)
        if name == "round":
            found = pc.round(values[0], whole_literal(parts[1], "round", MOST_DECIMALS))
        elif name == "negative":
            found = pc.negate(values[0])
        else:
            work = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}[name]
            found = work(*values)
        usable = pc.and_(pc.is_finite(found), pc.less_equal(pc.abs(found), LARGEST))
        return pc.if_else(usable, found, pa.scalar(None, pa.float64()))

    def _compared(self, sign: str, parts: tuple[Expression, ...]) -> pa.Array:
        values = [self.of(part) for part in parts]
        words = [self._kind(part).word for part in parts]
        for i, (part, other) in enumerate(zip(parts, reversed(words), strict=True)):
            if isinstance(part, Literal) and words[i] == "text" and other in MOMENTS:
                moment = moment_of(str(part.value), other).astype("M8[us]")[0]
                values[i] = pa.repeat(pa.scalar(int(moment.astype(np.int64)), pa.int64()), self._rows)
                values[1 - i] = microseconds(values[1 - i])
                return _COMPARISONS[sign](*values)
        if words[0] == "number" and any(self._kind(part).decimals for part in parts):
            # What differs by less than the last decimal differs by arithmetic alone.
            values = [pc.round(v, MOST_DECIMALS) for v in values]
        elif words[0] in MOMENTS:
            values = [microseconds(v) for v in values]
        return _COMPARISONS[sign](*values)

    def _texts(self, name: str, parts: tuple[Expression, ...]) -> pa.Array:
        def written(part: Expression) -> pa.StringArray:
            return self._operands[part.column].texts if isinstance(part, Reference) else self.of(part)

        if name == "join":
            return pc.binary_join_element_wise(*map(written, parts), "")
        length = whole_literal(parts[1], name, 1000)
        texts = written(parts[0])
        if name == "first":
            return pc.utf8_slice_codeunits(texts, 0, length)
        return pc.utf8_slice_codeunits(texts, -length) if length else pc.utf8_slice_codeunits(texts, 0, 0)

    def _span(self, name: str, parts: tuple[Expression, ...]) -> pa.Array:
        if len(parts) == 1:
            micros = pc.multiply(pc.cast(self.of(parts[0]), pa.int64()), 1_000_000)
        else:
            start, end = (microseconds(self.of(part)) for part in parts)
            micros = pc.subtract(end, start)
        # Whole ones: the quotient of integers is cut off towards zero.
        return pc.cast(pc.divide(micros, SPANS[name] * 1_000_000), pa.float64())


def microseconds(values: pa.Array) -> pa.Array:
    """Moments as microseconds since 1970, times of day since midnight."""
    if pa.types.is_time(values.type):
        return pc.cast(pc.cast(values, pa.time64("us")), pa.int64())
    if pa.types.is_duration(values.type):
        return pc.cast(pc.cast(values, pa.duration("us")), pa.int64())
    return pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
