"""Public data: totals that a release need not measure and must agree with, and a table as evidence.

Invariant: a file of totals is part of the config, read with it and never again; the section of a public table
names its file and never opens it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import Field, PrivateAttr, model_validator

from dpsynth.columns.codec import INVALID
from dpsynth.columns.column import Column
from dpsynth.columns.measurement import Contradiction, PublicMarginal, PublicMarginals
from dpsynth.columns.section import ColumnName, Number, Section, Text, refused, unrepeated
from dpsynth.config.source import TableFile


class PublicTableSpec(TableFile):
    """A table that is public already: a sample of the same population, or an earlier synthetic table."""

    path: Annotated[str, Text("the path of a file", longest=4000)] = Field(
        description="A .csv, .parquet or .xlsx file with some or all of the columns, spelt as in the private "
        "table. Its rows must be public: what they say goes into the release as it is, and nothing "
        "protects them. Never the private table, nor a part of it."
    )

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        return {"path": values} if isinstance(values, str) else values

    def model_post_init(self, context: object, /) -> None:
        self.check_format()


MAX_CELLS = 1_000_000
"""Largest number of cells of a public marginal, and of lines of a file."""

_NUMBERS = ("count", "share")

Cell = tuple[tuple[str, ...], Decimal]

Numbers = Mapping[str, Annotated[Decimal, Number(at_least="0", at_most="1e12")]]


class PublicMarginalSpec(Section):
    """A marginal that is public."""

    columns: tuple[ColumnName, ...] = Field(
        description="The columns that it is about.", min_length=1, max_length=6
    )
    counts: Numbers | None = Field(
        default=None,
        description="Of one column: the number of the private table's rows that have each value. That makes "
        "the table's number of rows public. A value that is not listed has none.",
    )
    shares: Numbers | None = Field(
        default=None,
        description="Of one column: the part of all rows that has each value, on any scale, such as counts "
        "of a larger population. The number of rows stays private.",
    )
    file: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None,
        description="A .csv file in place of either: the columns, and one more of the name count or share. A "
        "relative path starts at the working directory.",
    )
    _cells: tuple[bool, tuple[Cell, ...]] = PrivateAttr(default=(False, ()))

    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.columns, "columns")
        given = [key for key in ("counts", "shares", "file") if getattr(self, key) is not None]
        if len(given) != 1:
            raise refused("must have one of counts, shares and file")
        if given[0] != "file" and len(self.columns) != 1:
            raise refused("is for one column; list the cells of several in a file", given[0])
        if self.file is not None:
            self._cells = _read(self.file, self.columns)
        else:
            listed = self.counts if self.counts is not None else self.shares or {}
            self._cells = self.counts is not None, tuple(((v,), number) for v, number in listed.items())

    @property
    def cells(self) -> tuple[bool, tuple[Cell, ...]]:
        """True if the numbers are counts; then the number of each cell, by the texts that name it."""
        return self._cells


def _read(name: str, columns: Sequence[str]) -> tuple[bool, tuple[Cell, ...]]:
    try:
        with Path(name).open(encoding="utf-8-sig", newline="") as file:
            lines = [
                line for line, _ in zip(csv.reader(file, strict=True), range(MAX_CELLS + 2), strict=False)
            ]
    except OSError:
        raise refused(f"can't be opened: {name}", "file") from None
    except (UnicodeDecodeError, csv.Error):
        raise refused(f"is no CSV file in UTF-8: {name}", "file") from None
    header, *rows = [line for line in lines if line] or [[]]
    kinds = [kind for kind in _NUMBERS if kind in header]
    if sorted(header) != sorted([*columns, *kinds]) or len(kinds) != 1:
        names = ", ".join(columns)
        raise refused(f"must have the columns {names} and one more, count or share: {name}", "file")
    if len(rows) > MAX_CELLS:
        raise refused(f"has more than {MAX_CELLS:,} lines: {name}", "file")
    found = []
    for number, row in enumerate(rows, start=2):
        by_column = dict(zip(header, row, strict=False))
        value = _number(by_column.get(kinds[0], ""))
        if len(row) != len(header) or value is None:
            raise refused(
                f"has a line that is no cell: {name}, line {number}, must have {len(header)} texts, of which "
                f"{kinds[0]} is a number of at least 0",
                "file",
            )
        found.append((tuple(by_column[c] for c in columns), value))
    return kinds[0] == "count", tuple(found)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 <= number <= Decimal("1e12") else None


def public_marginals_of(
    declared: Sequence[PublicMarginalSpec], columns: Mapping[str, Column]
) -> PublicMarginals:
    """The public marginals, checked against the columns and against each other.

    Raises:
        PydanticCustomError: a marginal names an unknown column or value, or two contradict each other.
    """
    marginals = [_marginal(spec, columns, i) for i, spec in enumerate(declared)]
    try:
        return PublicMarginals.of(marginals)
    except Contradiction as error:
        raise refused(error.words, "public_marginals", error.position) from None


def _marginal(spec: PublicMarginalSpec, columns: Mapping[str, Column], i: int) -> PublicMarginal:
    key = "file" if spec.file is not None else "counts" if spec.counts is not None else "shares"
    path = ("public_marginals", i, key)
    members = [columns[name] for name in spec.columns]
    for name, column in zip(spec.columns, members, strict=True):
        if column.search is not None:
            words = f"names '{name}', whose values are still to be found; declare them instead"
            raise refused(words, "public_marginals", i, "columns")
    cells = prod(column.size for column in members)
    if cells > MAX_CELLS:
        words = f"has {cells:,} cells; at most {MAX_CELLS:,} are allowed"
        raise refused(words, "public_marginals", i, "columns")
    counted, listed = spec.cells
    codes = [_codes(column, [texts[axis] for texts, _ in listed]) for axis, column in enumerate(members)]
    numbers = np.zeros([column.size for column in members])
    for cell, (texts, number) in zip(zip(*codes, strict=True), listed, strict=True):
        if None in cell:
            axis = cell.index(None)
            words = f"names '{texts[axis]}', which is no value of '{spec.columns[axis]}'"
            raise refused(words, *path)
        if counted and number != number.to_integral_value():
            raise refused("must be whole numbers: they count rows", *path)
        numbers[cell] += float(number)
    for column, found in zip(members, codes, strict=True):
        absent = set(range(len(column.codec.labels))) - set(found)
        if absent:
            label = column.codec.labels[min(absent)]
            raise refused(f"says nothing of '{label}'; list it, with 0 if no row has it", *path)
    if not numbers.any():
        raise refused("must have a number above 0", *path)
    return PublicMarginal(spec.columns, numbers, counted)


def _codes(column: Column, texts: Iterable[str]) -> list[int | None]:
    """The code that each text names: a cell's label, a value in the cell, or a marker of missing cells."""
    listed = list(texts)
    labels = {label: i for i, label in enumerate(column.labels)}
    cells = pa.array(listed, pa.string())
    valued = column.values_of(cells)
    held, codes = column.codec.encode(valued), column.encode(cells)
    missing = valued.is_null().to_pylist()
    found: list[int | None] = []
    for text, value, code, gone in zip(listed, held.tolist(), codes.tolist(), missing, strict=True):
        if text in labels:
            found.append(labels[text])
        else:
            found.append(
                code if value != INVALID or (gone and column.size > len(column.codec.labels)) else None
            )
    return found
