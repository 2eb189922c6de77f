"""Rows of the private and of the synthetic table that violate a constraint.

Conditions are checked by cells: a row counts where no values within its cells would obey. Sums are checked by
the numbers themselves. For a tie, the partner of each value is the one that most rows of the same table give
it; all other rows of the value count.

Invariant: exact, and for the table's owner alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsynth.columns.column import Column
from dpsynth.columns.expression import Operand, references, value_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.rules import Checks, RuleRefused, rules_of
from dpsynth.columns.rules.grids import partners
from dpsynth.columns.rules.rule import Rules, Sum, Tie
from dpsynth.errors import DpsynthError
from dpsynth.wings.owner.assess.owned_bundle import CodedTable


@dataclass(frozen=True)
class Violations:
    """Rows that violate a constraint, of either table; None where a rule can't be checked here."""

    rule: str
    real: int | None
    synthetic: int | None


def violations(
    columns: Sequence[Column], rules: Sequence[str], real: CodedTable, synthetic: CodedTable
) -> tuple[Violations, ...]:
    """Rows of both tables that violate each constraint."""
    layout = Layout.of(columns)
    return tuple(_violations(layout, rule, real, synthetic) for rule in rules)


def _violations(layout: Layout, rule: str, real: CodedTable, synthetic: CodedTable) -> Violations:
    try:
        rules = rules_of([rule], layout)
        found = [_rows(rules, layout, table) for table in (real, synthetic)]
    except (RuleRefused, DpsynthError, ValueError, KeyError):
        # The rule names a column that is computed, which no manifest can make again.
        return Violations(rule, None, None)
    return Violations(rule, found[0], found[1])


def _rows(rules: Rules, layout: Layout, table: CodedTable) -> int | None:
    """Rows of a table that violate one rule."""
    if rules.ties:
        return _off_the_tie(rules.ties[0], layout, table)
    for turn in rules.turns:
        if isinstance(turn, Sum):
            return _off_the_sum(turn, layout, table)
    checks = Checks(rules, layout)
    if not checks.grids:
        return None
    return int(checks.violating_cells({name: c.astype(np.int64) for name, c in table.codes.items()}).sum())


def _off_the_tie(tie: Tie, layout: Layout, table: CodedTable) -> int:
    """Rows with both values of a tie, and another partner than the value has."""
    values = {c.name: len(c.codec.labels) for c in layout.columns}
    pair = (tie.left, tie.right)
    shape = tuple(table.sizes[name] for name in pair)
    counts = table.counts(pair).reshape(shape)[: values[tie.left], : values[tie.right]].astype(np.float64)
    partner = partners(counts, np.zeros(counts.shape, dtype=np.bool_), tie.both)
    kept = counts[np.flatnonzero(partner >= 0), partner[partner >= 0]].sum()
    return int(counts.sum() - kept)


def _off_the_sum(rule: Sum, layout: Layout, table: CodedTable) -> int | None:
    """Rows with the column and all parts of its formula, in which it isn't their sum to its last decimal."""
    columns = {c.name: c for c in layout.columns}
    codec = columns[rule.target].codec
    names = (rule.target, *references(rule.formula))
    if not isinstance(codec, NumericCodec) or not set(names) <= table.numbers.keys():
        return None
    operands = {
        name: Operand(layout.kinds[name], _or_null(table.numbers[name]), pa.nulls(table.rows, pa.string()))
        for name in names
    }
    wanted = value_of(rule.formula, operands, table.rows).to_numpy(zero_copy_only=False)
    off = np.abs(table.numbers[rule.target] - wanted.astype(np.float64))
    return int((off > 0.5 * 10.0**-codec.decimals).sum())


def _or_null(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pa.Array:
    """Numbers as an Arrow array, null where there is none."""
    return pa.array(numbers, pa.float64(), mask=~np.isfinite(numbers))
