"""The environment of the pages' templates, and of texts.

Invariant: a value is text. It is escaped in HTML, and an undefined name is an error.

A matrix of all pairs of columns for a page: one line a column, with its pairs with the columns before it.

Invariant: a cell says what it says in words as well as by its mark and shade, so colour and sight are not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from jinja2.ext import Extension

MOST_SHOWN = 100
"""Columns of a matrix that a page shows; the pairs of more are listed elsewhere."""


@dataclass(frozen=True)
class PairCell:
    """One pair: a short mark, the same in words, a shade from 0 to 1, a figure beside the mark, and a colour.

    A colour is the name of a class of the page's style; "" is the usual one.
    """

    mark: str
    words: str
    shade: float = 0.0
    figure: str = ""
    colour: str = ""


@dataclass(frozen=True)
class PairMatrix:
    """The lower triangle of a matrix: ``lines`` hold each column's name and its cells."""

    names: tuple[str, ...]
    lines: tuple[tuple[str, tuple[PairCell, ...]], ...]

    @property
    def folded(self) -> bool:
        """True if the matrix is too large to be shown at once."""
        return len(self.names) > 30


def pair_matrix(names: Sequence[str], cell: Callable[[str, str], PairCell]) -> PairMatrix | None:
    """The matrix of some columns; None of so many that nobody would find a pair in it.

    Args:
        names: the columns, in order.
        cell: the cell of a pair; the first name stands earlier in ``names``.
    """
    if len(names) > MOST_SHOWN:
        return None
    lines = tuple(
        (name, tuple(cell(other, name) for other in names[:spot])) for spot, name in enumerate(names)
    )
    return PairMatrix(tuple(names), lines)


PARAGRAPH = "\x1e"


class _Texts(Extension):
    """In the source of a text a line break is a space, and a blank line the end of a paragraph.

    Lines of tags alone leave nothing. What is filled in stays as it is.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        if name is None or not name.endswith(".txt.j2"):
            return source
        lines = [line.strip() for line in source.split("\n")]
        tags = re.compile(r"(\{[%#]((?![%#]\}).)*[%#]\}\s*)+")
        return "".join(PARAGRAPH if not x else x if tags.fullmatch(x) else f"{x} " for x in lines)


def paragraphs(text: Template, block: str, facts: Mapping[str, object]) -> tuple[str, ...]:
    """The paragraphs of a block of a text, ``*.txt.j2``, filled with facts."""
    filled = "".join(text.blocks[block](text.new_context(dict(facts))))
    return tuple(found for part in filled.split(PARAGRAPH) if (found := part.strip(" ")))


def environment() -> Environment:
    """A new environment of the templates in this room, to which a page adds its filters."""
    return Environment(
        extensions=[_Texts],
        loader=PackageLoader("dpsynth"),
        autoescape=select_autoescape(["html", "html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
