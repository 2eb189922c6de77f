"""Conditions on rows as weights of cells: the part of a cell's rows that satisfies a condition.

A condition is a conjunction. A part of it that is about one column and that the column's cells decide
becomes a mask of codes. Any other part becomes a table of weights over the cells of its columns: 1 where all
rows satisfy it, 0 where none does. Where a condition cuts through a cell (age >= 67 and a bin from 65 to
69), the weight is that of values as the synthetic table has them inside the cell, and the least and the
largest weight are 0 and 1.

Invariant: a row satisfies a condition if it is true, as in SQL; where it is missing, it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.calendar_parts import of_parts
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression, references
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules import Rules
from dpsynth.columns.rules.possible import MOST_CELLS, possible
from dpsynth.columns.rules.ranges import Truth
from dpsynth.columns.rules.satisfaction import satisfied
from dpsynth.errors import DpsynthError

_DRAWS = 1 << 20
"""Values that are drawn for the weights of cells through which a condition cuts, in all."""
_MOST_DRAWS = 4096
"""Most values of one cell."""
_LEAST_DRAWS = 16

Weights = NDArray[np.float64]


class ConditionRefused(DpsynthError):
    """A condition that joins too many values; the message says how many are allowed."""

    exit_code = 2


@dataclass(frozen=True, eq=False)
class Factor:
    """A part of a condition, over the cells of some columns.

    Attributes:
        columns: its columns.
        share: float64, the part of each cell's rows that satisfies it, axes as ``columns``.
        least, most: float64, the bounds on that part that hold whatever the values inside cells are.
    """

    columns: Clique
    share: Weights
    least: Weights
    most: Weights

    @property
    def cuts(self) -> bool:
        """True if the condition cuts through a cell."""
        return bool((self.least != self.most).any())


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on rows.

    Attributes:
        masks: for some columns, the codes that are allowed, bool[codes].
        factors: all other parts.
    """

    masks: Mapping[str, NDArray[np.bool_]]
    factors: tuple[Factor, ...] = ()

    @property
    def columns(self) -> Clique:
        """All columns that it is about."""
        return tuple(dict.fromkeys((*self.masks, *(c for f in self.factors for c in f.columns))))

    @property
    def cut(self) -> Clique:
        """Columns of the parts that cut through cells."""
        return tuple(dict.fromkeys(c for f in self.factors if f.cuts for c in f.columns))


def condition_of(formula: Expression | None, layout: Layout, rules: Rules) -> Condition:
    """The condition that a formula is; None is satisfied by all rows.

    Args:
        formula: a checked formula.
        layout: the layout, with the densities inside bins.
        rules: the table's rules, which know from which columns derived ones are computed.

    Raises:
        ConditionRefused: a part is about columns of too many values together.
    """
    masks: dict[str, NDArray[np.bool_]] = {}
    factors: list[Factor] = []
    if formula is not None:
        formula = of_parts(formula, layout.named)
    for part in [] if formula is None else _conjuncts(formula):
        found = _factor(part, layout, rules)
        if len(found.columns) == 1 and not found.cuts:
            (column,) = found.columns
            masks[column] = masks.get(column, np.True_) & (found.share > 0)
        else:
            factors.append(found)
    return Condition(masks, tuple(factors))


def _conjuncts(formula: Expression) -> Iterator[Expression]:
    if isinstance(formula, Call) and formula.operation == "and":
        for operand in formula.operands:
            yield from _conjuncts(operand)
    else:
        yield formula


def _factor(formula: Expression, layout: Layout, rules: Rules) -> Factor:
    mentioned = rules.names(formula, into_sums=False)
    names = tuple(c.name for c in layout.columns if c.name in _roots(mentioned, layout))
    sizes = tuple(c.size for c in layout.columns if c.name in names)
    if prod(sizes) > MOST_CELLS:
        raise ConditionRefused(
            f"The condition joins columns with {prod(sizes):,} combinations of values ({', '.join(names)}); "
            f"{MOST_CELLS:,} are allowed. Split it into parts that are joined by and."
        )
    truth = possible(formula, layout, names)
    assert isinstance(truth, Truth)
    yes, no, missing = (np.broadcast_to(m, sizes) for m in (truth.yes, truth.no, truth.missing))
    sure, depends = yes & ~no & ~missing, yes & (no | missing)
    share = sure.astype(np.float64)
    if depends.any():
        share[depends] = _shares(formula, layout, names, np.nonzero(depends))
    return Factor(names, share, sure.astype(np.float64), yes.astype(np.float64))


def _roots(names: Sequence[str], layout: Layout) -> set[str]:
    """The modelled columns among some names, and those from which derived ones are computed."""
    found = set(names)
    for derived in reversed(list(layout.in_turn())):
        if derived.name in found:
            found |= set(references(derived.formula))
    return found


def _shares(
    formula: Expression, layout: Layout, names: Clique, cells: tuple[NDArray[np.intp], ...]
) -> Weights:
    """The part of values drawn inside some cells that satisfies a formula, float64[cells]."""
    number = len(cells[0])
    draws = int(np.clip(_DRAWS // number, _LEAST_DRAWS, _MOST_DRAWS))
    rng = np.random.default_rng(0)
    codes = {name: np.repeat(code, draws) for name, code in zip(names, cells, strict=True)}
    true = satisfied(formula, layout, codes, rng)
    return true.reshape(number, draws).mean(axis=1)
