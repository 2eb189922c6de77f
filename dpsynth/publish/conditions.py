"""The part of each cell's rows that obeys a rule.

A rule is about values, and a cell holds several. So values are drawn inside of each cell, as the synthetic
table draws them; the part of the draws that obeys the rule is the cell's. A cell that obeys it as a whole,
or not at all, has exactly 1 or 0.

Invariant: public. The draws are made from the columns' declarations and densities, with a seed of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.domain.column import Column
from dpsynth.domain.expression import Expression, references
from dpsynth.domain.layout import Layout
from dpsynth.publish.estimates import Numbers
from dpsynth.rules.satisfaction import satisfied

_DRAWS = 200
"""Draws in each cell."""
_MOST_DRAWN = 1 << 22
"""Most draws in all cells together; at least one is made in each."""


def truth_of(formula: Expression, layout: Layout, columns: Sequence[Column]) -> Numbers:
    """The part of the rows of each cell that satisfy a rule.

    Args:
        formula: the rule.
        layout: the table's columns.
        columns: the columns of a table of counts, in the order of its axes; those of the rule among them.

    Returns:
        float64, an axis a column; of length 1 for columns that the rule doesn't name.
    """
    named = set(references(formula))
    shape = tuple(column.size if column.name in named else 1 for column in columns)
    about = [column for column in columns if column.name in named]
    sizes = tuple(column.size for column in about)
    cells = int(np.prod(sizes))
    draws = max(1, min(_DRAWS, _MOST_DRAWN // cells))
    each = np.indices(sizes).reshape(len(sizes), -1).repeat(draws, axis=1)
    codes = {column.name: code for column, code in zip(about, each, strict=True)}
    true = satisfied(formula, layout, codes, np.random.default_rng(0))
    return np.asarray(true.reshape(cells, draws).mean(axis=1).reshape(shape))
