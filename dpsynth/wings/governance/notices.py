"""Notices: what an owner makes known of a bundle after it was published. It is withdrawn, or has an error.

A notice is a row of the ledger, signed, and stands in a file beside the bundle, for whoever has the bundle
alone. It takes nothing back: what was told stays told, and the ledger goes on counting it.

Invariant: a notice is made of public facts and of its owner's words. A file of notices is never trusted: each
is shown with the key that signed it, and one whose signature doesn't fit is said to be forged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from dpsynth.bundle.recipient.opened import NOTICES_FILE, Notice
from dpsynth.bundle.signature import CHECKSUMS, SigningKey, sha256_of
from dpsynth.errors import spelt_out
from dpsynth.wings.governance.signed import NOTICE, Content, signed, signer

FORMAT = 1

_LONGEST, _SECONDS = 1 << 20, 30

_SPENT = "Its privacy stays spent: what it told can't be taken back, and it counts under the cap as before."


def notice(key: SigningKey, content: Content) -> dict[str, object]:
    """A signed notice, which says that privacy stays spent."""
    return signed(key, NOTICE, {**content, "privacy": _SPENT})


def bundles_in(folder: Path) -> dict[str, str]:
    """The SHA-256 of the file of checksums of each bundle of a release, by the name of its folder."""
    found = sorted(folder.glob(f"*/{CHECKSUMS}"))
    return {path.parent.name: sha256_of(path) for path in found}


def write_notices(folder: Path, notices: list[Content]) -> Path:
    """Write the notices of a release beside its bundles, whole or not at all; their file."""
    path, partial = folder / NOTICES_FILE, folder / f".{NOTICES_FILE}.new"
    text = json.dumps({"format": FORMAT, "notices": notices}, indent=2, sort_keys=True) + "\n"
    write_synced(partial, [text.encode()])
    partial.replace(path)
    return path


def write_synced(path: Path, pieces: Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file, in place of one that is there, to the disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def notices_of(
    bundle: Path, release_id: str, signed_by: str | None, file: str | None = None, key: str | None = None
) -> tuple[Notice, ...]:
    """The notices of a bundle, the gravest first.

    Args:
        bundle: its public folder.
        signed_by: the public key that its manifest names.
        file: the file of the notices, or its URL; None for the one beside the bundle, if there is one.
        key: the public key of its owner, known from elsewhere; None if it isn't known.
    """
    path = file or str(bundle.parent / NOTICES_FILE)
    if file is None and not Path(path).is_file():
        return ()
    try:
        # Signatures say whether notices can be relied on, wherever they come from.
        remote = path.startswith(("https://", "http://"))
        with urlopen(path, timeout=_SECONDS) if remote else Path(path).open("rb") as opened:
            values = json.loads(opened.read(_LONGEST))
        listed = values["notices"]
        if values["format"] != FORMAT or not all(isinstance(one, dict) for one in listed):
            raise ValueError
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return (
            Notice(f"The notices in {path} can't be read; ask where the bundle was published.", fault=True),
        )
    found = [one for each in listed for one in _read(each, release_id, signed_by, key)]
    return tuple(sorted(found, key=lambda one: (not one.withdrawn, not one.fault)))


def _read(content: Content, release_id: str, signed_by: str | None, key: str | None) -> Iterator[Notice]:
    if content.get("release_id") != release_id:
        return
    by = signer(NOTICE, content)
    if by is None:
        yield Notice(
            "A notice says something of this release, and its signature doesn't fit: somebody changed or "
            "forged it. Ask where the bundle was published.",
            fault=True,
        )
        return
    words, gone = _in_words(content), content.get("kind") == "withdrawn"
    if key is not None and by != key:
        yield Notice(f"A notice by {by}, which is not the key that was given, says: {words}")
        return
    who = (
        "the key that was given"
        if key is not None
        else "the key that signed the bundle"
        if by == signed_by
        else "which did not sign this bundle: ask where it was published"
    )
    yield Notice(f"{words} Signed by {by}, {who}.", withdrawn=gone)


def _in_words(content: Content) -> str:
    day, reason, other = (spelt_out(str(content.get(name))) for name in ("date", "reason", "replaced_by"))
    stop = "" if reason.endswith((".", "!", "?")) else "."
    if content.get("kind") == "withdrawn":
        instead = "" if content.get("replaced_by") is None else f" Use release {other} in its place."
        return f"WITHDRAWN on {day}: {reason}{stop} Don't use it any more.{instead} {_SPENT}"
    instead = "" if content.get("replaced_by") is None else f" See release {other}."
    return f"ERRATUM of {day}: {reason}{stop}{instead}"
