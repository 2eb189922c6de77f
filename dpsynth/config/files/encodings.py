"""Encodings of CSV files: those in which a line can be told from the next without reading either.

Invariant: every encoding here spells the 128 characters of ASCII as ASCII does, keeps no state from one
character to the next, and never ends a character with the byte of a line end; or it is UTF-16, whose
characters are whole units of two bytes. So a line's text follows from the line's own bytes.
"""

from __future__ import annotations

import codecs

WIDE = ("utf-16", "utf-16-le", "utf-16-be")
"""Encodings with units of two bytes."""

ENCODINGS: tuple[str, ...] = (
    "utf-8", *WIDE,
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in range(1, 17) if number != 12),
    *(f"cp{number}" for number in (437, 737, 775, 850, 852, 855, 857, 858, 860, 861, 863, 865, 866, 874)),
    "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish", "tis-620",
    "cp932", "shift_jis", "euc_jp", "gb2312", "gbk", "gb18030", "big5", "cp950", "cp949", "euc_kr",
)  # fmt: skip
"""Names of the encodings, as Python's codecs call them."""

USUAL = ("utf-8", "utf-16", "windows-1252", "latin-1")
"""Names that people know, for messages."""

_MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def encoding_named(word: str) -> str | None:
    """The encoding that a word names in any of its spellings; None if it is not among them.

    >>> encoding_named("Windows-1252"), encoding_named("latin1"), encoding_named("utf-8-sig")
    ('cp1252', 'iso8859-1', 'utf-8')
    >>> encoding_named("utf-7") is None
    True
    """
    try:
        name = codecs.lookup(word).name
    except (LookupError, ValueError):
        # A name with a zero character is a ValueError.
        return None
    name = "utf-8" if name == "utf-8-sig" else name
    return name if name in ENCODINGS else None


def usual_name(encoding: str) -> str:
    """The name that people know for an encoding, or its own.

    >>> usual_name("cp1252"), usual_name("cp850")
    ('windows-1252', 'cp850')
    """
    return next((word for word in USUAL if encoding_named(word) == encoding), encoding)


def decoder_of(encoding: str, beginning: bytes) -> tuple[codecs.IncrementalDecoder, int]:
    """The decoder of a wide encoding, and the number of bytes of a byte order mark.

    Args:
        encoding: one of ``WIDE``.
        beginning: the first two bytes. Without a mark, UTF-16 is taken to be little-endian.
    """
    order = next((name for name, mark in _MARKS.items() if mark == beginning), None)
    name = (order or "utf-16-le") if encoding == "utf-16" else encoding
    return codecs.getincrementaldecoder(name)("replace"), 2 if order == name else 0


def likely_encoding(line: bytes) -> str:
    """A guess of the encoding that a file is written in.

    Args:
        line: the file's bytes up to the first line feed.
    """
    if line.startswith(tuple(_MARKS.values())):
        return "utf-16"
    if 3 * line.count(0) > len(line):
        return "utf-16-be" if line[:1] == b"\0" else "utf-16-le"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"
