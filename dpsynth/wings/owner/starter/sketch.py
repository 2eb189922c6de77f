"""Sketches of the columns of a table that has no configuration yet.

A sketch holds keys of the grammar. A key whose value is None is a gap: the grammar needs it, and no
header or description gave it. The writer marks each gap and each guess for review.

Invariant: a key comes from a header, from a description, or as a guess from the private table; keys that
were guessed are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from dpsynth.columns.declaration import Declared
from dpsynth.columns.section import Value
from dpsynth.config.files import FileForm

LOOKED = (
    "What stands here was guessed from the private table itself, so it is a private fact: bounds that were "
    "tuned to the table, and lists of its values, are published with every release, where no noise protects "
    "them. Ask of each guess whether anyone could have known it without the table. If so, keep it. If not, "
    "put what a codebook, the law or common sense says in its place. Until then keep this file as you keep "
    "the table. Bounds were rounded outwards from what 10 rows reach, or 10 persons where rows belong "
    "together, and values that fewer have were not listed; that makes guesses less telling, not safe."
)
"""Warning after a look at the private table; printed, and written at the top of the file."""

DESCRIBED = (
    "Bounds and values are those of the description. They are public only if nobody made the description "
    "from the table: tools that infer a schema put the table's own minimum, maximum and values into it."
)


class Unit(Protocol):
    """A guess whose rows belong together: those with one value of a column, and how many of them are used."""

    @property
    def column(self) -> str:
        """The column with the person of each row."""
        ...

    @property
    def max_rows(self) -> int:
        """The most rows of one person that are used."""
        ...

    @property
    def kind(self) -> str:
        """Whom the column tells apart: person or household."""
        ...

    @property
    def question(self) -> str:
        """The question to the owner; it has exact counts."""
        ...


class Look(Protocol):
    """Guesses from the private table, as ``dpsynth.wings.owner.assess.profiling`` makes them."""

    @property
    def columns(self) -> Mapping[str, Mapping[str, object]]:
        """Keys of the grammar by column."""
        ...

    @property
    def unit(self) -> Unit | None:
        """The persons, if a column seems to name them."""
        ...

    @property
    def questions(self) -> tuple[str, ...]:
        """Further questions about who repeats, as sentences."""
        ...

    @property
    def form(self) -> FileForm | None:
        """The form of the file, with the lines that are no rows; None if the table is no file."""
        ...


STUB: Declared = {"type": None}
"""Declaration of a column of which only the name is known."""


@dataclass(frozen=True)
class Sketch:
    """One column.

    Attributes:
        name: the name in the header.
        declared: keys of the grammar, with None for a gap; None in place of all keys: the column is left
            out of the configuration.
        notes: sentences about the column, written above it.
        guessed: keys that were guessed from the private table.
    """

    name: str
    declared: Declared | None
    notes: tuple[str, ...] = ()
    guessed: frozenset[str] = frozenset()

    @property
    def gaps(self) -> tuple[str, ...]:
        """Keys that the grammar needs and that have no value."""
        return tuple(key for key, value in (self.declared or {}).items() if value is None)

    def noted(self, *notes: str) -> Sketch:
        """The sketch with more notes."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note)))


@dataclass(frozen=True)
class Draft:
    """A configuration in the making.

    Attributes:
        origin: sentences about the files that were read.
        columns: one sketch a column, in the order in which they are written.
        described: True if bounds and values come from a description, which may have been made from the
            table.
        table: path of the table as the user wrote it; None if no table was named.
        form: the form of the table's file.
        person: the column with the person of each row, if a description names it, or if it was guessed.
        unit: the guess of whose rows belong together, if there is one.
        questions: questions about who repeats, from the private table.
        looked: True if the private table was profiled.
        searched: True if some lines were read to see if the first one is a title.
    """

    origin: tuple[str, ...]
    columns: tuple[Sketch, ...]
    described: bool = True
    table: str | None = None
    form: FileForm = field(default_factory=FileForm)
    person: str | None = None
    unit: Unit | None = None
    questions: tuple[str, ...] = ()
    looked: bool = False
    searched: bool = False

    def in_order_of(self, header: Sequence[str]) -> Draft:
        """The columns in the order of a table's header, with stubs for columns without a description.

        Columns that the header lacks are left out, with a note.
        """
        by_name = {sketch.name: sketch for sketch in self.columns}
        stub = Sketch("", dict(STUB), ("Not in the description.",))
        there = [by_name.get(name, replace(stub, name=name)) for name in header]
        absent = [
            replace(sketch, declared=None, notes=("Described, but not in the table's header.",))
            for sketch in self.columns
            if sketch.name not in header
        ]
        return replace(self, columns=(*there, *absent))

    def summary(self) -> tuple[str, ...]:
        """Sentences about the files that were read, and a warning if the description may reveal the table."""
        if self.looked:
            return (*self.origin, f"All rows of {self.table or 'the table'} were read.", LOOKED)
        none = "No row of the table was read."
        if self.searched:
            none = "Its first lines were read to see if a title stands above the header, and no other row."
        return (*self.origin, none, *([DESCRIBED] if self.described else []))

    @property
    def asked(self) -> tuple[str, ...]:
        """All questions about who repeats, that about the guessed unit first."""
        return (*([self.unit.question] if self.unit is not None else []), *self.questions)

    @property
    def to_look_at(self) -> tuple[str, ...]:
        """Names of the columns with gaps."""
        return tuple(sketch.name for sketch in self.columns if sketch.gaps)

    def with_guesses(self, look: Look) -> Draft:
        """The draft with gaps filled by guesses; keys with a value keep it."""
        found = cast(Mapping[str, Mapping[str, Value]], look.columns)
        columns = tuple(_guessed(sketch, found.get(sketch.name, {})) for sketch in self.columns)
        unit = look.unit if self.person is None else None
        person = self.person if unit is None else unit.column
        form = look.form or self.form
        return replace(
            self,
            columns=columns,
            looked=True,
            person=person,
            unit=unit,
            questions=look.questions,
            form=form,
        )


_NUMERIC = {"integer", "number"}
_OFFERED = ("unit", "parts", "step")
"""Keys that a guess may add to a column whose kind was known: none of them says what a cell means."""


def _guessed(sketch: Sketch, guess: Mapping[str, Value]) -> Sketch:
    """A sketch with its gaps filled, if the guess is of a column of the same type."""
    declared = sketch.declared
    if declared is None or not sketch.gaps:
        return sketch
    kind, guessed_kind = declared.get("type"), guess.get("type")
    if (kind, guessed_kind) == ("datetime", "date"):
        # A program's datetimes that all lie at midnight stay datetimes.
        guess = {**guess, "type": "datetime", "step": "day"}
        guessed_kind = "datetime"
    if kind is None or guessed_kind == "identifier":
        # Identifiers are no columns, whatever type a program keeps them in.
        found = dict(guess) if guessed_kind == "identifier" else {**declared, **guess}
        keys = frozenset(key for key in guess if guess[key] is not None)
    elif kind == guessed_kind or {kind, guessed_kind} == _NUMERIC:
        keys = frozenset(key for key in sketch.gaps if guess.get(key) is not None)
        found = {key: guess[key] if key in keys else value for key, value in declared.items()}
        offered = {key: guess[key] for key in _OFFERED if key in guess and key not in declared}
        found, keys = {**found, **offered}, keys | offered.keys()
    else:
        return sketch
    return replace(sketch, declared=found, guessed=sketch.guessed | keys)
