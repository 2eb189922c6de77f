"""Coded columns under construction: in memory up to a bound, and beyond it in files without a name.

The coded table is read many times after the source was read once: by adaptive strategies, distances and
the exam. It is one array a column, of the least integer type, whether it lies in memory or in a mapped file;
whoever counts sees no difference.

The files are made in a folder that only their owner may open, and they have no name from the first
moment on (``O_TMPFILE``, or unlinked when they are made). The operating system takes them back when the last
process that holds them ends, however it ends. So nothing is left to be removed: not at the end, not after a
failure, not after a kill.

Invariant: private. The move to files depends on the number of coded bytes alone; no figure depends on it.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import SourceError


def blocks(rows: int, long: int, first: int = 0, every: int = 1) -> Iterator[slice]:
    """Ranges of at most so many rows: one in every few of them, from a first one on."""
    for start in range(first * long, rows, every * long):
        yield slice(start, min(start + long, rows))


Array = NDArray[Any]

Name = TypeVar("Name", bound=Hashable)

IN_MEMORY = 2 << 30
"""Bytes of coded columns that are held in memory, unless the configuration says another number."""

_ROWS_COPIED = 1 << 20

_GROWTH = 1.05


@dataclass(frozen=True)
class Room:
    """Where coded columns may lie.

    Attributes:
        memory: most bytes that they take in memory.
        folder: a private folder for all that is beyond it; None: all lies in memory.
    """

    memory: int = IN_MEMORY
    folder: Path | None = None


ALL_IN_MEMORY = Room()


@dataclass(eq=False, repr=False)
class CodedColumns:
    """Columns that grow batch by batch. Their repr shows nothing.

    Attributes:
        room: where they may lie.
    """

    room: Room
    _arrays: dict[Hashable, Array] = field(default_factory=dict)
    _used: dict[Hashable, int] = field(default_factory=dict)
    _files: dict[Hashable, BinaryIO] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, batch: Mapping[Name, Array]) -> None:
        """More rows of every column; a column keeps the type that it began with.

        Raises:
            SourceError: there is no room left in the folder.
        """
        for name, cells in batch.items():
            self._bytes += cells.nbytes
            beyond = self.room.folder is not None and self._bytes > self.room.memory
            self._append(name, np.ascontiguousarray(cells))
            if beyond or name in self._files:
                self._write(name)

    def _append(self, name: Hashable, cells: Array) -> None:
        held = self._arrays.setdefault(name, np.zeros(0, cells.dtype))
        used = self._used.get(name, 0)
        if used + len(cells) > len(held):
            # The system moves large arrays without a copy.
            held.resize(max(used + len(cells), int(len(held) * _GROWTH)), refcheck=False)
        held[used : used + len(cells)] = cells
        self._used[name] = used + len(cells)

    def _write(self, name: Hashable) -> None:
        folder = self.room.folder
        assert folder is not None
        try:
            if name not in self._files:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._files[name] = _nameless(folder)
            held, used = self._arrays[name], self._used[name]
            self._files[name].write(held[:used].data.cast("B") if used else b"")
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "the disk is full" if full else error.strerror
            raise SourceError(
                f"The coded table is larger than engine.memory and finds no room under {folder}: {why}. Make "
                "room there, give another folder with --out, or raise engine.memory."
            ) from None
        self._arrays[name], self._used[name] = np.zeros(0, held.dtype), 0

    def array(self, name: Hashable) -> Array:
        held, used, file = self._arrays.pop(name), self._used.pop(name), self._files.pop(name, None)
        if file is None:
            held.resize(used, refcheck=False)
            return held
        # The map holds the file; closing its descriptor leaves the map.
        with file:
            file.flush()
            return np.memmap(file, dtype=held.dtype, mode="r") if file.tell() else held


def _nameless(folder: Path) -> BinaryIO:
    return cast(BinaryIO, tempfile.TemporaryFile(dir=folder))


def rows_of(columns: Mapping[Name, Array], kept: NDArray[np.bool_], room: Room) -> dict[Name, Array]:
    """Some rows of columns, one column after another."""
    found = CodedColumns(room)
    for name, cells in columns.items():
        found.add({name: cells[:0]})
        for block in blocks(len(kept), _ROWS_COPIED):
            found.add({name: cells[block][kept[block]]})
    return {name: found.array(name) for name in columns}


def looked_up(table: Array, at: Array, room: Room) -> Array:
    """The entry of a small array for each row."""
    found = CodedColumns(room)
    found.add({"": table[:0]})
    for block in blocks(len(at), _ROWS_COPIED):
        found.add({"": table[at[block]]})
    return found.array("")


Counts = NDArray[np.int64]

Kind = TypeVar("Kind", bound=np.generic)
