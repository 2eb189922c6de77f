"""Refinement: rows of a table change, value by value, until the table's marginals are near their targets.

A target is an estimate of a marginal: the model's own, or a better one of a pair that the tree does not hold.
The loss is

    L = sum over targets of weight x sum over cells (rows - target)^2

Columns are changed in turn, in small random batches of rows. For each row of a batch the new value is the one
that lowers L most if this row alone moves. Only the rows with the largest gains are tried, as many as proved
right in earlier batches. Since all of them together may overshoot, each moves with the probability that
minimises the expected L, which is a quadratic function of it, known exactly.

A column is tried if its last gain in L, divided by its work, is above the mean of all columns; otherwise in
one of a few batches. The refinement ends when its gains are small compared to the targets' own errors.

Invariant: residuals are whole numbers far below 2^53, times whole weights, so every sum is exact in any
order. A table, its targets and a seed give the same refined table on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain, cells_of
from dpsynth.columns.workload import unions
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import Zeros
from dpsynth.model.rounding import BITS, Codes, bits, permuted, phases
from dpsynth.work_shares import telling

_FIRST_SHARE, _LEAST_SHARE = 0.3, 0.02
"""The part of the rows that should move that is tried at first, and the least one."""
_TOO_FEW, _TOO_MANY, _MORE, _FEWER = 0.9, 0.6, 1.3, 0.8
"""Shares of the tried rows that move, beyond which more or fewer are tried next, and by what factor."""
_CALL = 10
"""The work for a row and a clique, beside that for each value of the column, in scores."""
_ANYWAY = 16
"""A column is tried in one of so many batches, whatever it lowered L by before."""
_RECENT = 0.5
"""Weight of the last batch in what a column lowers L by for its work."""
_FORBIDDEN = 2.0**46
"""Score of a forbidden cell, above every sum of residuals."""

Places = NDArray[np.int64]
_Cell = tuple[tuple[int, ...], float]

WIDEST = 5
"""Largest number of columns of a target."""
_WIDEST_CLOSED = 3
"""Largest number of columns of forbidden cells that moves of single values are kept out of."""


@dataclass(frozen=True)
class Effort:
    """The work of a refinement, at most.

    Attributes:
        passes: the work of trying every row in every column so many times.
        batches: number of batches into which all rows are divided, of ``least`` to ``most`` rows each.
        laps: number of parts of the work of a pass.
        enough: the refinement ends after a lap that lowers L by less than this part of the error that the
            targets have themselves; 0 for no early end.
        scores: number of scores computed, as far as one lap does with it: a value of a column has one in each
            row and target, and a row and target are as much work as 10 more.
    """

    passes: int = 3
    batches: int = 200
    least: int = 64
    most: int = 4096
    laps: int = 20
    enough: float = 0.002
    scores: float = 1.8e10


USUAL = Effort()
"""The work of a refinement that nobody limits further."""


def refined(
    domain: Domain,
    codes: Mapping[str, Codes],
    wanted: Sequence[TableTarget],
    rng: np.random.Generator,
    *,
    effort: Effort = USUAL,
    fixed: Collection[str] = (),
    zeros: Zeros | None = None,
) -> dict[str, Codes]:
    """A table whose marginals are nearer to their targets.

    Memory: 1 or 2 bytes a row and column, 8 in the result; 8 bytes a cell of each target for each of its
    columns.

    Args:
        codes: int64[rows] of every column.
        wanted: the targets; several of one clique count together.
        rng: generator of this post-processing step, of 64-bit words.
        fixed: columns that don't change.
        zeros: forbidden cells. No row moves into one; a row that lies in one stays.

    Raises:
        ValueError: a target has more than five columns, another shape than its clique, or counts that are
            negative or too large.
    """
    rows = len(next(iter(codes.values())))
    moving = [c for c in domain.columns if c not in fixed and any(c in t.clique for t in wanted)]
    if not rows or not moving or not effort.passes:
        return dict(codes)
    table = _Table.of(domain, codes, wanted, zeros or {})
    places = np.array([domain.columns.index(c) for c in moving], dtype=np.int64)
    size = min(max(effort.least, -(-rows // effort.batches)), effort.most)
    batches = _batches(rows, size, rng)
    lap = -(-rows // effort.laps) * int(table.work[places].sum())
    laps = min(effort.passes * effort.laps, max(int(effort.scores // lap), 1))
    tell = telling("refining", laps)
    for _ in range(laps):
        fall = done = 0.0
        while done < lap:
            lowered, work = table.refine(next(batches), places, rng)
            fall, done = fall + lowered, done + work
        tell(1)
        if fall < effort.enough * table.error:
            break
    return table.rows(domain, codes)


def _batches(rows: int, size: int, rng: np.random.Generator) -> Iterator[Places]:
    """Batches of rows at random, without end; all rows come once before one comes again."""
    while True:
        order = permuted(rows, rng)
        yield from (np.sort(order[begin : begin + size]) for begin in range(0, rows, size))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of residual tables, one for each of some cliques, as linear functions of a row's codes.

    A cell's place is ``begin`` + the sum of the other codes x their steps + own code x ``step``.

    Attributes:
        others: int64[most columns of a clique - 1, cliques], places of the other columns; the place after the
            last column, whose code is always 0, stands for none.
        steps: int64 of the same shape; 1 for a first column that is none, and 0 for a later one.
    """

    others: Places
    steps: Places
    step: Places
    begin: Places
    weights: Array

    @classmethod
    def of(cls, listed: Sequence[_Cell]) -> _Cells:
        whole = np.array([places for places, _ in listed], dtype=np.int64).reshape(-1, 2 * WIDEST).T
        others, steps, step, begin = whole[: WIDEST - 1], whole[WIDEST - 1 : -2], whole[-2], whole[-1]
        used = max(int(steps.any(axis=1).sum()), 1)
        weights = np.array([weight for _, weight in listed], dtype=np.float64)
        return cls(others[:used], steps[:used], step, begin, weights)

    @cached_property
    def _stepped(self) -> bool:
        return bool((self.steps[0] != 1).any())

    @cached_property
    def total(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def _listed(self) -> list[tuple[list[tuple[int, int]], int]]:
        others, steps = self.others.T.tolist(), self.steps.T.tolist()
        along = [
            [(first, step), *((c, by) for c, by in zip(rest, far, strict=True) if by)]
            for (first, *rest), (step, *far) in zip(others, steps, strict=True)
        ]
        return list(zip(along, self.begin.tolist(), strict=True))

    def sums(self, lines: NDArray[np.number], codes: Places) -> NDArray[np.number]:
        """The sum of the lines of residuals of each row, one line a clique: shape (rows, values).

        ``codes`` is int64[columns + 1, rows].
        """
        found = np.zeros((codes.shape[1], lines.shape[1]), lines.dtype)
        for ((first, step), *rest), begin in self._listed:
            line = codes[first] if step == 1 else codes[first] * step
            for other, by in rest:
                line = line + (codes[other] if by == 1 else codes[other] * by)
            found += lines[begin:].take(line, axis=0)
        return found

    def base(self, codes: Places) -> Places:
        """The place of each clique's cell for an own code of 0, int64[rows, cliques].

        ``codes`` is int64[rows, columns + 1].
        """
        found = codes.take(self.others[0], axis=1)
        if self._stepped:
            found *= self.steps[0]
        for other, step in zip(self.others[1:], self.steps[1:], strict=True):
            found += codes.take(other, axis=1) * step
        found += self.begin
        return found


def _places(others: Sequence[int], steps: Sequence[int], step: int, begin: int, none: int) -> tuple[int, ...]:
    """The places of ``_Cells`` for one clique; ``none`` is the place after the last column."""
    spare = WIDEST - 1 - len(others)
    steps = [*steps, *([0] * spare)] if others else [1, *([0] * (spare - 1))]
    return (*others, *([none] * spare), *steps, step, begin)


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of codes, with the residuals of its targets.

    Each target has one table of residuals for each of its columns: there the cells of that column's values
    lie side by side, so that all its values are scored at once.

    Attributes:
        codes: integers[rows, columns + 1]; the last column is 0.
        residuals: float64, weight x (rows - target) in parts of a row, for all columns one after another.
        starts: the first place of each column's residuals, and the end.
        own: the cells of each column's own residuals; places there count rows of residuals.
        echoes: the cells in other columns' residuals that change when a column does.
        error: L for counts as wrong as the targets are.
        shares: float64[columns], the part of the rows that should move that is tried next.
        work: int64[columns], the scores of a row.
        yields: float64[columns], by how much L fell of late for the work on each column; infinity before.
    """

    codes: NDArray[np.integer]
    sizes: tuple[int, ...]
    residuals: Array
    starts: tuple[int, ...]
    own: tuple[_Cells, ...]
    echoes: tuple[_Cells, ...]
    error: float
    shares: Array
    work: Places
    yields: Array

    @classmethod
    def of(
        cls, domain: Domain, codes: Mapping[str, Codes], wanted: Sequence[TableTarget], zeros: Zeros
    ) -> _Table:
        columns = domain.columns
        place = {c: i for i, c in enumerate(columns)}
        rows = len(codes[columns[0]])
        kind = np.min_scalar_type(max(domain.shape(columns)))
        whole = np.zeros((len(columns) + 1, rows), dtype=kind)
        for i, c in enumerate(columns):
            whole[i] = codes[c]
        heaviest = max(t.weight for t in wanted)
        tables: list[tuple[tuple[int, ...], Array, float]] = []
        error = 0.0
        counts = counts_of(domain, dict(zip(columns, whole, strict=False)), wanted)
        for target in wanted:
            weight = float(max(1, round(target.weight / heaviest * _HEAVIEST)))
            members, residuals = residuals_of(domain, target, counts[target.clique], weight)
            tables.append((members, residuals, weight))
            if target.variance is None:
                # It is that of a draw's own model: its draw tells the scale.
                error += float(np.square(residuals).sum()) / (weight * UNIT**2)
            else:
                error += weight * target.variance * residuals.size
            residuals += weight * np.where(target.counts > 0, 0.0, round(UNIT * target.below))
        for clique, closed in zeros.items():
            if len(clique) <= _WIDEST_CLOSED:
                tables.append((tuple(place[c] for c in clique), np.where(closed, _FORBIDDEN, 0.0), 0.0))
        return cls._laid_out(np.ascontiguousarray(whole.T), domain.shape(columns), tables, error)

    @classmethod
    def _laid_out(
        cls,
        codes: NDArray[np.integer],
        sizes: tuple[int, ...],
        tables: Sequence[tuple[tuple[int, ...], Array, float]],
        error: float,
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
                steps = [prod(sizes[c] for c in others[i + 1 :]) for i in range(len(others))]
                axes = [clique.index(c) for c in (*others, column)]
                parts.append(values.transpose(axes).reshape(-1))
                own[-1].append((_places(others, steps, 1, lines, none), weight))
                begin = starts[-1] + lines * size
                for at, other in enumerate(others) if weight else ():
                    rest, far = others[:at] + others[at + 1 :], steps[:at] + steps[at + 1 :]
                    along = [1, *(step * size for step in far)]
                    places = _places([column, *rest], along, steps[at] * size, begin, none)
                    echoes[other].append((places, weight))
                lines += parts[-1].size // size
            starts.append(starts[-1] + lines * size)
        residuals = np.concatenate(parts)
        mine, theirs = (tuple(map(_Cells.of, listed)) for listed in (own, echoes))
        shares = np.full(len(sizes), _FIRST_SHARE)
        work = np.array([(size + _CALL) * cells.begin.size for size, cells in zip(sizes, mine, strict=True)])
        yields = np.full(len(sizes), np.inf)
        return cls(codes, sizes, residuals, tuple(starts), mine, theirs, error, shares, work, yields)

    def rows(self, domain: Domain, before: Mapping[str, Codes]) -> dict[str, Codes]:
        found = {c: self.codes[:, i] for i, c in enumerate(domain.columns)}
        return {
            c: before[c] if np.array_equal(before[c], now) else now.astype(np.int64)
            for c, now in found.items()
        }

    def refine(self, batch: Places, columns: Places, rng: np.random.Generator) -> tuple[float, float]:
        """Give a batch of rows other values, columns in random order; the fall of L, and the scores."""
        some = _Batch.of(self.codes.take(batch, axis=0).astype(np.int64))
        work, yields = self.work[columns], self.yields[columns]
        anyway = bits(rng, len(columns)) % np.uint64(_ANYWAY) == 0
        tried = columns[(yields * work.sum() >= (yields * work).sum()) | anyway]
        turns = np.argsort(bits(rng, len(tried)), kind="stable")
        lowered = done = 0.0
        for column in tried[turns].tolist():
            fall, scores = self.move(column, some, rng), float(self.work[column] * len(batch))
            before = self.yields[column]
            now = fall / max(scores, 1.0)
            self.yields[column] = now if np.isinf(before) else _RECENT * now + (1 - _RECENT) * before
            lowered, done = lowered + fall, done + scores
        self.codes[batch] = some.rows
        return lowered, done

    def move(self, column: int, batch: _Batch, rng: np.random.Generator) -> float:
        own, size, old = self.own[column], self.sizes[column], batch.columns[column]
        whole = self.residuals[self.starts[column] : self.starts[column + 1]]
        # Sums that fit into 32 bits are the same there, in half of the cache.
        if max(whole.max(), -whole.min()) * own.begin.size < 2**31:
            whole = whole.astype(np.int32)
        scores = own.sums(whole.reshape(-1, size), batch.columns)
        new = scores.argmin(axis=1)
        begins = np.arange(0, scores.size, size)
        was = scores.take(begins + old)
        falls = was - scores.take(begins + new)
        # A row that moves alone changes L by weight (2 - 2 fall), as two cells of each clique change by one.
        movers = np.flatnonzero((falls > UNIT * own.total) & (was < _FORBIDDEN / 2))
        if not movers.size:
            return 0.0
        tried = max(int(movers.size * self.shares[column]), 1)
        if tried < movers.size:
            movers = movers[np.argsort(-falls[movers], kind="stable")[:tried]]
        places = own.base(batch.rows.take(movers, axis=0))
        places *= size
        places += self.starts[column]
        moves = _Moves(movers, old[movers], new[movers])
        taken, fall = self._chosen(own, moves, places, float(falls[movers].sum()), rng)
        if taken.rows.size > _TOO_FEW * tried:
            self.shares[column] = min(self.shares[column] * _MORE, 1.0)
        elif taken.rows.size < _TOO_MANY * tried:
            self.shares[column] = max(self.shares[column] * _FEWER, _LEAST_SHARE)
        echo = self.echoes[column]
        if taken.rows.size and echo.begin.size:
            self._add(echo.base(batch.rows.take(taken.rows, axis=0)), taken, echo)
        old[taken.rows] = batch.rows[taken.rows, column] = taken.new
        return fall

    def _chosen(
        self, own: _Cells, moves: _Moves, places: Places, fall: float, rng: np.random.Generator
    ) -> tuple[_Moves, float]:
        """The moves that are made, each with the probability t at which the expected L is least.

        With D the changes of all cells if all rows move, and A the sum of what each would add alone,

            E L(t) = L - 2 t fall + t^2 (sum of weight D^2 - A) + t A.

        All are made in the column's own residuals, where D shows; then those that are not chosen are undone.
        """
        before, after = map(self.residuals.take, self._add(places, moves, own))
        together, alone = float(after.sum() - before.sum() + fall) / UNIT, 2.0 * own.total * len(moves.rows)
        slope, curve = 2.0 * fall / UNIT - alone, 2.0 * (together - alone)
        if slope >= curve:
            return moves, slope - curve / 2
        best = slope / curve
        chosen = phases(rng, len(moves.rows)) < np.uint64(int(best * 2.0**BITS))
        undone = moves.some(~chosen)
        self._add(places[~chosen], _Moves(undone.rows, undone.new, undone.old), own)
        return moves.some(chosen), best * slope / 2

    def _add(self, places: Places, moves: _Moves, cells: _Cells) -> tuple[Places, Places]:
        """Move rows from their old cells to their new ones: the flat places of the old, and of the new ones.

        ``places`` is int64[moves, cliques], the cell of each clique for a code of 0.
        """
        old, new = ((c[:, None] * cells.step + places).reshape(-1) for c in (moves.old, moves.new))
        change = np.tile(UNIT * cells.weights, len(moves.rows))
        np.subtract.at(self.residuals, old, change)
        np.add.at(self.residuals, new, change)
        return old, new


@dataclass(frozen=True, eq=False)
class _Batch:
    """The codes of some rows, int64, by row and by column: each is read fast in one direction."""

    rows: Places
    columns: Places

    @classmethod
    def of(cls, rows: Places) -> _Batch:
        return cls(rows, np.ascontiguousarray(rows.T))


@dataclass(frozen=True, eq=False)
class _Moves:
    """Rows that may change in one column: places in a batch, old and new codes, int64[moves]."""

    rows: Places
    old: Places
    new: Places

    def some(self, chosen: NDArray[np.bool_]) -> _Moves:
        return _Moves(self.rows[chosen], self.old[chosen], self.new[chosen])


_HEAVIEST = 1 << 10
"""The largest weight as a whole number."""


UNIT = 16
"""Parts of a row to which targets are rounded."""


_MOST = 1 << 27
"""Bound on the rows of a cell: 2^27 x 16 x 2^10 is 2^41, so sums of 16 views and more stay below 2^45."""


_MOST_SHARED = 1 << 14
"""Largest number of cells of targets that are counted together: the result stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class TableTarget:
    """The wanted counts of a marginal of one to five columns.

    Attributes:
        counts: float64, shape ``domain.shape(clique)``: rows of each cell.
        weight: weight of a squared difference of rows, above 0; only ratios of weights matter.
        variance: mean squared error of a cell of the counts, in rows squared; None if it is not known.
        below: rows below 0 that a count of 0 stands for: so few rows stray into cells that should be empty,
            where the square of a few rows would hardly count.
    """

    clique: Clique
    counts: Array
    weight: float
    variance: float | None = None
    below: float = 0.0


def residuals_of(
    domain: Domain, target: TableTarget, rows: NDArray[np.int64], weight: float
) -> tuple[tuple[int, ...], Array]:
    """The places of a target's columns, and weight x (rows - target) in parts of a row."""
    clique, counts = target.clique, target.counts
    if not (counts.min() >= 0 and max(counts.max(), rows.sum()) < _MOST):
        raise ValueError(
            f"the target of {clique} must have counts from 0 to {_MOST - 1}, no more rows either"
        )
    members = tuple(domain.columns.index(c) for c in clique)
    return members, np.asarray(weight * (UNIT * rows - np.rint(UNIT * counts)), dtype=np.float64)


def counts_of(
    domain: Domain, codes: Mapping[str, NDArray[np.unsignedinteger]], wanted: Sequence[TableTarget]
) -> dict[Clique, NDArray[np.int64]]:
    """The rows of each cell of the targets' cliques, int64 of shape ``domain.shape(clique)``."""
    for target in wanted:
        clique, shape = target.clique, domain.shape(target.clique)
        if not 1 <= len(clique) <= WIDEST or target.counts.shape != shape:
            raise ValueError(f"the target of {clique} must have one to five columns and the shape {shape}")
    found = {}
    cliques = list(dict.fromkeys(target.clique for target in wanted))
    for union, members in unions(domain, cliques, _MOST_SHARED):
        number = len(codes[union[0]])
        cells = np.bincount(cells_of(codes, domain, union, number), minlength=domain.cells(union))
        whole = cells.reshape(domain.shape(union))
        for clique in members:
            left = tuple(c for c in union if c in clique)
            part = whole.sum(axis=tuple(i for i, c in enumerate(union) if c not in clique))
            found[clique] = part.transpose([left.index(c) for c in clique])
    return found
