"""Columns of codes with a pattern and a hierarchy, such as postcodes, modelled by their first characters.

A pattern is a small part of regular expressions: a row of positions, each with its allowed characters, so
that all texts have one length.

Invariant: the cells follow from the declaration alone, or were paid for, and each prefix begins a text of the
pattern. A decoded text matches the pattern and has its cell's prefix, and all such texts are equally likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise, product
from math import prod
from typing import Annotated, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.category import Categories
from dpsynth.columns.codec import INVALID, Codec, Codes, Texts
from dpsynth.columns.column import PrefixSearch
from dpsynth.columns.declaration import (
    MAX_DOMAIN_SIZE,
    Declared,
    Described,
    Expected,
    Missing,
    Modelled,
    check_default,
    distinct_of,
    markers_of,
    value_labels,
)
from dpsynth.columns.expression import Kind
from dpsynth.columns.section import Checked, JsonSchema, Text, Value, Whole, refused

MAX_LENGTH = 64

MAX_CHARACTERS = 1000

_REPEAT = re.compile(r"\{([0-9]{1,3})\}")

_DIGITS = "0123456789"

_REFUSED = {
    "?": "an optional part",
    "*": "a part of any length",
    "+": "a part of any length",
    "|": "alternatives",
    "(": "groups",
    ")": "groups",
    ".": "any character",
    "^": "an anchor inside",
    "$": "an anchor inside",
    "{": "a repetition other than {n}",
    "}": "a lone }",
    "]": "a lone ]",
}

Alphabets = tuple[str, ...]
"""The allowed characters of each position of a text."""


def alphabets(pattern: str) -> Alphabets:
    r"""The positions of a pattern.

    Args:
        pattern: literal characters, classes such as [A-Z0-9], \d for a digit, a backslash before
            a character with a special meaning, and {n} behind any of these.

    Raises:
        ValueError: the pattern is not of this kind; the message gives the reason, in words that follow its
            name.

    >>> alphabets(r"[AB]\d-x{2}")
    ('AB', '0123456789', '-', 'x', 'x')
    """
    found: list[str] = []
    inner = pattern.removeprefix("^")
    if inner.endswith("$") and not inner.endswith(r"\$"):
        inner = inner[:-1]
    spot = 0
    while spot < len(inner):
        letters, spot = _item(inner, spot)
        repeat = _REPEAT.match(inner, spot)
        if repeat:
            spot = repeat.end()
        found += [letters] * (int(repeat.group(1)) if repeat else 1)
        if len(found) > MAX_LENGTH:
            raise ValueError(f"stands for texts of more than {MAX_LENGTH} characters")
    if not found:
        raise ValueError("stands for the empty text only, which always means missing")
    if any(letter.isspace() for letter in found[0] + found[-1]):
        raise ValueError("allows blanks at an end; cells are read without them")
    return tuple(found)


def _item(pattern: str, spot: int) -> tuple[str, int]:
    letter = pattern[spot]
    if letter == "[":
        return _class(pattern, spot + 1)
    if letter == "\\":
        return _escaped(pattern, spot), spot + 2
    if letter in _REFUSED:
        words = f"has '{letter}' ({_REFUSED[letter]}), which isn't supported; use literal characters, "
        raise ValueError(
            words + rf"classes such as [A-Z0-9], \d and {{n}}, or write \{letter} for the character"
        )
    return letter, spot + 1


def _escaped(pattern: str, spot: int) -> str:
    after = pattern[spot + 1 : spot + 2]
    if after == "d":
        return _DIGITS
    if not after or after.isalnum():
        raise ValueError(rf"has '\{after}', which isn't supported; \d stands for a digit")
    return after


def _class(pattern: str, spot: int) -> tuple[str, int]:
    end = _end_of_class(pattern, spot)
    members = list(_members(pattern, spot, end))
    letters: dict[str, None] = {}
    i = 0
    while i < len(members):
        if members[i + 1 : i + 2] == ["-"] and i + 2 < len(members):
            first, last = members[i], members[i + 2]
            if len(first) > 1 or len(last) > 1 or first > last:
                raise ValueError(
                    f"has the range '{first}-{last}', which isn't one from a lower to a higher character"
                )
            if ord(last) - ord(first) >= MAX_CHARACTERS:
                raise ValueError(f"has a class of more than {MAX_CHARACTERS} characters")
            letters |= dict.fromkeys(map(chr, range(ord(first), ord(last) + 1)))
            i += 3
        else:
            letters |= dict.fromkeys(_DIGITS if members[i] == r"\d" else members[i][-1])
            i += 1
    if not letters or not all(letter.isprintable() for letter in letters):
        raise ValueError("has a class that is empty or holds a character that can't be printed")
    return "".join(letters), end + 1


def _end_of_class(pattern: str, spot: int) -> int:
    if pattern[spot : spot + 1] == "^":
        raise ValueError("has a class of what must not stand there, [^...]; list what may")
    i = spot
    while i < len(pattern) and pattern[i] != "]":
        i += 2 if pattern[i] == "\\" else 1
    if i >= len(pattern):
        raise ValueError("has a [ without its ]")
    return i


def _members(pattern: str, spot: int, end: int) -> Iterator[str]:
    while spot < end:
        if pattern[spot] == "\\":
            letter = _escaped(pattern, spot)
            yield r"\d" if letter == _DIGITS else letter if letter != "-" else "\\-"
            spot += 2
        else:
            yield pattern[spot]
            spot += 1


def texts_of(positions: Alphabets) -> int:
    """The number of texts of the positions."""
    return prod(map(len, positions))


def regex_of(positions: Alphabets) -> str:
    """A portable regular expression of the texts, anchored at both ends."""
    return "^" + "".join(f"[{''.join(map(_safe, letters))}]" for letters in positions) + "$"


def _safe(letter: str) -> str:
    return letter if letter.isalnum() or ord(letter) > 127 else f"\\x{ord(letter):02x}"


@dataclass(frozen=True)
class TextCodec(Codec):
    r"""Prefixes of the texts of a pattern, none of them the beginning of another.

    Attributes:
        pattern: see ``alphabets``.
        prefixes: one prefix a cell; each begins a text of the pattern.
        other: label of a cell for all texts of the pattern with another prefix. None: they are invalid.

    >>> p = TextCodec(r"\d{5}", ("75", "69", "130"))
    >>> p.labels
    ('75***', '69***', '130**')
    >>> p.encode(pa.array(["75011", "13055", "13100", "7501", "75 011"])).tolist()
    [0, 2, -1, -1, -1]
    """

    pattern: str
    prefixes: tuple[str, ...]
    other: str | None = None

    kind = Kind("text")
    arrow_type = pa.string()

    @cached_property
    def _positions(self) -> Alphabets:
        return alphabets(self.pattern)

    @property
    def catch_all(self) -> tuple[int, ...]:
        return () if self.other is None else (len(self.prefixes),)

    @property
    def schema(self) -> dict[str, object]:
        return {"pattern": self.pattern, "prefixes": list(self.prefixes)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Prefixes with a star for each character that is drawn, then the label of all other texts."""
        found = []
        for prefix in self.prefixes:
            rest = self._positions[len(prefix) :]
            found.append(prefix + "".join(letters if len(letters) == 1 else "*" for letters in rest))
        return (*found, *(() if self.other is None else (self.other,)))

    @property
    def cell_values(self) -> Texts:
        """The texts with each prefix; the text of ``other`` may be in every cell."""

        def holding(text: str) -> NDArray[np.bool_]:
            if text == self.other:
                return np.ones(len(self.labels), dtype=np.bool_)
            return np.arange(len(self.labels)) == self.encode(pa.array([text], pa.string()))[0]

        return Texts(holding)

    def encode(self, texts: pa.StringArray) -> Codes:
        codes = np.full(len(texts), INVALID, dtype=np.int64)
        for length in sorted({len(prefix) for prefix in self.prefixes}):
            cells = [i for i, prefix in enumerate(self.prefixes) if len(prefix) == length]
            prefixes = pa.array([self.prefixes[i] for i in cells], pa.string())
            found = pc.index_in(pc.utf8_slice_codeunits(texts, 0, length), prefixes)
            spot = found.fill_null(len(cells)).to_numpy(zero_copy_only=False)
            here = np.array([*cells, INVALID])[spot]
            codes = np.where(here == INVALID, codes, here)
        matches = np.asarray(pc.fill_null(pc.match_substring_regex(texts, regex_of(self._positions)), False))
        if self.other is None:
            return np.where(matches, codes, INVALID)
        other = np.asarray(pc.fill_null(pc.equal(texts, self.other), False)) | (matches & (codes == INVALID))
        return np.where(other, len(self.prefixes), np.where(matches, codes, INVALID))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        return pa.array(texts.to_pylist(), pa.string(), mask=self.encode(texts) == INVALID)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The prefix, and a uniform draw for each position after it."""
        starts = pa.array([*self.prefixes, *(() if self.other is None else (self.other,))], pa.string())
        whole = len(self._positions)
        lengths = np.array([*map(len, self.prefixes), whole], dtype=np.int64)[codes]
        parts = [starts.take(pa.array(codes))]
        for position in range(int(lengths.min(initial=whole)), whole):
            letters = pa.array([*self._positions[position], ""], pa.string())
            drawn = rng.integers(0, len(letters) - 1, len(codes))
            parts.append(letters.take(pa.array(np.where(lengths <= position, drawn, len(letters) - 1))))
        return pc.binary_join_element_wise(*parts, "")


def every_prefix(positions: Alphabets, most: int) -> tuple[str, ...]:
    """The texts of some positions in the order of their characters, at most so many."""
    texts: Iterator[str] = ("".join(letters) for letters in product(*positions))
    return tuple(islice(texts, most))


DEFAULT_MOST = 1000


@dataclass(frozen=True)
class Levels(Checked):
    """Rising whole numbers from 1."""

    def check(self, value: object) -> tuple[int, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise refused("must be a list of rising numbers, such as [1, 3, 5]")
        numbers = tuple(int(Whole(at_least="1", at_most="64").check_at(n, i)) for i, n in enumerate(value))
        for i, (one, other) in enumerate(pairwise(numbers)):
            if other <= one:
                raise refused("must be above the number before it", i + 1)
        if len(numbers) < 2:
            raise refused("must list at least two numbers; for one, use keep")
        return numbers

    def json_schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 64}, "minItems": 2}


class TextColumn(Modelled):
    """Codes of a pattern. Their first characters are modelled; the rest is drawn at random."""

    type: Literal["text"] = Field(description="Kind of column.")
    pattern: Annotated[str, Text("a pattern such as [0-9]{5}")] | None = Field(
        default=None,
        description=r"What every text looks like: literal characters, classes such as [A-Z0-9], \d, and {n}.",
    )
    keep: Annotated[int, Whole(at_least="1", at_most="64")] | None = Field(
        default=None,
        description="Number of first characters; all that the pattern allows are modelled. Or give prefixes.",
    )
    prefixes: Annotated[tuple[str | int, ...], Categories(beginnings=True)] | None = Field(
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
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Text("a text of the pattern")] | None = Field(
        default=None,
        description="With missing: false, the text of unusable cells. Left out: the first prefix.",
    )

    def model_post_init(self, context: object, /) -> None:
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
        if self.fallback() < 0:
            raise refused("must be a text of the pattern, with one of the prefixes", "default")

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

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
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

    def codec(self) -> TextCodec:
        assert self.pattern is not None
        if self.levels is not None:
            return TextCodec(self.pattern, every_prefix(self._positions()[: self.levels[-1]], self._most))
        if self.keep is None:
            return TextCodec(self.pattern, self._listed(), self.other)
        return TextCodec(self.pattern, every_prefix(self._positions()[: self.keep], MAX_DOMAIN_SIZE))
