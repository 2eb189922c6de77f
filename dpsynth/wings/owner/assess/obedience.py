"""Rows of the private table that obey the rules of a configuration: exact counts, for its owner's eyes.

Rules are asked of values as the table has them. A computed column may be off by its last decimal, since
amounts that were rounded one by one need not add up exactly.

Invariant: rows are counted in one pass; what is kept of a tie are its pairs of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.formulas import value_of
from dpsynth.columns.rules import Rules
from dpsynth.columns.rules.rule import Condition, Sum, Tie
from dpsynth.wings.owner.assess.row_sample import TypedRows, as_numbers


@dataclass(frozen=True)
class Obedience:
    """Rows that a rule is about, and those that break it.

    Attributes:
        rule: the rule as it is written.
        rows: rows in which it is true or false: all values that it needs are there.
        broken: those in which it is false; of a tie, rows whose value has another partner in most rows.
    """

    rule: str
    rows: int
    broken: int

    @property
    def share(self) -> float:
        """Share of the rows that obey."""
        return 1.0 - self.broken / max(self.rows, 1)

    @property
    def where(self) -> str:
        """The share in words."""
        if not self.broken:
            return f"in every one of {self.rows:,} rows" if self.rows else "no row has all values"
        return f"in all but {self.broken:,} of {self.rows:,} rows"


@dataclass(eq=False)
class ObedienceTally:
    """The rows that obey each of some rules, counted batch by batch."""

    rules: Rules
    _rows: dict[int, int] = field(default_factory=dict)
    _broken: dict[int, int] = field(default_factory=dict)
    _pairs: dict[int, pa.Table] = field(default_factory=dict)

    def add(self, batch: TypedRows) -> None:
        """Count some rows."""
        for condition in self.rules.conditions:
            self._count(condition.number, *_of_condition(condition, self.rules, batch))
        for total in self.rules.sums.values():
            self._count(total.number, *_of_sum(total, self.rules, batch))
        for tie in self.rules.ties:
            self._add_pairs(tie, batch)

    def _count(self, number: int, rows: int, broken: int) -> None:
        self._rows[number] = self._rows.get(number, 0) + rows
        self._broken[number] = self._broken.get(number, 0) + broken

    def _add_pairs(self, tie: Tie, batch: TypedRows) -> None:
        left, right = batch.keys(tie.left), batch.keys(tie.right)
        both = pc.and_(left.is_valid(), right.is_valid())
        found = pa.table({"left": left, "right": right, "rows": np.ones(batch.rows, np.int64)}).filter(both)
        known = self._pairs.get(tie.number)
        found = found if known is None else pa.concat_tables([known, found])
        counted = found.group_by(["left", "right"]).aggregate([("rows", "sum")])
        self._pairs[tie.number] = counted.rename_columns(["left", "right", "rows"])

    def found(self) -> tuple[Obedience, ...]:
        """The rows that obey each rule, in the order of the rules."""
        for tie in self.rules.ties:
            pairs = self._pairs.get(tie.number)
            if pairs is not None:
                self._rows[tie.number] = pc.sum(pairs.column("rows")).as_py() or 0
                sides = ("left", "right") if tie.both else ("left",)
                self._broken[tie.number] = max(_off_partner(pairs, side) for side in sides)
        return tuple(
            Obedience(text, self._rows.get(number, 0), self._broken.get(number, 0))
            for number, text in enumerate(self.rules.written)
        )


def obedience(rules: Rules, rows: TypedRows) -> tuple[Obedience, ...]:
    """The rows of some that obey each rule."""
    tally = ObedienceTally(rules)
    tally.add(rows)
    return tally.found()


def _of_condition(condition: Condition, rules: Rules, batch: TypedRows) -> tuple[int, int]:
    operands = batch.operands(rules.names(condition.formula, into_sums=False))
    values = value_of(condition.formula, operands, batch.rows)
    known = batch.rows - values.null_count
    return known, known - (pc.sum(values).as_py() or 0)


def _of_sum(total: Sum, rules: Rules, batch: TypedRows) -> tuple[int, int]:
    operands = batch.operands((total.target, *rules.names(total.formula, into_sums=False)))
    wanted = as_numbers(value_of(total.formula, operands, batch.rows))
    target = operands[total.target]
    off = np.abs(as_numbers(target.values) - wanted)
    decimals = target.kind.decimals
    # A whole number is that number; an amount is off by rounding of itself or of its parts.
    most = 1.001 * 10.0**-decimals if decimals else 1e-6
    return int(np.isfinite(off).sum()), int((off > most).sum())


def _off_partner(pairs: pa.Table, side: str) -> int:
    """Rows whose value of one side has another partner in most rows."""
    most = pairs.group_by([side]).aggregate([("rows", "max")])
    return int((pc.sum(pairs.column("rows")).as_py() or 0) - (pc.sum(most.column("rows_max")).as_py() or 0))
