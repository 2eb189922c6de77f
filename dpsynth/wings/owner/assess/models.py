"""Models of both tables: classifiers that tell them apart, predictions of named targets, and regressions.

pMSE is the mean squared distance of a classifier's probabilities from the share of synthetic rows (Woo,
Reiter, Oganian and Karr 2009). A logistic regression has a known expectation of it where both tables come
from one population, (k - 1)(1 - c)^2 c/N for k coefficients and a share c of N rows (Snoke et al. 2018); the
ratio to that is 1 for a table that nobody could tell. Boosted trees, by cross-validation, see what a
regression doesn't.

Predictions are those of two trained models, of synthetic rows and of real rows, on the same real rows, which
neither has seen.

A target of numbers has a linear regression, one of two values a logistic one. Numbers are standardised by the
private table's mean and deviation; of named values each but the most frequent has a coefficient. Intervals
are those of ordinary theory, of a sample without noise: they are what an analyst of either table would
report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.assess.comparison import halves, sampled
from dpsynth.wings.owner.assess.owned_bundle import CodedTable, Numbers

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor


_MOST_CLASSIFIED = 20_000
"""Largest number of rows of each table."""
_FEWEST_CLASSIFIED = 50
_LEVELS = 30
"""Largest number of values of a column that the regression tells apart; rarer ones are one value."""
_SHUFFLED, _FEWEST_SHUFFLED = 1 << 17, 1_000
"""Cells of the rows by which the columns that tell most are found, and the fewest rows."""
_FOLDS = 5
_SEED = 7


@dataclass(frozen=True)
class Propensity:
    """Scores of two classifiers.

    Attributes:
        rows: rows of each table that were used.
        pmse: of the logistic regression.
        ratio: its ratio to the expectation where the tables come from one population.
        trees_pmse: of boosted trees, by cross-validation.
        trees_auc: the probability that boosted trees rank a synthetic row above a real one; 0.5 is a coin.
        telling: the columns whose shuffling costs the trees most of that, with their part of it.
    """

    rows: tuple[int, int]
    pmse: float
    ratio: float
    trees_pmse: float
    trees_auc: float
    telling: tuple[tuple[str, float], ...]


def propensity(real: CodedTable, synthetic: CodedTable) -> Propensity | None:
    """The scores; None where a table has fewer than 50 rows."""
    if min(real.rows, synthetic.rows) < _FEWEST_CLASSIFIED:
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.inspection import permutation_importance
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.preprocessing import OneHotEncoder

    tables = sampled(real, _MOST_CLASSIFIED), sampled(synthetic, _MOST_CLASSIFIED)
    features = np.concatenate([codes_of(table) for table in tables])
    made = np.repeat([0, 1], [table.rows for table in tables])
    share = float(made.mean())

    encoded = OneHotEncoder(max_categories=_LEVELS, drop="first").fit_transform(features)
    pmse = 0.0
    # Where all cells of every column are alike, there is nothing to tell rows apart by.
    if encoded.shape[1]:
        regression = LogisticRegression(C=100.0, max_iter=300).fit(encoded, made)
        pmse = _pmse(regression.predict_proba(encoded)[:, 1], share)
    expected = encoded.shape[1] * (1.0 - share) ** 2 * share / len(made)

    trees = HistGradientBoostingClassifier(
        max_iter=80, categorical_features=nominal(real), random_state=_SEED, early_stopping=False
    )
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=_SEED)
    guessed = cross_val_predict(trees, features, made, cv=folds, method="predict_proba")[:, 1]
    train, test = next(iter(folds.split(features, made)))
    # Permutation on rows that the trees have not seen, fewer of them where columns are many.
    test = test[:: -(-len(test) // max(_SHUFFLED // features.shape[1], _FEWEST_SHUFFLED))]
    fitted = trees.fit(features[train], made[train])
    importance = permutation_importance(
        fitted, features[test], made[test], scoring="roc_auc", n_repeats=2, random_state=_SEED
    ).importances_mean
    ranked = np.argsort(-importance)[:6]
    return Propensity(
        rows=(tables[0].rows, tables[1].rows),
        pmse=pmse,
        ratio=pmse / expected if expected else 0.0,
        trees_pmse=_pmse(guessed, share),
        trees_auc=float(roc_auc_score(made, guessed)),
        telling=tuple(
            (real.columns[spot].name, float(importance[spot])) for spot in ranked if importance[spot] > 0.001
        ),
    )


def codes_of(table: CodedTable) -> NDArray[np.float64]:
    """The cells of all columns, float64[rows, columns]."""
    return np.column_stack([table.codes[column.name].astype(np.float64) for column in table.columns])


def nominal(table: CodedTable) -> list[bool]:
    """The columns whose cells have no order, as far as trees can take them so: up to 200 cells."""
    return [not column.codec.ordered and column.size <= 200 for column in table.columns]


def _pmse(probabilities: NDArray[np.float64], share: float) -> float:
    return float(np.mean((probabilities - share) ** 2))


_MOST_TRAINED = 40_000
_FEWEST_TRAINED = 50
_FEW_VALUES = 20
"""Largest number of cells of a target that is classified; a column of numbers with more is regressed."""

Score = Literal["AUC", "accuracy", "R²"]


@dataclass(frozen=True)
class Prediction:
    """Scores of models of one target on the same real rows.

    Attributes:
        target: the column.
        score: the kind of score: AUC for two values, accuracy for several, R² for numbers. More is better.
        on_synthetic: of boosted trees trained on synthetic rows.
        on_real: of boosted trees trained on real rows.
        constant: of the best constant guess.
        rows: rows for training on synthetic and on real rows, and for the test.
    """

    target: str
    score: Score
    on_synthetic: float | None
    on_real: float
    constant: float
    rows: tuple[int, int, int]


def check_targets(columns: Sequence[Column], targets: Sequence[str]) -> None:
    """Refuse targets that no release has.

    Raises:
        ConfigError: a target is no released column that is read from the table, or named twice.
    """
    names = [column.name for column in columns]
    for spot, target in enumerate(targets):
        if target not in names:
            raise ConfigError(
                f"--target {target}: the release has no such column that is read from the table; it has "
                f"{', '.join(names)}."
            )
        if target in targets[:spot]:
            raise ConfigError(f"--target {target} is given twice. Name each target once.")


def prediction(real: CodedTable, synthetic: CodedTable, target: str) -> Prediction | None:
    """The scores of one target; None where there are too few rows, or real rows with one value only."""
    from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

    first, second = halves(real)
    problem = _Problem.of(real, target)
    made, train, test = (problem.rows(sampled(t, _MOST_TRAINED)) for t in (synthetic, first, second))
    if min(len(train.y), len(test.y)) < _FEWEST_TRAINED or min(map(_values, (train.y, test.y))) < 2:
        return None
    score: Score
    if problem.regressed:
        score = "R²"
    else:
        score = "AUC" if _values(np.concatenate([train.y, test.y])) == 2 else "accuracy"

    def scored(by: _Rows) -> float:
        if problem.regressed:
            return float(r2_score(test.y, problem.trees().fit(by.x, by.y).predict(test.x)))
        model = problem.trees().fit(by.x, by.y)
        if score == "AUC":
            more = model.predict_proba(test.x)[:, -1]
            return float(roc_auc_score(test.y == max(set(test.y.tolist())), more))
        return float(accuracy_score(test.y, model.predict(test.x)))

    enough = len(made.y) >= _FEWEST_TRAINED and _values(made.y) >= 2
    _, counts = np.unique(test.y, return_counts=True)
    constant = {"R²": 0.0, "AUC": 0.5, "accuracy": float(counts.max() / counts.sum())}[score]
    return Prediction(
        target=target,
        score=score,
        on_synthetic=scored(made) if enough else None,
        on_real=scored(train),
        constant=constant,
        rows=(len(made.y), len(train.y), len(test.y)),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows for a model: the cells of all other columns, and the target."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]


@dataclass(frozen=True)
class _Problem:
    """A target that is regressed or classified, and which of the other columns have no order."""

    column: Column
    regressed: bool
    nominal: tuple[bool, ...]

    @staticmethod
    def of(table: CodedTable, target: str) -> _Problem:
        column = next(c for c in table.columns if c.name == target)
        kept = [
            is_nominal for c, is_nominal in zip(table.columns, nominal(table), strict=True) if c is not column
        ]
        return _Problem(column, target in table.numbers and column.size > _FEW_VALUES, tuple(kept))

    def rows(self, table: CodedTable) -> _Rows:
        name = self.column.name
        if self.regressed:
            y = table.numbers[name]
            known = np.isfinite(y) & (np.abs(y) < 1e100)
        else:
            y = table.codes[name].astype(np.float64)
            known = y < len(self.column.codec.labels)
        others = [spot for spot, column in enumerate(table.columns) if column is not self.column]
        return _Rows(codes_of(table)[known][:, others], y[known])

    def trees(self) -> HistGradientBoostingRegressor | HistGradientBoostingClassifier:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingRegressor if self.regressed else HistGradientBoostingClassifier
        return kind(
            max_iter=80, categorical_features=list(self.nominal), random_state=_SEED, early_stopping=False
        )


def _values(y: NDArray[np.float64]) -> int:
    return len(np.unique(y))


_MOST_FITTED = 50_000
_MOST_LEVELS = 12
_MOST_MISSING = 0.2
_FEWEST_FITTED = 10
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
        return float(np.mean([c.overlap for c in self.coefficients]))


def regression(real: CodedTable, synthetic: CodedTable, target: str) -> Regression | None:
    """The regression of a target; None where it has neither numbers nor two values, or rows are too few."""
    if min(real.rows, synthetic.rows) < _FEWEST_FITTED:
        return None
    column = next(c for c in real.columns if c.name == target)
    linear = target in real.numbers and column.size > 3
    if not linear and len(column.codec.labels) != 2:
        return None
    tables = sampled(real, _MOST_FITTED), sampled(synthetic, _MOST_FITTED)
    terms, left_out = _terms(tables[0], column)
    designs = [_design(table, column, terms, linear) for table in tables]
    varied = (
        np.all([design.x.std(axis=0) > 1e-12 for design in designs], axis=0) if terms else np.zeros(0, bool)
    )
    # A term that is a sum of others has no coefficient of its own.
    kept = [spot for spot in _independent(designs[0].x) if varied[spot]]
    if not kept or min(len(design.y) for design in designs) < _FEWEST_FITTED * len(kept):
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
