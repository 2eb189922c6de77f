"""What counts as missing in a column, and where unusable cells go when nothing may be missing.

Invariant: whether missing is a place of a column is declared here, never read off the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dpsynth.spec.scalars import EMPTY, Checked, JsonSchema
from dpsynth.spec.section import refused

_WORDS = "must be true, false, a text that means missing such as '?', or a list of such texts"


@dataclass(frozen=True)
class MissingRule(Checked):
    """True, False, or the texts that mean missing besides the empty one, as a tuple."""

    def check(self, value: object) -> bool | tuple[str, ...]:
        """The rule; a single marker becomes a tuple of one."""
        if value is None:
            raise refused(f"{EMPTY}. It {_WORDS}")
        if isinstance(value, bool):
            return value
        markers = value if isinstance(value, list | tuple) else [value]
        texts = tuple(cell_text(marker, "a marker of missing cells", i) for i, marker in enumerate(markers))
        for i, text in enumerate(texts):
            if text in texts[:i]:
                raise refused(f"lists '{text}' twice", i)
        return texts

    def json_schema(self) -> JsonSchema:
        """A boolean, a text or a list of texts."""
        text = {"type": ["string", "integer"]}
        return {"anyOf": [{"type": "boolean"}, text, {"type": "array", "items": text, "uniqueItems": True}]}


def cell_text(value: object, what: str, position: int) -> str:
    """A declared cell as the text that the table holds; integers are allowed unquoted."""
    if isinstance(value, bool | Decimal | float) or value is None:
        raise refused(f"must be {what}: a text, or a whole number; put this one in quotes", position)
    if isinstance(value, int):
        if type(value) is not int:
            raise refused(f"must be {what}; a number written this way must be put in quotes", position)
        return str(value)
    if not isinstance(value, str):
        raise refused(f"must be {what}, not a list or a mapping", position)
    if value != value.strip():
        raise refused(f"must be {what} without spaces around it; cells are read without them", position)
    if len(value) > 200 or not (value.isprintable() or value == ""):
        raise refused(f"must be {what} of at most 200 printable characters", position)
    return value


def markers_of(rule: bool | tuple[str, ...]) -> tuple[str, ...]:
    """The texts that mean missing besides the empty one."""
    return rule if isinstance(rule, tuple) else ()


def check_default(rule: bool | tuple[str, ...], default: object) -> None:
    """Refuse a default where missing has its own place, which takes unusable cells."""
    if default is not None and rule is not False:
        raise refused(
            "is only allowed with missing: false. Otherwise unusable cells count as missing", "default"
        )
