"""Shares of cells that a column is known to have, so that a release neither warns of them nor waits.

They concern the codes that take more than one thing: missing takes what is empty and what can't be read, a
last bin takes what is clipped. Noisy counts alone can't tell the two apart.

Invariant: an expectation changes no question, no answer and no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from dpsynth.columns.column import Column
from dpsynth.config.scalars import EMPTY, Checked, JsonSchema, Number
from dpsynth.config.section import nearest, refused

ONE_VALUE = "one_value"
_KEYS = ("missing", "other", "default", "first", "last", ONE_VALUE)
_SHARE = Number(at_least="0", at_most="1", noun="a share")


@dataclass(frozen=True)
class Shares(Checked):
    """A mapping from what a code takes to the share of cells that it may have."""

    def check(self, value: object) -> dict[str, Decimal | int]:
        """The shares, exact."""
        if value is None:
            raise refused(EMPTY)
        if not isinstance(value, dict) or not value:
            raise refused("must be a mapping such as {missing: 0.9}")
        for key in value:
            if key not in _KEYS:
                words = f"is not a known key{nearest(key, _KEYS)}; the keys here are {', '.join(_KEYS)}"
                raise refused(words, str(key))
        return {key: _share(share, key) for key, share in value.items()}

    def json_schema(self) -> JsonSchema:
        """An object of numbers from 0 to 1."""
        share = _SHARE.json_schema()
        return {
            "type": "object",
            "properties": dict.fromkeys(_KEYS, share),
            "minProperties": 1,
            "additionalProperties": False,
        }


def _share(value: object, key: str) -> Decimal | int:
    if isinstance(value, str | bool) or value is None:
        raise refused("must be a share from 0 to 1, such as 0.9", key)
    try:
        return _SHARE.check(value)
    except ValueError:
        raise refused("must be a share from 0 to 1, such as 0.9", key) from None


Expected = Annotated[Mapping[str, Decimal | int] | None, Shares()]
EXPECTED_HELP = (
    "Largest shares of the cells that are expected, so that nothing warns of them: of missing; of other; of "
    "first and last, the ends at which values are clipped; of default, with missing: false; of one_value, "
    "any value. dpsynth init --look writes those of 0.05 and more."
)


def check_expected(column: Column, expected: Mapping[str, Decimal | int]) -> None:
    """Refuse a share of what no code of a column takes. Paths in errors start at the top."""
    for key in expected:
        if key != ONE_VALUE and key not in column.takers:
            able = ", ".join((*column.takers, ONE_VALUE))
            raise refused(f"has no use in this column; use {able}", "columns", column.name, "expected", key)
