"""What a structure strategy is: it decides which marginals to measure, from answers alone.

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
        """How costs are counted."""
        ...

    @property
    def remaining(self) -> Fraction:
        """What the release may still spend."""
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
        """Indices of several candidates, each chosen like ``choose``, none twice.

        Args:
            candidates: as for ``choose``; the same for all choices, as what follows.
            estimates: likewise.
            price: of each choice.
            most: how many choices.
            admissible: from the choices so far to the candidates, bool[candidates], that may come next;
                choosing ends where there are none.
            penalties: as for ``choose``.
            weights: likewise.
        """
        ...

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every value of each column, those too that are merged elsewhere.

        Like ``marginals`` otherwise.
        """
        ...

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique, the allowance shared by weight.

        None stands for a clique whose answer was lost to an interruption with nothing left to
        ask again with.
        """
        ...


@dataclass(frozen=True)
class Problem:
    """What a strategy is to solve; public, all of it.

    Attributes:
        domain: the columns, their rare values merged where that was asked for.
        values: the columns and all their values.
        singles: the total, exact where it is public, and the one-way marginals over ``domain``; earlier
            releases' too.
        start: the model fitted to ``singles``: independent columns; where earlier releases measured columns
            together, fitted to ``earlier`` too. Far from it is what these don't tell.
        workload: which marginals matter, and how much.
        wanted: pairs without a cycle that requested statistics are about; to be measured whatever
            is chosen, by every strategy that measures pairs.
        structure: what choosing may cost; the door's ``remaining`` less this is for measuring.
        max_cells: most cells of the model's junction tree: a hard bound.
        earlier: what earlier releases measured together, over ``domain``; a strategy that looks after the
            size of its tree leaves room for it.
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
        """A fit to all that is known so far, from where another ended.

        Args:
            answers: what was measured together; None for what was lost.
            start: another fit.
            tolerance: see ``model.estimate``.
        """
        measured = (m for m in answers if m is not None)
        known = [*self.singles, *self.earlier, *measured]
        return estimate(self.domain, known, FitOptions(tolerance=tolerance), start=start)


@dataclass(frozen=True)
class Selection:
    """What a strategy measured.

    Attributes:
        cliques: the cliques it decided to measure, in the order asked.
        answers: their measurements; None for one that was lost to an interruption.
        fit: its last fit of the singles and answers, from which the final one may start; or None.
        singles: one-way marginals that it had measured again, over all values.
        prior: rows, as a share of all, as whose evidence independent columns are to count in the fit.
        earlier: what earlier releases measured together, or a public table tells, and the model is to hold
            too; for the pipeline to say, not for strategies.
        public: the cliques of it that a public table tells of; likewise.
    """

    cliques: tuple[Clique, ...]
    answers: tuple[Measurement | None, ...]
    fit: Fit | None = None
    singles: tuple[Measurement, ...] = ()
    prior: float = 0.0
    earlier: tuple[Measurement, ...] = ()
    public: tuple[Clique, ...] = ()


class Strategy(Outline, Protocol):
    """How to decide what to measure besides the single columns."""

    def select(self, door: Door, problem: Problem) -> Selection:
        """Decide what to measure, and have it measured; the last step takes all that remains.

        Never asks for a clique that would make the junction tree larger than ``max_cells``
        (the single columns and the wanted pairs apart), whatever noise says.
        """
        ...
