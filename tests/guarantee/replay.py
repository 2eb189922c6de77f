"""Replay on neighbours: a release on X is recorded, then forced upon a neighbour X'.

On X' every answer comes from the record. If any question, in any order, or anything that
the pipeline is told without paying differs between X and X', then it depends on the table
by another way than through a journalled answer, and `replay` raises or returns a finding.
What the answers themselves would have been shows the true sensitivity of each.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from dpsynth import pipeline
from dpsynth.config import Spec, compiled
from dpsynth.errors import DpsynthError
from dpsynth.lifecycle.beginning import Request
from dpsynth.lifecycle.measuring import open_door
from dpsynth.lifecycle.steps import Step
from tests.guarantee.observed import ObservedCurator, ObservedUnbounded, Transcript

T = TypeVar("T")


class _Measured(DpsynthError):
    """Raised to leave a release once all questions are asked."""


def _until_measured(spec: Spec) -> Callable[..., T]:
    """Runs the steps up to the last one that asks: that of the last audience, if there are some."""
    audience = spec.promises[-1].audience
    last = f"{Step.COMPOSE} for {audience}" if audience else Step.COMPOSE

    def run(name: str, action: Callable[[], T]) -> T:
        if name == last:
            raise _Measured
        return action()

    return run


def observe(spec: Spec, outputs: Path, resume: str | None = None) -> Transcript:
    """Run the asking half of a release in process, observed."""
    transcript = Transcript()
    ObservedCurator.transcript = transcript
    door = partial(open_door, curator=ObservedCurator, unbounded=ObservedUnbounded)
    with suppress(_Measured):
        pipeline.run(spec, Request(outputs, resume), run_step=_until_measured(spec), door=door)
    (found,) = (outputs / spec.release).glob(".*.partial")
    transcript.release_id = found.name.removeprefix(".").removesuffix(".partial")
    return transcript


def replay(spec: Spec, neighbour: Spec, record: Transcript, outputs: Path, folder: Path) -> Transcript:
    """Run the asking half on a neighbour with the recorded answers forced.

    Raises whatever the journal raises when a question differs from the record.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(outputs, folder)
    assert compiled(spec).fingerprint == compiled(neighbour).fingerprint
    return observe(neighbour, folder, resume=record.release_id)
