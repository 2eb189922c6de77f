"""Columns of durations, in stretches of equal length.

Invariant: the stretches follow from the declaration alone, and the format distinguishes them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from dpsynth.columns.column import Column
from dpsynth.columns.duration_codec import FORMATS, UNITS, DurationCodec, grain_of, read_durations
from dpsynth.config.bins import MAX_DOMAIN_SIZE, ONE_A_VALUE
from dpsynth.config.declaration import (
    EXPECTED_HELP,
    MISSING_HELP,
    Declared,
    Described,
    Expected,
    Missing,
    cell_text,
    check_default,
    column_of,
)
from dpsynth.config.schema_reading import spanned
from dpsynth.config.section import EMPTY, Checked, Choice, JsonSchema, Section, refused

_LONGEST = 10**12


class DurationCell(Checked):
    """A duration as a cell of the column spells it: a text or a whole number, kept as text."""

    def check(self, value: object) -> str:
        """The cell's text."""
        if value is None:
            raise refused(EMPTY)
        return cell_text(value, "a duration as the table's cells spell it, such as PT2H30M")

    def json_schema(self) -> JsonSchema:
        """A string or an integer."""
        return {"type": ["string", "integer"]}


class DurationColumn(Section):
    """Lengths of time. Durations below min or above max count as min or max."""

    STAND_INS: ClassVar[Declared] = {"min": "PT0S", "max": "PT1S"}

    type: Literal["duration"] = Field(description="Kind of column.")
    min: Annotated[str, DurationCell()] | None = Field(
        default=None, description="Shortest duration, in the format of the cells."
    )
    max: Annotated[str, DurationCell()] | None = Field(
        default=None, description="Longest duration, in the format of the cells."
    )
    unit: Annotated[str, Choice(tuple(UNITS))] | None = Field(
        default=None,
        description=f"What counts as one value. Left out: the finest unit of at most {ONE_A_VALUE} values.",
    )
    format: Annotated[str, Choice(FORMATS)] = Field(
        default="iso",
        description="iso: ISO 8601, such as P1DT2H30M. A clock, such as HH:MM. Or what a number counts.",
    )
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: Annotated[str, DurationCell()] | None = Field(
        default=None, description="With missing: false, the duration of unusable cells. Left out: min."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_default(self.missing, self.default)
        first, last = self._grains("min", self.min), self._grains("max", self.max)
        if first > last:
            raise refused(f"must not be above max; it is {self.min}, and max is {self.max}", "min")
        if self.default is not None and not first <= self._grains("default", self.default) <= last:
            raise refused(f"must lie between {self.min} and {self.max}", "default")
        self.codec()
        return self

    def _grains(self, key: str, text: str | None) -> int:
        if text is None:
            raise refused("is missing; give min and max, from public knowledge", key)
        grains = read_durations(self.format, pa.array([text], pa.string()))[0]
        if np.isnan(grains) or abs(grains) > _LONGEST:
            raise refused(f"must be a duration in the column's format, {self.format}", key)
        return int(grains)

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Unit, ends and format."""
        return spanned(described, "duration")

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self)

    def codec(self) -> DurationCodec:
        """The stretches from min to max."""
        first, last = self._grains("min", self.min), self._grains("max", self.max)
        grain = grain_of(self.format)
        able = [unit for unit, seconds in UNITS.items() if seconds % grain == 0]

        def cells(unit: str) -> int:
            width = UNITS[unit] // grain
            return last // width - first // width + 1

        if self.unit is None:
            found = next((unit for unit in able if cells(unit) <= ONE_A_VALUE), able[-1])
        elif self.unit not in able:
            raise refused(f"is finer than the format {self.format}; use {', '.join(able)}", "unit")
        else:
            found = self.unit
        if cells(found) > MAX_DOMAIN_SIZE:
            words = f"makes {cells(found):,} cells, more than {MAX_DOMAIN_SIZE:,}; use a coarser unit"
            raise refused(words, "unit")
        return DurationCodec(self.format, found, first, last)

    def fallback(self) -> int:
        """The code of the default."""
        if self.default is None:
            return 0
        return int(self.codec().codes_of(np.array([float(self._grains("default", self.default))]))[0])
