"""A synthetic table of which every row obeys the rules.

Rows are drawn as they would be without rules, in finer cells of the numbers that rules name; then cells that
break a rule are repaired (``repair``). Values that a rule determines are computed: the cell of a tied column
from the cell of the other column, and sums from their parts. Values that violate a rule only within their
cells are drawn again. A row that still violates gets the values of the rule's columns from one that obeys; if
there is none, from one row that was found without a model.

Invariant: no row of the table violates a rule, for any model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes, Intervals, patched
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import MOMENTS, microseconds, references
from dpsynth.columns.layout import DrawnRows, Layout
from dpsynth.columns.moment_parts import measured_parts, part_name
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.rules.checking import Arrays, Bad, Checks, Witness, witness_of
from dpsynth.columns.rules.grids import NONE, Marginal, Obedience, columns_of, partners_of
from dpsynth.columns.rules.repair import Integers, RuleRepairs, repaired
from dpsynth.columns.rules.rule import Rules, Sum, Tie
from dpsynth.columns.sequences import Sequences
from dpsynth.errors import DpsynthError

_PIECES, _MOST = 80, 24
"""Pieces of a column, if they had as many rows each; and pieces of a bin, at most."""


@dataclass(frozen=True, eq=False)
class Finer:
    """A layout of which some columns, numbers that rules are about, have finer cells.

    A bin of a number is wide where many rows lie, and a rule needs to know where in it a row lies: a bill is
    the sum of two parts, a tenure is below an experience. A piece lies in one bin. Columns stand for the same
    values as before, and hold no density but that of pieces.

    Attributes:
        cell_of: for each finer column, the code in the table of each of its codes.
    """

    before: Layout
    layout: Layout
    cell_of: Mapping[str, Codes]

    @classmethod
    def of(cls, rules: Rules, layout: Layout, marginal: Marginal) -> Finer:
        """Finer cells of the columns of numbers that rules name, and of those that are drawn with these.

        Args:
            marginal: the model's marginals, which say where pieces should be.
        """
        tied = {c for pair in rules.pairs for c in pair}
        wanted = set(rules.named)
        together = [{j.first, j.second} for j in layout.joint if not wanted.isdisjoint((j.first, j.second))]
        wanted = wanted.union(*together) - tied
        parts, cell_of = {part.name: part for part in layout.parts}, {}
        for column in layout.columns:
            codec = column.codec
            if column.name not in wanted or not isinstance(codec, NumericCodec) or codec.cell_values.single:
                continue
            counts = np.maximum(marginal((column.name,))[: len(codec.labels)], 0.0)
            shares = counts / max(float(counts.sum()), 1.0)
            fine, cells = codec.divided(np.clip(np.ceil(_PIECES * shares), 1, _MOST).astype(np.int64))
            others = np.arange(len(codec.labels), column.size)
            cell_of[column.name] = np.concatenate([cells, others])
            parts[column.name] = replace(column, codec=fine)
        joint = tuple(j for j in layout.joint if cell_of.keys().isdisjoint((j.first, j.second)))
        tilts = tuple(t for t in layout.tilts if t.column not in cell_of)
        before = replace(layout, joint=joint, tilts=tilts)
        return (
            cls(layout, replace(before, parts=tuple(parts.values())), cell_of)
            if cell_of
            else cls(layout, layout, {})
        )

    @cached_property
    def inside(self) -> Layout:
        """The table's layout, without the densities of finer columns, which are in their cells."""
        return replace(self.before, joint=self.layout.joint, tilts=self.layout.tilts)

    def coarse(self, codes: Mapping[str, Codes]) -> dict[str, Codes]:
        return {c: self.cell_of[c][own] if c in self.cell_of else own for c, own in codes.items()}

    def fine(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
        """The finer codes of rows that are drawn inside their bins as without rules.

        Args:
            codes: the table's codes, int64[rows] of each modelled column.
        """
        if not self.cell_of:
            return dict(codes)
        drawn = {c.name: c.decode(codes[c.name], rng) for c in self.before.columns}
        values, found = self.before.within_bins(codes, drawn, rng), dict(codes)
        for column in self.layout.columns:
            if column.name in self.cell_of:
                assert isinstance(column.codec, NumericCodec)
                numbers = values[column.name].to_numpy(zero_copy_only=False).astype(np.float64)
                cells = column.codec.codes_of(np.nan_to_num(numbers))
                labels, own = len(column.codec.labels), codes[column.name]
                # Missing cells and distinct markers follow the bins.
                bins = self.cell_of[column.name][labels - 1] + 1
                found[column.name] = np.where(own < bins, cells, own - bins + labels)
        return found


Floats = NDArray[np.float64]

_FOLLOWS = 0.03
"""Share of a column's rows that may change cells in total if the column follows from others by a sum."""

_DAY = 86_400e6
"""A day in microseconds."""

_WEEK = 7 * _DAY


def solved_for_parts(
    checks: Checks,
    turn: Sum,
    codes: Mapping[str, Codes],
    values: Arrays,
    rng: np.random.Generator,
    pinned: Collection[str] = (),
    leavers: Clique = (),
) -> dict[str, pa.Array]:
    """Values of a sum's parts and of its column, changed where that puts the sum into its own cell.

    Parts that are drawn freely inside their cells would come to any sum of a wide range. So the sum is drawn
    from the part of its own cell that its parts can reach. Then each part is drawn from the values at which
    the parts after it can still reach that sum, the widest cell last. The ends of such a range are found by
    bisection, which needs no inverse of the formula: it has only to rise or to fall in each part, inside of a
    cell. A moment whose hour is measured moves by whole days, and by whole weeks if its weekday is measured
    too. Of two moments the weekday of one follows from the other, so it is kept for the first, and where
    rules name it. A row of which the parts can't reach the sum's cell keeps its values.

    Args:
        codes: int64[rows], cells.
        values: typed values inside these; sums before this one are computed.
        pinned: columns whose values stay, such as parts that are sums themselves.
        leavers: parts that may leave their cells; that of the widest does so where nothing else helps.
    """
    target = values[turn.target]
    now = checks.computed(turn, values)
    left = np.asarray(pc.fill_null(pc.not_equal(now, target), False))
    parts = _narrowest_first(checks, turn, codes, pinned)
    for name in parts:
        left &= codes[name] < len(checks.columns[name].codec.labels)
    found, rows = dict(values), np.flatnonzero(left)
    leaver = [name for name in parts if name in leavers][-1:]
    needed = (*checks.rules.names(turn.formula, into_sums=False), turn.target)
    for whole in ((), leaver) if leaver else ((),):
        if not parts or not rows.size:
            break
        some = {c: values[c].take(pa.array(rows)) for c in needed}
        of = {c: codes[c][rows] for c in (*parts, turn.target)}
        solution, right = _Solution(checks, turn, parts, of, some, whole).drawn(rng)
        for name in parts:
            found[name] = patched(found[name], rows[right], solution[name].filter(pa.array(right)))
        rows = rows[~right]
    if parts and left.any():
        now = checks.computed(turn, found)
    found[turn.target] = pc.if_else(pc.and_(now.is_valid(), target.is_valid()), now, target)
    return found


def _narrowest_first(
    checks: Checks, turn: Sum, codes: Mapping[str, Codes], pinned: Collection[str]
) -> list[str]:
    """Parts that may be solved for: those of the narrowest cells first, in the rows at hand."""
    widths: dict[str, float] = {}
    for name in dict.fromkeys(references(turn.formula)):
        column = checks.columns.get(name)
        if column is None or name in pinned:
            continue
        if cells := _solvable(column):
            has = codes[name] < len(cells.low)
            widths[name] = float((cells.high - cells.low)[codes[name][has]].sum())
    return sorted(widths, key=lambda name: widths[name])


def _solvable(column: Column) -> Intervals | None:
    """The cells of a column of which several values each may be solved for; None for another one."""
    cells = column.codec.cell_values
    if not isinstance(cells, Intervals) or cells.single or _step(column) is None:
        return None
    return None if "month" in measured_parts(column) else cells


def _step(column: Column) -> float | None:
    """Distance of neighbouring values of a column; None for values that are no numbers and no moments."""
    kind = column.codec.kind
    if measured_parts(column):
        return _DAY
    cells = column.codec.cell_values
    if kind.word == "number":
        return 10.0**-kind.decimals
    return cells.spacing if isinstance(cells, Intervals) else None


class _Solution:
    """The values of a sum's parts in some rows, in steps of each part."""

    def __init__(
        self,
        checks: Checks,
        turn: Sum,
        parts: list[str],
        codes: Mapping[str, Codes],
        values: Arrays,
        whole: Collection[str] = (),
    ) -> None:
        self._checks, self._turn, self._parts, self._whole = checks, turn, parts, whole
        self._codes, self._values = codes, values
        columns, named = checks.columns, checks.rules.named
        weekly = [name for name in parts if "weekday" in measured_parts(columns[name])]
        self._weekly = {n for n in weekly if n == weekly[0] or part_name("weekday", n) in named}

    def _step(self, name: str) -> float:
        step = _WEEK if name in self._weekly else _step(self._checks.columns[name])
        assert step is not None
        return step

    def _ends(self, name: str) -> tuple[Floats, Floats]:
        column, codes = self._checks.columns[name], self._codes[name]
        cells, step = column.codec.cell_values, self._step(name)
        assert isinstance(cells, Intervals)
        codes = np.minimum(codes, len(cells.low) - 1)
        first, last = (0 * codes, 0 * codes - 1) if name in self._whole else (codes, codes)
        low, high = cells.low[first], cells.high[last]
        if measured_parts(column):
            begin = self._begin(name)
            return np.ceil((low - begin) / step), np.floor((high - begin) / step)
        return np.rint(low / step), np.rint(high / step)

    def _begin(self, name: str) -> Floats:
        """Step 0 of a moment with measured parts, in microseconds: it has the parts of its row."""
        moments = pc.fill_null(microseconds(self._values[name]), 0)
        return np.asarray(moments.to_numpy(zero_copy_only=False) % int(self._step(name)), np.float64)

    def _typed(self, name: str, steps: Floats) -> pa.Array:
        kind = self._checks.columns[name].codec.kind
        step, type_ = self._step(name), self._values[name].type
        if kind.word not in MOMENTS:
            return pa.array(np.round(steps * step, kind.decimals)).cast(type_)
        begin = self._begin(name) if measured_parts(self._checks.columns[name]) else 0.0
        micros = pa.array((steps * step + begin).astype(np.int64))
        moment = pa.time64("us") if kind.word == "time" else pa.timestamp("us")
        return micros.cast(moment).cast(type_)

    def _sum(self, steps: Mapping[str, Floats]) -> Floats:
        values = {**self._values, **{name: self._typed(name, own) for name, own in steps.items()}}
        return np.asarray(pc.fill_null(self._checks.computed(self._turn, values).cast(pa.float64()), np.nan))

    @cached_property
    def _least_and_most(self) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The steps of all parts at which the sum is least, and those at which it is most."""
        least = {name: self._ends(name)[0] for name in self._parts}
        most = dict(least)
        for name in self._parts:
            low, high = self._ends(name)
            rises = self._sum({**least, name: high}) >= self._sum({**least, name: low})
            least[name], most[name] = np.where(rises, low, high), np.where(rises, high, low)
        return least, most

    def drawn(self, rng: np.random.Generator) -> tuple[dict[str, pa.Array], Bad]:
        """Values of all parts, and the rows in which the sum lies in its cell by them."""
        least, most = self._least_and_most
        decimals = self._checks.columns[self._turn.target].codec.kind.decimals
        low, high = (ends / 10.0**decimals for ends in self._ends(self._turn.target))
        low, high = np.fmax(low, self._sum(least)), np.fmin(high, self._sum(most))
        wanted = np.asarray(pc.fill_null(self._values[self._turn.target].cast(pa.float64()), np.nan))
        again = low + rng.random(wanted.size) * (high - low)
        wanted = np.where((wanted < low) | (wanted > high), np.round(again, decimals), wanted)
        steps: dict[str, Floats] = {}
        for number, name in enumerate(self._parts):
            after = self._parts[number + 1 :]
            below, above = ({**steps, **{p: ends[p] for p in after}} for ends in (least, most))
            first = self._bisected(name, below, wanted, first=True)
            last = self._bisected(name, above, wanted, first=False)
            low, high = np.minimum(first, last), np.maximum(first, last)
            steps[name] = low + np.floor(rng.random(wanted.size) * (high - low + 1))
        values = {name: self._typed(name, own) for name, own in steps.items()}
        inside = self._sum(steps) == wanted
        for name in self._parts:
            if self._checks.columns[name].codec.kind.word not in MOMENTS:
                inside &= self._checks.fits(self._checks.columns[name], values[name])
        return values, inside

    def _bisected(self, name: str, others: Mapping[str, Floats], wanted: Floats, *, first: bool) -> Floats:
        """The step of a part that is furthest in one direction, of those at which the sum can be as wanted.

        Args:
            others: steps of the other parts: those at which the sum is least, or most, where they are open.
            first: True for the step at which the sum is largest but not above what is wanted; False for the
                one at which it is least but not below.
        """
        least, most = self._least_and_most
        start, end = (least, most) if first else (most, least)
        sign = 1.0 if first else -1.0
        way = np.where(end[name] >= start[name], 1.0, -1.0)
        # Steps from the start, at which the condition holds if it does anywhere.
        near, far = np.zeros(wanted.size), np.abs(end[name] - start[name])
        for _ in range(int(np.ceil(np.log2(max(float(far.max()), 1.0) + 1)))):
            middle = np.ceil((near + far) / 2)
            holds = sign * self._sum({**others, name: start[name] + way * middle}) <= sign * wanted
            near, far = np.where(holds, middle, near), np.where(holds, far, np.maximum(middle - 1, near))
        return np.asarray(start[name] + way * near)


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
        computed: the columns whose values need not lie in their cells.
    """

    codes: dict[str, Codes]
    values: dict[str, pa.Array]
    computed: frozenset[str]

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def take(self, spots: Codes) -> Batch:
        chosen = pa.array(spots)
        return Batch(
            {c: codes[spots] for c, codes in self.codes.items()},
            {c: values.take(chosen) for c, values in self.values.items()},
            self.computed,
        )

    def given(self, columns: Clique, rows: Codes, donors: Batch) -> Batch:
        """The same rows, some of them with the cells and values of others in some columns."""
        codes = {c: self.codes[c].copy() for c in columns}
        for c in columns:
            codes[c][rows] = donors.codes[c]
        values = {c: patched(self.values[c], rows, donors.values[c]) for c in columns}
        return Batch(self.codes | codes, self.values | values, self.computed | donors.computed)


@dataclass(frozen=True, eq=False)
class RuledRows(DrawnRows):
    """Rows of a synthetic table that obey its rules, and what was changed so that they do."""

    repairs: RuleRepairs


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
        marginal: the model's marginals, which decide the partners of tied values.
        measured: pairs of columns that were measured, whose counts repairs keep.
        shut: for some columns, cells that no row may have.
    """

    rules: Rules
    whole: Layout
    marginal: Marginal
    measured: frozenset[frozenset[str]] = frozenset()
    shut: Mapping[str, Bad] = field(default_factory=dict)

    def repaired(
        self, codes: Integers, rng: np.random.Generator, sequences: Sequences | None = None
    ) -> tuple[dict[str, Codes], RuleRepairs]:
        """Drawn rows in cells that obey the rules, as far as such cells were found, and what was changed."""
        wide = {c.name: codes[c.name].astype(np.int64, copy=False) for c in self.whole.columns}
        before = self.finer.fine(self.whole.reconciled(wide, rng), rng)
        kept: Clique = ()
        if sequences is not None:
            before, kept = sequences.cells(before, self.finer.layout.columns), sequences.kept
        begun = self._following(before, rng, kept)
        found, broken = repaired(self.obedience, before, begun, rng, self.measured, self.finer.cell_of, kept)
        cells = [self.finer.coarse({c: some[c] for c in self.rules.named}) for some in (before, found)]
        changed = {c: int((cells[0][c] != cells[1][c]).sum()) for c in self.rules.named}
        return found, RuleRepairs(len(next(iter(found.values()))), broken, changed)

    def _following(self, codes: dict[str, Codes], rng: np.random.Generator, kept: Clique) -> dict[str, Codes]:
        """Cells, of which a part that follows from the rest of its sum has those that do follow.

        A time of departure that is known by the hour follows from the schedule and the delay, known by the
        minute. If its counts stay as they were then, that is better than to change the schedule or the delay.
        """
        checks, sums = self.checks, self.checks.rules.sums
        leavers = tuple(c for c in self.leavers if c not in kept)
        if not leavers:
            return codes
        needed = dict.fromkeys(
            (*sums, *(c for turn in sums.values() for c in checks.rules.names(turn.formula)))
        )
        values = {c: self.decoded(c, codes[c], rng) for c in needed}
        values |= {c: own for c, own in self.moments(codes, rng).items() if c in needed}
        values = self.solved(codes, values, rng, leavers, kept)
        found = dict(codes)
        for name in leavers:
            cells = checks.cells(name, values[name], codes[name])
            counts = [np.bincount(c, minlength=checks.columns[name].size) for c in (cells, codes[name])]
            if np.abs(counts[0] - counts[1]).sum() <= 2 * _FOLLOWS * cells.size:
                found[name] = cells
        return found

    def moments(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, pa.Array]:
        return {p.column.name: p.values(codes, rng) for p in self.checks.layout.parted}

    def decoded(self, name: str, codes: Codes, rng: np.random.Generator) -> pa.Array:
        if name in self.pins:
            return self.pins[name].take(pa.array(codes))
        return self.checks.columns[name].decode(codes, rng)

    def solved(
        self,
        codes: Mapping[str, Codes],
        values: Arrays,
        rng: np.random.Generator,
        leavers: Clique = (),
        pinned: Clique = (),
    ) -> dict[str, pa.Array]:
        """Values of which each sum lies in its own cell, where its parts allow."""
        found, kept, sums = dict(values), {*self.pins, *pinned}, self.checks.rules.sums
        # A sum of sums first chooses values of these, inside their own cells.
        for turn in reversed(list(sums.values())):
            if not sums.keys().isdisjoint(references(turn.formula)):
                found = solved_for_parts(self.checks, turn, codes, found, rng, kept)
        for turn in sums.values():
            found = solved_for_parts(self.checks, turn, codes, found, rng, {*kept, *sums}, leavers)
            # A part of two sums is solved for the first.
            kept |= set(references(turn.formula))
        return found

    @cached_property
    def leavers(self) -> Clique:
        """The parts of sums that may leave their cells, as these decide nothing else."""
        sums, tied = self.checks.rules.sums, {c for pair in self.checks.rules.pairs for c in pair}
        parts = {c for turn in sums.values() for c in references(turn.formula)} - sums.keys() - tied
        of = ((name, column) for name, column in self.checks.columns.items() if name in parts)
        return tuple(name for name, column in of if _solvable(column) and not measured_parts(column))

    @cached_property
    def finer(self) -> Finer:
        return Finer.of(self.rules, self.whole, self.marginal)

    @cached_property
    def checks(self) -> Checks:
        return Checks(self.rules, self.finer.layout)

    @cached_property
    def obedience(self) -> Obedience:
        finer = self.finer.cell_of
        shut = {c: closed[finer[c]] if c in finer else closed for c, closed in self.shut.items()}
        return Obedience(self.rules, self.finer.layout, self.partners, shut)

    @cached_property
    def partners(self) -> tuple[tuple[Tie, Codes], ...]:
        checks = self.checks
        return partners_of(checks.rules, checks.layout, checks.grids, self.marginal)

    @cached_property
    def pins(self) -> Mapping[str, pa.Array]:
        columns = self.checks.columns
        # One value a cell, in all pairs of columns that have one mapping, and in rows that are drawn later.
        return {
            name: columns[name].decode(np.arange(columns[name].size), np.random.default_rng(0))
            for name in self.checks.rules.pinned
        }


@dataclass(frozen=True, eq=False)
class Drawing:
    """The drawing of one piece of a table.

    Attributes:
        tied: the rules, and the values that all pieces have in common.
        sequences: the units of the rows, if these follow each other.
    """

    tied: Tied
    draw: Draw
    rng: np.random.Generator
    sequences: Sequences | None = None

    @property
    def checks(self) -> Checks:
        return self.tied.checks

    @property
    def steady(self) -> Clique:
        """The columns whose values no rule changes."""
        return () if self.sequences is None else self.sequences.steady

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
        batch, bad = self._batch(first, self.sequences)
        if self.sequences is not None:
            batch = self._completed(batch, bad, first, self.sequences.kept) if bad.any() else batch
            taken = self.sequences.replaced(batch.codes, batch.values, bad, self.rng)
            batch, bad = batch.take(taken), bad[taken]
        if bad.any():
            batch = self._completed(batch, bad, first)
        codes = finer.coarse(batch.codes)
        cells = {c: own for c, own in codes.items() if c not in batch.computed}
        return RuledRows(layout.whole(codes, batch.values), cells, repairs)

    def _completed(self, batch: Batch, bad: Bad, first: dict[str, Codes], kept: Clique = ()) -> Batch:
        """The rows, of which those that violate a rule take values of rows that obey.

        Args:
            bad: bool[rows], those that violate a rule; it is true afterwards for those that still do.
            kept: columns whose values stay.
        """
        good = batch.take(np.flatnonzero(~bad))
        for _ in range(ROW_ROUNDS):
            if good.rows:
                break
            more, unlike = self._batch(self.tied.repaired(self.draw(_SOME), self.rng)[0])
            good = more.take(np.flatnonzero(~unlike))
        if not good.rows:
            bad[:] = False
            return self._of_a_witness(first)
        for _ in range(ROW_ROUNDS if kept else 1):
            rows = np.flatnonzero(bad)
            if not rows.size:
                break
            for columns, some in self._by_component(batch, rows):
                free = tuple(c for c in columns if c not in kept)
                batch = batch.given(free, some, good.take(self.rng.integers(0, good.rows, some.size)))
            bad[rows] = bool(kept) and self._violating(batch.take(rows))
        return batch

    def _violating(self, batch: Batch) -> Bad:
        checks, (codes, alone) = self.checks, self._tied(batch.codes)
        values, unfit = checks.summed(batch.values)
        return _any(checks.violating_cells(codes) | checks.violating_values(codes, values) | alone, unfit)

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
        values |= self.tied.moments(codes, self.rng)
        return Batch(codes, values, frozenset((*found.codes, *checks.rules.sums)))

    def _batch(self, codes: dict[str, Codes], sequences: Sequences | None = None) -> tuple[Batch, Bad]:
        checks = self.checks
        codes, alone = self._tied(checks.layout.reconciled(codes, self.rng))
        bad = checks.violating_cells(codes) | alone
        values = {c: self.tied.decoded(c, codes[c], self.rng) for c in checks.columns}
        finer = self.tied.finer
        values = finer.inside.within_bins(finer.coarse(codes), values, self.rng)
        values = values if sequences is None else sequences.values(codes, values, self.rng)
        values, unfit = checks.summed(self.tied.solved(codes, values, self.rng, pinned=self.steady))
        violated = ~bad & _any(checks.violating_values(codes, values), unfit)
        off = np.flatnonzero(~bad & ~violated & checks.outside(codes, values))
        codes, values = self._leaving(codes, values, off)
        wrong = np.flatnonzero(violated | (~bad & checks.outside(codes, values)))
        values, still = self._within_cells(codes, values, wrong, violated)
        bad[still] = True
        return Batch(codes, values, frozenset(checks.rules.sums)), bad

    def _leaving(
        self, codes: dict[str, Codes], values: dict[str, pa.Array], rows: Codes
    ) -> tuple[dict[str, Codes], dict[str, pa.Array]]:
        """Cells and values, of which rows whose sum lies outside of its cell have a part in another one.

        An hour of departure, an hour and minute of schedule and a delay may agree in their cells, and in no
        values. The part's counts move less than those of a sum that is computed of what doesn't agree.
        """
        if not rows.size:
            return codes, values
        leavers = tuple(c for c in self.tied.leavers if c not in self.steady)
        checks, taken = self.checks, pa.array(rows)
        of = {c: some[rows] for c, some in codes.items()}
        again = {c: values[c].take(taken) for c in (*checks.undecided, *checks.rules.sums)}
        again |= {c: self.tied.decoded(c, of[c], self.rng) for c in checks.rules.sums}
        again, unfit = checks.summed(self.tied.solved(of, again, self.rng, leavers, self.steady))
        of |= {c: checks.cells(c, again[c], of[c]) for c in leavers}
        bad = _any(checks.violating_cells(of) | checks.violating_values(of, again), unfit)
        right = np.flatnonzero(~bad & ~checks.outside(of, again))
        codes |= {c: codes[c].copy() for c in leavers}
        for name in leavers:
            codes[name][rows[right]] = of[name][right]
        moved = {c: patched(values[c], rows[right], again[c].take(pa.array(right))) for c in again}
        return codes, values | moved

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

    def _within_cells(
        self, codes: dict[str, Codes], values: dict[str, pa.Array], wrong: Codes, violated: Bad
    ) -> tuple[dict[str, pa.Array], Codes]:
        """Values, drawn again within their cells for some rows, and the rows still violating.

        Args:
            wrong: the rows to be drawn again: they violate a rule, or have a sum outside of its cell.
            violated: those that violate a rule, bool[rows].
        """
        checks = self.checks
        fixed = {*self.tied.pins, *self.steady}
        redrawn = [c for c in checks.undecided if c not in fixed]
        needed = (*checks.undecided, *checks.rules.sums)
        spots: list[Codes] = []
        drawn: list[Arrays] = []
        for turn in range(VALUE_ROUNDS + 1):
            if not wrong.size:
                break
            last = turn == VALUE_ROUNDS
            of = {c: some[wrong] for c, some in codes.items()}
            taken = pa.array(wrong)
            again = {
                c: self.tied.decoded(c, of[c], self.rng) if c in redrawn else values[c].take(taken)
                for c in needed
            }
            again |= {c: self.tied.decoded(c, of[c], self.rng) for c in checks.rules.sums}
            moments = self.tied.moments(of, self.rng).items()
            again |= {c: own for c, own in moments if c in again and c not in self.steady}
            again, unfit = checks.summed(self.tied.solved(of, again, self.rng, pinned=self.steady))
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
        rows = np.concatenate(spots)
        again = {c: patched(values[c], rows, pa.concat_arrays([d[c] for d in drawn])) for c in drawn[0]}
        return values | again, wrong


def _any(bad: Bad, others: Mapping[int, Bad]) -> Bad:
    return np.logical_or.reduce([bad, *others.values()])
