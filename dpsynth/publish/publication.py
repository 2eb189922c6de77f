"""Everything a release hands to the public, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.neighbours import Nameless
from dpsynth.domain.column import Column
from dpsynth.domain.compression import Compression
from dpsynth.domain.domain import Clique
from dpsynth.domain.layout import Layout
from dpsynth.domain.measurement import Measurement, OwnAnswer
from dpsynth.domain.public_marginals import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.domain.slices import Slice
from dpsynth.evidence.public_table import PublicUse
from dpsynth.evidence.reused import Reused
from dpsynth.model import MarkovRandomField
from dpsynth.publish.statistics import StatisticTable
from dpsynth.rules import Enforcement


@dataclass(frozen=True, eq=False)
class Publication:
    """A release's public content; every field is a public fact, an answer, or made of these.

    Attributes:
        release: the release's name in the config.
        release_id: the id of this run of it.
        date: ISO date of the run, without a time of day.
        part: the slice of the table that it is about; None if it is about the whole of it.
        layout: what the synthetic table consists of.
        synthetic: typed values under the original names, in the original order; null is missing.
        singles: the total, and the noisy counts of every column's values.
        answers: every other noisy marginal, over groups where a column has merged values.
        grouping: which values were merged before columns were measured together.
        merged_below: rows; values were merged that fewer had, by smoothed noisy counts.
        model: the Markov random field fitted to all answers, from which the table was drawn.
        statistics: tables with error bars.
        guarantee: recomputed from the journal.
        events: one mapping for each journalled answer, in order: ``question`` ("marginal",
            "choose", "errors" or "count"), ``columns``, ``merged_values`` (whether it was asked
            over groups), ``candidates``, ``mechanism``, ``scale``, ``sensitivity``, ``epsilon``,
            ``rho``.
        structure: the strategy that decided what to measure.
        cliques: the cliques that it decided on, in that order; one may stand there again.
        budget: what the config asked for.
        formats: "csv", "parquet" or both.
        lost: cliques chosen but not measured, because the release was interrupted.
        versions: names and versions of the software that ran.
        reused: what was taken from earlier releases; None where nothing was to be.
        found: for each column of which something was found with a part of the budget what that is:
            "bounds", "quantiles", "tree", "values" or "prefixes"; "max_rows" for the column that says
            whose a row is.
        constraints: the rules that every synthetic row obeys, and how each is kept.
        public_table: what was taken from a public table; None without one.
        public_marginals: the marginals that the config states.
        nameless: what became of rows that say no person: "left_out", or "together" as one person's; None
            where rows are the units.
    """

    release: str
    release_id: str
    date: str
    part: Slice | None
    layout: Layout
    synthetic: pa.Table
    singles: tuple[OwnAnswer, ...]
    answers: tuple[Measurement, ...]
    compression: Compression
    merged_below: float
    model: MarkovRandomField
    statistics: tuple[StatisticTable, ...]
    guarantee: Guarantee
    events: tuple[Mapping[str, object], ...]
    structure: str
    cliques: tuple[Clique, ...]
    budget: Mapping[str, object]
    formats: tuple[str, ...]
    lost: tuple[Clique, ...]
    versions: Mapping[str, str]
    reused: Reused | None = None
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constraints: tuple[Enforcement, ...] = ()
    public_table: PublicUse | None = None
    public_marginals: PublicMarginals = NO_PUBLIC_MARGINALS
    nameless: Nameless | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that were read and modelled, in the order of the table."""
        return self.layout.columns
