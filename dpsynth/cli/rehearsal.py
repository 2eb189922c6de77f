"""``dpsynth run --rehearse``: all steps of a release on a made-up table.

Invariant: the words never let a rehearsal pass for a release.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpsynth.errors import ConfigError


def run(config: Path, out: Path, rows: int | None, period: str | None, resume: str | None) -> None:
    """Rehearse a config; the last line printed is the bundle's folder."""
    if resume is not None:
        raise ConfigError("--resume has no use with --rehearse: a rehearsal that was stopped is begun anew.")
    from dpsynth.config import load
    from dpsynth.pipeline import rehearse

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
