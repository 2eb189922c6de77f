"""Sections of the configuration: their keys, the checks of single values, and the errors that name them.

A value's annotation checks it in plain words and describes it to editors.

Invariant: no key is ignored, and nothing is converted silently. A key that a section doesn't have is refused
with the nearest key that it has. A quoted number is no number, an unquoted one no text, and a fraction keeps
the decimal digits it was written with. While a list of keys that ``dpsynth init`` guessed from the private
table, or left open, is not empty, nothing is planned or run; only the owner's check reads a table by it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dpsynth.errors import ConfigError, nearest

Value = dict[str, "Value"] | list["Value"] | str | int | Decimal | bool | None
"""Plain Python values of YAML values."""

REFUSED = "refused"

NESTED = "nested"
"""Type of an error that holds those of a value that was validated by itself."""


def refused(words: str, *path: str | int) -> PydanticCustomError:
    """An error about the value at a path below the one being validated.

    Args:
        words: the message after the key's name, such as "must be above 0".
        path: keys from the value being validated down to the one at fault.
    """
    return PydanticCustomError(REFUSED, "{words}", {"words": words, "path": path})


def unrepeated(items: Iterable[object], *path: str | int) -> None:
    """Refuse a list with an item twice, at the path of the second one.

    Args:
        items: names; or sets of names, if order doesn't matter.
        path: keys from the value being validated down to the list.
    """
    seen: set[object] = set()
    for i, item in enumerate(items):
        if item in seen:
            words = f"repeats '{item}'" if isinstance(item, str) else "has the columns of one before it"
            raise refused(words, *path, i)
        seen.add(item)


def without_default(schema: JsonDict) -> None:
    """Drop a default from an editor's schema, as it depends on other keys."""
    schema.pop("default", None)


class Section(BaseModel):
    """A mapping of the configuration with a fixed set of keys; immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: object) -> object:
        return values if isinstance(values, cls) else cls.known(values)

    @classmethod
    def known(cls, values: object) -> dict[str, object]:
        known = list(cls.model_fields)
        if not isinstance(values, dict):
            found = "has no value" if values is None else "must be a mapping of keys to values"
            raise refused(f"{found}; its keys are {', '.join(known)}")
        for key in values:
            if key not in known:
                guess = nearest(key, known)
                raise refused(f"is not a known key{guess}; the keys here are {', '.join(known)}", key)
        return dict(values)


def by_word(kinds: Mapping[str, type[Section]], such_as: str) -> object:
    """The annotation of a section of one of several kinds, which a word among its keys tells apart.

    Args:
        kinds: the kinds by their words.
        such_as: examples, for whoever gives no mapping.
    """

    def written(value: object) -> object:
        if isinstance(value, tuple(kinds.values())):
            return value
        if not isinstance(value, dict):
            raise refused(f"must be a mapping such as {such_as}")
        if not any(word in value for word in kinds):
            guess = next((g for key in value if (g := nearest(key, tuple(kinds)))), "")
            raise refused(f"must have one of the keys {', '.join(kinds)}{guess}")
        return value

    def tag(value: object) -> str:
        def has(word: str) -> bool:
            return isinstance(value, kinds[word]) or (isinstance(value, dict) and word in value)

        return "@" + next(filter(has, kinds))

    tagged = (Annotated[kind, Tag(f"@{word}")] for word, kind in kinds.items())
    return Annotated[reduce(or_, tagged), Discriminator(tag), BeforeValidator(written)]


def json_values(value: object) -> object:
    """A value of a section's dump as JSON values: decimals as floats, tuples as lists."""
    if isinstance(value, dict):
        return {key: json_values(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [json_values(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


JsonSchema = dict[str, object]

_LARGEST_EXPONENT = 300

_NUMERIC_TEXT = re.compile(r"\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*")

EMPTY = "has no value; give one, or remove the key"


class Checked(ABC):
    """An annotation for a field: ``check`` validates a value, ``json_schema`` describes it."""

    def given(self, value: object) -> object:
        """The value of a key that is there: one without a value is refused."""
        if value is None:
            raise refused(EMPTY)
        return self.check(value)

    @abstractmethod
    def check(self, value: object) -> object:
        """The value to keep; raises a pydantic custom error otherwise."""

    @abstractmethod
    def json_schema(self) -> JsonSchema:
        """JSON Schema of the allowed values."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.given)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return self.json_schema()


def as_number(value: object, words: str) -> Decimal:
    """An exact finite decimal; refuses texts, truth values, nan and inf.

    Args:
        value: an int, Decimal or float (a float counts as the decimal that Python prints).
        words: the allowed values, for the message.
    """
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
        lower = f"above {self.above}" if self.above is not None else f"of at least {self.at_least}"
        upper = f"below {self.below}" if self.below is not None else f"at most {self.at_most}"
        has_lower = self.above is not None or self.at_least is not None
        has_upper = self.below is not None or self.at_most is not None
        bounds = " and ".join([lower] * has_lower + [upper] * has_upper)
        return f"{self.noun} {bounds}".strip() + (f" ({self.advice})" if self.advice else "")

    def check(self, value: object) -> Decimal | int:
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

    def check_at(self, value: object, position: int) -> Decimal | int:
        try:
            return self.check(value)
        except PydanticCustomError as error:
            raise refused((error.context or {})["words"], position) from None

    def json_schema(self) -> JsonSchema:
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
        number = Decimal(super().check(value))
        if number != number.to_integral_value():
            raise refused(f"must be {self.words}")
        return int(number)

    def json_schema(self) -> JsonSchema:
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
        bounds: JsonSchema = {"type": "string", "minLength": 1, "maxLength": self.longest}
        return bounds if self.pattern is None else {**bounds, "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class Choice(Checked):
    """One of a few words."""

    allowed: tuple[str, ...]

    def check(self, value: object) -> str:
        if isinstance(value, str) and value in self.allowed:
            return value
        guess = nearest(value, self.allowed) if isinstance(value, str) else ""
        raise refused(f"must be {one_of(self.allowed)}{guess}")

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "enum": [*self.allowed]}


@dataclass(frozen=True)
class Flag(Checked):
    """True or false."""

    def check(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise refused("must be true or false")
        return value

    def json_schema(self) -> JsonSchema:
        return {"type": "boolean"}


def one_of(words: tuple[str, ...]) -> str:
    """A list of alternatives.

    >>> one_of(("csv", "parquet", "none"))
    'csv, parquet or none'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


ColumnName = Annotated[str, Text("the name of a column")]
"""A column's name, as in the header of the source."""

_SHOWN = 5

_LONGEST = 80


def refuse_unreviewed(listed: object) -> None:
    """Refuse a list of keys that is not empty, before anything else is said about the configuration."""
    if not isinstance(listed, list | tuple) or not all(isinstance(key, str) for key in listed):
        raise refused("must be a list of keys, such as [columns.age.max], or be left out", "review")
    if listed:
        names = ", ".join(key if len(key) <= _LONGEST else f"{key[:_LONGEST]}…" for key in listed[:_SHOWN])
        more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        raise refused(
            f"still lists {names}{more}. Each of these was guessed, or is to be filled in. See to it that it "
            "is right and that anyone could know it without the table; then take it out of the list. Nothing "
            "is planned or run until the list is empty",
            "review",
        )


@dataclass(frozen=True)
class Unreviewed(Checked):
    """A list of keys, which must be empty."""

    def check(self, value: object) -> tuple[str, ...]:
        refuse_unreviewed(value)
        return ()

    def json_schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": "string"}}


class Guessed(dict[str, object]):
    """A column's declaration with keys that were guessed from the private table, or are to be filled in.

    It is refused as it is: someone has to hand over what they reviewed as a plain dict.
    """


def refuse_guessed(columns: object) -> None:
    """Refuse declarations that are still guesses, in a configuration that is given in Python.

    Raises:
        ConfigError: some are; the message names their columns.
    """
    listed = columns.items() if isinstance(columns, Mapping) else ()
    names = [str(name)[:_LONGEST] for name, declared in listed if isinstance(declared, Guessed)]
    guessed = [f"columns.{name}" for name in names]
    if guessed:
        more = f" and {len(guessed) - _SHOWN:,} more" if len(guessed) > _SHOWN else ""
        raise ConfigError(
            f"Not reviewed yet: {', '.join(guessed[:_SHOWN])}{more}. Each was guessed from the table, or is "
            "to be filled in. See to it that it is right and that anyone could know it without the table; "
            "then hand over what you have reviewed: columns=description.reviewed()."
        )
