"""Counts of a release's model, separated by provenance.

Invariant: only ``own`` and ``joint`` were paid for, or are exact totals. Their types say so, and only they
can be written as the release's measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.bundle.publication import TierAnswers
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import (
    CombinedCounts,
    Measurement,
    Observation,
    OwnAnswer,
    PublicCounts,
    PublicMarginals,
    UnitsByRows,
    estimated_total,
)
from dpsynth.columns.sums import FinerCounts, MeasuredSums
from dpsynth.model import Denoised, Expansion, estimate, posteriors
from dpsynth.model.least_squares import LeastSquares
from dpsynth.model.reused_answers import ReusedAnswers
from dpsynth.pipeline.earlier_releases import Reused
from dpsynth.statistics.cut_off import CutOff, Kept
from dpsynth.strategy.public_table import PublicTable, PublicUse
from dpsynth.strategy.strategy import Selection


@dataclass(frozen=True, eq=False)
class EarlierTiers:
    """The answers of earlier tiers, which are answers of this release like its later ones.

    Attributes:
        singles: the noisy total and the one-way marginals.
        joint: the joint marginals of each tier that measured some, over its own groups.
    """

    singles: tuple[Measurement, ...] = ()
    joint: tuple[TierAnswers, ...] = ()

    def after(self, audience: str, measured: Measured) -> EarlierTiers:
        """These answers and those of one more tier."""
        own = measured.answers
        noisy = [m for m in (*own.first, *own.again) if isinstance(m, Measurement)]
        singles = (*self.singles, *noisy)
        if not measured.joint:
            return EarlierTiers(singles, self.joint)
        joint = TierAnswers(audience, tuple(measured.joint), measured.expansion.compression)
        return EarlierTiers(singles, (*self.joint, joint))

    def evidence(self, domain: Domain) -> ReusedAnswers:
        """The joint answers as evidence about the same rows."""
        return ReusedAnswers(domain, tuple(tier.answered for tier in self.joint))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns that earlier tiers have measured together."""
        return tuple(dict.fromkeys(m.clique for tier in self.joint for m in tier.answers))


NO_TIERS = EarlierTiers()


@dataclass(frozen=True, eq=False)
class Answers:
    """Counts by provenance, over all values of the columns.

    Attributes:
        first: the total and the one-way marginals of the first measurement.
        public_one_way: public counts of single columns, from the config.
        public_joint: public counts of several columns together, from the config.
        evidence: evidence from earlier releases and a public table.
        reused: the earlier releases among the evidence; None if the config asks for none.
        again: one-way marginals that the strategy measured once more.
        sums: sums of the means that are asked for.
        finer: finer counts of the quantiles that are asked for.
        combined: one-way counts from answers about several columns, where no column was measured alone.
        tiers: the answers of earlier tiers.
        units: the numbers of units by their rows, of the first tier; None if they were not asked for.
    """

    first: tuple[OwnAnswer, ...]
    public_one_way: tuple[PublicCounts, ...]
    public_joint: tuple[PublicCounts, ...]
    evidence: ReusedAnswers
    reused: Reused | None
    again: tuple[Measurement, ...] = ()
    sums: tuple[MeasuredSums, ...] = ()
    finer: tuple[FinerCounts, ...] = ()
    combined: tuple[CombinedCounts, ...] = ()
    tiers: EarlierTiers = NO_TIERS
    units: UnitsByRows | None = None

    @property
    def own(self) -> tuple[OwnAnswer, ...]:
        """The total and the one-way marginals of the release itself."""
        return (*self.tiers.singles, *self.first, *self.again)

    @property
    def of_this_tier(self) -> tuple[Observation, ...]:
        """The total and all one-way counts, without evidence and without the answers of earlier tiers."""
        return (*self.first, *self.public_one_way, *self.combined, *self.again)

    @property
    def one_way(self) -> tuple[Observation, ...]:
        """The total and all one-way counts, without evidence."""
        return (*self.tiers.singles, *self.of_this_tier)

    @property
    def rows(self) -> float:
        """The number of rows by the first answers: exact where it is public, otherwise estimated."""
        return estimated_total((*self.tiers.singles, *self.first))

    def cut_off(self, near: Neighbours) -> CutOff | None:
        """The rows that the contribution bound of a unit cuts off; None if it was not asked."""
        return None if self.units is None else CutOff(self.units, near, Kept.of(self.own))

    def use_of(self, table: PublicTable | None) -> PublicUse | None:
        """The use of a public table, for reports; None without one."""
        return None if table is None else table.use(self.evidence, self.rows)


@dataclass(frozen=True, eq=False)
class Measured:
    """All answers of a release, after its last question.

    Attributes:
        answers: counts of single columns, public counts and evidence.
        expansion: the map between values and the groups that were measured; it has all one-way counts.
        selection: the strategy's choices and measurements.
    """

    answers: Answers
    expansion: Expansion
    selection: Selection

    @classmethod
    def of(cls, answers: Answers, expansion: Expansion, selection: Selection) -> Measured:
        """All answers, with the single columns that the strategy measured once more."""
        again = selection.singles
        whole = replace(expansion, singles=(*expansion.singles, *again))
        return cls(replace(answers, again=(*answers.again, *again)), whole, selection)

    @property
    def joint(self) -> list[Measurement]:
        """Answers of the release about several columns together, over groups."""
        return [m for m in self.selection.answers if m is not None]

    @property
    def beside(self) -> list[Measurement]:
        """The answers among ``joint`` that only the synthetic table follows, over groups."""
        return self.selection.not_held

    @property
    def fitted_to(self) -> list[Observation]:
        """Counts of several columns together that the model rests on, over groups."""
        return [*self.selection.held, *self.answers.public_joint, *self.selection.earlier]

    def direct(self, public: PublicMarginals) -> LeastSquares:
        """The counts over values rather than groups, by the answers alone, reconciled."""
        answers, domain = self.answers, self.expansion.domain
        one_way, joint = answers.one_way, answers.public_joint
        if public.rows is None:
            # Public shares were made counts by the estimated number of rows, which they don't measure.
            one_way = tuple(m for m in one_way if not public.columns & set(m.clique))
            joint = ()
        own = replace(self.expansion, singles=one_way).direct(self.joint)
        return LeastSquares(
            domain, (*own, *joint, *answers.evidence.direct(), *answers.tiers.evidence(domain).direct())
        )

    @cached_property
    def posteriors(self) -> dict[Clique, Denoised]:
        """Posteriors of the cliques that the model is fitted to, over groups."""
        if not self.fitted_to:
            return {}
        return posteriors(self.fitted_to, estimate(self.expansion.coarse, self.expansion.sums).model)
