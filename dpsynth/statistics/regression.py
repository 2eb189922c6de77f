"""Regressions fitted to a table of expected counts, each cell a weighted row.

A cell counts with the centre of its bins. Rows with a missing value in any of the columns are left out, as
most programs do. The coefficients of a logistic regression are a classifier, and are written as plain
numbers.

Invariant: post-processing. The numbers describe the private table, not a population behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.statistics.estimates import Numbers

_NEARLY_WITHOUT_PENALTY = 1e6
_ITERATIONS = 2000
TWO = 2


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a regression, one a cell.

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
    """The number of each value; None for values whose order means nothing."""
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
        design: the rows.
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
        design: the rows.
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
    """A logistic regression as JSON values, with all that is needed to use it.

    Args:
        design: its rows and terms.
        columns: the columns that explain, then the target.
        fitted: its coefficients.
    """
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
