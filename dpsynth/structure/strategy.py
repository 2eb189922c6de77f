"""What a structure strategy is: it decides which marginals to measure, from answers alone.

Invariant: a strategy never holds a curator's table; it sees noisy numbers and choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Measurement, Observation
from dpsynth.domain.workload import Workload
from dpsynth.model import Fit, estimate
from dpsynth.plan.outline import Outline
from dpsynth.plan.questions import Door


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
    singles: tuple[Observation, ...]
    start: Fit
    workload: Workload
    wanted: tuple[Clique, ...]
    structure: Fraction
    max_cells: int
    earlier: tuple[Observation, ...] = ()

    @property
    def given(self) -> list[Clique]:
        """The cliques of ``earlier``."""
        return [m.clique for m in self.earlier]

    def refit(self, answers: Iterable[Observation | None], start: Fit, tolerance: float = 3e-3) -> Fit:
        """A fit to all that is known so far, from where another ended.

        Args:
            answers: what was measured together; None for what was lost.
            start: another fit.
            tolerance: see ``model.estimate``.
        """
        measured = (m for m in answers if m is not None)
        known = [*self.singles, *self.earlier, *measured]
        return estimate(self.domain, known, start=start, tolerance=tolerance)


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
    earlier: tuple[Observation, ...] = ()
    public: tuple[Clique, ...] = ()


class Strategy(Outline, Protocol):
    """How to decide what to measure besides the single columns."""

    def select(self, door: Door, problem: Problem) -> Selection:
        """Decide what to measure, and have it measured; the last step takes all that remains.

        Never asks for a clique that would make the junction tree larger than ``max_cells``
        (the single columns and the wanted pairs apart), whatever noise says.
        """
        ...
