"""Differentially private synthetic data: one guarded door, a journal, a ledger, a bundle.

A release, from its configuration to its results:

    spec = dpsynth.load("configs/randhie.yaml")
    release = dpsynth.release(spec)
    release.synthetic, release.guarantee, release.statistics
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpsynth.config import Spec
    from dpsynth.lifecycle.result import Release

__version__ = "0.1.0"
__all__ = ["__version__", "load", "release"]


def load(path: str | Path, *, source: str | None = None) -> Spec:
    """Read and check a config.

    Args:
        path: a YAML file.
        source: path of a table that replaces the config's.

    Raises:
        ConfigError: the file can't be read, or a key or value isn't allowed.
    """
    from dpsynth.config import load as read

    return read(path, source=source)


def release(
    spec: Spec,
    *,
    outputs: str | Path = "outputs",
    resume: str | None = None,
    period: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Release:
    """Run a release: the same steps as ``dpsynth run --plain``, without an orchestrator.

    Args:
        spec: a config from ``load``.
        outputs: folder under which the bundle appears as ``<release>/<release id>``.
        resume: id of an interrupted release to finish.
        period: the slice of the table, such as "2026-03", if the config has periods. Left out: the last
            one that has ended.
        tell: takes public sentences: warnings, and news of a release that is resumed or shown again.

    Raises:
        Paused: the noisy single columns say that something was misread; ``resume`` goes on as it is.
        DpsynthError: ConfigError, BudgetRefused, SourceError and StepFailed, as the command
            line reports them.
    """
    from dpsynth.pipeline import run

    return run(spec, outputs=outputs, resume=resume, period=period, tell=tell)
