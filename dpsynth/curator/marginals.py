"""Marginals, sums by group and finer counts: noisy answers, and the exact figures that they are drawn from.

Every marginal that is asked for is counted once, and all that are asked for together in one pass over the
rows, by unions of cliques (``clique_unions``). Counts are kept in the smallest type that holds the number of
rows, up to a capacity in bytes; counts beyond it are made again at each question.

Invariant: exact figures are private, and leave this package with noise only. A row counts in one cell of a
marginal, in one piece of one group or nowhere, and adds to one sum, by a public limit at most, whatever its
cells hold. A question, its charge and the shape of its answer depend on public arguments alone. The choice of
passes and of kept counts depends on the domain, the number of rows and the cliques asked for, never on a
row's cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import CalibratedNoise
from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.columns.domain import Clique
from dpsynth.columns.finished_table import Classifier
from dpsynth.columns.measurement import Classified, ExactTotal, Measurement, OwnAnswer
from dpsynth.columns.parities import FEWEST, number_of_sets
from dpsynth.columns.sums import Centring, FinerCounts, MeasuredSums, Pieces
from dpsynth.columns.workload import unions
from dpsynth.config.files.opening import unheard
from dpsynth.curator.charging import WORTHLESS, PrivacyFilter
from dpsynth.curator.table import Engine
from dpsynth.work_shares import as_part

Counts = NDArray[np.int64]

TOGETHER = 16
"""Marginals that are charged together: as many at most are lost if a release is killed."""

CAPACITY = 1 << 28
"""Capacity of the store, in bytes."""
_MOST_SHARED = 1 << 16
"""Largest number of cells that are counted together: the result stays in the processor's cache."""
_ROWS_A_CELL = 8
"""Rows per cell above which a larger union is cheaper than another pass."""
_CELLS_A_BATCH = 1 << 24
"""Largest number of cells of unions that are held at once."""

Kept = NDArray[np.integer]


class CountQuestions(PrivacyFilter):
    """Questions about counts of rows, and about sums of their numbers."""

    _table: Engine
    _counts: ExactCounts
    _ungrouped: CountQuestions | None = None
    """The curator of the same rows before compression; None for a curator whose domain isn't compressed."""

    def count(self, price: Fraction) -> OwnAnswer | None:
        """Number of rows after contribution bounding.

        Sensitivity: that of the marginal of no columns, see ``marginals``; 0 where the relation makes the
        number public (rows are exchanged).
        Distribution: that of ``marginals``; the exact number where it is public.
        Cost: that of ``marginals``; none where the number is public.
        """
        if self._terms.neighbours.rows_public:
            rows = np.array(self._counts.table.rows, dtype=np.int64)
            return ExactTotal.of(rows)
        return self.marginals([()], price)[0]

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique, the allowance shared among them by weight.

        Sensitivity: one unit moves a marginal by at most ``neighbours.l1`` in L1 and
        ``neighbours.l2_squared`` in squared L2.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a cell.
        Cost: for each clique, that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Some cliques at a time are charged together. A question lost to an interruption stays paid for. It is
        asked again, after those charged with it, from the rest: from half of that of the release's budget,
        so that later questions can be asked, then from the allowance of the cliques still to come.
        """
        answers: list[Measurement | None] = [None] * len(cliques)
        unspent, own, parts = allowance, allowance, list(weights or [Fraction(1)] * len(cliques))
        whole = later = sum(parts, Fraction(0))
        for first in range(0, len(cliques), TOGETHER):
            still = list(range(len(cliques))[first : first + TOGETHER])
            later -= sum(parts[i] for i in still)
            if self._journal.at_end:
                with unheard():
                    self._counts.prepare(cliques[i] for i in still)
            while still:
                asked: dict[int, GaussianEvent | LaplaceEvent] = {}
                budget, open_ = self.remaining, later + sum(parts[i] for i in still)
                left = min(unspent, own + max(budget - own, Fraction(0)) / 2)
                for i in still:
                    price = min(left, budget) * parts[i] / open_
                    open_ -= parts[i]
                    if price > allowance * parts[i] / whole / WORTHLESS:
                        asked[i] = self._calibration.counts(price).event
                        cost = self._terms.measure.cost(asked[i])
                        left, budget, own = left - cost, budget - cost, max(own - cost, Fraction(0))
                self._charge([(_question(cliques[i]), event) for i, event in asked.items()])
                for i, event in asked.items():
                    answers[i] = self._marginal(cliques[i], event)
                    unspent -= self._terms.measure.cost(event) if answers[i] is not None else 0
                still = [i for i in asked if answers[i] is None]
        return answers

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy one-way marginals over the whole domain, also where this curator's is compressed.

        Sensitivity: that of ``marginals``, over the whole domain.
        Distribution: that of ``marginals``.
        Cost: that of ``marginals``.
        """
        return (self._ungrouped or self).marginals([(c,) for c in columns], allowance, weights)

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        """Noisy sums of a column's numbers by group.

        A row with a value adds its distance from its bin's offset, in whole steps, bounded by the limit L. A
        row without a value adds nothing.

        Sensitivity: l1 L in L1, and (l1 L)^2 in squared L2, where l1 is ``neighbours.l1``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a group.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. A row that comes or goes moves one sum, by at most L. One unit adds or removes ``max_rows``
        rows at most; if it is exchanged, as many leave and as many come. So at most l1 rows come or go, and
        sums move by at most l1 L in L1. The L2 distance is at most the L1 distance. It is as large if all
        these rows move one sum in one direction: an exchanged row may stay in its group and move its sum by
        2 L. In that, sums differ from counts, where an exchanged row leaves one cell and enters another.

        A question lost to an interruption stays paid for, and is asked again from the rest of the budget.

        Args:
            by: the columns of the groups; () for all rows.
            centring: offsets and limit, which may follow from earlier answers.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column's numbers are not kept, as in a compressed domain, or there are more
                offsets than bins.
        """
        table = self._table
        if column not in table.numbers_kept:
            raise ValueError(f"the numbers of column {column} are not kept")
        if len(centring.offsets) > table.domain.sizes[column]:
            raise ValueError("there are more offsets than bins")
        question = {
            "ask": "sums",
            "columns": [*by, column],
            "offsets": centring.digest,
            "limit": centring.limit,
        }

        def exact() -> NDArray[np.int64]:
            return table.sums(column, by, centring)

        def bought_for(price: Fraction) -> CalibratedNoise:
            return self._calibration.sums(price, centring.limit)

        values, bought = self._noisy(question, exact, price, bought_for)
        return MeasuredSums(column, by, values, self._terms.noise, bought.scale, centring)

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        """Noisy counts of rows by group and by the piece of a bin that holds their number.

        Sensitivity: l1 in L1 and l2^2 in squared L2, as that of a marginal: ``neighbours``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a count.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. Pieces don't overlap, so a row counts in one piece of one group; without a number it counts
        nowhere. These counts are a part of the marginal of the groups and of a column whose codes are the
        pieces, so a unit moves them by no more than that.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column's numbers are not kept, as in a compressed domain, or the
                pieces are of more bins than there are.
        """
        table = self._table
        if column not in table.numbers_kept:
            raise ValueError(f"the numbers of column {column} are not kept")
        if pieces.bins > table.domain.sizes[column]:
            raise ValueError("pieces are of more bins than there are")
        question = {"ask": "finer counts", "columns": [*by, column], "pieces": pieces.digest}

        def exact() -> NDArray[np.int64]:
            return table.finer_counts(column, by, pieces)

        values, bought = self._noisy(question, exact, price, self._calibration.counts)
        return FinerCounts(column, by, values, self._terms.noise, bought.scale, pieces)

    def parity_error(self, price: Fraction, number: int) -> float:
        """Standard deviation, in rows, of each of so many parities at a price for all of them. Public."""
        return self._calibration.parities(price, number).stddev

    def parities(self, columns: Sequence[str], most: int, price: Fraction) -> tuple[Counts, float]:
        """Noisy parities of all sets of three to ``most`` of some columns of two places.

        The parity of a set is the sum over all rows of (-1)^(sum of the row's codes in these columns).

        Sensitivity: m l1 in L1 and m l1^2 in squared L2 for m sets, where l1 is ``neighbours.l1``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a set.
        Cost: that of one ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. A row adds 1 to each parity or takes 1, whatever its cells hold. A unit comes or goes with
        ``max_rows`` rows at most; one that is exchanged takes as many with it at most, and brings as many. So
        at most l1 rows come or go, and each of m parities moves by at most l1. A row that comes moves every
        one, so L2 is sqrt(m), not less. In that, parities differ from counts: an exchanged row leaves one
        cell of a marginal for another, and moves a parity by 2.

        A question lost to an interruption stays paid for, and is asked again from the rest of the budget.

        Returns:
            The parities int64[sets] in the order of ``parity_sets``, and the noise's standard deviation.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: a column doesn't have two places or stands twice, or no set has so many columns.
        """
        sizes = self._table.domain.sizes
        if len(set(columns)) < len(columns) or any(sizes[c] != 2 for c in columns):
            raise ValueError("parities are of columns of two places, each once")
        if not FEWEST <= most <= len(columns):
            raise ValueError(f"sets have {FEWEST} columns at least, and no more than there are")
        number = number_of_sets(len(columns), most)
        asked = {"columns": list(columns), "most": most, "candidates": {"number": number}}
        values, bought = self._noisy(
            {"ask": "parities", **asked},
            lambda: self._table.parities(columns, most),
            price,
            lambda price: self._calibration.parities(price, number),
        )
        return values, bought.stddev

    def classified(self, classifier: Classifier, price: Fraction) -> Classified | None:
        """Noisy counts of rows by their code in a column, and by whether a public classifier guesses it.

        Sensitivity: l1 in L1 and l2^2 in squared L2, as that of a marginal: ``neighbours``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a count.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. The classifier is public, and its guess of a row follows from the row's own codes alone. Right
        or wrong is one more column, coded row by row, and these counts are the marginal of the target and of
        that column: a row stands in one cell, or in none if its code is no class.

        Returns:
            The counts; None if they were lost to an interruption. They stay paid for.

        Raises:
            BudgetRefused: the price is more than what is left.
            ValueError: the classifier is of other columns than the table's.
        """
        table = self._table
        if not classifier.fits(table.domain):
            raise ValueError("the classifier is of other columns")
        event = self._calibration.counts(price).event
        question = {"ask": "classified", "columns": [classifier.target], "classifier": classifier.sha256}
        drawn = self._once(question, event, lambda: table.classified(classifier)[: classifier.classes])
        if drawn is None:
            return None
        wrong, right = map(tuple, drawn.T.tolist())
        return Classified(classifier.target, classifier.aim, wrong, right, self._terms.noise, event.scale)

    def _marginal(self, clique: Clique, event: GaussianEvent | LaplaceEvent) -> Measurement | None:
        drawn = self._once(_question(clique), event, lambda: self._counts.of(clique))
        return None if drawn is None else Measurement(clique, drawn, self._terms.noise, event.scale)


def _question(clique: Clique) -> dict[str, object]:
    return {"ask": "marginal", "columns": list(clique)}


@dataclass(repr=False)
class Store:
    """Kept counts, by a name of the coding and the clique; limited in bytes."""

    capacity: int = CAPACITY
    kept: dict[tuple[str, Clique], Kept] = field(default_factory=dict)

    def keep(self, key: tuple[str, Clique], counts: Kept) -> None:
        if counts.nbytes <= self.capacity:
            self.capacity -= counts.nbytes
            self.kept[key] = counts


@dataclass(frozen=True, eq=False, repr=False)
class ExactCounts:
    """The counts of one coding of a private table.

    Attributes:
        store: the store of kept counts; may be shared with other codings of the same rows.
        recoded: columns whose codes are not those of the table as it was loaded.
        coding: the name of these codes.
    """

    table: Engine
    store: Store
    recoded: frozenset[str] = frozenset()
    coding: str = ""

    def of(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64, axes in the clique's order. Private."""
        ordered = self._ordered(clique)
        counts = self.store.kept.get(self._key(ordered))
        if counts is None:
            counts = self._compact(self.table.counts_of([ordered])[0])
            self.store.keep(self._key(ordered), counts)
        return np.transpose(counts, [ordered.index(c) for c in clique]).astype(np.int64)

    def prepare(self, cliques: Iterable[Clique]) -> None:
        """Count the cliques that are not kept and fit into the capacity."""
        domain, capacity = self.table.domain, self.store.capacity
        wanted = []
        for clique in dict.fromkeys(map(self._ordered, cliques)):
            size = domain.cells(clique) * self._type.itemsize
            if self._key(clique) not in self.store.kept and size <= capacity:
                capacity -= size
                wanted.append(clique)
        most = min(_MOST_SHARED, self.table.rows // _ROWS_A_CELL)
        members = dict(unions(domain, wanted, most))
        done = 0
        for batch in domain.batches(members, _CELLS_A_BATCH):
            before, done = done, done + len(batch)
            with as_part(before / len(members), done / len(members)):
                wholes = self.table.counts_of(batch)
            for union, whole in zip(batch, wholes, strict=True):
                counts = self._compact(whole)
                for clique in members[union]:
                    axes = tuple(i for i, c in enumerate(union) if c not in clique)
                    part = counts if not axes else np.sum(counts, axis=axes, dtype=self._type)
                    self.store.keep(self._key(clique), part)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {column: i for i, column in enumerate(self.table.domain.columns)}

    def _ordered(self, clique: Clique) -> Clique:
        return tuple(sorted(clique, key=self._position.__getitem__))

    @cached_property
    def _type(self) -> np.dtype[np.integer]:
        return np.min_scalar_type(self.table.largest)

    def _compact(self, counts: NDArray[np.int64]) -> Kept:
        return counts.astype(self._type)

    def _key(self, clique: Clique) -> tuple[str, Clique]:
        return ("" if self.recoded.isdisjoint(clique) else self.coding), clique
