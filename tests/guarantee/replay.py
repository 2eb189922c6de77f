"""Replay on neighbours: a release on X is recorded, then forced upon a neighbour X'.

On X' every answer comes from the record. If any question, in any order, or anything that
the pipeline is told without paying differs between X and X', then it depends on the table
by another way than through a journalled answer, and `replay` raises or returns a finding.
What the answers themselves would have been shows the true sensitivity of each.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpsynth import pipeline
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.curator.door import Curator
from dpsynth.errors import DpsynthError
from dpsynth.spec import Spec

T = TypeVar("T")


@dataclass
class Asked:
    """One question as the curator met it: what it would have answered exactly, and its event."""

    question: Any
    event: Any
    exact: np.ndarray


@dataclass
class Transcript:
    """All that one run on one table asked and was told."""

    release_id: str = ""
    asked: list[Asked] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)


class ObservedCurator(Curator):
    """A curator that notes each question with its exact answer, for the test's eyes only."""

    transcript: ClassVar[Transcript]

    def _ask(self, question, event, exact, draw):
        self.transcript.asked.append(Asked(question, event, np.array(exact())))
        answer = super()._ask(question, event, exact, draw)
        self.transcript.told.append(np.array(answer).tolist())
        return answer

    def count(self, price: Fraction):
        answer = super().count(price)
        self.transcript.told.append(("count", int(answer.values)))
        return answer


class _Measured(DpsynthError):
    """Raised to leave a release once all questions are asked."""


def _until_measured(name: str, action: Callable[[], T]) -> T:
    if name == "compose the guarantee":
        raise _Measured
    return action()


def observe(spec: Spec, outputs: Path, resume: str | None = None) -> Transcript:
    """Run the asking half of a release in process, observed."""
    transcript = Transcript()
    ObservedCurator.transcript = transcript
    original = pipeline.Curator
    pipeline.Curator = ObservedCurator
    try:
        pipeline.run(spec, outputs=outputs, resume=resume, run_step=_until_measured)
    except _Measured:
        pass
    finally:
        pipeline.Curator = original
    (found,) = (outputs / spec.release).glob(".*.partial")
    transcript.release_id = found.name.removeprefix(".").removesuffix(".partial")
    return transcript


def replay(spec: Spec, neighbour: Spec, record: Transcript, outputs: Path, folder: Path) -> Transcript:
    """Run the asking half on a neighbour with the recorded answers forced.

    Raises whatever the journal raises when a question differs from the record.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(outputs, folder)
    assert spec.fingerprint() == neighbour.fingerprint()
    return observe(neighbour, folder, resume=record.release_id)


def excess(before: Transcript, after: Transcript) -> list[str]:
    """What the neighbour gave away, or by how much a measured sensitivity exceeds the declared."""
    found = []
    if [a.question for a in before.asked] != [a.question for a in after.asked]:
        found.append("questions differ")
    if before.told != after.told:
        found.append("something was told that no journalled answer covers")
    for one, two in zip(before.asked, after.asked, strict=False):
        if one.event != two.event:
            found.append("charges differ")
        gap = np.abs(one.exact - two.exact)
        match one.event:
            case GaussianEvent(l2_squared=bound):
                measured = int(np.sum(gap**2))
            case LaplaceEvent(l1=bound):
                measured = int(np.sum(gap))
            case ExponentialEvent(sensitivity=bound):
                measured = int(np.max(gap))
        if measured > bound:
            found.append(f"{one.question}: sensitivity {measured}, declared {bound}")
    return found


def sensitivities(before: Transcript, after: Transcript) -> Sequence[int]:
    """Measured L1 change of each marginal, in order."""
    return [
        int(np.abs(a.exact - b.exact).sum())
        for a, b in zip(before.asked, after.asked, strict=True)
        if a.question["ask"] == "marginal"
    ]
