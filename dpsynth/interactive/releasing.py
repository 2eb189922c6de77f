"""A release called in Python: of a table in memory, of a file, or by a checked spec.

Invariant: a table in memory is closed in its ``MemoryTable`` at once. The ledger is never left out: without
one that is named, the usual file in the working folder is used, and the caller is told.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from dpsynth.config import Spec
from dpsynth.config.privacy import Ledger
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.interactive.keys import spec_of
from dpsynth.lifecycle.beginning import Request
from dpsynth.lifecycle.inputs import MemoryTable
from dpsynth.lifecycle.result import Release
from dpsynth.pipeline import run

_RESUME = re.compile(r"--resume ([0-9A-Za-z-]+)")
"""The advice of the command line, which has another spelling in Python."""

_told: set[Path] = set()
"""Ledger files that the caller was told about in this process."""


def note(sentence: str) -> None:
    """Write a public note to the standard error stream."""
    print(f"Note: {sentence}", file=sys.stderr)


def held(source: object) -> Spec | MemoryTable | Path:
    """A spec, the path of a table, or a closed table in memory.

    Raises:
        SourceError: it is none of these.
    """
    if isinstance(source, Spec | MemoryTable):
        return source
    return Path(source) if isinstance(source, str | Path) else MemoryTable(source)


def released(
    source: Spec | MemoryTable | Path,
    spec: Spec | None,
    request: Request,
    tell: Callable[[str], None],
    keys: Mapping[str, object],
) -> Release:
    """Run a release; see ``dpsynth.release``."""
    if isinstance(request.period, Mapping):
        raise ConfigError(
            "period must be the label of a slice, such as '2026-03'. A table with periods is described by a "
            "spec: dpsynth.Spec.from_dict({..., 'period': {...}})."
        )
    if isinstance(source, Spec):
        if spec is not None or keys:
            more = "another spec" if spec is not None else f"the key {next(iter(keys))}"
            raise ConfigError(f"A spec says all of a release by itself: remove {more}, or change the spec.")
        return _run(source, None, request, tell)
    if spec is not None and keys:
        raise ConfigError(
            f"The key {next(iter(keys))} is given beside a spec: put it into the spec, or leave out the spec."
        )
    if isinstance(source, Path):
        if spec is not None:
            raise ConfigError(
                "A file goes into the spec: dpsynth.load(config, source=path), or the key source of "
                "Spec.from_dict. Beside a spec goes a table in memory."
            )
        return _run(spec_of(keys, source), None, request, tell)
    return _run(spec_of(keys) if spec is None else spec.in_memory(), source, request, tell)


def _run(spec: Spec, table: MemoryTable | None, request: Request, tell: Callable[[str], None]) -> Release:
    for warning in spec.warnings():
        tell(warning)
    if table is not None:
        _tell_of_the_ledger(spec.ledger, tell)
    try:
        return run(spec, request, table=table, tell=tell)
    except DpsynthError as error:
        error.args = (_RESUME.sub(r"resume='\1'", str(error)),)
        raise


def _tell_of_the_ledger(ledger: Ledger, tell: Callable[[str], None]) -> None:
    """Say once where spending is recorded, if nobody has said where."""
    if "url" in ledger.model_fields_set:
        return
    file = Path.cwd() / ledger.url.removeprefix("sqlite:///")
    if file in _told:
        return
    _told.add(file)
    table = f"'{ledger.dataset}'" if ledger.dataset else "the table"
    tell(
        f"The ledger is {file}. It adds up what all releases of {table} cost, and refuses more "
        f"than epsilon {ledger.cap.epsilon}: keep it. ledger='...' names another file."
    )
