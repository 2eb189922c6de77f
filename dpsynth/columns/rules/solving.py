"""Parts of sums, solved inside their cells: the sum then lies in the cell that was drawn for it.

Parts that are drawn freely inside their cells would come to any sum of a wide range. So the sum is drawn from
the part of its own cell that its parts can reach. Then each part is drawn from the values at which the parts
after it can still reach that sum, the widest cell last. The ends of such a range are found by bisection,
which needs no inverse of the formula: it has only to rise or to fall in each part, inside of a cell. A moment
whose hour is measured moves by whole days, and by whole weeks if its weekday is measured too. Of two moments
the weekday of one follows from the other, so it is kept for the first, and where rules name it.

Invariant: a part keeps its cell, and a row of which the parts can't reach the sum's cell keeps its values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.calendar_parts import measured_parts, part_name
from dpsynth.columns.cell_values import Intervals
from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.expression import references
from dpsynth.columns.formula_kinds import MOMENTS
from dpsynth.columns.formulas import microseconds
from dpsynth.columns.rules.checking import Arrays, Bad, Checks
from dpsynth.columns.rules.rule import Sum

Floats = NDArray[np.float64]

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
) -> dict[str, pa.Array]:
    """Values of a sum's parts and of its column, changed where that puts the sum into its own cell.

    Args:
        checks: the rules, and the layout of the table.
        turn: the sum.
        codes: int64[rows], cells.
        values: typed values inside these; sums before this one are computed.
        rng: chooses among the values that solve it.
        pinned: columns whose values stay.
    """
    target = values[turn.target]
    now = checks.computed(turn, values)
    left = np.asarray(pc.fill_null(pc.not_equal(now, target), False))
    parts = _narrowest_first(checks, turn, codes, pinned)
    for name in parts:
        left &= codes[name] < len(checks.columns[name].codec.labels)
    found, rows = dict(values), np.flatnonzero(left)
    if parts and rows.size:
        needed = (*checks.rules.names(turn.formula, into_sums=False), turn.target)
        some = {c: values[c].take(pa.array(rows)) for c in needed}
        of = {c: codes[c][rows] for c in (*parts, turn.target)}
        solution, right = _Solution(checks, turn, parts, of, some).drawn(rng)
        order = np.arange(len(target))
        order[rows[right]] = len(target) + np.flatnonzero(right)
        for name in parts:
            found[name] = pa.concat_arrays([values[name], solution[name]]).take(pa.array(order))
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
        if column is None or name in pinned or name in checks.rules.sums:
            continue
        cells = column.codec.cell_values
        if not isinstance(cells, Intervals) or cells.single or _step(column) is None:
            continue
        if "month" in measured_parts(column):
            continue
        has = codes[name] < len(cells.low)
        widths[name] = float((cells.high - cells.low)[codes[name][has]].sum())
    return sorted(widths, key=lambda name: widths[name])


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
        self, checks: Checks, turn: Sum, parts: list[str], codes: Mapping[str, Codes], values: Arrays
    ) -> None:
        self._checks, self._turn, self._parts = checks, turn, parts
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
        low, high = cells.low[codes], cells.high[codes]
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
            name: the part.
            others: steps of the other parts: those at which the sum is least, or most, where they are open.
            wanted: the sum.
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
