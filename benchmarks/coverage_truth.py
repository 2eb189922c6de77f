"""Statistics of whole rows, with the intervals that who takes the rows for real ones would state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Declared = Mapping[str, object]
Z95 = 1.96


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a statistic, in the order of its published table.

    Attributes:
        value: float64; NaN where undefined.
        low, high: ends of the naive interval: sampling from a population, all rows real.
    """

    value: Numbers
    low: Numbers
    high: Numbers


def _around(value: Numbers, error: Numbers) -> Figures:
    return Figures(value, value - Z95 * error, value + Z95 * error)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table, coded by the labels of a bundle's columns.

    Attributes:
        frame: the rows.
        declared: the declarations of the columns.
        labels: the labels of each column.
    """

    frame: pd.DataFrame
    declared: Mapping[str, Declared]
    labels: Mapping[str, Sequence[str]]

    def of(self, asked: Mapping[str, object]) -> Figures:
        """The figures of a statistic that was asked for."""
        key = json.dumps(asked, sort_keys=True)
        if key not in self._found:
            self._found[key] = self._figures(asked)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[str, Figures]:
        return {}

    def _figures(self, asked: Mapping[str, object]) -> Figures:
        if "crosstab" in asked:
            return self._counts(asked["crosstab"])
        if "correlation" in asked:
            return self._correlations(asked["correlation"])
        if "model" in asked:
            return self._regression(str(asked["model"]), str(asked["target"]), asked["on"])
        kind = next(k for k in ("mean", "sum", "variance", "quantiles") if k in asked)
        by = asked.get("by")
        groups = self._codes(str(by)) if by is not None else np.zeros(len(self.frame), np.int64)
        number = len(self.labels[str(by)]) if by is not None else 1
        values = self.numbers[str(asked[kind])]
        if kind == "quantiles":
            return _quantiles([np.sort(values[groups == g]) for g in range(number)])
        return _moments(kind, values, groups, number)

    @cached_property
    def numbers(self) -> Mapping[str, Numbers]:
        """The columns of numbers, moved to the declared ends."""
        found = {}
        for name, declared in self.declared.items():
            if declared["type"] != "category":
                bins = declared.get("bins", [declared.get("min"), declared.get("max")])
                found[name] = self.frame[name].to_numpy(dtype=np.float64).clip(bins[0], bins[-1])
        return found

    @cached_property
    def _known(self) -> dict[str, NDArray[np.int64]]:
        return {}

    def _codes(self, name: str) -> NDArray[np.int64]:
        if name not in self._known:
            self._known[name] = self._coded(name)
        return self._known[name]

    def _coded(self, name: str) -> NDArray[np.int64]:
        labels, bins = list(self.labels[name]), self.declared[name].get("bins")
        if isinstance(bins, list):
            at = np.searchsorted(bins, self.numbers[name], side="right") - 1
            return np.clip(at, 0, len(bins) - 2)
        texts = self.frame[name].astype("str")
        return texts.map({label: i for i, label in enumerate(labels)}).to_numpy(dtype=np.int64)

    def _counts(self, columns: Sequence[str]) -> Figures:
        flat = np.zeros(len(self.frame), dtype=np.int64)
        cells = 1
        for name in columns:
            flat = flat * len(self.labels[name]) + self._codes(name)
            cells *= len(self.labels[name])
        counts, n = np.bincount(flat, minlength=cells).astype(np.float64), len(self.frame)
        return _around(counts, np.sqrt(counts * (1 - counts / n)))

    def _correlations(self, columns: Sequence[str]) -> Figures:
        whole = np.corrcoef([self.numbers[name] for name in columns])
        found = whole[np.triu_indices(len(columns), 1)]
        return _around(found, (1 - found**2) / np.sqrt(len(self.frame)))

    def _regression(self, model: str, target: str, on: Sequence[str]) -> Figures:
        terms = [np.ones(len(self.frame))]
        for name in on:
            if name in self.numbers:
                terms.append(self.numbers[name])
            else:
                terms += [self._codes(name) == code for code in range(1, len(self.labels[name]))]
        x = np.column_stack(terms).astype(np.float64)
        if model == "linear":
            y = self.numbers[target]
            found = np.linalg.lstsq(x, y, rcond=None)[0]
            noise = float(((y - x @ found) ** 2).sum()) / (len(y) - x.shape[1])
            return _around(found, np.sqrt(noise * np.diag(np.linalg.pinv(x.T @ x))))
        y, found = (self._codes(target) == 1).astype(np.float64), np.zeros(x.shape[1])
        for _ in range(30):
            chance = 1 / (1 + np.exp(-np.clip(x @ found, -500, 500)))
            inverse = np.linalg.pinv(x.T @ ((chance * (1 - chance))[:, None] * x))
            step = inverse @ (x.T @ (y - chance))
            found = found + step
            if np.abs(step).max() < 1e-10:
                break
        return _around(found, np.sqrt(np.diag(inverse)))


def _moments(kind: str, values: Numbers, groups: NDArray[np.int64], number: int) -> Figures:
    rows, one, two, four = (np.bincount(groups, weights=values**k, minlength=number) for k in (0, 1, 2, 4))
    n = float(len(values))
    if kind == "sum":
        return _around(one, np.sqrt(np.maximum(two - one**2 / n, 0.0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = one / rows
        spread = two / rows - mean**2
        if kind == "mean":
            return _around(mean, np.sqrt(spread / rows))
        away = np.bincount(groups, weights=(values - mean[groups]) ** 4, minlength=number) / rows
    del four
    return _around(spread, np.sqrt(np.maximum(away - spread**2, 0.0) / rows))


def _quantiles(groups: Sequence[Numbers]) -> Figures:
    found = np.full((3, len(groups), 3), np.nan)
    for g, values in enumerate(groups):
        for spot, level in enumerate((0.25, 0.5, 0.75)):
            if len(values):
                wide = Z95 * np.sqrt(level * (1 - level) / len(values))
                at = [level, max(level - wide, 0.0), min(level + wide, 1.0)]
                found[:, g, spot] = np.quantile(values, at, method="inverted_cdf")
    return Figures(*(part.ravel() for part in found))
