"""The source of synthetic rows, which a finished release keeps.

Invariant: all of it is public. Rows are post-processing: they cost nothing, however many are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsynth.domain.codec import Codes
from dpsynth.domain.layout import Layout
from dpsynth.domain.public_marginals import PublicMarginals
from dpsynth.model import Bounds, MarkovRandomField, Wanted, raked_rows, refined_rows, sample
from dpsynth.rules import Rules, obeying


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
    """

    model: MarkovRandomField
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals
    wanted: Wanted
    bounds: Bounds

    def rows(self, number: int, rng: np.random.Generator) -> pa.Table:
        """Rows drawn from the model, refined together, decoded column by column, all within the rules."""
        model, layout = self.model, self.layout
        whole = self.codes(number, rng)
        if not self.rules.written:
            return layout.decode(whole, rng)
        parts = iter([whole])

        def draw(missing: int) -> dict[str, Codes]:
            """The refined table first; then rows in place of those that violate a rule."""
            return next(parts, None) or sample(model, missing, rng)

        return obeying(self.rules, layout, number, draw, model.marginal, rng)

    def codes(self, number: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Codes of rows drawn from the model and refined together, int64[rows] of the model's columns."""
        drawn = raked_rows(self.model, self.public_marginals, sample(self.model, number, rng), rng)
        return refined_rows(self.model, self.wanted, drawn, rng, self.bounds)

    def seeded(self, number: int, seed: int | None) -> pa.Table:
        """Rows that a seed repeats; without one they are new each time."""
        return self.rows(number, np.random.default_rng(seed))
