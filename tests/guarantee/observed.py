"""What a curator was asked and would have answered exactly, and how two tables differ in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent
from dpsynth.curator import Curator, UnboundedCurator, noise
from dpsynth.curator import partition_selection as selection
from dpsynth.curator.privacy_filter import PrivacyFilter


@dataclass
class Asked:
    """One question as the curator met it: what it would have answered exactly, and its event."""

    question: Any
    event: Any
    exact: Any
    """An array, or the number of units of each value that may be named."""


@dataclass
class Transcript:
    """All that one run on one table asked and was told."""

    release_id: str = ""
    asked: list[Asked] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)


class Observed(PrivacyFilter):
    """Notes each question with its exact answer, for the test's eyes only."""

    transcript: ClassVar[Transcript]

    def _ask(self, question, event, exact, draw):
        found = exact()
        kept = dict(found) if isinstance(found, dict) else np.array(found)
        ObservedCurator.transcript.asked.append(Asked(question, event, kept))
        answer = super()._ask(question, event, exact, draw)
        ObservedCurator.transcript.told.append(np.array(answer).tolist())
        return answer


class ObservedCurator(Observed, Curator):
    """A curator that is observed, and so is any one on groups, or on columns coded later, made from it."""

    def count(self, price: Fraction):
        answer = super().count(price)
        ObservedCurator.transcript.told.append(("count", int(answer.values)))
        return answer


class ObservedUnbounded(Observed, UnboundedCurator):
    """A curator of rows that are not bounded yet, observed like the curator made from it."""

    def bounded(self, max_rows: int):
        curator = super().bounded(max_rows)
        curator.__class__ = ObservedCurator
        return curator


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
        gap = gaps(one.exact, two.exact)
        match one.event:
            case SelectionEvent(partitions=bound) | ThresholdEvent(partitions=bound):
                measured = int(np.sum(gap > 0))
                if gap.max(initial=0) > 1:
                    found.append(f"{one.question}: a unit counted more than once for a value")
            case GaussianEvent(l2_squared=bound):
                measured = int(np.sum(gap**2))
            case LaplaceEvent(l1=bound):
                measured = int(np.sum(gap))
            case ExponentialEvent(sensitivity=bound):
                measured = int(np.max(gap))
        if measured > bound:
            found.append(f"{one.question}: sensitivity {measured}, declared {bound}")
    return found


def gaps(one: Any, two: Any) -> np.ndarray:
    """How far each number lies from its like."""
    if isinstance(one, dict):
        return np.array([abs(one.get(v, 0) - two.get(v, 0)) for v in one | two], dtype=np.int64)
    return np.abs(one - two)


def sensitivities(before: Transcript, after: Transcript) -> Sequence[int]:
    """Measured L1 change of each marginal, in order."""
    return [
        int(np.abs(a.exact - b.exact).sum())
        for a, b in zip(before.asked, after.asked, strict=True)
        if a.question["ask"] == "marginal"
    ]


def watched_draws(monkeypatch: pytest.MonkeyPatch, journal: Callable[[], Path]) -> list[tuple[int, int]]:
    """For each draw from now on: draws so far, this one included, and charges on disk in a journal."""
    seen: list[tuple[int, int]] = []

    def watched(sound: Any) -> Any:
        def draw(*arguments: Any) -> Any:
            lines = journal().read_text().splitlines()
            seen.append((len(seen) + 1, sum(json.loads(line)["kind"] == "charge" for line in lines)))
            return sound(*arguments)

        return draw

    for name in ("add_gaussian", "add_laplace", "choose_index"):
        monkeypatch.setattr(noise, name, watched(getattr(noise, name)))
    monkeypatch.setattr(selection, "select", watched(selection.select))
    return seen
