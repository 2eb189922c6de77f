"""The steps after the last answer: model, synthetic table, statistics.

Invariant: post-processing. Nothing here can ask the private table, so nothing here costs anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pyarrow as pa

from dpsynth.domain.layout import Layout
from dpsynth.domain.measurement import ExactTotal
from dpsynth.evidence.drift import pooled_counts
from dpsynth.evidence.earlier_releases import basis_of
from dpsynth.lifecycle.answers import Measured
from dpsynth.lifecycle.inputs import Inputs
from dpsynth.lifecycle.measuring import Stage
from dpsynth.lifecycle.progress import Advance
from dpsynth.model import (
    Fit,
    FitOptions,
    LeastSquares,
    MarkovRandomField,
    estimate,
    estimated_total,
    raked,
    raked_rows,
    refits,
    sample,
    zeros_within,
)
from dpsynth.publish import StatisticTable, compute_statistics
from dpsynth.rules import grids_of, obeying, zeros_of

REPLICATES = 12
"""Refits to fresh noise, from which errors of statistics by the model are taken."""
MAX_ITERATIONS = 1000
"""Iterations of the final fit, at most."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model of a release, and what it was fitted to.

    Attributes:
        measured: all that was answered.
        layout: the table's columns, values inside bins as likely as the counts beside them suggest.
        fit: of the model of groups.
        model: of values; it agrees with the public marginals.
    """

    measured: Measured
    layout: Layout
    fit: Fit
    model: MarkovRandomField


def fit_model(advance: Advance, inputs: Inputs, stage: Stage, measured: Measured) -> Fit:
    """The model of groups, fitted to all counts from where the strategy's own fit ended.

    Cells that constraints make impossible are zeros of it, as far as it has room for them; rows are drawn
    again for the others.
    """
    expansion, selection = measured.expansion, measured.selection
    counts = [*expansion.sums, *measured.fitted_to]
    impossible = zeros_of(grids_of(inputs.compiled.rules, stage.layout), expansion.compression.groups)
    room = stage.plan.max_cells - expansion.cells
    return estimate(
        expansion.coarse,
        counts,
        FitOptions(max_iterations=MAX_ITERATIONS, progress=lambda done: advance(done, MAX_ITERATIONS)),
        prior_rows=selection.prior * estimated_total(counts),
        zeros=zeros_within(expansion.coarse, [m.clique for m in counts], impossible, room),
        start=selection.fit,
    )


def spread_over_values(inputs: Inputs, stage: Stage, measured: Measured, fit: Fit) -> FittedModel:
    """The model of values that a model of groups stands for."""
    counts = pooled_counts(measured.answers.own)
    layout = stage.layout.with_density(
        {column: (values, sqrt(v)) for (column,), (values, v) in counts.items()}
    )
    model = raked(measured.expansion.model(fit.model), inputs.compiled.public_marginals)
    return FittedModel(measured, layout, fit, model)


def sample_rows(inputs: Inputs, fitted: FittedModel, rng: np.random.Generator) -> pa.Table:
    """The synthetic table: codes drawn from the model, decoded column by column, every row as the rules say.

    It has as many rows as the private table if their number is public, else as estimated.
    """
    rules, layout, model = inputs.compiled.rules, fitted.layout, fitted.model
    exact = [int(m.values) for m in fitted.measured.answers.first if isinstance(m, ExactTotal)]
    same, asked = exact[0] if exact else round(model.total), inputs.spec.sample.rows
    rows = same if asked == "same" else asked
    if rules.written:
        return obeying(rules, layout, rows, lambda n: sample(model, n, rng), model.marginal, rng)
    drawn = sample(model, rows, rng)
    return layout.decode(raked_rows(model, inputs.compiled.public_marginals, drawn, rng), rng)


def tabulate(inputs: Inputs, fitted: FittedModel, rng: np.random.Generator) -> tuple[StatisticTable, ...]:
    """Statistics with standard errors; refits are made only if one needs them.

    Answers about other periods have no part in what counts as measured.
    """
    requests, measured = inputs.spec.publish.statistics, fitted.measured
    direct = _direct(inputs, measured)
    by_model = any(not direct.covers(r.columns) for r in requests)
    replicates = (
        refits(fitted.fit, measured.fitted_to, REPLICATES, rng, measured.expansion) if by_model else ()
    )
    return compute_statistics(
        requests,
        fitted.layout.columns,
        direct,
        fitted.model,
        replicates,
        basis=basis_of(measured.answers.evidence),
        public_marginals=inputs.compiled.public_marginals,
    )


def _direct(inputs: Inputs, measured: Measured) -> LeastSquares:
    """The counts that tell of values themselves, reconciled."""
    answers, public = measured.answers, inputs.compiled.public_marginals
    one_way, joint = answers.one_way, answers.public_joint
    if public.rows is None:
        # Public shares were made counts by the estimated number of rows, of which they tell nothing.
        one_way = tuple(m for m in one_way if not public.columns & set(m.clique))
        joint = ()
    own = replace(measured.expansion, singles=one_way).direct(measured.joint)
    return LeastSquares(measured.expansion.domain, (*own, *joint, *answers.evidence.direct()))
