"""Columns of named values: categories from a closed list or found privately, ordered or not, and booleans.

Invariant: each value is written as it was declared, and that text, which no marker of missing cells shares,
is read as this value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import Annotated, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, Texts, Truths, exact_texts
from dpsynth.columns.column import MISSING_LABEL, ValueSearch, distinct_label
from dpsynth.columns.declaration import (
    MAX_DOMAIN_SIZE,
    Declared,
    Described,
    Expected,
    Missing,
    MissingCells,
    Modelled,
    cell_text,
    check_default,
    check_texts,
    distinct_of,
    markers_of,
    value_labels,
)
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import listed_numbers, parse_numbers
from dpsynth.columns.section import EMPTY, Checked, Flag, JsonSchema, Text, Value, Whole, refused

_TRUTHS = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "1.0": 1, "on": 1,
           "false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "0.0": 0, "off": 0}  # fmt: skip


@dataclass(frozen=True)
class CategoryCodec(Codec):
    """A closed list of categories, with an optional cell for all others.

    Values given as integers also match cells such as "3.0" and decode to integers. Ordered
    texts decode to an Arrow dictionary that keeps their order.
    """

    values: tuple[str | int, ...]
    other: str | None = None
    ordered: bool = False

    closed = True

    @cached_property
    def labels(self) -> tuple[str, ...]:
        texts = tuple(str(v) for v in self.values)
        return texts if self.other is None or self.other in texts else (*texts, self.other)

    @property
    def _whole_numbers(self) -> bool:
        return all(isinstance(v, int) for v in self.values)

    @property
    def kind(self) -> Kind:
        return Kind("number" if self.arrow_type == pa.int64() else "text")

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 where every category is an integer, otherwise string, or an ordered dictionary of them."""
        if self._whole_numbers and self.other is None:
            return pa.int64()
        return pa.dictionary(pa.int32(), pa.string(), ordered=True) if self.ordered else pa.string()

    @property
    def catch_all(self) -> tuple[int, ...]:
        return () if self.other is None else (self.labels.index(self.other),)

    @property
    def schema(self) -> dict[str, object]:
        return {"ordered": self.ordered} | ({} if self.other is None else {"other": self.other})

    @cached_property
    def centres(self) -> NDArray[np.float64] | None:
        """The numbers that the categories are: integers, or texts such as "2,5 %" in an ordered list."""
        if self.arrow_type == pa.int64():
            return np.array(self.values, dtype=np.float64)
        return listed_numbers(self.labels) if self.ordered else None

    @property
    def cell_values(self) -> Intervals | Texts:
        if self.centres is None or self.arrow_type != pa.int64():
            return exact_texts(self.labels)
        return Intervals(self.centres, self.centres)

    def encode(self, texts: pa.StringArray) -> Codes:
        found = pc.index_in(texts, pa.array(self.labels, pa.string()))
        codes = found.fill_null(INVALID).to_numpy(zero_copy_only=False).astype(np.int64)
        if self._whole_numbers:
            numbers = parse_numbers(texts)
            order = np.argsort(np.array(self.values, dtype=np.float64), kind="stable")
            ranked = np.array(self.values, dtype=np.float64)[order]
            spot = np.minimum(np.searchsorted(ranked, numbers), len(ranked) - 1)
            codes = np.where((codes == INVALID) & (ranked[spot] == numbers), order[spot], codes)
        if self.other is not None:
            present = ~np.asarray(texts.is_null())
            codes = np.where((codes == INVALID) & present, self.labels.index(self.other), codes)
        return np.asarray(codes, dtype=np.int64)

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        codes = self.encode(texts)
        values = pa.array(self.values if self.arrow_type == pa.int64() else self.labels)
        return values.take(pa.array(codes, mask=codes == INVALID))

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        if self.arrow_type == pa.int64():
            return pa.array(self.values, pa.int64()).take(pa.array(codes))
        labels = pa.array(self.labels, pa.string())
        if self.ordered:
            return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), labels, ordered=True)
        return labels.take(pa.array(codes))


@dataclass(frozen=True)
class BooleanCodec(Codec):
    """False and true, written as two declared texts; usual spellings of both are read."""

    false: str = "false"
    true: str = "true"

    kind = Kind("truth")
    arrow_type = pa.bool_()
    closed = True
    cell_values = Truths(np.array([False, True]))

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.false, self.true)

    @property
    def centres(self) -> NDArray[np.float64]:
        return np.array([0.0, 1.0])

    def encode(self, texts: pa.StringArray) -> Codes:
        """0 or 1; the declared texts first, then the usual spellings in any case."""
        # Arrow and Python lower some letters differently, so one of them lowers both sides.
        false, true = pc.utf8_lower(pa.array([self.false, self.true])).to_pylist()
        spellings = _TRUTHS | {false: 0, true: 1}
        lower = pc.utf8_lower(texts)
        found = pc.index_in(lower, pa.array(list(spellings), pa.string()))
        truth = np.array([*spellings.values(), INVALID], dtype=np.int64)
        spelt = found.fill_null(len(spellings)).to_numpy(zero_copy_only=False)
        return np.asarray(truth[spelt], dtype=np.int64)

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        codes = self.encode(texts)
        return pa.array(codes == 1, pa.bool_(), mask=codes == INVALID)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        return pa.array(codes == 1, pa.bool_())

    def text(self, values: pa.Array) -> pa.StringArray:
        return pc.if_else(values, self.true, self.false)


_LARGEST_INTEGER = 10**15

DEFAULT_MOST = 100

OTHER = "other"
"""Default label of all values that were not found."""


@dataclass(frozen=True)
class Categories(Checked):
    """A list of distinct texts or whole numbers; those that others begin with may end with a blank."""

    beginnings: bool = False

    def check(self, value: object) -> tuple[str | int, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise refused("must be a list of texts or whole numbers, such as [F, M]")
        if len(value) > MAX_DOMAIN_SIZE:
            raise refused(f"must have at most {MAX_DOMAIN_SIZE:,} categories")
        seen: set[str] = set()
        for i, item in enumerate(value):
            begins = self.beginnings and isinstance(item, str)
            if cell_text(item.rstrip(" ") if begins else item, "a category", i) == "":
                raise refused("is the empty text, which always means missing; remove it", i)
            text = str(item)
            if isinstance(item, int) and abs(item) > _LARGEST_INTEGER:
                raise refused("is too large for a number; put it in quotes", i)
            if text in seen:
                raise refused(f"repeats the category '{text}'; list each category once", i)
            seen.add(text)
        return tuple(value)

    def json_schema(self) -> JsonSchema:
        items = {"type": ["string", "integer"]}
        return {
            "type": "array",
            "items": items,
            "minItems": 1,
            "maxItems": MAX_DOMAIN_SIZE,
            "uniqueItems": True,
        }


@dataclass(frozen=True)
class Cell(Checked):
    """One declared cell: a text or a whole number, kept as text."""

    what: str

    def check(self, value: object) -> str:
        if value == "":
            raise refused(EMPTY)
        if isinstance(value, bool | float) or not isinstance(value, str | int):
            raise refused(f"must be {self.what}: a text, or a whole number; put this one in quotes")
        return str(value)

    def json_schema(self) -> JsonSchema:
        return {"type": ["string", "integer"]}


class CategoryColumn(Modelled):
    """One of a closed list of values."""

    type: Literal["category"] = Field(description="Kind of column.")
    values: Annotated[tuple[str | int, ...], Categories()] | None = Field(
        default=None, description="All values, from public knowledge. Quote '?', '1.5', 'null' and 'true'."
    )
    other: Annotated[str, Text("the label of all other values")] | None = Field(
        default=None,
        description="Label that takes all values outside the list. Left out: they count as missing; they are "
        "called other with open: true.",
    )
    open: Annotated[bool, Flag()] = Field(
        default=False,
        description="true: find values besides those listed, with a part of the budget and of privacy.delta. "
        "Found is what many units have.",
    )
    most: Annotated[int, Whole(at_least="2", at_most=str(MAX_DOMAIN_SIZE))] | None = Field(
        default=None,
        description=f"With open: true, how many values there may be at most. Left out: {DEFAULT_MOST}.",
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Cell("one of the values")] | None = Field(
        default=None,
        description="With missing: false, the value of unusable cells. Left out: the first value.",
    )

    def model_post_init(self, context: object, /) -> None:
        if self.values is None and not self.open:
            raise refused(
                "is missing; list all values, from public knowledge, such as [F, M], or find them with "
                "open: true",
                "values",
            )
        self._open_checked()
        check_default(self.missing, self.default)
        _check_values(self.missing, self.values or ())
        means_missing = (
            *markers_of(self.missing),
            *_missing_labels(self.missing),
            *distinct_of(self.missing),
        )
        other = OTHER if self.other is None and self.open else self.other
        if other is not None and (other in means_missing or other == MISSING_LABEL):
            raise refused(f"must differ from what means missing; it is {other}", "other")
        labels = self.codec().labels
        if self.default is not None and self.default not in labels:
            raise refused("must be one of the values", "default")

    def _open_checked(self) -> None:
        if not self.open:
            if self.most is not None:
                raise refused("has no use without open: true", "most")
            return
        if self.missing is False:
            words = "must not be false with open: true: unusable cells need a code that is known"
            raise refused(words, "missing")
        if len(self.values or ()) >= self._most:
            raise refused(f"must be above {len(self.values or ())}, the number of values listed", "most")

    @property
    def _most(self) -> int:
        return DEFAULT_MOST if self.most is None else self.most

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        return named_values(described, "category")

    def codec(self) -> CategoryCodec:
        search = self.search()
        if search is None:
            assert self.values is not None
            return CategoryCodec(self.values, self.other)
        taken = {*search.known, search.other}
        names = (name for i in count(1) if (name := f"(value {i})") not in taken)
        return CategoryCodec((*search.known, *islice(names, search.most - len(search.known))), search.other)

    def search(self) -> ValueSearch | None:
        if not self.open:
            return None
        return ValueSearch(tuple(map(str, self.values or ())), self._most, self.other or OTHER)


class OrderedColumn(Modelled):
    """One of a closed list of values whose order means something: grades, sizes, degrees."""

    type: Literal["ordered"] = Field(description="Kind of column.")
    values: Annotated[tuple[str | int, ...], Categories()] = Field(
        description="All values in their order, the lowest first, from public knowledge."
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Cell("one of the values")] | None = Field(
        default=None,
        description="With missing: false, the value of unusable cells. Left out: the first value.",
    )

    def model_post_init(self, context: object, /) -> None:
        check_default(self.missing, self.default)
        _check_values(self.missing, self.values)
        if self.default is not None and self.default not in self.codec().labels:
            raise refused("must be one of the values", "default")

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        return named_values(described, "ordered")

    def codec(self) -> CategoryCodec:
        return CategoryCodec(self.values, ordered=True)


def _missing_labels(missing: MissingCells) -> tuple[str, ...]:
    return () if missing is False else (MISSING_LABEL, *map(distinct_label, distinct_of(missing)))


def _check_values(missing: MissingCells, values: tuple[str | int, ...]) -> None:
    texts = tuple(map(str, values))
    check_texts(missing, texts, "values")
    for i, text in enumerate(texts):
        if text in _missing_labels(missing):
            raise refused(f"must not be '{text}', which labels missing cells", "values", i)


@dataclass(frozen=True)
class TwoTexts(Checked):
    """The texts for false and for true; whole numbers and truth values are allowed unquoted."""

    def check(self, value: object) -> tuple[str, str]:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise refused("must list two texts, for false and for true, such as ['no', 'yes']")
        items = [str(v).lower() if isinstance(v, bool) else v for v in value]
        texts = [cell_text(v, "the text of a truth value", i) for i, v in enumerate(items)]
        if "" in texts:
            raise refused("is the empty text, which always means missing", texts.index(""))
        if texts[0].casefold() == texts[1].casefold():
            raise refused("must be two different texts; capitals make no difference")
        return texts[0], texts[1]

    def json_schema(self) -> JsonSchema:
        items = {"type": ["string", "integer", "boolean"]}
        return {"type": "array", "items": items, "minItems": 2, "maxItems": 2}


@dataclass(frozen=True)
class Truth(Checked):
    """A truth value, or its text in the table."""

    def check(self, value: object) -> bool | str:
        return value if isinstance(value, bool) else Cell("true, false or one of the two texts").check(value)

    def json_schema(self) -> JsonSchema:
        return {"type": ["boolean", "string", "integer"]}


class BooleanColumn(Modelled):
    """False or true; the usual spellings of both are read in any case."""

    type: Literal["boolean"] = Field(description="Kind of column.")
    values: Annotated[tuple[str, str], TwoTexts()] = Field(
        default=("false", "true"), description="Spellings of false and true in the table, in this order."
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[bool | str, Truth()] | None = Field(
        default=None, description="With missing: false, the value of unusable cells. Left out: false."
    )

    def model_post_init(self, context: object, /) -> None:
        check_default(self.missing, self.default)
        check_texts(self.missing, self.values, "values")
        if isinstance(self.default, str) and self.default not in self.values:
            raise refused(f"must be true, false, '{self.values[0]}' or '{self.values[1]}'", "default")

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        if described.get("type") != "boolean":
            return None
        return {"type": "boolean", "values": cast(Value, value_labels(described.get("labels"))[:2])}

    def codec(self) -> BooleanCodec:
        return BooleanCodec(*self.values)

    def fallback(self) -> int:
        return super().fallback() if isinstance(self.default, str) else int(bool(self.default))


def named_values(described: Described, kind: str) -> Declared | None:
    """The declaration of a column of categories, ordered or not."""
    labels = value_labels(described.get("labels"))
    if not labels or "ordered" not in described:
        return None
    if described["ordered"] is not (kind == "ordered"):
        return None
    other = described.get("other")
    # A search that found no value leaves the label of all others alone.
    values = [label for label in labels if label != other] or labels
    whole = described.get("type") == "integer" and all(re.fullmatch(r"-?[0-9]{1,15}", v) for v in values)
    declared: Declared = {"type": kind, "values": cast(Value, list(map(int, values)) if whole else values)}
    return declared | ({} if other is None else {"other": other})
