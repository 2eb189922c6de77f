"""Differentially private synthetic data: one guarded door, a journal, a ledger, a bundle.

A release, from its configuration to its results:

    spec = dpsynth.load("configs/randhie.yaml")
    release = dpsynth.release(spec)
    release.synthetic, release.guarantee, release.statistics

A release of a data frame:

    guess = dpsynth.describe(frame)
    release = dpsynth.release(frame, epsilon=1, delta=1e-9, dataset="visits", columns=guess.reviewed({...}))

A collection without a curator, where each respondent randomises her own record:

    dpsynth.collect(spec, {"cheated": "yes"})     # at her side
    release = dpsynth.aggregate(spec, "reports")  # at the publisher's
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Unpack

    from dpsynth.api.releasing import Keys, Table
    from dpsynth.bundle.recipient import Bundle
    from dpsynth.config import Spec
    from dpsynth.pipeline.result import Release
    from dpsynth.wings.governance.in_python import request
    from dpsynth.wings.local.in_python import aggregate, collect
    from dpsynth.wings.notebooks.in_python import Synthesizer
    from dpsynth.wings.owner.in_python import check, describe, evaluate

__version__ = "0.1.0"
__all__ = [
    "Spec",
    "Synthesizer",
    "__version__",
    "abandon",
    "aggregate",
    "check",
    "collect",
    "describe",
    "evaluate",
    "load",
    "open_bundle",
    "release",
    "request",
]


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
    source: Spec | Table | str | Path,
    spec: Spec | None = None,
    /,
    *,
    outputs: str | Path = "outputs",
    resume: str | None = None,
    period: str | None = None,
    tell: Callable[[str], None] | None = None,
    **keys: Unpack[Keys],
) -> Release:
    """Run a release: the same steps as ``dpsynth run --plain``, without an orchestrator.

    A table is released as a spec says, or as keyword arguments say, which are the keys of the YAML:

        dpsynth.release(spec)                # the spec names the file of the table
        dpsynth.release(frame, spec)
        dpsynth.release(frame, epsilon=1, delta=1e-9, dataset="visits", columns={...})

    Each call is a release of its own, and is charged to the ledger: the file ledger.db in the working folder,
    unless the key ledger names another.

    Args:
        source: a spec that names a file; or the table: a pandas DataFrame, a pyarrow Table, any table with
            ``__arrow_c_stream__`` such as one of Polars, or the path of a file.
        spec: with a table, all that is to be known of its release, in place of keyword arguments.
        outputs: folder under which the bundle appears as ``<release>/<release id>``.
        resume: id of an interrupted release to finish, with the same table.
        period: the slice of the table, such as "2026-03", if the spec has periods. Left out: the last
            one that has ended.
        tell: takes public sentences: warnings, and news of a release that is resumed or shown again. Left
            out: they are printed to the standard error stream.
        keys: see ``dpsynth.api.releasing.Keys``. A table in memory needs ``dataset``, the name under
            which the ledger adds up its releases.

    Raises:
        Paused: the table seems to be empty, or its noisy single columns say that something was misread;
            ``resume`` goes on as it is.
        DpsynthError: ConfigError, BudgetRefused, SourceError and StepFailed, as the command
            line reports them.
    """
    from dpsynth.api.releasing import held, note, released
    from dpsynth.pipeline.beginning import Request

    closed = held(source)
    # A traceback that shows local names has no row of it.
    del source
    request = Request(Path(outputs), resume, period)
    return released(closed, spec, request, note if tell is None else tell, keys)


def abandon(
    release_id: str, *, ledger: str | Path | Mapping[str, str] = "ledger.db", outputs: str | Path = "outputs"
) -> str:
    """End a release that will not be finished, charged with its journal, or in full where that is no bound.

    Args:
        release_id: an interrupted release, or one that was paused for its owner's decision.
        ledger: the ledger's file, the address of its database, or a mapping of ``url`` and ``head``.
        outputs: folder of bundles in which it ran.

    Returns:
        A sentence that says what the release counts for.

    Raises:
        ConfigError: the ledger has no such release, it has ended, or its journal is not there.
    """
    from dpsynth.api.releasing import abandoned

    return abandoned(release_id, ledger, Path(outputs))


def open_bundle(path: str | Path) -> Bundle:
    """A published bundle, for whoever holds its public folder: to read, query, sample and verify.

    Args:
        path: the folder of a release, or its ``public`` folder.

    Raises:
        DpsynthError: there is no bundle, or it is of another version.
    """
    from dpsynth.bundle.recipient import open_bundle as opened

    return opened(path)


def __getattr__(name: str) -> object:
    # These take a tenth of a second and more to import.
    if name == "Spec":
        from dpsynth.config import Spec

        return Spec
    from dpsynth.wing import added

    if name in __all__ and (found := added("functions", name)) is not None:
        return found[0]
    raise AttributeError(f"module 'dpsynth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
