"""The rows that satisfy a formula, by the values in them.

Invariant: a row satisfies a formula if it is true, as in SQL; where it is missing, it doesn't.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.expression import Expression, references
from dpsynth.columns.formulas import Operand, value_of
from dpsynth.columns.layout import Layout


def satisfied(
    formula: Expression, layout: Layout, codes: Mapping[str, Codes], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Rows with given cells, and values drawn inside them, for which a formula is true, bool[rows].

    Args:
        formula: a formula over these columns, and over derived ones that are computed from them.
        layout: the layout.
        codes: int64[rows] of each of the columns.
        rng: draws the values.
    """
    columns = {c.name: c for c in layout.columns}
    operands: dict[str, Operand] = {}
    for name, code in codes.items():
        values = columns[name].decode(code.astype(np.int64), rng)
        operands[name] = Operand(layout.kinds[name], values, columns[name].codec.text(values))
    return true_rows(formula, layout, operands, len(next(iter(codes.values()))))


def true_rows(
    formula: Expression, layout: Layout, operands: dict[str, Operand], rows: int
) -> NDArray[np.bool_]:
    """Rows for which a formula is true, bool[rows]; operands of derived columns are added."""
    for derived in layout.in_turn():
        if operands.keys() >= set(references(derived.formula)):
            operands[derived.name] = derived.operand(operands, rows)
    values: pa.Array = value_of(formula, operands, rows)
    return np.asarray(pc.fill_null(values, False)).astype(np.bool_)
