"""The steps after the last answer: model, synthetic table, statistics.

Invariant: every step is post-processing. It has no access to the private table, so it costs nothing. The rows
are drawn, written and coded piece by piece: what is written is what is coded, and what a caller gets in
memory. Memory is that of two pieces, and of a table of one piece.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path

import numpy as np

from dpsynth.accounting.neighbours import whole_weight
from dpsynth.bundle import Sources, StatisticTable, compute_statistics
from dpsynth.bundle.row_files import SyntheticTable, TableWriter
from dpsynth.bundle.row_source import Chain, Densities, RowSource
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import ExactTotal, Observation, estimated_total, pooled_counts
from dpsynth.columns.rules import grids_of, told_only, zeros_of
from dpsynth.config import CompiledSpec, Spec
from dpsynth.model import (
    Bounds,
    Fit,
    FitOptions,
    MarkovRandomField,
    TableCounts,
    Wanted,
    counts_of_rows,
    denoised_answers,
    estimate,
    noisy_again,
    of_rows,
    raked,
    refits,
    row_counts,
    zeros_within,
)
from dpsynth.model.junction_tree import Zeros
from dpsynth.pipeline.measuring import Measured
from dpsynth.pipeline.steps import advanced
from dpsynth.statistics.estimates import Unbiased
from dpsynth.statistics.exam import Exam
from dpsynth.statistics.measured_figures import tilts_of
from dpsynth.statistics.sampled_estimates import SampledUnits
from dpsynth.wing import Point

REPLICATES = 12
"""Number of refits to fresh noise, which give the errors of statistics by the model."""

LEAST_ROWS = 100_000
"""Rows of a refined table that statistics are counted in, at least."""

MAX_ITERATIONS = 1000


CHAIN_OF: Point[Callable[[CompiledSpec, Measured, MarkovRandomField, Zeros], Chain]] = Point(
    "fit", "histories"
)
"""The model of a row given the one before it, by all answers and the model of single rows."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model of a release, and the answers that it was fitted to.

    Attributes:
        layout: the table's columns, with densities inside bins, of single columns and of pairs, that follow
            from neighbouring counts, tilted to the means that were measured.
        model: the model of values, which agrees with the public marginals.
        wanted: the marginals that the synthetic table is refined to, in columns of ``model``.
        zeros: the cells that constraints exclude, in columns of ``model``.
        densities: the counts from which the layout has its densities.
        direct: the counts over values rather than groups, by the answers alone, reconciled.
        chain: the model of a row given the one before; None where each row stands by itself.
    """

    measured: Measured
    layout: Layout
    fit: Fit
    model: MarkovRandomField
    wanted: Wanted
    zeros: Zeros
    densities: Densities
    direct: Unbiased
    chain: Chain | None = None

    @property
    def rows(self) -> int:
        """The number of rows that were asked about: exact if it is public, otherwise the estimate."""
        exact = [int(m.values) for m in self.measured.answers.first if isinstance(m, ExactTotal)]
        return exact[0] if exact else round(self.model.total)


def fit_model(compiled: CompiledSpec, layout: Layout, max_cells: int, measured: Measured) -> Fit:
    """The model of groups, fitted to all counts; it starts from the strategy's last fit.

    Cells that constraints exclude are zeros of the model, as far as its size allows. Rows in the remaining
    excluded cells are repaired.
    """
    expansion, selection = measured.expansion, measured.selection
    counts = [
        *(measured.weights or expansion).sums,
        *denoised_answers(measured.fitted_to, measured.posteriors),
    ]
    impossible = _impossible(compiled, layout, measured)
    capacity = max_cells - expansion.cells
    return estimate(
        expansion.coarse,
        counts,
        FitOptions(max_iterations=MAX_ITERATIONS, progress=lambda done: advanced(done, MAX_ITERATIONS)),
        prior_rows=selection.prior * estimated_total(counts),
        zeros=zeros_within(expansion.coarse, [m.clique for m in counts], impossible, capacity),
        start=selection.fit,
    )


def _impossible(compiled: CompiledSpec, layout: Layout, measured: Measured) -> Zeros:
    """The cells that no row of the model has, by what rules say and by what counts don't tell of."""
    if grids := grids_of(compiled.rules, layout):
        counts = pooled_counts((*measured.answers.own, *measured.answers.combined))
        grids = told_only(grids, counts, {c.name: c.unusable for c in layout.columns if c.missing})
    return zeros_of(grids, measured.expansion.compression.groups)


def spread_over_values(
    compiled: CompiledSpec, layout: Layout, measured: Measured, fit: Fit, unbiased: Unbiased | None = None
) -> FittedModel:
    """The model of values that follows from a model of groups.

    Args:
        unbiased: estimates from the answers alone; left out, least squares of all answers.
    """
    expansion, selection, answers = measured.expansion, measured.selection, measured.answers
    direct = unbiased or measured.direct(compiled.public_marginals)
    counts = pooled_counts((*answers.own, *answers.combined))
    densities = {column: (values, sqrt(v)) for (column,), (values, v) in counts.items()}
    model = raked(_of_values(measured, fit.model), compiled.public_marginals)

    def named(clique: Clique) -> Clique:
        return tuple(expansion.names.get(c, c) for c in clique)

    values_of = {groups: column for column, groups in expansion.names.items()}
    asked_about = model if measured.weights is None else expansion.model(fit.model)
    wanted = Wanted.of(
        asked_about,
        values_of,
        {named(clique): posterior for clique, posterior in measured.posteriors.items()},
        [replace(m, clique=named(m.clique)) for m in selection.not_held],
        {named(pair): distance for pair, distance in selection.distances.items()},
    )
    if measured.weights is not None:
        counted = [replace(m, clique=named(m.clique)) for m in measured.counted]
        wanted = replace(wanted, counts=counts_of_rows(wanted.counts, asked_about, model), total=model.total)
        wanted = wanted.beside(Wanted.of(model, values_of, beside=counted))
    joint = wanted.counts_of_values(model, [named(m.clique) for m in measured.fitted_to])
    layout = layout.with_density(densities).with_joint_density(joint)
    if answers.sums:
        columns = {column.name: column for column in layout.columns}
        layout = replace(layout, tilts=tilts_of(answers.sums, columns, model, direct, compiled.rules.named))
    impossible = _impossible(compiled, layout, measured)
    zeros = {named(c): z for c, z in impossible.items()}
    found = FittedModel(measured, layout, fit, model, wanted, zeros, densities, direct)
    if measured.history is None:
        return found
    return replace(
        found, chain=CHAIN_OF.needed("privacy.unit.history")(compiled, measured, model, impossible)
    )


def _of_values(measured: Measured, of_groups: MarkovRandomField) -> MarkovRandomField:
    """The model of rows and values that follows from one of groups, of rows or of weights."""
    expansion, weights = measured.expansion, measured.weights
    rows = measured.rows
    if weights is None:
        found = expansion.model(of_groups)
        return found if measured.history is None else found.scaled_to(rows)
    counted = (*expansion.sums, *_with_surplus(measured, expansion.summed(measured.surplus), of_groups))
    known = of_rows(of_groups, row_counts(counted, of_groups, rows), rows)
    return measured.spread.model(known)


def _with_surplus(
    measured: Measured, surplus: Sequence[Observation], model: MarkovRandomField
) -> Iterator[Observation]:
    """Counts of rows of single columns: those by surplus, and (k + 1)/2 persons by a model of weights."""
    for m in surplus:
        total = next(w for w in measured.by_weights if w.clique == ())
        bound = total.whole // whole_weight(1)
        middle = (bound + 1) / 2 * max(measured.persons, 1.0)
        shares = model.marginal(m.clique) / model.total
        yield replace(m, values=np.rint(m.values + middle * shares).astype(np.int64))


def row_source(compiled: CompiledSpec, fitted: FittedModel) -> RowSource:
    """The source of the rows of a release."""
    return RowSource(
        fitted.model,
        fitted.layout,
        compiled.rules,
        compiled.public_marginals,
        fitted.wanted,
        Bounds(compiled.public_marginals.columns, fitted.zeros),
        fitted.densities,
        fitted.chain,
    )


def tabulate(
    compiled: CompiledSpec, fitted: FittedModel, rng: np.random.Generator, exam: Exam | None = None
) -> tuple[StatisticTable, ...]:
    """Statistics with standard errors; refits are made only if one needs them.

    Answers about other periods don't count as measured.
    """
    requests, measured, direct = compiled.spec.publish.statistics, fitted.measured, fitted.direct
    distances = {} if exam is None else exam.by_columns
    modelled = [r for r in requests if any(not direct.covers(clique) for clique in r.cliques)]
    cliques = [clique for r in modelled for clique in r.cliques if not direct.covers(clique)]
    replicates = _refits(fitted, rng) if any(frozenset(c) not in distances for c in cliques) else ()
    sources = Sources(
        fitted.layout.columns,
        direct,
        _modelled(compiled, fitted, rng) if modelled else fitted.model,
        replicates,
        measured.answers.evidence.basis,
        compiled.public_marginals,
        measured.answers.sums,
        measured.answers.finer,
        distances,
        sampled_units(compiled.spec),
    )
    return compute_statistics(requests, sources)


def _refits(fitted: FittedModel, rng: np.random.Generator) -> tuple[MarkovRandomField, ...]:
    """Models of values that are fitted to fresh noise; see ``refits``."""
    measured = fitted.measured
    weights = measured.weights or measured.expansion
    found = refits(fitted.fit, measured.fitted_to, REPLICATES, rng, weights)
    if measured.weights is None:
        return found

    def raked_again(model: MarkovRandomField) -> MarkovRandomField:
        again = [noisy_again(fitted.model, m, rng) for m in measured.expansion.singles]
        rows = estimated_total(again)
        apart = [
            replace(m, values=np.rint(rng.normal(0, m.stddev, m.values.shape))) for m in measured.surplus
        ]
        counted = (*again, *_with_surplus(measured, apart, model))
        return of_rows(model, row_counts(counted, model, rows), rows)

    return tuple(map(raked_again, found))


def sampled_units(spec: Spec) -> SampledUnits | None:
    """The sample that all answers are about; None if they are about all units."""
    sampling = spec.privacy.sampling
    return None if sampling is None else SampledUnits(float(sampling.rate), spec.privacy.protected.max_rows)


def _modelled(
    compiled: CompiledSpec, fitted: FittedModel, rng: np.random.Generator
) -> MarkovRandomField | TableCounts:
    measured, tree = fitted.measured, fitted.model.tree
    names = measured.expansion.names
    outside = (m for m in measured.counted if tree.home([names.get(c, c) for c in m.clique]) is None)
    if not measured.selection.not_held and next(outside, None) is None:
        return fitted.model
    rows = max(round(fitted.model.total), LEAST_ROWS)
    return TableCounts(
        fitted.model.tree.domain, row_source(compiled, fitted).codes(rows, rng), fitted.model.total
    )


def sample_rows(
    compiled: CompiledSpec, fitted: FittedModel, public: Path | None, rng: np.random.Generator
) -> SyntheticTable:
    """The synthetic table: as many rows as the private one has, or as many as the config asks for.

    Args:
        public: the public folder of the partial bundle, which is made anew with the table's files; None if
            the bundle is published already.
    """
    spec = compiled.spec
    publish, asked, sampling = spec.publish, spec.sample.rows, spec.privacy.sampling
    same = fitted.rows if sampling is None else round(fitted.rows / sampling.rate)
    number, source = same if asked == "same" else asked, row_source(compiled, fitted)
    if public is None:
        return SyntheticTable.drawn(source, number, rng, advanced)
    shutil.rmtree(public, ignore_errors=True)
    public.mkdir()
    writer = TableWriter(public, fitted.layout, publish.formats, publish.rows_a_file)
    return SyntheticTable.drawn(source, number, rng, advanced, writer)
