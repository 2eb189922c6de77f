"""Reused answers: those of earlier releases of the dataset, and the counts of a public table.

Answers about the same rows are averaged in by their precision, like this release's own. Answers about earlier
periods are scaled to the rows of now, and their variance is raised by the drift of single columns
(``drifts``). A public table of other rows counts like an earlier period, with the sampling error of its rows
instead of noise. A strategy compares the table with these answers, and the model rests on them where the
release measures nothing, so a pair gains from a measurement if it has changed.

Privacy: post-processing. A computation on published answers has no cost, and a question that depends on them
has no extra cost: a release's loss is bounded whatever was published before it (adaptive composition, Dwork
and Roth 2014, section 3.5), and the ledger's privacy filter adds up the losses of all releases.

Invariant: answers about earlier periods enter the model alone, never a table that counts as measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dpsynth.columns.domain import Clique, Compression, Domain
from dpsynth.columns.measurement import (
    EvidenceCounts,
    Observation,
    PooledCounts,
    estimated_total,
    pooled_counts,
)
from dpsynth.model.expansion import Expansion
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.measurement_file import Answered
from dpsynth.model.triangulation import Triangulation


def discounted(evidence: Sequence[Observation], answers: Sequence[Observation]) -> tuple[Observation, ...]:
    """Reused marginals, their variances raised where a release's own answers contradict them.

    Drift is estimated from all single columns together. One column may have changed more than another, and a
    pair may have changed where its columns have not. Where a release has measured the same columns itself,
    its answer y and the reused e, of m cells and variances v and s, have an expected squared distance |y -
    e|^2 = m (v + s). Where the distance is larger, s is raised to |y - e|^2/m - v. The average of y and e is
    then the estimator of James and Stein: closer to the truth than y alone, on average, whatever e is. An
    answer covers every marginal of its columns.
    """
    noisy = [m for m in answers if m.variance > 0]
    return tuple(_discounted(m, [a for a in noisy if set(m.clique) <= set(a.clique)]) for m in evidence)


def _discounted(evidence: Observation, answers: Sequence[Observation]) -> Observation:
    if not answers or evidence.variance == 0:
        return evidence
    values, precision = np.zeros(evidence.values.shape), np.zeros(evidence.values.shape)
    for answer in answers:
        weight = 1 / sum_to(answer.variances, answer.clique, evidence.clique)
        values += weight * sum_to(answer.values.astype(np.float64), answer.clique, evidence.clique)
        precision += weight
    squares = np.square(values / precision - evidence.values) - 1 / precision
    found = max(evidence.variance, float(squares.mean()))
    return replace(evidence, noise="gaussian", scale=sqrt(found))


@dataclass(frozen=True)
class Drift:
    """The factor and the variance that turn counts of an earlier period into estimates of now.

    Attributes:
        ratio: r, rows now over rows then.
        squared: K n, the variance of all cells of a marginal together, in rows squared.
    """

    ratio: float
    squared: float


def drifts(
    now: Sequence[Observation], earlier: Sequence[tuple[int, Sequence[Observation]]], shrinkage: float = 0.0
) -> tuple[Drift, ...]:
    """The drift from each earlier period, by its age (1 or more) and the noisy counts of single columns.

    With n rows now, n' then and r = n/n', counts y now and y' then, both noisy, the squares (y - r y')^2 sum
    over the cells of a column to the variance of both noises and a drift K n. Two samples of one population
    differ too: a difference of counts of mean m has a variance of (1 + r) m, so K is at least 1 + r. The rest
    of K is taken to grow with the time between the periods:

        K = 1 + r + D x periods between,  D >= 0 fitted to all periods by weighted least squares,

    less ``shrinkage`` standard errors. A marginal of m cells is taken to have the drift of a column, K n/m a
    cell.
    """
    rows, counts = estimated_total(now), pooled_counts(now)
    ratios = [rows / estimated_total(then) for _, then in earlier]
    above = below = 0.0
    for (periods, then), ratio in zip(earlier, ratios, strict=True):
        squares, error = _squares(counts, pooled_counts(then), ratio)
        if error > 0:
            above += periods * (squares - (1 + ratio) * rows) / error**2
            below += (periods / error) ** 2
    growth = max(above / below - shrinkage / sqrt(below), 0.0) if below > 0 else 0.0
    return tuple(
        Drift(ratio, (1 + ratio) * rows + growth * periods)
        for (periods, _), ratio in zip(earlier, ratios, strict=True)
    )


def discrepancy(singles: Sequence[Observation], others: Sequence[Observation]) -> float:
    """The distance of two releases' one-way answers beyond that of noise, in standard deviations.

    Squared differences over their variance have a mean of 1 and a variance of at most 5, which is that of
    Laplace noise; of Gaussian noise it is 2.
    """
    one, two = pooled_counts(singles), pooled_counts(others)
    distance, cells = 0.0, 0
    for clique in [c for c in one if c in two]:
        (values, variance), (again, noise) = one[clique], two[clique]
        distance += float(np.square(values - again).sum()) / (variance + noise)
        cells += values.size
    return (distance - cells) / sqrt(5 * cells) if cells else 0.0


def _squares(now: PooledCounts, then: PooledCounts, ratio: float) -> tuple[float, float]:
    """The mean over columns of their squared change, in rows squared, and its standard error."""
    excess = spread = 0.0
    both = [clique for clique in now if clique in then]
    for clique in both:
        (values, variance), (before, noise) = now[clique], then[clique]
        moved, each = values - ratio * before, variance + ratio * ratio * noise
        excess += float(np.square(moved).sum()) - moved.size * each
        spread += 2 * moved.size * each * each
    return (excess / len(both), sqrt(spread) / len(both)) if both else (0.0, 0.0)


LEAST_SIGNAL = 1.0
"""Least distance of an answer from independent columns beyond that of noise, in standard deviations."""

LEAST_PUBLIC_SIGNAL = 4.0
"""Least distance of a public table's counts from independent columns beyond noise, in standard deviations."""

MOST_BEFORE, MOST_AFTER = 200_000, 1_000_000
"""Largest junction tree, in cells, of joint answers of earlier releases alone, and of a model that holds them
beside the answers of this release. A fit of the latter takes half a minute."""


@dataclass(frozen=True, eq=False)
class ReusedAnswers:
    """Answers about the rows of a release that it did not ask itself.

    Attributes:
        same: answers about the same rows.
        before: answers about earlier periods, with the drift since.
        public: the counts of a public table, with its drift; None without one.
    """

    domain: Domain
    same: tuple[Answered, ...] = ()
    before: tuple[tuple[Drift, Answered], ...] = ()
    public: tuple[Drift, Answered] | None = None

    @classmethod
    def of(
        cls,
        domain: Domain,
        singles: Sequence[Observation],
        same: Sequence[Answered],
        before: Sequence[tuple[int, Answered]],
        public: Answered | None = None,
    ) -> ReusedAnswers:
        """Reused answers weighted by the drift of single columns; periods with their age, at least 1."""
        if not (same or before or public):
            return cls(domain)
        now = [*singles, *(m for a in same for m in a.singles)]
        found = drifts(now, [(periods, a.singles) for periods, a in before])
        earlier = tuple(zip(found, (a for _, a in before), strict=True))
        if public is None:
            return cls(domain, tuple(same), earlier)
        # A public table has no age, so its drift can't be estimated with that of the periods. With one table
        # there is no mean over several: D is mostly noise where this release's noise is large.
        (drift,) = drifts(now, [(1, public.singles)], shrinkage=1.0)
        return cls(domain, tuple(same), earlier, (drift, public))

    @property
    def basis(self) -> str:
        periods, public = bool(self.before), self.public is not None
        others = ["earlier periods"] * periods + ["a public table"] * public
        return f"model with {' and '.join(others)}" if others else "model"

    @property
    def columns(self) -> tuple[Observation, ...]:
        """One-way evidence over all values: answers about the same rows, an estimate by earlier periods."""
        estimates = [
            (m.clique, _Estimate.of(drift, m.values.astype(np.float64), m.variance))
            for drift, answered in (*self.before, *([] if self.public is None else [self.public]))
            for m in answered.singles
            if len(m.clique) == 1 and m.variance > 0
        ]
        return (*(m for a in self.same for m in a.singles), *_averaged(estimates))

    def direct(self) -> tuple[Observation, ...]:
        """Answers about the same rows over uncompressed values, for tables that count as measured."""
        of = [(Expansion(self.domain, a.compression, a.singles), a.answers) for a in self.same]
        return tuple(m for expansion, answers in of for m in expansion.direct(answers))

    def joint(
        self, expansion: Expansion, independent: MarkovRandomField, max_cells: int
    ) -> tuple[Observation, ...]:
        """Joint evidence over the compressed domain of this release, in falling order of signal.

        Marginals that are no farther from independent columns than noise are left out, as are those beyond
        the capacity of a junction tree of half of the bound and at most ``MOST_BEFORE`` cells. The expansion
        has all evidence on single columns, and ``independent`` is the model of these alone, over groups.
        """
        now = Drift(1.0, 0.0)
        same = [_rescaled(m, now, a.compression, expansion) for a in self.same for m in a.answers]
        before = [
            _rescaled(m, drift, a.compression, expansion) for drift, a in self.before for m in a.answers
        ]
        found = [*(m for one in same for m in _averaged([one])), *_averaged(before)]
        signals = [_signal(m, independent) for m in found]
        order = sorted(range(len(found)), key=lambda i: -signals[i])
        strongest = [found[i] for i in order if signals[i] > LEAST_SIGNAL]
        return within(expansion.coarse, (), strongest, min(max_cells // 2, MOST_BEFORE))

    def public_joint(self, expansion: Expansion, independent: MarkovRandomField) -> tuple[Observation, ...]:
        """Joint evidence of a public table, in falling order of signal, without a bound on cells.

        In a few rows many independent pairs look a little related, so the least signal is larger here.
        """
        if self.public is None:
            return ()
        drift, table = self.public
        found = _averaged(_rescaled(m, drift, table.compression, expansion) for m in table.answers)
        signals = [_signal(m, independent) for m in found]
        order = sorted(range(len(found)), key=lambda i: -signals[i])
        return tuple(found[i] for i in order if signals[i] > LEAST_PUBLIC_SIGNAL)


def within(
    domain: Domain, cliques: Iterable[Clique], evidence: Sequence[Observation], max_cells: int
) -> tuple[Observation, ...]:
    """The evidence, in order of priority, that fits into a junction tree beside some cliques.

    The tree may have ``max_cells``, at most ``MOST_AFTER``, or as many cells as the cliques alone need.
    """
    given = list(cliques)
    kept: list[Observation] = []
    if not evidence:
        return ()
    tree = Triangulation.of(domain, given)
    bound = max(tree.cells, min(max_cells, MOST_AFTER))
    for m in evidence:
        if tree.cells_with(m.clique) <= bound:
            tree = tree.with_clique(m.clique)
            kept.append(m)
    while kept and Triangulation.of(domain, [*given, *(m.clique for m in kept)]).cells > bound:
        # Rare: a tree made anew, as a fit makes it, may be larger than one that grew.
        kept.pop()
    return tuple(kept)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """The estimate of now by one answer: variances of a cell by its noise, and by drift, which many share."""

    values: Array
    noise: float
    drift: float

    @classmethod
    def of(cls, drift: Drift, values: Array, noise: float) -> _Estimate:
        r = drift.ratio
        return cls(r * values, r * r * noise, drift.squared / values.size)


def _rescaled(
    answer: Observation, drift: Drift, compression: Compression, expansion: Expansion
) -> tuple[Clique, _Estimate]:
    """An answer over other groups as an estimate over an expansion's groups, axes in table order.

    Rows of a group are spread over its values by the one-way counts. All cells get their mean variance.
    """
    values, variances = answer.values.astype(np.float64), answer.variances
    for axis, column in enumerate(answer.clique):
        if column in compression.groups or column in expansion.compression.groups:
            shares = expansion.shares(column, compression)
            values, variances = (
                np.moveaxis(np.tensordot(a, shares, (axis, 0)), -1, axis) for a in (values, variances)
            )
    clique = expansion.domain.canonical(answer.clique)
    return clique, _Estimate.of(drift, sum_to(values, answer.clique, clique), float(variances.mean()))


def _averaged(estimates: Iterable[tuple[Clique, _Estimate]]) -> list[Observation]:
    """One marginal a clique: noise averages out, drift does not."""
    of: dict[Clique, list[_Estimate]] = {}
    for clique, estimate in estimates:
        of.setdefault(clique, []).append(estimate)
    found: list[Observation] = []
    for clique, each in of.items():
        weights = np.array([1 / (e.noise + e.drift) for e in each])
        weights /= weights.sum()
        noise = weights**2 @ np.array([e.noise for e in each])
        variance = float(noise + weights @ np.array([e.drift for e in each]))
        mean = np.tensordot(weights, np.stack([e.values for e in each]), 1)
        found.append(EvidenceCounts(clique, np.rint(mean).astype(np.int64), "gaussian", sqrt(variance)))
    return found


def _signal(measurement: Observation, independent: MarkovRandomField) -> float:
    """The distance of an answer from independent columns beyond that of noise, in standard deviations."""
    distance = np.square(measurement.values - independent.marginal(measurement.clique)).sum()
    cells = measurement.values.size
    return float((distance / measurement.variance - cells) / sqrt(2 * cells))
