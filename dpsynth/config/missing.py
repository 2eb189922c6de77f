"""Rules for missing cells: the texts that mean missing, and the value for unusable cells without a code.

Invariant: a code for missing cells is declared here, never inferred from the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from dpsynth.config.scalars import EMPTY, Checked, JsonSchema
from dpsynth.config.section import nearest, refused

MAX_DISTINCT = 20

_WORDS = (
    "must be true, false, a text that means missing such as '?', a list of such texts, or a mapping such as "
    "{distinct: [refused, unknown]}"
)


@dataclass(frozen=True)
class DistinctMarkers:
    """Markers of missing cells, some of which have codes of their own.

    Attributes:
        distinct: texts that mean missing, each with a code of its own.
        markers: texts that mean missing and share the code of the empty cell.
    """

    distinct: tuple[str, ...]
    markers: tuple[str, ...] = ()


Rule = bool | tuple[str, ...] | DistinctMarkers
"""The rule for missing cells. True: missing has a code. False: it has none. Texts: markers."""


@dataclass(frozen=True)
class MissingRule(Checked):
    """True, False, a tuple of texts that mean missing beside the empty one, or distinct markers."""

    def check(self, value: object) -> Rule:
        """The rule; a single marker becomes a tuple of one."""
        if value is None:
            raise refused(f"{EMPTY}. It {_WORDS}")
        if isinstance(value, bool | DistinctMarkers):
            return value
        if isinstance(value, dict):
            return _distinct_markers(value)
        return _markers(value)

    def json_schema(self) -> JsonSchema:
        """A boolean, a text, a list of texts, or a mapping of two such lists."""
        text = {"type": ["string", "integer"]}
        texts = {"anyOf": [text, {"type": "array", "items": text, "uniqueItems": True}]}
        mapping = {
            "type": "object",
            "properties": {
                "distinct": {**texts, "description": "Texts that mean missing, each with a code of its own."},
                "markers": {
                    **texts,
                    "description": "Texts that mean missing and share the code of the empty cell.",
                },
            },
            "required": ["distinct"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": "boolean"}, *texts["anyOf"], mapping]}


Missing = Annotated[Rule, MissingRule()]
MISSING_HELP = (
    "true: missing is a value of its own, which also takes malformed cells. A text or a list of texts: the "
    "same, and these mean missing too. {distinct: [...]}: each of these texts is a value of its own. "
    "false: nothing is missing; unusable cells become the default."
)


def _markers(value: object, *path: str) -> tuple[str, ...]:
    found = value if isinstance(value, list | tuple) else [value]
    texts = tuple(cell_text(marker, "a marker of missing cells", *path, i) for i, marker in enumerate(found))
    for i, text in enumerate(texts):
        if text in texts[:i]:
            raise refused(f"lists '{text}' twice", *path, i)
    return texts


def _distinct_markers(value: dict[object, object]) -> DistinctMarkers:
    keys = ("distinct", "markers")
    for key in value:
        if key == "apart":
            raise refused("has another name now: write distinct", key)
        if key not in keys:
            raise refused(
                f"is not a known key{nearest(key, keys)}; the keys here are distinct, markers", str(key)
            )
    if not value.get("distinct"):
        raise refused(
            "is missing; list the texts with codes of their own, such as distinct: [refused, unknown]",
            "distinct",
        )
    distinct, markers = (
        _markers(value["distinct"], "distinct"),
        _markers(value.get("markers") or (), "markers"),
    )
    if len(distinct) > MAX_DISTINCT:
        raise refused(f"must list at most {MAX_DISTINCT} texts", "distinct")
    for i, text in enumerate(distinct):
        if text == "":
            raise refused(
                "lists the empty text, which is missing without a marker; leave it out", "distinct", i
            )
        if text in markers:
            raise refused(f"lists '{text}', which is also among markers", "distinct", i)
    return DistinctMarkers(distinct, markers)


def cell_text(value: object, what: str, *path: str | int) -> str:
    """A declared cell as the text that the table holds; integers are allowed unquoted."""
    if isinstance(value, bool | Decimal | float) or value is None:
        raise refused(f"must be {what}: a text, or a whole number; put this one in quotes", *path)
    if isinstance(value, int):
        if type(value) is not int:
            raise refused(f"must be {what}; a number written this way must be put in quotes", *path)
        return str(value)
    if not isinstance(value, str):
        raise refused(f"must be {what}, not a list or a mapping", *path)
    if value != value.strip():
        raise refused(f"must be {what} without spaces around it; cells are read without them", *path)
    if len(value) > 200 or not (value.isprintable() or value == ""):
        raise refused(f"must be {what} of at most 200 printable characters", *path)
    return value


def markers_of(rule: Rule) -> tuple[str, ...]:
    """The texts that mean missing and share the code of the empty cell."""
    if isinstance(rule, DistinctMarkers):
        return rule.markers
    return rule if isinstance(rule, tuple) else ()


def distinct_of(rule: Rule) -> tuple[str, ...]:
    """The texts that mean missing, each with a code of its own."""
    return rule.distinct if isinstance(rule, DistinctMarkers) else ()


def check_default(rule: Rule, default: object) -> None:
    """Refuse a default where missing has a code: unusable cells get that code."""
    if default is not None and rule is not False:
        raise refused(
            "is only allowed with missing: false. Otherwise unusable cells count as missing", "default"
        )


def check_texts(rule: Rule, texts: tuple[str, ...], key: str) -> None:
    """Refuse a declared text of a value that also means missing."""
    means_missing = (*markers_of(rule), *distinct_of(rule))
    for i, text in enumerate(texts):
        if text in means_missing:
            raise refused(
                f"lists '{text}', which is also a marker of missing cells; take it out of one", key, i
            )
