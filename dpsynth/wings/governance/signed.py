"""Statements that are signed by Ed25519: the rows of a policy, and notices.

A statement is a JSON value in one spelling, so that the same facts are the same bytes. It begins with what it
is about, so that no statement can be taken for another, nor for the checksums of a bundle, which the same key
may sign. Most rows are signed together with the hash of the row before, and an approval with the hash of the
row of its request: such a signature holds in one ledger, at one place, and for all that stood there before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dpsynth.bundle.signature import SigningKey, key_in, signer_of
from dpsynth.errors import ConfigError

KEY = "DPSYNTH_KEY"
"""Name of the environment variable with the file of the key by which somebody acts on a ledger."""

NOTICE = ("notice",)
"""The subject of a notice: it says itself which release it is of, to those who don't have the ledger."""

Content = Mapping[str, object]


def acting_key(given: Path | None = None) -> SigningKey | None:
    """The key in a file that is given, or else named by the environment; None without one.

    Raises:
        ConfigError: there is no key in the file.
    """
    return key_in(given, KEY)


def given_key(given: Path | None) -> SigningKey:
    """As ``acting_key``; ConfigError where there is none."""
    found = acting_key(given)
    if found is None:
        raise ConfigError(
            "Who you are is missing: name the file of your key with --key, or with the environment variable "
            f"{KEY}. dpsynth keygen FILE makes one."
        )
    return found


def statement(about: tuple[str, ...], content: Content) -> bytes:
    """The bytes that are signed, of a content with or without its signature."""
    facts = {name: value for name, value in content.items() if name != "signature"}
    return json.dumps(["dpsynth", *about, facts], sort_keys=True, separators=(",", ":")).encode("ascii")


def signed(key: SigningKey, about: tuple[str, ...], content: Content) -> dict[str, object]:
    """A content with the public key of whoever signs it, and the signature."""
    whole = {**content, "by": key.public}
    return {**whole, "signature": key.signature_text(statement(about, whole)).split()[1]}


def signer(about: tuple[str, ...], content: Content) -> str | None:
    """The public key that a content is signed by; None if it isn't signed, or by no such key."""
    by, signature = content.get("by"), content.get("signature")
    return signer_of(statement(about, content), f"{by}\n{signature}\n")
