"""The part of each cell's rows that obeys a rule.

A rule is about values, and a cell holds several. So values are drawn inside of each cell, as the synthetic
table draws them; the part of the draws that obeys the rule is the cell's. A cell that obeys it as a whole,
or not at all, has exactly 1 or 0.

Invariant: public. The draws are made from the columns' declarations and densities, with a seed of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth.domain.column import Column
from dpsynth.domain.expression import Expression, references
from dpsynth.domain.formulas import Operand, value_of
from dpsynth.publish.estimates import Numbers

_DRAWS = 200
"""Draws in each cell."""
_MOST_DRAWN = 1 << 22
"""Most draws in all cells together; at least one is made in each."""


def truth_of(formula: Expression, columns: Sequence[Column]) -> Numbers:
    """The part of the rows of each cell that obey a rule; a rule with a missing operand isn't obeyed.

    Args:
        formula: the rule.
        columns: the columns of the table, in the order of its axes; those of the rule among them.

    Returns:
        float64, an axis a column; of length 1 for columns that the rule doesn't name.
    """
    named = set(references(formula))
    shape = tuple(column.size if column.name in named else 1 for column in columns)
    about = [column for column in columns if column.name in named]
    sizes = tuple(column.size for column in about)
    cells = int(np.prod(sizes))
    draws = max(1, min(_DRAWS, _MOST_DRAWN // cells))
    codes = np.indices(sizes).reshape(len(sizes), -1).repeat(draws, axis=1)
    rng = np.random.default_rng(0)
    operands: Mapping[str, Operand] = {
        column.name: _operand(column, codes[axis], rng) for axis, column in enumerate(about)
    }
    obeyed = value_of(formula, operands, cells * draws).fill_null(False)
    truth = np.asarray(obeyed.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.asarray(truth.reshape(cells, draws).mean(axis=1).reshape(shape))


def _operand(
    column: Column, codes: np.ndarray[tuple[int], np.dtype[np.int64]], rng: np.random.Generator
) -> Operand:
    values = column.decode(codes, rng)
    return Operand(column.codec.kind, values, column.codec.text(values))
