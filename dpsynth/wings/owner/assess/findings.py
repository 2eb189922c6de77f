"""Findings about the private table, each with its remedy: sentences for its owner's eyes.

Invariant: a finding is private. It may quote cells and exact counts, so it is printed and kept nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import yaml

_SHOWN = 3
_LONGEST = 40
_WIDEST = 10_000

TUNED = (
    "Bounds and values that were chosen by what this shows are not private: the largest amount or a rare "
    "value may be that of one person. Take them from a codebook, the law or common sense, or let a release "
    "find them: bounds: private, open: true."
)
"""The reminder that goes with every remedy that names bounds or values."""


@dataclass(frozen=True)
class Finding:
    """Something about the table that a release would not say.

    Attributes:
        about: the column's name; or the key of the config that it is about, such as "source".
        cells: number of cells or rows.
        what: the sentence.
        remedy: what to do; "" where nothing is wrong by itself.
        write: the keys to write into the config, as YAML; "" where the config can't mend it.
        tuned: True if the remedy names bounds or values, which must be known without the table.
    """

    about: str
    cells: int
    what: str
    remedy: str = ""
    write: str = ""
    tuned: bool = False


def examples(texts: Mapping[str, int], shown: int = _SHOWN) -> str:
    """The commonest texts, each with its number of cells.

    >>> examples({"a": 2, "b": 1200})
    "'b' (1,200), 'a' (2)"
    """
    common = commonest(texts)[:shown]
    more = ", ..." if len(texts) > shown else ""
    return ", ".join(f"{quoted(text)} ({texts[text]:,})" for text in common) + more


def commonest(texts: Mapping[str, int]) -> list[str]:
    """The texts, the commonest first; equally common ones in their order."""
    return sorted(texts, key=lambda text: (-texts[text], text))


def quoted(text: str) -> str:
    r"""A text in quotes, cut where it is long, with every sign that can't be printed spelt out.

    >>> quoted("a\x1b[2J")
    "'a\\x1b[2J'"
    """
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
    return f"'{plain}'"


def keys(values: Mapping[str, object]) -> str:
    """Keys of a column as YAML within one line.

    >>> keys({"values": ["no", "F"], "other": "other"})
    "values: ['no', F], other: other"
    """
    written = yaml.safe_dump(
        dict(values), default_flow_style=True, sort_keys=False, allow_unicode=True, width=_WIDEST
    )
    return written.strip().removeprefix("{").removesuffix("}")


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words in a row: "a, b and c"."""
    found: Sequence[str] = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}"
