"""Identifiers: left out of the synthetic table or made up, and one spelling for each id.

Two spellings of one id must not become two persons: not in a table, where each would have rows of its own,
and not at a respondent's side, where each would give a report.

Invariant: surrogates depend neither on the private table nor on any answer about it. Reading a canonical
spelling again gives the same spelling.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Context
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dpsynth.columns.declaration import Declared, Described, cell_text
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import is_number
from dpsynth.columns.section import Checked, JsonSchema, Section, refused

NOBODY = ""
"""The spelling of a cell without an id."""

_WITHOUT = frozenset({"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "?", "-", "."})
"""Spellings of an empty cell by programs, in lower case and without blanks."""

_AROUND = " '\"=`"
"""Characters that spreadsheets put around an id to keep it a text, as in ="007" and '007."""

_UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, *range(0xFE00, 0xFE10))))
"""Invisible characters that Unicode counts among letters and marks."""

# No decimal signal raises: every cell has a value.
NUMBERS = Context(prec=100, traps=[])
"""The numbers that ids are read as."""


def canonical_id(cell: str | None) -> str:
    r"""The spelling of an id: NOBODY, or a text that all its variants share.

    Ignored are: case, width and composition of letters; the kind and number of blanks; characters that
    can't be seen; the length of dashes; the script of digits; quotes around the id; and, of a number, all but
    its value. Reading a spelling again gives the same spelling.

    >>> {canonical_id(cell) for cell in ("7", "007", "7.0", "'7", "7\u200b", "\u0667", " 7 ")}
    {'7'}
    """
    plain = cell or ""
    if not (plain.isascii() and plain.isprintable()):
        plain = "".join(map(_seen, unicodedata.normalize("NFKC", plain)))
        # Through capitals, as some letters share only their capital.
        plain = unicodedata.normalize("NFKC", plain.upper().casefold())
    plain = " ".join(plain.casefold().split()).strip(_AROUND)
    if is_number(plain):
        number = NUMBERS.create_decimal(plain).normalize(NUMBERS)
        return "0" if number == 0 else str(number).casefold()
    return NOBODY if plain in _WITHOUT else plain


def _seen(sign: str) -> str:
    """The visible form of a character: controls and joiners vanish, dashes and digits get one form each."""
    if sign.isspace():
        return " "
    kind = unicodedata.category(sign)
    if kind in ("Cc", "Cf") or sign in _UNSEEN:
        return ""
    if kind == "Pd" or sign == "\N{MINUS SIGN}":
        return "-"
    if kind in ("Pi", "Pf"):
        return "'"
    return str(unicodedata.decimal(sign)) if kind == "Nd" else sign


_ENDING = re.compile(r"(?s)(.*?)([0-9]{1,15})")


@dataclass(frozen=True)
class Surrogates:
    """A column of the synthetic table that numbers its rows.

    Attributes:
        first: the first identifier, which ends in a digit. Digits are added when they run out.

    Raises:
        ValueError: ``first`` does not end in a digit.

    >>> Surrogates("id", "P98").values(3).to_pylist()
    ['P98', 'P99', 'P100']
    """

    name: str
    first: str = "1"

    def __post_init__(self) -> None:
        if _ENDING.fullmatch(self.first) is None:
            raise ValueError("must end in a digit, from which the following ones are counted up")

    @property
    def _parts(self) -> tuple[str, str]:
        found = _ENDING.fullmatch(self.first)
        assert found is not None
        return found[1], found[2]

    @property
    def kind(self) -> Kind:
        return Kind("number" if self.arrow_type == pa.int64() else "text")

    @property
    def arrow_type(self) -> pa.DataType:
        start, digits = self._parts
        return pa.int64() if not start and str(int(digits)) == digits else pa.string()

    def values(self, rows: int) -> pa.Array:
        start, digits = self._parts
        numbers = pa.array(np.arange(int(digits), int(digits) + rows))
        if self.arrow_type == pa.int64():
            return numbers
        padded = pc.utf8_lpad(pc.cast(numbers, pa.string()), len(digits), "0")
        return pc.binary_join_element_wise(start, padded, "")

    def following(self, rows: int) -> Surrogates:
        """The identifiers that follow so many.

        >>> Surrogates("id", "P098").following(2).first
        'P100'
        """
        start, digits = self._parts
        return Surrogates(self.name, f"{start}{int(digits) + rows:0{len(digits)}d}")

    def text(self, values: pa.Array) -> pa.StringArray:
        return pc.cast(values, pa.string())


@dataclass(frozen=True)
class First(Checked):
    """True, false, or the first identifier."""

    def check(self, value: object) -> bool | str:
        if isinstance(value, bool):
            return value
        text = cell_text(value, "true, or the first identifier such as P00001")
        try:
            Surrogates("", text)
        except ValueError as error:
            raise refused(str(error)) from None
        return text

    def json_schema(self) -> JsonSchema:
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
        if "made_up_from" not in described:
            return None
        return {"type": "identifier", "surrogates": described["made_up_from"]}

    def part(self, name: str) -> Surrogates | None:
        if self.surrogates is False:
            return None
        return Surrogates(name) if self.surrogates is True else Surrogates(name, self.surrogates)
