"""The source of synthetic rows, which a finished release keeps and a bundle holds.

Invariant: all of it is public. Rows are post-processing: they cost nothing, however many are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.domain.codec import Codes
from dpsynth.domain.domain import Clique
from dpsynth.domain.layout import Layout
from dpsynth.domain.public_marginals import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.model import (
    Bounds,
    MarkovRandomField,
    Wanted,
    raked_rows,
    refined_rows,
    sample,
    sample_chunks,
)
from dpsynth.rules import Checks, Drawing, Rules

CHUNK = 100_000
"""Rows that are drawn and refined together in a stream."""

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some columns of a model, the codes that rows may have, bool[codes]."""

Densities = Mapping[str, tuple[NDArray[np.float64], float]]
"""Noisy counts of the codes of a column, and their standard deviation: the densities inside its bins."""


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

    def rows(self, number: int, rng: np.random.Generator) -> pa.Table:
        """Rows drawn from the model, refined together, decoded column by column, all within the rules."""
        return next(self._tables([number], iter([sample(self.model, number, rng)]), rng))

    def tables(
        self, number: int, seed: int | None, chunk: int = CHUNK, before: int = 0
    ) -> Iterator[pa.Table]:
        """Rows in pieces, each refined by itself; together they are one rounded sample of the model.

        Args:
            number: number of all rows.
            seed: repeats the rows, for the same chunk; without one they are new each time.
            chunk: number of rows of each piece but the last.
            before: number of rows after whose identifiers these go on.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        rng = np.random.default_rng(seed)
        sizes = [min(chunk, number - begin) for begin in range(0, number, chunk)]
        drawn = sample_chunks(self.model, number, int(rng.integers(1 << 62)), chunk=chunk)
        return self._tables(sizes, drawn, rng, before)

    def _tables(
        self,
        sizes: list[int],
        drawn: Iterator[dict[str, Codes]],
        rng: np.random.Generator,
        before: int = 0,
    ) -> Iterator[pa.Table]:
        waiting: list[dict[str, Codes]] = []

        def draw(missing: int) -> dict[str, Codes]:
            """The refined rows of the piece first; then rows in place of those that violate a rule."""
            return waiting.pop() if waiting else sample(self.model, missing, rng)

        drawing = Drawing(Checks(self.rules, self.layout), draw, self.model.marginal, rng)
        for size, codes in zip(sizes, drawn, strict=True):
            refined = self._refined(codes, rng)
            # A large table's rows before the refinement take as much memory as those after it.
            codes.clear()
            if self.rules.written:
                waiting.append(refined)
                yield drawing.table(size, before)
            else:
                yield self.layout.following(before).decode(refined, rng)
            before += size

    def codes(self, number: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Codes of rows drawn from the model and refined together, int64[rows] of the model's columns."""
        return self._refined(sample(self.model, number, rng), rng)

    def _refined(self, drawn: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
        raked = raked_rows(self.model, self.public_marginals, drawn, rng)
        return refined_rows(self.model, self.wanted, raked, rng, self.bounds)

    def seeded(self, number: int, seed: int | None) -> pa.Table:
        """Rows that a seed repeats; without one they are new each time."""
        return self.rows(number, np.random.default_rng(seed))

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
