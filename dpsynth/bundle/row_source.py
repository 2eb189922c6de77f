"""The source of synthetic rows, which a finished release keeps and a bundle holds.

Invariant: all of it is public. Rows are post-processing: they cost nothing, however many are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import combinations, islice
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.in_order import in_order
from dpsynth.columns.layout import DrawnRows, Layout
from dpsynth.columns.public_marginals import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.columns.rules import Drawing, RuleRepairs, Rules, Tied
from dpsynth.model import (
    Bounds,
    Effort,
    MarkovRandomField,
    TableTarget,
    Wanted,
    chunk_draws,
    permuted,
    raked_rows,
    refined_rows,
    sample,
)

PIECE = 1 << 19
"""Rows that are drawn, refined and decoded together; a longer table is made of such pieces."""
DISTINCT = 1 << 20
"""Rows that are drawn and refined. Further whole pieces have the cells of these, in another order."""
ENOUGH = 0.02
"""The end of the refinement of a piece, as ``Effort.enough`` has it. So many rows have little error by their
draw, and further laps would follow the errors of the targets."""
_PIECES_AT_ONCE = 2
"""Pieces that are in memory, and threads that make them."""

Integers = Mapping[str, NDArray[np.integer]]
"""Codes of the rows of a piece, by column."""
Made = tuple[Integers, RuleRepairs]
"""Codes of the rows of a piece, in cells that obey the rules, and what was changed so that they do."""
Make = Callable[[np.random.Generator], Made]
"""Maker of the codes of one piece."""

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some columns of a model, the codes that rows may have, bool[codes]."""

Densities = Mapping[str, tuple[NDArray[np.float64], float]]
"""Noisy counts of the codes of a column, and their standard deviation: the densities inside its bins."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """The refinement of one piece.

    Attributes:
        targets: its targets, where they are made already.
        effort: the work.
    """

    targets: Sequence[TableTarget] | None = None
    effort: Effort = field(default_factory=Effort)


_USUAL = Refinement()


@dataclass(frozen=True, eq=False)
class RowSource:
    """The source of synthetic rows: a fitted model, with all that makes rows of its codes. It is public.

    Attributes:
        model: the model of values.
        layout: the table's columns.
        rules: the constraints that every row obeys.
        public_marginals: public counts that the rows agree with.
        wanted: the marginals that rows are refined to.
        bounds: what refinement leaves as it is.
        densities: the counts from which the layout has the densities inside bins.
    """

    model: MarkovRandomField
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals
    wanted: Wanted
    bounds: Bounds
    densities: Densities = field(default_factory=dict)

    def pieces(self, number: int, rng: np.random.Generator, piece: int = PIECE) -> Iterator[DrawnRows]:
        """A table: rows drawn from the model, refined and decoded by piece, all within the rules.

        A table of one piece is drawn by ``rng`` alone. Of a longer one, the whole pieces of the first
        ``DISTINCT`` rows and a shorter last piece are drawn, together as one rounded sample of the model, and
        refined, each by itself. All others have the cells of a refined one in another order, and values of
        their own inside bins. Threads make them, each with a generator of its own, so the rows follow from
        the generator and the size of a piece alone. Memory: that of two pieces, and a byte or two for each
        refined cell.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        if number > piece:
            yield from self._stream(number, int(rng.integers(1 << 62)), piece, 0)
            return
        tied = self._tied(rng)
        yield self._piece(tied, self._obeying(tied, self.codes(number, rng), rng), 0, rng)

    def tables(
        self, number: int, seed: int | None, piece: int = PIECE, before: int = 0
    ) -> Iterator[pa.Table]:
        """Rows in pieces, made as ``pieces`` makes them.

        Args:
            number: number of all rows.
            seed: repeats the rows, for the same size of a piece; without one they are new each time.
            piece: number of rows of each piece but the last.
            before: number of rows after whose identifiers these go on.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        first = int(np.random.default_rng(seed).integers(1 << 62))
        return (rows.table for rows in self._stream(number, first, piece, before))

    def _stream(self, number: int, seed: int, piece: int, before: int) -> Iterator[DrawnRows]:
        sizes = [min(piece, number - begin) for begin in range(0, number, piece)]
        tied = self._tied(_generator(seed, 0))
        if self.rules.written:
            # Before any thread begins: all pieces have the same.
            _ = tied.pins, tied.obedience.components

        def work(turn: int, make: Make) -> Callable[[], DrawnRows]:
            rng = _generator(seed, 1, turn)
            return lambda: self._piece(tied, make(rng), before + turn * piece, rng)

        makers = enumerate(self._makers(tied, sizes, seed))
        return in_order((work(turn, make) for turn, make in makers), _PIECES_AT_ONCE)

    def _tied(self, rng: np.random.Generator) -> Tied:
        """The rules with what all pieces have in common."""
        names = self.wanted.values_of
        measured = {
            frozenset((names.get(a, a), names.get(b, b)))
            for clique in self.wanted.counts
            for a, b in combinations(clique, 2)
        }
        shut = {c: closed for (c, *more), closed in self.bounds.zeros.items() if not more}
        return Tied(
            self.rules,
            self.layout,
            self.model.marginal,
            rng,
            frozenset(measured),
            {column.name: shut[column.name] for column in self.layout.columns if column.name in shut},
        )

    def _obeying(self, tied: Tied, codes: Integers, rng: np.random.Generator) -> Made:
        return tied.repaired(codes, rng) if self.rules.written else (codes, RuleRepairs())

    def _makers(self, tied: Tied, sizes: Sequence[int], seed: int) -> Iterator[Make]:
        """The makers of the codes of each piece; any thread may call them."""
        first = -(-DISTINCT // sizes[0])
        again = max(sum(size == sizes[0] for size in sizes) - first, 0)
        drawn = [*sizes[:first], *sizes[first + again :]]
        targets = {size: self.wanted.targets(self.model, size) for size in set(drawn)}
        effort = replace(Effort(), enough=ENOUGH)
        draws = chunk_draws(self.model, sum(drawn), seed, chunk=sizes[0])

        def refined(draw: Callable[[], dict[str, Codes]], size: int) -> Make:
            how = Refinement(targets[size], effort)
            return lambda rng: self._obeying(tied, self._refined(draw(), rng, how), rng)

        makers = (refined(draw, size) for draw, size in zip(draws, drawn, strict=True))
        if again:
            begun = (partial(make, _generator(seed, 2, n)) for n, make in enumerate(islice(makers, first)))
            kept = [(self._narrow(codes), done) for codes, done in in_order(begun, _PIECES_AT_ONCE)]
            yield from (partial(_as_they_are, made) for made in kept)
            yield from (partial(_in_random_order, kept[number % first]) for number in range(again))
        yield from makers

    def _narrow(self, codes: Integers) -> Integers:
        return {column.name: codes[column.name].astype(column.code_type) for column in self.layout.columns}

    def _piece(self, tied: Tied, made: Made, before: int, rng: np.random.Generator) -> DrawnRows:
        """Refined rows decoded, whose identifiers follow those of ``before`` rows."""
        plain, (refined, repairs) = not self.rules.written, made
        codes: dict[str, Codes] = {}
        for column in self.layout.columns:
            own = refined[column.name]
            narrow = plain and column.one_text_a_code
            codes[column.name] = cast("Codes", own) if narrow else own.astype(np.int64, copy=False)
        if plain:
            return DrawnRows(self.layout.following(before).decode(codes, rng), codes)
        drawing = Drawing(tied, lambda more: sample(self.model, more, rng), rng)
        return drawing.rows(codes, repairs, before)

    def codes(self, number: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Codes of rows drawn from the model and refined together, int64[rows] of the model's columns."""
        return self._refined(sample(self.model, number, rng), rng)

    def _refined(
        self,
        drawn: Mapping[str, Codes],
        rng: np.random.Generator,
        how: Refinement = _USUAL,
    ) -> dict[str, Codes]:
        raked = raked_rows(self.model, self.public_marginals, drawn, rng)
        return refined_rows(self.model, self.wanted, raked, rng, self.bounds, how.targets, how.effort)

    def table(self, number: int, rng: np.random.Generator) -> pa.Table:
        """A whole table in memory, drawn as ``pieces`` are."""
        return pa.concat_tables(rows.table for rows in self.pieces(number, rng))

    def seeded(self, number: int, seed: int | None) -> pa.Table:
        """The rows of ``tables`` in one table."""
        if not number:
            return self.table(0, np.random.default_rng(0))
        return pa.concat_tables(self.tables(number, seed))

    def given(self, allowed: Allowed) -> RowSource:
        """The source of rows that have some codes only.

        A target that holds such a column keeps the allowed cells. A target of any other columns is the
        marginal of the conditional model, as no answer counts those rows alone.

        Raises:
            ImpossibleEvidence: the model gives probability zero to these codes.
        """
        if not allowed:
            return self
        model, wanted, zeros = self.model.given(dict(allowed)), self.wanted, dict(self.bounds.zeros)
        held = dict(allowed)
        for groups, column in wanted.values_of.items():
            if column in allowed:
                held[groups] = model.marginal((groups,)) > 0
        for column, codes in held.items():
            zeros[(column,)] = ~codes | zeros.get((column,), np.zeros(codes.shape, np.bool_))
        kept = {
            clique: _kept(counts, clique, held)
            for clique, counts in wanted.counts.items()
            if not held.keys().isdisjoint(clique)
        }
        counts = {c: left * (model.total / left.sum()) for c, left in kept.items() if left.sum() > 0}
        return replace(
            self,
            model=model,
            public_marginals=NO_PUBLIC_MARGINALS,
            wanted=replace(wanted, counts=counts, total=model.total),
            bounds=replace(self.bounds, zeros=zeros),
        )


def _kept(counts: NDArray[np.float64], clique: Clique, allowed: Allowed) -> NDArray[np.float64]:
    """The counts of a clique's allowed cells, and 0 elsewhere."""
    masks = [allowed.get(c, np.ones(size, np.bool_)) for c, size in zip(clique, counts.shape, strict=True)]
    return counts * reduce(np.logical_and.outer, masks)


def _as_they_are(made: Made, rng: np.random.Generator) -> Made:
    del rng
    return made


def _in_random_order(made: Made, rng: np.random.Generator) -> Made:
    """The same rows in another order."""
    codes, repairs = made
    order = permuted(len(next(iter(codes.values()))), rng)
    return {column: own[order] for column, own in codes.items()}, repairs


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(3, *key))))
