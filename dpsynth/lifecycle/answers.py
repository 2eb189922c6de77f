"""All counts that a release's model rests on, told apart by where they come from.

Invariant: only ``own`` and ``joint`` were paid for, or are exact totals; their types say so, and only they
can be written as the release's measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsynth.domain.measurement import Measurement, Observation, OwnAnswer, PublicCounts
from dpsynth.evidence.evidence import Evidence
from dpsynth.evidence.public_table import PublicTable, PublicUse
from dpsynth.evidence.reused import Reused
from dpsynth.model import Expansion, estimated_total
from dpsynth.structure.strategy import Selection


@dataclass(frozen=True, eq=False)
class Answers:
    """Counts by provenance, over all values of the columns.

    Attributes:
        first: the total and the one-way marginals, as they were measured first.
        public_one_way: counts of single columns that the config states.
        public_joint: counts of several columns together that the config states.
        evidence: what earlier releases and a public table say of these rows.
        reused: which earlier releases that is, for people; None where the config asks for none.
        again: one-way marginals that the strategy had measured once more.
    """

    first: tuple[OwnAnswer, ...]
    public_one_way: tuple[PublicCounts, ...]
    public_joint: tuple[PublicCounts, ...]
    evidence: Evidence
    reused: Reused | None
    again: tuple[Measurement, ...] = ()

    @property
    def own(self) -> tuple[OwnAnswer, ...]:
        """The total and the one-way marginals of the release itself."""
        return (*self.first, *self.again)

    @property
    def one_way(self) -> tuple[Observation, ...]:
        """The total and all one-way counts but evidence."""
        return (*self.first, *self.public_one_way, *self.again)

    @property
    def rows(self) -> float:
        """The number of rows by the first answers: exact where it is public, otherwise estimated."""
        return estimated_total(self.first)

    def use_of(self, table: PublicTable | None) -> PublicUse | None:
        """The use of a public table, for people; None without one."""
        return PublicUse.of(table, self.evidence, self.rows)


@dataclass(frozen=True, eq=False)
class Measured:
    """All that was answered, once nothing more is asked.

    Attributes:
        answers: counts of single columns, and what is public or evidence.
        expansion: between values and the groups that were measured together; it has all one-way counts.
        selection: what the strategy had measured.
    """

    answers: Answers
    expansion: Expansion
    selection: Selection

    @classmethod
    def of(cls, answers: Answers, expansion: Expansion, selection: Selection) -> Measured:
        """What was answered, single columns that the strategy had measured once more included."""
        again = selection.singles
        whole = replace(expansion, singles=(*expansion.singles, *again))
        return cls(replace(answers, again=(*answers.again, *again)), whole, selection)

    @property
    def joint(self) -> list[Measurement]:
        """Answers of the release about several columns together, over groups."""
        return [m for m in self.selection.answers if m is not None]

    @property
    def fitted_to(self) -> list[Observation]:
        """Counts of several columns together that the model rests on, over groups."""
        return [*self.joint, *self.answers.public_joint, *self.selection.earlier]
