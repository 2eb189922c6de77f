"""What earlier releases of a dataset say of the rows that this one is about.

Answers about the same rows are averaged in by their precision, like this release's own. Answers about
earlier periods are scaled to the rows of now, and taken for as much less precise as single columns have
changed since (``change``). They are what a strategy compares the table with, and what the model falls
back on where this release measures nothing: a pair is worth measuring if it has changed. The
single columns' own answers move what earlier periods say to where those columns stand now, as all
answers of one fit do. A public table of other rows says as much as an earlier period would, with no noise
but that of its own rows being so few.

Privacy: post-processing. What is computed from published answers costs nothing, and neither does asking
a question because of them: a release's loss is bounded whatever was published before it (adaptive
composition, Dwork and Roth 2014, section 3.5), and the ledger's filter adds up the losses of all releases.

Invariant: what earlier periods say enters the model alone, never a table that counts as measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsynth.domain.compression import Compression
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import EvidenceCounts, Observation
from dpsynth.evidence.drift import Change, changes
from dpsynth.model.expansion import Expansion
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.triangulation import Triangulation

TOLD = 1.0
"""Standard deviations by which an answer must be farther from independent columns than noise would be."""
PUBLIC_TOLD = 4.0
"""Likewise, of what a public table tells."""
MOST_BEFORE, MOST_AFTER = 200_000, 1_000_000
"""Cells of a junction tree that holds what earlier releases measured together, and up to which a model may
grow to hold it beside what this release measures. A fit of the latter takes half a minute."""


@dataclass(frozen=True, eq=False)
class Answered:
    """What a release answered.

    Attributes:
        singles: the total and the one-way answers, over all values.
        answers: the other marginals, over groups where the grouping has them.
        grouping: which values it had merged.
    """

    singles: tuple[Observation, ...]
    answers: tuple[Observation, ...]
    compression: Compression


@dataclass(frozen=True, eq=False)
class Evidence:
    """What earlier releases say of the rows of this one.

    Attributes:
        domain: the columns and all their values.
        same: what was answered about the same rows.
        before: what was answered about earlier periods, with the change since.
        public: the counts of a public table, with how far it is off; None without one.
    """

    domain: Domain
    same: tuple[Answered, ...] = ()
    before: tuple[tuple[Change, Answered], ...] = ()
    public: tuple[Change, Answered] | None = None

    @classmethod
    def of(
        cls,
        domain: Domain,
        singles: Sequence[Observation],
        same: Sequence[Answered],
        before: Sequence[tuple[int, Answered]],
        public: Answered | None = None,
    ) -> Evidence:
        """Evidence weighed by how far single columns have changed.

        Args:
            domain: the columns and all their values.
            singles: the total and the one-way answers of this release.
            same: answers about the same rows.
            before: answers about earlier periods, each with how many periods ago, at least 1.
            public: the counts of a public table of other rows.
        """
        known = [*singles, *(m for a in same for m in a.singles)]
        found = changes(known, [(periods, a.singles) for periods, a in before])
        told = tuple(zip(found, (a for _, a in before), strict=True))
        if public is None:
            return cls(domain, tuple(same), told)
        # It lies no time back: how far it is off has nothing to do with what changes between periods. And
        # with one table only there is no mean of several: D is all noise where this release's own is strong.
        (off,) = changes(known, [(1, public.singles)], doubts=1.0)
        return cls(domain, tuple(same), told, (off, public))

    @property
    def columns(self) -> tuple[Observation, ...]:
        """One-way evidence over all values: answers about the same rows, an estimate by earlier periods."""
        told = [
            (m.clique, _Said.of(change, m.values.astype(np.float64), m.variance))
            for change, answered in (*self.before, *([] if self.public is None else [self.public]))
            for m in answered.singles
            if len(m.clique) == 1 and m.variance > 0
        ]
        return (*(m for a in self.same for m in a.singles), *_averaged(told))

    def direct(self) -> tuple[Observation, ...]:
        """What answers about the same rows say of values themselves, for tables that count as measured."""
        of = [(Expansion(self.domain, a.compression, a.singles), a.answers) for a in self.same]
        return tuple(m for expansion, answers in of for m in expansion.direct(answers))

    def joint(
        self, expansion: Expansion, independent: MarkovRandomField, max_cells: int
    ) -> tuple[Observation, ...]:
        """What was measured together, over the groups of this release, what tells most coming first.

        Left out is what lies no farther from independent columns than noise would, and what a junction
        tree of half of the bound, and at most ``MOST_BEFORE`` cells, has no room for.

        Args:
            expansion: of this release, with all that is known of single columns.
            independent: the model of these alone, over groups.
            max_cells: the bound of the model.
        """
        now = Change(1.0, 0.0)
        same = [_turned(m, now, a.compression, expansion) for a in self.same for m in a.answers]
        before = [
            _turned(m, change, a.compression, expansion) for change, a in self.before for m in a.answers
        ]
        found = [*(m for said in same for m in _averaged([said])), *_averaged(before)]
        telling = [_beyond_noise(m, independent) for m in found]
        order = sorted(range(len(found)), key=lambda i: -telling[i])
        telling_first = [found[i] for i in order if telling[i] > TOLD]
        return within(expansion.coarse, (), telling_first, min(max_cells // 2, MOST_BEFORE))

    def public_joint(self, expansion: Expansion, independent: MarkovRandomField) -> tuple[Observation, ...]:
        """What a public table tells of columns together, likewise, but all of it; none without one.

        Of a few rows many pairs look a little related that are not, so more is asked of a pair here.
        """
        if self.public is None:
            return ()
        change, told = self.public
        found = _averaged(_turned(m, change, told.compression, expansion) for m in told.answers)
        telling = [_beyond_noise(m, independent) for m in found]
        order = sorted(range(len(found)), key=lambda i: -telling[i])
        return tuple(found[i] for i in order if telling[i] > PUBLIC_TOLD)


def within(
    domain: Domain, cliques: Iterable[Clique], evidence: Sequence[Observation], max_cells: int
) -> tuple[Observation, ...]:
    """As much evidence as a junction tree has room for that holds some cliques.

    The tree may have ``max_cells``, at most ``MOST_AFTER``, or as many as the cliques alone need.

    Args:
        domain: of the cliques and of the evidence.
        cliques: what this release has measured; it comes first.
        evidence: measurements in the order in which they are to be kept.
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
class _Said:
    """What one answer says of now.

    Attributes:
        values: of each cell, in rows.
        noise: variance of each.
        change: likewise, by change; what several answers have in common.
    """

    values: Array
    noise: float
    change: float

    @classmethod
    def of(cls, change: Change, values: Array, noise: float) -> _Said:
        """An answer's values of then, scaled."""
        r = change.ratio
        return cls(r * values, r * r * noise, change.squared / values.size)


def _turned(
    answer: Observation, change: Change, compression: Compression, expansion: Expansion
) -> tuple[Clique, _Said]:
    """An answer over other groups, as one over an expansion's, axes in table order.

    Rows of a group are spread as the single columns say that its values are, whatever other columns hold:
    the model of the release that merged them does the same. All cells get their mean variance.
    """
    values, variances = answer.values.astype(np.float64), answer.variances
    for axis, column in enumerate(answer.clique):
        if column in compression.groups or column in expansion.compression.groups:
            shares = expansion.shares(column, compression)
            values, variances = (
                np.moveaxis(np.tensordot(a, shares, (axis, 0)), -1, axis) for a in (values, variances)
            )
    clique = expansion.domain.canonical(answer.clique)
    return clique, _Said.of(change, sum_to(values, answer.clique, clique), float(variances.mean()))


def _averaged(told: Iterable[tuple[Clique, _Said]]) -> list[Observation]:
    """One measurement a clique: noise averages out, change does not."""
    of: dict[Clique, list[_Said]] = {}
    for clique, said in told:
        of.setdefault(clique, []).append(said)
    found: list[Observation] = []
    for clique, sayings in of.items():
        weights = np.array([1 / (s.noise + s.change) for s in sayings])
        weights /= weights.sum()
        noise = weights**2 @ np.array([s.noise for s in sayings])
        variance = float(noise + weights @ np.array([s.change for s in sayings]))
        mean = np.tensordot(weights, np.stack([s.values for s in sayings]), 1)
        found.append(EvidenceCounts(clique, np.rint(mean).astype(np.int64), "gaussian", sqrt(variance)))
    return found


def _beyond_noise(measurement: Observation, independent: MarkovRandomField) -> float:
    """How much farther an answer is from independent columns than noise would be, in standard deviations."""
    distance = np.square(measurement.values - independent.marginal(measurement.clique)).sum()
    cells = measurement.values.size
    return float((distance / measurement.variance - cells) / sqrt(2 * cells))
