"""Folders of releases: journals are begun and found, and leftovers of dead runs removed.

Invariant: only one run at a time begins a release in a folder, or clears it. The folder of a release that is
not complete can be entered by its owner alone, from its first moment on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.config import CompiledSpec
from dpsynth.config.files.place import is_part_of
from dpsynth.curator.journal import Journal, is_paused
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.steps import Tell

if TYPE_CHECKING:
    from dpsynth.ledger.ledger import Ledger

JOURNAL = Path("private", "journal.jsonl")


def partial_of(folder: Path, release_id: str) -> Path:
    """Path of a release that is not complete."""
    return folder / f".{release_id}.partial"


def make_partial(partial: Path) -> None:
    """Make the folder of a release that is not complete."""
    partial.mkdir(mode=0o700)


def withdraw(partial: Path) -> None:
    """Remove what an unfinished release would have published; its journal stays.

    For a copy of a release that was finished elsewhere: its answers are a second draw for one charge.
    """
    for path in partial.glob("*"):
        if path.name != JOURNAL.parts[0]:
            shutil.rmtree(path, ignore_errors=True)


def journal_of(folder: Path, release_id: str) -> Path | None:
    """Path of the journal of a release, complete or under way; None if there is none."""
    journals = (place / JOURNAL for place in (folder / release_id, partial_of(folder, release_id)))
    return next((path for path in journals if path.is_file()), None)


def unfinished_journal(folders: Iterable[Path], release_id: str, resume: str) -> Path | None:
    """Path of the journal of an unfinished release, in the first of some folders for bundles that has it.

    Args:
        folders: the folders of releases, each with a folder a release id.
        release_id: the release.
        resume: the way to close the release, for the message, if its bundle is whole.

    Raises:
        ConfigError: the release has a whole bundle.
    """
    places = list(folders)
    whole = next((folder / release_id for folder in places if (folder / release_id).exists()), None)
    if whole is not None:
        raise ConfigError(
            f"Release {release_id} has a whole bundle in {whole}; only its end is missing in the ledger. "
            f"Close it with: {resume}"
        )
    found = (journal_of(folder, release_id) for folder in places)
    return next((path for path in found if path is not None), None)


def waits_for_its_owner(folder: Path, release_id: str) -> bool:
    """True if an unfinished release is paused, by its journal."""
    path = journal_of(folder, release_id)
    return path is not None and is_paused(path)


def check_outputs(outputs: Path, source: str | None) -> None:
    """Check that bundles are written to a folder of this machine, outside of the private table's own folder.

    Args:
        outputs: the folder for bundles.
        source: the path or the URL of the private table; None where it is no file.

    Raises:
        ConfigError: they wouldn't be.
    """
    # A path that is made of a URL has lost one of its slashes.
    if re.match(r"[a-z][a-z0-9+.-]*:/", str(outputs)):
        raise ConfigError(
            f"Bundles are written to a folder of this machine, and {outputs} is a URL. Give another: --out."
        )
    if source is not None and is_part_of(str(outputs), source):
        raise ConfigError(
            f"The folder for bundles {outputs} lies in the private table's folder {source}, whose files are "
            "read as rows of the table. Give another with --out."
        )


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A lock on a folder: no other run begins a release in it, or clears it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ConfigError(
            f"The folder for bundles {folder} can't be made: {error.strerror}. Give another with --out."
        ) from None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def clear(folder: Path, ledger: Ledger, tell: Tell) -> None:
    """Remove leftovers of runs that died before they reserved, and report folders without reservation."""
    for partial in sorted(folder.glob(".*.partial")):
        release_id = partial.name[1:].removesuffix(".partial")
        path = partial / JOURNAL
        entry = ledger.release(release_id)
        if entry is not None:
            if entry.state == "closed":
                tell(
                    f"Release {release_id} is settled, and its bundle was not put in its place. Unless it is "
                    f"running, finish it, for nothing more, with --resume {release_id}"
                )
            continue
        # A run that makes a journal holds the folder: a journal without a whole line is of a dead run.
        if not path.exists() or b"\n" not in path.read_bytes():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            try:
                journal = Journal.open(path)
            except DpsynthError:
                # The release is running, or its journal is damaged.
                continue
            if journal.header["ledger"] != ledger.name:
                journal.close()
                continue
            if journal.entries:
                journal.close()
                tell(
                    f"{partial} has answers of release {release_id}, and the ledger {ledger.name} knows of "
                    "no such release: it was restored from an older copy, or begun anew."
                )
                continue
            shutil.rmtree(partial, ignore_errors=True)
            journal.close()
        tell(f"{partial} was left by a run that died before it had reserved or asked anything: removed.")


def started_journal(partial: Path, header: dict[str, object], holder: str) -> Journal:
    """A new journal with its first line, held by the run that begins it."""
    try:
        make_partial(partial)
        journal = Journal.create(partial / JOURNAL, header)
        journal.hold(holder)
    except OSError:
        discard(partial)
        raise
    return journal


def found_journal(compiled: CompiledSpec, folder: Path, release_id: str) -> Journal:
    """The journal of a release that was begun, checked against the config."""
    if not release_id.replace("-", "").isalnum():
        raise ConfigError(f"'{release_id}' is no release id: one looks like 20300131-0a1b2c3d.")
    path = journal_of(folder, release_id)
    if path is None:
        raise ConfigError(
            f"There is no release {release_id} to resume under {folder}: no journal is there. If it "
            f"was deleted, what the release reserved stays charged; {given_up(release_id)}"
        )
    if (partial := partial_of(folder, release_id)) in path.parents:
        # Builds before 0.1.0 left it open to all users.
        partial.chmod(0o700)
    journal = Journal.open(path)
    if journal.header["id"] != release_id:
        journal.close()
        raise ConfigError(
            f"{path} is the journal of release {journal.header['id']}, and not of {release_id}. Bring its "
            "own back, or resume the other in its own folder."
        )
    if journal.lacks_charges:
        journal.close()
        raise ConfigError(
            f"{path} had more answers than it has: an older copy was put back in its place, and what was "
            "drawn since would be drawn again. Bring the latest one back. If there is none, all that the "
            f"release reserved stays charged; give it up with: dpsynth ledger abandon {release_id} "
            '--ledger URL --reason "..."'
        )
    if journal.header["spec"] != compiled.fingerprint:
        journal.close()
        raise ConfigError(
            f"The config has changed since release {release_id} began, so its answers can't be used with it. "
            "Resume with the config that it began with, or start a new release."
        )
    return journal


def discard(partial: Path) -> None:
    """Remove the folder of a release that asked nothing, and the folder above if it is empty."""
    shutil.rmtree(partial, ignore_errors=True)
    with suppress(OSError):
        partial.parent.rmdir()


def given_up(release_id: str) -> str:
    """Advice on giving up a release."""
    return f'give it up with: dpsynth ledger abandon {release_id} --config CONFIG --reason "..."'
