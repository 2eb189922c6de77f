"""The sources of a release's figures, for published tables, ``query`` and ``evaluate`` alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.columns.sums import FinerCounts, MeasuredSums
from dpsynth.statistics.estimates import (
    CountedCells,
    Marginals,
    MeasuredCells,
    ModelCells,
    PublicCells,
    Unbiased,
)
from dpsynth.statistics.exam import Distances, ExaminedCells
from dpsynth.statistics.grouped_counts import Measure
from dpsynth.statistics.measured_figures import FinerQuantiles, SummedGroups
from dpsynth.statistics.sampled_estimates import SampledUnits, of_all_rows

MeasuredFigures = SummedGroups | FinerQuantiles
"""Figures by group with a question of their own."""


@dataclass(frozen=True, eq=False)
class Sources:
    """All that figures are computed from.

    Attributes:
        direct: estimates from the answers alone, for columns that were measured together.
        model: the fitted model, for all other columns.
        replicates: refits to fresh noise, which give the errors of the model's figures; without any, those
            errors are unknown where the exam doesn't have the columns.
        distances: distances of the examined cliques, from which figures by the model get their errors.
        sampled: the sample that the counts are about; None if they are about all units.
    """

    columns: Sequence[Column]
    direct: Unbiased
    model: Marginals
    replicates: Sequence[Marginals] = ()
    basis: str = "model"
    public_marginals: PublicMarginals = NO_PUBLIC_MARGINALS
    sums: tuple[MeasuredSums, ...] = ()
    finer: tuple[FinerCounts, ...] = ()
    distances: Distances = field(default_factory=dict)
    sampled: SampledUnits | None = None

    @cached_property
    def named(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    def members(self, clique: Clique) -> tuple[Column, ...]:
        return tuple(self.named[name] for name in clique)

    def measured(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together, and are not public."""
        return self.public_marginals.shares(clique) is None and self.direct.covers(clique)

    def is_direct(self, clique: Clique) -> bool:
        return self.public_marginals.shares(clique) is not None or self.direct.covers(clique)

    def known(self, clique: Clique) -> CountedCells | None:
        """The counts of a clique that is public, was measured together, or examined; None of any other."""
        shares = self.public_marginals.shares(clique)
        if shares is not None:
            return PublicCells(shares, self.direct, self.public_marginals.rows)
        if self.direct.covers(clique):
            return MeasuredCells(self.direct, clique)
        distance = self.distances.get(frozenset(clique))
        if distance is None:
            return None
        # A table is no nearer in some columns than in fewer of them.
        within = (d.expected for c, d in self.distances.items() if c <= {*clique})
        distance = replace(distance, expected=max(within))
        return ExaminedCells.of(self.model.marginal(clique), distance, self.direct, self.basis)

    def counted(self, clique: Clique) -> CountedCells:
        found = self.known(clique)
        if found is None:
            refits = [again.marginal(clique) for again in self.replicates]
            found = ModelCells(self.model.marginal(clique), refits, self.basis)
        return of_all_rows(found, self.sampled)

    def measured_figures(self, measure: Measure, by: Clique) -> MeasuredFigures | None:
        """Figures by group that a noisy sum or finer counts were measured for; None of any others."""
        if measure.kind not in ("mean", "sum", "quantile"):
            return None
        clique = (*by, *measure.of)
        asked = self.finer if measure.kind == "quantile" else self.sums
        found = next((one for one in asked if one.clique == clique), None)
        if found is None or not self.measured(clique):
            return None
        column = self.named[found.column]
        if isinstance(found, FinerCounts):
            return FinerQuantiles(found, column, self.direct)
        return SummedGroups(found, column, self.direct)
