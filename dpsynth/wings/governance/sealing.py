"""The embargo of a bundle: it is kept encrypted until an instant, and then opened, once.

    partial/public ──► sealed/bundle.sealed, key in private/ ──► commit ──► the instant ──► public

The files are put into one archive, which is encrypted in pieces by ChaCha20-Poly1305 (RFC 8439) under a fresh
key. The number of a piece, and whether it is the last, are its nonce (STREAM, by Hoang, Reyhanitabar, Rogaway
and Vizár, 2015), so pieces can't be left out, repeated or exchanged. The statement beside it, which names the
release and the instant, is authenticated with each piece.

Invariant: whatever process dies, all of the bundle is sealed in its place, or all of it is open. A seal is
removed only when the whole bundle lies beside it. Whoever can read the private folder has the key.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from pydantic import AwareDatetime, BaseModel, ConfigDict

from dpsynth.bundle.manifest import MANIFEST
from dpsynth.bundle.recipient.opened import notices_beside
from dpsynth.columns.section import Checked, JsonSchema, refused
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.release_run import alone_in
from dpsynth.wings.governance.notices import write_synced
from dpsynth.wings.governance.withdrawing import PAGE_OF_RELEASES

SEALED = "sealed"
"""The folder of a sealed bundle, in the place of those that it holds."""

STATEMENT, CONTENT, KEY = "sealed.json", "bundle.sealed", Path("private", "embargo.key")

PIECE = 1 << 20
"""Bytes of a piece before it is encrypted; the last is filled up, so that only a rough size can be seen."""

_TAG, _LARGEST = 16, 1 << 16


class Instant(Checked):
    """A date and a time with its time zone, kept as text in UTC."""

    def check(self, value: object) -> str:
        try:
            found = datetime.fromisoformat(str(value))
            if found.tzinfo is not None:
                return found.astimezone(UTC).isoformat()
        except (ValueError, OverflowError):
            pass
        raise refused("must be a date and a time with its time zone, such as 2026-12-24T09:00+01:00")

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "format": "date-time"}


Embargo = Annotated[str, Instant()]
"""The key embargo of a configuration."""


class Sealed(BaseModel):
    """The statement of a sealed bundle, which anybody may read; its folders are public, or of audiences."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    about: str = "This release is finished, and is encrypted until its owner publishes it."
    release_id: str
    until: AwareDatetime
    folders: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> Sealed | None:
        """That of a release's folder, or None if it isn't sealed; DpsynthError if it is damaged."""
        path = folder / SEALED / STATEMENT
        try:
            with path.open("rb") as file:
                return cls.model_validate_json(file.read(_LARGEST))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            words = f"{path} can't be read: it was changed, or another version wrote it."
            raise DpsynthError(words) from None

    @property
    def words(self) -> str:
        when = f"{self.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f"Release {self.release_id} is sealed until {when}: nothing of it can be read before."


def sealed_in_words(path: Path) -> str:
    """A sentence on the folder of a sealed release, or on one of those that it seals; "" on any other."""
    found = Sealed.read(path) or Sealed.read(path.parent)
    return "" if found is None else found.words


def seal(partial: Path, release_id: str, embargo: str) -> str:
    """Encrypt the finished bundles in a partial folder, unless the instant has come; and say so."""
    folder, new = partial / SEALED, partial / f".{SEALED}.new"
    for left in (folder, new):
        shutil.rmtree(left, ignore_errors=True)
    names = tuple(sorted(found.parent.name for found in partial.glob(f"*/{MANIFEST}")))
    made = Sealed(release_id=release_id, until=datetime.fromisoformat(embargo), folders=names)
    if _now() >= made.until:
        return f"The embargo of release {release_id} has ended, so it is not sealed."
    key, about = ChaCha20Poly1305.generate_key(), f"{made.model_dump_json(indent=2)}\n".encode()
    write_synced(partial / KEY, [key], 0o600)
    new.mkdir()
    write_synced(new / STATEMENT, [about])
    with TemporaryFile(dir=partial) as plain:
        with tarfile.open(fileobj=plain, mode="w") as archive:
            for name in names:
                archive.add(partial / name, name)
        plain.seek(0)
        write_synced(new / CONTENT, _encrypted(plain, key, about))
    new.rename(folder)
    for name in names:
        shutil.rmtree(partial / name)
    return f"{made.words} Its key is {KEY} in its folder. Then dpsynth publish opens it, or dpsynth serve."


def publish(folder: Path) -> bool:
    """Open the bundle in the folder of a sealed release, and remove the seal; False if it is open already."""
    opening = folder / ".opening"
    if Sealed.read(folder) is None and not any(folder.glob(f"*/{MANIFEST}")):
        raise DpsynthError(f"{folder} holds no release, neither sealed nor open. Name its folder.")
    with alone_in(folder.parent):
        shutil.rmtree(opening, ignore_errors=True)
        found = Sealed.read(folder)
        if found is None:
            return False
        if _now() < found.until:
            clock = f"By this machine's clock it is {_now():%Y-%m-%d %H:%M} UTC."
            raise DpsynthError(f"{found.words} {clock} Nothing was opened.")
        if any(notice.withdrawn for notice in notices_beside(folder / SEALED, found.release_id)):
            raise DpsynthError(f"Release {found.release_id} was withdrawn while sealed, and is not opened.")
        opening.mkdir(mode=0o700)
        _decrypt(folder, found, opening)
        for name in found.folders:
            # One that is there already was put there whole, by a process that died before it was done.
            if not (folder / name).exists():
                (opening / name).rename(folder / name)
        os.sync()
        # One rename, as a seal of which half is removed could not be told from a damaged one.
        (folder / SEALED).rename(opening / SEALED)
        (folder / KEY).unlink(missing_ok=True)
        shutil.rmtree(opening)
        page = PAGE_OF_RELEASES.filled()
        if page is not None:
            page(folder.parent)
        return True


def publish_due(releases: Path) -> Iterator[str]:
    """Open each sealed bundle of a release's name whose instant has come, with a sentence on each."""
    for statement in sorted(releases.glob(f"[!.]*/{SEALED}/{STATEMENT}")):
        folder = statement.parent.parent
        try:
            found = Sealed.read(folder)
            if found is not None and _now() >= found.until and publish(folder):
                yield f"The embargo of {found.release_id} has ended: {folder} is published."
        except (DpsynthError, OSError) as error:
            yield f"{folder} can't be published: {error} Open it with: dpsynth publish {folder}"


def _now() -> datetime:
    return datetime.now(UTC)


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _pieces(file: IO[bytes], size: int) -> Iterator[tuple[bytes, bytes]]:
    """The pieces of a file, each after its nonce."""
    number, piece = 0, file.read(size)
    while piece:
        after = file.read(size)
        yield _nonce(number, last=not after), piece
        number, piece = number + 1, after


def _encrypted(plain: IO[bytes], key: bytes, about: bytes) -> Iterator[bytes]:
    """The pieces of a file, encrypted."""
    cipher = ChaCha20Poly1305(key)
    return (cipher.encrypt(nonce, piece.ljust(PIECE, b"\0"), about) for nonce, piece in _pieces(plain, PIECE))


def _decrypted(sealed: IO[bytes], key: bytes, about: bytes) -> Iterator[bytes]:
    """The pieces of a file that ``_encrypted`` made; InvalidTag or ValueError if any was changed."""
    cipher = ChaCha20Poly1305(key)
    return (cipher.decrypt(nonce, piece, about) for nonce, piece in _pieces(sealed, PIECE + _TAG))


def _decrypt(folder: Path, found: Sealed, into: Path) -> None:
    """Write what a seal holds into an empty folder, on the disk."""
    path = folder / SEALED / CONTENT
    try:
        key, about = (folder / KEY).read_bytes(), (folder / SEALED / STATEMENT).read_bytes()
        with path.open("rb") as sealed, TemporaryFile(dir=into) as plain:
            plain.writelines(_decrypted(sealed, key, about))
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r") as archive:
                archive.extractall(into, filter="data")
    except (FileNotFoundError, InvalidTag, ValueError, tarfile.TarError):
        raise DpsynthError(
            f"{path} can't be decrypted: it, its key ({folder / KEY}) or {STATEMENT} is gone, or was "
            "changed. The journal has all answers, so the bundle can be made again for nothing: remove "
            f"{folder / SEALED}, rename {folder} to {folder.parent / f'.{folder.name}.partial'}, and go on "
            f"with dpsynth run CONFIG --resume {found.release_id}"
        ) from None
    os.sync()
