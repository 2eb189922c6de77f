"""Coded columns under construction: in memory up to a bound, and beyond it in files without a name.

The coded table is read many times after the source was read once: by adaptive strategies, distances and
the exam. It is one array a column, of the least integer type, whether it lies in memory or in a mapped file;
whoever counts sees no difference.

The files are made in a folder that only their owner may open, and they have no name from the first
moment on (``O_TMPFILE``, or unlinked when they are made). The operating system takes them back when the last
process that holds them ends, however it ends. So nothing is left to be removed: not at the end, not after a
failure, not after a kill.

Invariant: private. The move to files depends on the number of coded bytes alone; no figure depends on it.

The texts of a column whose domain is to be found, and their exact counts.

Invariant: private. Texts are kept whole, so coding them later gives the same codes as coding on loading.
Counts of texts add up over parts of the rows, as long as all rows of a unit are in one part.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.curator.counting import blocks
from dpsynth.errors import SourceError

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
        """Move what is held of a column to its file."""
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
        """A whole column, which is given up."""
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


_BLOCK = 1 << 12
"""Number of texts that are read at once: together they stay far below Arrow's limit."""

Counts = NDArray[np.int64]

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """The cells of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], without blanks around them, each once; a missing cell is empty.
        index: int32[rows], the text of each row.
    """

    distinct: pa.LargeStringArray
    index: NDArray[np.int32]

    def of_rows(self, kept: NDArray[np.bool_], room: Room) -> Texts:
        """The texts of some rows; texts without any row left stay among the distinct ones."""
        return Texts(self.distinct, rows_of({"": self.index}, kept, room)[""])

    @property
    def trimmed(self) -> Texts:
        """The same rows, without texts that none of them has."""
        used, index = np.unique(self.index, return_inverse=True)
        return Texts(self.distinct.take(pa.array(used, pa.int32())), index.astype(np.int32, copy=False))

    def counts(self, unit: NDArray[np.int32] | None) -> TextCounts:
        """Number of rows and of units of each distinct text. Private.

        Args:
            unit: int32[rows], the unit of each row, numbered from 0; None where each row is one.
        """
        texts = len(self.distinct)
        rows = np.bincount(self.index, minlength=texts).astype(np.int64, copy=False)
        if unit is None:
            return TextCounts(self.distinct, rows, rows)
        units = int(unit.max(initial=0)) + 1
        pairs = np.unique(self.index.astype(np.int64) * units + unit)
        each = np.bincount(pairs // units, minlength=texts).astype(np.int64, copy=False)
        return TextCounts(self.distinct, rows, each)

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function for each distinct text; see ``TextCounts.each``."""
        return _each(self.distinct, read)


@dataclass(frozen=True, eq=False, repr=False)
class TextCounts:
    """Exact numbers of rows and of units of the texts of a column. Its repr shows nothing.

    Attributes:
        distinct: large_string[texts], each once.
        rows: int64[texts], rows of each.
        units: int64[texts], units with rows of each.
    """

    distinct: pa.LargeStringArray
    rows: Counts
    units: Counts

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function for each distinct text; it is called on some thousands of texts at a time."""
        return _each(self.distinct, read)

    @classmethod
    def added(cls, parts: Sequence[TextCounts]) -> TextCounts:
        """The counts of all parts of the rows, of which no two share a unit."""
        together = pa.chunked_array([part.distinct for part in parts], pa.large_string())
        coded = together.combine_chunks().dictionary_encode()
        at, texts = coded.indices.to_numpy(), len(coded.dictionary)
        rows, units = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        np.add.at(rows, at, np.concatenate([part.rows for part in parts]))
        np.add.at(units, at, np.concatenate([part.units for part in parts]))
        return cls(coded.dictionary, rows, units)


def _each(distinct: pa.LargeStringArray, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
    found = [read(pa.array([], pa.string()))]
    for start in range(0, len(distinct), _BLOCK):
        # A slice keeps its offset in the whole array, which may exceed 32 bits.
        spots = pa.array(np.arange(start, min(start + _BLOCK, len(distinct))))
        found.append(read(pc.cast(distinct.take(spots), pa.string())))
    return np.concatenate(found)
