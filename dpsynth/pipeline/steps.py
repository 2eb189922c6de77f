"""Guarded steps of a release, and their progress: no error reveals cells of the table.

On a terminal the step under way is shown, with its bar, rate and time left; elsewhere a line a step. The
terminal hears of shares of the work on private rows too (``work_shares``), that is, of reading and counting.

Invariant: only an error of our own, with a public message, or an interruption leaves a step. Only step names,
public counts and shares of a step are shown, on stderr; a watcher, such as the lines of the command line, or
an orchestrator, gets step names and public shares alone. Lines, which a log may keep, have no times.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from dpsynth.errors import DpsynthError, Interrupted, StepFailed
from dpsynth.work_shares import heard_by

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


Tell = Callable[[str], None]
"""A function that takes a public sentence for the person who runs the release."""


def silently(sentence: str) -> None:
    """Drop the sentence."""
    del sentence


Advance = Callable[[int, int], None]
"""A function that takes the amount of a step that is done, and the whole amount."""


class StepWatcher:
    """A watcher of steps; a subclass says what it does. What it raises counts as an error of the step."""

    def begun(self, step: str) -> None:
        """A step begins."""

    def advanced(self, step: str, share: float) -> None:
        """A share of a long step is done, above 0 and at most 1."""

    def ended(self, step: str) -> None:
        """A step has ended without an error."""


EVERY = 2.0
"""Seconds between two shares that a watcher gets of a step, at least; a shorter step gives none."""


def silent(done: int, total: int) -> None:
    """Show nothing."""
    del done, total


_under_way: ContextVar[Advance] = ContextVar("under way", default=silent)


def advanced(done: int, total: int) -> None:
    """Say how much of the step under way is done: amounts that are public."""
    _under_way.get()(done, total)


_watchers: ContextVar[tuple[StepWatcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watched(watcher: StepWatcher) -> Iterator[None]:
    """Tell a watcher of all steps that run in the meantime, after those who watch already."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


_shown: ContextVar[bool] = ContextVar("shown", default=True)


@contextmanager
def unshown() -> Iterator[None]:
    """Show and tell nothing of the steps that run in the meantime: they are parts of a step that is shown."""
    watching, showing = _watchers.set(()), _shown.set(False)
    try:
        yield
    finally:
        _watchers.reset(watching)
        _shown.reset(showing)


class _Lines(StepWatcher):
    def begun(self, step: str) -> None:
        if not sys.stderr.isatty():
            print(f"Step: {step}", file=sys.stderr, flush=True)


def lines_for_steps() -> AbstractContextManager[None]:
    """Print a line for each step where there is no terminal."""
    return watched(_Lines())


def _telling(step: str, watchers: tuple[StepWatcher, ...]) -> Advance:
    if not watchers:
        return silent
    last = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY and total:
            last = now
            for watcher in watchers:
                watcher.advanced(step, min(done / total, 1.0))

    return advance


@contextmanager
def showing(step: str, unit: str = "") -> Iterator[Advance]:
    """Show a step while it runs, to those who watch too.

    Args:
        unit: the unit of the public amounts that it will report, such as "rows"; "" if only their share is
            shown.
    """
    watchers = _watchers.get()
    for watcher in watchers:
        watcher.begun(step)
    with _displayed(step, unit, _telling(step, watchers)) as advance:
        before = _under_way.set(advance)
        try:
            yield advance
        finally:
            _under_way.reset(before)
    for watcher in watchers:
        watcher.ended(step)


@contextmanager
def _displayed(step: str, unit: str, tell: Advance) -> Iterator[Advance]:
    if not (_shown.get() and sys.stderr.isatty()):
        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        _amounts(),
    )
    with Progress(*parts, console=Console(stderr=True)) as bars:
        task = bars.add_task(step.ljust(32), total=None, unit=unit, within=None)
        within = Within()

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)
            tell(done, total)

        def hear(work: str, share: float) -> None:
            within.hear(work, share, time.monotonic())
            bars.update(task, within=within)

        with heard_by(hear):
            yield advance
        whole = bars.tasks[0].total or 1
        bars.update(task, completed=whole, total=whole, within=None)


def _amounts() -> ProgressColumn:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Amounts(ProgressColumn):
        def render(self, task: Task) -> Text:
            seconds, within = task.elapsed or 0.0, task.fields["within"]
            words = in_words(task.completed, task.total, seconds, str(task.fields["unit"]))
            return Text(words or ("" if within is None else within.in_words(time.monotonic())))

    return Amounts()


class Within:
    """Work within a step: its name, the share of it that is done, and the time that it has left."""

    def __init__(self) -> None:
        self._work, self._share, self._begun = "", 1.0, 0.0

    def hear(self, work: str, share: float, now: float) -> None:
        """Take the share of some work; work that starts again, or of another name, is new."""
        if work != self._work or share < self._share:
            self._begun = now
        self._work, self._share = work, share

    def in_words(self, now: float) -> str:
        """The share that is done and the time left, by a clock that tells seconds.

        >>> within = Within()
        >>> within.hear("reading", 0.0, 10.0)
        >>> within.hear("reading", 0.25, 40.0)
        >>> within.in_words(40.0)
        'reading 25 %, 0:01:30 left'
        """
        done = f"{self._work} {100 * self._share:.0f} %"
        if not 0 < self._share < 1:
            return done
        left = round((now - self._begun) * (1 - self._share) / self._share)
        return f"{done}, {timedelta(seconds=left)} left"


def in_words(done: float, total: float | None, seconds: float, unit: str) -> str:
    """The state of a step: the amount done, its rate and the time left; the share alone without a unit.

    >>> in_words(3_000_000, 10_000_000, 6.0, "rows")
    '3,000,000 of 10,000,000 rows, 500,000 rows/s, 0:00:14 left'
    >>> in_words(250, 1000, 6.0, "")
    '25 %'
    """
    if total is None or not done:
        return ""
    if not unit:
        return f"{done / total:.0%}".replace("%", " %")
    rate = done / seconds if seconds else 0.0
    amount = f"{total:,.0f} {unit}" if done >= total else f"{done:,.0f} of {total:,.0f} {unit}"
    speed = f", {rate:,.0f} {unit}/s" if rate else ""
    left = f", {timedelta(seconds=round((total - done) / rate))} left" if rate and done < total else ""
    return f"{amount}{speed}{left}"


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
    TABULATE = "compute statistics"
    JUDGE = "judge the table"
    HEED_VERDICT = "heed the verdict"
    COMPOSE = "compose the guarantee"
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


class Steps:
    """Named steps, each guarded, and run by a given function; a release has those of ``Step``."""

    def __init__(self, run_step: RunStep, ending: str = "") -> None:
        self._run_step, self._ending = run_step, ending

    def of_audience(self, audience: str) -> Steps:
        """These steps, named after an audience; "" leaves the names as they are."""
        return Steps(self._run_step, f" for {audience}" if audience else "")

    def __call__(self, step: str, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The outcome of an action, run as a step under a public name."""
        named = f"{step}{self._ending}"
        return self._run_step(
            named, lambda: guarded(named, lambda: action(*args, **kwargs), _UNITS.get(step, ""))
        )


_UNITS: Mapping[str, str] = {Step.SAMPLE: "rows"}
"""The units of the amounts that a step says are done; of others their share is shown."""


def guarded(name: str, action: Callable[[], T], unit: str = "") -> T:
    """Run a step; only errors of our own leave it, and none that may quote a cell.

    Details of any other error are written to a file of mode 0600 if DPSYNTH_DEBUG is set.
    """
    try:
        with showing(name, unit):
            return action()
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
