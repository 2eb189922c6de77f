"""Notation of numbers in cells: leading zeros, separators, signs of currency.

Invariant: a number that a notation writes is read back as the same number.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from dpsynth.columns.number_texts import PLAIN, NumberFormat
from dpsynth.config.scalars import Checked, Choice, JsonSchema, Whole
from dpsynth.config.section import Section, refused

FORMAT_HELP = "How numbers are written. Left out: plainly, such as -1234.5."

_THOUSANDS = (",", ".", " ", "'", "_")


class Around(Checked):
    """A short text in front of a number or behind it."""

    def check(self, value: object) -> str:
        """The text."""
        if not isinstance(value, str) or not 1 <= len(value) <= 20 or not value.isprintable():
            raise refused("must be a text of 1 to 20 printable characters, such as '$'")
        if any(letter.isdigit() or letter in "=+-@" for letter in value):
            raise refused("must not hold digits, nor any of = + - @")
        return value

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "minLength": 1, "maxLength": 20}


class NumberNotation(Section):
    """Notation of numbers."""

    width: Annotated[int, Whole(at_least="1", at_most="18")] | None = Field(
        default=None, description="Digits before the decimals, at least; zeros fill up: 00042."
    )
    thousands: Annotated[str, Choice(_THOUSANDS)] | None = Field(
        default=None, description="Sign between groups of three digits: 1,234."
    )
    decimal: Annotated[str, Choice((".", ","))] | None = Field(
        default=None, description="Sign before the decimals. Left out: a full stop."
    )
    prefix: Annotated[str, Around()] | None = Field(
        default=None, description="Text in front of the digits: $12."
    )
    suffix: Annotated[str, Around()] | None = Field(default=None, description="Text behind the digits: 12 %.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.thousands == (self.decimal or "."):
            raise refused(f"must differ from the decimal sign, which is '{self.decimal or '.'}'", "thousands")
        if self.width is not None and self.thousands is not None:
            raise refused("can't be combined with thousands", "width")
        if self.prefix is not None and self.prefix != self.prefix.lstrip():
            raise refused("must not begin with a blank; cells are read without", "prefix")
        if self.suffix is not None and self.suffix != self.suffix.rstrip():
            raise refused("must not end in a blank; cells are read without", "suffix")
        return self

    def form(self) -> NumberFormat:
        """The declared format."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        return NumberFormat(**given)


def form_of(declared: NumberNotation | None) -> NumberFormat:
    """The declared format, or the plain one."""
    return PLAIN if declared is None else declared.form()
