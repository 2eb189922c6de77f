"""Codec of numbers: bins with declared edges, and a density of the values inside each.

Invariant: a decoded value lies in its bin, on the grid of the column's decimals, and is read
back into the same bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, isfinite, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.bin_density import drawn, means, slopes
from dpsynth.columns.cell_values import Intervals
from dpsynth.columns.codec import INVALID, Codes, drawn_between
from dpsynth.columns.formula_kinds import Kind
from dpsynth.columns.number_texts import PLAIN, NumberFormat, fixed_texts
from dpsynth.columns.reading import Readings, clipped
from dpsynth.columns.sums import Steps, steps_of


@dataclass(frozen=True)
class NumericCodec:
    """Bins of a numeric column: [e0, e1), [e1, e2), … , the last one closed.

    Values outside are clipped to the first and last bin. A value decodes to a draw from the
    bin's multiples of 10^-decimals, uniform or by ``slopes``; integers have decimals = 0. Values are written
    in ``form``; labels are plain.

    Attributes:
        edges: the edges e0, e1, ... above.
        decimals: decimals of the values.
        integer: true if they are whole numbers.
        form: their format.
        slopes: slopes of the density of each bin (``bin_density``); empty where all bins are uniform.

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
    def kind(self) -> Kind:
        """Numbers of so many decimals."""
        return Kind("number", self.decimals)

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 or float64."""
        return pa.int64() if self.integer else pa.float64()

    @property
    def ordered(self) -> bool:
        """True."""
        return True

    @property
    def closed(self) -> bool:
        """False."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The first and last bin, which take what lies beyond them."""
        return (0, len(self.edges) - 2)

    @property
    def continuous(self) -> bool:
        """True."""
        return True

    @property
    def schema(self) -> dict[str, object]:
        """Edges, decimals, and the format where it is not plain."""
        found: dict[str, object] = {"edges": list(self.edges), "decimals": self.decimals}
        return found | ({"format": self.form.facts} if self.form.facts else {})

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

    def with_density(self, counts: NDArray[np.float64], least: float) -> NumericCodec:
        """The same bins, with a density inside each that follows the counts of its neighbours.

        Args:
            counts: float64[bins], noisy counts of rows.
            least: lower bound on the rows of a bin, above 0.
        """
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
        """The bins whose density is not uniform."""
        return np.flatnonzero(self.slopes)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Mean of the values that a bin decodes to."""
        low, high = self._grid
        steps, at = np.asarray((low + high) / 2.0), self._sloping
        steps[at] = means(low[at], high[at], np.array(self.slopes)[at])
        return np.asarray(steps / 10.0**self.decimals)

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Largest distance of a bin's values from its centre; 0 for one-value bins."""
        low, high = self._grid
        ends = (low, high) if self.integer else (np.array(self.edges[:-1]), np.array(self.edges[1:]))
        wide = np.maximum(ends[1] - self.centres, self.centres - ends[0])
        return np.where(low == high, 0.0, wide)

    @property
    def cell_values(self) -> Intervals:
        """From the lowest to the highest value that each bin decodes to."""
        low, high = (steps / 10.0**self.decimals for steps in self._grid)
        return Intervals(low, high)

    @cached_property
    def steps(self) -> Steps:
        """Multiples of 10^-decimals, or of a larger power of ten where there would be too many."""
        return steps_of(self.form, self.decimals, *self._grid, cut=self.integer)

    def encode(self, texts: pa.StringArray) -> Codes:
        """Bin of each number; clipped to the first and last."""
        return self.codes_of(self.form.read(texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Numbers as doubles."""
        numbers = self.form.read(texts)
        return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))

    def readings(self, texts: pa.StringArray) -> Readings:
        """Readings of numbers by the first and the last edge."""
        return clipped(self.form.read(texts), self.edges[0], self.edges[-1])

    def codes_of(self, numbers: NDArray[np.float64]) -> Codes:
        """Bin of each number, INVALID for NaN."""
        bins = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), INVALID, bins).astype(np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A draw from the grid of each bin."""
        low, high = self._grid
        steps = drawn_between(low, high, codes, rng)
        if self._sloping.size:
            slope = np.array(self.slopes)[codes]
            at = np.flatnonzero(slope)
            steps[at] = drawn(low[codes[at]], high[codes[at]], slope[at], rng)
        return pa.array(steps if self.integer else steps / 10.0**self.decimals, self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        """Integers without decimals, other numbers with their fixed number of them."""
        plain = pc.cast(values, pa.string()) if self.integer else fixed_texts(values, self.decimals)
        return self.form.write(plain)


def default_decimals(edges: Sequence[float]) -> int:
    """Decimals that give the narrowest bin some 1 000 values, between 0 and 6."""
    width = min(b - a for a, b in pairwise(edges))
    return int(min(6, max(0, ceil(3 - log10(width)))))
