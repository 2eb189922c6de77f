"""Keys that every kind of column shares: missing cells, expected shares, the default.

Invariant: a code for missing cells is declared here, never inferred from the table. An expectation changes no
question, no answer and no row: noisy counts alone can't tell what is empty from what can't be read, so it
says which shares need no warning.

Ends, bins and values that a release found with a part of its budget are public from then on. Declared in the
next configuration they cost nothing, and all releases have the same cells.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, ClassVar, Self, get_args

import pyarrow as pa
from pydantic import Field

from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column, Search
from dpsynth.columns.section import Checked, JsonSchema, Number, Section, Value, refused
from dpsynth.errors import nearest

MAX_DOMAIN_SIZE = 10_000

ONE_A_VALUE = 128


ONE_VALUE = "one_value"

_KEYS = ("missing", "other", "default", "first", "last", ONE_VALUE)

_SHARE = Number(at_least="0", at_most="1", noun="a share")


@dataclass(frozen=True)
class Shares(Checked):
    """A mapping from what a code takes to the share of cells that it may have."""

    def check(self, value: object) -> dict[str, Decimal | int]:
        if not isinstance(value, dict) or not value:
            raise refused("must be a mapping such as {missing: 0.9}")
        for key in value:
            if key not in _KEYS:
                words = f"is not a known key{nearest(key, _KEYS)}; the keys here are {', '.join(_KEYS)}"
                raise refused(words, str(key))
        return {key: _share(share, key) for key, share in value.items()}

    def json_schema(self) -> JsonSchema:
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


Expected = Annotated[
    Mapping[str, Decimal | int] | None,
    Shares(),
    Field(
        description="Largest shares of the cells that are expected, so that nothing warns of them: of "
        "missing; of other; of first and last, the ends at which values are clipped; of default, with "
        "missing: false; of one_value, any value. dpsynth init --look writes those of 0.05 and more."
    ),
]


def check_expected(column: Column, expected: Mapping[str, Decimal | int]) -> None:
    """Refuse a share of what no code of a column takes. Paths in errors start at the top."""
    for key in expected:
        if key != ONE_VALUE and key not in column.takers:
            able = ", ".join((*column.takers, ONE_VALUE))
            raise refused(f"has no use in this column; use {able}", "columns", column.name, "expected", key)


MAX_DISTINCT = 20


@dataclass(frozen=True)
class DistinctMarkers:
    """Markers of missing cells, some of which have codes of their own.

    Attributes:
        distinct: texts that mean missing, each with a code of its own.
        markers: texts that mean missing and share the code of the empty cell.
    """

    distinct: tuple[str, ...]
    markers: tuple[str, ...] = ()


MissingCells = bool | tuple[str, ...] | DistinctMarkers
"""The treatment of missing cells. True: missing has a code. False: it has none. Texts: markers."""


@dataclass(frozen=True)
class MissingKey(Checked):
    """True, False, a tuple of texts that mean missing beside the empty one, or distinct markers."""

    def check(self, value: object) -> MissingCells:
        if isinstance(value, bool | DistinctMarkers):
            return value
        if isinstance(value, dict):
            return _distinct_markers(value)
        return _markers(value)

    def json_schema(self) -> JsonSchema:
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


Missing = Annotated[
    MissingCells,
    MissingKey(),
    Field(
        description="true: missing is a value of its own, which also takes malformed cells. A text or a "
        "list of texts: the same, and these mean missing too. {distinct: [...]}: each of these texts is a "
        "value of its own. false: nothing is missing; unusable cells become the default."
    ),
]


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


@dataclass(frozen=True)
class CellText(Checked):
    """A declared cell as the table spells it: a text or a whole number, kept as text."""

    what: str

    def check(self, value: object) -> str:
        return cell_text(value, self.what)

    def json_schema(self) -> JsonSchema:
        return {"type": ["string", "integer"]}


def markers_of(missing: MissingCells) -> tuple[str, ...]:
    """The texts that mean missing and share the code of the empty cell."""
    if isinstance(missing, DistinctMarkers):
        return missing.markers
    return missing if isinstance(missing, tuple) else ()


def distinct_of(missing: MissingCells) -> tuple[str, ...]:
    """The texts that mean missing, each with a code of its own."""
    return missing.distinct if isinstance(missing, DistinctMarkers) else ()


def check_default(missing: MissingCells, default: object) -> None:
    """Refuse a default where missing has a code: unusable cells get that code."""
    if default is not None and missing is not False:
        raise refused(
            "is only allowed with missing: false. Otherwise unusable cells count as missing", "default"
        )


def check_texts(missing: MissingCells, texts: tuple[str, ...], key: str) -> None:
    """Refuse a declared text of a value that also means missing."""
    means_missing = (*markers_of(missing), *distinct_of(missing))
    for i, text in enumerate(texts):
        if text in means_missing:
            raise refused(
                f"lists '{text}', which is also a marker of missing cells; take it out of one", key, i
            )


Declared = dict[str, Value]
"""Keys of one column's declaration, in the order in which they are written."""

Described = Mapping[str, Value]
"""One column as the public schema of a release has it."""


_SPAN = ("unit", "min", "max", "format", "step")

_START = "0000-01-01T00:00"
"""Suffix that turns a year, month or hour into a moment that the grammar takes."""


def value_labels(listed: Value) -> list[str]:
    """Labels of values, without the labels of missing cells that end the list."""
    found = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return [text for text in found if text != "(missing)" and not text.startswith("(missing: ")]


class Modelled(Section):
    """A declaration of a column that is read from the table, and modelled."""

    STAND_INS: ClassVar[Declared] = {}

    if TYPE_CHECKING:
        # Each kind declares these itself: the order of keys is theirs.
        type: str
        missing: MissingCells
        default: object

    @abstractmethod
    def codec(self) -> Codec: ...

    def search(self) -> Search | None:
        return None

    def counted(self) -> Self:
        """The declaration with cells of the model's own choice, where they are finer than the owner's."""
        return self

    @property
    def uniform(self) -> bool:
        return False

    def fallback(self) -> int:
        """The code of unusable cells where nothing may be missing: that of the default, or the first."""
        if self.default is None:
            return 0
        return int(self.codec().encode(pa.array([self.default], pa.string()))[0])

    def part(self, name: str) -> Column:
        return Column(
            name,
            self.codec(),
            missing=self.missing is not False,
            markers=markers_of(self.missing),
            fallback=self.fallback() if self.missing is False else 0,
            distinct=distinct_of(self.missing),
            search=self.search(),
            uniform=self.uniform,
        )

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Unit, ends and format of moments and durations; other kinds have their own."""
        (kind,) = get_args(cls.model_fields["type"].annotation)
        if described.get("type") != kind:
            return None
        found: Declared = {"type": kind, **{key: described[key] for key in _SPAN if key in described}}
        whole = {"date": len("2020-01-31"), "datetime": len("2020-01-31T13:45")}.get(kind, 0)
        for key in ("min", "max"):
            end = found.get(key)
            if isinstance(end, str):
                # A format without days or minutes has ends without them.
                found[key] = end + _START[len(end) : whole]
        if isinstance(parts := described.get("parts"), list):
            found["parts"] = [part["part"] for part in parts if isinstance(part, dict) and "part" in part]
        return found
