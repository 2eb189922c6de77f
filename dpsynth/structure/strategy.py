"""The protocol of structure strategies, which decide from answers alone what to measure.

Invariant: a strategy never holds a curator's table; it sees noisy numbers and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import Measure
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.domain.workload import Workload
from dpsynth.model import Fit, FitOptions, estimate
from dpsynth.plan.outline import Outline


class Estimates(Protocol):
    """Public estimates of marginals."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


class Door(Protocol):
    """The part of a curator that a strategy may ask. Prices are in its measure."""

    @property
    def measure(self) -> Measure:
        """The measure in which costs are counted."""
        ...

    @property
    def remaining(self) -> Fraction:
        """The remaining budget of the release."""
        ...

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
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

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[NDArray[np.int64], float]:
        """Noisy L1 distances int64[candidates] in rows, and the standard deviation of their noise.

        The estimates are rounded to integers first. A lost question is asked again from what is left.
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
        """Indices of several candidates, each chosen as by ``choose``, none twice.

        Args:
            candidates: the candidates of all choices.
            estimates: the public estimates of all choices.
            price: price of each choice.
            most: largest number of choices.
            admissible: a function from the choices so far to the candidates that may come next,
                bool[candidates]; choosing ends if there are none.
            penalties: the penalty of each candidate, as in ``choose``.
            weights: the weight of each candidate, as in ``choose``.
        """
        ...

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every value of each column, without compression; otherwise like ``marginals``."""
        ...

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique; the allowance is shared by weight.

        None stands for a clique whose answer was lost to an interruption, with no budget left to
        ask again.
        """
        ...


@dataclass(frozen=True)
class Problem:
    """The problem of a strategy; all of it is public.

    Attributes:
        domain: the columns, after domain compression.
        values: the columns with all their values.
        singles: the total, exact if it is public, and the one-way marginals over ``domain``, with those of
            earlier releases.
        start: the fit of ``singles``, which is independent columns; if earlier releases measured columns
            together, the fit of ``earlier`` too. Distances from it are new information.
        workload: weights of the marginals.
        wanted: pairs without a cycle that requested statistics are about. Every strategy that measures
            pairs measures them in any case.
        structure: budget for choosing; the door's ``remaining`` less this is for measuring.
        max_cells: hard bound on the cells of the model's junction tree.
        earlier: marginals of several columns that earlier releases measured, over ``domain``. A strategy
            that bounds the size of its tree leaves capacity for them.
    """

    domain: Domain
    values: Domain
    singles: tuple[Measurement, ...]
    start: Fit
    workload: Workload
    wanted: tuple[Clique, ...]
    structure: Fraction
    max_cells: int
    earlier: tuple[Measurement, ...] = ()

    @property
    def given(self) -> list[Clique]:
        """The cliques of ``earlier``."""
        return [m.clique for m in self.earlier]

    def refit(self, answers: Iterable[Measurement | None], start: Fit, tolerance: float = 3e-3) -> Fit:
        """The fit of all answers so far, started at another fit.

        Args:
            answers: marginals of several columns; None for a lost answer.
            start: another fit.
            tolerance: see ``model.FitOptions``.
        """
        measured = (m for m in answers if m is not None)
        known = [*self.singles, *self.earlier, *measured]
        return estimate(self.domain, known, FitOptions(tolerance=tolerance), start=start)


@dataclass(frozen=True)
class Selection:
    """The measurements of a strategy.

    Attributes:
        cliques: the cliques that it measured, in the order asked.
        answers: their measurements; None for one that was lost to an interruption.
        fit: its last fit of the singles and answers, from which the final one may start; or None.
        singles: one-way marginals that were measured again, over all values.
        prior: strength of the fit's shrinkage to independent columns, in rows as a share of all.
        earlier: marginals of several columns from earlier releases or a public table that the model
            holds too; the pipeline fills it in.
        public: the cliques among these that come from a public table; the pipeline fills it in.
    """

    cliques: tuple[Clique, ...]
    answers: tuple[Measurement | None, ...]
    fit: Fit | None = None
    singles: tuple[Measurement, ...] = ()
    prior: float = 0.0
    earlier: tuple[Measurement, ...] = ()
    public: tuple[Clique, ...] = ()


class Strategy(Outline, Protocol):
    """A way to decide what is measured besides the single columns."""

    def select(self, door: Door, problem: Problem) -> Selection:
        """The cliques that it decides to measure, with their answers; the last step takes all that remains.

        Whatever the noise, no clique is asked for that would make the junction tree larger than
        ``max_cells``, except single columns and wanted pairs.
        """
        ...
