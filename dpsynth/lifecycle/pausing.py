"""The look at the noisy single columns, before the rest of the budget is spent: go on, or pause.

A release whose single columns say that something was misread would spend its budget on nothing. So it is
paused there, and its owner decides: to go on with ``--resume`` and its id, or to end it with ``--abandon``.

Invariant: warnings are made of answers that are charged and recorded, so they cost nothing, and a
neighbouring table with the same answers has the same ones. A release that is paused goes on only if it is
asked for by its id after the pause is on record: never by a schedule, nor by a second run of its occasion.
"""

from __future__ import annotations

from dpsynth.diagnostics import DataWarning, warnings_of
from dpsynth.errors import Paused
from dpsynth.lifecycle.answers import Answers
from dpsynth.lifecycle.inputs import Inputs
from dpsynth.lifecycle.measuring import Stage
from dpsynth.lifecycle.progress import Tell
from dpsynth.lifecycle.release_run import ReleaseRun


def heed_warnings(
    inputs: Inputs, stage: Stage, run: ReleaseRun, answers: Answers, tell: Tell
) -> tuple[DataWarning, ...]:
    """The warnings, each told.

    Raises:
        Paused: one of them is serious, and the release's owner has not decided yet. Only the first
            tier pauses.
    """
    part = run.occasion.part
    found = {search.column for search in stage.plan.first.searches}
    warnings = warnings_of(stage.layout.columns, answers.first, found, None if part is None else part.column)
    for warning in warnings:
        tell(warning.paragraph)
    pauses = stage.plan.before is None and any(w.serious for w in warnings)
    if pauses and inputs.spec.privacy.on_empty == "stop" and _undecided(run):
        # Told before it is on record: an owner who resumes has been shown the warnings.
        if not run.journal.paused:
            run.journal.pause()
        raise _paused(run.release_id, warnings)
    return warnings


def _undecided(run: ReleaseRun) -> bool:
    """True if nothing was asked after the single columns, and nobody has decided that it may be."""
    journal = run.journal
    return not journal.sealed and journal.at_end and not (run.by_id and journal.paused)


def _paused(release_id: str, warnings: tuple[DataWarning, ...]) -> Paused:
    grave = dict.fromkeys(
        "the table" if w.column is None else f"column {w.column}" for w in warnings if w.serious
    )
    return Paused(
        release_id,
        [warning.paragraph for warning in warnings],
        ", ".join(grave),
        f"To go on as it is: dpsynth run CONFIG --resume {release_id}. To end it, so that a "
        f"corrected config can be released: dpsynth run CONFIG --abandon {release_id}. It says what the "
        "release is charged.",
    )
