"""A column: its name, its codec, and the codes of missing and unusable cells.

A column whose ends, bins, values or prefixes are searched for has provisional cells until they are found: as
many as there can be at most, so that a plan made with them is never exceeded.

Invariant: every cell has a code, whatever it holds; the set of codes depends on the config alone, so a first
missing or malformed cell changes no schema. A search is public: it comes from the config alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, patched, recorded_name
from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.number_texts import PLAIN, NumberFormat

MISSING_LABEL = "(missing)"
_REDRAWS = 20
_MEASURED = 64
"""Least number of values whose texts are measured."""

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True)
class Column:
    """One column that is read from the private table, modelled, and written to the synthetic one.

    Attributes:
        missing: true if missing is a cell of its own, the first code after those of the values. It then also
            takes malformed and undeclared texts.
        markers: texts that mean missing, besides the empty one. The first is written back.
        fallback: code that takes unusable texts where ``missing`` is False.
        distinct: texts that mean missing and have a code each, after all other codes.
        search: the search that will find its cells, where those of ``codec`` are provisional; nothing is
            coded by such a column.
        uniform: true if all values of a bin of numbers are equally likely, whatever the neighbouring counts.
        part_of: the column of moments of which this is a part, such as the hour. A part is read from that
            column's cells and modelled; the synthetic table has no column of it.
    """

    name: str
    codec: Codec
    missing: bool = True
    markers: tuple[str, ...] = ()
    fallback: int = 0
    distinct: tuple[str, ...] = ()
    search: Search | None = None
    uniform: bool = False
    part_of: str = ""

    @property
    def source(self) -> str:
        return self.part_of or self.name

    @property
    def kept_as_text(self) -> bool:
        """True if the curator keeps the texts, because more than one coding of them is counted."""
        return self.search is not None

    @property
    def size(self) -> int:
        return len(self.codec.labels) + self.missing + len(self.distinct)

    @property
    def code_type(self) -> np.dtype[np.unsignedinteger]:
        return np.min_scalar_type(self.size - 1)

    @property
    def recorded(self) -> Mapping[str, object]:
        """The column as digests record it. Journals and ledgers hold these, so its keys never change."""
        recorded = asdict(self)
        # Keys that are newer than digests count only where they say something.
        if not recorded["part_of"]:
            del recorded["part_of"]
        places = {k: v for k, v in recorded.pop("codec").items() if v or k not in ("parts", "step")}
        return recorded | {
            "places": places,
            "even": recorded.pop("uniform"),
            "apart": recorded.pop("distinct"),
            "kind": recorded_name(self.codec),
        }

    @property
    def labels(self) -> tuple[str, ...]:
        missing = (MISSING_LABEL,) if self.missing else ()
        return (*self.codec.labels, *missing, *map(distinct_label, self.distinct))

    @property
    def unusable(self) -> int:
        return len(self.codec.labels) if self.missing else self.fallback

    @property
    def catch_all(self) -> frozenset[int]:
        """Codes of values that also take undeclared values or, where missing has no code, unusable cells."""
        return frozenset((*self.codec.catch_all, *(() if self.missing else (self.fallback,))))

    @property
    def takers(self) -> Mapping[str, int]:
        """Codes that may take what isn't declared, by the keys under which a share of them is expected."""
        codec = self.codec
        found = {"missing": self.unusable} if self.missing else {}
        if codec.catch_all and not self.part_of:
            ends = codec.ordered and not codec.closed
            found |= dict(zip(("first", "last") if ends else ("other",), codec.catch_all, strict=True))
        if not self.missing and self.fallback not in found.values():
            found["default"] = self.fallback
        return found

    @property
    def bytes_of_text(self) -> float:
        """Mean bytes of a value as text, if all cells are equally likely. Public, and the same each time."""
        cells = len(self.codec.labels)
        codes = np.repeat(np.arange(cells), -(-_MEASURED // cells))
        texts = self.codec.text(self.codec.decode(codes, np.random.default_rng(0)))
        return float(pc.mean(pc.binary_length(texts)).as_py() or 0.0)

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected value of each code that is not missing, or None if not numeric."""
        return self.codec.centres

    @property
    def drawn_inside(self) -> bool:
        """True if cells are bins of ordered values, and some bin has several."""
        cells = self.codec.cell_values
        return self.codec.ordered and isinstance(cells, Intervals) and not cells.single

    @property
    def one_text_a_code(self) -> bool:
        cells = self.codec.cell_values
        alike = self.codec.closed or (isinstance(cells, Intervals) and cells.single)
        return alike and not self.distinct and not self.markers_may_be_drawn

    def with_density(self, counts: NDArray[np.float64], stddev: float) -> Column:
        """The column with densities inside bins of numbers that follow the counts of neighbouring bins.

        The least count, half a standard deviation, smooths empty bins.

        Args:
            counts: noisy counts of all codes.
            stddev: their standard deviation.
        """
        if self.uniform:
            return self
        return replace(self, codec=self.codec.with_density(counts[: len(self.codec.labels)], stddev / 2))

    def values_of(self, texts: pa.StringArray) -> pa.StringArray:
        """The texts without blanks around them, null where they mean missing."""
        stripped = pc.utf8_trim_whitespace(texts)
        absent = pc.is_in(stripped, pa.array(["", *self.markers, *self.distinct], pa.string()))
        return pc.if_else(absent, pa.scalar(None, pa.string()), stripped)

    def encode(self, texts: pa.StringArray) -> Codes:
        """Codes in 0..size-1 of texts; null means missing.

        Raises:
            ValueError: the column's cells are still to be found.
        """
        if self.search is not None:
            raise ValueError(f"the cells of column {self.name} are still to be found")
        stripped = pc.utf8_trim_whitespace(texts)
        codes = self.codec.encode(self.values_of(texts))
        codes = np.where(codes == INVALID, self.unusable, codes)
        if not self.distinct:
            return codes
        marked = pc.index_in(stripped, pa.array(self.distinct, pa.string())).fill_null(INVALID)
        marker = marked.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(marker == INVALID, codes, len(self.codec.labels) + self.missing + marker)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A typed value for each code, null for missing.

        A value whose text would be read as missing is drawn again, and is missing where its cell has no
        other value: a column of ages may declare that 99 means missing.

        Args:
            codes: int64; any integers where ``one_text_a_code`` holds, as each code has one value then.
        """
        if self.one_text_a_code and len(codes) > self.size:
            # Arrow checks four bytes at a time several times as fast as one.
            return self._value_of_each_code.take(pa.array(codes.astype(np.int32, copy=False)))
        return self._drawn(codes.astype(np.int64, copy=False), rng)

    @cached_property
    def _value_of_each_code(self) -> pa.Array:
        return self._drawn(np.arange(self.size), np.random.default_rng(0))

    def _drawn(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        gone = codes >= len(self.codec.labels)
        values = self.codec.decode(np.where(gone, 0, codes), rng)
        if self.markers_may_be_drawn:
            values, gone = self._without_markers(values, codes, gone, rng)
        return _nulled(values, gone)

    @cached_property
    def markers_may_be_drawn(self) -> bool:
        marks = (*self.markers, *self.distinct)
        return bool(marks) and bool((self.codec.encode(pa.array(marks, pa.string())) != INVALID).any())

    def _without_markers(
        self, values: pa.Array, codes: Codes, gone: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        marks = pa.array([*self.markers, *self.distinct], pa.string())
        for _ in range(_REDRAWS):
            hit = np.flatnonzero(~gone & np.asarray(pc.is_in(self.codec.text(values), marks)))
            if not hit.size:
                return values, gone
            values = patched(values, hit, self.codec.decode(codes[hit], rng))
        return values, gone | np.asarray(pc.is_in(self.codec.text(values), marks))

    def distinct_texts(self, codes: Codes) -> pa.StringArray:
        """The marker of each code that has one of ``distinct``, null for every other code."""
        first = self.size - len(self.distinct)
        texts = pa.array([*self.distinct, None], pa.string())
        return texts.take(pa.array(np.where(codes >= first, codes - first, len(self.distinct))))

    def text(self, values: pa.Array, distinct: pa.StringArray | None = None) -> pa.StringArray:
        """Decoded values as they stand in a CSV file.

        Args:
            values: the result of ``decode``.
            distinct: the result of ``distinct_texts`` for the same codes; other nulls are written as the
                first of ``markers``, or empty without any.
        """
        texts = self.codec.text(values)
        marked = texts if distinct is None else pc.coalesce(texts, distinct)
        return pc.fill_null(marked, self.markers[0] if self.markers else "")


def distinct_label(marker: str) -> str:
    """Public name of the cell of one distinct marker.

    >>> distinct_label("refused")
    '(missing: refused)'
    """
    return f"(missing: {marker})"


def _nulled(values: pa.Array, gone: NDArray[np.bool_]) -> pa.Array:
    if not gone.any():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=gone))


def domain_of(columns: Iterable[Column]) -> Domain:
    """The discrete domain of columns."""
    return Domain({c.name: c.size for c in columns})


def each_once(read: Callable[[pa.StringArray], NDArray[Kind]], texts: pa.StringArray) -> NDArray[Kind]:
    """Results of a function for each of some texts; each distinct text is read once."""
    found = pc.dictionary_encode(texts, null_encoding="encode")
    return np.asarray(read(found.dictionary)[found.indices.to_numpy(zero_copy_only=False)])


def codes_of(column: Column, texts: pa.StringArray) -> NDArray[np.unsignedinteger]:
    """Codes of texts, in the smallest type that holds the column's domain."""
    return column.encode(texts).astype(column.code_type)


Edges = Literal["equal", "quantiles", "tree"]


@dataclass(frozen=True)
class NumberSearch:
    """Bins of numbers whose ends, or edges, are found.

    Attributes:
        low, high: the ends, where they are public; both None where they are to be found.
        edges: "equal": bins of one width between the ends. "quantiles": bins of about as many rows each.
            "tree": narrow bins, down to single values, where there are many rows, and wide bins elsewhere.
        bins: largest number of bins.

    Raises:
        ValueError: one end without the other, or nothing to find.
    """

    low: float | None
    high: float | None
    edges: Edges
    bins: int
    decimals: int
    integer: bool
    form: NumberFormat = PLAIN

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("both ends are public, or neither")
        if self.low is not None and self.edges == "equal":
            raise ValueError("bins of one width between public ends need no search")


@dataclass(frozen=True)
class ValueSearch:
    """Categories that are found, by partition selection.

    Attributes:
        known: public values, which are cells whatever is found.
        most: largest number of values, public ones included.
        other: label of the cell of all other values.
    """

    known: tuple[str, ...]
    most: int
    other: str


@dataclass(frozen=True)
class PrefixSearch:
    """Prefixes of texts of a pattern, as long as enough rows have each.

    Attributes:
        pattern: see ``text.alphabets``.
        levels: lengths of a prefix, rising; prefixes of the first length are never merged.
        most: largest number of prefixes.
    """

    pattern: str
    levels: tuple[int, ...]
    most: int


Search = NumberSearch | ValueSearch | PrefixSearch


_NAMED = 3
"""Number of values that a group's label names, where the group has at least two more."""


def group_labels(column: Column, compression: Compression) -> tuple[str, ...]:
    """A label for each group of a column: all of its values, or the first ones of many.

    Two groups may have equal labels; ``Compression.groups`` has the exact members.
    """
    return tuple(
        " | ".join(values)
        if len(values) <= _NAMED + 1
        else f"{' | '.join(values[:_NAMED])} | … ({len(values)} values)"
        for values in _members(column, compression)
    )


def _members(column: Column, compression: Compression) -> list[list[str]]:
    groups = compression.groups[column.name].tolist()
    found: list[list[str]] = [[] for _ in range(max(groups) + 1)]
    for label, group in zip(column.labels, groups, strict=True):
        found[group].append(label)
    return found


@dataclass(frozen=True)
class Merged:
    """A column with merged values.

    Attributes:
        values: number of values.
        groups: number of groups, single values included.
        held: the labels of each group of more than one value.
    """

    column: str
    values: int
    groups: int
    held: tuple[tuple[str, ...], ...]


def merged_columns(columns: Sequence[Column], compression: Compression) -> tuple[Merged, ...]:
    """The columns that have merged values, in table order."""
    found = []
    for column in columns:
        if column.name in compression.groups:
            members = _members(column, compression)
            held = tuple(tuple(labels) for labels in members if len(labels) > 1)
            found.append(Merged(column.name, column.size, len(members), held))
    return tuple(found)
