"""Sketches of the columns of a table that has no configuration yet.

A sketch holds keys of the grammar. A key whose value is None is a gap: the grammar needs it, and no header or
description gave it. The writer marks each gap and each guess for review.

Invariant: a key comes from a header, from a description, or as a guess from the private table; keys that were
guessed are listed. The grammar accepts a fitted sketch once its gaps are filled. A refused value has become a
gap, with a note of the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, cast

from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.declaration import Declared
from dpsynth.columns.kinds import KINDS, ColumnSpec
from dpsynth.columns.section import Value
from dpsynth.config.files import FileForm
from dpsynth.wings.owner.starter.documents import Mapping as Document

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


@dataclass(frozen=True)
class Unit:
    """A guess whose rows belong together.

    Attributes:
        column: the column with the person of each row.
        max_rows: the most rows of one person that are used; a round number.
        kind: whom the column tells apart.
        question: the question to the owner, with the numbers of values and rows; "" where none is asked.
    """

    column: str
    max_rows: int
    kind: Literal["person", "household"] = "person"
    question: str = field(default="", compare=False)


@dataclass(frozen=True)
class Profile:
    """Guesses from a private table, as ``dpsynth.wings.owner.assess.profiling`` makes them.

    Attributes:
        columns: keys of the grammar by column.
        unit: the persons, if a column seems to name them.
        questions: further questions about who repeats, as sentences.
        form: the form of the file, with the lines that are no rows; None if the table is no file.
    """

    columns: Mapping[str, Mapping[str, object]]
    unit: Unit | None = None
    questions: tuple[str, ...] = ()
    form: FileForm | None = None


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
        tables: linked tables, each after its parent, in place of columns.
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
    tables: tuple[Linked, ...] = ()

    @property
    def sketches(self) -> Iterator[tuple[str, Sketch]]:
        """All columns, each with the key of the configuration under which it stands."""
        yield from (("columns", sketch) for sketch in self.columns)
        for table in self.tables:
            yield from ((f"tables.{table.name}.columns", sketch) for sketch in table.columns)

    def in_order_of(self, header: Sequence[str]) -> Draft:
        """The columns in the order of a table's header, with stubs for columns without a description.

        Columns that the header lacks are left out, with a note.
        """
        by_name = {sketch.name: sketch for sketch in self.columns}
        stub = Sketch("", dict(STUB), ("Not in the description.",))
        there = [by_name.get(name, replace(stub, name=name)) for name in header]
        told = "Described, but not in the table's header."
        absent = [replace(s, declared=None, notes=(told,)) for s in self.columns if s.name not in header]
        return replace(self, columns=(*there, *absent))

    def without(self, name: str, note: str) -> Draft:
        """The draft with a column left out, for a reason."""
        left_out = Sketch(name, None, (note,))
        return replace(self, columns=tuple(left_out if s.name == name else s for s in self.columns))

    def summary(self) -> tuple[str, ...]:
        """Sentences about the files that were read, and a warning if the description may reveal the table."""
        if self.looked:
            whose = "the tables" if self.tables else self.table or "the table"
            return (*self.origin, f"All rows of {whose} were read.", LOOKED)
        none = f"No row of the table{'s' * bool(self.tables)} was read."
        if self.searched:
            none = "Its first lines were read to see if a title stands above the header, and no other row."
        return (*self.origin, none, *([DESCRIBED] if self.described else []))

    @property
    def asked(self) -> tuple[str, ...]:
        """All questions about who repeats, that about the guessed unit first."""
        return (*([self.unit.question] if self.unit is not None else []), *self.questions)

    @property
    def to_look_at(self) -> tuple[str, ...]:
        return tuple(sketch.name for sketch in self.columns if sketch.gaps)

    def with_guesses(self, look: Profile) -> Draft:
        """The draft with gaps filled by guesses; keys with a value keep it."""
        found = cast(Mapping[str, Mapping[str, Value]], look.columns)
        typed = any(guess.get("type") is not None for guess in found.values())
        empty = {c for c, guess in found.items() if typed and guess == STUB}
        columns = tuple(
            _left_out(sketch, "no cell of it has a value.")
            if sketch.name in empty and sketch.declared == STUB
            else _guessed(sketch, found.get(sketch.name, {}))
            for sketch in self.columns
        )
        unit = look.unit if self.person is None else None
        person = self.person if unit is None else unit.column
        form = look.form or self.form
        return replace(
            self, columns=columns, looked=True, person=person, unit=unit, questions=look.questions, form=form
        )


@dataclass(frozen=True)
class Reference:
    """Columns of a table that hold the key, some columns, of a row of another table."""

    table: str
    columns: tuple[str, ...]
    above: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Linked:
    """One of several linked tables.

    Attributes:
        draft: its columns, with keys among them.
        key: the columns that tell its rows; none where nothing refers to them.
        parent: what it belongs to; None at the root, or where nothing was found.
        most: max_children, if it was guessed.
        order: order_by; "" without.
        distinct: whether the rows of one row above differ in it.
        note: sentences about its rows.
    """

    name: str
    draft: Draft
    key: tuple[str, ...] = ()
    parent: Reference | None = None
    most: int | None = None
    order: str = ""
    distinct: bool = False
    note: str = ""

    @property
    def columns(self) -> tuple[Sketch, ...]:
        """Its columns without keys, which are made anew."""
        keys = {*self.key, *(self.parent.columns if self.parent else ())}
        return tuple(sketch for sketch in self.draft.columns if sketch.name not in keys)


@dataclass(frozen=True)
class Format:
    """One format of descriptions of a table.

    Attributes:
        word: the format's word on the command line.
        name: its name in messages.
        recognised: True for a document that looks like this format.
        read: the draft of a document, from the document, the file's name, and the name of the table to
            pick of several.
        links: the tables of a document that are linked, each with its file or "", and their references.
    """

    word: str
    name: str
    recognised: Callable[[Document], bool]
    read: Callable[[Document, str, str | None], Draft]
    links: Callable[[Document, str], tuple[Mapping[str, str], Sequence[Reference]]] = lambda *_: ({}, ())


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


_GRAMMAR: TypeAdapter[ColumnSpec] = TypeAdapter(ColumnSpec)
_LONGEST_NAME = 200
_PROBLEMS = 12


def first_fit(name: str, *candidates: Declared) -> Sketch:
    """The first of some declarations that the grammar accepts; otherwise the last, with gaps."""
    for declared in candidates[:-1]:
        if _problem(declared) is None:
            return fitted(Sketch(name, declared))
    return fitted(Sketch(name, candidates[-1]))


def fitted(sketch: Sketch) -> Sketch:
    """A sketch in which refused values have become gaps, with notes of the reasons."""
    name = sketch.name
    if not name or not name.isprintable() or len(name) > _LONGEST_NAME:
        return _left_out(sketch, f"a name must have 1 to {_LONGEST_NAME} printable characters.")
    if sketch.declared is None:
        return sketch
    declared, notes = dict(sketch.declared), list(sketch.notes)
    for _ in range(_PROBLEMS):
        problem = _problem(declared)
        if problem is None:
            break
        key, words = problem
        if key is None or declared.get(key) is None:
            declared = dict(STUB)
            notes.append(f"Its description can't be used: {words}.")
        else:
            declared[key] = None
            notes.append(f"Not taken over: {key} {words}.")
    done = replace(sketch, declared=declared, notes=tuple(notes), guessed=sketch.guessed & declared.keys())
    if not done.gaps and _domain_size(declared) < 2:
        return _left_out(done, "it has one possible value only.")
    return done


def _left_out(sketch: Sketch, why: str) -> Sketch:
    """A column that is not declared, so that nothing of it is to be reviewed."""
    return replace(sketch, declared=None, guessed=frozenset()).noted(f"Left out: {why}")


def _problem(declared: Declared) -> tuple[str | None, str] | None:
    """The first key that the grammar refuses, and its message; None if it refuses nothing."""
    try:
        _GRAMMAR.validate_python(_filled(declared))
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        context = detail.get("ctx", {})
        path = [part for part in (*detail["loc"], *context.get("path", ())) if not str(part).startswith("@")]
        words = context.get("words") or "isn't supported here"
        key = next((str(part) for part in path if str(part) in declared), None)
        return key, str(words)
    return None


def _filled(declared: Declared) -> dict[str, object]:
    """A declaration with harmless values in its gaps."""
    filled: dict[str, object] = {key: value for key, value in declared.items() if value is not None}
    kind = filled.setdefault("type", "category")
    if "values" not in filled and (declared.get("type") is None or "values" in declared):
        filled["values"] = ["a value that is still to be given", "another such value"]
    gaps = [end for end in ("min", "max") if end in declared and declared[end] is None]
    if len(gaps) == 2:
        filled |= KINDS[str(kind)].STAND_INS if str(kind) in KINDS else {}
    elif gaps:
        end = declared["max" if gaps == ["min"] else "min"]
        step = (-1 if gaps == ["min"] else 1) if isinstance(end, int | Decimal) else 0
        filled[gaps[0]] = end + step if step and isinstance(end, int | Decimal) else end
    return filled


def _domain_size(declared: Declared) -> int:
    part = _GRAMMAR.validate_python(cast(dict[str, object], declared)).part("")
    return part.size if isinstance(part, Column) else 2
