"""A release as an estimator of scikit-learn: ``fit`` releases a table, ``sample`` draws synthetic rows.

Invariant: parameters are stored as they are given, and checked in ``fit``. Each ``fit`` is a release, which
is charged to the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dpsynth.api.releasing import NO_COLUMNS, held, note, released
from dpsynth.bundle.recipient import open_bundle
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.result import Release

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from dpsynth.api.releasing import Columns, Number, Table
    from dpsynth.bundle.recipient import Bundle
    from dpsynth.bundle.recipient.more_rows import Given


class Synthesizer(BaseEstimator):  # type: ignore[misc]
    """A differentially private model of a table, from which synthetic rows are drawn.

    Each ``fit`` is a release of its own: it is charged to the ledger, writes a bundle, and fits to noisy
    answers alone. So it differs from call to call, and a search over parameters would pay for each fit.

    Args:
        epsilon: privacy loss of a fit.
        delta: probability that the bound may fail; 0 for pure epsilon-DP.
        columns: a declaration for each column to use, by name; or one declaration for all columns of the
            table, such as ``{"type": "number", "min": 0, "max": 1}``. ``dpsynth.describe`` guesses them, for
            review. Columns of an array are named x0, x1, and so on.
        constraints: rules that every synthetic row obeys, such as ``["cost <= 10 * age"]``.
        dataset: the name under which the ledger adds up all releases of the table.
        ledger: the ledger's file, or the address of its database. None: ledger.db in the working folder.
        outputs: folder of bundles.
        keys: further keys of ``dpsynth.release``, such as ``{"unit": ..., "structure": {...}}``.

    Attributes:
        release_: the release; its ``synthetic``, ``statistics``, ``query`` and ``report()`` are those of
            ``dpsynth.release``. After ``load`` it is the opened bundle, which has them as well.
        guarantee_: the guarantee of the fit.
        n_features_in_: number of columns of the table.
        feature_names_in_: their names, if the table has any.
    """

    def __init__(  # noqa: PLR0913 (scikit-learn reads the parameters from here)
        self,
        epsilon: Number = 1.0,
        delta: Number | None = 1e-9,
        *,
        columns: Columns | Mapping[str, object] | None = None,
        constraints: Sequence[str] | None = None,
        dataset: str | None = None,
        ledger: str | Path | Mapping[str, object] | None = None,
        outputs: str | Path = "outputs",
        keys: Mapping[str, object] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.constraints = constraints
        self.dataset = dataset
        self.ledger = ledger
        self.outputs = outputs
        self.keys = keys

    def fit(self, X: Table | Mapping[str, Table] | ArrayLike, y: object = None) -> Self:
        """Release a table.

        Args:
            X: a table as ``dpsynth.release`` takes it, or an array of shape (rows, columns); or linked tables
                by name, which ``keys`` describes under tables.
            y: ignored.

        Raises:
            DpsynthError: as ``dpsynth.release``; ConfigError if columns or dataset are missing.
            ValueError: X is no array of two dimensions.
        """
        del y
        table, names = self._table(X)
        closed = held(table)
        del X, table
        named = {"dataset": self.dataset, "ledger": self.ledger, "constraints": self.constraints}
        keys = {key: value for key, value in named.items() if value is not None} | {
            "epsilon": self.epsilon,
            "delta": self.delta,
        }
        if "tables" not in (self.keys or {}):
            keys["columns"] = self._declared(names)
        twice = next((key for key in self.keys or {} if key in keys), None)
        if twice is not None:
            raise ConfigError(f"{twice} is given twice: as a parameter, and under keys. Keep one.")
        request = Request(Path(self.outputs))
        self.release_: Release | Bundle = released(closed, None, request, note, {**keys, **(self.keys or {})})
        self.guarantee_ = self.release_.guarantee
        return self

    def sample(self, n: int, random_state: int | None = None, *, given: Given = None) -> pd.DataFrame:
        """Synthetic rows of the fitted model, at no cost, as a frame of the library of the fitted table.

        Args:
            random_state: a seed that makes them repeatable.
            given: what each row must have: ``{"sex": "F"}``, ``"age >= 65"``, or several such conditions.

        Raises:
            NotFittedError: nothing was fitted.
            DpsynthError: no row has what is given.
        """
        check_is_fitted(self, "release_")
        return self.release_.sample(n, seed=random_state, given=given)

    def sample_tables(
        self, n: int, random_state: int | None = None, *, given: Given = None
    ) -> dict[str, pd.DataFrame]:
        """Synthetic rows of the linked table at the root, with all rows below, as ``sample`` draws them."""
        check_is_fitted(self, "release_")
        bundle = self.release_.bundle if isinstance(self.release_, Release) else self.release_
        return bundle.sample_tables(n, seed=random_state, given=given)

    def save(self, outputs: str | Path) -> Path:
        """Copy the whole bundle of the fit to ``outputs/<release>/<release id>``.

        Returns:
            The folder that ``load`` takes.

        Raises:
            NotFittedError: nothing was fitted.
            DpsynthError: another file or folder has that name, or this was loaded itself.
        """
        check_is_fitted(self, "release_")
        if isinstance(self.release_, Release):
            return self.release_.save(outputs)
        raise DpsynthError(f"This was loaded from {self.release_.folder}, which is a copy already: use that.")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A fitted synthesizer by the bundle of its release: it samples, and is charged nothing.

        Its parameters are the epsilon and the delta of the guarantee; others are not part of a bundle.

        Args:
            path: the folder that ``save`` returned, or its ``public`` folder, which is all that is read.

        Raises:
            DpsynthError: there is no bundle, or it is of another version.
        """
        bundle = open_bundle(path)
        loaded = cls(bundle.guarantee.epsilon, bundle.guarantee.delta)
        loaded.release_, loaded.guarantee_ = bundle, bundle.guarantee
        return loaded

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _table(self, table: object) -> tuple[object, list[str]]:
        # A sparse matrix of scipy may be a dictionary too.
        if isinstance(table, Mapping) and not hasattr(table, "shape"):
            return table, []
        if hasattr(table, "__arrow_c_stream__") or hasattr(table, "iloc"):
            validate_data(self, table, skip_check_array=True)
            return table, [
                str(name) for name in getattr(table, "column_names", getattr(table, "columns", ()))
            ]
        import pandas as pd

        try:
            # The number of rows is private: an empty table is no error.
            cells = check_array(table, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
            refused = ""
        except ValueError as error:
            # It quotes the array, and its number of rows.
            refused = re.sub(r"shape=\([0-9]+", "shape=(", str(error).partition("\n")[0])
        if refused:
            raise ValueError(refused)
        validate_data(self, cells, skip_check_array=True)
        names = [f"x{i}" for i in range(cells.shape[1])]
        return pd.DataFrame(np.asarray(cells), columns=names), names

    def _declared(self, names: list[str]) -> Mapping[str, object]:
        if self.columns is None:
            raise ConfigError(NO_COLUMNS)
        if isinstance(self.columns, Mapping) and isinstance(self.columns.get("type"), str):
            return dict.fromkeys(names, self.columns)
        return self.columns
