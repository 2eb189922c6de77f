"""The sources of a release's statistics, from which every figure is computed.

File names made of column names, which may hold any character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.finer_counts import FinerCounts
from dpsynth.columns.public_marginals import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.columns.sums import MeasuredSums
from dpsynth.statistics.counted_cells import CountedCells, ModelCells, examined, public_or_measured
from dpsynth.statistics.estimates import Marginals, Unbiased
from dpsynth.statistics.examined_estimates import Distances
from dpsynth.statistics.sampled_estimates import SampledUnits, of_all_rows

_LONGEST_PART = 40


def _plain_letters(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "_", ascii_text).strip("_")[:_LONGEST_PART] or "column"


def file_name(parts: Iterable[str], taken: Set[str]) -> str:
    """A name of ASCII letters, digits, "_" and "-", differing from those taken in more than case.

    >>> file_name(["crosstab", "age", "a/b"], {"crosstab-age-A_b"})
    'crosstab-age-a_b-2'
    """
    stem = "-".join(map(_plain_letters, parts))
    used = {name.casefold() for name in taken}
    name, number = stem, 1
    while name.casefold() in used:
        number += 1
        name = f"{stem}-{number}"
    return name


@dataclass(frozen=True)
class Provenance:
    """Facts beside noisy counts that tables of statistics rest on.

    Attributes:
        basis: the basis of tables by the model.
        public_marginals: the public marginals.
        sums: measured sums, for means and sums.
        finer: measured finer counts, for quantiles.
        distances: distances of the examined cliques, from which figures by the model get their errors.
        sampled: the sample that the counts are about; None if they are about all units.
    """

    basis: str = "model"
    public_marginals: PublicMarginals = NO_PUBLIC_MARGINALS
    sums: tuple[MeasuredSums, ...] = ()
    distances: Distances = field(default_factory=dict)
    sampled: SampledUnits | None = None
    finer: tuple[FinerCounts, ...] = ()


ANSWERS_ALONE = Provenance()


@dataclass(frozen=True, eq=False)
class Sources:
    """All that statistics are computed from.

    Attributes:
        columns: the table's columns by name.
        direct: estimates from the answers alone, for columns that were measured together.
        model: the fitted model, for all other columns.
        replicates: refits to fresh noise, which give the errors of the model's figures.
        provenance: what figures rest on beside the noisy counts.
    """

    columns: Mapping[str, Column]
    direct: Unbiased
    model: Marginals
    replicates: Sequence[Marginals]
    provenance: Provenance

    def measured(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together, and are not public."""
        return self.provenance.public_marginals.shares(clique) is None and self.direct.covers(clique)

    def is_direct(self, clique: Clique) -> bool:
        """True if a clique's figures don't rest on the model."""
        return self.provenance.public_marginals.shares(clique) is not None or self.direct.covers(clique)

    def counted(self, clique: Clique) -> CountedCells:
        """The counts of a clique: public, measured, or the model's."""
        known = public_or_measured(self.provenance.public_marginals, self.direct, clique)
        if known is not None:
            return of_all_rows(known, self.provenance.sampled)
        cells, basis = self.model.marginal(clique), self.provenance.basis
        by_exam = examined(cells, clique, self.provenance.distances, self.direct, basis)
        modelled = ModelCells(cells, [again.marginal(clique) for again in self.replicates], basis)
        return of_all_rows(by_exam or modelled, self.provenance.sampled)

    def members(self, clique: Clique) -> tuple[Column, ...]:
        """The columns of a clique."""
        return tuple(self.columns[name] for name in clique)
