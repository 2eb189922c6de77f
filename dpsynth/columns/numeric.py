"""Columns of numbers, whole or with decimals, in bins.

Invariant: the bins follow from the declaration, by exact arithmetic, or were paid for; each holds at least
one value. A decoded value lies in its bin, on the grid of the column's decimals, and is read back into the
same bin.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Annotated, ClassVar, Literal, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dpsynth.columns.bins import (
    BOUNDS_HELP,
    DEFAULT_BINS,
    EDGES_HELP,
    FEWEST_GROWING,
    FEWEST_ON_BOTH_SIDES,
    WITHIN_HELP,
    Bins,
    drawn,
    growing_starts,
    grows,
    means,
    round_starts,
    slopes,
)
from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, Readings, clipped, drawn_between
from dpsynth.columns.column import Edges, NumberSearch
from dpsynth.columns.declaration import (
    ONE_A_VALUE,
    Declared,
    Described,
    Expected,
    Missing,
    MissingCells,
    Modelled,
    check_default,
)
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import (
    FORMAT_HELP,
    LARGEST_STEP,
    PLAIN,
    NumberFormat,
    NumberNotation,
    fixed_texts,
    form_of,
)
from dpsynth.columns.section import Choice, Number, Value, Whole, refused, without_default
from dpsynth.columns.sums import Steps, steps_of


@dataclass(frozen=True)
class NumericCodec(Codec):
    """Bins of a numeric column: [e0, e1), [e1, e2), … , the last one closed.

    Values outside are clipped to the first and last bin. A value decodes to a draw from the
    bin's multiples of 10^-decimals, uniform or by ``slopes``; integers have decimals = 0. Values are written
    in ``form``; labels are plain.

    Attributes:
        slopes: slopes of the density of each bin (``bins.slopes``); empty where all bins are uniform.

    >>> p = NumericCodec((0.0, 1.0, 2.0, 5.0), decimals=0, integer=True)
    >>> p.labels
    ('0', '1', '2 to 5')
    >>> p.encode(pa.array(["-7", "1", "4", "99", "many"])).tolist()
    [0, 1, 2, 2, -1]
    """

    edges: tuple[float, ...]
    decimals: int
    integer: bool
    form: NumberFormat = PLAIN
    slopes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in pairwise(self.edges))
        if len(self.edges) < 2 or not rising or not all(map(isfinite, self.edges)):
            raise ValueError("edges must be two or more rising finite numbers")

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last multiple of 10^-decimals in each bin (last >= first always)."""
        steps = [Decimal(repr(e)).scaleb(self.decimals) for e in self.edges]
        lows = [ceil(s) for s in steps[:-1]]
        highs = [ceil(s) - 1 for s in steps[1:-1]]
        highs.append(floor(steps[-1]))
        low = np.array(lows, dtype=np.int64)
        return low, np.maximum(np.array(highs, dtype=np.int64), low)

    ordered = True
    continuous = True

    @property
    def kind(self) -> Kind:
        return Kind("number", self.decimals)

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.int64() if self.integer else pa.float64()

    @property
    def schema(self) -> dict[str, object]:
        found: dict[str, object] = {"edges": list(self.edges), "decimals": self.decimals}
        return found | ({"format": self.form.facts} if self.form.facts else {})

    @cached_property
    def labels(self) -> tuple[str, ...]:
        low, high = self._grid
        names = []
        for i in range(len(low)):
            if low[i] == high[i]:
                names.append(f"{int(low[i]) / 10.0**self.decimals:.{self.decimals}f}")
            elif self.integer:
                names.append(f"{low[i]} to {high[i]}")
            else:
                close = "]" if i == len(low) - 1 else ")"
                names.append(f"[{self.edges[i]:.10g}, {self.edges[i + 1]:.10g}{close}")
        return tuple(names)

    def with_density(self, counts: NDArray[np.float64], least: float) -> NumericCodec:
        return replace(self, slopes=tuple(slopes(*self._grid, counts, least).tolist()))

    def divided(self, pieces: NDArray[np.int64]) -> tuple[NumericCodec, Codes]:
        """Bins divided into pieces of about as many values each, uniform inside; and the bin of each piece.

        Args:
            pieces: int64[bins], the number of pieces of each; a bin of fewer values has one a value.
        """
        low, high = self._grid
        many = np.minimum(pieces, high - low + 1)
        # The last bin holds its end, which no piece can begin at.
        many[-1] = max(min(many[-1], high[-1] - low[-1]), 1)
        bins = np.repeat(np.arange(len(low)), many)
        number = np.arange(len(bins)) - np.repeat(np.cumsum(many) - many, many)
        steps = low[bins] + number * (high - low + 1)[bins] // many[bins]
        edges = np.where(number == 0, np.array(self.edges[:-1])[bins], steps / 10.0**self.decimals)
        return replace(self, edges=(*edges.tolist(), self.edges[-1]), slopes=()), bins

    @cached_property
    def _sloping(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.slopes)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        low, high = self._grid
        steps, at = np.asarray((low + high) / 2.0), self._sloping
        steps[at] = means(low[at], high[at], np.array(self.slopes)[at])
        return np.asarray(steps / 10.0**self.decimals)

    @property
    def half_widths(self) -> NDArray[np.float64]:
        low, high = self._grid
        ends = (low, high) if self.integer else (np.array(self.edges[:-1]), np.array(self.edges[1:]))
        wide = np.maximum(ends[1] - self.centres, self.centres - ends[0])
        return np.where(low == high, 0.0, wide)

    @property
    def cell_values(self) -> Intervals:
        low, high = (steps / 10.0**self.decimals for steps in self._grid)
        return Intervals(low, high)

    @cached_property
    def steps(self) -> Steps:
        """Multiples of 10^-decimals, or of a larger power of ten where there would be too many."""
        return steps_of(self.form, self.decimals, *self._grid, cut=self.integer)

    def encode(self, texts: pa.StringArray) -> Codes:
        return self.codes_of(self.form.read(texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        numbers = self.form.read(texts)
        return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))

    def readings(self, texts: pa.StringArray) -> Readings:
        return clipped(self.form.read(texts), self.edges[0], self.edges[-1])

    def codes_of(self, numbers: NDArray[np.float64]) -> Codes:
        bins = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), INVALID, bins).astype(np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        low, high = self._grid
        steps = drawn_between(low, high, codes, rng)
        if self._sloping.size:
            slope = np.array(self.slopes)[codes]
            at = np.flatnonzero(slope)
            steps[at] = drawn(low[codes[at]], high[codes[at]], slope[at], rng)
        return pa.array(steps if self.integer else steps / 10.0**self.decimals, self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        plain = pc.cast(values, pa.string()) if self.integer else fixed_texts(values, self.decimals)
        return self.form.write(plain)


def default_decimals(edges: Sequence[float]) -> int:
    """Decimals that give the narrowest bin some 1 000 values, between 0 and 6."""
    width = min(b - a for a, b in pairwise(edges))
    return int(min(6, max(0, ceil(3 - log10(width)))))


_LARGEST_INTEGER = 10**15


_MAX_DECIMALS = 9

_SOUGHT_DECIMALS = 2
"""Default number of decimals of columns with private bounds or growing bins."""

_PUBLIC_EDGES = (None, "equal", "log")

_WholeBound = Annotated[int, Whole(at_least=str(-_LARGEST_INTEGER), at_most=str(_LARGEST_INTEGER))]

_Bound = Annotated[Decimal, Number()]

_Bounds = Annotated[Literal["private"], Choice(("private",))]

_Within = Annotated[Literal["linear", "uniform"], Choice(("linear", "uniform"))]

_Edges = Annotated[Literal["log"] | Edges, Choice(("equal", "log", "quantiles", "tree"))]


_NUMBER_OF_BINS = (
    "for statistics, constraints and public marginals that name the column; elsewhere it is counted in cells "
    "of the model's own. "
)


def _ends(
    low: Decimal | int | None, high: Decimal | int | None, bins: int | tuple[Decimal | int, ...] | None
) -> tuple[Decimal | int, Decimal | int]:
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


def _check_default(
    missing: MissingCells, default: Decimal | int | None, low: Decimal | int, high: Decimal | int
) -> None:
    check_default(missing, default)
    if default is not None and not low <= default <= high:
        raise refused(f"must lie between {low} and {high}", "default")


class _NumericColumn(Modelled):
    STAND_INS: ClassVar[Declared] = {"min": 0, "max": 1}

    # In the order of the keys; those without a default are each kind's own.
    type: str
    min: Decimal | int | None
    max: Decimal | int | None
    bins: int | tuple[Decimal | int, ...] | None
    format: NumberNotation | None = Field(default=None, description=FORMAT_HELP)
    missing: Missing = True
    expected: Expected = None
    default: Decimal | int | None
    bounds: _Bounds | None = Field(default=None, description=BOUNDS_HELP)
    edges: _Edges | None = Field(default=None, json_schema_extra=without_default, description=EDGES_HELP)
    within: _Within = Field(default="linear", description=WITHIN_HELP)

    @abstractmethod
    def codec(self) -> NumericCodec: ...

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        if isinstance(values, dict) and values.get("bounds") == "private":
            return {**values, "edges": values.get("edges") or "tree"}
        return values

    @property
    def uniform(self) -> bool:
        return self.within == "uniform"

    def fallback(self) -> int:
        return 0 if self.default is None else int(self.codec().codes_of(np.array([float(self.default)]))[0])

    def _decimals(self) -> int:
        return 0

    def search(self) -> NumberSearch | None:
        if self.edges is None or self.edges == "log" or (self.bounds is None and self.edges == "equal"):
            return None
        bins = self.bins if isinstance(self.bins, int) else DEFAULT_BINS
        low, high = (None if end is None else float(end) for end in (self.min, self.max))
        return NumberSearch(
            low, high, self.edges, bins, self._decimals(), self.type == "integer", form_of(self.format)
        )

    def _edges_checked(self) -> None:
        if self.edges == "log":
            if self.bounds is not None:
                raise refused("must not be log with bounds: private; use tree, or give min and max", "edges")
            if isinstance(self.bins, tuple):
                raise refused("must be a number with edges: log", "bins")
            both = self.min is not None and self.max is not None and self.min < 0 < self.max
            fewest = FEWEST_ON_BOTH_SIDES if both else FEWEST_GROWING
            if isinstance(self.bins, int) and self.bins < fewest:
                raise refused(f"must be at least {fewest} with edges: log", "bins")
        if self.bounds is None and self.edges in _PUBLIC_EDGES:
            return
        searched = "bounds: private" if self.bounds is not None else f"edges: {self.edges}"
        if isinstance(self.bins, tuple):
            raise refused(f"must be a number with {searched}: how many there may be at most", "bins")
        if isinstance(self.bins, int) and self.bins < 2:
            raise refused(f"must be at least 2 with {searched}", "bins")
        if self.default is not None:
            smallest = "with missing: false, unusable cells become the smallest value"
            raise refused(f"has no use with {searched}: {smallest}", "default")
        for key in ("min", "max") if self.bounds is not None else ():
            if getattr(self, key) is not None:
                raise refused(f"has no use with {searched}; leave out one of the two", key)

    def counted(self) -> Self:
        """The declaration with edges of the model's own, at round numbers; a cell a value where they are few.

        What wide bins hide no budget gives back, and counts of narrow ones are cheap: neighbours of few rows
        are put together by noisy counts before columns are counted together (``model.rare_values``). So a
        number of bins below ``ONE_A_VALUE`` doesn't bind; listed edges do, and those that are to be found.
        """
        bins = self.bins or 1
        if self.search() is not None or isinstance(bins, tuple) or bins >= ONE_A_VALUE:
            return self
        assert self.min is not None and self.max is not None
        decimals = self._decimals()
        low, high = ceil(self.min * 10**decimals), floor(self.max * 10**decimals)
        if low >= high:
            return self
        steps = (*self._starts(low, high, ONE_A_VALUE), high)
        edges = tuple(Decimal(step).scaleb(-decimals) if decimals else step for step in steps)
        own = {"decimals": decimals} if self.type == "number" else {}
        return self.model_copy(update={"bins": edges, "edges": None, **own})

    def _starts(self, low: int, high: int, bins: int = 0) -> list[int]:
        """Starts of bins that nobody listed, in units of the last decimal; up to 32 if no number is given."""
        assert self.min is not None and self.max is not None
        if not bins:
            each = self.edges != "log" and high - low < ONE_A_VALUE
            bins = ONE_A_VALUE if each else self.bins if isinstance(self.bins, int) else DEFAULT_BINS
        growing = self.edges == "log" or (self.edges is None and grows(float(self.min), float(self.max)))
        return (growing_starts if growing else round_starts)(low, high, bins)


def _stand_in(search: NumberSearch) -> NumericCodec:
    *starts, last = map(float, range(search.bins + 1))
    return NumericCodec(
        (*starts, last - 0.5 if search.integer else last), search.decimals, search.integer, search.form
    )


class IntegerColumn(_NumericColumn):
    """Whole numbers. Values outside min..max are clipped; fractions are cut off."""

    type: Literal["integer"] = Field(description="Kind of column.")
    min: _WholeBound | None = Field(
        default=None, description="Smallest value; smaller ones count as this one."
    )
    max: _WholeBound | None = Field(default=None, description="Largest value; larger ones count as this one.")
    bins: Annotated[int | tuple[int, ...], Bins(Whole())] | None = Field(
        default=None,
        description="Rising edges of bins: [0, 10, 20, 110] is 0-9, 10-19 and 20-110. Or a number of bins, "
        + _NUMBER_OF_BINS
        + f"Left out: one a value up to {ONE_A_VALUE} values, otherwise {DEFAULT_BINS}.",
    )
    default: _WholeBound | None = Field(
        default=None, description="With missing: false, the value of unusable cells. Left out: min."
    )

    def model_post_init(self, context: object, /) -> None:
        self._edges_checked()
        if self.bounds is not None:
            return
        low, high = _ends(self.min, self.max, self.bins)
        _check_default(self.missing, self.default, low, high)
        if isinstance(self.bins, int) and self.bins > high - low + 1:
            raise refused(f"must be at most {high - low + 1}, the number of values from min to max", "bins")
        if isinstance(self.bins, tuple) and max(map(abs, self.bins)) > _LARGEST_INTEGER:
            raise refused(f"must lie between -{_LARGEST_INTEGER} and {_LARGEST_INTEGER}", "bins")

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        edges = edges_of(described)
        if edges is None or described.get("type") != "integer":
            return None
        return {"type": "integer", **whole_bins(edges), **format_of(described)}

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
            if self.bins is None or self.edges == "log":
                starts = self._starts(self.min, last)
            else:
                starts = [self.min + i * (last - self.min + 1) // self.bins for i in range(self.bins)]
        return NumericCodec((*map(float, starts), last + 0.5), 0, integer=True, form=form_of(self.format))


class NumberColumn(_NumericColumn):
    """Decimal numbers. Values outside min..max are clipped."""

    type: Literal["number"] = Field(description="Kind of column.")
    min: _Bound | None = Field(default=None, description="Smallest value; smaller ones count as this one.")
    max: _Bound | None = Field(default=None, description="Largest value; larger ones count as this one.")
    bins: Annotated[int | tuple[Decimal, ...], Bins(Number())] | None = Field(
        default=None,
        description="Rising edges of bins. Or a number of bins, "
        + _NUMBER_OF_BINS
        + f"Left out: one a value up to {ONE_A_VALUE} values of the declared decimals, otherwise "
        f"{DEFAULT_BINS}.",
    )
    decimals: Annotated[int, Whole(at_least="0", at_most=str(_MAX_DECIMALS))] | None = Field(
        default=None,
        description="Decimals of synthetic values. Left out: some 1 000 values a bin, at most 6; 2 with "
        "bounds: private.",
    )
    default: _Bound | None = Field(
        default=None, description="With missing: false, the value of unusable cells. Left out: min."
    )

    def model_post_init(self, context: object, /) -> None:
        self._edges_checked()
        if self.bounds is not None:
            return
        low, high = _ends(self.min, self.max, self.bins)
        if low == high:
            raise refused(f"must be below max; both are {low}", "min")
        _check_default(self.missing, self.default, low, high)
        edges = self._edges()
        floats = [float(e) for e in edges]
        blame = "bins" if isinstance(self.bins, tuple) else "min"
        decimals = self._decimals()
        if max(abs(edges[0]), abs(edges[-1])) * 10**decimals > LARGEST_STEP:
            raise refused("is too large to be written exactly; use smaller bounds or fewer decimals", blame)
        if any(a >= b for a, b in pairwise(floats)):
            raise refused("makes bins narrower than a double can tell apart; use fewer or wider bins", blame)
        self._no_bin_without_value(edges, decimals)

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
        if (self.bins is None or self.edges == "log") and low < high:
            starts = self._starts(low, high)
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
        while decimals and largest * 10**decimals > LARGEST_STEP:
            decimals -= 1
        return decimals

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        edges = edges_of(described)
        if edges is None or described.get("type") == "integer":
            return None
        decimals = described.get("decimals")
        bins: Declared = {"bins": cast(Value, number_bins(edges, decimals)), "decimals": decimals}
        return {"type": "number", **bins, **format_of(described)}

    def codec(self) -> NumericCodec:
        search = self.search()
        if search is not None:
            return _stand_in(search)
        edges = tuple(float(e) for e in self._edges())
        return NumericCodec(edges, self._decimals(), integer=False, form=form_of(self.format))


@lru_cache(maxsize=32)
def _equal(low: Fraction, high: Fraction, count: int) -> tuple[Fraction, ...]:
    width = high - low
    return tuple(low + width * i / count for i in range(count + 1))


_HUGE = 10**20


def edges_of(described: Described) -> list[Decimal] | None:
    """Edges of bins of numbers; None without usable edges."""
    edges = described.get("edges")
    if not isinstance(edges, list) or len(edges) < 2:
        return None
    numbers = [Decimal(e) for e in edges if isinstance(e, int | Decimal) and not isinstance(e, bool)]
    found = [number for number in numbers if number.is_finite() and abs(number) < _HUGE]
    return found if len(found) == len(edges) else None


def number_bins(edges: Sequence[Decimal], decimals: Value) -> list[Decimal]:
    """The edges as they are declared: a largest value that is alone in its bin is given twice."""
    half = Decimal(5).scaleb(-decimals - 1) if isinstance(decimals, int) else None
    return [*edges[:-1], edges[-2]] if edges[-1] - edges[-2] == half else list(edges)


def whole_bins(edges: Sequence[Decimal]) -> Declared:
    """The keys of bins of whole numbers. The last upper edge lies half a step above the largest value."""
    starts, last = [int(edge) for edge in edges[:-1]], floor(edges[-1])
    if all(b - a == 1 for a, b in pairwise([*starts, last + 1])):
        return {"min": starts[0], "max": last, "bins": len(starts)}
    # A last edge that is given twice makes a bin of the largest value alone.
    return {"bins": cast(Value, [*starts, last])}


def format_of(described: Described) -> Declared:
    """The keys of the notation of numbers; none for plain notation."""
    return {"format": described["format"]} if "format" in described else {}
