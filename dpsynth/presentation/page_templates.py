"""Templates of the pages: how they are found and filled in.

Invariant: a value is text. What ends as HTML is escaped, and a name that is not there is an error.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def environment() -> Environment:
    """A new environment of the templates beside this file, for a page to add its filters to."""
    return Environment(
        loader=PackageLoader("dpsynth.presentation"),
        autoescape=select_autoescape(["html", "html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
