"""The environment of the pages' templates, and of texts.

Invariant: a value is text. It is escaped in HTML and XML, and an undefined name is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import jinja2
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from jinja2.ext import Extension

PARAGRAPH = token_hex(16)
"""The end of a paragraph while a text is filled; no value can hold it."""


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates, kept where Python keeps the compiled modules, and written if those are."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


class _Texts(Extension):
    """In the source of a text a line break is a space, and a blank line the end of a paragraph.

    Lines of tags alone leave nothing. What is filled in stays as it is.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        if name is None or not name.endswith(".txt.j2"):
            return source
        lines = [line.strip() for line in source.split("\n")]
        tags = re.compile(r"(\{[%#]((?![%#]\}).)*[%#]\}\s*)+")
        return "".join("{{ paragraph }}" if not x else x if tags.fullmatch(x) else f"{x} " for x in lines)


def paragraphs(text: Template, block: str, facts: Mapping[str, object]) -> tuple[str, ...]:
    """The paragraphs of a block of a text, ``*.txt.j2``, filled with facts."""
    filled = "".join(text.blocks[block](text.new_context(dict(facts))))
    return tuple(found for part in filled.split(PARAGRAPH) if (found := part.strip(" ")))


def environment(room: str = "bundle") -> Environment:
    """A new environment of a room's templates and of those of the bundle, to which a page adds its filters.

    Args:
        room: the path of its folder below ``dpsynth``, such as "wings/owner".
    """
    rooms = dict.fromkeys((room, "bundle"))
    pages = Environment(
        extensions=[_Texts],
        bytecode_cache=_Compiled(
            str(Path(__file__).with_name("__pycache__")), f"%s.jinja-{jinja2.__version__}"
        ),
        # Without: what is compiled holds nothing that filters made.
        optimized=False,
        loader=ChoiceLoader([PackageLoader("dpsynth", f"{room}/templates") for room in rooms]),
        autoescape=select_autoescape(["html", "html.j2", "xml.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.globals["paragraph"] = PARAGRAPH
    return pages
