"""Sources of an answer's counts: public marginals, measured answers, the model, in this order.

Invariant: a source says by which basis its counts hold, and gives a variance only where it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import Protocol

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.domain.public_marginals import PublicMarginals
from dpsynth.model import MarkovRandomField, answers
from dpsynth.publish.estimates import Unbiased
from dpsynth.publish.sampled_estimates import SampledUnits
from dpsynth.recipient.condition import Condition, Weights
from dpsynth.recipient.question import QuestionRefused

MOST_CELLS = 20_000_000
"""Largest number of cells of a table that an answer is made from."""


class Counts(Protocol):
    """Estimated counts of the cells of some columns.

    Attributes:
        basis: "public", "measured" or "model".
        cells: float64, axes as the columns.
    """

    @property
    def basis(self) -> str:
        """The basis of the counts."""
        ...

    @property
    def cells(self) -> Weights:
        """The counts."""
        ...

    def variance(self, weights: Weights) -> float | None:
        """Variance of the sum of cells times weights; None if it is unknown."""
        ...


@dataclass(frozen=True, eq=False)
class PublicCells:
    """Shares that are public, of a number of rows that is public or measured."""

    shares: Weights
    direct: Unbiased
    basis: str = "public"

    @property
    def cells(self) -> Weights:
        """The shares times the number of rows."""
        return self.shares * float(self.direct.marginal(()))

    def variance(self, weights: Weights) -> float:
        """The variance of the number of rows, times the square of the weighted share."""
        return float((weights * self.shares).sum()) ** 2 * self.direct.cell_variance(())


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """Noisy answers, reconciled: without bias, and with exact variances."""

    direct: Unbiased
    clique: Clique
    basis: str = "measured"

    @property
    def cells(self) -> Weights:
        """The estimates, which may be negative."""
        return self.direct.marginal(self.clique)

    def variance(self, weights: Weights) -> float:
        """The variance of the noise."""
        return self.direct.variance(self.clique, weights)


@dataclass(frozen=True, eq=False)
class ModelCells:
    """Expected counts of the model, among rows with allowed codes."""

    cells: Weights
    basis: str = "model"

    def variance(self, weights: Weights) -> None:
        """None: the error of relations that were not measured is unknown."""
        del weights


def public_or_measured(public: PublicMarginals, direct: Unbiased, clique: Clique) -> Counts | None:
    """The counts of a clique that is public or was measured together; None of any other.

    Args:
        public: the public marginals.
        direct: the measured counts.
        clique: the columns.
    """
    shares = public.shares(clique)
    if shares is not None:
        return PublicCells(shares, direct)
    return MeasuredCells(direct, clique) if direct.covers(clique) else None


def by_the_model(
    model: MarkovRandomField, kept: Clique, where: Condition, sampled: SampledUnits | None = None
) -> ModelCells:
    """The model's counts of the cells of some columns, among rows that the masks of a condition allow.

    A model of a sample counts the sample's rows; the counts are then those over its rate.

    Raises:
        QuestionRefused: the columns have too many cells together.
    """
    cells = model.tree.domain.cells(kept)
    if cells > MOST_CELLS:
        raise QuestionRefused(
            f"The question joins columns with {cells:,} combinations of values ({', '.join(kept)}); "
            f"{MOST_CELLS:,} are allowed. Name fewer of them."
        )
    masks = {column: mask for column, mask in where.masks.items() if not mask.all()}
    log_share = answers.log_probability(model, masks)
    if log_share == -inf:
        return ModelCells(np.zeros(model.tree.domain.shape(kept)))
    rows = model.total * exp(log_share) / (1.0 if sampled is None else sampled.rate)
    return ModelCells(rows * np.asarray(answers.conditional(model, kept, masks, limit=MOST_CELLS)))
