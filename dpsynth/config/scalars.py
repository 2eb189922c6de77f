"""Single values of the configuration: numbers, whole numbers, texts and choices.

Each is an annotation for a pydantic field that checks in plain words and describes itself to
editors. Invariant: nothing is converted silently. A quoted number is no number, an unquoted
one no text, and a fraction keeps the decimal digits it was written with.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dpsynth.config.section import nearest, not_yet, refused

JsonSchema = dict[str, object]

_LARGEST_EXPONENT = 300
_NUMERIC_TEXT = re.compile(r"\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*")
EMPTY = "has no value; give one, or remove the key"


class Checked(ABC):
    """An annotation for a field: ``check`` validates a value, ``json_schema`` describes it."""

    @abstractmethod
    def check(self, value: object) -> object:
        """The value to keep; raises a pydantic custom error otherwise."""

    @abstractmethod
    def json_schema(self) -> JsonSchema:
        """JSON Schema of the allowed values."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate by ``check`` alone, whatever the annotated type."""
        del source, handler
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        """The description for editors."""
        del core, handler
        return self.json_schema()


def as_number(value: object, words: str) -> Decimal:
    """An exact finite decimal; refuses texts, truth values, nan and inf.

    Args:
        value: an int, Decimal or float (a float counts as the decimal that Python prints).
        words: the allowed values, for the message.
    """
    if value is None:
        raise refused(EMPTY)
    if isinstance(value, str) and _NUMERIC_TEXT.fullmatch(value):
        raise refused(f"must be {words}; write it without quotes")
    if isinstance(value, str) and _NUMERIC_TEXT.fullmatch(pointed := value.replace(",", ".", 1)):
        raise refused(f"must be {words}; write {pointed}, with a point")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise refused(f"must be {words}")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise refused(f"must be {words}; nan and inf are not allowed")
    if number and abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise refused(f"must be {words}, between 1e-{_LARGEST_EXPONENT} and 1e{_LARGEST_EXPONENT} in size")
    return number


@dataclass(frozen=True)
class Number(Checked):
    """An exact decimal number within bounds; ``advice`` ends the message of a refusal."""

    above: str | None = None
    at_least: str | None = None
    below: str | None = None
    at_most: str | None = None
    advice: str = ""
    noun: str = "a number"

    @property
    def words(self) -> str:
        """Such as "a number above 0 and below 1"."""
        lower = f"above {self.above}" if self.above is not None else f"of at least {self.at_least}"
        upper = f"below {self.below}" if self.below is not None else f"at most {self.at_most}"
        has_lower = self.above is not None or self.at_least is not None
        has_upper = self.below is not None or self.at_most is not None
        bounds = " and ".join([lower] * has_lower + [upper] * has_upper)
        return f"{self.noun} {bounds}".strip() + (f" ({self.advice})" if self.advice else "")

    def check(self, value: object) -> Decimal | int:
        """The number as a Decimal."""
        number = as_number(value, self.words)
        inside = (
            (self.above is None or number > Decimal(self.above))
            and (self.at_least is None or number >= Decimal(self.at_least))
            and (self.below is None or number < Decimal(self.below))
            and (self.at_most is None or number <= Decimal(self.at_most))
        )
        if not inside:
            raise refused(f"must be {self.words}")
        return number

    def json_schema(self) -> JsonSchema:
        """A number with its bounds."""
        bounds = {
            "exclusiveMinimum": self.above,
            "minimum": self.at_least,
            "exclusiveMaximum": self.below,
            "maximum": self.at_most,
        }
        given = {key: _plain(Decimal(bound)) for key, bound in bounds.items() if bound is not None}
        return {"type": "number", **given}


@dataclass(frozen=True)
class Whole(Number):
    """A whole number within bounds; 1e3 and 7.0 count as whole."""

    noun: str = "a whole number"

    def check(self, value: object) -> int:
        """The number as an int."""
        number = Decimal(super().check(value))
        if number != number.to_integral_value():
            raise refused(f"must be {self.words}")
        return int(number)

    def json_schema(self) -> JsonSchema:
        """An integer with its bounds."""
        return {**super().json_schema(), "type": "integer"}


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


@dataclass(frozen=True)
class Text(Checked):
    """A non-empty text on one line, as ``words`` say, fully matching ``pattern``."""

    words: str = "a text"
    pattern: str | None = None
    longest: int = 200

    def check(self, value: object) -> str:
        """The text."""
        if value is None or value == "":
            raise refused(EMPTY)
        if isinstance(value, bool | int | float | Decimal):
            raise refused(f"must be {self.words}; YAML reads this as a number or truth value, so quote it")
        if not isinstance(value, str):
            raise refused(f"must be {self.words}, not a list or a mapping")
        if len(value) > self.longest or not value.isprintable():
            raise refused(f"must be {self.words}, of at most {self.longest} printable characters")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise refused(f"must be {self.words}")
        return value

    def json_schema(self) -> JsonSchema:
        """A string with its pattern."""
        bounds: JsonSchema = {"type": "string", "minLength": 1, "maxLength": self.longest}
        return bounds if self.pattern is None else {**bounds, "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class Choice(Checked):
    """One of a few words.

    Attributes:
        allowed: the words.
        later: words of the grammar that this version doesn't support yet.
        renamed: former words, and the word of today for each.
        gone: words whose meaning is gone, and the word that comes nearest to each.
    """

    allowed: tuple[str, ...]
    later: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    gone: tuple[tuple[str, str], ...] = ()

    def check(self, value: object) -> str:
        """The word."""
        if value is None:
            raise refused(EMPTY)
        if isinstance(value, str) and value in self.allowed:
            return value
        if isinstance(value, str) and value in self.later:
            raise not_yet(value, ", ".join(self.allowed))
        for former, word in self.renamed:
            if value == former:
                raise refused(f"has another word for '{former}' now: write {word}")
        for former, word in self.gone:
            if value == former:
                raise refused(f"has no '{former}' any more: write {word}, which comes nearest to it")
        guess = nearest(value, (*self.allowed, *self.later)) if isinstance(value, str) else ""
        raise refused(f"must be {one_of(self.allowed)}{guess}")

    def json_schema(self) -> JsonSchema:
        """An enumeration, of the words for later too."""
        return {"type": "string", "enum": [*self.allowed, *self.later]}


@dataclass(frozen=True)
class Flag(Checked):
    """True or false; ``later`` refuses true as not yet supported."""

    later: bool = False

    def check(self, value: object) -> bool:
        """The truth value."""
        if not isinstance(value, bool):
            raise refused(EMPTY if value is None else "must be true or false")
        if value and self.later:
            raise not_yet("true")
        return value

    def json_schema(self) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


def one_of(words: tuple[str, ...]) -> str:
    """A list of alternatives.

    >>> one_of(("csv", "parquet", "none"))
    'csv, parquet or none'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


ColumnName = Annotated[str, Text("the name of a column")]
"""A column's name, as in the header of the source."""
