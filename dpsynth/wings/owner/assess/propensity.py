"""Propensity: how well a classifier tells synthetic rows from real ones.

pMSE is the mean squared distance of the classifier's probabilities from the share of synthetic rows (Woo,
Reiter, Oganian and Karr 2009). A logistic regression has a known expectation of it where both tables come
from one population, (k - 1)(1 - c)^2 c/N for k coefficients and a share c of N rows (Snoke et al. 2018); the
ratio to that is 1 for a table that nobody could tell. Boosted trees, by cross-validation, see what a
regression doesn't.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.owner.assess.agreement import sampled
from dpsynth.wings.owner.assess.owned_bundle import CodedTable

_MOST_ROWS = 20_000
"""Largest number of rows of each table."""
_FEWEST_ROWS = 50
_LEVELS = 30
"""Largest number of values of a column that the regression tells apart; rarer ones are one value."""
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
    if min(real.rows, synthetic.rows) < _FEWEST_ROWS:
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.inspection import permutation_importance
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.preprocessing import OneHotEncoder

    tables = sampled(real, _MOST_ROWS), sampled(synthetic, _MOST_ROWS)
    features = np.concatenate([codes_of(table) for table in tables])
    made = np.repeat([0, 1], [table.rows for table in tables])
    share = float(made.mean())

    encoded = OneHotEncoder(max_categories=_LEVELS, drop="first").fit_transform(features)
    regression = LogisticRegression(C=100.0, max_iter=300).fit(encoded, made)
    pmse = _pmse(regression.predict_proba(encoded)[:, 1], share)
    expected = encoded.shape[1] * (1.0 - share) ** 2 * share / len(made)

    trees = HistGradientBoostingClassifier(
        max_iter=80, categorical_features=nominal(real), random_state=_SEED, early_stopping=False
    )
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=_SEED)
    guessed = cross_val_predict(trees, features, made, cv=folds, method="predict_proba")[:, 1]
    train, test = next(iter(folds.split(features, made)))
    # Permutation on rows that the trees have not seen.
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
