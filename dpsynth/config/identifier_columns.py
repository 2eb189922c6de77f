"""Columns that name a person or a thing: left out, or made up.

Invariant: identifiers are never read from the source, which need not have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpsynth.columns.surrogates import Surrogates
from dpsynth.config.declaration import Declared, Described
from dpsynth.config.missing import cell_text
from dpsynth.config.scalars import EMPTY, Checked, JsonSchema
from dpsynth.config.section import Section, refused


@dataclass(frozen=True)
class First(Checked):
    """True, false, or the first identifier."""

    def check(self, value: object) -> bool | str:
        """The truth value, or the identifier's text."""
        if value is None:
            raise refused(EMPTY)
        if isinstance(value, bool):
            return value
        text = cell_text(value, "true, or the first identifier such as P00001")
        try:
            Surrogates("", text)
        except ValueError as error:
            raise refused(str(error)) from None
        return text

    def json_schema(self) -> JsonSchema:
        """A boolean, string or integer."""
        return {"type": ["boolean", "string", "integer"]}


class IdentifierColumn(Section):
    """Identifiers. They are not read, and left out of the synthetic table unless made up."""

    STAND_INS: ClassVar[Declared] = {}

    type: Literal["identifier"] = Field(description="Kind of column.")
    surrogates: Annotated[bool | str, First()] = Field(
        default=False,
        description="true: the synthetic rows are numbered from 1. Or the first identifier, such as P00001, "
        "from which all later ones are counted up. false: the column is left out.",
    )

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """The first identifier."""
        if "made_up_from" not in described:
            return None
        return {"type": "identifier", "surrogates": described["made_up_from"]}

    def part(self, name: str) -> Surrogates | None:
        """The column of made-up identifiers, if the synthetic table gets one."""
        if self.surrogates is False:
            return None
        return Surrogates(name) if self.surrogates is True else Surrogates(name, self.surrogates)
