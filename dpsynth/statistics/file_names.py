"""File names made of column names, which may hold any character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set

_LONGEST_PART = 40


def _plain(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "_", ascii_text).strip("_")[:_LONGEST_PART] or "column"


def file_name(parts: Iterable[str], taken: Set[str]) -> str:
    """A name of ASCII letters, digits, "_" and "-", differing from those taken in more than case.

    >>> file_name(["crosstab", "age", "a/b"], {"crosstab-age-A_b"})
    'crosstab-age-a_b-2'
    """
    stem = "-".join(map(_plain, parts))
    used = {name.casefold() for name in taken}
    name, number = stem, 1
    while name.casefold() in used:
        number += 1
        name = f"{stem}-{number}"
    return name
