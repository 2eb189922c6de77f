"""The public content of a release, as one value.

Audiences of a release: what a bundle says of the others, and the answers of earlier tiers that it holds.

Invariant: of another audience a bundle gives its name and its epsilon, and nothing of what that audience
learns. A bundle holds the answers of audiences of smaller epsilons, whose bundles its own audience gets too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import Nameless
from dpsynth.accounting.slices import Slice
from dpsynth.bundle.row_files import TableFiles
from dpsynth.bundle.row_source import RowSource
from dpsynth.columns.column import Column
from dpsynth.columns.disclosed import NO_PROVENANCE, Provenance, disclosed
from dpsynth.columns.domain import Clique, Compression
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import (
    NO_PUBLIC_MARGINALS,
    Measurement,
    OwnAnswer,
    PublicMarginals,
    WeightedCounts,
)
from dpsynth.columns.rules import Enforcement, enforcement_of
from dpsynth.columns.sums import FinerCounts, MeasuredSums
from dpsynth.model import MarkovRandomField
from dpsynth.model.measurement_file import Answered
from dpsynth.statistics.cut_off import CutOff
from dpsynth.statistics.exam import Exam
from dpsynth.statistics.sampled_estimates import SampledUnits
from dpsynth.statistics.single_columns import DataWarning
from dpsynth.statistics.tables import StatisticTable
from dpsynth.statistics.verdict import NO_VERDICT, Criterion, Finished, Verdict
from dpsynth.wing import Point

JUDGE: Point[Callable[[Sequence[Mapping[str, object]], Finished], tuple[Criterion, ...]]] = Point(
    "criteria", "governance"
)
"""Judges the criteria of a configuration, which are handed over as JSON values."""


@dataclass(frozen=True, eq=False)
class TierAnswers:
    """The joint answers of one tier.

    Attributes:
        answers: noisy marginals, over the compressed domain.
    """

    audience: str
    answers: tuple[Measurement, ...]
    compression: Compression

    @property
    def answered(self) -> Answered:
        return Answered((), self.answers, self.compression)


@dataclass(frozen=True, eq=False)
class BundleAudience:
    """The audience of a bundle.

    Attributes:
        epsilons: the epsilon of each audience, rounded up, by name, in rising order.
        earlier: joint answers of tiers before.
    """

    name: str
    epsilons: Mapping[str, float]
    earlier: tuple[TierAnswers, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(dict.fromkeys(m.clique for tier in self.earlier for m in tier.answers))

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "audiences": [{"name": name, "epsilon": epsilon} for name, epsilon in self.epsilons.items()],
            "answers_of": {tier.audience: file_of(tier.audience) for tier in self.earlier},
        }


def file_of(audience: str) -> str:
    """The file in which a bundle holds the joint answers of an audience before."""
    return f"measurements-{audience}.parquet"


class Views(Protocol):
    """Views of the synthetic table in the form of older disclosure control, as post-processing."""

    @property
    def adds_nothing(self) -> str:
        """What they add to the guarantee, in words."""

    def to_json(self) -> dict[str, object]: ...

    def files(self) -> Iterator[tuple[str, Mapping[str, Sequence[str] | pa.StringArray]]]:
        """Each file's name, with its columns."""


class Database(Protocol):
    """Linked tables whose rows stand beside each other in the synthetic table."""

    @property
    def in_words(self) -> tuple[str, ...]:
        """Sentences on what the tables are, and what of the private ones is left out."""

    def to_json(self) -> dict[str, object]: ...

    def write(self, folder: Path) -> Iterator[str]:
        """Write the tables, and yield the name of each file."""


class FromElsewhere(Protocol):
    """Counts from elsewhere that the model rests on, as the template of words tells of them."""

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The sets of columns whose joint counts are in the model."""

    def to_json(self) -> dict[str, object]: ...


class EarlierReleases(FromElsewhere, Protocol):
    """Answers of earlier releases."""

    @property
    def used(self) -> Sequence[object]: ...


class WithoutCurator(Protocol):
    """A collection of reports that respondents randomised themselves, under trust: local."""

    def to_json(self) -> dict[str, object]: ...

    def guarantee_in_words(self, guarantee: Guarantee) -> tuple[str, ...]:
        """The guarantee of every respondent, as sentences."""

    def not_protected(self) -> tuple[str, ...]:
        """The limits of the guarantee, as sentences."""

    def cautions(self, sentences: Sequence[str]) -> tuple[str, ...]:
        """The cautions on a private table, said of respondents, with those of a collection."""


@dataclass(frozen=True, eq=False)
class Publication:
    """The public content of a release; every field is a public fact, an answer, or computed from these.

    Attributes:
        release_id: the id of this run of it.
        part: the slice of the table that it is about; None if it is about the whole table.
        synthetic: the files of the synthetic table, which are written first: typed values under the original
            names, in the original order; null is missing.
        singles: the total, and the noisy counts of every column's values.
        answers: all joint noisy marginals, over the compressed domain.
        sums: noisy sums by group, of means that are asked for.
        finer: noisy counts of pieces of bins by group, of quantiles that are asked for.
        compression: the groups of values that were merged before columns were measured together.
        merged_below: number of rows below which values were merged, by smoothed noisy counts.
        rows: the source of the table's rows, and of more: the Markov random field fitted to all answers, and
            the targets that rows are refined to.
        events: one mapping for each journalled answer, in order: ``question`` ("marginal",
            "choose", "errors", "parities", "sums", "finer counts", "exam",
            "classified" or "count"), ``columns``, ``merged_values`` (true if it was
            asked over groups), ``candidates``, ``mechanism``, ``scale``, ``sensitivity``, ``epsilon``,
            ``rho``.
        cliques: the chosen cliques in order; a clique may be repeated.
        formats: some of "csv", "csv.gz", "csv.zst" and "parquet".
        lost: cliques chosen but not measured, because the release was interrupted.
        unit_changed: sentences on releases of these people that protected rows; none where there are none.
        found: the facts that were found of each column with a part of the budget: "bounds", "quantiles",
            "tree", "values" or "prefixes"; "max_rows" for the column of the person.
        nameless: the treatment of rows without a person: "left_out", or "together" as one person's; None
            where rows are the units.
        form: the form of the private table's file in the config; None if it is no file.
        rows_on_trust: True if the table is the rows of a query that its owner alone knows to be row by row.
        collection: the reports of respondents that it was made from; None if a curator answered.
        minimum_set_size: the number of rows below which ``dpsynth query`` withholds an estimate; None without
            such a rule.
        terms: terms of use for recipients.
        provenance: the configuration's section of that name.
        history: each column with that of the row before, where rows follow each other, and what its axes are.
    """

    release: str
    release_id: str
    date: str
    part: Slice | None
    layout: Layout
    synthetic: TableFiles
    singles: tuple[OwnAnswer, ...]
    answers: tuple[Measurement, ...]
    compression: Compression
    merged_below: float
    rows: RowSource
    statistics: tuple[StatisticTable, ...]
    guarantee: Guarantee
    events: tuple[Mapping[str, object], ...]
    structure: str
    cliques: tuple[Clique, ...]
    budget: Mapping[str, object]
    formats: tuple[str, ...]
    lost: tuple[Clique, ...]
    versions: Mapping[str, str]
    reused: EarlierReleases | None = None
    unit_changed: tuple[str, ...] = ()
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    public_table: FromElsewhere | None = None
    public_marginals: PublicMarginals = NO_PUBLIC_MARGINALS
    nameless: Nameless | None = None
    rehearsal: bool = False
    form: Mapping[str, object] | None = None
    rows_on_trust: bool = False
    warnings: tuple[DataWarning, ...] = ()
    exam: Exam | None = None
    verdict: Verdict = NO_VERDICT
    cut: CutOff | None = None
    sums: tuple[MeasuredSums, ...] = ()
    finer: tuple[FinerCounts, ...] = ()
    collection: WithoutCurator | None = None
    minimum_set_size: int | None = None
    terms: str | None = None
    views: Views | None = None
    database: Database | None = None
    signed_by: str | None = None
    sampled: SampledUnits | None = None
    audience: BundleAudience | None = None
    weights: tuple[WeightedCounts, ...] = ()
    history: tuple[tuple[Measurement, Mapping[str, object]], ...] = ()
    provenance: Provenance = NO_PROVENANCE

    @cached_property
    def constraints(self) -> tuple[Enforcement, ...]:
        return enforcement_of(self.rows.rules, self.layout)

    @property
    def disclosed_outside(self) -> tuple[Mapping[str, str], ...]:
        return tuple(
            disclosed(
                self.release,
                self.layout,
                self.provenance,
                found=self.found,
                rules=[str(one.rule) for one in self.constraints],
                counts=[one.clique for one in self.public_marginals.marginals],
                table="" if self.public_table is None else "A public table, used as evidence",
                period="" if self.part is None else str(self.part.column),
                asked=[one.title for one in self.statistics if one.kind != "one_way"],
            )
        )

    @property
    def model(self) -> MarkovRandomField:
        return self.rows.model

    @property
    def measured_together(self) -> tuple[Clique, ...]:
        """The columns of each joint answer, those of earlier tiers included."""
        earlier = () if self.audience is None else self.audience.cliques
        return (*(m.clique for m in self.answers), *earlier)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.layout.columns
