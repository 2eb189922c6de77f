"""The questions that strategies and searches may ask of a curator: one protocol, one signature for each verb.

Invariant: every answer is noisy and paid for, or follows from public facts; so any use of answers
is post-processing. ``dpsynth.curator`` holds the one implementation of each verb, with its sensitivity,
distribution and cost; docs/privacy.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.estimates import Estimates
from dpsynth.columns.finer_counts import FinerCounts, Pieces
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.sums import Centring, MeasuredSums


class Door(Protocol):
    """The part of a curator that strategies and searches see. Prices are in its measure.

    A search of a column's domain asks ``counts_under``, ``medians`` and ``values_of``, before the table is
    coded; a structure strategy asks the other verbs, after it.
    """

    @property
    def measure(self) -> Measure:
        """Measure of costs."""
        ...

    @property
    def noise(self) -> str:
        """Noise of counts: "gaussian" or "laplace"."""
        ...

    @property
    def remaining(self) -> Fraction:
        """Rest of the release's budget."""
        ...

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        ...

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique, the allowance shared by weight.

        None stands for a clique whose answer was lost to an interruption, with no budget left to ask
        again.
        """
        ...

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy one-way marginals over the whole domain, also where the curator's is compressed.

        Arguments and results are those of ``marginals``.
        """
        ...

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        """Noisy sums of a column's bounded distances from its bins' offsets, by group.

        Args:
            column: a column of numbers that are kept to be summed.
            by: the columns of the groups; () for all rows.
            centring: offsets and limit.
            price: the most that the answer may cost.
        """
        ...

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        """Noisy counts of rows by group and by the piece of a bin that holds their number.

        Args:
            column: a column of numbers that are kept to be summed.
            by: the columns of the groups; () for all rows.
            pieces: the pieces of the column's bins.
            price: the most that the answer may cost.
        """
        ...

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        """Index of a candidate whose estimate is far from the truth, by the exponential mechanism.

        Scores are L1 distances in rows, less the penalties, times the weights (1 if left out).
        """
        ...

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
        """Indices of several candidates, each chosen by ``choose``, none twice.

        Args:
            candidates: the same for all choices.
            estimates: the same for all choices.
            price: the price of each choice.
            most: largest number of choices.
            admissible: from the choices so far to the candidates, bool[candidates], that may come next;
                choosing ends if there are none.
            penalties: the penalties of ``choose``.
            weights: the weights of ``choose``.
        """
        ...

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[NDArray[np.int64], float]:
        """Noisy L1 distances int64[candidates] in rows, and the standard deviation of their noise.

        The estimates are rounded to integers first. A lost question is asked again from the rest of the
        budget.
        """
        ...

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        """Noisy rows of each cell of a public partition, int64[cells], and the noise's standard deviation.

        Unusable and missing cells count nowhere.
        """
        ...

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        """For each run the index of a cut near the median of the values in it, int64[runs].

        Args:
            column: a numeric one.
            cuts: public candidates, rising.
            runs: index ranges [start, stop) of cuts: values from cuts[start] to cuts[stop - 1]; no two
                runs share a value.
            price: the price of all runs together.
        """
        ...

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Values that many units have, without those known, sorted; by partition selection."""
        ...
