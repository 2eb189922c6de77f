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
from typing import Generic, TypeVar, cast

T = TypeVar("T")

LISTED = ("owner", "proof", "local", "cluster")
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
    """What an address names, imported now."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def function(name: str) -> object | None:
    """What the wings add to ``import dpsynth`` under a name; None if none does."""
    address = next((wing.functions[name] for wing in wings() if name in wing.functions), None)
    return None if address is None else at(address)


class Point(Generic[T]):
    """A place where the core asks for what a wing may add.

    >>> Point[object]("nothing fills this").filled() is None
    True
    """

    def __init__(self, name: str) -> None:
        """A point of the core.

        Args:
            name: what wings name it by.
        """
        self.name = name

    def filled(self) -> T | None:
        """What fills it; None without the wing."""
        address = next((wing.points[self.name] for wing in wings() if self.name in wing.points), None)
        return None if address is None else cast(T, at(address))
