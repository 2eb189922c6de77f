"""What is known of a table before there is a configuration: a sketch of each column.

A sketch holds keys of the grammar. A key whose value is None is a gap: it is needed, and nothing
that was read says it. A gap or a guess is never silent: the writer marks it for review.

Invariant: a sketch is made from a header, from a description, or (a guess) by the curator's leave
from the table; which of these it was is kept for every key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dpsynth.config.declaration import Declared
from dpsynth.config.yaml_reader import Value

LOOKED = (
    "Some of what stands here was guessed from the private table itself: minimum, maximum, values, formats. "
    "A guess is a private fact: the largest amount or a rare value may be that of one person, and whatever "
    "stands in this file is published with every release, where no noise protects it. So ask of each guess "
    "whether anyone could have known it without the table. If so, keep it. If not, put what a codebook, the "
    "law or common sense says in its place. Until then keep this file as you keep the table. Numbers were "
    "rounded outwards, and values that fewer than 10 rows have were not listed; that makes guesses less "
    "telling, not safe."
)
"""What it means that a table was looked at; printed, and written at the top of the file."""

DESCRIBED = (
    "Bounds and values are those of the description. They are public only if nobody made the description "
    "from the table: tools that infer a schema put the table's own minimum, maximum and values into it."
)

STUB: Declared = {"type": None}
"""Of a column of which only the name is known."""


@dataclass(frozen=True)
class Sketch:
    """One column.

    Attributes:
        name: as in the header.
        declared: what is known, None for what is still to be said; None as a whole: the column is
            left out of the configuration.
        notes: sentences about the column, written above it.
        guessed: keys that were guessed from the private table.
    """

    name: str
    declared: Declared | None
    notes: tuple[str, ...] = ()
    guessed: frozenset[str] = frozenset()

    @property
    def gaps(self) -> tuple[str, ...]:
        """Keys that are needed and not known."""
        return tuple(key for key, value in (self.declared or {}).items() if value is None)

    def noted(self, *notes: str) -> Sketch:
        """With more notes."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note)))


@dataclass(frozen=True)
class Draft:
    """A configuration in the making.

    Attributes:
        origin: sentences that say what was read, and what was not.
        columns: one sketch a column, in the order in which they are written.
        described: whether bounds and values come from a description, which may have been made from
            the table.
        table: path of the table as the user wrote it, where it is known.
        kind: the table's format, csv or parquet.
        separator: what stands between the cells of a CSV file.
        person: the column that says whose row it is, where a description says so.
        looked: whether the private table was looked at.
    """

    origin: tuple[str, ...]
    columns: tuple[Sketch, ...]
    described: bool = True
    table: str | None = None
    kind: str = "csv"
    separator: str = ","
    person: str | None = None
    looked: bool = False

    def in_order_of(self, header: Sequence[str]) -> Draft:
        """The same columns in the order of a table's header, and stubs for those that no description has.

        Columns that the header lacks are left out, with a note.
        """
        known = {sketch.name: sketch for sketch in self.columns}
        stub = Sketch("", dict(STUB), ("Not in the description.",))
        there = [known.get(name, replace(stub, name=name)) for name in header]
        absent = [
            replace(sketch, declared=None, notes=("Described, but not in the table's header.",))
            for sketch in self.columns
            if sketch.name not in header
        ]
        return replace(self, columns=(*there, *absent))

    def told(self) -> tuple[str, ...]:
        """What was read, and what that means, one sentence or more each."""
        if self.looked:
            return (*self.origin, f"All rows of {self.table} were read.", LOOKED)
        return (*self.origin, "No row of the table was read.", *([DESCRIBED] if self.described else []))

    @property
    def to_look_at(self) -> tuple[str, ...]:
        """The columns of which something is still to be said."""
        return tuple(sketch.name for sketch in self.columns if sketch.gaps)

    def with_guesses(self, guesses: Mapping[str, Mapping[str, object]]) -> Draft:
        """Gaps filled with guesses; what is known stays as it is.

        Args:
            guesses: keys of the grammar by column, guessed from the private table.
        """
        found = cast(Mapping[str, Mapping[str, Value]], guesses)
        columns = tuple(_guessed(sketch, found.get(sketch.name, {})) for sketch in self.columns)
        return replace(self, columns=columns, looked=True)


_NUMERIC = {"integer", "number"}


def _guessed(sketch: Sketch, guess: Mapping[str, Value]) -> Sketch:
    """A sketch with its gaps filled as far as the guess is about a column of the same type."""
    declared = sketch.declared
    if declared is None or not sketch.gaps:
        return sketch
    kind, guessed_kind = declared.get("type"), guess.get("type")
    if kind is None:
        found = {**declared, **guess}
        keys = frozenset(key for key in guess if guess[key] is not None)
    elif kind == guessed_kind or {kind, guessed_kind} == _NUMERIC:
        keys = frozenset(key for key in sketch.gaps if guess.get(key) is not None)
        found = {key: guess[key] if key in keys else value for key, value in declared.items()}
    else:
        return sketch
    return replace(sketch, declared=found, guessed=sketch.guessed | keys)
