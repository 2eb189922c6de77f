"""What the values of a column may be, as numbered places: numeric bins, categories, booleans.

Invariant: places are declared, never learnt from the table, and every text has an
answer: a place, or NOWHERE. Encoding never raises on a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NOWHERE = -1
"""Code of a text that is no value of the column: empty, malformed or unknown."""

Codes = NDArray[np.int64]

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FORMULA_SAFE_NUMBER = re.compile(_NUMBER)
_TRUTHS = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "1.0": 1, "on": 1,
           "false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "0.0": 0, "off": 0}  # fmt: skip


def is_number(text: str) -> bool:
    """Whether a text is a plain decimal number (no inf, nan, hex, or separators)."""
    return _FORMULA_SAFE_NUMBER.match(text) is not None


def parse_numbers(texts: pa.StringArray) -> NDArray[np.float64]:
    """Numbers of stripped texts, NaN where a text is null or no plain decimal number.

    A number too large for a double becomes an infinity, which clipping then bounds.
    """
    plain = pc.match_substring_regex(texts, _NUMBER)
    unsigned = pc.replace_substring_regex(texts, r"^\+", "")
    numbers = pc.cast(pc.if_else(plain, unsigned, pa.scalar(None, pa.string())), pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


class Places(Protocol):
    """The places of one kind of column."""

    @property
    def labels(self) -> tuple[str, ...]:
        """One public name a place, for people and for tables of statistics."""
        ...

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of decoded values."""
        ...

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected decoded value of each place, or None where values are not numbers."""
        ...

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """How far a value of a place can lie from its centre, or None likewise."""
        ...

    def encode(self, texts: pa.StringArray) -> Codes:
        """Place of each stripped text, NOWHERE where there is none."""
        ...

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A value for each code (none negative), of type ``arrow_type``."""
        ...

    def text(self, values: pa.Array) -> pa.StringArray:
        """Decoded values as they are written in a CSV file; null stays null."""
        ...


@dataclass(frozen=True)
class NumericPlaces:
    """Bins of a numeric column: [e0, e1), [e1, e2), … , the last one closed.

    Values outside are clipped to the first and last bin. A value decodes to a uniform
    draw from the bin's multiples of 10^-decimals; integers have decimals = 0.

    >>> p = NumericPlaces((0.0, 1.0, 2.0, 5.0), decimals=0, integer=True)
    >>> p.labels
    ('0', '1', '2 to 5')
    >>> p.encode(pa.array(["-7", "1", "4", "99", "many"])).tolist()
    [0, 1, 2, 2, -1]
    """

    edges: tuple[float, ...]
    decimals: int
    integer: bool

    def __post_init__(self) -> None:
        """Reject edges that do not rise."""
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

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 or float64."""
        return pa.int64() if self.integer else pa.float64()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The value of a one-value bin, otherwise its range."""
        low, high = self._grid
        names = []
        for i in range(len(low)):
            if low[i] == high[i]:
                names.append(self._format(int(low[i])))
            elif self.integer:
                names.append(f"{low[i]} to {high[i]}")
            else:
                close = "]" if i == len(low) - 1 else ")"
                names.append(f"[{self.edges[i]:.10g}, {self.edges[i + 1]:.10g}{close}")
        return tuple(names)

    def _format(self, step: int) -> str:
        return f"{step / 10.0**self.decimals:.{self.decimals}f}"

    @property
    def centres(self) -> NDArray[np.float64]:
        """Mean of the values that a bin decodes to."""
        low, high = self._grid
        return np.asarray((low + high) / 2.0 / 10.0**self.decimals)

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Half of the range of values that a bin stands for; 0 for one-value bins."""
        low, high = self._grid
        if self.integer:
            return np.asarray((high - low) / 2.0)
        wide = np.maximum(np.array(self.edges[1:]) - self.centres, self.centres - self.edges[:-1])
        return np.where(low == high, 0.0, wide)

    def encode(self, texts: pa.StringArray) -> Codes:
        """Bin of each number; clipped to the first and last."""
        numbers = parse_numbers(texts)
        bins = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), NOWHERE, bins).astype(np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A uniform draw from the grid of each bin."""
        low, high = self._grid
        steps = rng.integers(low[codes], high[codes] + 1) if len(codes) else low[codes]
        return pa.array(steps if self.integer else steps / 10.0**self.decimals, self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        """Integers plainly, other numbers with their fixed number of decimals."""
        if self.integer:
            return pc.cast(values, pa.string())
        fixed = pc.cast(pc.round(values, self.decimals), pa.decimal128(38, self.decimals), safe=False)
        return pc.cast(fixed, pa.string())


def default_decimals(edges: Sequence[float]) -> int:
    """Decimals that give the narrowest bin some 1 000 values, between 0 and 6."""
    width = min(b - a for a, b in pairwise(edges))
    return int(min(6, max(0, ceil(3 - log10(width)))))


@dataclass(frozen=True)
class CategoryPlaces:
    """A closed list of categories, with an optional place for all others.

    Values given as integers also match cells such as "3.0" and decode to integers.
    """

    values: tuple[str | int, ...]
    other: str | None = None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, then the label of the others if it is not among them."""
        texts = tuple(str(v) for v in self.values)
        return texts if self.other is None or self.other in texts else (*texts, self.other)

    @property
    def _whole_numbers(self) -> bool:
        return all(isinstance(v, int) for v in self.values)

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 where every category is an integer, otherwise string."""
        return pa.int64() if self._whole_numbers and self.other is None else pa.string()

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """The categories themselves where all are integers, otherwise None."""
        if self.arrow_type == pa.int64():
            return np.array(self.values, dtype=np.float64)
        return None

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """Zeros where the categories are integers, otherwise None."""
        return None if self.centres is None else np.zeros(len(self.values))

    def encode(self, texts: pa.StringArray) -> Codes:
        """Position of each text in the list; unknown texts to ``other`` or NOWHERE."""
        found = pc.index_in(texts, pa.array(self.labels, pa.string()))
        codes = found.fill_null(NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
        if self._whole_numbers:
            numbers = parse_numbers(texts)
            order = np.argsort(np.array(self.values, dtype=np.float64), kind="stable")
            ranked = np.array(self.values, dtype=np.float64)[order]
            spot = np.minimum(np.searchsorted(ranked, numbers), len(ranked) - 1)
            codes = np.where((codes == NOWHERE) & (ranked[spot] == numbers), order[spot], codes)
        if self.other is not None:
            present = ~np.asarray(texts.is_null())
            codes = np.where((codes == NOWHERE) & present, self.labels.index(self.other), codes)
        return np.asarray(codes, dtype=np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The category of each code."""
        del rng
        whole = self.arrow_type == pa.int64()
        places = pa.array(self.values if whole else self.labels, self.arrow_type)
        return places.take(pa.array(codes))

    def text(self, values: pa.Array) -> pa.StringArray:
        """The category as text."""
        return pc.cast(values, pa.string())


@dataclass(frozen=True)
class BooleanPlaces:
    """False and true, written as two declared texts; usual spellings of both are read."""

    false: str = "false"
    true: str = "true"

    @property
    def labels(self) -> tuple[str, ...]:
        """The two texts, false first."""
        return (self.false, self.true)

    @property
    def arrow_type(self) -> pa.DataType:
        """bool."""
        return pa.bool_()

    @property
    def centres(self) -> NDArray[np.float64]:
        """0 and 1, so that a mean is a share."""
        return np.array([0.0, 1.0])

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Zeros."""
        return np.zeros(2)

    def encode(self, texts: pa.StringArray) -> Codes:
        """0 or 1; the declared texts first, then the usual spellings in any case."""
        # Arrow and Python lower some letters differently, so one of them lowers both sides.
        false, true = pc.utf8_lower(pa.array([self.false, self.true])).to_pylist()
        spellings = _TRUTHS | {false: 0, true: 1}
        lower = pc.utf8_lower(texts)
        found = pc.index_in(lower, pa.array(list(spellings), pa.string()))
        truth = np.array([*spellings.values(), NOWHERE], dtype=np.int64)
        spelt = found.fill_null(len(spellings)).to_numpy(zero_copy_only=False)
        return np.asarray(truth[spelt], dtype=np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """True where the code is 1."""
        del rng
        return pa.array(codes == 1, pa.bool_())

    def text(self, values: pa.Array) -> pa.StringArray:
        """The declared texts."""
        return pc.if_else(values, self.true, self.false)
