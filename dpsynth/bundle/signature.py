"""Signatures of bundles by Ed25519 (RFC 8032), and the checksums that they sign.

One file of checksums names every other public file, the manifest among them, in the form of sha256sum:
``sha256sum --check SHA256SUMS`` finds changes without dpsynth. Whoever holds the private key can sign bundles
in the owner's name; it tells nothing of the private table.

Invariant: the same files give the same checksums and, as signing is deterministic, the same signature.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.errors import ConfigError, DpsynthError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


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
    """The content of the file of checksums, a line a file, in the order of names."""
    return "".join(f"{checksums[name]}  {name}\n" for name in sorted(checksums))


_PREFIX = "ed25519:"

_PUBLIC = re.compile(rf"{_PREFIX}[0-9a-f]{{64}}")

_SIGNATURE = re.compile(rf"({_PUBLIC.pattern})\n([0-9a-f]{{128}})\n")

_LONGEST = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class SigningKey:
    """A private key."""

    _key: Ed25519PrivateKey

    @property
    def public(self) -> str:
        """The public key, as ``ed25519:`` and 64 hexadecimal digits."""
        return _PREFIX + self._key.public_key().public_bytes_raw().hex()

    def signature_text(self, content: bytes) -> str:
        """The content of a signature's file: the public key and the signature, a line each."""
        return f"{self.public}\n{self._key.sign(content).hex()}\n"


def make_key(path: Path) -> SigningKey:
    """A new private key in a new file, which only its owner may read.

    Raises:
        DpsynthError: the file exists, or can't be written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise DpsynthError(f"{path} exists already; a key is never overwritten. Give a new name.") from None
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None
    return SigningKey(key)


def load_key(path: Path) -> SigningKey:
    """The private key in a file, a PEM without a password.

    Raises:
        ConfigError: there is no such file, or it is no Ed25519 key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with path.open("rb") as file:
            key = load_pem_private_key(file.read(_LONGEST), None)
    except OSError as error:
        raise ConfigError(
            f"The signing key {path} can't be opened: {error.strerror}. `dpsynth keygen FILE` makes one."
        ) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            f"{path} is no signing key: it must be an Ed25519 key as PEM, without a password, such as "
            "`dpsynth keygen FILE` makes."
        )
    return SigningKey(key)


def is_public_key(text: str) -> bool:
    """True for ``ed25519:`` and 64 hexadecimal digits."""
    return _PUBLIC.fullmatch(text) is not None


def key_in(given: str | Path | None, variable: str) -> SigningKey | None:
    """The private key in a file that is given, or else named by an environment variable; None without one.

    Raises:
        ConfigError: there is no key in the file.
    """
    path = given or os.environ.get(variable)
    return load_key(Path(path)) if path else None


def signer_of(content: bytes, signature: str) -> str | None:
    """The public key by which a content is signed; None if the signature is not one of this content."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        return None
    public, signed = found[1], bytes.fromhex(found[2])
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public.removeprefix(_PREFIX))).verify(
            signed, content
        )
    except (InvalidSignature, ValueError):
        return None
    return public
