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
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.counting import blocks
from dpsynth.errors import SourceError

Array = NDArray[Any]
Name = TypeVar("Name", bound=Hashable)

IN_MEMORY = 2 << 30
"""Bytes of coded columns that are held in memory, unless the configuration says another number."""
_ROWS_COPIED = 1 << 20


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
    _parts: dict[Hashable, list[Array]] = field(default_factory=dict)
    _files: dict[Hashable, BinaryIO] = field(default_factory=dict)
    _types: dict[Hashable, np.dtype[np.generic]] = field(default_factory=dict)
    _bytes: int = 0
    _in_files: bool = False

    def add(self, batch: Mapping[Name, Array]) -> None:
        """More rows of every column; a column keeps the type that it began with.

        Raises:
            SourceError: there is no room left in the folder.
        """
        for name, cells in batch.items():
            kind = self._types.setdefault(name, cells.dtype)
            self._parts.setdefault(name, []).append(cells.astype(kind, copy=False))
            self._bytes += cells.nbytes
        if self.room.folder is not None and (self._in_files or self._bytes > self.room.memory):
            self._write(self.room.folder)

    def _write(self, folder: Path) -> None:
        self._in_files = True
        try:
            for name, parts in self._parts.items():
                if name not in self._files:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._files[name] = _nameless(folder)
                for part in parts:
                    self._files[name].write(np.ascontiguousarray(part).data.cast("B"))
                parts.clear()
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "the disk is full" if full else error.strerror
            raise SourceError(
                f"The coded table is larger than engine.memory and finds no room under {folder}: {why}. Make "
                "room there, give another folder with --out, or raise engine.memory."
            ) from None

    def array(self, name: Hashable) -> Array:
        """A whole column; its parts are given up."""
        parts, file = self._parts.pop(name), self._files.pop(name, None)
        if file is None:
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        kind = self._types[name]
        # The map holds the file; closing its descriptor leaves the map.
        with file:
            file.flush()
            return np.memmap(file, dtype=kind, mode="r") if file.tell() else np.zeros(0, kind)


def _nameless(folder: Path) -> BinaryIO:
    return cast(BinaryIO, tempfile.TemporaryFile(dir=folder))


def rows_of(columns: Mapping[Name, Array], kept: NDArray[np.bool_], room: Room) -> dict[Name, Array]:
    """Some rows of columns, one column after another.

    Args:
        columns: arrays of one length.
        kept: bool[rows].
        room: where the new columns may lie, all together.
    """
    found = CodedColumns(room)
    for name, cells in columns.items():
        found.add({name: cells[:0]})
        for block in blocks(len(kept), _ROWS_COPIED):
            found.add({name: cells[block][kept[block]]})
    return {name: found.array(name) for name in columns}


def looked_up(table: Array, at: Array, room: Room) -> Array:
    """The entry of a small array for each row.

    Args:
        table: the entries.
        at: integers[rows], the entry of each row.
        room: where the new column may lie.
    """
    found = CodedColumns(room)
    found.add({"": table[:0]})
    for block in blocks(len(at), _ROWS_COPIED):
        found.add({"": table[at[block]]})
    return found.array("")
