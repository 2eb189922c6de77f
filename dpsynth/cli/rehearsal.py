"""``dpsynth run --rehearse``: all steps of a release on a made-up table.

Invariant: the words never let a rehearsal pass for a release.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpsynth.config import Spec, load
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.rehearsal import rehearsal_of
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.spine import run as run_release
from dpsynth.pipeline.steps import Tell, silently


def run(config: Path, out: Path, rows: int | None, period: str | None, resume: str | None) -> None:
    """Rehearse a config; the last line printed is the bundle's folder."""
    if resume is not None:
        raise ConfigError("--resume has no use with --rehearse: a rehearsal that was stopped is begun anew.")
    spec = load(config)

    def tell(sentence: str) -> None:
        print(f"Note: {sentence}", file=sys.stderr)

    for warning in spec.warnings():
        tell(warning)
    done = rehearse(spec, rows=rows, outputs=out, period=period, tell=tell)
    print(
        "Rehearsed on a made-up table, without Prefect: no source was opened, and no ledger. "
        f"{done.drawn.rows:,} synthetic rows of {done.drawn.columns} columns and "
        f"{len(done.statistics)} tables."
    )
    print(f"Begin with {done.handed_over / 'report.html'}; it says nothing about the private table.")
    print(done.folder)


def rehearse(
    spec: Spec,
    *,
    rows: int | None = None,
    outputs: str | Path = "outputs",
    period: str | None = None,
    tell: Tell = silently,
) -> Release:
    """Run all steps of a release on a made-up table: nothing private is read, and nothing charged.

    Args:
        spec: the checked config; neither its source nor its ledger is opened.
        rows: number of made-up rows; left out: the public number of rows, or 10 000.
        outputs: folder under which ``rehearsals/<release>/<rehearsal id>`` appears.
        period: label of the slice to make up, if the config has periods.
        tell: takes public sentences.

    Raises:
        ConfigError, BudgetRefused: a release of the config would not begin either.
        DpsynthError: the rehearsal was stopped; nothing of it is left.
        StepFailed: an unforeseen error, its details withheld.
    """
    with rehearsal_of(spec, Path(outputs), rows, period) as rehearsal:
        try:
            return rehearsal.kept(run_release(rehearsal.spec, rehearsal.request, tell=tell))
        except KeyboardInterrupt:
            raise DpsynthError(
                "The rehearsal was stopped. Nothing was charged, and nothing of it is left."
            ) from None
