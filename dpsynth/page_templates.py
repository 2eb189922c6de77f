"""The environment of the pages' templates.

Invariant: a value is text. It is escaped in HTML, and an undefined name is an error.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def environment() -> Environment:
    """A new environment of the templates in this room, to which a page adds its filters."""
    return Environment(
        loader=PackageLoader("dpsynth"),
        autoescape=select_autoescape(["html", "html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
