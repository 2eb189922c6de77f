"""Sections of the configuration, and the errors of their rules.

Invariant: no key is ignored. A key that a section doesn't have is refused with the nearest key
that it has; a key or value of the grammar that isn't supported yet is refused as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

T = TypeVar("T")

REFUSED = "refused"
NESTED = "nested"
"""Type of an error that holds those of a value that was validated by itself."""
NOT_YET = "not_yet"


def refused(words: str, *path: str | int) -> PydanticCustomError:
    """An error about the value at a path below the one being validated.

    Args:
        words: the message after the key's name, such as "must be above 0".
        path: keys from the value being validated down to the one at fault.
    """
    return PydanticCustomError(REFUSED, "{words}", {"words": words, "path": path})


def not_yet(what: str = "", allowed: str = "") -> PydanticCustomError:
    """An error for a feature of the grammar that this version doesn't support."""
    return PydanticCustomError(NOT_YET, "{what}", {"what": what, "allowed": allowed, "path": ()})


def nearest(word: object, known: Collection[str]) -> str:
    """The advice that follows an unknown word, or "" if no known word is close.

    >>> nearest("epsilom", ["delta", "epsilon"])
    " (did you mean 'epsilon'?)"
    """
    close = get_close_matches(str(word).casefold(), {k.casefold(): k for k in known}, n=1, cutoff=0.6)
    return f" (did you mean '{next(k for k in known if k.casefold() == close[0])}'?)" if close else ""


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


def _not_built(value: T | None) -> T | None:
    if value is None or value is False:
        return value
    raise not_yet()


Later = Annotated[T | None, AfterValidator(_not_built)]
"""A key of the grammar that is parsed and validated, then refused as not yet supported."""


def without_default(schema: JsonDict) -> None:
    """Drop a default from an editor's schema, as it depends on other keys."""
    schema.pop("default", None)


class Section(BaseModel):
    """A mapping of the configuration with a fixed set of keys; immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions, and the name of today for each."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, values: object) -> object:
        if isinstance(values, cls):
            return values
        values = cls._written_out(values)
        known = list(cls.model_fields)
        if not isinstance(values, dict):
            found = "has no value" if values is None else "must be a mapping of keys to values"
            raise refused(f"{found}; its keys are {', '.join(known)}")
        for key in values:
            if key in cls.renamed:
                raise refused(f"has another name now: write {cls.renamed[key]}", key)
            if key not in known:
                guess = nearest(key, known)
                raise refused(f"is not a known key{guess}; the keys here are {', '.join(known)}", key)
        return cls._completed(dict(values))

    @classmethod
    def _written_out(cls, values: object) -> object:
        """The mapping that a shorthand stands for. A section without shorthands returns its argument."""
        return values

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        """The mapping, filled in with defaults that depend on other keys."""
        return values
