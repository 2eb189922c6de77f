"""Progress of a release: on a terminal the step under way and a bar where it counts; else a line a step.

Invariant: only step names and public counts are shown, on stderr. Lines, which a log may keep, have no times,
and are printed for the command line only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[str], None]
"""A function that takes a public sentence for the person who runs the release."""


def silently(sentence: str) -> None:
    """Drop the sentence."""
    del sentence


Advance = Callable[[int, int], None]
"""A function that takes the amount of a step that is done, and the whole amount."""


def silent(done: int, total: int) -> None:
    """Show nothing."""
    del done, total


_lines: ContextVar[bool] = ContextVar("lines", default=False)


@contextmanager
def lines_for_steps() -> Iterator[None]:
    """Print a line for each step where there is no terminal: a pipe, a log, cron."""
    token = _lines.set(True)
    try:
        yield
    finally:
        _lines.reset(token)


@contextmanager
def showing(step: str) -> Iterator[Advance]:
    """Show a step while it runs."""
    if not sys.stderr.isatty():
        if _lines.get():
            print(f"Step: {step}", file=sys.stderr, flush=True)
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*parts, console=Console(stderr=True)) as bars:
        task = bars.add_task(step.ljust(32), total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance
        bars.update(task, completed=1, total=1)
