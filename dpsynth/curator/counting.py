"""One pass over coded rows: figures of blocks of rows, added up over blocks and threads.

Whoever holds coded rows, in memory or in mapped files, has them counted here. A pass goes through the rows
once, block by block, and makes all that is asked for of each block while its codes are in the processor's
cache. Arrays' operations, ``bincount`` among them, release the interpreter's lock, so threads share the rows.

Invariant: figures are exact integers, and don't depend on the size of blocks or on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain, cells_of
from dpsynth.curator.rows.coded_columns import blocks
from dpsynth.work_shares import telling

Counts = NDArray[np.int64]
Block = Callable[[slice], Sequence[Counts]]
"""The figures of a block of rows."""

LEAST_BLOCK, MOST_BLOCK = 1 << 16, 1 << 21
"""Rows of a block: few enough for a processor's cache, unless there are more cells than rows."""
CELLS_A_PASS = 1 << 22
"""Largest number of cells that a thread adds up at once."""
_PAYS = 1 << 19
"""Rows times cliques from which more threads save more than they cost."""


_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


def cores() -> int:
    """Number of processors that the caller may use."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _allowed.get() or found)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Let whatever is counted within, by this thread, take so many processors at most."""
    token = _allowed.set(threads)
    try:
        yield
    finally:
        _allowed.reset(token)


def counted(
    codes: Callable[[str, slice], NDArray[np.unsignedinteger]],
    domain: Domain,
    rows: int,
    cliques: Sequence[Clique],
) -> list[Counts]:
    """Exact marginals of cliques, int64 of shape ``domain.shape(clique)``, in their order. Private.

    Args:
        codes: from a column and a range of rows to their codes.
        domain: the domain of the columns.
        rows: number of rows.
        cliques: any cliques; each costs its own part of a pass.
    """
    found: dict[Clique, Counts] = {}
    tell = telling("counting", rows * len(set(cliques)))
    # Alike in size: a clique of many cells wants large blocks, all others small ones.
    for together in domain.batches(sorted(dict.fromkeys(cliques), key=domain.cells), CELLS_A_PASS):
        sizes = [domain.cells(clique) for clique in together]

        def figures(
            block: slice, together: list[Clique] = together, sizes: list[int] = sizes
        ) -> list[Counts]:
            columns = {c: codes(c, block) for c in {c for clique in together for c in clique}}
            long = block.stop - block.start
            counts = [
                np.bincount(cells_of(columns, domain, clique, long), minlength=size)
                for clique, size in zip(together, sizes, strict=True)
            ]
            tell(long * len(together))
            return counts

        sums = added_up(figures, rows, sizes)
        found |= {c: s.reshape(domain.shape(c)) for c, s in zip(together, sums, strict=True)}
    return [found[clique] for clique in cliques]


def added_up(figures: Block, rows: int, sizes: Sequence[int]) -> list[Counts]:
    """Sums of the figures of all blocks of rows.

    Args:
        figures: from a range of rows to as many arrays int64[cells] as there are sizes.
        rows: number of rows.
        sizes: number of cells of each array.
    """
    long = min(max(LEAST_BLOCK, 2 * max(sizes, default=0)), MOST_BLOCK)
    threads = min(cores(), -(-rows // long)) if rows * len(sizes) >= _PAYS else 1

    def share(thread: int) -> list[Counts]:
        sums = [np.zeros(size, dtype=np.int64) for size in sizes]
        for block in blocks(rows, long, thread, threads):
            for total, part in zip(sums, figures(block), strict=True):
                np.add(total, part, out=total)
        return sums

    if threads <= 1:
        return share(0)
    with ThreadPoolExecutor(threads, "dpsynth-count") as pool:
        shares = list(pool.map(share, range(threads)))
    return [np.sum(parts, axis=0) for parts in zip(*shares, strict=True)]
