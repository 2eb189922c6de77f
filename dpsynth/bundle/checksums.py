"""The checksums of a bundle: one file that names every other public file, the manifest among them.

It has the form of the program sha256sum: ``sha256sum --check SHA256SUMS`` finds changes without dpsynth.

Invariant: the same files give the same bytes, so any other file of checksums is a changed one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
UNLISTED = frozenset((CHECKSUMS, SIGNATURE))
"""Public files that the file of checksums doesn't name."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def public_files(folder: Path) -> tuple[str, ...]:
    """Names of all files below a folder, with slashes, in order."""
    return tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()))


def checksums_text(checksums: Mapping[str, str]) -> str:
    """The content of the file of checksums, a line a file, in the order of names.

    Args:
        checksums: SHA-256 in hex of each file, by name.
    """
    return "".join(f"{checksums[name]}  {name}\n" for name in sorted(checksums))
