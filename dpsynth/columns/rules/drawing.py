"""A synthetic table of which every row obeys the rules.

Rows are drawn as they would be without rules; then cells that break one are repaired (``repair``). Values
that a rule determines are computed: the cell of a tied column from the cell of the other column, and sums
from their parts, which are solved for the sum that was drawn (``solving``). If a row violates a rule only by
its values within its cells, these values are drawn again. A row that still violates gets the values of the
rule's columns from one that obeys; if there is none, from one row that was found without a model.

Invariant: no row of the table violates a rule, for any model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import references
from dpsynth.columns.layout import DrawnRows, Layout
from dpsynth.columns.rules.checking import Arrays, Bad, Checks
from dpsynth.columns.rules.finer import Finer
from dpsynth.columns.rules.obedience import Obedience, columns_of
from dpsynth.columns.rules.partners import NONE, Marginal, partners_of
from dpsynth.columns.rules.repair import Integers, RuleRepairs, repaired
from dpsynth.columns.rules.rule import Rules, Sum, Tie
from dpsynth.columns.rules.solving import solved_for_parts
from dpsynth.columns.rules.witness import Witness, witness_of
from dpsynth.errors import DpsynthError

VALUE_ROUNDS = 24
"""Number of rounds that draw values again within their cells."""
ROW_ROUNDS = 24
"""Number of times that more rows are drawn, where none obeys."""
_SOME = 10_000
"""Rows that are drawn then."""

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

    def given(self, columns: Clique, rows: Codes, donors: Batch) -> Batch:
        """The same rows, some of them with the cells and values of others in some columns."""
        order = np.arange(self.rows)
        order[rows] = self.rows + np.arange(rows.size)
        at = pa.array(order)
        codes = {c: np.concatenate([self.codes[c], donors.codes[c]])[order] for c in columns}
        values = {c: pa.concat_arrays([self.values[c], donors.values[c]]).take(at) for c in columns}
        return Batch(self.codes | codes, self.values | values, self.computed | donors.computed)


@dataclass(frozen=True, eq=False)
class RuledRows(DrawnRows):
    """Rows of a synthetic table that obey its rules, and what was changed so that they do."""

    repairs: RuleRepairs


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
    tied = Tied(rules, layout, marginal, rng)
    return Drawing(tied, draw, rng).rows(*tied.repaired(draw(rows), rng)).table


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
        rules: the rules.
        whole: the layout of the table.
        marginal: the model's marginals, which decide the partners of tied values.
        rng: decides the values within a cell.
        measured: pairs of columns that were measured, whose counts repairs keep.
        shut: for some columns, cells that no row may have.
    """

    rules: Rules
    whole: Layout
    marginal: Marginal
    rng: np.random.Generator
    measured: frozenset[frozenset[str]] = frozenset()
    shut: Mapping[str, Bad] = field(default_factory=dict)

    def repaired(self, codes: Integers, rng: np.random.Generator) -> tuple[dict[str, Codes], RuleRepairs]:
        """Drawn rows in cells that obey the rules, as far as such cells were found, and what was changed."""
        wide = {c.name: codes[c.name].astype(np.int64, copy=False) for c in self.whole.columns}
        before = self.finer.fine(self.whole.reconciled(wide, rng), rng)
        found, broken = repaired(self.obedience, before, rng, self.measured, self.finer.cell_of)
        cells = [self.finer.coarse({c: some[c] for c in self.rules.named}) for some in (before, found)]
        changed = {c: int((cells[0][c] != cells[1][c]).sum()) for c in self.rules.named}
        return found, RuleRepairs(len(next(iter(found.values()))), broken, changed)

    @cached_property
    def finer(self) -> Finer:
        """The layout with finer cells of the columns that rules are about."""
        return Finer.of(self.rules, self.whole, self.marginal)

    @cached_property
    def checks(self) -> Checks:
        """The rules, and the layout with finer cells."""
        return Checks(self.rules, self.finer.layout)

    @cached_property
    def obedience(self) -> Obedience:
        """The rules over cells."""
        finer = self.finer.cell_of
        shut = {c: closed[finer[c]] if c in finer else closed for c, closed in self.shut.items()}
        return Obedience(self.rules, self.finer.layout, self.partners, shut)

    @cached_property
    def partners(self) -> tuple[tuple[Tie, Codes], ...]:
        """The partner of each cell, by tie."""
        checks = self.checks
        return partners_of(checks.rules, checks.layout, checks.grids, self.marginal)

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

    def rows(self, first: dict[str, Codes], repairs: RuleRepairs, before: int = 0) -> RuledRows:
        """The rows of repaired cells, whose identifiers follow those of ``before`` rows.

        Args:
            first: int64[rows] of each modelled column, as ``Tied.repaired`` made them.
            repairs: what was changed so far.
            before: number of rows before these.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        finer, rows = self.tied.finer, len(next(iter(first.values())))
        layout = finer.before.following(before)
        if not rows:
            return RuledRows(layout.decode(first, self.rng), first, repairs)
        batch, bad = self._batch(first)
        if bad.any():
            batch = self._completed(batch, bad, first)
        codes = finer.coarse(batch.codes)
        cells = {c: own for c, own in codes.items() if c not in batch.computed}
        return RuledRows(layout.whole(codes, batch.values), cells, repairs)

    def _completed(self, batch: Batch, bad: Bad, first: dict[str, Codes]) -> Batch:
        """The rows, of which those that still violate a rule get the values of rows that obey."""
        good = batch.take(np.flatnonzero(~bad))
        drawn = 0
        while not good.rows and drawn < ROW_ROUNDS:
            drawn += 1
            more, unlike = self._batch(self.tied.repaired(self.draw(_SOME), self.rng)[0])
            good = more.take(np.flatnonzero(~unlike))
        if not good.rows:
            return self._of_a_witness(first)
        for columns, rows in self._by_component(batch, np.flatnonzero(bad)):
            batch = batch.given(columns, rows, good.take(self.rng.integers(0, good.rows, rows.size)))
        return batch

    def _moments(self, codes: Mapping[str, Codes]) -> dict[str, pa.Array]:
        """Moments with the parts of their rows, of columns of which parts are measured."""
        return {p.column.name: p.values(codes, self.rng) for p in self.checks.layout.parted}

    def _by_component(self, batch: Batch, bad: Codes) -> Iterator[tuple[Clique, Codes]]:
        """The rows that violate rules which share columns, with these columns.

        Where a rule names a part of moments, all rules count as one: a moment and its parts go together.
        """
        timed = {c.name for p in self.checks.layout.parted for c in (p.column, *p.parts)}
        if not timed.isdisjoint(self.checks.rules.named):
            yield tuple(timed.union(self.checks.rules.named)), bad
            return
        checks, some = self.checks, batch.take(bad)
        _, alone = self._tied(some.codes)
        values, unfit = checks.summed(some.values)
        broken: dict[int, Bad] = checks.each(values)
        for number, those in unfit.items():
            broken[number] = those | broken.get(number, False)
        for tie in checks.rules.ties:
            broken[tie.number] = broken.get(tie.number, False) | alone
        for parts in self.tied.obedience.components:
            columns = columns_of(parts)
            of = [checks.rules.columns(number) for number in broken]
            own = [b for b, c in zip(broken.values(), of, strict=True) if not set(c).isdisjoint(columns)]
            rows = bad[np.logical_or.reduce(own)] if own else bad[:0]
            if rows.size:
                yield columns, rows

    def _of_a_witness(self, first: dict[str, Codes]) -> Batch:
        """The drawn rows, with one obeying row's values in all columns that rules name."""
        checks = self.checks
        found = refuse_unobeyed(checks.rules, checks.layout)
        rows = len(next(iter(first.values())))
        codes = {c: np.full(rows, found.codes[c]) if c in found.codes else v for c, v in first.items()}
        codes = dict(checks.layout.reconciled(codes, self.rng))
        values = {
            c: pa.repeat(found.values[c], rows) if c in found.codes else column.decode(codes[c], self.rng)
            for c, column in checks.columns.items()
        }
        values = {c: v.cast(checks.columns[c].codec.arrow_type) for c, v in values.items()}
        values |= self._moments(codes)
        return Batch(codes, values, frozenset((*found.codes, *checks.rules.sums)))

    def _batch(self, codes: dict[str, Codes]) -> tuple[Batch, Bad]:
        """Rows with their values, and the rows that still violate a rule, bool[rows]."""
        checks = self.checks
        codes, alone = self._tied(checks.layout.reconciled(codes, self.rng))
        bad = checks.violating_cells(codes) | alone
        values = {c: self._decoded(c, codes[c]) for c in checks.columns}
        finer = self.tied.finer
        values = finer.inside.within_bins(finer.coarse(codes), values, self.rng)
        values, unfit = checks.summed(self._solved(codes, values))
        violated = ~bad & _any(checks.violating_values(codes, values), unfit)
        wrong = np.flatnonzero(violated | (~bad & checks.outside(codes, values)))
        values, still = self._within_cells(codes, values, wrong, violated)
        bad[still] = True
        return Batch(codes, values, frozenset(checks.rules.sums)), bad

    def _tied(self, codes: Mapping[str, Codes]) -> tuple[dict[str, Codes], Bad]:
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
        self, codes: dict[str, Codes], values: dict[str, pa.Array], wrong: Codes, violated: Bad
    ) -> tuple[dict[str, pa.Array], Codes]:
        """Values, drawn again within their cells for some rows, and the rows still violating.

        Args:
            codes: the cells.
            values: the values.
            wrong: the rows to be drawn again: they violate a rule, or have a sum outside of its cell.
            violated: those that violate a rule, bool[rows].
        """
        checks = self.checks
        redrawn = [c for c in checks.undecided if c not in self.tied.pins]
        needed = (*checks.undecided, *checks.rules.sums)
        spots: list[Codes] = []
        drawn: list[Arrays] = []
        for turn in range(VALUE_ROUNDS + 1):
            if not wrong.size:
                break
            last = turn == VALUE_ROUNDS
            of = {c: some[wrong] for c, some in codes.items()}
            taken = pa.array(wrong)
            again = {c: self._decoded(c, of[c]) if c in redrawn else values[c].take(taken) for c in needed}
            again |= {c: self._decoded(c, of[c]) for c in checks.rules.sums}
            again |= {c: own for c, own in self._moments(of).items() if c in again}
            again, unfit = checks.summed(self._solved(of, again))
            bad = _any(checks.violating_values(of, again), unfit)
            off = checks.outside(of, again)
            right = ~bad & (~off | (last & violated[wrong]))
            kept = pa.array(np.flatnonzero(right))
            spots.append(wrong[right])
            drawn.append({c: again[c].take(kept) for c in (*redrawn, *checks.rules.sums)})
            wrong = wrong[~right]
        wrong = wrong[violated[wrong]]
        if not drawn:
            return values, wrong
        order = np.arange(len(next(iter(values.values()))))
        replaced = np.concatenate(spots)
        order[replaced] = len(order) + np.arange(replaced.size)
        at = pa.array(order)
        patched = {c: pa.concat_arrays([values[c], *(d[c] for d in drawn)]).take(at) for c in drawn[0]}
        return values | patched, wrong

    def _solved(self, codes: Mapping[str, Codes], values: Arrays) -> dict[str, pa.Array]:
        """Values of which each sum lies in its own cell, where its parts allow."""
        found, kept = dict(values), set(self.tied.pins)
        for turn in self.checks.rules.turns:
            if isinstance(turn, Sum):
                found = solved_for_parts(self.checks, turn, codes, found, self.rng, kept)
                # A part of two sums is solved for the first.
                kept |= set(references(turn.formula))
        return found


def _any(bad: Bad, others: Mapping[int, Bad]) -> Bad:
    return np.logical_or.reduce([bad, *others.values()])
