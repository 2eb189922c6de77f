"""What a wing adds to the core, and the listing of the wings.

A wing is a package in ``dpsynth/wings/`` whose ``__init__`` holds a value ``WING``. It adds commands to the
command line and functions to ``import dpsynth``, and it fills the points at which the core asks whether
somebody can do a thing, such as counting on several machines. All of these are named by address,
"module:name", and imported when they are asked for.

Invariant: the core imports no wing by name. With a wing's folder gone, its commands are unknown and its
points are empty; a release runs as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Generic, Literal, TypeVar, cast

from dpsynth.errors import ConfigError

T = TypeVar("T")

LISTED = ("owner", "proof", "local", "cluster", "governance", "histories", "methods", "notebooks", "tables")
"""The wings, in the order in which help lists what they add."""


@dataclass(frozen=True)
class Wing:
    """What a wing adds. An address is "module:name".

    Attributes:
        title: the heading of its commands in the help of the command line.
        commands: the address of each command: a function that typer reads, or a ``typer.Typer`` of several.
        functions: the address of each name that it adds to ``import dpsynth``.
        points: the address of what fills each point, by the point's name.
    """

    title: str
    commands: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[str, str] = field(default_factory=dict)


@cache
def wings() -> tuple[Wing, ...]:
    """The wings that are installed."""
    found = []
    for name in LISTED:
        module = f"dpsynth.wings.{name}"
        try:
            found.append(cast(Wing, import_module(module).WING))
        except ModuleNotFoundError as error:
            if error.name not in (module, "dpsynth.wings"):
                raise
    return tuple(found)


def at(address: str) -> object:
    """The object that an address names, imported now."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def added(kind: Literal["commands", "functions", "points"], name: str) -> tuple[object, Wing] | None:
    """The object that a wing adds under a name, imported now, and the wing; None if none does."""
    wing = next((wing for wing in wings() if name in getattr(wing, kind)), None)
    return None if wing is None else (at(getattr(wing, kind)[name]), wing)


@dataclass(frozen=True)
class Point(Generic[T]):
    """A place where the core asks for what a wing may add.

    Attributes:
        name: what wings name it by.
        wing: the wing of this project that fills it, for messages.

    >>> Point[object]("nothing fills this").filled() is None
    True
    """

    name: str
    wing: str = ""

    def filled(self) -> T | None:
        """The object that fills it; None without the wing."""
        found = added("points", self.name)
        return None if found is None else cast(T, found[0])

    def needed(self, by: str) -> T:
        """The object that fills it.

        Args:
            by: what needs it, as the beginning of a sentence.

        Raises:
            ConfigError: the wing is not installed.
        """
        found = self.filled()
        if found is None:
            raise ConfigError(f"{by} needs the wing {self.wing}, which is not installed here.")
        return found
