"""The source of synthetic rows, which a finished release keeps.

Invariant: all of it is public. Rows are post-processing: they cost nothing, however many are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsynth.domain.layout import Layout
from dpsynth.domain.public_marginals import PublicMarginals
from dpsynth.model import MarkovRandomField, raked_rows, sample
from dpsynth.rules import Rules, obeying


@dataclass(frozen=True, eq=False)
class RowSource:
    """The source of synthetic rows: a fitted model, with all that makes rows of its codes. It is public.

    Attributes:
        model: the model of values.
        layout: the table's columns.
        rules: the constraints that every row obeys.
        public_marginals: public counts that the rows agree with.
    """

    model: MarkovRandomField
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals

    def rows(self, number: int, rng: np.random.Generator) -> pa.Table:
        """Rows: codes drawn from the model, decoded column by column, every row within the rules."""
        model, layout = self.model, self.layout
        if self.rules.written:
            return obeying(self.rules, layout, number, lambda n: sample(model, n, rng), model.marginal, rng)
        drawn = sample(model, number, rng)
        return layout.decode(raked_rows(model, self.public_marginals, drawn, rng), rng)

    def seeded(self, number: int, seed: int | None) -> pa.Table:
        """Rows that a seed repeats; without one they are new each time."""
        return self.rows(number, np.random.default_rng(seed))
