"""For tests of a strategy, of an engine that counts, or of what keeps a ledger: no secret, and no guarantee.

``FakeDoor`` answers a strategy's questions as the curator does, from a table that is no secret and with
seeded noise, and remembers every price. ``same_figures`` holds an engine to the exact figures of
``coded_table``. ``temporary_ledger`` is a ledger that is gone after the test. The tests of dpsynth use the
same.

Invariant: the product imports nothing of this, so no released number is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from math import pi, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.accounting.calibration import mean_absolute_error, noise_variance
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import Slice
from dpsynth.columns.codec import INVALID, Codec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Estimates, Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.parities import FEWEST, number_of_sets, parities, parity_sets
from dpsynth.columns.sums import Centring, FinerCounts, MeasuredSums, Pieces
from dpsynth.columns.workload import Workload
from dpsynth.config.structure import METHODS
from dpsynth.curator.loaded_rows import load_rows
from dpsynth.curator.rows.cell_texts import Batch
from dpsynth.curator.table import Engine, PrivateTable
from dpsynth.model import estimate
from dpsynth.strategy import Strategy, strategy_of
from dpsynth.strategy.strategy import Problem

UNLIMITED = Fraction(10**9)

STRATEGIES: dict[str, Strategy] = {
    method.name: strategy_of(method.name) for method in METHODS.values() if not method.lists_cliques
}
"""Strategies that need no list of cliques, by the name of their method."""


@dataclass
class FakeDoor:
    """Answers as a curator would under add/remove of a row, with numpy's noise.

    It answers a strategy's questions for a coded table, and a search's for one raw column.

    Attributes:
        domain, codes: the table.
        budget: what may be spent; spending more fails the test.
        rng: decides all noise.
        measure, noise: as a curator's.
        lost: cliques whose answer never comes.
        thrift: the part of its price that a choice or a question about distances costs.
        rounding: the part of any price that rounding leaves over.
        wild: answers have nothing to do with the table, choices neither.
        asked: a (kind, detail, price) for each question, in order; the detail of a table's questions is
            their cliques.
        values: the raw column: float64 numbers or texts.
        exact: no noise for the raw column at all.
        wild_answers: from the number of answers to answers that have nothing to do with the raw column.
        named: what a question for values tells, known ones included.
    """

    domain: Domain
    codes: dict[str, NDArray[np.int64]]
    budget: Fraction
    rng: np.random.Generator
    measure: Measure = ZCDP
    noise: str = "gaussian"
    lost: frozenset[Clique] = frozenset()
    thrift: Fraction = Fraction(1)
    rounding: Fraction = Fraction(0)
    wild: bool = False
    asked: list[tuple[str, tuple[Any, ...], Fraction]] = field(default_factory=list)
    penalties: list[tuple[int, ...]] = field(default_factory=list)
    weights: list[tuple[int, ...]] = field(default_factory=list)
    estimates: list[Estimates] = field(default_factory=list)
    spent: Fraction = Fraction(0)
    values: NDArray[np.float64] | list[str] = field(default_factory=list)
    exact: bool = False
    wild_answers: Callable[[int], NDArray[np.int64]] | None = None
    named: Sequence[str] = ()
    _known: tuple[str, dict[Clique, int]] = ("", {})
    _counted: dict[Clique, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of_column(
        cls, values: NDArray[np.float64] | list[str], rng: np.random.Generator, **more: Any
    ) -> FakeDoor:
        """One on a raw column, with a budget that is never used up."""
        return cls(Domain({}), {}, UNLIMITED, rng, values=values, **more)

    @property
    def remaining(self) -> Fraction:
        return self.budget - self.spent

    @property
    def exhausted(self) -> bool:
        """True if all was spent but for the rest that rounding leaves."""
        return 0 <= self.remaining < self.budget / 10**12

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def _pay(self, kind: str, detail: Sequence[Any], price: Fraction) -> None:
        assert isinstance(price, Fraction) and price > 0, (kind, price)
        # What rounding leaves over is too little to ask with.
        least = 0 if self.budget == UNLIMITED else self.budget / 10**9
        assert price > least and self.spent + price <= self.budget, (kind, price, self.remaining)
        self.spent += price * (1 - self.rounding) * (1 if kind == "marginal" else self.thrift)
        self.asked.append((kind, tuple(detail), price))

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        if clique not in self._counted:
            shape = self.domain.shape(clique)
            flat = np.zeros(self.rows, dtype=np.int64)
            for column, size in zip(clique, shape, strict=True):
                flat = flat * size + self.codes[column]
            self._counted[clique] = np.bincount(flat, minlength=self.domain.cells(clique)).reshape(shape)
        return self._counted[clique]

    def scale(self, price: Fraction) -> float:
        if self.noise == "gaussian":
            return 1 / sqrt(2 * price)
        return 1 / float(price) if self.measure == PURE else 1 / sqrt(2 * price)

    def _stddev(self, scale: float) -> float:
        return sqrt(noise_variance(self.noise, scale))

    def _drawn(self, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        if self.noise == "gaussian":
            return np.rint(self.rng.normal(scale=scale, size=shape)).astype(np.int64)
        p = 1 - np.exp(-1 / scale)
        return self.rng.geometric(p, shape) - self.rng.geometric(p, shape)

    def _spread(self, price: Fraction) -> float:
        """The scale of Gumbel noise on scores that a row moves by one."""
        epsilon = {PURE: float(price), ZCDP: sqrt(8 * price), GDP: sqrt(16 * price / pi)}
        return 2 / epsilon[self.measure]

    def cell_error(self, price: Fraction) -> float:
        return mean_absolute_error(self.noise, self.scale(price))

    def _distances(self, candidates: Sequence[Clique], estimates: Estimates) -> NDArray[np.int64]:
        if self.wild:
            return self.rng.integers(-self.rows, 3 * self.rows, len(candidates))
        if self._known[0] != estimates.fingerprint():
            self._known = (estimates.fingerprint(), {})
        known = self._known[1]
        missing = [c for c in candidates if c not in known]
        batch = getattr(estimates, "marginals", None)
        guesses = batch(missing) if batch else {c: estimates.marginal(c) for c in missing}
        for c in missing:
            known[c] = int(np.abs(self.counts(c) - np.rint(guesses[c]).astype(np.int64)).sum())
        return np.array([known[c] for c in candidates], dtype=np.int64)

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        self._pay("choose", candidates, price)
        self.penalties.append(tuple(penalties))
        self.weights.append(tuple(weights))
        self.estimates.append(estimates)
        assert len(penalties) in {0, len(candidates)} and len(weights) in {0, len(candidates)}
        assert all(isinstance(x, int) for x in (*penalties, *weights))
        if self.wild:
            return int(self.rng.integers(len(candidates)))
        w = np.array(weights or [1] * len(candidates))
        scores = (self._distances(candidates, estimates) - np.array(penalties or [0] * len(w))) * w
        return int(np.argmax(scores + self.rng.gumbel(scale=w.max() * self._spread(price), size=len(w))))

    def choose_in_turn(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        most: int,
        admissible: Callable[[Sequence[int]], NDArray[np.bool_]],
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> list[int]:
        found: list[int] = []
        off, times = list(penalties or [0] * len(candidates)), list(weights or [1] * len(candidates))
        while len(found) < most:
            open_ = admissible(found)
            assert open_.shape == (len(candidates),)
            at = [i for i in np.flatnonzero(open_).tolist() if i not in found]
            if not at:
                break
            chosen = [candidates[i] for i in at]
            index = self.choose(chosen, estimates, price, [off[i] for i in at], [times[i] for i in at])
            found.append(at[index])
        return found

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        return self.marginals([(c,) for c in columns], allowance, weights)

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[NDArray[np.int64], float]:
        if not candidates:
            return np.zeros(0, dtype=np.int64), 0.0
        self._pay("errors", candidates, price)
        self.estimates.append(estimates)
        k = len(candidates)
        # One row moves each distance: all of them by k in L1, by sqrt(k) in L2.
        scale = self.scale(price) * (sqrt(k) if self.noise == "gaussian" else k)
        return self._distances(candidates, estimates) + self._drawn(scale, (k,)), self._stddev(scale)

    def parity_error(self, price: Fraction, number: int) -> float:
        # One row moves each parity: all of them by their number in L1, by its root in L2.
        return self._stddev(self.scale(price) * (sqrt(number) if self.noise == "gaussian" else number))

    def parities(self, columns: Sequence[str], most: int, price: Fraction) -> tuple[NDArray[np.int64], float]:
        number = number_of_sets(len(columns), most)
        self._pay("parities", [*parity_sets(columns, most)], price)
        scale = self.scale(price) * (sqrt(number) if self.noise == "gaussian" else number)
        exact = parities([self.codes[c] for c in columns], most)
        exact = self.rng.integers(-self.rows, self.rows, number) if self.wild else exact
        return exact + self._drawn(scale, (number,)), self._stddev(scale)

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        assert len(weights) in {0, len(cliques)} and all(w > 0 for w in weights)
        parts = list(weights or [Fraction(1)] * len(cliques))
        found: list[Measurement | None] = []
        for clique, part in zip(cliques, parts, strict=True):
            price = allowance * part / sum(parts)
            self._pay("marginal", [clique], price)
            scale = self.scale(price)
            shape = self.domain.shape(clique)
            noise = self._drawn(scale, shape)
            exact = self.rng.integers(-self.rows, self.rows, shape) if self.wild else self.counts(clique)
            lost = clique in self.lost
            found.append(None if lost else Measurement(clique, exact + noise, self.noise, scale))
        return found

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        self._pay("sums", [(*by, column)], price)
        scale = self.scale(price) * centring.limit
        # The codes are the steps.
        away = self.codes[column] - np.array(centring.offsets)[self.codes[column]]
        distances = np.clip(away, -centring.limit, centring.limit)
        flat = np.zeros(self.rows, dtype=np.int64)
        for name in by:
            flat = flat * self.domain.sizes[name] + self.codes[name]
        shape = self.domain.shape(by)
        exact = np.bincount(flat, weights=distances, minlength=self.domain.cells(by)).astype(np.int64)
        return MeasuredSums(
            column, by, exact.reshape(shape) + self._drawn(scale, shape), self.noise, scale, centring
        )

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        self._pay("finer counts", [(*by, column)], price)
        # The codes are the steps.
        piece = np.searchsorted(pieces.array, self.codes[column], side="right") - 1
        flat = np.zeros(self.rows, dtype=np.int64)
        for name in by:
            flat = flat * self.domain.sizes[name] + self.codes[name]
        number, shape = len(pieces.first), (*self.domain.shape(by), len(pieces.first))
        exact = np.bincount(flat * number + piece, minlength=self.domain.cells(by) * number)
        scale = self.scale(price)
        noise = self._drawn(scale, shape)
        return FinerCounts(column, by, exact.reshape(shape) + noise, self.noise, scale, pieces)

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        self._pay("counts", tuple(codec.schema.items()) or codec.labels, price)
        cells = len(codec.labels)
        scale = self.scale(price)
        stddev = 0.0 if self.exact else self._stddev(scale)
        if self.wild_answers is not None:
            return self.wild_answers(cells), stddev
        if isinstance(codec, NumericCodec):
            codes = codec.codes_of(np.asarray(self.values, dtype=np.float64))
        else:
            codes = codec.encode(pa.array(self.values, pa.string()))
        counts: NDArray[np.int64] = np.bincount(codes[codes != INVALID], minlength=cells)
        return (counts if self.exact else counts + self._drawn(scale, (cells,))), stddev

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        self._pay("medians", (cuts.tobytes(), tuple(runs)), price)
        assert (np.diff(cuts) > 0).all()
        assert all(0 <= start < stop <= cuts.size for start, stop in runs)
        assert all(a[1] - 1 <= b[0] for a, b in pairwise(runs)), "runs share values"
        if self.wild_answers is not None:
            sizes = np.array([stop - start for start, stop in runs])
            wild: NDArray[np.int64] = np.abs(self.wild_answers(len(runs))) % sizes
            return np.array([start for start, _ in runs]) + wild
        below = np.searchsorted(np.sort(self.values), cuts, side="left")
        found = []
        for start, stop in runs:
            inside = below[start:stop]
            scores = -np.abs((inside - inside[0]) - (inside[-1] - inside)).astype(float)
            if not self.exact:
                scores += self.rng.gumbel(scale=self._spread(price), size=scores.size)
            found.append(start + int(np.argmax(scores)))
        return np.array(found)

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        self._pay("values", tuple(known), price)
        return tuple(sorted(set(self.named) - set(known)))


def problem_of(
    door: FakeDoor,
    *,
    one_way: Fraction,
    structure: Fraction,
    max_cells: int = 10**6,
    wanted: tuple[Clique, ...] = (),
    workload: Workload | None = None,
) -> Problem:
    """Have the single columns measured for a part of the budget, and say what is to be solved."""
    singles = door.marginals([(), *((c,) for c in door.domain.columns)], one_way)
    answered = tuple(m for m in singles if m is not None)
    return Problem(
        domain=door.domain,
        values=door.domain,
        singles=answered,
        start=estimate(door.domain, answered),
        workload=workload or Workload(door.domain.columns),
        wanted=wanted,
        structure=structure,
        max_cells=max_cells,
    )


def load_table(
    batches: Iterable[Batch],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
) -> PrivateTable:
    """The private table: coded rows of the slice after contribution bounding."""
    return load_rows(batches, columns, neighbours, key, part).bounded(neighbours.max_rows, key)


def coded_table(
    domain: Domain,
    codes: Mapping[str, NDArray[np.unsignedinteger]],
    steps: Mapping[str, NDArray[np.int32]] | None = None,
) -> PrivateTable:
    """A table of coded rows in memory, from which ``PrivateTable`` makes exact figures.

    Args:
        domain: the columns.
        codes: column to codes[rows], below the column's size.
        steps: column to int32[rows], the number of each row in steps, for columns that are summed.
    """
    rows = len(next(iter(codes.values())))
    return PrivateTable(domain, codes, rows, steps=steps or {}, summed=frozenset(steps or ()))


def same_figures(engine: Engine, table: Engine) -> None:
    """Raise AssertionError unless an engine makes the figures of a table: counts, sums and texts.

    Args:
        engine: the engine under test.
        table: the same rows in this process, as of ``coded_table``.
    """
    assert (engine.domain, engine.rows, engine.largest) == (table.domain, table.rows, table.largest)
    assert (engine.texts_kept, engine.numbers_kept) == (table.texts_kept, table.numbers_kept)
    columns = tuple(table.domain.columns)
    cliques: list[Clique] = [(), *combinations(columns, 1), *combinations(columns, 2)]
    for found, expected in zip(engine.counts_of(cliques), table.counts_of(cliques), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
    binary = [c for c in columns if table.domain.sizes[c] == 2]
    if len(binary) >= FEWEST:
        np.testing.assert_array_equal(engine.parities(binary, FEWEST), table.parities(binary, FEWEST))
    for name in table.texts_kept:
        assert _held(engine, name) == _held(table, name)
    for name in table.numbers_kept:
        centring = Centring((3,) * (table.domain.sizes[name] - 1), 50)
        for by in [(), *combinations([c for c in columns if c != name], 1)]:
            np.testing.assert_array_equal(engine.sums(name, by, centring), table.sums(name, by, centring))


def _held(engine: Engine, column: str) -> dict[str, tuple[int, int]]:
    """Numbers of rows and of units of each text that some row has."""
    texts = engine.texts_of(column)
    found = zip(texts.distinct.to_pylist(), texts.rows.tolist(), texts.units.tolist(), strict=True)
    return {text: (rows, units) for text, rows, units in found if rows}


@contextmanager
def temporary_ledger() -> Iterator[str]:
    """The URL of a ledger that is gone when the block ends, for ``ledger.url`` or ``Ledger``."""
    with TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder) / 'ledger.db'}"
