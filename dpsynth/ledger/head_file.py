"""The head file: the hash of the ledger's last row, kept elsewhere, so that an older copy of it shows.

The file has a line "<number> <hash>" for each time that rows were added. Lines are only ever added, each in
one write and never changed, so that processes need no lock for it and a file system may enforce it. A line
that a crash or a full disk cut short stays as it is; its remaining part must match as well, and the next line
begins on a new line.

Invariant: a row that the file names was committed before. So a ledger that lacks this row, or has another row
under its number, was restored from an older copy, or edited.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dpsynth.errors import ConfigError
from dpsynth.ledger.chain import Row

_LINE = re.compile(rb"([1-9][0-9]{0,17})(?: ([0-9a-f]{0,64}))?")


class HeadFile:
    """The file, opened to add to it.

    Raises:
        ConfigError: it is missing, or can't be read and written.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open the file.

        Args:
            path: its path.
            create: true if it may be made; otherwise it must exist.
        """
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
        """Itself, to be closed on leaving."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._file)

    def lines(self) -> list[bytes]:
        """The lines without their ends; ConfigError if the file can't be read."""
        return [line for line in self._whole().split(b"\n") if line]

    def problems(self, rows: Sequence[Row], lines: Sequence[bytes]) -> Iterator[str]:
        """The lines that contradict the rows, in words.

        Args:
            rows: the ledger's.
            lines: the file's, read while these were all rows.
        """
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
