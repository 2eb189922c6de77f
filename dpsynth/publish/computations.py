"""The computation of each kind of statistic beside tables of counts and plain means.

A computation takes what was asked for and the sources, and returns a ``Computed``. Figures of columns that
were measured together come from the noisy answers, with a standard error of the noise and of what bins leave
unknown. All other figures are the model's; their intervals cover the noise only, or are missing. Each row
says so in ``limits``.

Invariant: post-processing. One kind is one declaration (``dpsynth.config.statistic_kinds``) and one entry
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dpsynth.config.statistic_kinds import (
    Asked,
    Association,
    Correlation,
    Count,
    Crosstab,
    Grouped,
    Mean,
    Model,
    Quantiles,
    Sum,
    Variance,
)
from dpsynth.domain.column import Column
from dpsynth.domain.domain import Clique
from dpsynth.domain.layout import Layout
from dpsynth.publish import functionals
from dpsynth.publish.conditions import truth_of
from dpsynth.publish.estimates import Z95, Marginals, Numbers, root_mean_square_error
from dpsynth.publish.examined_estimates import ExaminedFigures
from dpsynth.publish.functionals import Cells, Functional
from dpsynth.publish.provenance import Counted, Sources
from dpsynth.publish.quantile_figures import quantile_figures
from dpsynth.publish.regression import TWO, Design, Fitted, classifier, design_of, linear, logistic
from dpsynth.publish.summed_means import sums_of, total_of_sums
from dpsynth.rules import condition_of

HOLDS, NOISE_ONLY, NONE = "95 %", "noise only", "none"
"""The claims of intervals: to hold in 95 of 100 releases; to cover the noise but not the model; nothing."""
BY_EXAM = (Crosstab, Count, Mean, Sum, Variance)
"""The kinds whose figures by the model get their errors from the exam, where there is one."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of one table, one a row.

    Attributes:
        estimate, error, low, high: float64[rows].
        interval: what the intervals claim.
        basis: what the figures rest on; one for all rows, or one a row.
        measured: true if they don't rest on the model.
        more: further figures by name.
    """

    estimate: Numbers
    error: Numbers
    low: Numbers
    high: Numbers
    interval: str
    basis: str | Sequence[str]
    measured: bool
    more: Mapping[str, Numbers]


@dataclass(frozen=True, eq=False)
class Computed:
    """The computation's result.

    Attributes:
        title: the content in words.
        name: parts of a file name.
        members: the columns of the groups, whose labels come first.
        labels: further labels by name: one text a row within each group.
        figures: the figures; rows run over the groups, then over the labels.
        document: the same as JSON values; None where a table says it all.
    """

    title: str
    name: tuple[str, ...]
    members: tuple[Column, ...]
    labels: Mapping[str, Sequence[str]]
    figures: Figures
    document: Mapping[str, object] | None = None


def _figures(
    estimate: Numbers,
    error: Numbers,
    ends: tuple[float, float],
    stated: tuple[str, str | Sequence[str], bool],
) -> Figures:
    """Figures with symmetric intervals within some ends; stated are interval, basis, and if measured."""
    interval, basis, measured = stated
    return Figures(
        estimate=estimate,
        error=error,
        low=np.clip(estimate - Z95 * error, *ends),
        high=np.clip(estimate + Z95 * error, *ends),
        interval=interval,
        basis=basis,
        measured=measured,
        more={},
    )


def _by_model(sources: Sources) -> tuple[str, str, bool]:
    return (NOISE_ONLY if sources.replicates else NONE), sources.provenance.basis, False


_ENDS = {
    "count": (0.0, np.inf),
    "variance": (0.0, np.inf),
    "sum": (-np.inf, np.inf),
    "mean": (-np.inf, np.inf),
}
_FUNCTIONALS: Mapping[str, Functional] = {
    "count": functionals.RowCount(),
    "sum": functionals.Total(),
    "mean": functionals.Average(),
    "variance": functionals.Spread(),
}


def _grouped(asked: Grouped, sources: Sources) -> Computed:
    """A figure of each group."""
    found = _measured_total(asked, sources) if isinstance(asked, Sum) else None
    figures = found or _of_counts(asked, sources, _FUNCTIONALS[asked.kind])
    if isinstance(asked, Variance):
        figures = replace(figures, more={"standard_deviation": np.sqrt(figures.estimate)})
    return Computed(*_named(asked), sources.members(asked.by), {}, figures)


def _named(asked: Grouped) -> tuple[str, tuple[str, ...]]:
    """Title and parts of the file name."""
    of = "rows" if asked.of is None else f"{asked.kind} of {asked.of}"
    by = f" by {_listed(asked.by)}" if asked.by else ""
    where = f" where {asked.where}" if asked.where else ""
    parts = (
        asked.kind,
        *asked.numbers,
        *(("by", *asked.by) if asked.by else ()),
        *(["where"] if where else []),
    )
    return f"{of}{by}{where}", parts


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _measured_total(asked: Sum, sources: Sources) -> Figures | None:
    """Sums by noisy sums, if they were measured."""
    clique = (*asked.by, asked.sum)
    measured = sums_of(clique, sources.provenance.sums)
    if asked.where is not None or measured is None or not sources.measured(clique):
        return None
    estimate, error = total_of_sums(measured, sources.columns[asked.sum], sources.direct)
    return _figures(estimate, error, _ENDS["sum"], (HOLDS, "measured sum", True))


def _of_counts(asked: Grouped, sources: Sources, functional: Functional) -> Figures:
    clique, groups = asked.columns, int(np.prod([c.size for c in sources.members(asked.by)], dtype=np.int64))
    cells = _cells(asked, sources)

    def value(marginals: Marginals) -> Numbers:
        return functional.value(marginals.marginal(clique).reshape(groups, -1), cells)

    shares = sources.provenance.public_marginals.shares(clique)
    ends = _ENDS[asked.kind]
    if shares is not None:
        public = sources.provenance.public_marginals.rows
        rows = float(sources.direct.marginal(())) if public is None else float(public)
        counts = shares.reshape(groups, -1) * rows
        unknown = functional.unknown(counts, cells)
        return _figures(functional.value(counts, cells), unknown, ends, (HOLDS, "public", True))
    claim = HOLDS if asked.kind in ("count", "sum", "mean") else NOISE_ONLY
    examined = ExaminedFigures(sources.model, sources.provenance.distances)
    if not sources.measured(clique) and examined.covers(clique):
        counts = sources.model.marginal(clique).reshape(groups, -1)
        off = examined.deviation(clique, functional.gradient(counts, cells))
        error = np.hypot(off, functional.unknown(counts, cells))
        stated = (claim, sources.provenance.basis, False)
        return _figures(functional.value(counts, cells), error, ends, stated)
    if not sources.measured(clique):
        estimate = value(sources.model)
        error = root_mean_square_error(estimate, [value(again) for again in sources.replicates])
        return _figures(estimate, error, ends, _by_model(sources))
    shape = sources.direct.marginal(clique).shape
    counts = sources.direct.marginal(clique).reshape(groups, -1)
    noise = [
        _deviation(sources, clique, weights.reshape(shape))
        for weights in _each_alone(functional.gradient(counts, cells))
    ]
    error = np.hypot(np.array(noise), functional.unknown(counts, cells))
    return _figures(functional.value(counts, cells), error, ends, (claim, "measured", True))


def _deviation(sources: Sources, clique: Clique, weights: Numbers) -> float:
    """Standard deviation of a weighted sum of counts by the answers; NaN where a weight is undefined."""
    return sqrt(sources.direct.variance(clique, weights)) if np.isfinite(weights).all() else np.nan


def _each_alone(gradient: Numbers) -> Sequence[Numbers]:
    """For each group the gradient over the cells of all groups: zero but in its own."""
    found = []
    for group, row in enumerate(gradient):
        weights = np.zeros(gradient.shape)
        weights[group] = row
        found.append(weights)
    return found


def _cells(asked: Grouped, sources: Sources) -> Cells:
    """The contents of the cells within a group; the column of numbers is the last one of the clique."""
    members = sources.members(asked.columns)
    shape = tuple(column.size for column in members)
    groups = int(np.prod(shape[: len(asked.by)], dtype=np.int64))
    truth = np.ones(shape)
    if asked.where is not None:
        truth = truth * _truth(asked.where, sources, members)
    within = shape[len(asked.by) :]
    if asked.of is None:
        zeros = np.zeros(int(np.prod(within, dtype=np.int64)))
        return Cells(truth.reshape(groups, -1), zeros, zeros, zeros)
    known, *numbers = _numbers(members[-1])
    each = [np.broadcast_to(part, within).ravel() for part in numbers]
    return Cells((truth * known).reshape(groups, -1), *each)


def _truth(where: str, sources: Sources, members: Sequence[Column]) -> Numbers:
    """The part of the rows of each cell of some columns that satisfy a rule."""
    layout = Layout(tuple(sources.columns.values()))
    return truth_of(condition_of(where, layout), layout, members)


def _numbers(column: Column) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """For each code: 1 if it has a number, the number, its largest distance, the variance inside the cell."""
    centres, half_widths = column.centres, column.codec.half_widths
    assert centres is not None
    assert half_widths is not None
    beyond = column.size - len(centres)
    known, number, wide = (
        np.concatenate([part, np.zeros(beyond)]) for part in (np.ones(len(centres)), centres, half_widths)
    )
    return known, number, wide, wide**2 / 3


def _quantiles(asked: Quantiles, sources: Sources) -> Computed:
    """Quantiles of each group, by the counts of bins up to each."""
    column, members = sources.columns[asked.quantiles], sources.members(asked.by)
    groups = int(np.prod([c.size for c in members], dtype=np.int64))
    shares = [float(share) for share in asked.at]
    clique, truth = asked.columns, None
    if asked.where is not None:
        truth = _truth(asked.where, sources, sources.members(clique))
    found = quantile_figures(sources, clique, (groups, column), shares, truth)
    measured = sources.measured(clique) or sources.provenance.public_marginals.shares(clique) is not None
    interval, basis = (HOLDS, "measured") if measured else _by_model(sources)[:2]
    figures = Figures(*found, interval, basis, measured, {})
    return Computed(*_named(asked), members, {"quantile": [str(share) for share in asked.at]}, figures)


def _correlation(asked: Correlation, sources: Sources) -> Computed:
    """Pearson's correlation of each pair."""

    def cells(column: Column) -> Cells:
        known, *numbers = _numbers(column)
        return Cells(known[None], *numbers)

    def one(pair: Clique) -> tuple[float, float, bool]:
        parts = [cells(column) for column in sources.members(pair)]
        if sources.measured(pair):
            found, gradient = functionals.pearson(sources.direct.marginal(pair), *parts)
            return found, _deviation(sources, pair, gradient), True
        found = functionals.pearson(sources.model.marginal(pair), *parts)[0]
        refits = [functionals.pearson(again.marginal(pair), *parts)[0] for again in sources.replicates]
        return found, float(root_mean_square_error(np.array(found), [np.array(r) for r in refits])), False

    return _matrix(asked, sources, one, NOISE_ONLY)


def _association(asked: Association, sources: Sources) -> Computed:
    """Cramer's V of each pair; without an interval, as noise that is taken off moves it either way."""

    def one(pair: Clique) -> tuple[float, float, bool]:
        if sources.measured(pair):
            noise = sources.direct.cell_variance(pair)
            return functionals.cramers_v(sources.direct.marginal(pair), noise), np.nan, True
        return functionals.cramers_v(sources.model.marginal(pair), 0.0), np.nan, False

    return _matrix(asked, sources, one, NONE)


def _matrix(
    asked: Correlation | Association,
    sources: Sources,
    one: Callable[[Clique], tuple[float, float, bool]],
    interval: str,
) -> Computed:
    found = [one(pair) for pair in asked.cliques]
    estimate, error = (np.array([row[i] for row in found], dtype=np.float64) for i in (0, 1))
    all_measured = all(measured for *_, measured in found)
    bases = ["measured" if measured else sources.provenance.basis for *_, measured in found]
    figures = _figures(estimate, error, (-1.0, 1.0), (interval, bases, all_measured))
    labels = {"column": [a for a, _ in asked.cliques], "with": [b for _, b in asked.cliques]}
    title = f"{asked.kind} of {_listed(asked.columns)}"
    return Computed(title, (asked.kind, *asked.columns), (), labels, figures)


def _model(asked: Model, sources: Sources) -> Computed:
    """Coefficients of a regression."""
    clique, members = asked.columns, sources.members(asked.columns)
    design, target = design_of(members), members[-1]
    classes = len(target.codec.labels)

    def fit(marginals: Counted) -> Fitted:
        weights = marginals.marginal(clique).ravel()[design.kept]
        if asked.model == "linear":
            assert target.centres is not None
            return linear(design, weights, target.centres[design.target])
        return logistic(design, weights, classes)

    if sources.measured(clique):
        fitted = fit(sources.direct)
        error = _error_of(fitted, design, sources, clique)
        claim = NOISE_ONLY if np.isfinite(error).any() else NONE
        stated: tuple[str, str, bool] = claim, "measured", True
    else:
        fitted = fit(sources.model)
        refits = [fit(again).coefficients.ravel() for again in sources.replicates]
        error = root_mean_square_error(fitted.coefficients.ravel(), refits)
        stated = _by_model(sources)
    figures = _figures(fitted.coefficients.ravel(), error, (-np.inf, np.inf), stated)
    terms = ["(intercept)", *design.terms]
    labels = {"term": terms * len(fitted.coefficients)}
    if asked.model == "logistic":
        of = target.codec.labels[1:] if classes == TWO else target.codec.labels
        labels = {"class": [label for label in of for _ in terms], **labels}
    title = f"{asked.model} regression of {asked.target} on {_listed(asked.on)}"
    document = classifier(design, members, fitted) if asked.model == "logistic" else None
    return Computed(title, (asked.model, asked.target, "on", *asked.on), (), labels, figures, document)


def _error_of(fitted: Fitted, design: Design, sources: Sources, clique: Clique) -> Numbers:
    """Standard errors of coefficients by the known noise of the counts."""
    if fitted.gradient is None:
        return np.full(fitted.coefficients.size, np.nan)
    shape, found = sources.direct.marginal(clique).shape, []
    for row in fitted.gradient:
        weights = np.zeros(design.kept.size)
        weights[design.kept] = row
        found.append(sqrt(sources.direct.variance(clique, weights.reshape(shape))))
    return np.array(found)


COMPUTATIONS: Mapping[type[Asked], Callable[..., Computed]] = {
    Count: _grouped,
    Sum: _grouped,
    Mean: _grouped,
    Variance: _grouped,
    Quantiles: _quantiles,
    Correlation: _correlation,
    Association: _association,
    Model: _model,
}
"""The computation of each kind of statistic; a plain mean and a crosstab have theirs in ``statistics``."""
