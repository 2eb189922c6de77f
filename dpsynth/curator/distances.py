"""Distances of exact counts from public estimates: private choices among cliques, noisy distances, the exam.

Invariant: a question, its charge and the form of its answer depend on public arguments alone. Distances are
exact, private and whole numbers of rows. One unit moves a distance by at most ``neighbours.l1``, either way:
by the triangle inequality | |x - e|_1 - |x' - e|_1 | <= |x - x'|_1 for any estimate e, and limiting a
distance from above moves it no more. All of it is integer arithmetic, so no rounding moves it further.

A score is a distance less its penalty, times its weight. Penalties and weights are public and fixed before a
choice, so one unit moves a score by at most its weight times the change of the distance; and every score is
within int64.

Questions name their candidates by a digest: thousands of cliques in each question would swell the journal.
Two lists of cliques have one digest only if they hold the same cliques with the same numbers in the same
order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import CalibratedNoise
from dpsynth.accounting.events import ExponentialEvent
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finished_table import FinishedTable
from dpsynth.columns.measurement import Estimates, ManyEstimates, NoisyDistances
from dpsynth.curator import samplers
from dpsynth.curator.charging import PrivacyFilter
from dpsynth.curator.journal import Lost
from dpsynth.curator.marginals import ExactCounts, Store
from dpsynth.curator.table import PrivateTable
from dpsynth.work_shares import telling

Counts = NDArray[np.int64]


Indices = NDArray[np.intp]


FARTHEST = 1 << 40
"""Distances are limited to this many rows, so that weighted scores stay within int64."""


_LARGEST_CELL = FARTHEST


_CELLS_A_BATCH = 1 << 22
"""Largest number of cells of estimates that are held at once."""


HEAVIEST = 1 << 20
"""The largest weight; its product with a limited distance less a limited penalty is within int64."""

MOST_ROWS = 1 << 31
"""Bound on the rows of a finished table, and on exact counts: a product of two is then within int64."""

_HALF = 31
"""Bits of the lower part of a number that is added up in two parts."""


class Distances:
    """L1 distances to one set of estimates at a time, each computed once."""

    def __init__(self, counts: ExactCounts) -> None:
        self._counts = counts
        self._estimates = ""
        self._computed: dict[Clique, int] = {}

    def of(self, candidates: Sequence[Clique], estimates: Estimates, fingerprint: str) -> Counts:
        """L1 distances int64[candidates], in rows, from the estimates rounded to integers."""
        if fingerprint != self._estimates:
            self._estimates, self._computed = fingerprint, {}
        try:
            return self._gathered(candidates)
        except KeyError:
            missing = [c for c in dict.fromkeys(candidates) if c not in self._computed]
        self._counts.prepare(missing)
        for batch in self._counts.table.domain.batches(missing, _CELLS_A_BATCH):
            if isinstance(estimates, ManyEstimates):
                guesses = estimates.marginals(batch)
            else:
                guesses = {clique: estimates.marginal(clique) for clique in batch}
            self._computed |= {c: _distance(self._counts.of(c), guesses[c]) for c in batch}
        return self._gathered(candidates)

    def _gathered(self, candidates: Sequence[Clique]) -> Counts:
        return np.fromiter(map(self._computed.__getitem__, candidates), np.int64, len(candidates))


def _distance(counts: Counts, guess: NDArray[np.float64]) -> int:
    # A guess of another shape would be stretched, and each row with it be counted several times.
    if guess.shape != counts.shape:
        raise ValueError("an estimate must have one number for each cell of its marginal")
    near = np.fmax(np.fmin(np.rint(guess), _LARGEST_CELL), -_LARGEST_CELL)
    return min(int(np.abs(counts - near.astype(np.int64)).sum()), FARTHEST)


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of candidates, computed once, when first needed.

    Attributes:
        penalties: int64[candidates], in rows.
        weights: int64[candidates].
    """

    distances: Callable[[], Counts]
    penalties: Counts
    weights: Counts

    @cached_property
    def _all(self) -> Counts:
        return self.weights * (self.distances() - self.penalties)

    def of(self, at: Indices) -> Counts:
        """The scores at some positions among the candidates. Private."""
        return self._all[at]

    def sensitivity(self, at: Indices, l1: int) -> int:
        """Sensitivity of the scores at some positions, if a distance has sensitivity ``l1``.

        At least ``l1``: a mechanism needs a positive one, also for weights of 0 alone.
        """
        return l1 * max(1, int(self.weights[at].max()))


def public_numbers(number: int, penalties: Sequence[int], weights: Sequence[int]) -> tuple[Counts, Counts]:
    """Penalties and weights of a number of candidates; 0 and 1 if they are left out.

    Raises:
        ValueError: there is not one of each for every candidate, a penalty is beyond 2^40 rows, or
            a weight is not within 0 and 2^20.
    """
    off = _within(penalties, number, 0, -FARTHEST, FARTHEST)
    return off, _within(weights, number, 1, 0, HEAVIEST)


def _within(given: Sequence[int], number: int, default: int, least: int, most: int) -> Counts:
    if len(given) not in {0, number}:
        raise ValueError("a choice needs one number for each candidate, or none at all")
    numbers = np.array(given, dtype=np.int64) if len(given) else np.full(number, default, dtype=np.int64)
    if numbers.min(initial=least) < least or numbers.max(initial=most) > most:
        raise ValueError(f"a number of a candidate must lie between {least} and {most}")
    return numbers


class DistanceQuestions(PrivacyFilter):
    """Questions about cliques, by the distances of public estimates from their exact counts."""

    _counts: ExactCounts
    _distances: Distances
    _digests: CliqueDigests

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        """The index of a clique whose estimate is far from the truth, by the exponential mechanism.

        The score of a clique is the L1 distance, in rows, between its exact counts and its estimate rounded
        to integers, less its penalty, times its weight.

        Sensitivity: ``neighbours.l1`` times the largest weight, in either direction; see ``Scores``.
        Distribution: Pr[i] ~ exp(score_i/scale).
        Cost: epsilon = 2 sensitivity/scale; rho = epsilon^2/8; mu^2/2 = pi epsilon^2/16.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: no candidates, or numbers out of range or not one a candidate.
        """
        if not candidates:
            raise ValueError("a choice needs candidates")
        pick = self._chooser(candidates, estimates, price, penalties, weights)
        return pick(np.arange(len(candidates)))

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
        """The indices of several cliques, chosen one after another by ``choose``, none twice.

        Sensitivity: for each choice, that of ``choose`` among the candidates that may come next.
        Distribution: for each choice, that of ``choose``, with noise of its own.
        Cost: for each choice, that of ``choose``, charged before the choice is drawn.

        The candidates that may come next follow from earlier choices and public facts, so the choices compose
        like any adaptive questions. Distances, and the digest of all candidates, are computed once.

        Raises:
            ValueError: as for ``choose``, and if ``admissible`` doesn't have one value for each candidate.
        """
        chosen: list[int] = []
        if most <= 0 or not candidates:
            return chosen
        pick = self._chooser(candidates, estimates, price, penalties, weights)
        tell = telling("choosing", most)
        while len(chosen) < most:
            may = np.array(admissible(tuple(chosen)), dtype=np.bool_)
            if may.shape != (len(candidates),):
                raise ValueError("whether it may be chosen must be said of each candidate")
            may[chosen] = False
            if not may.any():
                break
            chosen.append(pick(np.flatnonzero(may)))
            tell(1)
        return chosen

    def _chooser(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int],
        weights: Sequence[int],
    ) -> Callable[[NDArray[np.intp]], int]:
        candidates, digest = tuple(candidates), estimates.fingerprint()
        off, times = public_numbers(len(candidates), penalties, weights)
        named = self._digests.of(candidates, off, times)
        scores = Scores(lambda: self._distances.of(candidates, estimates, digest), off, times)

        def pick(at: NDArray[np.intp]) -> int:
            sensitivity = scores.sensitivity(at, self._terms.neighbours.l1)
            question = {"ask": "choose", "candidates": selected(named, at), "estimates": digest}

            def ask(price: Fraction) -> tuple[Counts | Lost, ExponentialEvent]:
                event = self._calibration.choices(price, sensitivity).event
                return self._ask(
                    question,
                    event,
                    lambda: scores.of(at),
                    lambda found: np.array(samplers.choose_index(found, event.scale)),
                ), event

            return int(at[int(self._insist(price, ask)[0])])

        return pick

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[Counts, float]:
        """Noisy L1 distances, in rows, between exact counts and estimates rounded to integers.

        Sensitivity: k l1 in L1 and k l1^2 in squared L2, as one unit moves each of k distances by at most l1.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a candidate.
        Cost: that of one ``GaussianEvent`` or ``LaplaceEvent`` with these; none without candidates.

        Here l1 is ``neighbours.l1``.

        Raises:
            BudgetRefused: nothing is left to pay with.
        """
        if not candidates:
            return np.zeros(0, dtype=np.int64), 0.0
        digest = estimates.fingerprint()
        question = {"ask": "errors", "candidates": self._digests.of(candidates), "estimates": digest}

        def exact() -> Counts:
            return self._distances.of(candidates, estimates, digest)

        def bought_for(price: Fraction) -> CalibratedNoise:
            return self._calibration.distances(price, len(candidates))

        values, bought = self._noisy(question, exact, price, bought_for)
        return values, bought.stddev

    def examine(
        self, cliques: Sequence[Clique], table: FinishedTable, price: Fraction
    ) -> NoisyDistances | None:
        """Noisy L1 distances, in rows, between exact counts and those of a finished table.

        A table of m rows that stands for n rows has the count y n/m where y of its rows are. With the exact
        count x the distance is the sum of |x m - y n| over all cells, divided by m and rounded down.

        Sensitivity: k l1 in L1 and k l1^2 in squared L2, as one unit moves each of k distances by at most l1.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a distance.
        Cost: that of one ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Here l1 is ``neighbours.l1``. A unit moves the counts x by at most l1 in L1, so by the triangle
        inequality the sum of |x m - y n| by at most m l1; and two numbers at most m l1 apart are at most l1
        apart after a division by m that rounds down. The table is public, and so are m and n. An empty table
        counts as one row that is in no cell.

        Returns:
            The distances; None if they were lost to an interruption. They stay paid for.

        Raises:
            BudgetRefused: the price is more than what is left.
            ValueError: a table has too many rows.
        """
        if max(table.rows, table.stands_for) >= MOST_ROWS:
            raise ValueError(f"a finished table has fewer than {MOST_ROWS} rows")
        event = self._calibration.distances(price, len(cliques)).event
        question = {"ask": "exam", "candidates": self._digests.of(cliques), "table": table.sha256}
        drawn = self._once(question, event, lambda: self._exact(cliques, table))
        if drawn is None:
            return None
        return NoisyDistances(tuple(cliques), drawn, self._terms.noise, event.scale)

    def _exact(self, cliques: Sequence[Clique], table: FinishedTable) -> Counts:
        domain, rows = self._counts.table.domain, max(table.rows, 1)
        found: list[int] = []
        for batch in domain.batches(cliques, _CELLS_A_BATCH):
            self._counts.prepare(batch)
            finished = _counted(domain, table, batch)
            for clique in batch:
                # An exact count beyond the limit counts as the limit: no error may tell that there is one.
                exact = np.minimum(self._counts.of(clique), MOST_ROWS)
                apart = np.abs(exact * rows - finished[clique] * table.stands_for)
                found.append(_sum(apart) // rows)
        return np.array(found, dtype=np.int64)


class CliqueDigests:
    """Digests of lists of cliques; the digest of a single clique is computed once."""

    def __init__(self) -> None:
        self._known: dict[Clique, bytes] = {}

    def of(self, cliques: Sequence[Clique], *numbers: NDArray[np.int64]) -> Mapping[str, object]:
        """The number of cliques, and a SHA-256 of them and of lists of numbers, one a clique each."""
        try:
            digests = b"".join(map(self._known.__getitem__, cliques))
        except KeyError:
            self._known |= {c: sha256(json.dumps(c).encode()).digest() for c in cliques}
            digests = b"".join(map(self._known.__getitem__, cliques))
        # Digests and numbers have a fixed length, so no two lists are joined to the same bytes.
        joined = b"".join([digests, *(n.astype("<i8").tobytes() for n in numbers)])
        return {"number": len(cliques), "sha256": sha256(joined).hexdigest()}


def selected(whole: Mapping[str, object], at: NDArray[np.intp]) -> Mapping[str, object]:
    """The digest of a part of a list, from the digest of the whole and the positions of the part."""
    name = str(whole["sha256"]).encode()
    return {"number": len(at), "sha256": sha256(name + at.astype("<i8").tobytes()).hexdigest()}


def _sum(numbers: Counts) -> int:
    """The sum of numbers from 0, which may be beyond int64."""
    return (int((numbers >> _HALF).sum()) << _HALF) + int((numbers & ((1 << _HALF) - 1)).sum())


def _counted(domain: Domain, table: FinishedTable, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
    found = {clique: np.zeros(domain.shape(clique), dtype=np.int64) for clique in cliques}
    for rows, codes in table.coded.pieces():
        piece = ExactCounts(PrivateTable(domain, codes, rows), Store())
        piece.prepare(cliques)
        found = {clique: counts + piece.of(clique) for clique, counts in found.items()}
    return found
