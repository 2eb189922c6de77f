"""The embargo of a bundle: it is kept encrypted until an instant, and then opened, once.

    partial/public ──► sealed/bundle.sealed, key in private/ ──► commit ──► the instant ──► public

The files are put into one archive, which is encrypted in pieces by ChaCha20-Poly1305 (RFC 8439) under a fresh
key. The number of a piece, and whether it is the last, are its nonce (STREAM, by Hoang, Reyhanitabar, Rogaway
and Vizár, 2015), so pieces can't be left out, repeated or exchanged. The statement beside it, which names the
release and the instant, is authenticated with each piece.

Invariant: at every instant, whatever process dies, all of the bundle is sealed in its place, or all of it is
open. Only a whole seal is committed, and the seal is removed only when the whole bundle lies beside it. The
embargo holds against mistakes and against those who can't read the private folder: whoever has the key has
the bundle.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

from dpsynth.bundle.manifest import MANIFEST
from dpsynth.bundle.recipient.opened import notices_beside
from dpsynth.columns.section import Checked, JsonSchema, refused
from dpsynth.errors import DpsynthError, spelt_out
from dpsynth.pipeline.release_run import alone_in
from dpsynth.wings.governance.withdrawing import PAGE_OF_RELEASES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SEALED = "sealed"
"""The folder of a sealed bundle, in the place of those that it holds."""

STATEMENT, CONTENT, KEY = "sealed.json", "bundle.sealed", Path("private", "embargo.key")

PIECE = 1 << 20
"""Bytes of a piece before it is encrypted; the last is filled up, so that only a rough size can be seen."""

_TAG, _KEY_BYTES, _LARGEST = 16, 32, 1 << 16


class Instant(Checked):
    """A date and a time with its time zone, kept as text in UTC."""

    def check(self, value: object) -> str:
        try:
            found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            raise refused("must be a date and a time with its time zone, such as 2026-12-24T09:00+01:00")
        try:
            return found.astimezone(UTC).isoformat()
        except OverflowError:
            raise refused("must be a date between the years 1 and 9999") from None

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "format": "date-time"}


Embargo = Annotated[str, Instant()]
"""The key embargo of a configuration."""


@dataclass(frozen=True)
class Sealed:
    """The statement of a sealed bundle, which anybody may read.

    Attributes:
        until: the instant at which it may be opened.
        folders: the public folder, or that of each audience.
    """

    release_id: str
    until: datetime
    folders: tuple[str, ...]

    @property
    def text(self) -> str:
        words = (
            "This release is finished and encrypted. Nothing of it can be read until its owner publishes it."
        )
        facts = {
            "format": 1,
            "about": words,
            "release_id": self.release_id,
            "until": self.until.isoformat(),
            "folders": list(self.folders),
        }
        return json.dumps(facts, indent=2) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Sealed | None:
        """That of a release's folder; None if it isn't sealed.

        Raises:
            DpsynthError: the statement is damaged.
        """
        path = folder / SEALED / STATEMENT
        try:
            with path.open("rb") as file:
                facts = json.loads(file.read(_LARGEST))
            names = facts["folders"]
            made = cls(
                str(facts["release_id"]), datetime.fromisoformat(facts["until"]), tuple(map(str, names))
            )
            if facts["format"] != 1 or made.until.tzinfo is None or any(Path(n).name != n for n in names):
                raise ValueError
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DpsynthError(
                f"{path} can't be read: it was changed, or another version wrote it."
            ) from None
        return made

    @property
    def when(self) -> str:
        return f"{self.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def sealed_in_words(path: Path) -> str:
    """A sentence on the folder of a sealed release, or on one of those that it seals; "" on any other."""
    for folder in (path, path.parent):
        found = Sealed.read(folder)
        if found is not None:
            name = spelt_out(found.release_id)
            return f"Release {name} is sealed until {found.when}: nothing of it can be read before."
    return ""


def seal(partial: Path, release_id: str, embargo: str) -> str:
    """Encrypt the finished bundles in a partial folder in their place; what the owner is told.

    They stay as they are if the instant has come. A seal that a run left which died is made anew.
    """
    folder, until = partial / SEALED, datetime.fromisoformat(embargo)
    shutil.rmtree(folder, ignore_errors=True)
    names = tuple(sorted(found.parent.name for found in partial.glob(f"*/{MANIFEST}")))
    made = Sealed(release_id, until, names)
    if _now() >= until:
        return f"The embargo of release {release_id} ended on {made.when}, so it is not sealed."
    key, new = secrets.token_bytes(_KEY_BYTES), partial / f".{SEALED}.new"
    _write(partial / KEY, key)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    _write(new / STATEMENT, made.text.encode(), mode=0o644)
    with (new / CONTENT).open("wb") as file:
        pieces = _Encrypted(file, key, made.text.encode())
        with tarfile.open(fileobj=pieces, mode="w|", bufsize=PIECE) as archive:
            for name in names:
                archive.add(partial / name, name, filter=_nobodys)
        pieces.end()
        _flush(file)
    new.rename(folder)
    for name in names:
        shutil.rmtree(partial / name)
    return (
        f"Release {release_id} is sealed until {made.when}: its bundle is encrypted, and its key is "
        f"{KEY} in its folder. From then on dpsynth publish opens it; dpsynth serve does by itself."
    )


def publish(folder: Path) -> bool:
    """Open the bundle of a sealed release, and remove the seal; False if that was done before.

    Args:
        folder: the folder of the release.

    Raises:
        DpsynthError: it is none, its instant hasn't come, it was withdrawn, or it can't be decrypted.
    """
    if not folder.is_dir():
        raise DpsynthError(
            f"There is no folder {folder}. Name the folder of a release, as its run printed it."
        )
    opening = folder / ".opening"
    with alone_in(folder.parent):
        shutil.rmtree(opening, ignore_errors=True)
        found = Sealed.read(folder)
        if found is None:
            if not any(folder.glob(f"*/{MANIFEST}")):
                raise DpsynthError(f"{folder} holds no release, neither sealed nor open.")
            return False
        if _now() < found.until:
            raise DpsynthError(
                f"{sealed_in_words(folder)} By this machine's clock it is {_now():%Y-%m-%d %H:%M} UTC. "
                "Nothing was opened."
            )
        if any(notice.withdrawn for notice in notices_beside(folder / SEALED, found.release_id)):
            raise DpsynthError(
                f"Release {found.release_id} was withdrawn while it was sealed, so it is not opened. What it "
                "spent stays spent."
            )
        opening.mkdir(mode=0o700)
        _decrypt(folder, found, opening)
        for name in found.folders:
            # One that is there already was put there whole, by a process that died before it was done.
            if not (folder / name).exists():
                (opening / name).rename(folder / name)
        _sync(folder)
        # One rename, as a seal of which half is removed could not be told from a damaged one.
        (folder / SEALED).rename(opening / SEALED)
        (folder / KEY).unlink(missing_ok=True)
        shutil.rmtree(opening)
        page = PAGE_OF_RELEASES.filled()
        if page is not None:
            page(folder.parent)
        return True


def publish_due(releases: Path) -> Iterator[str]:
    """Open each sealed bundle of a release's name whose instant has come; with a sentence on each."""
    for statement in sorted(releases.glob(f"[!.]*/{SEALED}/{STATEMENT}")):
        folder = statement.parent.parent
        try:
            found = Sealed.read(folder)
            if found is not None and _now() >= found.until and publish(folder):
                yield f"The embargo of {found.release_id} has ended: {folder} is published."
        except (DpsynthError, OSError) as error:
            words = (
                str(error)
                if isinstance(error, DpsynthError)
                else f"{folder} can't be opened: {error.strerror}."
            )
            yield f"{words} Nothing of it is published; open it with: dpsynth publish {folder}"


def _now() -> datetime:
    return datetime.now(UTC)


def _cipher(key: bytes) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key)


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class _Encrypted(io.RawIOBase):
    """A file to write to, whose content goes encrypted into another."""

    def __init__(self, file: IO[bytes], key: bytes, about: bytes) -> None:
        self._file, self._cipher, self._about = file, _cipher(key), about
        self._waiting, self._number = bytearray(), 0

    def write(self, data: object) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        self._waiting += data
        while len(self._waiting) > PIECE:
            self._put(bytes(self._waiting[:PIECE]), last=False)
            del self._waiting[:PIECE]
        return len(data)

    def end(self) -> None:
        self._put(bytes(self._waiting).ljust(PIECE, b"\0"), last=True)

    def _put(self, piece: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last=last), piece, self._about))
        self._number += 1


class _Decrypted(io.RawIOBase):
    """A file to read from, whose content lies encrypted in another."""

    def __init__(self, file: IO[bytes], size: int, key: bytes, about: bytes) -> None:
        self._file, self._cipher, self._about = file, _cipher(key), about
        self._pieces, self._number, self._ready = size // (PIECE + _TAG), 0, b""
        if not self._pieces or size % (PIECE + _TAG):
            raise ValueError("no whole number of pieces")

    def read(self, size: int = -1) -> bytes:
        while self._number < self._pieces and (size < 0 or len(self._ready) < size):
            last = self._number == self._pieces - 1
            sealed = self._file.read(PIECE + _TAG)
            self._ready += self._cipher.decrypt(_nonce(self._number, last=last), sealed, self._about)
            self._number += 1
        end = len(self._ready) if size < 0 else size
        found, self._ready = self._ready[:end], self._ready[end:]
        return found


def _decrypt(folder: Path, found: Sealed, into: Path) -> None:
    """Write what a seal holds into an empty folder, synced."""
    from cryptography.exceptions import InvalidTag

    path, again = folder / SEALED / CONTENT, f"{folder.parent / f'.{folder.name}.partial'}"
    remade = (
        f"Its journal has all answers, so the bundle can be made again for nothing: remove "
        f"{folder / SEALED}, rename the folder to {again}, and go on with dpsynth run CONFIG --resume "
        f"{found.release_id}"
    )
    try:
        key = (folder / KEY).read_bytes()
        with path.open("rb") as file:
            pieces = _Decrypted(file, path.stat().st_size, key, (folder / SEALED / STATEMENT).read_bytes())
            with tarfile.open(fileobj=pieces, mode="r|", bufsize=PIECE) as archive:
                archive.extractall(into, filter="data")
            pieces.read()
    except FileNotFoundError as error:
        raise DpsynthError(
            f"{error.filename} is gone, and nobody can open the bundle without it. {remade}"
        ) from None
    except (InvalidTag, ValueError, tarfile.TarError):
        raise DpsynthError(
            f"{path} can't be decrypted: it, its key or {STATEMENT} was changed since it was sealed. {remade}"
        ) from None
    for inner, _, files in os.walk(into, topdown=False):
        for name in (*files, "."):
            _sync(Path(inner, name))


def _write(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file whole or not at all, in place of one that is there."""
    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        _flush(file)
    partial.replace(path)
    _sync(path.parent)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
