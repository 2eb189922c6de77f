"""A door on one column that anyone may see: seeded noise, and every price remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.domain.codec import INVALID, Codec
from dpsynth.domain.column import Column
from dpsynth.domain.number_texts import PLAIN
from dpsynth.domain.numeric_codec import NumericCodec
from dpsynth.domain.search import NumberSearch, Search


@dataclass
class FakeDoor:
    """Answers as a curator would under add/remove of a row in rho, with numpy's noise.

    Attributes:
        values: the column: float64 numbers or texts.
        rng: decides all noise.
        noise: "gaussian" or "laplace".
        exact: no noise at all.
        wild: from the number of answers to answers that have nothing to do with the column.
        named: what a question for values tells, known ones included.
        asked: a (kind, detail, price) for each question, in order.
    """

    values: NDArray[np.float64] | list[str]
    rng: np.random.Generator
    noise: str = "gaussian"
    exact: bool = False
    wild: Callable[[int], NDArray[np.int64]] | None = None
    named: Sequence[str] = ()
    asked: list[tuple[str, object, Fraction]] = field(default_factory=list)

    @property
    def spent(self) -> Fraction:
        return sum((price for _, _, price in self.asked), Fraction(0))

    def _pay(self, kind: str, detail: object, price: Fraction) -> None:
        assert isinstance(price, Fraction) and price > 0, (kind, price)
        self.asked.append((kind, detail, price))

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        self._pay("counts", tuple(codec.schema.items()) or codec.labels, price)
        cells = len(codec.labels)
        stddev = 0.0 if self.exact else 1 / sqrt(2 * price)
        if self.wild is not None:
            return self.wild(cells), stddev
        numeric = isinstance(codec, NumericCodec)
        codes = codec.codes_of(self.values) if numeric else codec.encode(pa.array(self.values, pa.string()))
        counts = np.bincount(codes[codes != INVALID], minlength=cells)
        if self.exact:
            return counts, stddev
        if self.noise == "gaussian":
            drawn = self.rng.normal(0, stddev, cells)
        else:
            drawn = self.rng.laplace(0, stddev / sqrt(2), cells)
        return counts + np.rint(drawn).astype(np.int64), stddev

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        self._pay("medians", (cuts.tobytes(), tuple(runs)), price)
        assert (np.diff(cuts) > 0).all()
        assert all(0 <= start < stop <= cuts.size for start, stop in runs)
        assert all(a[1] - 1 <= b[0] for a, b in pairwise(runs)), "runs share values"
        if self.wild is not None:
            return np.array([start + abs(int(w)) % (stop - start) for (start, stop), w in
                             zip(runs, self.wild(len(runs)), strict=True)])  # fmt: skip
        below = np.searchsorted(np.sort(self.values), cuts, side="left")
        found = []
        for start, stop in runs:
            inside = below[start:stop]
            scores = -np.abs((inside - inside[0]) - (inside[-1] - inside)).astype(float)
            if not self.exact:
                scores += self.rng.gumbel(scale=2 / sqrt(8 * price), size=scores.size)
            found.append(start + int(np.argmax(scores)))
        return np.array(found)

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        self._pay("values", tuple(known), price)
        return tuple(sorted(set(self.named) - set(known)))


def sought(search: Search, **more) -> Column:
    """A column whose places are to be found."""
    return Column("x", NumericCodec((0.0, 1.0), 0, integer=False), search=search, **more)


def number_search(edges="tree", bins=32, ends=(None, None), decimals=0, integer=None) -> NumberSearch:
    return NumberSearch(*ends, edges, bins, decimals, decimals == 0 if integer is None else integer, PLAIN)
