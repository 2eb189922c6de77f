"""A synthetic table of which every row obeys the rules.

Values that a rule determines are computed: the cell of a tied column from the cell of the other column,
and sums from their parts. Columns that depend strongly on each other are drawn together inside their bins. If
a row violates a rule only by its values within its cells, these values are drawn again, so that the model's
cells do not change. All other violating rows are drawn again as a whole, so that they follow the model's
distribution given the rules. Rows that still lack after some rounds are copies of rows that obey; if there
are none, of one row that was found without a model.

Invariant: no row of the table violates a rule, for any model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
import pyarrow as pa

from dpsynth.domain.codec import Codes
from dpsynth.domain.layout import DrawnRows, Layout
from dpsynth.errors import DpsynthError
from dpsynth.rules.checking import Arrays, Bad, Checks
from dpsynth.rules.partners import NONE, Marginal, partners_of
from dpsynth.rules.rule import Rules, Tie
from dpsynth.rules.witness import Witness, witness_of

VALUE_ROUNDS = 8
"""Number of rounds that draw values again within their cells."""
_HOPELESS = 0.95
"""Share of violating rows above which these rounds end."""
ROW_ROUNDS = 24
"""Largest number of rounds that draw whole rows."""
_MOST_AT_ONCE = 1 << 20
"""Largest number of rows drawn in a round after the first, or as many as are missing."""
_MOST_TIMES = 30
"""Bound on all drawn rows, in multiples of the wanted rows; ``_SOME`` rows more are allowed."""
_SOME = 100_000

Draw = Callable[[int], dict[str, Codes]]
"""A function from a number of rows to rows of a model: int64[rows] codes of each column."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows, with the cells and the values of every modelled column.

    Attributes:
        codes: int64[rows], the cell of each value, but for columns in ``computed``.
        values: typed values.
        computed: the columns whose values need not lie in their cells.
    """

    codes: dict[str, Codes]
    values: dict[str, pa.Array]
    computed: frozenset[str]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.codes.values())))

    def take(self, spots: Codes) -> Batch:
        """The rows at some positions, in their order."""
        chosen = pa.array(spots)
        return Batch(
            {c: codes[spots] for c, codes in self.codes.items()},
            {c: values.take(chosen) for c, values in self.values.items()},
            self.computed,
        )

    @staticmethod
    def together(batches: list[Batch]) -> Batch:
        """All rows of some batches."""
        if len(batches) == 1:
            return batches[0]
        first = batches[0]
        return Batch(
            {c: np.concatenate([b.codes[c] for b in batches]) for c in first.codes},
            {c: pa.concat_arrays([b.values[c] for b in batches]) for c in first.values},
            frozenset().union(*(b.computed for b in batches)),
        )


def obeying(
    rules: Rules, layout: Layout, rows: int, draw: Draw, marginal: Marginal, rng: np.random.Generator
) -> pa.Table:
    """A table in which no row violates a rule.

    Args:
        rules: the rules of the layout.
        layout: the layout of the table, with all cells found.
        rows: number of rows.
        draw: draws rows from the model.
        marginal: the model's marginals, which decide the partners of tied values.
        rng: decides the values within a cell.

    Raises:
        DpsynthError: no row that obeys the rules was found.
    """
    tied = Tied(Checks(rules, layout), marginal, rng)
    return Drawing(tied, draw, rng).rows(rows).table


def refuse_unobeyed(rules: Rules, layout: Layout) -> Witness:
    """A row that obeys the rules, for a table whose cells were found.

    Raises:
        DpsynthError: none was found.
    """
    found = witness_of(Checks(rules, layout))
    if isinstance(found, Witness):
        return found
    those = ", ".join(f"'{rules.written[number]}'" for number in found.numbers)
    raise DpsynthError(
        f"No row was found that obeys the constraints {those} with the values found for columns whose domain "
        "is private. Declare the domains of the columns that these constraints are about."
    )


@dataclass(frozen=True, eq=False)
class Tied:
    """The tied values of a table, the same in all of its pieces.

    Attributes:
        checks: the rules, and the layout of the table.
        marginal: the model's marginals, which decide the partners of tied values.
        rng: decides the values within a cell.
    """

    checks: Checks
    marginal: Marginal
    rng: np.random.Generator

    @cached_property
    def partners(self) -> tuple[tuple[Tie, Codes], ...]:
        """The partner of each cell, by tie."""
        return partners_of(self.checks.rules, self.checks.layout, self.checks.grids, self.marginal)

    @cached_property
    def pins(self) -> Mapping[str, pa.Array]:
        """The one value of each cell, for columns that are tied."""
        columns = self.checks.columns
        return {
            name: columns[name].decode(np.arange(columns[name].size), self.rng)
            for name in self.checks.rules.pinned
        }


@dataclass(frozen=True, eq=False)
class Drawing:
    """The drawing of one piece of a table.

    Attributes:
        tied: the rules, and the values that all pieces have in common.
        draw: draws rows from the model.
        rng: decides the values within a cell.
    """

    tied: Tied
    draw: Draw
    rng: np.random.Generator

    @property
    def checks(self) -> Checks:
        """The rules, and the layout of the table."""
        return self.tied.checks

    def rows(self, rows: int, before: int = 0) -> DrawnRows:
        """So many rows, whose identifiers follow those of ``before`` rows.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        layout = self.checks.layout.following(before)
        first = self.draw(rows)
        if not rows:
            return DrawnRows(layout.decode(first, self.rng), first)
        batch, bad = self._batch(first)
        good, missing = np.flatnonzero(~bad), np.flatnonzero(bad)
        if missing.size:
            order = np.empty(rows, dtype=np.int64)
            order[good], order[missing] = np.arange(good.size), np.arange(good.size, rows)
            batch = self._completed(batch.take(good), rows, first).take(order)
        cells = {c: codes for c, codes in batch.codes.items() if c not in batch.computed}
        return DrawnRows(layout.whole(batch.codes, batch.values), cells)

    def _completed(self, good: Batch, rows: int, first: dict[str, Codes]) -> Batch:
        """The rows that obey, then as many more as are missing."""
        found, left = [good], rows - good.rows
        drawn, kept = rows, good.rows
        for _ in range(ROW_ROUNDS):
            if drawn > _MOST_TIMES * rows + _SOME:
                break
            wanted = ceil(1.1 * left * drawn / max(kept, 1)) + 10
            batch, bad = self._batch(self.draw(min(wanted, max(_MOST_AT_ONCE, left), 8 * rows + _SOME)))
            drawn, kept = drawn + batch.rows, kept + int((~bad).sum())
            more = batch.take(np.flatnonzero(~bad)[:left])
            found.append(more)
            left -= more.rows
            if not left:
                return Batch.together(found)
        obeying = Batch.together(found)
        if obeying.rows:
            copies = obeying.take(self.rng.integers(0, obeying.rows, left))
            return Batch.together([obeying, copies])
        return self._of_a_witness(first)

    def _of_a_witness(self, first: dict[str, Codes]) -> Batch:
        """The drawn rows, with one obeying row's values in all columns that rules name."""
        checks = self.checks
        found = refuse_unobeyed(checks.rules, checks.layout)
        rows = len(next(iter(first.values())))
        codes = {c: np.full(rows, found.codes[c]) if c in found.codes else v for c, v in first.items()}
        values = {
            c: pa.repeat(found.values[c], rows) if c in found.codes else column.decode(codes[c], self.rng)
            for c, column in checks.columns.items()
        }
        values = {c: v.cast(checks.columns[c].codec.arrow_type) for c, v in values.items()}
        return Batch(codes, values, frozenset((*found.codes, *checks.rules.sums)))

    def _batch(self, codes: dict[str, Codes]) -> tuple[Batch, Bad]:
        """Rows with their values, and the rows that still violate a rule, bool[rows]."""
        checks = self.checks
        codes, alone = self._tied(codes)
        bad = checks.violating_cells(codes) | alone
        values = {c: self._decoded(c, codes[c]) for c in checks.columns}
        values = checks.layout.within_bins(codes, values, self.rng)
        values, unfit = checks.summed(values)
        wrong = np.flatnonzero(~bad & _any(checks.violating_values(codes, values), unfit))
        values, still = self._within_cells(codes, values, wrong)
        bad[still] = True
        return Batch(codes, values, frozenset(checks.rules.sums)), bad

    def _tied(self, codes: dict[str, Codes]) -> tuple[dict[str, Codes], Bad]:
        """Cells after tied columns are decided, and the rows whose cell has no partner."""
        alone = np.zeros(len(next(iter(codes.values()))), dtype=np.bool_)
        codes = dict(codes)
        columns = self.checks.columns
        for tie, partner in self.tied.partners:
            left, right = codes[tie.left], codes[tie.right]
            both = (left < len(partner)) & (right < len(columns[tie.right].codec.labels))
            found = partner[np.where(both, left, 0)]
            alone |= both & (found == NONE)
            codes[tie.right] = np.where(both & (found != NONE), found, right)
        return codes, alone

    def _decoded(self, name: str, codes: Codes) -> pa.Array:
        if name in self.tied.pins:
            return self.tied.pins[name].take(pa.array(codes))
        return self.checks.columns[name].decode(codes, self.rng)

    def _within_cells(
        self, codes: dict[str, Codes], values: dict[str, pa.Array], wrong: Codes
    ) -> tuple[dict[str, pa.Array], Codes]:
        """Values, drawn again within their cells for violating rows, and the rows still violating."""
        checks = self.checks
        redrawn = [c for c in checks.undecided if c not in self.tied.pins]
        needed = (*checks.undecided, *checks.rules.sums)
        spots: list[Codes] = []
        drawn: list[Arrays] = []
        for _ in range(VALUE_ROUNDS):
            if not wrong.size:
                break
            of = {c: codes[c][wrong] for c in needed}
            taken = pa.array(wrong)
            again = {c: self._decoded(c, of[c]) if c in redrawn else values[c].take(taken) for c in needed}
            again, unfit = checks.summed(again)
            bad = _any(checks.violating_values(of, again), unfit)
            right = pa.array(np.flatnonzero(~bad))
            spots.append(wrong[~bad])
            drawn.append({c: again[c].take(right) for c in (*redrawn, *checks.rules.sums)})
            wrong = wrong[bad]
            if bad.mean() > _HOPELESS:
                break
        if not drawn:
            return values, wrong
        order = np.arange(len(next(iter(values.values()))))
        replaced = np.concatenate(spots)
        order[replaced] = len(order) + np.arange(replaced.size)
        at = pa.array(order)
        patched = {c: pa.concat_arrays([values[c], *(d[c] for d in drawn)]).take(at) for c in drawn[0]}
        return values | patched, wrong


def _any(bad: Bad, others: Mapping[int, Bad]) -> Bad:
    return np.logical_or.reduce([bad, *others.values()])
