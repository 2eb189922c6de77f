"""Columns of codes with a pattern, such as postcodes, modelled by their first characters.

Invariant: the cells follow from the declaration alone; each prefix begins a text of the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self, cast

import pyarrow as pa
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpsynth.columns.column import Column
from dpsynth.columns.search import PrefixSearch
from dpsynth.columns.text_codec import Alphabets, TextCodec, alphabets, every_prefix, regex_of, texts_of
from dpsynth.config.bins import MAX_DOMAIN_SIZE
from dpsynth.config.category_columns import Categories
from dpsynth.config.declaration import (
    EXPECTED_HELP,
    MISSING_HELP,
    Declared,
    Described,
    Expected,
    Missing,
    check_default,
    column_of,
    distinct_of,
    markers_of,
)
from dpsynth.config.schema_reading import value_labels
from dpsynth.config.section import EMPTY, Checked, JsonSchema, Section, Text, Whole, refused
from dpsynth.config.yaml_reader import Value

DEFAULT_MOST = 1000


@dataclass(frozen=True)
class Levels(Checked):
    """Rising whole numbers from 1."""

    def check(self, value: object) -> tuple[int, ...]:
        """The numbers."""
        if not isinstance(value, list | tuple) or not value:
            raise refused(EMPTY if value is None else "must be a list of rising numbers, such as [1, 3, 5]")
        numbers = tuple(_checked_at(Whole(at_least="1", at_most="64"), n, i) for i, n in enumerate(value))
        for i, (one, other) in enumerate(pairwise(numbers)):
            if other <= one:
                raise refused("must be above the number before it", i + 1)
        if len(numbers) < 2:
            raise refused("must list at least two numbers; for one, use keep")
        return numbers

    def json_schema(self) -> JsonSchema:
        """A list of integers."""
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 64}, "minItems": 2}


def _checked_at(rule: Whole, value: object, position: int) -> int:
    try:
        return rule.check(value)
    except PydanticCustomError as error:
        raise refused((error.context or {})["words"], position) from None


class TextColumn(Section):
    r"""Codes of a pattern. Their first characters are modelled; the rest is drawn at random."""

    STAND_INS: ClassVar[Declared] = {}

    type: Literal["text"] = Field(description="Kind of column.")
    pattern: Annotated[str, Text("a pattern such as [0-9]{5}")] | None = Field(
        default=None,
        description=r"What every text looks like: literal characters, classes such as [A-Z0-9], \d, and {n}.",
    )
    keep: Annotated[int, Whole(at_least="1", at_most="64")] | None = Field(
        default=None,
        description="Number of first characters; all that the pattern allows are modelled. Or give prefixes.",
    )
    prefixes: Annotated[tuple[str | int, ...], Categories()] | None = Field(
        default=None,
        description="Beginnings of texts, from public knowledge, one value each. Texts that begin "
        "otherwise count as other, or as missing.",
    )
    levels: Annotated[tuple[int, ...], Levels()] | None = Field(
        default=None,
        description="In place of keep and prefixes: numbers of first characters to model, such as "
        "[1, 3, 5]; with a part of the budget it is found where there are rows enough for more of them.",
    )
    most: Annotated[int, Whole(at_least="2", at_most=str(MAX_DOMAIN_SIZE))] | None = Field(
        default=None,
        description=f"With levels, how many beginnings there may be at most. Left out: {DEFAULT_MOST}.",
    )
    other: Annotated[str, Text("a text that stands for all other texts of the pattern")] | None = Field(
        default=None, description="With prefixes: a text that stands for all with another prefix."
    )
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: Annotated[str, Text("a text of the pattern")] | None = Field(
        default=None,
        description="With missing: false, the text of unusable cells. Left out: the first prefix.",
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.pattern is None:
            raise refused(
                "is missing; give one such as '[0-9]{5}'. Free text can't be modelled: leave its column out, "
                "or list its values with type: category",
                "pattern",
            )
        check_default(self.missing, self.default)
        positions = self._positions()
        if [self.keep, self.prefixes, self.levels].count(None) != 2:
            raise refused("is needed, or prefixes, or levels; give one of them", "keep")
        if self.most is not None and self.levels is None:
            raise refused("has no use without levels", "most")
        if self.keep is not None:
            self._keep_is_small(positions, self.keep)
        elif self.levels is not None:
            self._levels_fit(positions, self.levels)
        else:
            self._prefixes_begin_texts(positions)
        self._other_stands_apart(positions)
        if self.default is not None and self._encoded(self.default) < 0:
            raise refused("must be a text of the pattern, with one of the prefixes", "default")
        return self

    def _positions(self) -> Alphabets:
        assert self.pattern is not None
        try:
            return alphabets(self.pattern)
        except ValueError as error:
            raise refused(str(error), "pattern") from None

    def _keep_is_small(self, positions: Alphabets, keep: int) -> None:
        if keep > len(positions):
            raise refused(f"must be at most {len(positions)}, the length of the pattern's texts", "keep")
        if texts_of(positions[:keep]) > MAX_DOMAIN_SIZE:
            many = f"allows {texts_of(positions[:keep]):,} beginnings, more than {MAX_DOMAIN_SIZE:,}"
            raise refused(f"{many}; keep fewer characters, or list those in use as prefixes", "keep")

    def _levels_fit(self, positions: Alphabets, levels: tuple[int, ...]) -> None:
        if levels[-1] > len(positions):
            words = f"must be at most {len(positions)}, the length of the pattern's texts"
            raise refused(words, "levels", len(levels) - 1)
        first = texts_of(positions[: levels[0]])
        if not 2 <= first <= self._most:
            raise refused(
                f"allows {first:,} beginnings, which must be from 2 to {self._most:,}, the most there may be",
                "levels",
                0,
            )
        if self.missing is False:
            words = "must not be false with levels: unusable cells need a code that is known"
            raise refused(words, "missing")

    @property
    def _most(self) -> int:
        return DEFAULT_MOST if self.most is None else self.most

    def search(self) -> PrefixSearch | None:
        """The search for prefixes, if there is one."""
        if self.levels is None or self.pattern is None:
            return None
        return PrefixSearch(self.pattern, self.levels, self._most)

    def _prefixes_begin_texts(self, positions: Alphabets) -> None:
        prefixes = self._listed()
        for i, prefix in enumerate(prefixes):
            fits = len(prefix) <= len(positions) and all(
                c in p for c, p in zip(prefix, positions, strict=False)
            )
            if not fits:
                raise refused(f"lists '{prefix}', which begins no text of the pattern", "prefixes", i)
        ranked = sorted(prefixes)
        for shorter, longer in pairwise(ranked):
            if longer.startswith(shorter):
                words = f"lists '{longer}', which another one, '{shorter}', begins"
                raise refused(words, "prefixes", prefixes.index(longer))

    def _other_stands_apart(self, positions: Alphabets) -> None:
        if self.other is None:
            return
        if self.prefixes is None:
            raise refused("is only of use with prefixes", "other")
        if self.other in (*markers_of(self.missing), *distinct_of(self.missing)):
            raise refused("must differ from what means missing", "other")
        if self.other.startswith(self._listed()) and re.fullmatch(regex_of(positions), self.other):
            raise refused("must not be a text with one of the prefixes", "other")
        if self.other in self.codec().labels[:-1]:
            raise refused("must differ from the labels of the prefixes", "other")

    def _listed(self) -> tuple[str, ...]:
        return tuple(map(str, self.prefixes or ()))

    def _encoded(self, text: str) -> int:
        return int(self.codec().encode(pa.array([text], pa.string()))[0])

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Pattern, prefixes, and the label of all other texts."""
        if "pattern" not in described:
            return None
        prefixes, labels = (value_labels(described.get(key)) for key in ("prefixes", "labels"))
        other = labels[len(prefixes) : len(prefixes) + 1]
        declared: Declared = {
            "type": "text",
            "pattern": described["pattern"],
            "prefixes": cast(Value, prefixes),
        }
        return declared | ({"other": other[0]} if other else {})

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self, search=self.search())

    def codec(self) -> TextCodec:
        """The prefixes."""
        assert self.pattern is not None
        if self.levels is not None:
            return TextCodec(self.pattern, every_prefix(self._positions()[: self.levels[-1]], self._most))
        if self.keep is None:
            return TextCodec(self.pattern, self._listed(), self.other)
        return TextCodec(self.pattern, every_prefix(self._positions()[: self.keep], MAX_DOMAIN_SIZE))

    def fallback(self) -> int:
        """The code of the default."""
        return 0 if self.default is None else self._encoded(self.default)
