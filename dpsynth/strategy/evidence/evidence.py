"""Evidence on the rows of a release from earlier releases of its dataset and from a public table.

Answers about the same rows are averaged in by their precision, like this release's own. Answers about earlier
periods are scaled to the rows of now, and their variance is raised by the drift of single columns
(``drift``). A strategy compares the table with this evidence, and the model rests on it where the release
measures nothing, so a pair gains from a measurement if it has changed. The one-way answers of the release
adjust the evidence of earlier periods to the single columns of now, as all answers of one fit do. A public
table of other rows is evidence like an earlier period, with the sampling error of its rows instead of noise.

Privacy: post-processing. A computation on published answers has no cost, and a question that depends on them
has no extra cost: a release's loss is bounded whatever was published before it (adaptive composition, Dwork
and Roth 2014, section 3.5), and the ledger's privacy filter adds up the losses of all releases.

Invariant: evidence of earlier periods enters the model alone, never a table that counts as measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import EvidenceCounts, Observation
from dpsynth.model.expansion import Expansion
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.triangulation import Triangulation
from dpsynth.strategy.evidence.drift import Drift, drifts

LEAST_SIGNAL = 1.0
"""Least distance of an answer from independent columns beyond that of noise, in standard deviations."""
LEAST_PUBLIC_SIGNAL = 4.0
"""Least distance of a public table's counts from independent columns beyond noise, in standard deviations."""
MOST_BEFORE, MOST_AFTER = 200_000, 1_000_000
"""Largest junction tree, in cells, of joint answers of earlier releases alone, and of a model that holds them
beside the answers of this release. A fit of the latter takes half a minute."""


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of a release.

    Attributes:
        singles: the total and the one-way answers, over all values.
        answers: joint marginals, over the compressed domain.
        compression: the groups of merged values.
    """

    singles: tuple[Observation, ...]
    answers: tuple[Observation, ...]
    compression: Compression


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence on the rows of a release.

    Attributes:
        domain: the columns and all their values.
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
    ) -> Evidence:
        """Evidence weighted by the drift of single columns.

        Args:
            domain: the columns and all their values.
            singles: the total and the one-way answers of this release.
            same: answers about the same rows.
            before: answers about earlier periods, each with its age in periods, at least 1.
            public: the counts of a public table of other rows.
        """
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
        the capacity of a junction tree of half of the bound and at most ``MOST_BEFORE`` cells.

        Args:
            expansion: the expansion of this release, with all evidence on single columns.
            independent: the model of single columns alone, over groups.
            max_cells: the bound of the model.
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
    """The evidence that fits into the capacity of a junction tree beside some cliques.

    The tree may have ``max_cells``, at most ``MOST_AFTER``, or as many cells as the cliques alone need.

    Args:
        domain: the domain of the cliques and of the evidence.
        cliques: the cliques that this release has measured, which have priority.
        evidence: marginals in order of priority.
        max_cells: the bound of the model.
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
    """The estimate of now by one answer.

    Attributes:
        values: estimate of each cell, in rows.
        noise: variance of each by noise.
        drift: variance of each by drift, which several answers have in common.
    """

    values: Array
    noise: float
    drift: float

    @classmethod
    def of(cls, drift: Drift, values: Array, noise: float) -> _Estimate:
        """The estimate by an answer's values of then."""
        r = drift.ratio
        return cls(r * values, r * r * noise, drift.squared / values.size)


def _rescaled(
    answer: Observation, drift: Drift, compression: Compression, expansion: Expansion
) -> tuple[Clique, _Estimate]:
    """An answer over other groups as an estimate over an expansion's groups, axes in table order.

    Rows of a group are spread over its values by the one-way counts, whatever other columns hold, as in the
    model of the release that merged them. All cells get their mean variance.
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
