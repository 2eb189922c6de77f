"""Pieces of work done by threads, and taken in their order.

Invariant: results come in the order of the tasks, whatever thread is first; no more tasks are under way than
there are threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_order(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """The results of tasks, in the order of the tasks.

    A task is taken from ``tasks`` when a thread is free for it. The first error of a task is raised in its
    turn, and no further task begins. One thread is the caller's own.
    """
    if threads <= 1:
        yield from (task() for task in tasks)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(task))
                if len(waiting) == threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
