"""Replay on neighbours: a release of one made-up table is recorded, then forced upon a neighbour.

A door notes what it was asked, what it would have answered exactly, and what it said. On the neighbour every
answer comes from the record. If a question, its order, its charge, or anything that is told without a charge
differs between the two, it depends on the table in another way than through a recorded answer. The exact
answers beside them show how far a neighbour really moves each one.

Invariant: the door opens made-up tables only. The exact answers of a real table are never noted: nothing but
``dpsynth.wings.proof.audit`` and the tests make such a door, and both make up the table themselves.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    SelectionEvent,
    ThresholdEvent,
)
from dpsynth.bundle.row_files import SyntheticTable
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import OwnAnswer
from dpsynth.config import Spec
from dpsynth.curator import Curator, UnboundedCurator
from dpsynth.curator.charging import Exact, PrivacyFilter
from dpsynth.curator.journal import Answer, Lost, Question
from dpsynth.errors import DpsynthError
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.generating import FittedModel
from dpsynth.pipeline.inputs import Inputs
from dpsynth.pipeline.measuring import Measured, open_door
from dpsynth.statistics.exam import Exam

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


T = TypeVar("T")


class _AllAsked(DpsynthError):
    """Raised to leave a release once its last question is answered."""


def observe(
    spec: Spec, outputs: Path, resume: str | None = None, period: str | None = None, *, table: bool = True
) -> Transcript:
    """The transcript of the part of a release that asks, from its first question to its last.

    Args:
        spec: a config whose source is a made-up table, with a ledger of its own.
        outputs: an empty folder, or that of the release to resume.
        resume: the release whose recorded answers are forced.
        period: label of the slice, if the config has periods.
        table: true to go on until the synthetic table is made, also if no question needs it.
    """
    transcript = Transcript()
    curator, unbounded = observers(transcript)
    last: type = SyntheticTable
    audiences = 1

    def until_all_is_asked(name: str, action: Callable[[], T]) -> T:
        nonlocal last, audiences
        del name
        outcome = action()
        if isinstance(outcome, Inputs):
            last = Exam if outcome.plan.exam else SyntheticTable if table else Measured
            audiences = len(outcome.plan.tiers)
        if isinstance(outcome, FittedModel):
            transcript.layout = outcome.layout
        if isinstance(outcome, SyntheticTable):
            transcript.synthetic = outcome.table
        if isinstance(outcome, last):
            audiences -= 1
            if not audiences:
                raise _AllAsked
        return outcome

    door = partial(open_door, curator=curator, unbounded=unbounded)
    with suppress(_AllAsked):
        pipeline.run(spec, Request(outputs, resume, period), run_step=until_all_is_asked, door=door)
    (found,) = (outputs / spec.release).glob(".*.partial")
    transcript.release_id = found.name.removeprefix(".").removesuffix(".partial")
    return transcript


def replay(
    neighbour: Spec,
    record: Transcript,
    outputs: Path,
    folder: Path,
    period: str | None = None,
    *,
    table: bool = True,
) -> Transcript:
    """The transcript of a neighbour, upon which the recorded answers are forced.

    Args:
        neighbour: the config of the record, with the neighbour as its source and a new ledger.
        record: the transcript of the release.
        outputs: its folder.
        folder: a folder for the replay; what it holds is removed.
        period: label of the slice, if the config has periods.
        table: as for the record.

    Raises:
        DpsynthError: a question differs from the record.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(outputs, folder)
    return observe(neighbour, folder, record.release_id, period, table=table)


def faults(before: Transcript, after: Transcript) -> Iterator[str]:
    """Differences that gave a neighbour away, and measured sensitivities above the declared ones."""
    if [a.question for a in before.asked] != [a.question for a in after.asked]:
        yield "questions differ"
    if before.disclosed != after.disclosed:
        yield "something was told that no journalled answer covers"
    for one, two in zip(before.asked, after.asked, strict=False):
        if one.event != two.event:
            yield "charges differ"
        named = isinstance(one.event, SelectionEvent | ThresholdEvent)
        if named and gaps(one.exact, two.exact).max(initial=0) > 1:
            yield f"{one.question['ask']}: a unit counted more than once for a value"
        moved, bound = sensitivity(one, two), declared(one.event)
        if moved > bound:
            yield f"{one.question['ask']}: sensitivity {moved}, declared {bound}"


def sensitivity(one: Asked, two: Asked) -> int:
    """The distance by which a neighbour moves an exact answer, in the norm of the question's event."""
    gap = gaps(one.exact, two.exact)
    match one.event:
        case SelectionEvent() | ThresholdEvent():
            return int(np.sum(gap > 0))
        case GaussianEvent():
            return int(np.sum(gap**2))
        case LaplaceEvent():
            return int(np.sum(gap))
        case ExponentialEvent():
            return int(np.max(gap))


def declared(event: RecordedEvent) -> int:
    """The sensitivity that an event declares, in its norm."""
    match event:
        case SelectionEvent(partitions=bound) | ThresholdEvent(partitions=bound):
            return bound
        case GaussianEvent(l2_squared=bound):
            return bound
        case LaplaceEvent(l1=bound):
            return bound
        case ExponentialEvent(sensitivity=bound):
            return bound


def gaps(one: ExactAnswer, two: ExactAnswer) -> NDArray[np.int64]:
    """Absolute differences of two exact answers, number by number."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        apart: NDArray[np.int64] = np.abs(one - two)
        return apart
    left, right = dict(one), dict(two)
    return np.array([abs(left.get(v, 0) - right.get(v, 0)) for v in left | right], dtype=np.int64)
