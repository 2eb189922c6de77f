"""Classifiers of acceptance criteria: logistic regressions that are trained on the finished table's codes.

Each code of each other column is a term, so that numbers and dates need no line through their bins. Adult and
loans have this nearly as good as boosted trees (docs/acceptance.md), in a second, and its guesses are whole
numbers added up.

Invariant: public. Training sees synthetic rows alone, and has no chance in it: a release that is resumed asks
about the same classifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.finished_table import Classifier, FinishedTable

MOST_TRAINED = 50_000
"""Largest number of synthetic rows that a classifier is trained on; of more, evenly spread ones."""
_PART = 1 << 20
"""Parts of one in which coefficients are kept."""
_ITERATIONS = 300
_NEVER = -(1 << 50)
"""The score of a class that no synthetic row has: below all sums of others."""


def trained(table: FinishedTable, columns: Sequence[Column], target: str, aim: str) -> Classifier:
    """A classifier of a column by all others.

    Args:
        aim: "accuracy"; or "balanced accuracy", for which all values count alike, however rare.
    """
    named = {column.name: column for column in columns}
    classes = len(named[target].codec.labels)
    scores = {c.name: np.zeros((c.size, classes), np.int64) for c in columns if c.name != target}
    codes = _sampled(table, named)
    used = codes[target] < classes
    truth = codes[target][used]
    present, first = np.unique(truth), next(iter(scores.values()))
    if len(present) > 1:
        sizes = [len(own) for own in scores.values()]
        rows = np.column_stack([codes[name][used] for name in scores])
        intercepts, terms = _regression(rows, truth, sizes, balanced=aim == "balanced accuracy")
        for own, part in zip(scores.values(), np.split(terms.T, np.cumsum(sizes)[:-1]), strict=True):
            own[:, present] = part
        first[:, present] += intercepts
    first[:, np.setdiff1d(np.arange(classes), present)] = _NEVER
    return Classifier(target, aim, scores)


def _sampled(table: FinishedTable, columns: dict[str, Column]) -> dict[str, NDArray[np.unsignedinteger]]:
    # Evenly spread over the table, whatever the order of its rows.
    kept = min(table.rows, MOST_TRAINED)
    spots = np.arange(kept) * table.rows // max(kept, 1)
    found: dict[str, list[NDArray[np.unsignedinteger]]] = {
        name: [np.zeros(0, column.code_type)] for name, column in columns.items()
    }
    start = 0
    for rows, codes in table.coded.pieces():
        own = spots[(spots >= start) & (spots < start + rows)] - start
        for name, pieces in found.items():
            pieces.append(codes[name][own])
        start += rows
    return {name: np.concatenate(pieces) for name, pieces in found.items()}


def _regression(
    codes: NDArray[np.unsignedinteger],
    truth: NDArray[np.unsignedinteger],
    sizes: Sequence[int],
    *,
    balanced: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Intercepts int64[present classes], and coefficients int64[present classes, codes of all columns]."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    terms = OneHotEncoder(categories=[np.arange(size) for size in sizes]).fit_transform(codes)
    fit = LogisticRegression(max_iter=_ITERATIONS, class_weight="balanced" if balanced else None)
    fit.fit(terms, truth)
    found = np.column_stack([fit.intercept_, fit.coef_])
    if len(found) == 1:
        # Of two classes the first has no score of its own.
        found = np.vstack([np.zeros_like(found), found])
    whole = np.rint(found * _PART).astype(np.int64)
    return whole[:, 0], whole[:, 1:]
