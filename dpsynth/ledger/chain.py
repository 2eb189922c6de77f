"""The chain of rows, each with a hash of itself and of the row before, and the head file, which has the last.

Invariant: a change, removal, insertion or reordering of rows changes the hash of the last row, and a row's
hash can be recomputed from its fields alone (docs/files.md has the steps). A row that the head file names was
committed before. So a ledger that lacks this row, or has another row under its number, was restored from an
older copy, or edited.

The head file has a line "<number> <hash>" for each time that rows were added. Lines are only ever added, each
in one write and never changed, so that processes need no lock for it and a file system may enforce it. A line
that a crash or a full disk cut short stays as it is; its remaining part must match as well, and the next line
begins on a new line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from dpsynth.errors import ConfigError

Governing = Literal["policy", "requested", "approved", "revoked", "refused", "withdrawn"]
Kind = Literal["dataset", "reserved", "resumed", "closed", "abandoned", "cap", "unit", Governing]
KINDS: tuple[str, ...] = get_args(Kind)
GOVERNING: tuple[str, ...] = get_args(Governing)
"""Kinds of rows that a wing reads: who may do what with the ledger, and what was withdrawn."""

FIRST = "0" * 64
"""The previous hash of the first row."""

Fields = tuple[int, str, str, str | None, str, str, str, str]
"""The fields of a row, in order."""


@dataclass(frozen=True)
class Row:
    """One row of the ledger, as stored. A damaged row may hold values of other types.

    Attributes:
        number: 1, 2, 3, ...
        content: JSON of the facts.
        created: ISO date, UTC; never before the date of the previous row.
        previous: hash of the previous row, ``FIRST`` for the first.
        hash: hash of the row.
    """

    number: int
    kind: str
    dataset: str
    release_id: str | None
    content: str
    created: str
    previous: str
    hash: str

    def to_json(self) -> dict[str, int | str | None]:
        return asdict(self)

    @property
    def true_hash(self) -> str | None:
        """SHA-256 in hex of the JSON list of all other fields, in order, without spaces, in ASCII.

        JSON distinguishes 1 from "1" and null from "", so that fields of another type have another hash.
        None where a field is of a type that is never written.
        """
        texts = (self.kind, self.dataset, self.content, self.created, self.previous)
        if type(self.number) is not int or not all(type(text) is str for text in texts):
            return None
        if self.release_id is not None and type(self.release_id) is not str:
            return None
        # In the order of the columns.
        fields = [self.number, *texts[:2], self.release_id, *texts[2:]]
        return sha256(json.dumps(fields, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


def chained(
    last: Row | None, kind: Kind, dataset: str, release_id: str | None, content: str, created: str
) -> Row:
    """The row that comes after another."""
    number, before = (1, FIRST) if last is None else (last.number + 1, last.hash)
    bare = Row(number, kind, dataset, release_id, content, created, before, "")
    return Row(number, kind, dataset, release_id, content, created, before, str(bare.true_hash))


def broken_link(row: Row, number: int, before: str) -> Iterator[str]:
    """The faults of a row that hashes show, in words that begin with its number.

    Args:
        number: the number of the previous row, as stored; 0 if there is none.
        before: the hash of the previous row, as stored; ``FIRST`` if there is none.
    """
    expected = number + 1
    if type(row.number) is not int:
        yield f"row {expected}: it has no number"
    elif row.number < expected:
        yield f"row {row.number}: it stands twice, or out of order"
    elif row.number > expected:
        more = "" if row.number == expected + 1 else f" and all up to {row.number - 1}"
        yield f"row {expected}: it{more} is missing"
    elif row.previous != before:
        yield f"row {expected}: it does not follow the row before, so one of them was exchanged"
    true_hash = row.true_hash
    if true_hash is None or row.hash != true_hash:
        shown = row.number if type(row.number) is int else expected
        yield f"row {shown}: it was changed after it was written"


def broken_links(rows: Sequence[Row], counted: object, hashed: object, checked: int = 0) -> Iterator[str]:
    """The faults of a chain that its hashes show, in words that begin with the row's number.

    Each row is compared with the row before it, so that a change is reported at the row that was changed.

    Args:
        counted: the number of rows by the ledger's record.
        hashed: the hash of the last row by the ledger's record.
        checked: number of first rows in which no fault was found before.
    """
    number, before = (checked, rows[checked - 1].hash) if checked else (0, FIRST)
    for row in rows[checked:]:
        yield from broken_link(row, number, before)
        number, before = row.number if type(row.number) is int else number + 1, row.hash
    if type(counted) is not int or counted != len(rows) or hashed != before:
        yield (
            f"row {len(rows)}: it should not be the last. The ledger's record is of {_short(counted)} rows, "
            f"the last with the hash {_short(hashed)}; rows were removed or added, or the record was changed"
        )


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]}..."


_LINE = re.compile(rb"([1-9][0-9]{0,17})(?: ([0-9a-f]{0,64}))?")


class HeadFile:
    """The file, opened to add to it.

    Raises:
        ConfigError: it is missing, or can't be read and written.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open the file; without ``create`` it must exist."""
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError as error:
            if create:
                raise ConfigError(
                    f"The ledger's head file {path} can't be made: {error.strerror}. Make its folder, or "
                    "correct ledger.head."
                ) from None
            raise ConfigError(
                f"The ledger's head file {path} is missing (ledger.head), so nobody can tell whether the "
                "ledger is the newest copy. Bring it back. If there never was one, and the ledger is known "
                f"to be whole, start it with: dpsynth ledger head --head {path}"
            ) from None
        except OSError as error:
            raise ConfigError(f"The ledger's head file {path} can't be used: {error.strerror}.") from None

    def __enter__(self) -> HeadFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def lines(self) -> list[bytes]:
        """The lines without their ends; ConfigError if the file can't be read."""
        return [line for line in self._whole().split(b"\n") if line]

    def problems(self, rows: Sequence[Row], lines: Sequence[bytes]) -> Iterator[str]:
        """The lines, read while these were all rows of the ledger, that contradict them; in words."""
        hashes = {row.number: str(row.hash) for row in rows}
        for at, line in enumerate(lines, start=1):
            found = _LINE.fullmatch(line)
            if found is None:
                yield f"line {at} of the head file {self._path}: it was changed"
                continue
            number, digest = int(found[1]), (found[2] or b"").decode()
            if number not in hashes:
                yield (
                    f"row {number}: the head file {self._path} has it, and the ledger has {len(rows)} rows. "
                    "It was restored from an older copy, or rows were removed"
                )
            elif not hashes[number].startswith(digest):
                yield (
                    f"row {number}: it is another than the head file {self._path} has. The ledger was "
                    "rewritten, or restored from another copy"
                )

    def add(self, rows: Sequence[Row]) -> None:
        """Add the last row, unless the file has it, and sync the file.

        Raises:
            ConfigError: it can't be written.
        """
        if not rows:
            return
        line = f"{rows[-1].number} {rows[-1].hash}".encode()
        if line in self.lines():
            return
        whole = self._whole()
        text = line + b"\n" if not whole or whole.endswith(b"\n") else b"\n" + line + b"\n"
        try:
            if os.write(self._file, text) < len(text):
                raise OSError(None, "the disk that it is on is full")
            os.fsync(self._file)
            _sync_folder(self._path.absolute().parent)
        except OSError as error:
            raise ConfigError(
                f"The ledger's head file {self._path} can't be written: {error.strerror}. Nothing was "
                "changed in the ledger."
            ) from None

    def _whole(self) -> bytes:
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            return os.read(self._file, os.fstat(self._file).st_size)
        except OSError as error:
            raise ConfigError(
                f"The ledger's head file {self._path} can't be read: {error.strerror}."
            ) from None


def _sync_folder(folder: Path) -> None:
    # Some file systems sync no folders.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
