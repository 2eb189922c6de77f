"""Columns that follow from others: computed from each synthetic row after it was drawn.

They are neither read from the private table nor modelled, so they cost nothing and no row
contradicts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.expression import Expression, Reference
from dpsynth.columns.formula_kinds import Kind, kind_of
from dpsynth.columns.formulas import Operand, value_of
from dpsynth.columns.number_texts import PLAIN, NumberFormat, fixed_texts

_LARGEST_STEP = 2.0**53


@dataclass(frozen=True)
class Derived:
    """A column of the synthetic table that is computed from others.

    Attributes:
        name: name of the column.
        written: the text of the formula.
        formula: the formula, parsed.
        map: texts that the formula may come to, and the value of each. Empty: the formula's value itself is
            the column's.
        other: the value of all other texts; None: they are missing.
        decimals: decimals of numbers; None: as many as the formula's operands have.
        form: the format of numbers.
        marker: the text of a missing cell.
    """

    name: str
    written: str
    formula: Expression
    map: tuple[tuple[str, str | int], ...] = ()
    other: str | int | None = None
    decimals: int | None = None
    form: NumberFormat = PLAIN
    marker: str = ""

    def kind(self, kinds: Mapping[str, Kind]) -> Kind:
        """The kind of the column's values, from the kinds of the columns that it is computed from.

        Raises:
            ValueError: the formula can't be computed from these kinds; the message gives the reason.
        """
        found = kind_of(self.formula, kinds)
        if self.map:
            if found.word != "text" and not isinstance(self.formula, Reference):
                raise ValueError("must come to a text, or be a column alone, for map to look up")
            results = [result for _, result in self.map] + ([] if self.other is None else [self.other])
            return Kind("number" if all(isinstance(r, int) for r in results) else "text")
        if found.word not in ("number", "text", "truth"):
            raise ValueError(f"comes to a {found.word}; only numbers, texts and comparisons can be computed")
        return found if self.decimals is None or found.word != "number" else Kind("number", self.decimals)

    def operand(self, operands: Mapping[str, Operand], rows: int) -> Operand:
        """The column's values in each row, from those of other columns."""
        kind = self.kind({name: operand.kind for name, operand in operands.items()})
        if self.map:
            values = self._looked_up(operands, rows, kind)
        else:
            values = value_of(self.formula, operands, rows)
            if kind.word == "number":
                values = rounded(values, kind.decimals)
        return Operand(kind, values, self._written(values, kind))

    def _looked_up(self, operands: Mapping[str, Operand], rows: int, kind: Kind) -> pa.Array:
        if isinstance(self.formula, Reference):
            texts = operands[self.formula.column].texts
        else:
            texts = value_of(self.formula, operands, rows)
        keys = pa.array([key for key, _ in self.map], pa.string())
        results = [*(result for _, result in self.map), self.other, None]
        convert = int if kind.word == "number" else str
        values = pa.array(
            [None if r is None else convert(r) for r in results],
            pa.int64() if kind.word == "number" else pa.string(),
        )
        found = pc.fill_null(pc.index_in(texts, keys), len(keys)).to_numpy(zero_copy_only=False)
        missing = np.asarray(texts.is_null())
        return values.take(pa.array(np.where(missing, len(keys) + 1, found)))

    def _written(self, values: pa.Array, kind: Kind) -> pa.StringArray:
        if kind.word == "number":
            return self.form.write(fixed_texts(values, kind.decimals))
        return pc.cast(values, pa.string())

    def text(self, values: pa.Array, kind: Kind) -> pa.StringArray:
        """Values of a kind as they are written in a CSV file."""
        return pc.fill_null(self._written(values, kind), self.marker)


def rounded(values: pa.Array, decimals: int) -> pa.Array:
    """Numbers at some decimals, int64 without any; missing where a double can't hold them exactly."""
    found = pc.round(values, decimals)
    exact = pc.less_equal(pc.abs(found), _LARGEST_STEP / 10.0**decimals)
    kept = pc.if_else(exact, found, pa.scalar(None, pa.float64()))
    return kept if decimals else pc.cast(kept, pa.int64())
