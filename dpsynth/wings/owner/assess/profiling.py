"""Profiling of the private table before there is a configuration: ``dpsynth init --look``.

This is the only reading of the table outside a release. It costs no budget because nothing of it is
released: guesses go into the owner's starter file with marks, and a configuration with marks is refused.
Lines that are no rows, such as second headers and rows of totals, are among the guesses.

Invariant: an error names the table's file and columns, and nothing else of the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.kinds import ColumnSpec
from dpsynth.columns.number_texts import parse_numbers
from dpsynth.config.files import FileForm
from dpsynth.config.files.opening import unheard
from dpsynth.curator import MemoryTable
from dpsynth.curator.rows.cell_texts import as_texts
from dpsynth.curator.rows.files import read_batches
from dpsynth.errors import ConfigError
from dpsynth.pipeline.steps import guarded
from dpsynth.wings.owner.assess.column_guesses import profile
from dpsynth.wings.owner.starter.sketch import Profile

Batches = Callable[[FileForm], Iterable[Mapping[str, pa.StringArray]]]

_FIRST = 500
"""Rows by which a second header is told from rows."""

_FEWEST = 10

_MOST_LINES = 3

_MOST_TOTALS = 200
"""Most rows that may be totals, and the least of the two: a share of all."""

_SHARE = 0.05

_BLANK = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-", "--", "."))

_NUMERIC = re.compile(r"[^A-Za-z]*[0-9][^A-Za-z]*")

_WORDS = (
    r"(?i)^(grand[ -]?|sub[ -]?|over)?totals?\b|\b(sub)?total$|^(gesamt|zwischen|end)?summen?\b|\bsumme$|"
    r"^(ins)?gesamt(ergebnis)?\b|\b(ins)?gesamt$|^(totale|totaux|sous-total|somme|suma|razem|subtotaal|totaal|"
    r"sum|sums|итого|всего|сумма|合计|总计|小计|合計|小計)\b"
)
"""Words that tell a total, in languages of clinics, banks and offices."""


def with_layout(form: FileForm, read: Batches) -> FileForm:
    """The form of a file, with the lines below its header and the totals that are no rows.

    Args:
        form: the form so far.
        read: reads the table by a form.
    """
    form = replace(form, skip=_second_headers(read(form))) if form.kind != "parquet" else form
    tally = _Totals()
    for batch in read(form):
        tally.add(batch)
    named = replace(form, totals=tally.named())
    if named.totals or not (last := tally.last_row()):
        return named
    # A text of the last row tells it only if no other row has it.
    left = sum(len(next(iter(batch.values()))) for batch in read(replace(form, totals=last)))
    return replace(form, totals=last) if left == tally.rows - 1 else form


def _second_headers(batches: Iterable[Mapping[str, pa.StringArray]]) -> int:
    """Number of lines below the header that have words, or nothing, where the rows have numbers."""
    first = next(iter(batches), {})
    cells = {name: [_plain(c) for c in texts[:_FIRST].to_pylist()] for name, texts in first.items()}
    numeric = [c for c in cells.values() if _is_numeric(c[_MOST_LINES:])]
    if not numeric:
        return 0
    lines = 0
    for line in range(_MOST_LINES):
        there = [c[line] for c in numeric if c[line]]
        words = [c for c in there if not _NUMERIC.fullmatch(c)]
        if len(words) < max(1, len(numeric) / 2) or len(words) < len(there):
            break
        lines += 1
    return lines


def _plain(cell: str | None) -> str:
    text = (cell or "").strip()
    return "" if text.casefold() in _BLANK else text


def _is_numeric(cells: list[str]) -> bool:
    there = [c for c in cells if c]
    return len(there) >= _FEWEST and sum(map(bool, map(_NUMERIC.fullmatch, there))) >= 0.98 * len(there)


@dataclass(eq=False)
class _Totals:
    """Rows with a word for a total, and sums of the columns of all other rows.

    Attributes:
        rows: number of rows.
        words: for each column with such words, the rows that have one.
        sums: sums of each column of numbers over all rows.
        filled: filled cells of each column.
        last: the last row.
    """

    rows: int = 0
    words: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        texts = {name: pc.fill_null(pc.utf8_trim_whitespace(cells), "") for name, cells in batch.items()}
        rows = len(next(iter(texts.values())))
        if not rows:
            return
        self.rows += rows
        self.last = {name: cells[rows - 1].as_py() for name, cells in texts.items()}
        for name, cells in texts.items():
            numbers = parse_numbers(cells)
            usable = np.where(np.abs(numbers) < 1e15, numbers, 0.0)
            self.sums[name] = self.sums.get(name, 0.0) + float(np.nansum(usable))
            self.filled[name] = self.filled.get(name, 0) + int(pc.sum(pc.not_equal(cells, "")).as_py() or 0)
            hits = np.flatnonzero(np.asarray(pc.match_substring_regex(cells, _WORDS)))
            known = self.words.setdefault(name, [])
            for spot in hits[: _MOST_TOTALS + 1 - len(known)].tolist():
                known.append({other: column[spot].as_py() for other, column in texts.items()})

    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The columns with the texts that tell a total, for which the rows speak too."""
        most = min(_MOST_TOTALS, max(int(_SHARE * self.rows), 1))
        for name, rows in self.words.items():
            if 1 <= len(rows) <= most and (self._sparse(name, rows) or self._summed(rows)):
                return ((name, tuple(sorted({row[name] for row in rows}))),)
        return ()

    def _sparse(self, name: str, rows: list[dict[str, str]]) -> bool:
        """True if other columns that are filled elsewhere, and aren't numbers, are empty in these rows."""
        usual = [
            other
            for other, count in self.filled.items()
            if other != name and count >= 0.9 * (self.rows - len(rows)) and not self.sums[other]
        ]
        empty = [not row[other] for row in rows for other in usual]
        return bool(usual) and float(np.mean(empty)) >= 0.8

    def _summed(self, rows: list[dict[str, str]]) -> bool:
        """True if a number of one of these rows is the sum of its column in all other rows."""
        for name in self.sums:
            numbers = [_number(row[name]) for row in rows]
            rest = self.sums[name] - float(np.nansum(numbers))
            if rest and any(_alike(number, rest) for number in numbers):
                return True
        return False

    def last_row(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The last row's text, or the cell that is empty there alone, if two of its numbers are sums."""
        numbers = {name: _number(cell) for name, cell in self.last.items()}
        sums = [n for n, number in numbers.items() if self.rows > 2 and _alike(number, self.sums[n] - number)]
        texts = [n for n, cell in self.last.items() if cell and np.isnan(numbers[n]) and n not in sums]
        texts += [n for n, cell in self.last.items() if not cell and self.filled[n] == self.rows - 1]
        return ((texts[0], (self.last[texts[0]],)),) if len(sums) >= 2 and texts else ()


def _number(cell: str) -> float:
    return float(parse_numbers(pa.array([cell]))[0])


def _alike(number: float, total: float) -> bool:
    """True if a number is a total, up to what rounding its parts may make."""
    return abs(number) > 1 and abs(number - total) <= 1e-6 * abs(total) + 0.005


_STEP = "look at the table"

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

    rows = guarded(_STEP, lambda: with_layout(form, read))
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
        return iter(self.read())


@unheard()
def _looked(batches: Rereadable, columns: Sequence[str], person: str | None = None) -> Profile:
    return guarded(_STEP, lambda: profile(batches if columns else (), columns, person, column_of))


def column_of(guess: Mapping[str, object]) -> Column | None:
    """The column that a guess describes; None if something of it is still to be filled in."""
    try:
        part = _GRAMMAR.validate_python(dict(guess)).part("")
    except ValidationError:
        return None
    return part if isinstance(part, Column) else None
