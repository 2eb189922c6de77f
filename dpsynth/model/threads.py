"""Two threads for operations on large arrays.

Array operations release the interpreter's lock, so one worker beside the caller uses a second core. The
result does not depend on the number of cores.

Invariant: every part of the range is processed once, and all parts are done on return.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

_PAYS = 1 << 18
"""Cells from which a second thread saves more than it costs."""
_pool: tuple[int, ThreadPoolExecutor] | None = None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_TWO = _cores() > 1


def _worker() -> ThreadPoolExecutor:
    """The worker of this process; a forked child gets its own."""
    global _pool  # noqa: PLW0603
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(1, "dpsynth-model")
    return _pool[1]


def in_halves(length: int, cells: int, work: Callable[[slice], object]) -> None:
    """Do work on the range 0..length, its upper half in a second thread if there are enough cells.

    The second thread has the caller's context, to which numpy's handling of floating-point errors belongs.

    Args:
        length: length of the range.
        cells: number of cells of the arrays.
        work: called with parts of the range; it must not depend on their order.
    """
    if cells < _PAYS or length < 2 or not _TWO:
        work(slice(0, length))
        return
    middle = length // 2
    other = _worker().submit(copy_context().run, work, slice(middle, length))
    try:
        work(slice(0, middle))
    finally:
        other.result()
