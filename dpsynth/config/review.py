"""The list of keys that a person must still check in a configuration that ``dpsynth init`` wrote.

They are the keys that ``dpsynth init`` guessed from the private table, or left open.

Invariant: while the list is not empty nothing is planned or run; only the owner's check reads a table by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.config.scalars import EMPTY, Checked, JsonSchema
from dpsynth.config.section import refused
from dpsynth.errors import ConfigError

_SHOWN = 5
_LONGEST = 80


def refuse_unreviewed(listed: object) -> None:
    """Refuse a list of keys that is not empty, before anything else is said about the configuration."""
    if listed is None:
        raise refused(EMPTY, "review")
    if not isinstance(listed, list | tuple) or not all(isinstance(key, str) for key in listed):
        raise refused("must be a list of keys, such as [columns.age.max], or be left out", "review")
    if listed:
        names = ", ".join(key if len(key) <= _LONGEST else f"{key[:_LONGEST]}…" for key in listed[:_SHOWN])
        more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        raise refused(
            f"still lists {names}{more}. Each of these was guessed, or is to be filled in. See to it that it "
            "is right and that anyone could know it without the table; then take it out of the list. Nothing "
            "is planned or run until the list is empty",
            "review",
        )


@dataclass(frozen=True)
class Unreviewed(Checked):
    """A list of keys, which must be empty."""

    def check(self, value: object) -> tuple[str, ...]:
        """The empty list."""
        refuse_unreviewed(value)
        return ()

    def json_schema(self) -> JsonSchema:
        """A list of strings."""
        return {"type": "array", "items": {"type": "string"}}


class Guessed(dict[str, object]):
    """A column's declaration with keys that were guessed from the private table, or are to be filled in.

    It is refused as it is: someone has to hand over what they reviewed as a plain dict.
    """


def refuse_guessed(columns: object) -> None:
    """Refuse declarations that are still guesses, in a configuration that is given in Python.

    Raises:
        ConfigError: some are; the message names their columns.
    """
    listed = columns.items() if isinstance(columns, Mapping) else ()
    names = [str(name)[:_LONGEST] for name, declared in listed if isinstance(declared, Guessed)]
    guessed = [f"columns.{name}" for name in names]
    if guessed:
        more = f" and {len(guessed) - _SHOWN:,} more" if len(guessed) > _SHOWN else ""
        raise ConfigError(
            f"Not reviewed yet: {', '.join(guessed[:_SHOWN])}{more}. Each was guessed from the table, or is "
            "to be filled in. See to it that it is right and that anyone could know it without the table; "
            "then hand over what you have reviewed: columns=description.reviewed()."
        )
