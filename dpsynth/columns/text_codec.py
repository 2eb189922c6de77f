"""Codec of codes with a hierarchy, such as postcodes: their first characters.

Invariant: a decoded text matches the pattern and has its cell's prefix, and all such texts are equally
likely.

Patterns of codes: a small part of regular expressions, each text of one length.

A pattern is a row of positions, each with its allowed characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import INVALID, Codes, Readings, Texts, readings_of
from dpsynth.columns.expression import Kind

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
    """The characters of the item at a spot, and the start of the next item."""
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
    """The characters of a class whose first one is at the spot."""
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
class TextCodec:
    r"""Prefixes of the texts of a pattern, none of them the beginning of another.

    Attributes:
        pattern: see ``text_patterns``.
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

    @cached_property
    def _positions(self) -> Alphabets:
        return alphabets(self.pattern)

    @property
    def kind(self) -> Kind:
        """Texts."""
        return Kind("text")

    @property
    def arrow_type(self) -> pa.DataType:
        """string."""
        return pa.string()

    @property
    def ordered(self) -> bool:
        """False."""
        return False

    @property
    def closed(self) -> bool:
        """False."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The cell of all other texts, if there is one."""
        return () if self.other is None else (len(self.prefixes),)

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    @property
    def schema(self) -> dict[str, object]:
        """Pattern and prefixes."""
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
    def centres(self) -> None:
        """None: texts are no numbers."""
        return None

    @property
    def half_widths(self) -> None:
        """None: texts are no numbers."""
        return None

    @property
    def cell_values(self) -> Texts:
        """The texts with each prefix; the text of ``other`` may be in every cell."""

        def holding(text: str) -> NDArray[np.bool_]:
            if text == self.other:
                return np.ones(len(self.labels), dtype=np.bool_)
            return np.arange(len(self.labels)) == self.encode(pa.array([text], pa.string()))[0]

        return Texts(holding)

    @property
    def steps(self) -> None:
        """None: texts are no numbers."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """Cell of the prefix of each text that matches the pattern."""
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
        """Texts with a cell."""
        return pa.array(texts.to_pylist(), pa.string(), mask=self.encode(texts) == INVALID)

    def readings(self, texts: pa.StringArray) -> Readings:
        """OTHER for texts of the pattern without one of the prefixes."""
        return readings_of(self.encode(texts), texts, self.labels, self.other)

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

    def text(self, values: pa.Array) -> pa.StringArray:
        """The texts themselves."""
        return values

    def with_density(self, counts: NDArray[np.float64], least: float) -> TextCodec:
        """The codec itself: texts of a prefix are equally likely."""
        del counts, least
        return self


def every_prefix(positions: Alphabets, most: int) -> tuple[str, ...]:
    """The texts of some positions in the order of their characters, at most so many."""
    texts: Iterator[str] = ("".join(letters) for letters in product(*positions))
    return tuple(islice(texts, most))
