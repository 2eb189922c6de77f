"""Regressions of named targets on all other columns, fitted to both tables: coefficients side by side.

A target of numbers has a linear regression, one of two values a logistic one. Numbers are standardised by the
private table's mean and deviation; of named values each but the most frequent has a coefficient. Intervals
are those of ordinary theory, of a sample without noise: they are what an analyst of either table would
report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.wings.owner.assess.agreement import sampled
from dpsynth.wings.owner.assess.owned_bundle import CodedTable, Numbers

_MOST_ROWS = 50_000
_MOST_LEVELS = 12
_MOST_MISSING = 0.2
_FEWEST_ROWS = 10
"""Fewest rows of each table for each coefficient."""
_Z95 = 1.96


@dataclass(frozen=True)
class Coefficient:
    """A coefficient in both tables, with its standard error in each.

    Attributes:
        name: the column, or the column and one of its values.
        real, real_error: in the private table.
        synthetic, synthetic_error: in the synthetic one.
    """

    name: str
    real: float
    real_error: float
    synthetic: float
    synthetic_error: float

    @property
    def overlap(self) -> float:
        """The mean part of either 95 % interval that lies in the other one; 0 where they are apart.

        Source: Karr, Kohnen, Oganian, Reiter and Sanil (2006).
        """
        ends = [
            (value - _Z95 * error, value + _Z95 * error)
            for value, error in ((self.real, self.real_error), (self.synthetic, self.synthetic_error))
        ]
        common = max(min(ends[0][1], ends[1][1]) - max(ends[0][0], ends[1][0]), 0.0)
        widths = [high - low for low, high in ends]
        return float(np.mean([common / width if width > 0 else 0.0 for width in widths]))


@dataclass(frozen=True)
class Regression:
    """A regression of one target.

    Attributes:
        target: the column; for a logistic regression with the value that is predicted.
        kind: "linear" or "logistic".
        rows: rows of the private and of the synthetic table that have all values.
        coefficients: without the intercept.
        left_out: columns without a coefficient: too many values, too many missing cells, or no variation.
    """

    target: str
    kind: str
    rows: tuple[int, int]
    coefficients: tuple[Coefficient, ...]
    left_out: tuple[str, ...]

    @property
    def overlap(self) -> float:
        """The mean overlap of the coefficients' intervals."""
        return float(np.mean([c.overlap for c in self.coefficients]))


def regression(real: CodedTable, synthetic: CodedTable, target: str) -> Regression | None:
    """The regression of a target; None where it has neither numbers nor two values, or rows are too few."""
    if min(real.rows, synthetic.rows) < _FEWEST_ROWS:
        return None
    column = next(c for c in real.columns if c.name == target)
    linear = target in real.numbers and column.size > 3
    if not linear and len(column.codec.labels) != 2:
        return None
    tables = sampled(real, _MOST_ROWS), sampled(synthetic, _MOST_ROWS)
    terms, left_out = _terms(tables[0], column)
    designs = [_design(table, column, terms, linear) for table in tables]
    varied = (
        np.all([design.x.std(axis=0) > 1e-12 for design in designs], axis=0) if terms else np.zeros(0, bool)
    )
    # A term that is a sum of others has no coefficient of its own.
    kept = [spot for spot in _independent(designs[0].x) if varied[spot]]
    if not kept or min(len(design.y) for design in designs) < _FEWEST_ROWS * len(kept):
        return None
    fits = [_fitted(design.x[:, kept], design.y, linear) for design in designs]
    return Regression(
        target=target if linear else f"{target} = {column.codec.labels[1]}",
        kind="linear" if linear else "logistic",
        rows=(len(designs[0].y), len(designs[1].y)),
        coefficients=tuple(
            Coefficient(terms[spot].name, *(float(f[part][1 + i]) for f in fits for part in (0, 1)))
            for i, spot in enumerate(kept)
        ),
        left_out=(*left_out, *(term.name for spot, term in enumerate(terms) if spot not in kept)),
    )


@dataclass(frozen=True)
class _Term:
    """One predictor: a column of numbers with its mean and deviation, or one value of a column."""

    column: str
    name: str
    code: int | None = None
    mean: float = 0.0
    deviation: float = 1.0

    def values(self, table: CodedTable) -> Numbers:
        if self.code is None:
            return np.asarray((table.numbers[self.column] - self.mean) / self.deviation)
        return np.asarray(table.codes[self.column] == self.code, np.float64)


def _terms(real: CodedTable, target: Column) -> tuple[list[_Term], list[str]]:
    terms, left_out = list[_Term](), list[str]()
    for column in real.columns:
        if column.name == target.name:
            continue
        numbers = real.numbers.get(column.name)
        known = None if numbers is None else numbers[np.isfinite(numbers) & (np.abs(numbers) < 1e100)]
        if known is not None and column.size > 3 and len(known) >= (1 - _MOST_MISSING) * real.rows:
            deviation = float(known.std()) if len(known) else 0.0
            if deviation > 0:
                terms.append(_Term(column.name, column.name, None, float(known.mean()), deviation))
                continue
        if column.size <= _MOST_LEVELS:
            usual = int(real.counts((column.name,)).argmax())
            terms += [
                _Term(column.name, f"{column.name} = {label}", code)
                for code, label in enumerate(column.labels)
                if code != usual
            ]
        else:
            left_out.append(column.name)
    return terms, left_out


@dataclass(frozen=True, eq=False)
class _Design:
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def _design(table: CodedTable, target: Column, terms: list[_Term], linear: bool) -> _Design:
    """The rows without a missing number in any term or the target."""
    y = table.numbers[target.name] if linear else table.codes[target.name].astype(np.float64)
    x = np.column_stack([np.zeros((table.rows, 0)), *(term.values(table) for term in terms)])
    usable = (
        np.isfinite(y) & (np.abs(y) < 1e100) & np.isfinite(x).all(axis=1) & (np.abs(x) < 1e100).all(axis=1)
    )
    if not linear:
        usable &= y < 2
    return _Design(x[usable], y[usable])


def _independent(x: NDArray[np.float64]) -> list[int]:
    """The columns that are no linear combination of those before them and of a constant."""
    if not len(x):
        return []
    _, triangle = np.linalg.qr(np.column_stack([np.ones(len(x)), x]))
    diagonal = np.abs(np.diag(triangle))
    return [spot for spot in range(x.shape[1]) if diagonal[1 + spot] > 1e-8 * diagonal[0]]


def _fitted(
    x: NDArray[np.float64], y: NDArray[np.float64], linear: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and standard errors, the intercept first."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    whole = np.column_stack([np.ones(len(x)), x])
    if linear:
        model = LinearRegression().fit(x, y)
        rest = y - model.predict(x)
        weights = np.full(len(x), 1.0 / max(float(rest @ rest) / max(len(y) - whole.shape[1], 1), 1e-300))
        found = np.concatenate([[model.intercept_], model.coef_])
    else:
        model = LogisticRegression(C=1e4, max_iter=500).fit(x, y)
        chance = model.predict_proba(x)[:, 1]
        weights = chance * (1.0 - chance)
        found = np.concatenate([model.intercept_, model.coef_[0]])
    information = whole.T @ (whole * weights[:, None])
    return found, np.sqrt(np.maximum(np.diag(np.linalg.pinv(information, hermitian=True)), 0.0))
