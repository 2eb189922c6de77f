"""Columns that are computed from others after rows were drawn.

Invariant: derived columns are never read from the source, which need not have them. A formula is
parsed by a small grammar, and never run as a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dpsynth.columns.expression import MOST_DECIMALS, parse, references
from dpsynth.columns.layout import Derived
from dpsynth.config.bins import MAX_DOMAIN_SIZE
from dpsynth.config.declaration import Declared, Described, cell_text
from dpsynth.config.numeric_columns import FORMAT_HELP, NumberNotation, form_of
from dpsynth.config.section import EMPTY, Checked, JsonSchema, Section, Text, Whole, refused

_LARGEST_INTEGER = 10**15


@dataclass(frozen=True)
class Result(Checked):
    """A text or a whole number, as declared."""

    def check(self, value: object) -> str | int:
        """The value."""
        if value is None:
            raise refused(EMPTY)
        cell_text(value, "a text or a whole number")
        if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise refused("is too large for a number; put it in quotes")
        assert isinstance(value, str | int)
        return value

    def json_schema(self) -> JsonSchema:
        """A string or an integer."""
        return {"type": ["string", "integer"]}


@dataclass(frozen=True)
class Marker(Checked):
    """The text of missing cells."""

    def check(self, value: object) -> str:
        """The text."""
        if value is None:
            raise refused(EMPTY)
        return cell_text(value, "the text of missing cells")

    def json_schema(self) -> JsonSchema:
        """A string or an integer."""
        return {"type": ["string", "integer"]}


class DerivedColumn(Section):
    """A column computed from others of the synthetic table. It is not read from the source."""

    STAND_INS: ClassVar[Declared] = {}

    type: Literal["derived"] = Field(description="Kind of column.")
    formula: Annotated[str, Text("a formula such as pay + bonus", longest=1000)] = Field(
        description="Formula of the values: a column, or a formula such as pay + bonus, "
        "first(postcode, 2), year(seen) or if(age < 18, 'child', 'adult').",
    )
    map: Mapping[str, Annotated[str | int, Result()]] | None = Field(
        default=None, description="Value for each text that the formula gives, such as {Bachelors: 13}."
    )
    other: Annotated[str | int, Result()] | None = Field(
        default=None, description="With map: what all other texts stand for. Left out: they are missing."
    )
    decimals: Annotated[int, Whole(at_least="0", at_most=str(MOST_DECIMALS))] | None = Field(
        default=None, description="Decimals of a number. Left out: as many as what it is computed from has."
    )
    format: NumberNotation | None = Field(default=None, description=FORMAT_HELP)
    missing: Annotated[str, Marker()] | None = Field(
        default=None, description="Text of a missing value. Left out: an empty cell."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        try:
            formula = parse(self.formula)
        except ValueError as error:
            raise refused(str(error), "formula") from None
        if not any(True for _ in references(formula)):
            raise refused("names no column", "formula")
        if self.map is None and self.other is not None:
            raise refused("is only of use with map", "other")
        if self.map is not None and not self.map:
            raise refused("must not be empty", "map")
        if self.map is not None and len(self.map) > MAX_DOMAIN_SIZE:
            raise refused(f"must have at most {MAX_DOMAIN_SIZE:,} entries", "map")
        return self

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Formula, map, decimals, format, and the text of missing values."""
        if "computed_from" not in described:
            return None
        found: Declared = {"type": "derived", "formula": described["computed_from"]}
        found |= {key: described[key] for key in ("map", "decimals", "format") if key in described}
        if described.get("other") is not None:
            found["other"] = described["other"]
        if described.get("missing_is_written"):
            found["missing"] = described["missing_is_written"]
        return found

    def part(self, name: str) -> Derived:
        """The column of the synthetic table."""
        return Derived(
            name,
            self.formula,
            parse(self.formula),
            map=tuple((self.map or {}).items()),
            other=self.other,
            decimals=self.decimals,
            form=form_of(self.format),
            marker=self.missing or "",
        )
