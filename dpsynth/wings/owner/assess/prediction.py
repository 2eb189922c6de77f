"""Models for named targets, trained on the synthetic table and tested on real rows, and their coefficients.

Both trained models, the one of synthetic rows and the one of real rows, are tested on the same real rows,
which neither has seen. Coefficients of regressions stand side by side with the intervals of ordinary theory:
those of a sample, not of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.assess.agreement import halves, sampled
from dpsynth.wings.owner.assess.owned_bundle import CodedTable
from dpsynth.wings.owner.assess.propensity import codes_of, nominal

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

_MOST_ROWS = 40_000
_FEWEST_ROWS = 50
_FEW_VALUES = 20
"""Largest number of cells of a target that is classified; a column of numbers with more is regressed."""
_SEED = 7

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
    made, train, test = (problem.rows(sampled(t, _MOST_ROWS)) for t in (synthetic, first, second))
    if min(len(train.y), len(test.y)) < _FEWEST_ROWS or min(map(_values, (train.y, test.y))) < 2:
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

    enough = len(made.y) >= _FEWEST_ROWS and _values(made.y) >= 2
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
        """The rows that have the target."""
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
        """Boosted trees, not yet fitted."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingRegressor if self.regressed else HistGradientBoostingClassifier
        return kind(
            max_iter=80, categorical_features=list(self.nominal), random_state=_SEED, early_stopping=False
        )


def _values(y: NDArray[np.float64]) -> int:
    return len(np.unique(y))
