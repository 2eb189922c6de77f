"""Marginals from randomised answers: debiased, made consistent, each with its exact variance.

If C of the m reports about a question support a cell, n (C/m - q)/(p - q) of the n respondents are in it,
without bias (``dpsynth.wings.local.randomisers``). Marginals that share columns are reconciled by
least squares: each estimate is a linear function of the answers, with weights that don't depend on them. So
it stays unbiased, and its variance follows from those of single reports:

- **noise**: given a respondent's cell, the supports of her report have a known covariance. Averaged over the
  respondents it is linear in the shares of the cells, so the estimated shares give an unbiased estimate of
  it;
- **sampling**: where each respondent answers one question, those who answered it are a random part of all.
The
  covariance of the parts of one random division is that of sampling without replacement: for linear functions
  h_k of the cells, one for each question k with m_k reports, and h their sum,

      n/(n-1) (sum_k n^2/m_k Var(h_k(V)) - n Var(h(V))),  V the cell of a random respondent.

Both are variances about the respondents' own marginals, for fixed numbers of reports, which don't depend on
data.

Invariant: post-processing of reports. The estimates of all covered cliques agree with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import RANDOMISED
from dpsynth.columns.domain import Clique, Domain, subsets
from dpsynth.columns.measurement import ExactTotal, Measurement, Observation
from dpsynth.errors import SourceError
from dpsynth.model.factor import spread
from dpsynth.model.least_squares import LeastSquares, centred
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.randomisers import mean_variance
from dpsynth.wings.local.reports import Tally

Floats = NDArray[np.float64]
_NUMBERS_A_BATCH = 1 << 22


@dataclass(frozen=True)
class Supports:
    """Facts on the supports of a report, by its randomiser.

    Attributes:
        own: the probability that a report supports the respondent's own cell.
        other: the probability that a report supports another given cell.
        one_hot: True if a report supports exactly one cell; otherwise it supports each independently.
    """

    own: Fraction
    other: Fraction
    one_hot: bool


@dataclass(frozen=True, eq=False)
class LocalAnswer:
    """The debiased answers to one question.

    Attributes:
        clique: its columns.
        values: estimated respondents of each cell, float64, shape of the marginal; may be negative.
        reports: number of reports about it.
        randomiser: what is known of the supports of its reports.
        variance: expected variance of a cell on average, in respondents squared; made of public facts.
    """

    clique: Clique
    values: Floats
    reports: int
    randomiser: Supports
    variance: float

    @property
    def measurement(self) -> Measurement:
        """The answers as the model takes them, in whole respondents, with one variance for all cells."""
        values = np.rint(self.values).astype(np.int64)
        return Measurement(self.clique, values, RANDOMISED, sqrt(self.variance))


@dataclass(frozen=True, eq=False)
class LocalAnswers:
    """All answers of a collection, and unbiased estimates from them.

    Attributes:
        domain: the columns.
        respondents: number of reports that are used.
        one: True if each report is about one question.
        answers: the answers to each question that has any.
    """

    domain: Domain
    respondents: int
    one: bool
    answers: tuple[LocalAnswer, ...]

    @property
    def total(self) -> ExactTotal:
        """The number of respondents, which is public."""
        return ExactTotal.of(self.respondents)

    @cached_property
    def _squares(self) -> LeastSquares:
        return LeastSquares(self.domain, (self.total, *(a.measurement for a in self.answers)))

    def covers(self, clique: Clique) -> bool:
        """True if respondents were asked about all columns of a clique together."""
        return self._squares.covers(clique)

    def marginal(self, clique: Clique) -> Floats:
        """Estimated respondents of a covered clique, axes in its order; may be negative."""
        return self._squares.marginal(clique)

    def variance(self, clique: Clique, weights: Floats) -> float:
        """Variance of the sum of a covered clique's cells times weights of the same shape."""
        return float(self.variances(clique, np.asarray(weights)[None])[0])

    def cell_variance(self, clique: Clique) -> float:
        return float(self.cell_variances(clique).mean())

    def cell_variances(self, clique: Clique) -> Floats:
        """Variance of each cell of a covered clique, float64, shape of the marginal."""
        shape = self.domain.shape(clique)
        cells = self.domain.cells(clique)
        found = np.empty(cells)
        batch = max(_NUMBERS_A_BATCH // cells, 1)
        for start in range(0, cells, batch):
            size = min(batch, cells - start)
            weights = np.zeros((size, cells))
            weights[np.arange(size), start + np.arange(size)] = 1.0
            found[start : start + size] = self.variances(clique, weights.reshape(size, *shape))
        return found.reshape(shape)

    def variances(self, clique: Clique, weights: Floats) -> Floats:
        """Variances of several weighted sums of a covered clique's cells.

        Args:
            clique: columns, in the order of the weights' axes.
            weights: float64[sums, *shape of the marginal].

        Returns:
            float64[sums], in respondents squared.
        """
        n, ordered = self.respondents, self.domain.canonical(clique)
        order = [0, *(1 + clique.index(c) for c in ordered)]
        arranged = np.transpose(np.asarray(weights, dtype=np.float64), order)
        parts = {s: self._part(arranged, ordered, s) for s in subsets(ordered) if s}
        found = np.zeros(len(arranged))
        sampling = np.zeros(len(arranged))
        for answer in self.answers:
            shared = tuple(c for c in ordered if c in answer.clique)
            if not shared:
                continue
            linear = np.zeros((len(arranged), *self.domain.shape(shared)))
            for subset in subsets(shared):
                if subset:
                    share = self._precision(answer, subset) / self._precisions[subset]
                    linear = linear + share * _spread(parts[subset], subset, shared)
            shares = self.marginal(shared) / n
            found += self._noise(answer, linear, shared, shares)
            sampling += n**2 / answer.reports * _variance(linear, shares)
        if self.one and n > 1:
            whole = _variance(arranged, self.marginal(ordered) / n)
            found += n / (n - 1) * (sampling - n * whole)
        return np.maximum(found, 0.0)

    def _part(self, weights: Floats, clique: Clique, subset: Clique) -> Floats:
        """The part of linear functions that is about the residual of a subset, float64[sums, *shape]."""
        axes = tuple(1 + i for i, c in enumerate(clique) if c not in subset)
        share = self.domain.cells(subset) / self.domain.cells(clique)
        return share * centred(weights.sum(axis=axes), first=1)

    def _precision(self, answer: LocalAnswer, subset: Clique) -> float:
        """The precision of a subset's residual by one answer, as ``LeastSquares`` weighs it."""
        return self.domain.cells(subset) / (answer.variance * self.domain.cells(answer.clique))

    @cached_property
    def _precisions(self) -> dict[Clique, float]:
        found: dict[Clique, float] = {}
        for answer in self.answers:
            for subset in subsets(answer.clique):
                found[subset] = found.get(subset, 0.0) + self._precision(answer, subset)
        return found

    def _noise(self, answer: LocalAnswer, linear: Floats, shared: Clique, shares: Floats) -> Floats:
        """Variance of linear functions of one answer's cells, given the respondents."""
        p, q = float(answer.randomiser.own), float(answer.randomiser.other)
        each = self.domain.cells(answer.clique) / self.domain.cells(shared)
        flat, part = linear.reshape(len(linear), -1), shares.reshape(-1)
        squares = each * np.square(flat).sum(axis=1)
        of_own = np.square(flat) @ part
        if answer.randomiser.one_hot:
            sums = each * flat.sum(axis=1)
            expected = q * squares + (p - q) * of_own
            mean = (q * sums[:, None] + (p - q) * flat) ** 2 @ part
            one = expected - mean
        else:
            one = q * (1 - q) * squares + (p * (1 - p) - q * (1 - q)) * of_own
        return np.asarray(self.respondents**2 / (answer.reports * (p - q) ** 2) * one)


def _spread(values: Floats, subset: Clique, clique: Clique) -> Floats:
    """Numbers over a subset, for each cell of a clique; the first axis counts functions."""
    first = ("",)
    return spread(values, (*first, *subset), (*first, *clique))


def _variance(linear: Floats, shares: Floats) -> Floats:
    """Variance of linear functions of a random respondent's cell; shares may be estimates."""
    flat, part = linear.reshape(len(linear), -1), shares.reshape(-1)
    return np.asarray(np.square(flat) @ part - (flat @ part) ** 2)


def stated_answers(
    stated: Mapping[str, Any], domain: Domain, measurements: Sequence[Observation]
) -> LocalAnswers:
    """The answers of a bundle, from its measurements and from what its manifest states of the collection.

    Raises:
        KeyError, TypeError, ValueError: the manifest doesn't state what it should.
    """
    counted = {m.clique: m for m in measurements}
    found = []
    for question in stated["questions"]:
        clique = tuple(question["columns"])
        own, other = Fraction(question["own"]), Fraction(question["other"])
        supports = Supports(own, other, bool(question["one_hot"]))
        values, variance = counted[clique].values.astype(np.float64), counted[clique].variance
        found.append(LocalAnswer(clique, values, int(question["reports"]), supports, variance))
    one = any(answer.reports < stated["reports"] for answer in found)
    return LocalAnswers(domain, int(stated["reports"]), one, tuple(found))


def local_answers(contract: Contract, tally: Tally) -> LocalAnswers:
    """The debiased answers of a tally.

    Raises:
        SourceError: there are too few reports: some column is in no question that has one.
    """
    found = []
    for question, answers in zip(contract.questions, tally.answers, strict=True):
        if answers:
            support = question.randomiser.support(answers)
            shape = contract.domain.shape(question.columns)
            found.append(
                _debiased(contract, tally.reports, question.columns, support.reshape(shape), len(answers))
            )
    covered = {c for answer in found for c in answer.clique}
    lost = [c for c in contract.domain.columns if c not in covered]
    if lost:
        raise SourceError(
            f"There are {tally.reports:,} reports of this contract, and none of them is about {lost[0]}. "
            "Collect more; with local.ask: all, every report is about everything."
        )
    return LocalAnswers(contract.domain, tally.reports, contract.one, tuple(found))


def _debiased(
    contract: Contract, respondents: int, clique: Clique, support: NDArray[np.int64], reports: int
) -> LocalAnswer:
    randomiser = next(q.randomiser for q in contract.questions if q.columns == clique)
    p, q = float(randomiser.own), float(randomiser.other)
    values = respondents * (support / reports - q) / (p - q)
    cells = support.size
    sampling = (1 - reports / respondents) * (1 - 1 / cells) / cells if contract.one else 0.0
    variance = respondents**2 / reports * (mean_variance(randomiser) + sampling)
    supports = Supports(randomiser.own, randomiser.other, randomiser.one_hot)
    return LocalAnswer(clique, values, reports, supports, variance)
