"""Progress of a release: on a terminal the step under way, its bar, rate and time left; else a line a step.

Within a step, the terminal hears of shares of the work on private rows too (``work_shares``), that is, of
reading and counting.

Invariant: only step names, public counts and shares of a step are shown, on stderr; a watcher, such as the
lines of the command line, or an orchestrator, gets step names and public shares alone. Lines, which a log may
keep, have no times.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING

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
    """A line for each step where there is no terminal: a pipe, a log, cron."""

    def begun(self, step: str) -> None:
        if not sys.stderr.isatty():
            print(f"Step: {step}", file=sys.stderr, flush=True)


def lines_for_steps() -> AbstractContextManager[None]:
    """Print a line for each step where there is no terminal."""
    return watched(_Lines())


def _telling(step: str, watchers: tuple[StepWatcher, ...]) -> Advance:
    """An advance that tells watchers, if there are any, every few seconds."""
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
        step: its public name.
        unit: the unit of the public amounts that it will report, such as "rows"; "" if only their share is
            shown.
    """
    watchers = _watchers.get()
    for watcher in watchers:
        watcher.begun(step)
    with _displayed(step, unit, _telling(step, watchers)) as advance:
        yield advance
    for watcher in watchers:
        watcher.ended(step)


@contextmanager
def _displayed(step: str, unit: str, tell: Advance) -> Iterator[Advance]:
    """A step with its bar, where there is a terminal; an advance that moves it, and tells the watchers."""
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
    """The column with the amount done, its rate, and the time left."""
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
        """No work yet."""
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
