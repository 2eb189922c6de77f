"""Profiling of the private table before there is a configuration: ``dpsynth init --look``.

This is the only reading of the table outside a release. It costs no budget because nothing of it is
released: guesses go into the owner's starter file with marks, and a configuration with marks is refused.

Invariant: an error names the table's file and columns, and nothing else of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.config.columns import ColumnSpec
from dpsynth.config.files import FileForm
from dpsynth.config.files.opening import unheard
from dpsynth.curator import MemoryTable
from dpsynth.curator.cell_texts import as_texts
from dpsynth.curator.source import read_batches
from dpsynth.errors import ConfigError, DpsynthError, StepFailed
from dpsynth.wings.owner.assess.column_guesses import Profile, profile
from dpsynth.wings.owner.assess.file_layout import with_layout

Found = TypeVar("Found")
_GRAMMAR: TypeAdapter[ColumnSpec] = TypeAdapter(ColumnSpec)


def look_at(table: str | None, form: FileForm, columns: Sequence[str], person: str | None = None) -> Profile:
    """Guesses of the declarations of some columns of a private table, and of its unit.

    Args:
        table: the table's path.
        form: the form of its file.
        columns: the only columns to profile.
        person: the column with the person of each row, if a description names it.

    Returns:
        Keys of the grammar by column, whose rows belong together, and which lines are no rows.

    Raises:
        ConfigError: no table was named.
        SourceError: the table can't be opened, or lacks a column.
        StepFailed: an unforeseen error, its details withheld.
    """
    if table is None:
        raise ConfigError("--look needs the table that is to be looked at. Give it with --table.")
    if not columns:
        return Profile({})
    names = list(dict.fromkeys([*columns, *([] if person is None else [person])]))

    def read(form: FileForm) -> Rereadable:
        return Rereadable(lambda: read_batches(Path(table), names, form, keep_broken=False))

    rows = _plainly(lambda: with_layout(form, read))
    return replace(_looked(read(rows), columns, person), form=rows)


def look_in_memory(table: MemoryTable, columns: Sequence[str]) -> Profile:
    """Guesses of the declarations of some columns of a private table in memory; see ``look_at``.

    Raises:
        SourceError: the table lacks a column.
        StepFailed: an unforeseen error, its details withheld.
    """
    return _looked(Rereadable(lambda: as_texts(table.batches(columns))), columns)


@dataclass(frozen=True)
class Rereadable:
    """Batches that are read from the table anew each time they are gone through."""

    read: Callable[[], Iterable[Mapping[str, pa.StringArray]]]

    def __iter__(self) -> Iterator[Mapping[str, pa.StringArray]]:
        """The batches, from the first."""
        return iter(self.read())


@unheard()
def _looked(batches: Rereadable, columns: Sequence[str], person: str | None = None) -> Profile:
    return _plainly(lambda: profile(batches, columns, person, _column_of))


def _column_of(guess: Mapping[str, object]) -> Column | None:
    """The column that a guess describes; None if something of it is still to be filled in."""
    try:
        part = _GRAMMAR.validate_python(dict(guess)).part("")
    except ValidationError:
        return None
    return part if isinstance(part, Column) else None


def _plainly(look: Callable[[], Found]) -> Found:
    """The result of a look, or an error that tells nothing of cells."""
    try:
        return look()
    except DpsynthError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        failure = StepFailed.of("look at the table", error)
    raise failure
