"""A check of the private table against a config, in figures and words for its owner: ``dpsynth check``.

The table is read by the reader and the codecs of a release. Nothing is charged, and nothing is written: no
ledger, no journal, no orchestrator knows of a check. All of its result is private, as it counts exactly.

Invariant: an error names the table's file and columns, and nothing else of the table; how a check ends tells
nothing about cells.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from io import StringIO
from textwrap import fill, indent
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.accounting.slices import Slice
from dpsynth.columns.codec import Reading
from dpsynth.config import Spec
from dpsynth.config.files.opening import unheard
from dpsynth.curator import Batch, MemoryTable, as_texts
from dpsynth.curator.loaded_rows import in_slice
from dpsynth.curator.rows.csv_lines import BrokenRows
from dpsynth.curator.rows.files import names_of
from dpsynth.errors import SourceError
from dpsynth.pipeline.inputs import (
    Inputs,
    LinkedRows,
    cells_of,
    file_of,
    inputs_of,
    names_to_read,
    table_of_rows,
)
from dpsynth.pipeline.reservation import Occasion, occasion_of
from dpsynth.pipeline.steps import guarded
from dpsynth.wing import Point
from dpsynth.wings.owner.assess.findings import (
    TUNED,
    Finding,
    UnitTally,
    column_findings,
    listed,
    source_findings,
)
from dpsynth.wings.owner.assess.proposals import ObedienceTally, Proposal, Words, about_rules, proposals
from dpsynth.wings.owner.assess.row_sample import ColumnTally, PersonTally, RowSample, TypedRows
from dpsynth.wings.owner.assess.steps import StepTally

if TYPE_CHECKING:
    import pandas as pd


def counts(tally: ColumnTally) -> dict[str, int]:
    """The numbers of cells of a column by how they are read."""
    return {
        "cells": tally.cells,
        "read": tally.values,
        "below_min": tally.count(Reading.BELOW),
        "above_max": tally.count(Reading.ABOVE),
        "other": tally.count(Reading.OTHER),
        "missing": tally.missing,
        "unread": tally.count(Reading.NONE),
    }


def in_words(found: Check, width: int = 80) -> str:
    """A check in words: a line a column, then each finding with its remedy.

    A line is no wider than asked for, but for a key to be written, which is never broken.
    """
    of = "" if found.period is None else f" of {found.period}; {found.outside:,} rows of other periods"
    lines = [f"{found.rows:,} rows{of}, read as a release reads them. Nothing was charged or kept."]
    persons = found.persons
    if persons is not None:
        median, ninety, ninety_nine, most = persons.spread
        lines.append(
            f"{persons.number:,} persons by {persons.column}. Rows of one: {median:,} (median), {ninety:,} "
            f"(90 %), {ninety_nine:,} (99 %), {most:,} (most)."
        )
    lines += ["", *_table(found, width)]
    if found.findings:
        lines += _findings(found.findings, width)
    else:
        lines.append("\nEvery cell is read as it stands. Nothing to change.")
    return "\n".join(lines)


def _table(found: Check, width: int) -> list[str]:
    """A line a column, below a heading."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    names = ("column", "type", "read", "clipped", "other", "missing", "unread")
    for name in names:
        table.add_column(
            name,
            justify="left" if name in names[:2] else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=24 if name == "column" else None,
        )
    for tally in found.columns:
        cells = counts(tally)
        clipped = cells["below_min"] + cells["above_max"]
        numbers = (clipped, cells["other"], cells["missing"], cells["unread"])
        table.add_row(
            Text(tally.column.name),
            found.types[tally.column.name],
            _share(cells["read"], cells["cells"]),
            *(f"{number:,}" if number else "" for number in numbers),
        )
    written = StringIO()
    # In a notebook rich would show the table there, and write nothing.
    plain = Console(file=written, highlight=False, width=width, color_system=None, force_jupyter=False)
    plain.print(table)
    return [line.rstrip() for line in written.getvalue().splitlines()]


def _share(part: int, whole: int) -> str:
    """A share in per cent, never rounded to all or to nothing.

    >>> _share(99_999, 100_000), _share(3, 3), _share(0, 5), _share(1, 100_000)
    ('99.9 %', '100 %', '0 %', '0.1 %')
    """
    if not part or part == whole:
        return f"{100 if part else 0} %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _findings(found: Sequence[Finding], width: int) -> list[str]:
    lines, about = [], ""
    for finding in found:
        if finding.about != about:
            lines.append(f"\n{finding.about}")
            about = finding.about
        lines.append(_paragraph(f"{finding.what}.", 2, width))
        if finding.remedy:
            end = ":" if finding.write else "."
            lines.append(_paragraph(f"{finding.remedy}{end}", 4, width))
        if finding.write:
            lines.append(indent(finding.write, " " * 6))
    if any(finding.tuned for finding in found):
        lines.append(f"\n{_paragraph(TUNED, 0, width)}")
    return lines


def _paragraph(text: str, indented: int, width: int) -> str:
    blanks = " " * indented
    return fill(f"{text[:1].upper()}{text[1:]}", width, initial_indent=blanks, subsequent_indent=blanks)


_ANY_DAY = (date(1, 1, 1), date(9999, 12, 31))


@dataclass(frozen=True, eq=False)
class Persons:
    """Rows of each person.

    Attributes:
        column: the column of the person.
        number: number of persons.
        most: the contribution bound; the largest one that may be found, if it is to be found.
        searched: True if the bound is to be found.
        spread: quantiles of the rows of a person: 0.5, 0.9, 0.99 and 1.
        crowded: persons with more rows than the bound.
        dropped: their rows beyond the bound, which a release leaves out.
        nameless: rows without an id.
    """

    column: str
    number: int
    most: int
    searched: bool
    spread: tuple[int, int, int, int]
    crowded: int
    dropped: int
    nameless: int


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """The result of a check. Private: it holds exact counts and cells.

    Attributes:
        source: the private table: its file, or the words for its database.
        rows: rows that a release would read, before contribution bounding.
        period: label of the slice of a release; None without periods.
        outside: rows of other slices.
        columns: the tally of each column.
        types: the declared type of each column.
        persons: rows of each person; None where rows are the units.
        findings: the findings, those about the file first; then by column; then relations between columns.
    """

    source: str
    rows: int
    period: str | None
    outside: int
    columns: tuple[ColumnTally, ...]
    types: Mapping[str, str]
    persons: Persons | None
    findings: tuple[Finding, ...]

    @property
    def warning(self) -> str:
        """The first line of whatever shows it."""
        return f"PRIVATE: exact counts and cells of {self.source}, for its owner alone. Don't share this."

    @property
    def frame(self) -> pd.DataFrame:
        """The cells of each column by how they are read, as a pandas table. Private."""
        import pandas as pd

        kinds = [{"column": t.column.name, "type": self.types[t.column.name]} for t in self.columns]
        return pd.DataFrame([kind | counts(t) for kind, t in zip(kinds, self.columns, strict=True)])

    def __repr__(self) -> str:
        return f"{self.warning}\n\n{in_words(self)}"


@unheard()
def check(spec: Spec, period: str | None = None, table: MemoryTable | None = None) -> Check:
    """The check of a config's table.

    Args:
        period: label of the slice to check, if the config has periods; left out: the last whole one.
        table: a private table in memory, in place of the config's file.

    Raises:
        ConfigError: there is no plan, or the period is none.
        SourceError: the table can't be read.
        StepFailed: an unforeseen error, its details withheld.
    """
    inputs = inputs_of(spec, table)
    occasion = occasion_of(spec, datetime.now(UTC), period)
    return guarded("check the table", lambda: _checked(inputs, occasion))


Links = tuple[LinkedRows, Iterable[tuple[str, int, str, str, str]], Words]

LINKS: Point[Callable[[Spec, MemoryTable | None], Links]] = Point("check of links", "tables")
"""Linked tables, read once; after that, findings about links: key, rows, sentence, remedy, keys; words."""


def _checked(inputs: Inputs, occasion: Occasion) -> Check:
    if inputs.spec.tables is not None:
        rows, links, words = LINKS.needed("tables")(inputs.spec, inputs.table)
        names = names_to_read(inputs, occasion)
        tallying = _Tallying(inputs, occasion, names, words)
        tallying.tally(rows.batches(names), lambda: rows.batches(names))
        return tallying.check("the linked tables", [Finding(*found) for found in links])
    names = _all_names(inputs, occasion)
    broken, tallying = BrokenRows(), _Tallying(inputs, occasion, names)
    tallying.tally(cells_of(inputs, occasion, broken, names), lambda: cells_of(inputs, occasion))
    source = inputs.spec.source
    if inputs.table is not None:
        return tallying.check("the table in memory", ())
    if source.in_database:
        return tallying.check(source.url or f"the database of {source.url_from}", ())
    path, form = file_of(inputs)
    keeps_broken = inputs.plan.neighbours.person is None
    about_file = source_findings(path, form, broken, tallying.headers, keeps_broken=keeps_broken)
    return tallying.check(str(path), list(about_file))


def _all_names(inputs: Inputs, occasion: Occasion) -> list[str]:
    """Names of the columns that a release reads, and of all others that can be read by their name."""
    table, names = table_of_rows(inputs), names_to_read(inputs, occasion)
    counted = Counter(names_of(*file_of(inputs)) if table is None else table.names)
    others = [name for name, count in counted.items() if name and count == 1 and name not in names]

    def readable(columns: Sequence[str]) -> bool:
        try:
            next(cells_of(inputs, occasion, columns=columns), None)
        except SourceError:
            return False
        return True

    # A column that nobody declared may hold lists, which no release reads.
    return [*names, *(others if not others or readable(others) else [n for n in others if readable([n])])]


class _Tallying:
    def __init__(
        self, inputs: Inputs, occasion: Occasion, names: Sequence[str], words: Words | None = None
    ) -> None:
        near, self._words = inputs.plan.neighbours, words
        self._near, self._part = near, occasion.part
        self._searched = bool(inputs.plan.bound_price)
        columns = [column for column in inputs.compiled.columns if not column.part_of]
        declared = {column.name: inputs.spec.columns[column.name] for column in columns}
        self._columns = [ColumnTally(c, hasattr(declared[c.name], "values")) for c in columns]
        self._types = {name: of.type for name, of in declared.items()}
        self._layout = inputs.compiled.layout
        self._obeyed, self._sample = ObedienceTally(inputs.compiled.rules), RowSample(self._layout)
        self._proposed: tuple[Proposal, ...] = ()
        self._units = UnitTally(names, inputs.compiled.columns, rows=near.person is None)
        key = secrets.token_bytes(32)
        one_row_each = near.person is None or inputs.spec.tables is not None
        self._persons = None if one_row_each else PersonTally(near, key)
        history, ruled = inputs.spec.privacy.history, bool(inputs.spec.constraints)
        self._steps = None if history is None else StepTally(self._layout, history, ruled=ruled)
        self._rows = self._outside = self._undated = self.headers = 0

    def _add(self, read: Mapping[str, pa.StringArray]) -> None:
        batch = self._without_headers(dict(read))
        if self._part is not None:
            batch = self._within(batch, self._part)
        self._rows += len(next(iter(batch.values())))
        for tally in self._columns:
            tally.add(batch[tally.column.name])
        self._obeyed.add(TypedRows(self._layout, batch))
        self._sample.add(batch)
        self._units.add(batch)
        if self._persons is not None:
            persons = self._persons.add(batch)
            if self._steps is not None:
                self._steps.add(batch, persons)

    def tally(self, batches: Iterable[Batch], again: Callable[[], Iterable[Batch]]) -> None:
        """Count all rows, and look for rules in them; ``again`` reads them once more."""
        for batch in as_texts(batches):
            self._add(batch)
        self._proposed = proposals(
            self._sample,
            self._obeyed.rules,
            self._layout,
            lambda: map(self._typed, as_texts(again())),
            self._words,
        )

    def _typed(self, batch: Mapping[str, pa.StringArray]) -> TypedRows:
        """The rows of a batch that belong to a release."""
        if self._part is not None:
            inside = in_slice(batch[self._part.column], self._part)
            batch = {name: cells.filter(inside) for name, cells in batch.items()}
        return TypedRows(self._layout, batch)

    def _without_headers(self, batch: dict[str, pa.StringArray]) -> dict[str, pa.StringArray]:
        """The rows that are not the header once more."""
        named = (pc.fill_null(pc.equal(cells, name), False) for name, cells in batch.items())
        header = reduce(pc.and_, named)
        found = int(pc.sum(header).as_py() or 0)
        if not found:
            return batch
        self.headers += found
        return {name: cells.filter(pc.invert(header)) for name, cells in batch.items()}

    def _within(self, batch: Mapping[str, pa.StringArray], part: Slice) -> dict[str, pa.StringArray]:
        """The rows of a slice; all others are counted."""
        cells = batch[part.column]
        inside = in_slice(cells, part)
        self._outside += len(cells) - int(pc.sum(inside).as_py() or 0)
        if part.start is not None:
            dated = in_slice(cells, Slice(part.column, "any", *_ANY_DAY))
            self._undated += len(cells) - int(pc.sum(dated).as_py() or 0)
        return {name: c.filter(inside) for name, c in batch.items()}

    def check(self, source: str, about_file: Sequence[Finding]) -> Check:
        persons = self._counted_persons()
        findings = [*about_file, *self._about_period(), *_about_persons(persons), *self._units.findings()]
        findings += self._about_history(persons) if self._steps is None else self._steps.findings()
        for tally in self._columns:
            findings += column_findings(tally)
        findings += about_rules(self._obeyed.found(), self._proposed, self._words)
        label = None if self._part is None else self._part.label
        return Check(
            source=source,
            rows=self._rows,
            period=label,
            outside=self._outside,
            columns=tuple(self._columns),
            types=self._types,
            persons=persons,
            findings=tuple(findings),
        )

    def _about_period(self) -> Iterator[Finding]:
        if self._part is None:
            return
        name = self._part.column
        if self._undated:
            yield Finding(
                name,
                self._undated,
                f"{self._undated:,} rows without a date in ISO 8601, so in no period and no release",
                "write dates as 2026-03-14 in the table",
            )
        elif not self._rows:
            yield Finding(
                name, 0, f"no row of {self._part.label}", "see if the period, or the column, is another"
            )

    def _about_history(self, persons: Persons | None) -> Iterator[Finding]:
        """That synthetic rows are nobody's, where a tenth of the persons have several rows, or more."""
        if persons is None or persons.most == 1 or persons.spread[1] == 1:
            return
        ordered = [t.column.name for t in self._columns if t.column.codec.ordered and not t.column.search]
        by = sorted(ordered, key=lambda name: self._types[name] not in ("date", "datetime"))
        if by:
            yield Finding(
                "privacy.unit",
                0,
                "each synthetic row stands by itself: no rows of one person follow each other in the release",
                f"if they should, name there what orders them, such as {listed(by[:3], 'or')}, and "
                f"declare {persons.column} as {{type: identifier, surrogates: true}}",
                f"history: {{order_by: {by[0]}}}",
            )

    def _counted_persons(self) -> Persons | None:
        if self._persons is None:
            return None
        rows, nameless = self._persons.rows()
        most = self._near.max_rows
        spread = np.quantile(rows, (0.5, 0.9, 0.99, 1.0), method="higher") if len(rows) else np.zeros(4)
        median, ninety, ninety_nine, largest = (int(n) for n in spread)
        return Persons(
            column=str(self._near.person),
            number=len(rows),
            most=most,
            searched=self._searched,
            spread=(median, ninety, ninety_nine, largest),
            crowded=int((rows > most).sum()),
            dropped=int(np.maximum(rows - most, 0).sum()),
            nameless=nameless,
        )


def _about_persons(persons: Persons | None) -> Iterator[Finding]:
    if persons is None:
        return
    about = "privacy.unit"
    if persons.crowded:
        bound = "at_most" if persons.searched else "max_rows"
        yield Finding(
            about,
            persons.dropped,
            f"{persons.crowded:,} persons with more than {persons.most:,} rows ({bound}): "
            f"{persons.dropped:,} rows are left out",
            f"raise {bound} if that is too many; noise grows with it",
            tuned=True,
        )
    elif persons.number and not persons.searched and persons.spread[3] < persons.most:
        yield Finding(
            about,
            0,
            f"nobody has more than {persons.spread[3]:,} rows, and max_rows is {persons.most:,}: noise is "
            "larger than these rows need",
            "give a smaller max_rows if it is known without the table, or let a release find it",
            "max_rows: private",
            tuned=True,
        )
    if persons.nameless:
        yield Finding(
            about,
            persons.nameless,
            f"{persons.nameless:,} rows of nobody: {persons.column} is empty there, or says nothing",
            "see to the table; missing: together in privacy.unit takes them as one person's",
        )
