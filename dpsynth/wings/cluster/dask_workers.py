"""Dask's processes as ``partitioned.Workers``: values lie with them as futures, and never come here.

Dask remembers how each value is made, so it makes those of a worker that died again, with another one. A sum
has one term for each partition by its name, so each is counted once, however often it was made.

Invariant: names of tasks are random. Whatever a function raises stays with the worker: the type of a foreign
error comes back, never its words, which may quote cells. A worker that may write what it holds to a disk
runs nothing. Processes of other machines are spoken to by TLS alone, and so are those started here.

Prefect's runner for Dask isn't used: it would run the steps of a release on workers, where a step that is
tried again is a second draw, and keep a record of each task in its database. One process charges, draws and
records, in a flow or without one; it is a client of Dask in either.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from dpsynth.config.files.opening import unheard
from dpsynth.curator.rows.coded_columns import Room
from dpsynth.curator.table import at_most
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, SourceError, StepFailed
from dpsynth.wings.cluster.partitioned import Parts

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

T = TypeVar("T")

PIECES_A_THREAD = 2
"""Pieces for each thread of the workers: a worker that is faster gets more, one that dies loses less."""
_AT_ONCE = 8
"""Number of figures that are added up by one worker at a time."""
_LOOK, _PATIENCE = 2.0, 120.0
"""Seconds between two looks at the scheduler, and those for which it may have no worker."""

Versions = Mapping[str, str]


class DaskWorkers:
    """The workers of a Dask cluster. It is closed when nothing more is asked."""

    def __init__(self, client: Client, gone: Callable[[], bool] = lambda: False) -> None:
        """Workers by their client.

        Args:
            client: the client of a scheduler, which is closed with this.
            gone: returns True if the scheduler is known to have ended.
        """
        self._client, self._gone = client, gone
        self.threads, self.processes = size_of(client)

    @property
    def pieces(self) -> int:
        return PIECES_A_THREAD * self.threads

    def room(self, memory: int) -> Callable[[], Room]:
        """A function that tells a worker where the coded rows of a piece may lie.

        Args:
            memory: most bytes of coded rows that a worker holds in memory.
        """
        return partial(_room, memory * self.processes // self.pieces)

    def each(self, make: Callable[[Any], object], parts: Parts) -> Parts:
        return self._mapped(self._task(make, len(parts)), parts)

    def regrouped(
        self,
        split: Callable[[Any, int], Sequence[object]],
        join: Callable[[Sequence[Any]], object],
        parts: Parts,
    ) -> Parts:
        number = self.pieces
        shares = self._mapped(self._task(partial(_split, split, number), len(parts)), parts)
        some = [self._mapped(partial(_one_of, place=place), shares) for place in range(number)]
        return self._mapped(self._task(join, number), some)

    def combined(self, figure: Callable[[Any], T], add: Callable[[Sequence[T]], T], parts: Parts) -> T:
        """The figures of all parts, added up by the workers some at a time; see ``Workers``.

        Raises:
            SourceError: a worker can't read its piece.
            StepFailed: a worker failed for a reason that may quote private data.
            Interrupted: the scheduler has ended, or there are no workers.
        """
        left = list(self._mapped(self._task(figure, len(parts)), parts))
        adding = self._task(add, len(parts))
        while len(left) > 1:
            left = list(self._mapped(adding, [left[i : i + _AT_ONCE] for i in range(0, len(left), _AT_ONCE)]))
        outcome = self._outcome(left[0])
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.value)

    def close(self) -> None:
        try:
            self._client.close(timeout=_LOOK)
        except Exception as error:
            # The scheduler may have ended, and what the workers held with it.
            del error

    def _task(self, action: Callable[..., object], parts: int) -> Callable[..., _Outcome]:
        return partial(_done, action, versions(), max(1, self.threads // parts))

    def _mapped(self, task: Callable[..., _Outcome], parts: Parts) -> Parts:
        with _no_words_of_dask():
            found: Parts = self._client.map(task, parts, key=f"part-{uuid4().hex}", pure=False)
            return found

    def _outcome(self, future: Future) -> _Outcome:
        there, alone_since = Event(), monotonic()
        with _no_words_of_dask():
            future.add_done_callback(lambda _: there.set())
            while not there.wait(_LOOK):
                if self._gone():
                    raise Interrupted(_LOST)
                if self._client.nthreads():
                    alone_since = monotonic()
                elif monotonic() - alone_since > _PATIENCE:
                    raise Interrupted(f"The Dask scheduler has had no worker for {_PATIENCE:.0f} seconds.")
            found: _Outcome = future.result(timeout=_PATIENCE)
            return found


_LOST = "The Dask scheduler has ended, or can't be reached any more."


@contextmanager
def _no_words_of_dask() -> Iterator[None]:
    """A context whose errors of Dask become errors of ours, without their words."""
    from asyncio import CancelledError as LoopCancelled
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        yield
    except DpsynthError:
        raise
    except KilledWorker:
        raise Interrupted(
            "Dask workers died again and again at one piece of the table. Give them more memory."
        ) from None
    except (LoopCancelled, CancelledError, FutureCancelledError, OSError):
        raise Interrupted(_LOST) from None
    except Exception as error:
        raise StepFailed(
            f"A task that was given to Dask failed: {type(error).__name__}; details are withheld, as they "
            "may quote cells. See that the scheduler and the workers have the versions of this process."
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class _Outcome:
    """What a worker made, or why it could not. Its repr shows nothing.

    Attributes:
        value: what was made.
        error: an error of ours, with public words; None if there was none.
    """

    value: object = None
    error: DpsynthError | None = None

    def __sizeof__(self) -> int:
        held = self.value if isinstance(self.value, list) else [self.value]
        return sum(int(getattr(one, "nbytes", 64)) for one in held)


@unheard()
def _done(action: Callable[..., object], wanted: Versions, threads: int, given: Any) -> _Outcome:
    """Apply a function to what an outcome holds, or several; run by a worker, which raises nothing."""
    why = unfit(wanted)
    if why:
        return _Outcome(error=SourceError(why))
    some = given if isinstance(given, list) else [given]
    for one in some:
        if isinstance(one, _Outcome) and one.error is not None:
            return _Outcome(error=one.error)
    values = [one.value if isinstance(one, _Outcome) else one for one in some]
    try:
        with at_most(threads):
            return _Outcome(action(values if isinstance(given, list) else values[0]))
    except SourceError as error:
        return _Outcome(error=SourceError(f"A Dask worker says: {error}"))
    except DpsynthError as error:
        return _Outcome(error=DpsynthError(str(error)))
    except Exception as error:
        return _Outcome(
            error=StepFailed(
                f"A Dask worker failed: {type(error).__name__}; details are withheld, as they may quote "
                "cells."
            )
        )


def _one_of(shares: _Outcome, place: int) -> _Outcome:
    return shares if shares.error is not None else _Outcome(shares.value[place])  # type: ignore[index]


def _split(split: Callable[[Any, int], Sequence[object]], number: int, part: Any) -> list[object]:
    return list(split(part, number))


def _room(memory: int) -> Room:
    from distributed import get_worker

    return Room(memory, Path(get_worker().local_directory) / "dpsynth")


def versions() -> Versions:
    """The versions on which codes and counts depend."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in ("dpsynth", "numpy", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def unfit(wanted: Versions, dask_worker: Worker | None = None) -> str:
    """The reason why the worker that runs this may hold no rows; "" if it may.

    Args:
        wanted: the versions of the process that asks.
        dask_worker: the worker, where Dask says it; left out: that of the task which calls.
    """
    from distributed import get_worker
    from distributed.spill import SpillBuffer

    own = versions()
    for name, number in wanted.items():
        if own.get(name) != number:
            return (
                f"A Dask worker has {name} {own.get(name)}, and this process has {number}: cells might be "
                "coded in another way. Install the same versions for the scheduler and all workers."
            )
    if isinstance((dask_worker or get_worker()).data, SpillBuffer):
        return (
            "A Dask worker may write what it holds to its disk, where rows of the private table must not "
            "be. Start scheduler and workers with DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False and "
            "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False."
        )
    return ""


def size_of(client: Client) -> tuple[int, int]:
    """Number of threads and of processes of a cluster.

    Raises:
        SourceError: it has no worker.
    """
    with _no_words_of_dask():
        each = client.nthreads()
    if not each:
        raise SourceError("The Dask scheduler has no workers. Start some: dask worker ADDRESS.")
    return sum(each.values()), len(each)


def quiet() -> None:
    """Let Dask log nothing in this process: its words name addresses, and repeat what errors here say."""
    import distributed  # noqa: F401

    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def missing_extra() -> ConfigError | None:
    """The error of an installation without Dask; None if it is there."""
    from importlib.util import find_spec

    if find_spec("distributed") is not None:
        return None
    return ConfigError(
        "engine.dask needs Dask, which isn't installed: pip install 'dpsynth[dask]'. Left out, this process "
        "counts by itself."
    )
