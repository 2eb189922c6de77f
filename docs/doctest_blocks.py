"""Doctests in docstrings as blocks of code: in Markdown, >>> would begin quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"(?m)^( *)>>> .*(?:\n\1\S.*)*")


class DoctestBlocks(griffe.Extension):
    """Fences each doctest, from its first >>> to the next empty line."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with its doctests in fences."""
    return _DOCTEST.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", docstring)
