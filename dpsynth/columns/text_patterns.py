"""Patterns of codes: a small part of regular expressions, each text of one length.

A pattern is a row of positions, each with its allowed characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

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
