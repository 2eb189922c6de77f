"""Shares of work on private rows, for the terminal of whoever runs it.

Shares of rows that are read or counted, as they come, tell how long a table is: about as much as the time
that the work takes. Whoever sits at the terminal sees that time anyway. So they go to the terminal of this
process and nowhere else: there is one listener, which the display of a step sets while it has a terminal.
Watchers of steps, logs, the journal and Prefect have no way to them.

Invariant: without a listener nothing is told. A listener changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

Listener = Callable[[str, float], None]
"""A function that takes the name of some work, and the share of it that is done, from 0 to 1."""

Tell = Callable[[int], None]
"""A function that takes an amount of work that was done since the last one. Threads may share it."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let a terminal hear of the work that this thread does in the meantime, and of nobody else's."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def telling(work: str, whole: int) -> Tell:
    """A function that tells the share of some work that is done, to a terminal if there is one."""
    listener = _listener.get()
    if listener is None or whole <= 0:
        return lambda amount: None
    listener(work, 0.0)
    done, lock = 0, Lock()

    def tell(amount: int) -> None:
        nonlocal done
        with lock:
            done += amount
            share = min(done / whole, 1.0)
        listener(work, share)

    return tell


@contextmanager
def as_part(begin: float, end: float) -> Iterator[None]:
    """Count the shares told within as those of a part of larger work, from one share of it to another."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    with heard_by(lambda work, share: listener(work, begin + (end - begin) * share)):
        yield
