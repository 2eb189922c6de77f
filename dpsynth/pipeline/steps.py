"""Guarded steps of a release: no error reveals cells of the table.

Invariant: only an error of our own, with a public message, or an interruption leaves a step.
"""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from collections.abc import Callable
from enum import StrEnum
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dpsynth.errors import DpsynthError, Interrupted, StepFailed
from dpsynth.pipeline.progress import Advance, showing

P = ParamSpec("P")
T = TypeVar("T")

_FULL = {
    errno.ENOSPC: "the disk that bundles are written to (--out) is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would be larger than this process may write",
}
"""Errors of a full disk, which may stop a step that only writes our own files."""


class Step(StrEnum):
    """The steps of a release, in the order in which they run, then those of the local model alone.

    A value is the public name of a step, which progress, Prefect and errors show. Code names a step by its
    member.
    """

    PLAN = "plan"
    PUBLIC_TABLE = "read the public table"
    RESERVE = "reserve budget"
    EARLIER = "read earlier releases"
    OPEN = "open the table"
    BOUND = "bound contributions"
    COUNT_ROWS = "count rows"
    HEED_SIZE = "heed the number of rows"
    FIND_DOMAINS = "find domains"
    MEASURE_SINGLES = "measure single columns"
    HEED_WARNINGS = "heed warnings"
    MEASURE_STATISTICS = "measure statistics"
    MERGE = "merge rare values"
    SELECT = "choose and measure marginals"
    FIT = "fit the model"
    SPREAD = "spread groups over values"
    SAMPLE = "sample rows"
    EXAMINE = "examine the table"
    JUDGE = "judge the table"
    HEED_VERDICT = "heed the verdict"
    COMPOSE = "compose the guarantee"
    TABULATE = "compute statistics"
    WRITE = "write the bundle"
    NEXT_AUDIENCE = "go on to the next audience"
    SETTLE = "settle the ledger"
    PUBLISH = "publish the bundle"
    READ_REPORTS = "read reports"
    HOLD_ANSWERS = "hold answers"
    BEGIN_BUNDLE = "begin the bundle"
    ENTER = "enter the release in the ledger"


class RunStep(Protocol):
    """A function that runs one named step of a release and returns its outcome."""

    def __call__(self, name: str, action: Callable[[], T]) -> T:
        """Run ``action`` under a public name."""
        ...


class Steps:
    """Named steps, each guarded, and run by a given function; a release has those of ``Step``."""

    def __init__(self, run_step: RunStep, ending: str = "") -> None:
        """Steps that are run plainly, or as tasks of an orchestrator.

        Args:
            run_step: runs a step.
            ending: a public text that all names of the steps end with.
        """
        self._run_step, self._ending = run_step, ending

    def of_audience(self, audience: str) -> Steps:
        """These steps, named after an audience; "" leaves the names as they are."""
        return Steps(self._run_step, f" for {audience}" if audience else "")

    def __call__(self, step: str, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The outcome of an action, run as a step under a public name."""
        named = f"{step}{self._ending}"
        return self._run_step(named, lambda: guarded(named, lambda _: action(*args, **kwargs)))

    def counted(
        self, step: str, action: Callable[Concatenate[Advance, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The outcome of an action that reports its progress to its first argument."""
        named = f"{step}{self._ending}"
        return self._run_step(named, lambda: guarded(named, lambda advance: action(advance, *args, **kwargs)))

    def by_rows(
        self, step: str, action: Callable[Concatenate[Advance, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The outcome of an action that reports public numbers of rows to its first argument."""
        named = f"{step}{self._ending}"
        return self._run_step(
            named, lambda: guarded(named, lambda advance: action(advance, *args, **kwargs), "rows")
        )


def guarded(name: str, action: Callable[[Advance], T], unit: str = "") -> T:
    """Run a step; only errors of our own leave it, and none that may quote a cell.

    Details of any other error are written to a file of mode 0600 if DPSYNTH_DEBUG is set.
    """
    try:
        with showing(name, unit) as advance:
            return action(advance)
    except DpsynthError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        failure: BaseException = StepFailed.of(
            name, error, _details() if os.environ.get("DPSYNTH_DEBUG") else None
        )
        if isinstance(error, OSError) and error.errno in _FULL:
            failure = Interrupted(f"Step '{name}' stopped: {_FULL[error.errno]}.")
    except BaseException:
        # A signal, or a panic in a library, whose text may quote a cell too.
        failure = KeyboardInterrupt()
    raise failure


def _details() -> str:
    """Write the traceback under way to a new file that its owner alone can read."""
    descriptor, path = tempfile.mkstemp(prefix="dpsynth-debug-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(traceback.format_exc())
    return path


def plainly(name: str, action: Callable[[], T]) -> T:
    """Run a step as a plain function."""
    del name
    return action()
