"""Addresses of databases, with their passwords: from the environment, or handed over by whoever has a vault.

Invariant: an address is looked up when rows are read, and stays in this process. No step hands it on, no
message quotes it, and nothing writes it down.
"""

from __future__ import annotations

import os

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from dpsynth.config.source import Source
from dpsynth.errors import ConfigError

SECRET = "secret/"
"""Beginning of the names of Prefect's Secret blocks."""

_held: dict[str, str] = {}


def hold(name: str, address: str) -> None:
    """Keep the address of a name of ``source.url_from``; ``flows`` does so for Prefect's Secret blocks."""
    _held[name] = address


def is_locked(source: Source) -> bool:
    """True if the address is in a vault that this process hasn't been given it from."""
    name = source.url_from
    return name is not None and name.startswith(SECRET) and name not in _held


def address_of(source: Source) -> tuple[str, str]:
    """The URL of a source's database, and the words for it in messages.

    Raises:
        ConfigError: it isn't found, or is no URL.
    """
    if source.url is not None:
        return source.url, f"The database {source.url}"
    name = str(source.url_from)
    named = f"The database of source.url_from: {name}"
    address = _held.get(name) or os.environ.get(name, "")
    if not address:
        if name.startswith(SECRET):
            raise ConfigError(
                f"source.url_from names the Secret block {name.removeprefix(SECRET)}, which only Prefect "
                "reads: run with --prefect, or name an environment variable."
            )
        raise ConfigError(
            f"source.url_from names the environment variable {name}, and it isn't set. Set it to the "
            "database's URL, such as postgresql://reader:PASSWORD@host/clinic."
        )
    try:
        make_url(address)
    except ArgumentError:
        raise ConfigError(
            f"{named} has no URL of a database in it, such as postgresql://reader:PASSWORD@host/clinic."
        ) from None
    return address, named
