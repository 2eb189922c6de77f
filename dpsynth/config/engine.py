"""The engine section: what counts the private table, and how much memory it may take.

Invariant: nothing here decides a question or an answer. Exact counts are the same under every engine, so a
release may be resumed under another one.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from dpsynth.config.scalars import EMPTY, Checked, JsonSchema
from dpsynth.config.section import Section, refused

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(KB|MB|GB|TB)", re.IGNORECASE)
LEAST, USUAL = 10**6, 2 * 10**9


class Memory(Checked):
    """An amount of memory, in bytes."""

    def check(self, value: object) -> int:
        """The number of bytes of a text such as 2 GB."""
        if value is None:
            raise refused(EMPTY)
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        size = int(Decimal(found[1]) * _UNITS[found[2].upper()]) if found else 0
        if size < LEAST:
            raise refused("must be an amount of memory of at least 1 MB, such as 500 MB or 2 GB")
        return size

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "pattern": "^[0-9]{1,6}([.][0-9]{1,3})? ?[kKmMgGtT][bB]$"}


class Engine(Section):
    """What counts the private table."""

    memory: Annotated[int, Memory()] = Field(
        default=USUAL,
        description="Most memory that the coded rows take, such as 500 MB or 2 GB; rows beyond it lie in a "
        "file without a name, in the release's private folder. Left out: 2 GB.",
        json_schema_extra={"default": "2 GB"},
    )
