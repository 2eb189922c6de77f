"""Progress of a release on a terminal: the step under way, and a bar where it counts.

Invariant: only step names and public counts are shown, on stderr, and only if that is a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


@contextmanager
def showing(step: str) -> Iterator[Advance]:
    """Show a step on the terminal while it runs."""
    if not sys.stderr.isatty():
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
