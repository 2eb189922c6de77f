"""The computation of each kind of statistic, associations and regressions among them.

A computation takes what was asked for and the sources, and returns a ``Computed``. Figures of columns that
were measured together come from the noisy answers. All other figures are the model's; their errors follow
from the exam. Intervals cover the errors of the counts and what bins leave unknown, where that is bounded.
Each row says in ``limits`` what its interval claims.

Invariant: post-processing. One kind is one declaration (``dpsynth.columns.statistic_kinds``) and one entry
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules import condition_of
from dpsynth.columns.statistic_kinds import (
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
from dpsynth.figures import listed
from dpsynth.statistics.estimates import LEAST_ROWS, NOISE_ONLY, NONE, Z95, CountedCells, Numbers
from dpsynth.statistics.group_figures import Estimate
from dpsynth.statistics.grouped_counts import EVERY_ROW, GroupedCounts, Measure
from dpsynth.statistics.grouped_counts import condition_of as parts_of
from dpsynth.statistics.measured_figures import SummedGroups
from dpsynth.statistics.sources import MeasuredFigures, Sources


def cramers_v(counts: Numbers, cell_variance: float) -> float:
    """Cramer's V of a table of counts, less what its noise is expected to add; NaN without rows.

    Args:
        counts: float64[one, two]; cells below zero count as zero.
        cell_variance: variance of the noise of a cell; 0 for a model's.
    """
    positive = np.maximum(counts, 0.0)
    total, one, two = positive.sum(), positive.sum(axis=1), positive.sum(axis=0)
    positive = positive[one > 0][:, two > 0]
    one, two = one[one > 0], two[two > 0]
    least = min(len(one), len(two)) - 1
    if total < LEAST_ROWS or least < 1:
        return float("nan")
    expected = one[:, None] * two / total
    excess = (positive - expected) ** 2 - cell_variance * (1 - one[:, None] / total) * (1 - two / total)
    square = float((excess / expected).sum()) / total / least
    return float(np.sqrt(np.clip(square, 0.0, 1.0)))


_NEARLY_WITHOUT_PENALTY = 1e6

_ITERATIONS = 2000

TWO = 2


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a regression, one a cell.

    A cell of expected counts is a weighted row, with the centre of its bins. Rows with a missing value in any
    of the columns are left out, as most programs do. Coefficients describe the private table, not a
    population.

    Attributes:
        terms: the names of the terms, without the intercept: a column, or a column and one of its values.
        of: the column and the value of each term; the value of a column of numbers is None.
        x: float64[cells, terms].
        kept: bool[all cells], the cells without a missing value, which are the rows.
        target: int64[cells], the code of the column to explain.
    """

    terms: tuple[str, ...]
    of: tuple[tuple[str, str | None], ...]
    x: Numbers
    kept: NDArray[np.bool_]
    target: Codes


def design_of(columns: Sequence[Column]) -> Design:
    """The rows and terms of a regression of the last of some columns on the others."""
    codes = np.indices(tuple(column.size for column in columns)).reshape(len(columns), -1)
    values = np.array([len(column.codec.labels) for column in columns])
    kept = np.asarray((codes < values[:, None]).all(axis=0))
    codes = codes[:, kept]
    terms: list[tuple[str, str | None]] = []
    parts: list[Numbers] = []
    for column, code in zip(columns[:-1], codes[:-1], strict=True):
        numbers = _numbers(column)
        if numbers is not None:
            terms.append((column.name, None))
            parts.append(numbers[code])
            continue
        for other, label in enumerate(column.codec.labels[1:], start=1):
            terms.append((column.name, label))
            parts.append((code == other).astype(np.float64))
    names = tuple(name if label is None else f"{name} = {label}" for name, label in terms)
    return Design(names, tuple(terms), np.stack(parts, axis=1), kept, codes[-1])


def _numbers(column: Column) -> Numbers | None:
    centres, half_widths = column.centres, column.codec.half_widths
    if centres is None or half_widths is None:
        return None
    counts = column.codec.continuous or len(centres) == TWO or bool(half_widths.any())
    return centres if counts else None


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients, the intercept first.

    Attributes:
        coefficients: float64[classes, 1 + terms]; one class for a number, and for one value against another.
        gradient: float64[1 + terms, cells], their change with each row's weight; None with several classes.
    """

    coefficients: Numbers
    gradient: Numbers | None


def linear(design: Design, weights: Numbers, numbers: Numbers) -> Fitted:
    """Weighted least squares.

    Args:
        weights: float64[cells], expected rows; noise may leave some below zero, which keeps sums unbiased.
        numbers: float64[cells], the number to explain.
    """
    x = _with_intercept(design.x)
    inverse = np.linalg.pinv(x.T @ (weights[:, None] * x))
    found = inverse @ (x.T @ (weights * numbers))
    return Fitted(found[None], inverse @ (x * (numbers - x @ found)[:, None]).T)


def logistic(design: Design, weights: Numbers, classes: int) -> Fitted:
    """Maximum likelihood, by scikit-learn.

    Args:
        weights: float64[cells], expected rows; those below zero count as zero.
        classes: number of values of the target.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.maximum(weights, 0.0)
    terms = design.x.shape[1]
    present = [code for code in range(classes) if weights[design.target == code].sum() > 0]
    rows = 1 if classes == TWO else classes
    if len(present) < TWO:
        return Fitted(np.full((rows, 1 + terms), np.nan), None)
    used = weights > 0
    centre = np.average(design.x[used], axis=0, weights=weights[used])
    scale = np.sqrt(np.average((design.x[used] - centre) ** 2, axis=0, weights=weights[used]))
    scale = np.where(scale > 0, scale, 1.0)
    fit = LogisticRegression(C=_NEARLY_WITHOUT_PENALTY, max_iter=_ITERATIONS, tol=1e-8)
    fit.fit(
        (design.x[used] - centre) / scale, design.target[used], sample_weight=weights[used] / weights.mean()
    )
    slopes = fit.coef_ / scale
    found = np.full((rows, 1 + terms), np.nan)
    spots = [0] if classes == TWO else (present if len(present) > TWO else present[1:])
    found[spots] = np.column_stack([fit.intercept_ - slopes @ centre, slopes])
    return Fitted(found, _influence(design, weights, found[0]) if classes == TWO else None)


def _influence(design: Design, weights: Numbers, found: Numbers) -> Numbers:
    """Change of a binary regression's coefficients with each row's weight: inverse Hessian times score."""
    x = _with_intercept(design.x)
    chance = 1 / (1 + np.exp(-np.clip(x @ found, -700, 700)))
    inverse = np.linalg.pinv(x.T @ ((weights * chance * (1 - chance))[:, None] * x))
    return np.asarray(inverse @ (x * ((design.target == 1) - chance)[:, None]).T)


def _with_intercept(x: Numbers) -> Numbers:
    return np.column_stack([np.ones(len(x)), x])


def classifier(design: Design, columns: Sequence[Column], fitted: Fitted) -> Mapping[str, object]:
    """A logistic regression as JSON values, with all that is needed to use it."""
    target = columns[-1]
    labels = target.codec.labels
    about = labels[1:] if len(labels) == TWO else labels
    return {
        "model": "logistic regression",
        "target": target.name,
        "classes": list(labels),
        "terms": [
            {"column": name} if label is None else {"column": name, "value": label}
            for name, label in design.of
        ],
        "scores": [
            {
                "class": label,
                "intercept": _plain(row[0]),
                "coefficients": [_plain(number) for number in row[1:]],
            }
            for label, row in zip(about, fitted.coefficients, strict=True)
        ],
        "use": "The score of a class is its intercept plus the sum of coefficients times terms: a column's "
        "number, or 1 where it has the value and 0 where not. With two classes the first one has a score of "
        "0. The chance of a class is exp(score), divided by the sum of that over all classes.",
    }


def _plain(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of one table, one a row.

    Attributes:
        interval: what the interval of each row claims.
        basis: what the figures rest on; one for all rows, or one a row.
        measured: true if they don't rest on the model.
    """

    estimate: Numbers
    error: Numbers
    low: Numbers
    high: Numbers
    interval: Sequence[str]
    basis: str | Sequence[str]
    measured: bool
    more: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Computed:
    """The computation's result.

    Attributes:
        name: parts of a file name.
        members: the columns of the groups, whose labels come first.
        document: the same as JSON values; None where a table says it all.
    """

    title: str
    name: tuple[str, ...]
    members: tuple[Column, ...]
    labels: Mapping[str, Sequence[str]]
    figures: Figures
    document: Mapping[str, object] | None = None


def _tabled(found: Sequence[Estimate], limits: str, basis: str | Sequence[str], *, measured: bool) -> Figures:
    """Figures of estimates; those that aren't sound claim to cover the noise only, if anything."""
    ends = np.array([(f.value, f.error, f.low, f.high) for f in found], dtype=np.float64).reshape(-1, 4)
    estimate, error, low, high = ends.T
    return Figures(estimate, error, low, high, [_claim(f, limits) for f in found], basis, measured)


def _claim(found: Estimate, limits: str) -> str:
    """The claim of a figure's interval, by that of the counts; without an end there is none."""
    if not np.isfinite(found.low):
        return NONE
    return limits if found.sound or limits == NONE else NOISE_ONLY


def counts(clique: Clique, sources: Sources, *, alone: bool = False) -> Computed:
    """Estimated rows of each combination of values, and their shares too if a column stands alone.

    Where noise has taken a count below zero, the upper end is that of a count of 0.
    """
    counted = sources.counted(clique)
    found = counted.figures
    figures = Figures(
        found.rows,
        found.error,
        np.maximum(found.rows - Z95 * found.error, 0.0),
        np.maximum(found.rows, 0.0) + Z95 * found.error,
        [counted.limits] * found.rows.size,
        counted.basis,
        sources.is_direct(clique),
        {"share": found.share, "share_standard_error": found.share_error} if alone else {},
    )
    kind = "one_way" if alone else "crosstab"
    return Computed(listed(clique), (kind, *clique), sources.members(clique), {}, figures)


def _by_group(
    asked: Grouped, measures: Sequence[Measure], sources: Sources
) -> tuple[GroupedCounts | MeasuredFigures, list[float], Figures]:
    """The groups; the rows that each figure rests on; and figures, one for each measure in each group."""
    own = sources.measured_figures(measures[0], asked.by) if asked.where is None else None
    groups = grouped_counts(asked, sources) if own is None else own
    found = [groups.figure(number, each) for number in range(groups.groups) for each in measures]
    measured = sources.is_direct(asked.columns)
    figures = _tabled([figure for figure, _ in found], groups.limits, groups.basis, measured=measured)
    return groups, [rows for _, rows in found], figures


def _grouped(asked: Grouped, sources: Sources) -> Computed:
    _, _, figures = _by_group(asked, [Measure(asked.kind, asked.numbers)], sources)
    if isinstance(asked, Variance):
        figures = replace(figures, more={"standard_deviation": np.sqrt(figures.estimate)})
    return Computed(*_named(asked), sources.members(asked.by), {}, figures)


def _mean(asked: Mean, sources: Sources) -> Computed:
    if asked.stated is not None:
        return _grouped(asked, sources)
    groups, rows, figures = _by_group(asked, [Measure("mean", asked.numbers)], sources)
    assert isinstance(groups, GroupedCounts | SummedGroups)
    hidden = [groups.grouping_error(number, asked.mean) for number in range(groups.groups)]
    more = {"rows": np.array(rows), "grouping_error": np.where(np.isnan(figures.estimate), np.nan, hidden)}
    figures = replace(figures, interval=[groups.limits] * len(rows), more=more)
    title, name = _named(asked)
    title = f"{asked.mean} by {asked.by[0]}" if asked.by else title
    return Computed(title, name, sources.members(asked.by), {}, figures)


def _named(asked: Grouped) -> tuple[str, tuple[str, ...]]:
    of = "rows" if asked.of is None else f"{asked.kind} of {asked.of}"
    by = f" by {listed(asked.by)}" if asked.by else ""
    where = f" where {asked.where}" if asked.where else ""
    parts = (
        asked.kind,
        *asked.numbers,
        *(("by", *asked.by) if asked.by else ()),
        *(["where"] if where else []),
    )
    return f"{of}{by}{where}", parts


def grouped_counts(asked: Grouped, sources: Sources) -> GroupedCounts:
    """The counts that a statistic by group is computed from."""
    members = sources.members(asked.columns)
    where = EVERY_ROW
    if asked.where is not None:
        layout = Layout.of(sources.columns)
        where = parts_of(condition_of(asked.where, layout), layout)
    return GroupedCounts(members, len(asked.by), sources.counted(asked.columns), where)


def _quantiles(asked: Quantiles, sources: Sources) -> Computed:
    measures = [Measure("quantile", asked.numbers, float(share)) for share in asked.at]
    labels = {"quantile": [str(share) for share in asked.at]}
    return Computed(*_named(asked), sources.members(asked.by), labels, _by_group(asked, measures, sources)[2])


def _correlation(asked: Correlation, sources: Sources) -> Computed:
    def one(pair: Clique) -> tuple[Estimate, str]:
        table = GroupedCounts(sources.members(pair), 0, sources.counted(pair))
        return table.figure(0, Measure("correlation", pair))[0], table.counted.limits

    return _matrix(asked, sources, one)


def _association(asked: Association, sources: Sources) -> Computed:
    """Cramer's V of each pair; without an interval, as noise that is taken off moves it either way."""

    def one(pair: Clique) -> tuple[Estimate, str]:
        noise = sources.direct.cell_variance(pair) if sources.measured(pair) else 0.0
        return Estimate(cramers_v(sources.counted(pair).cells, noise), sound=False), NONE

    return _matrix(asked, sources, one)


def _matrix(
    asked: Correlation | Association, sources: Sources, one: Callable[[Clique], tuple[Estimate, str]]
) -> Computed:
    found = [one(pair) for pair in asked.cliques]
    bases = [sources.counted(pair).basis for pair in asked.cliques]
    all_measured = all(sources.is_direct(pair) for pair in asked.cliques)
    claims = [_claim(estimate, limits) for estimate, limits in found]
    figures = replace(
        _tabled([estimate for estimate, _ in found], NONE, bases, measured=all_measured), interval=claims
    )
    labels = {"column": [a for a, _ in asked.cliques], "with": [b for _, b in asked.cliques]}
    title = f"{asked.kind} of {listed(asked.columns)}"
    return Computed(title, (asked.kind, *asked.columns), (), labels, figures)


def _model(asked: Model, sources: Sources) -> Computed:
    clique, members = asked.columns, sources.members(asked.columns)
    design, target = design_of(members), members[-1]
    classes = len(target.codec.labels)

    def fit(cells: Numbers) -> Fitted:
        weights = cells.ravel()[design.kept]
        if asked.model == "linear":
            assert target.centres is not None
            return linear(design, weights, target.centres[design.target])
        return logistic(design, weights, classes)

    counted = sources.counted(clique)
    fitted = fit(counted.cells)
    error = _error_of(fitted, design, counted)
    # Each code has one value, or none that a regression computes with.
    sound = all(c.codec.half_widths is None or not c.codec.half_widths.any() for c in members)
    found = [
        Estimate(value, value - Z95 * wide, value + Z95 * wide, wide, sound=sound)
        for value, wide in zip(fitted.coefficients.ravel(), error, strict=True)
    ]
    figures = _tabled(found, counted.limits, counted.basis, measured=sources.is_direct(clique))
    terms = ["(intercept)", *design.terms]
    labels = {"term": terms * len(fitted.coefficients)}
    if asked.model == "logistic":
        of = target.codec.labels[1:] if classes == TWO else target.codec.labels
        labels = {"class": [label for label in of for _ in terms], **labels}
    title = f"{asked.model} regression of {asked.target} on {listed(asked.on)}"
    document = classifier(design, members, fitted) if asked.model == "logistic" else None
    return Computed(title, (asked.model, asked.target, "on", *asked.on), (), labels, figures, document)


def _error_of(fitted: Fitted, design: Design, counted: CountedCells) -> Numbers:
    if fitted.gradient is None:
        return np.full(fitted.coefficients.size, np.nan)
    found = []
    for row in fitted.gradient:
        weights = np.zeros(design.kept.size)
        weights[design.kept] = row
        found.append(counted.reach(weights) / Z95 if np.isfinite(row).all() else np.nan)
    return np.array(found)


COMPUTATIONS: Mapping[type[Asked], Callable[..., Computed]] = {
    Crosstab: lambda asked, sources: counts(asked.columns, sources),
    Count: _grouped,
    Sum: _grouped,
    Mean: _mean,
    Variance: _grouped,
    Quantiles: _quantiles,
    Correlation: _correlation,
    Association: _association,
    Model: _model,
}
"""The computation of each kind of statistic."""
