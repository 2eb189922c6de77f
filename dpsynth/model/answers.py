"""Answers: counts, means, quantiles and distributions computed from a model, without sampling.

A predicate is a conjunction of conditions, one for each column: a code, several codes, or a mask.
Columns hold codes here; the value of each code is an argument.

Invariant: only the part of the tree between the columns of a question is walked, and no array of
the size of the joint of a predicate's columns is made. So ten columns cost little more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.columns.domain import Clique
from dpsynth.model.conditioning import ImpossibleEvidence, Predicate, allowed_codes, restricted
from dpsynth.model.factor import Array
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.variable_elimination import CELL_LIMIT, checked

Allowed = Mapping[str, NDArray[np.int64]]


def _restricted(
    model: MarkovRandomField, predicate: Predicate, columns: Iterable[str]
) -> tuple[MarkovRandomField, Allowed, float]:
    """The model conditioned on a predicate, over the smallest part of the tree that holds some columns.

    Returns:
        A field with total 1 over the allowed codes, these codes, and the log-probability of the
        predicate.
    """
    allowed = allowed_codes(model.tree.domain, predicate)
    part = model.spanning({*allowed, *columns})
    tree, tables, log_probability = restricted(part.tree, part.beliefs, allowed)
    return MarkovRandomField(tree, tables, 1.0), allowed, log_probability


def log_probability(model: MarkovRandomField, predicate: Predicate) -> float:
    """Natural log of the probability that a row satisfies a predicate; -inf if none does.

    Raises:
        ValueError: for an unknown column or a code outside the domain.
    """
    return _restricted(model, predicate, ())[2]


def count(model: MarkovRandomField, predicate: Predicate) -> float:
    """Expected number of rows that satisfy a predicate; ``model.total`` if it is empty.

    Raises:
        ValueError: for an unknown column or a code outside the domain.
    """
    return model.total * exp(log_probability(model, predicate))


def conditional(
    model: MarkovRandomField, columns: Clique, predicate: Predicate, *, limit: int = CELL_LIMIT
) -> Array:
    """Distribution of some columns among the rows that satisfy a predicate; it sums to 1.

    Args:
        model: the model.
        columns: columns in the order of the result's axes; columns of the predicate are allowed.
        predicate: conditions on any columns.
        limit: largest number of cells of the result and of intermediates.

    Raises:
        ImpossibleEvidence: if no row can satisfy the predicate.
        ValueError: for an unknown column, a code outside the domain, or too large a result.
    """
    checked(model.tree.domain, columns, limit)
    field, allowed, log_p = _restricted(model, predicate, columns)
    if log_p == -inf:
        raise ImpossibleEvidence(f"no row can have these values of {', '.join(predicate)}")
    found = np.zeros(model.tree.domain.shape(columns))
    codes = (allowed.get(c, np.arange(model.tree.domain.sizes[c])) for c in columns)
    found[np.ix_(*codes)] = field.marginal(columns, limit=limit)
    return found


def _weighted(
    model: MarkovRandomField, column: str, values: Sequence[float] | Array, predicate: Predicate
) -> tuple[Array, Array]:
    """The numeric values of a column, ascending, and their shares of the rows that satisfy a predicate."""
    numbers = np.asarray(values, dtype=np.float64)
    shares = conditional(model, (column,), predicate)
    if numbers.shape != shares.shape:
        raise ValueError(f"{column!r} needs {shares.size} values, one a code, not {numbers.shape}")
    order = np.argsort(numbers, kind="stable")
    order = order[~np.isnan(numbers[order])]
    mass = shares[order].sum()
    if mass == 0:
        raise ImpossibleEvidence(f"no row that is asked about has a number in {column!r}")
    return numbers[order], shares[order] / mass


def mean(
    model: MarkovRandomField, column: str, values: Sequence[float] | Array, predicate: Predicate | None = None
) -> float:
    """Mean of a column's values among the rows that satisfy a predicate and have a value.

    Args:
        model: the model.
        column: the column.
        values: the number that each code stands for; nan for a code that stands for none.
        predicate: conditions on any columns, this one too.

    Raises:
        ImpossibleEvidence: if no row has probability.
        ValueError: for a wrong column, code or number of values.
    """
    numbers, shares = _weighted(model, column, values, predicate or {})
    return float(numbers[shares > 0] @ shares[shares > 0])


def quantile(
    model: MarkovRandomField,
    column: str,
    values: Sequence[float] | Array,
    levels: ArrayLike,
    predicate: Predicate | None = None,
) -> Array:
    """Quantiles of a column's values among the rows that satisfy a predicate and have a value.

    The quantile at a level is the smallest value that at least this share of the rows does
    not exceed; at level 0 the smallest value that any row has.

    Args:
        model: the model.
        column: the column.
        values: the number that each code stands for; nan for a code that stands for none.
        levels: shares between 0 and 1.
        predicate: conditions on any columns, this one too.

    Returns:
        float64, in the shape of ``levels``.

    Raises:
        ImpossibleEvidence: if no row has probability.
        ValueError: for a wrong column, code, level or number of values.
    """
    asked = np.asarray(levels, dtype=np.float64)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise ValueError("levels must lie between 0 and 1")
    numbers, shares = _weighted(model, column, values, predicate or {})
    numbers, shares = numbers[shares > 0], shares[shares > 0]
    reach = np.cumsum(shares)
    reach[-1] = 1.0
    # A level that the rounded sum just misses, such as 0.3 of ten equal shares, counts as reached.
    return numbers[np.searchsorted(reach, asked - 1e-12)]
