"""Refinement: rows of a table change, value by value, until the table's marginals are near their targets.

A sample follows its model up to rounding, and a model holds what fits in its junction tree. A target is the
estimate of a marginal from anywhere: of a pair of columns that the tree doesn't hold, or of one where
rounding went astray. Column by column, in small random batches, each row takes the value that lowers

    L = sum over targets of weight x sum over cells (rows - target)^2

most if it moves alone. All of a batch's rows together would overshoot. So each moves with the probability
at which the expected L is least; that is a quadratic function of the probability, known exactly.

Invariant: residuals and weights are whole numbers far below 2^53, so every sum is exact in any order. A
table, its targets and a seed give the same refined table on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique, Domain
from dpsynth.model.factor import Array
from dpsynth.model.rounding import BITS, Codes, bits, phases, position_of, shuffled
from dpsynth.model.zeros import Zeros

WIDEST = 3
"""Largest number of columns of a target."""
UNIT = 16
"""Parts of a row to which targets are rounded."""
_HEAVIEST = 1 << 10
"""The largest weight as a whole number."""
_MOST = 1 << 27
"""Bound on the rows of a cell: 2^27 x 16 x 2^10 is 2^41, so sums of 16 views and more stay below 2^45."""
_FORBIDDEN = 2.0**46
"""Score of a forbidden cell, above every sum of residuals."""

Places = NDArray[np.int64]
_Cell = tuple[tuple[int, int, int, int, int, int], float]


@dataclass(frozen=True, eq=False)
class TableTarget:
    """The wanted counts of a marginal.

    Attributes:
        clique: one to three columns.
        counts: float64, shape ``domain.shape(clique)``: rows of each cell.
        weight: weight of a squared difference of rows, above 0; only ratios of weights matter.
    """

    clique: Clique
    counts: Array
    weight: float


@dataclass(frozen=True)
class Effort:
    """The work of a refinement.

    Attributes:
        passes: number of times that every row may change in every column.
        batches: number of batches of a pass, of at least ``least`` rows.
        least: smallest number of rows of a batch.
    """

    passes: int = 3
    batches: int = 200
    least: int = 64


def refined(
    domain: Domain,
    codes: Mapping[str, Codes],
    wanted: Sequence[TableTarget],
    rng: np.random.Generator,
    *,
    effort: Effort = Effort(),
    fixed: Collection[str] = (),
    zeros: Zeros | None = None,
) -> dict[str, Codes]:
    """A table whose marginals are nearer to their targets.

    Memory: 4 bytes a row and column; 8 bytes a cell of each target for each of its columns.

    Args:
        domain: the columns.
        codes: int64[rows] of every column.
        wanted: the targets; several of one clique count together.
        rng: generator of this post-processing step, of 64-bit words.
        effort: the work.
        fixed: columns that don't change.
        zeros: forbidden cells. No row moves into one; a row that lies in one stays.

    Raises:
        ValueError: a target has more than three columns, another shape than its clique, or counts that are
            negative or too large.
    """
    rows = len(next(iter(codes.values())))
    moving = [c for c in domain.columns if c not in fixed and any(c in t.clique for t in wanted)]
    if not rows or not moving or not effort.passes:
        return dict(codes)
    table = _Table.of(domain, codes, wanted, zeros or {})
    places = [domain.columns.index(c) for c in moving]
    size = max(effort.least, -(-rows // effort.batches))
    for _ in range(effort.passes):
        order = shuffled(np.zeros(rows, dtype=np.int64), 1, rng)
        for begin in range(0, rows, size):
            batch = np.sort(order[begin : begin + size])
            some = table.codes[batch]
            for column in np.argsort(bits(rng, len(places)), kind="stable").tolist():
                table.move(places[column], some, rng)
            table.codes[batch] = some
    return {c: table.codes[:, i].astype(np.int64) for i, c in enumerate(domain.columns)}


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of residual tables, one for each of some cliques, as linear functions of a row's codes.

    A cell's place is ``begin`` + first code x its step + second code x its step + own code x ``step``.

    Attributes:
        first, second: int64[cliques], places of the other columns; the place after the last column, whose
            code is always 0, stands for none.
        first_step, second_step, step, begin: int64[cliques].
        weights: float64[cliques].
    """

    first: Places
    second: Places
    first_step: Places
    second_step: Places
    step: Places
    begin: Places
    weights: Array

    @classmethod
    def of(cls, listed: Sequence[_Cell]) -> _Cells:
        """Cells from a list of (first, second, their steps, step, begin), weight."""
        whole = np.array([places for places, _ in listed], dtype=np.int64).reshape(-1, 6).T
        first, second, first_step, second_step, step, begin = whole
        weights = np.array([weight for _, weight in listed], dtype=np.float64)
        return cls(first, second, first_step, second_step, step, begin, weights)

    @cached_property
    def _stepped(self) -> bool:
        return bool((self.first_step != 1).any())

    @cached_property
    def _wide(self) -> bool:
        return bool(self.second_step.any())

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def base(self, codes: NDArray[np.int32]) -> Places:
        """The place of each clique's cell for an own code of 0, int64[rows, cliques]."""
        found = codes[:, self.first].astype(np.int64)
        if self._stepped:
            found *= self.first_step
        if self._wide:
            found += codes[:, self.second] * self.second_step
        found += self.begin
        return found


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of codes, with the residuals of its targets.

    Each target has one table of residuals for each of its columns: there the cells of that column's values
    lie side by side, so that all its values are scored at once.

    Attributes:
        codes: int32[rows, columns + 1]; the last column is 0.
        sizes: number of values of each column.
        residuals: float64, weight x (rows - target) in parts of a row, for all columns one after another.
        changes: float64, zeros of the same length, for the changes of a batch.
        starts: the first place of each column's residuals, and the end.
        own: the cells of each column's own residuals; places there count rows of residuals.
        echoes: the cells in other columns' residuals that change when a column does.
    """

    codes: NDArray[np.int32]
    sizes: tuple[int, ...]
    residuals: Array
    changes: Array
    starts: tuple[int, ...]
    own: tuple[_Cells, ...]
    echoes: tuple[_Cells, ...]

    @classmethod
    def of(
        cls, domain: Domain, codes: Mapping[str, Codes], wanted: Sequence[TableTarget], zeros: Zeros
    ) -> _Table:
        """The table and its residuals."""
        columns = domain.columns
        place = {c: i for i, c in enumerate(columns)}
        rows = len(codes[columns[0]])
        whole = np.zeros((rows, len(columns) + 1), dtype=np.int32)
        for i, c in enumerate(columns):
            whole[:, i] = codes[c]
        heaviest = max(t.weight for t in wanted)
        tables: list[tuple[tuple[int, ...], Array, float]] = []
        for target in wanted:
            weight = float(max(1, round(target.weight / heaviest * _HEAVIEST)))
            tables.append((*_residuals(domain, codes, target, weight), weight))
        for clique, closed in zeros.items():
            if len(clique) <= WIDEST:
                tables.append((tuple(place[c] for c in clique), np.where(closed, _FORBIDDEN, 0.0), 0.0))
        return cls._laid_out(whole, domain.shape(columns), tables)

    @classmethod
    def _laid_out(
        cls,
        codes: NDArray[np.int32],
        sizes: tuple[int, ...],
        tables: Sequence[tuple[tuple[int, ...], Array, float]],
    ) -> _Table:
        none, starts, parts = len(sizes), [0], []
        own: list[list[_Cell]] = []
        echoes: list[list[_Cell]] = [[] for _ in sizes]
        for column, size in enumerate(sizes):
            own.append([])
            lines = 0
            for clique, values, weight in tables:
                if column not in clique:
                    continue
                others = [c for c in clique if c != column]
                first, second = (*others, none, none)[:2]
                many = sizes[second] if second != none else 1
                steps = {second: 1, first: many}
                axes = [clique.index(c) for c in (*others, column)]
                parts.append(values.transpose(axes).reshape(-1))
                own[-1].append(((first, second, steps[first], int(second != none), 1, lines), weight))
                for other in others if weight else ():
                    left = next((c for c in others if c != other), none)
                    begin = starts[-1] + lines * size
                    step = steps[other] * size
                    left_step = steps.get(left, 0) * size
                    echoes[other].append(((column, left, 1, left_step, step, begin), weight))
                lines += parts[-1].size // size
            starts.append(starts[-1] + lines * size)
        residuals = np.concatenate(parts)
        return cls(
            codes,
            sizes,
            residuals,
            np.zeros_like(residuals),
            tuple(starts),
            tuple(map(_Cells.of, own)),
            tuple(map(_Cells.of, echoes)),
        )

    def move(self, column: int, codes: NDArray[np.int32], rng: np.random.Generator) -> None:
        """Give some rows another value of a column, where that lowers L.

        Args:
            column: place of the column.
            codes: int32[rows, columns + 1], a copy of rows of the table, which changes with the residuals.
            rng: generator.
        """
        own, size = self.own[column], self.sizes[column]
        part = slice(self.starts[column], self.starts[column + 1])
        old = codes[:, column].astype(np.int64)
        lines = own.base(codes)
        scores = _summed(self.residuals[part].reshape(-1, size), lines)
        new = scores.argmin(axis=1)
        everyone = np.arange(len(codes))
        was = scores[everyone, old]
        falls = was - scores[everyone, new]
        # A row that moves alone changes L by weight (2 - 2 fall), as two cells of each clique change by one.
        movers = np.flatnonzero((falls > UNIT * own.total) & (was < _FORBIDDEN / 2))
        if movers.size:
            places = self.starts[column] + lines[movers] * size
            moves = _Moves(movers, codes[movers], old[movers], new[movers], places)
            taken = moves.some(self._taken(column, moves, float(falls[movers].sum()), rng))
            self._apply(column, taken)
            codes[taken.rows, column] = taken.new

    def _taken(self, column: int, moves: _Moves, fall: float, rng: np.random.Generator) -> Places:
        """The moves that are made: each with the probability t at which the expected L is least.

        With D the changes of all cells if all rows move, and A the sum of what each would add alone,

            E L(t) = L - 2 t fall + t^2 (sum of weight D^2 - A) + t A.
        """
        own = self.own[column]
        before, after = (moves.places + codes[:, None] for codes in (moves.old, moves.new))
        np.add.at(self.changes, before.reshape(-1), -1.0)
        np.add.at(self.changes, after.reshape(-1), 1.0)
        together = float(((self.changes[after] - self.changes[before]) * own.weights).sum())
        self.changes[before] = 0.0
        self.changes[after] = 0.0
        alone = 2.0 * own.total * len(moves.rows)
        slope, curve = 2.0 * fall / UNIT - alone, 2.0 * (together - alone)
        if slope >= curve:
            return np.arange(len(moves.rows))
        chance = np.uint64(int(slope / curve * 2.0**BITS))
        return np.flatnonzero(phases(rng, len(moves.rows)) < chance)

    def _apply(self, column: int, moves: _Moves) -> None:
        """Make some moves in the residuals of every column."""
        own, echo = self.own[column], self.echoes[column]
        if not moves.rows.size:
            return
        weights = np.broadcast_to(UNIT * own.weights, moves.places.shape)
        np.add.at(self.residuals, moves.places + moves.old[:, None], -weights)
        np.add.at(self.residuals, moves.places + moves.new[:, None], weights)
        if echo.begin.size:
            base = echo.base(moves.codes)
            weights = np.broadcast_to(UNIT * echo.weights, base.shape)
            np.add.at(self.residuals, base + moves.old[:, None] * echo.step, -weights)
            np.add.at(self.residuals, base + moves.new[:, None] * echo.step, weights)


@dataclass(frozen=True, eq=False)
class _Moves:
    """Rows that may change in one column.

    Attributes:
        rows: int64[moves], places among the rows of a batch.
        codes: int32[moves, columns + 1], their codes before.
        old, new: int64[moves], codes of the column.
        places: int64[moves, cliques], the cell of each of the column's cliques for a code of 0.
    """

    rows: Places
    codes: NDArray[np.int32]
    old: Places
    new: Places
    places: Places

    def some(self, chosen: Places) -> _Moves:
        """Some of the moves."""
        if chosen.size == self.rows.size:
            return self
        rows, old, new = (part[chosen] for part in (self.rows, self.old, self.new))
        return _Moves(rows, self.codes[chosen], old, new, self.places[chosen])


def _summed(residuals: Array, lines: Places) -> Array:
    """Sums of some lines of a table for each row, float64[rows, values]."""
    from scipy.sparse import csr_array

    rows, each = lines.shape
    ends = np.arange(0, lines.size + 1, each, dtype=np.int32)
    chosen = csr_array(
        (np.ones(lines.size), lines.reshape(-1).astype(np.int32), ends), (rows, len(residuals))
    )
    return np.asarray(chosen @ residuals)


def _residuals(
    domain: Domain, codes: Mapping[str, Codes], target: TableTarget, weight: float
) -> tuple[tuple[int, ...], Array]:
    """The places of a target's columns, and weight x (rows - target) in parts of a row."""
    clique, counts = target.clique, target.counts
    shape = domain.shape(clique)
    if not 1 <= len(clique) <= WIDEST or counts.shape != shape:
        raise ValueError(f"the target of {clique} must have one to three columns and the shape {shape}")
    number = len(codes[clique[0]])
    if not (counts.min() >= 0 and max(counts.max(), number) < _MOST):
        raise ValueError(
            f"the target of {clique} must have counts from 0 to {_MOST - 1}, no more rows either"
        )
    members = tuple(domain.columns.index(c) for c in clique)
    cell = position_of(codes, clique, domain, number)
    rows = np.bincount(cell, minlength=counts.size).reshape(shape)
    return members, np.asarray(weight * (UNIT * rows - np.rint(UNIT * counts)), dtype=np.float64)
