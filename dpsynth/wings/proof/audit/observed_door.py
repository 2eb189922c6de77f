"""A door that notes what it was asked, what it would have answered exactly, and what it said.

Invariant: it opens made-up tables only. The exact answers of a real table are never noted: nothing but
``dpsynth.wings.proof.audit`` and the tests make such a door, and both make up the table themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.accounting.events import RecordedEvent
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import OwnAnswer
from dpsynth.curator import Curator, UnboundedCurator
from dpsynth.curator.charging import Exact, PrivacyFilter
from dpsynth.curator.journal import Answer, Lost, Question

ExactAnswer = NDArray[np.int64] | Mapping[str, int]
"""Exact integers, or the number of units of each value that may be named."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question as the curator met it.

    Attributes:
        question: its public JSON values.
        event: its privacy event.
        exact: the exact answer of the made-up table.
        answer: the answer that was given.
    """

    question: Question
    event: RecordedEvent
    exact: ExactAnswer
    answer: object


@dataclass(eq=False)
class Transcript:
    """All that one run on one table asked and was told.

    Attributes:
        release_id: its release.
        asked: the questions, in their order.
        disclosed: everything that left the door, also what was not charged.
        layout: the columns of the synthetic table, with the domains that were found.
        synthetic: the finished synthetic table.
    """

    release_id: str = ""
    asked: list[Asked] = field(default_factory=list)
    disclosed: list[object] = field(default_factory=list)
    layout: Layout | None = None
    synthetic: pa.Table | None = None


def observers(transcript: Transcript) -> tuple[type[Curator], type[UnboundedCurator]]:
    """The classes of two doors that note everything: after contribution bounding, and before it."""

    class Observed(PrivacyFilter):
        def _ask(
            self,
            question: Question,
            event: RecordedEvent,
            exact: Callable[[], Exact],
            draw: Callable[[Exact], Answer],
        ) -> Answer | Lost:
            found = exact()
            kept: ExactAnswer = dict(found) if isinstance(found, Mapping) else np.array(found)
            answer = super()._ask(question, event, exact, draw)
            transcript.asked.append(Asked(question, event, kept, answer))
            transcript.disclosed.append(np.array(answer).tolist())
            return answer

    class ObservedCurator(Observed, Curator):
        def count(self, price: Fraction) -> OwnAnswer | None:
            answer = super().count(price)
            transcript.disclosed.append(("count", None if answer is None else int(answer.values)))
            return answer

    class ObservedUnbounded(Observed, UnboundedCurator):
        def bounded(self, max_rows: int) -> Curator:
            curator = super().bounded(max_rows)
            curator.__class__ = ObservedCurator
            return curator

    return ObservedCurator, ObservedUnbounded
