"""Samples of a model that are refined to targets: marginals of the model, and answers that it does not hold.

The target of a set of columns that was measured is its denoised answer, whether or not the tree holds it.
That of any other pair of the tree is the model's own marginal, which a draw would miss; where nothing was
measured outside of the tree, all pairs have such a target, as far as their cells are not too many. Beside
better answers it would hold a table back. A target weighs as much as its error is small.

Invariant: post-processing of a model and of answers; columns that are held fixed, and cells that are
forbidden, are as in the drawn table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, pi, sqrt

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Observation, pooled_counts
from dpsynth.model.denoising import Denoised, denoised
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import Zeros
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.raking import RakedEstimates
from dpsynth.model.refinement import USUAL, Effort, TableTarget, refined
from dpsynth.model.rounding import Codes, drawn_cells, position_of

MOST_CELLS = 4_000_000
"""Cells of all targets; pairs of more cells than there is room for are left to the draw."""

_CELLS_A_BATCH = 1 << 22

WEIGHT_POWER = 1 / 3
"""Power of the precision that a target's weight is. A power of 1 would be right if errors of one target were
independent of those of another one; then a few precise targets would decide all."""

SINGLE = 0.1
"""Weight of a column's own counts, relative to all its pairs together: pairs hold them too."""

BELOW = 8.0
"""Standard deviations of its error below 0 that an empty cell of a measured pair stands for."""

_LEAST_VARIANCE = 1.0


@dataclass(frozen=True, eq=False)
class Wanted:
    """The marginals that a sample is refined to.

    Attributes:
        pairs: the pairs of columns that are targets, as columns of the model, and the larger sets measured.
        counts: denoised counts of those that were measured; the others are the model's.
        variances: mean error of a cell, in rows squared; pairs that are not named weigh as the least precise.
        values_of: for a column of groups, the column of the single values, which is drawn given the group.
        total: number of rows that the counts stand for.
    """

    pairs: tuple[Clique, ...]
    counts: Mapping[Clique, Array]
    variances: Mapping[Clique, float]
    values_of: Mapping[str, str]
    total: float

    @classmethod
    def of(
        cls,
        model: MarkovRandomField,
        values_of: Mapping[str, str],
        inside: Mapping[Clique, Denoised] | None = None,
        beside: Sequence[Observation] = (),
        distances: Mapping[Clique, float] | None = None,
    ) -> Wanted:
        """The marginals that follow from a model and from answers.

        Args:
            values_of: for a column of groups, the column of its values.
            inside: posteriors of cliques that the model was fitted to, over the columns of the model.
            beside: noisy counts of two to five columns that it was not fitted to.
            distances: for some pairs, the L1 distance of the private table from the model, in rows.
        """
        domain = model.tree.domain
        columns = [c for c in domain.columns if c not in values_of.values()]
        known: dict[Clique, Denoised] = {c: p for c, p in (inside or {}).items() if len(c) == 2}
        asked = list(dict.fromkeys((*known, *(m.clique for m in beside))))
        held = [p for p in combinations(columns, 2) if not beside or model.tree.home(p) is not None]
        pairs = _within(domain, held, asked)
        counts: dict[Clique, Array] = {}
        variances: dict[Clique, float] = {}
        for clique, distance in (distances or {}).items():
            # No two tables are further apart, however large the noise of a distance is. The mean square of
            # normal errors is pi/2 times the square of their mean.
            error = min(distance, 2 * model.total) / domain.cells(clique)
            variances[clique] = max(pi / 2 * error**2, _LEAST_VARIANCE)
        combined = pooled_counts(beside, joint=True)
        for clique, posterior in known.items():
            counts[clique] = posterior.target(model.marginal(clique).clip(0.0))
        for wide in (False, True):
            # Larger sets are denoised about estimates that have the pairs' answers.
            estimates = RakedEstimates(model, counts if wide else {})
            asked = [c for c in combined if (len(c) > 2) == wide]
            for batch in domain.batches(asked, _CELLS_A_BATCH):
                for clique, guess in estimates.marginals(batch).items():
                    known[clique] = denoised(*combined[clique], guess)
                    counts[clique] = known[clique].target(guess)
        for clique, posterior in known.items():
            variances[clique] = max(posterior.variance, _LEAST_VARIANCE)
        return cls(pairs, counts, variances, values_of, model.total)

    def beside(self, other: Wanted) -> Wanted:
        """These marginals and others of the same columns; of two counts, the one with the smaller error."""
        better = {
            c for c in other.counts if c not in self.counts or other.variances[c] < self.variances.get(c, inf)
        }
        return replace(
            self,
            pairs=tuple(dict.fromkeys((*self.pairs, *other.pairs))),
            counts={**self.counts, **{c: other.counts[c] for c in better}},
            variances={**self.variances, **{c: other.variances[c] for c in better}},
        )

    def counts_of_values(
        self, model: MarkovRandomField, asked: Iterable[Clique] = ()
    ) -> dict[tuple[str, str], Array]:
        """Counts of measured pairs, and the model's of those of ``asked``, over the values of groups."""
        counts = {clique: some for clique, some in self.counts.items() if len(clique) == 2}
        for first, second in (pair for clique in asked for pair in combinations(clique, 2)):
            if (first, second) not in counts and (second, first) not in counts:
                counts[first, second] = model.marginal((first, second))
        found = {}
        for (first, second), some in counts.items():
            over_values = some
            if first in self.values_of:
                over_values = self._values_given(model, first).T @ over_values
            if second in self.values_of:
                over_values = over_values @ self._values_given(model, second)
            found[self.values_of.get(first, first), self.values_of.get(second, second)] = over_values
        return found

    def _values_given(self, model: MarkovRandomField, groups: str) -> Array:
        """The share of each value in each group, float64[groups, values]."""
        shares = model.marginal((groups, self.values_of[groups]))
        return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))

    def targets(self, model: MarkovRandomField, rows: int) -> list[TableTarget]:
        domain, scale = model.tree.domain, rows / self.total
        least = max(self.variances.values(), default=1.0)
        weights = {p: self.variances.get(p, least) ** -WEIGHT_POWER for p in self.pairs}
        errors = {p: variance * scale**2 for p, variance in self.variances.items()}
        found = [
            TableTarget(p, counts * scale, weights[p], errors[p], BELOW * sqrt(errors[p]))
            for p, counts in self.counts.items()
        ]
        others = [p for p in self.pairs if p not in self.counts]
        for batch in domain.batches(others, _CELLS_A_BATCH):
            marginals = model.marginals(batch)
            found += [
                TableTarget(p, np.maximum(marginals[p], 0.0) * scale, weights[p], errors.get(p))
                for p in batch
            ]
        columns = {c for pair in self.pairs for c in pair}
        for c in domain.canonical(columns):
            weight = SINGLE * sum(w for p, w in weights.items() if c in p)
            found.append(TableTarget((c,), np.maximum(model.marginal((c,)), 0.0) * scale, weight))
        return found


@dataclass(frozen=True, eq=False)
class Bounds:
    """The parts of a table that a refinement leaves: fixed columns, and cells that no row moves into."""

    fixed: Collection[str] = ()
    zeros: Zeros = field(default_factory=dict)


def refined_rows(
    model: MarkovRandomField,
    wanted: Wanted,
    codes: Mapping[str, Codes],
    rng: np.random.Generator,
    bounds: Bounds = Bounds(),
    targets: Sequence[TableTarget] | None = None,
    effort: Effort = USUAL,
) -> dict[str, Codes]:
    """The rows of a table, refined to the marginals that are wanted.

    Args:
        model: the model that the rows were drawn from.
        codes: int64[rows] of every column of the model.
        targets: the targets of a table of so many rows, where they are made already.
    """
    domain, rows = model.tree.domain, len(next(iter(codes.values())))
    if not rows or not wanted.pairs:
        return dict(codes)
    targets = wanted.targets(model, rows) if targets is None else targets
    fixed = {*bounds.fixed, *(g for g, c in wanted.values_of.items() if c in bounds.fixed)}
    # A group without rows in the model has no values to draw.
    empty: Zeros = {(groups,): model.marginal((groups,)) <= 0 for groups in wanted.values_of}
    found = refined(domain, codes, targets, rng, effort=effort, fixed=fixed, zeros={**bounds.zeros, **empty})
    for groups, column in wanted.values_of.items():
        changed = np.flatnonzero(found[groups] != codes[groups])
        if changed.size:
            found[column] = found[column].copy()
            # A value for each changed row, drawn given its group.
            shares = model.marginal((groups, column))
            number, values = shares.shape
            group = found[groups][changed]
            found[column][changed] = drawn_cells(group, number, values, shares.__getitem__, rng)
    return found


@dataclass(frozen=True, eq=False)
class TableCounts:
    """The marginals of a table of codes, at least one row, scaled to an estimated number of rows."""

    domain: Domain
    codes: Mapping[str, Codes]
    total: float

    def marginal(self, clique: Clique) -> Array:
        rows = len(self.codes[self.domain.columns[0]])
        cell = position_of(self.codes, clique, self.domain, rows)
        counts = np.bincount(cell, minlength=self.domain.cells(clique)) * (self.total / rows)
        return np.asarray(counts.reshape(self.domain.shape(clique)))


def _within(domain: Domain, pairs: Iterable[Clique], first: Sequence[Clique]) -> tuple[Clique, ...]:
    found, cells = list(first), sum(map(domain.cells, first))
    given = {frozenset(pair) for pair in first}
    for pair in sorted(pairs, key=domain.cells):
        cells += domain.cells(pair)
        if cells > MOST_CELLS:
            break
        if frozenset(pair) not in given and min(domain.shape(pair)) > 1:
            found.append(pair)
    return tuple(found)
