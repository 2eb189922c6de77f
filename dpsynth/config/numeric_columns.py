"""Numeric columns: integers and numbers, cut into declared bins, in the notation of the table.

Invariant: the bins follow from the declaration alone, by exact arithmetic, and each holds at
least one value that the column can take.

Bins of numbers that nobody declared: of one width, or growing by a constant factor away from zero.

Amounts of money, counts and sizes differ by factors, so bins of one width between 0 and a large number
would put nearly all of them into the first. Growing bins have room for all sizes: each is as many times as
wide as the one before. Zero and both ends have bins of their own: zero because many amounts are zero, the
ends because all values beyond them count as the ends.

Bins are given by their starts, in units of a column's last decimal; the last start is the largest value,
alone in its bin.

Invariant: the starts follow from the declaration alone. They are numbers of few digits, so that they
don't depend on a machine's rounding.

Notation of numbers in cells: leading zeros, separators, signs of currency.

Invariant: a number that a notation writes is read back as the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, log10
from typing import Annotated, ClassVar, Literal, Self, cast

import numpy as np
from pydantic import Field, model_validator

from dpsynth.columns.column import Column
from dpsynth.columns.number_texts import PLAIN, NumberFormat
from dpsynth.columns.numeric_codec import NumericCodec, default_decimals
from dpsynth.columns.search import Edges, NumberSearch
from dpsynth.config.bins import BOUNDS_HELP, DEFAULT_BINS, EDGES_HELP, ONE_A_VALUE, WITHIN_HELP, Bins
from dpsynth.config.declaration import (
    EXPECTED_HELP,
    MISSING_HELP,
    Declared,
    Described,
    Expected,
    Missing,
    Rule,
    check_default,
    column_of,
)
from dpsynth.config.schema_reading import edges_of, format_of, number_bins, whole_bins
from dpsynth.config.section import (
    Checked,
    Choice,
    JsonSchema,
    Number,
    Section,
    Whole,
    refused,
    without_default,
)
from dpsynth.config.yaml_reader import Value

WIDE = 500
"""Bins grow from this ratio of the largest size to the smallest on; sizes below 1 count as 1."""

FEWEST_GROWING = 3

FEWEST_ON_BOTH_SIDES = 5

_PART = 100_000
"""Start of the growth: one unit, or this part of the largest size if that is more."""


def grows(low: float, high: float) -> bool:
    """True if bins between two ends grow unless something else is declared.

    >>> grows(0, 100), grows(0, 2_500_000), grows(1900, 2100), grows(-1000, 50)
    (False, True, False, True)
    """
    nearest = 0 if low < 0 < high else min(abs(low), abs(high))
    return max(abs(low), abs(high)) >= WIDE * max(nearest, 1)


def growing_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins that grow away from zero; fewer than asked for where there are few units.

    >>> growing_starts(0, 1000, 8)
    [0, 1, 3, 10, 32, 100, 320, 1000]
    >>> growing_starts(-100, 1000, 9)
    [-100, -99, -9, 0, 1, 6, 32, 180, 1000]

    Args:
        low: the least value.
        high: the largest value, above ``low``.
        bins: number of bins, at least 3; at least 5 with zero between the ends.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    if high <= 0:
        return _mirrored(growing_starts(-high, -low, bins))
    if low >= 0:
        return [low, *_inner(low + 1, high, bins - 2), high]
    sizes = log10(high + 1), log10(1 - low)
    above = min(max(2, round((bins - 1) * sizes[0] / sum(sizes))), bins - 3)
    below = growing_starts(0, -low, bins - above)
    return [*_mirrored(below), *growing_starts(0, high, above + 1)[1:]]


def _inner(first: int, end: int, bins: int) -> list[int]:
    """Starts of bins from a number above zero to one below ``end``."""
    starts, aim = [first], float(max(first, end // _PART))
    if aim > first and bins > 1:
        starts.append(round(aim))
    more = bins - len(starts)
    # Enough digits to distinguish tenths of a bin.
    digits = max(1, ceil(1 - log10(max((end / aim) ** (1 / (more + 1)) - 1, 1e-15))))
    for left in range(more, 0, -1):
        aim = max(aim * (end / aim) ** (1 / (left + 1)), starts[-1] + 1)
        starts.append(max(round(float(f"{aim:.{digits}e}")), starts[-1] + 1))
    return [start for start in starts if start < end]


def _mirrored(starts: list[int]) -> list[int]:
    """Starts of the bins of the negated values."""
    return [-starts[-1], *(1 - start for start in reversed(starts[1:]))]


def equal_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins of one width, up to rounding, between ends that have bins of their own.

    >>> equal_starts(0, 100, 6)
    [0, 1, 25, 50, 75, 100]

    Args:
        low: the least value.
        high: the largest value, above ``low``.
        bins: number of bins, at least 3.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    inner = [low + i * (high - low) // (bins - 2) for i in range(1, bins - 2)]
    return [low, low + 1, *(start for start in inner if start > low + 1), high]


FORMAT_HELP = "How numbers are written. Left out: plainly, such as -1234.5."

_THOUSANDS = (",", ".", " ", "'", "_")


class Around(Checked):
    """A short text in front of a number or behind it."""

    def check(self, value: object) -> str:
        """The text."""
        if not isinstance(value, str) or not 1 <= len(value) <= 20 or not value.isprintable():
            raise refused("must be a text of 1 to 20 printable characters, such as '$'")
        if any(letter.isdigit() or letter in "=+-@" for letter in value):
            raise refused("must not hold digits, nor any of = + - @")
        return value

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "minLength": 1, "maxLength": 20}


class NumberNotation(Section):
    """Notation of numbers."""

    width: Annotated[int, Whole(at_least="1", at_most="18")] | None = Field(
        default=None, description="Digits before the decimals, at least; zeros fill up: 00042."
    )
    thousands: Annotated[str, Choice(_THOUSANDS)] | None = Field(
        default=None, description="Sign between groups of three digits: 1,234."
    )
    decimal: Annotated[str, Choice((".", ","))] | None = Field(
        default=None, description="Sign before the decimals. Left out: a full stop."
    )
    prefix: Annotated[str, Around()] | None = Field(
        default=None, description="Text in front of the digits: $12."
    )
    suffix: Annotated[str, Around()] | None = Field(default=None, description="Text behind the digits: 12 %.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.thousands == (self.decimal or "."):
            raise refused(f"must differ from the decimal sign, which is '{self.decimal or '.'}'", "thousands")
        if self.width is not None and self.thousands is not None:
            raise refused("can't be combined with thousands", "width")
        if self.prefix is not None and self.prefix != self.prefix.lstrip():
            raise refused("must not begin with a blank; cells are read without", "prefix")
        if self.suffix is not None and self.suffix != self.suffix.rstrip():
            raise refused("must not end in a blank; cells are read without", "suffix")
        return self

    def form(self) -> NumberFormat:
        """The declared format."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        return NumberFormat(**given)


def form_of(declared: NumberNotation | None) -> NumberFormat:
    """The declared format, or the plain one."""
    return PLAIN if declared is None else declared.form()


_LARGEST_INTEGER = 10**15

_LARGEST_STEP = 2**53

_MAX_DECIMALS = 9

_SOUGHT_DECIMALS = 2
"""Default number of decimals of columns with private bounds or growing bins."""

_PUBLIC_EDGES = (None, "equal", "log")

_WholeBound = Annotated[int, Whole(at_least=str(-_LARGEST_INTEGER), at_most=str(_LARGEST_INTEGER))]

_Bound = Annotated[Decimal, Number()]

_Bounds = Annotated[Literal["private"], Choice(("private",))]

_Within = Annotated[
    Literal["linear", "uniform"],
    Choice(("linear", "uniform")),
]

_Edges = Annotated[Literal["log"] | Edges, Choice(("equal", "log", "quantiles", "tree"))]


def _ends(
    low: Decimal | int | None, high: Decimal | int | None, bins: int | tuple[Decimal | int, ...] | None
) -> tuple[Decimal | int, Decimal | int]:
    """First and last value of a column; refuses ends that are missing or contradict the edges."""
    if isinstance(bins, tuple):
        if low is not None and low != bins[0]:
            raise refused(f"must be the first edge of bins, {bins[0]}, or be left out", "min")
        if high is not None and high != bins[-1]:
            raise refused(f"must be the last edge of bins, {bins[-1]}, or be left out", "max")
        return bins[0], bins[-1]
    for key, end in (("min", low), ("max", high)):
        if end is None:
            raise refused("is missing; give min and max, or the edges of bins, from public knowledge", key)
    assert low is not None and high is not None
    if low > high:
        raise refused(f"must not be above max; it is {low}, and max is {high}", "min")
    return low, high


def _with_edges(values: dict[str, object]) -> dict[str, object]:
    """The keys of a column with the default of ``edges`` filled in."""
    return {**values, "edges": values.get("edges") or "tree"} if values.get("bounds") == "private" else values


def _edges_checked(column: IntegerColumn | NumberColumn) -> None:
    """Refuse keys that contradict bins that grow, or a search for the column's ends or edges."""
    if column.edges == "log":
        if column.bounds is not None:
            raise refused("must not be log with bounds: private; use tree, or give min and max", "edges")
        if isinstance(column.bins, tuple):
            raise refused("must be a number with edges: log", "bins")
        both = column.min is not None and column.max is not None and column.min < 0 < column.max
        fewest = FEWEST_ON_BOTH_SIDES if both else FEWEST_GROWING
        if isinstance(column.bins, int) and column.bins < fewest:
            raise refused(f"must be at least {fewest} with edges: log", "bins")
    if column.bounds is None and column.edges in _PUBLIC_EDGES:
        return
    searched = "bounds: private" if column.bounds is not None else f"edges: {column.edges}"
    if isinstance(column.bins, tuple):
        raise refused(f"must be a number with {searched}: how many there may be at most", "bins")
    if isinstance(column.bins, int) and column.bins < 2:
        raise refused(f"must be at least 2 with {searched}", "bins")
    if column.default is not None:
        words = f"has no use with {searched}: with missing: false, unusable cells become the smallest value"
        raise refused(words, "default")
    for key in ("min", "max") if column.bounds is not None else ():
        if getattr(column, key) is not None:
            raise refused(f"has no use with {searched}; leave out one of the two", key)


def _unasked(column: IntegerColumn | NumberColumn) -> bool:
    """True if nobody declared the bins one by one: they grow, or neither ``bins`` nor ``edges`` is given."""
    return column.edges == "log" or (column.bins is None and column.edges is None)


def _starts(column: IntegerColumn | NumberColumn, low: int, high: int) -> list[int]:
    """Starts of bins that nobody declared one by one, in units of the last decimal."""
    assert column.min is not None and column.max is not None
    if column.bins is None and column.edges is None and high - low < ONE_A_VALUE:
        return list(range(low, high + 1))
    bins = column.bins if isinstance(column.bins, int) else DEFAULT_BINS
    growing = column.edges == "log" or grows(float(column.min), float(column.max))
    return (growing_starts if growing else equal_starts)(low, high, bins)


def _check_default(
    missing: Rule, default: Decimal | int | None, low: Decimal | int, high: Decimal | int
) -> None:
    check_default(missing, default)
    if default is not None and not low <= default <= high:
        raise refused(f"must lie between {low} and {high}", "default")


class IntegerColumn(Section):
    """Whole numbers. Values outside min..max are clipped; fractions are cut off."""

    STAND_INS: ClassVar[Declared] = {"min": 0, "max": 1}

    type: Literal["integer"] = Field(description="Kind of column.")
    min: _WholeBound | None = Field(
        default=None, description="Smallest value; smaller ones count as this one."
    )
    max: _WholeBound | None = Field(default=None, description="Largest value; larger ones count as this one.")
    bins: Annotated[int | tuple[int, ...], Bins(Whole())] | None = Field(
        default=None,
        description=f"A number of bins, or their rising edges: [0, 10, 20, 110] is 0-9, 10-19 and 20-110. "
        f"Left out: one a value up to {ONE_A_VALUE} values, otherwise {DEFAULT_BINS}.",
    )
    format: NumberNotation | None = Field(default=None, description=FORMAT_HELP)
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: _WholeBound | None = Field(
        default=None, description="With missing: false, the value of unusable cells. Left out: min."
    )
    bounds: _Bounds | None = Field(default=None, description=BOUNDS_HELP)
    edges: _Edges | None = Field(default=None, json_schema_extra=without_default, description=EDGES_HELP)
    within: _Within = Field(default="linear", description=WITHIN_HELP)

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        return _with_edges(values)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _edges_checked(self)
        if self.bounds is not None:
            return self
        low, high = _ends(self.min, self.max, self.bins)
        _check_default(self.missing, self.default, low, high)
        if isinstance(self.bins, int) and self.bins > high - low + 1:
            raise refused(f"must be at most {high - low + 1}, the number of values from min to max", "bins")
        if isinstance(self.bins, tuple) and max(map(abs, self.bins)) > _LARGEST_INTEGER:
            raise refused(f"must lie between -{_LARGEST_INTEGER} and {_LARGEST_INTEGER}", "bins")
        return self

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Bins and format."""
        edges = edges_of(described)
        if edges is None or described.get("type") != "integer":
            return None
        return {"type": "integer", **whole_bins(edges), **format_of(described)}

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self, search=self.search(), uniform=self.within == "uniform")

    def codec(self) -> NumericCodec:
        """The bins.

        The last bin of NumericCodec is closed. Its upper edge is put half a step above the
        largest value, so that a bin for that value alone can exist too.
        """
        search = self.search()
        if search is not None:
            return _stand_in(search)
        if isinstance(self.bins, tuple):
            *starts, last = self.bins
        else:
            assert self.min is not None and self.max is not None
            last = self.max
            count = last - self.min + 1
            if _unasked(self) and (count > ONE_A_VALUE or self.edges == "log"):
                starts = _starts(self, self.min, last)
            else:
                bins = self.bins or (count if count <= ONE_A_VALUE else DEFAULT_BINS)
                starts = [self.min + i * count // bins for i in range(bins)]
        return NumericCodec((*map(float, starts), last + 0.5), 0, integer=True, form=form_of(self.format))

    def search(self) -> NumberSearch | None:
        """The private search for ends or edges, if there is one."""
        return _search(self, 0, integer=True)

    def fallback(self) -> int:
        """The code of the default."""
        return _code(self.codec(), self.default)


class NumberColumn(Section):
    """Decimal numbers. Values outside min..max are clipped."""

    STAND_INS: ClassVar[Declared] = {"min": 0, "max": 1}

    type: Literal["number"] = Field(description="Kind of column.")
    min: _Bound | None = Field(default=None, description="Smallest value; smaller ones count as this one.")
    max: _Bound | None = Field(default=None, description="Largest value; larger ones count as this one.")
    bins: Annotated[int | tuple[Decimal, ...], Bins(Number())] | None = Field(
        default=None,
        description="A number of equal bins, or their rising edges. Left out: one a value up to "
        f"{ONE_A_VALUE} values of the declared decimals, otherwise {DEFAULT_BINS}.",
    )
    decimals: Annotated[int, Whole(at_least="0", at_most=str(_MAX_DECIMALS))] | None = Field(
        default=None,
        description="Decimals of synthetic values. Left out: some 1 000 values a bin, at most 6; 2 with "
        "bounds: private.",
    )
    format: NumberNotation | None = Field(default=None, description=FORMAT_HELP)
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: _Bound | None = Field(
        default=None, description="With missing: false, the value of unusable cells. Left out: min."
    )
    bounds: _Bounds | None = Field(default=None, description=BOUNDS_HELP)
    edges: _Edges | None = Field(default=None, json_schema_extra=without_default, description=EDGES_HELP)
    within: _Within = Field(default="linear", description=WITHIN_HELP)

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        return _with_edges(values)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _edges_checked(self)
        if self.bounds is not None:
            return self
        low, high = _ends(self.min, self.max, self.bins)
        if low == high:
            raise refused(f"must be below max; both are {low}", "min")
        _check_default(self.missing, self.default, low, high)
        edges = self._edges()
        floats = [float(e) for e in edges]
        blame = "bins" if isinstance(self.bins, tuple) else "min"
        decimals = self._decimals()
        if max(abs(edges[0]), abs(edges[-1])) * 10**decimals > _LARGEST_STEP:
            raise refused("is too large to be written exactly; use smaller bounds or fewer decimals", blame)
        if any(a >= b for a, b in pairwise(floats)):
            raise refused("makes bins narrower than a double can tell apart; use fewer or wider bins", blame)
        self._no_bin_without_value(edges, decimals)
        return self

    def _no_bin_without_value(self, edges: Sequence[Fraction], decimals: int) -> None:
        for i, (start, end) in enumerate(pairwise(edges)):
            first, scaled = ceil(start * 10**decimals), end * 10**decimals
            last = floor(scaled) if i == len(edges) - 2 else ceil(scaled) - 1
            if first > last:
                raise refused(
                    f"leaves the bin from {float(start):.10g} to {float(end):.10g} without a value of "
                    f"{decimals} decimals; use wider bins or more decimals",
                    "bins" if self.decimals is None else "decimals",
                )

    def _edges(self) -> tuple[Fraction, ...]:
        """The edges of the bins; the last one lies half a step above a largest value alone in its bin."""
        unit = 10 ** self._decimals()
        if isinstance(self.bins, tuple):
            edges = tuple(map(Fraction, self.bins))
            return (*edges[:-1], edges[-1] + Fraction(1, 2 * unit)) if edges[-2] == edges[-1] else edges
        assert self.min is not None and self.max is not None
        low, high = ceil(self.min * unit), floor(self.max * unit)
        if _unasked(self) and low < high:
            starts = _starts(self, low, high)
            return (*(Fraction(start, unit) for start in starts), Fraction(2 * starts[-1] + 1, 2 * unit))
        return self._equal_edges()

    def _equal_edges(self) -> tuple[Fraction, ...]:
        assert self.min is not None and self.max is not None
        count = self.bins if isinstance(self.bins, int) else DEFAULT_BINS
        return _equal(Fraction(self.min), Fraction(self.max), count)

    def _decimals(self) -> int:
        if self.decimals is not None:
            return self.decimals
        if self.bounds is not None or self.edges == "log":
            return _SOUGHT_DECIMALS
        edges = sorted(set(map(float, self.bins if isinstance(self.bins, tuple) else self._equal_edges())))
        decimals = default_decimals(edges)
        largest = max(abs(edges[0]), abs(edges[-1]))
        while decimals and largest * 10**decimals > _LARGEST_STEP:
            decimals -= 1
        return decimals

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Bins, decimals and format."""
        edges = edges_of(described)
        if edges is None or described.get("type") == "integer":
            return None
        decimals = described.get("decimals")
        bins: Declared = {"bins": cast(Value, number_bins(edges, decimals)), "decimals": decimals}
        return {"type": "number", **bins, **format_of(described)}

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self, search=self.search(), uniform=self.within == "uniform")

    def codec(self) -> NumericCodec:
        """The bins, their edges rounded to doubles."""
        search = self.search()
        if search is not None:
            return _stand_in(search)
        edges = tuple(float(e) for e in self._edges())
        return NumericCodec(edges, self._decimals(), integer=False, form=form_of(self.format))

    def search(self) -> NumberSearch | None:
        """The private search for ends or edges, if there is one."""
        return _search(self, self._decimals(), integer=False)

    def fallback(self) -> int:
        """The code of the default."""
        return _code(self.codec(), self.default)


@lru_cache(maxsize=32)
def _equal(low: Fraction, high: Fraction, count: int) -> tuple[Fraction, ...]:
    """The edges of so many bins of one width, kept since one configuration asks for them many times."""
    width = high - low
    return tuple(low + width * i / count for i in range(count + 1))


def _search(column: IntegerColumn | NumberColumn, decimals: int, *, integer: bool) -> NumberSearch | None:
    if column.edges is None or column.edges == "log" or (column.bounds is None and column.edges == "equal"):
        return None
    bins = column.bins if isinstance(column.bins, int) else DEFAULT_BINS
    low, high = (None if end is None else float(end) for end in (column.min, column.max))
    return NumberSearch(low, high, column.edges, bins, decimals, integer, form_of(column.format))


def _stand_in(search: NumberSearch) -> NumericCodec:
    """A stand-in codec with the most bins that the search may find."""
    *starts, last = map(float, range(search.bins + 1))
    return NumericCodec(
        (*starts, last - 0.5 if search.integer else last), search.decimals, search.integer, search.form
    )


def _code(codec: NumericCodec, default: Decimal | int | None) -> int:
    return 0 if default is None else int(codec.codes_of(np.array([float(default)]))[0])
