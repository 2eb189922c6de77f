"""A door on a small table that anyone may see: seeded noise, and every price remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Measurement, mean_absolute_error, noise_variance
from dpsynth.domain.workload import Workload
from dpsynth.model import estimate
from dpsynth.structure.strategy import Estimates, Problem


@dataclass
class FakeDoor:
    """Answers as a curator would under add/remove of a row, with numpy's noise.

    Attributes:
        domain, codes: the table.
        budget: what may be spent; spending more fails the test.
        measure, noise: as a curator's.
        rng: decides all noise.
        lost: cliques whose answer never comes.
        thrift: the part of its price that a choice or a question about distances costs.
        rounding: the part of any price that rounding leaves over.
        wild: answers have nothing to do with the table, choices neither.
        asked: a (kind, cliques, price) for each question, in order.
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
    asked: list[tuple[str, tuple[Clique, ...], Fraction]] = field(default_factory=list)
    penalties: list[tuple[int, ...]] = field(default_factory=list)
    weights: list[tuple[int, ...]] = field(default_factory=list)
    estimates: list[Estimates] = field(default_factory=list)
    spent: Fraction = Fraction(0)
    _known: tuple[str, dict[Clique, int]] = ("", {})
    _counted: dict[Clique, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def remaining(self) -> Fraction:
        return self.budget - self.spent

    @property
    def exhausted(self) -> bool:
        """Whether all was spent but for what rounding left."""
        return 0 <= self.remaining < self.budget / 10**12

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def _pay(self, kind: str, cliques: Sequence[Clique], price: Fraction) -> None:
        # What rounding leaves over is too little to ask with.
        assert price > self.budget / 10**9 and self.spent + price <= self.budget, (
            kind,
            price,
            self.remaining,
        )
        self.spent += price * (1 - self.rounding) * (1 if kind == "marginal" else self.thrift)
        self.asked.append((kind, tuple(cliques), price))

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
        epsilon = {PURE: float(price), ZCDP: sqrt(8 * price), GDP: sqrt(16 * price / pi)}[self.measure]
        return int(np.argmax(scores + self.rng.gumbel(scale=2 * w.max() / epsilon, size=len(w))))

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
        self._pay("errors", candidates, price)
        self.estimates.append(estimates)
        k = len(candidates)
        # One row moves each distance: all of them by k in L1, by sqrt(k) in L2.
        scale = self.scale(price) * (sqrt(k) if self.noise == "gaussian" else k)
        return self._distances(candidates, estimates) + self._drawn(scale, (k,)), self._stddev(scale)

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
