"""Columns of codes with a pattern, such as postcodes, told apart by their first characters.

Invariant: the places follow from the declaration alone; each prefix begins a text of the pattern.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from dpsynth.domain.text_patterns import Alphabets, alphabets, regex_of, texts_of
from dpsynth.domain.text_places import TextPlaces, every_prefix
from dpsynth.spec.bins import MAX_PLACES
from dpsynth.spec.category_columns import Categories
from dpsynth.spec.missing import MISSING_HELP, Missing, apart_of, check_default, markers_of
from dpsynth.spec.scalars import Text, Whole
from dpsynth.spec.section import Section, refused


class TextColumn(Section):
    r"""Codes of a pattern. Their first characters are modelled; the others are drawn at random."""

    type: Literal["text"] = Field(description="Kind of column.")
    pattern: Annotated[str, Text("a pattern such as [0-9]{5}")] | None = Field(
        default=None,
        description=r"What every text looks like: literal characters, classes such as [A-Z0-9], \d, and {n}.",
    )
    keep: Annotated[int, Whole(at_least="1", at_most="64")] | None = Field(
        default=None,
        description="How many first characters are modelled: all that the pattern allows. Or give prefixes.",
    )
    prefixes: Annotated[tuple[str | int, ...], Categories()] | None = Field(
        default=None,
        description="Beginnings of texts, from public knowledge, one value each. Texts that begin "
        "otherwise count as other, or as missing.",
    )
    other: Annotated[str, Text("a text that stands for all others of the pattern")] | None = Field(
        default=None, description="With prefixes: a text that stands for all with another prefix."
    )
    missing: Missing = Field(default=True, description=MISSING_HELP)
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
        if (self.keep is None) == (self.prefixes is None):
            raise refused("is needed, or prefixes; give one of them", "keep")
        if self.keep is not None:
            self._keep_is_small(positions, self.keep)
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
        if texts_of(positions[:keep]) > MAX_PLACES:
            words = f"allows {texts_of(positions[:keep]):,} beginnings, more than {MAX_PLACES:,}; keep fewer "
            raise refused(words + "characters, or list those in use as prefixes", "keep")

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
        if self.other in (*markers_of(self.missing), *apart_of(self.missing)):
            raise refused("must differ from what means missing", "other")
        if self.other.startswith(self._listed()) and re.fullmatch(regex_of(positions), self.other):
            raise refused("must not be a text with one of the prefixes", "other")
        if self.other in self.places().labels[:-1]:
            raise refused("must differ from the labels of the prefixes", "other")

    def _listed(self) -> tuple[str, ...]:
        return tuple(map(str, self.prefixes or ()))

    def _encoded(self, text: str) -> int:
        return int(self.places().encode(pa.array([text], pa.string()))[0])

    def places(self) -> TextPlaces:
        """The prefixes."""
        assert self.pattern is not None
        if self.keep is None:
            return TextPlaces(self.pattern, self._listed(), self.other)
        return TextPlaces(self.pattern, every_prefix(self._positions()[: self.keep], MAX_PLACES))

    def fallback(self) -> int:
        """The code of the default."""
        return 0 if self.default is None else self._encoded(self.default)
