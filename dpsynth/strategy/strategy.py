"""The protocol of structure strategies, which decide from answers alone what to measure.

Invariant: a strategy never holds a curator's table; it sees noisy numbers and choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement, Observation
from dpsynth.columns.workload import Workload
from dpsynth.model import Fit, FitOptions, estimate, zeros_within
from dpsynth.model.junction_tree import Zeros
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Outline

RULED_CELLS = 100_000
"""Cells up to which the tree of a strategy's fit grows for zeros; that of the final fit may grow further."""


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
        wanted: pairs without a cycle that requested statistics are about. Every strategy that measures pairs
            measures them in any case.
        structure: budget for choosing; the door's ``remaining`` less this is for measuring.
        max_cells: hard bound on the cells of the model's junction tree.
        earlier: marginals of several columns that earlier releases measured, over ``domain``. A strategy that
            bounds the size of its tree leaves capacity for them.
        believed: those of a public table among these, whose relations have passed a test.
        zeros: cells that no row has by the rules: fits have them, so no answer is bought that rules give.
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
    believed: tuple[Observation, ...] = ()
    zeros: Zeros = field(default_factory=dict)

    @property
    def given(self) -> list[Clique]:
        return [m.clique for m in self.earlier]

    def refit(
        self,
        answers: Iterable[Observation | None],
        start: Fit,
        tolerance: float = FitOptions.tolerance,
        prior_rows: float = 0.0,
    ) -> Fit:
        """The fit of all answers so far, without lost ones, started at another fit."""
        measured = (m for m in answers if m is not None)
        known = [*self.singles, *self.earlier, *measured]
        cliques, options = [m.clique for m in known], FitOptions(tolerance=tolerance)
        zeros = zeros_within(self.domain, cliques, self.zeros, min(self.max_cells, RULED_CELLS))
        return estimate(self.domain, known, options, prior_rows=prior_rows, zeros=zeros, start=start)


@dataclass(frozen=True)
class Selection:
    """The measurements of a strategy.

    Attributes:
        cliques, answers: what it measured, in the order asked; None for an answer lost to an interruption.
        fit: its last fit of the singles and answers, from which the final one may start; or None.
        singles: one-way marginals that were measured again, over all values.
        prior: strength of the fit's shrinkage to independent columns, in rows as a share of all.
        earlier: marginals of several columns from earlier releases or a public table that the model holds
            too; the pipeline fills it in.
        public: the cliques among these that come from a public table; the pipeline fills it in.
        beside: measured cliques that the model doesn't hold; the synthetic table is refined to their answers.
        distances: noisy distances of pairs from the model, in rows; the smaller, the more the table is kept
            near the model.
    """

    cliques: tuple[Clique, ...]
    answers: tuple[Measurement | None, ...]
    fit: Fit | None = None
    singles: tuple[Measurement, ...] = ()
    prior: float = 0.0
    earlier: tuple[Observation, ...] = ()
    public: tuple[Clique, ...] = ()
    beside: tuple[Clique, ...] = ()
    distances: Mapping[Clique, float] = field(default_factory=dict)

    @property
    def inside(self) -> tuple[Clique, ...]:
        return tuple(c for c in self.cliques if c not in self.beside)

    @property
    def held(self) -> list[Measurement]:
        """The answers that the model is fitted to."""
        return [m for m in self.answers if m is not None and m.clique not in self.beside]

    @property
    def not_held(self) -> list[Measurement]:
        return [m for m in self.answers if m is not None and m.clique in self.beside]


class Strategy(Outline, Protocol):
    """A way to decide what is measured besides the single columns."""

    def select(self, door: Door, problem: Problem) -> Selection:
        """The cliques that it decides to measure, with their answers; the last step takes all that remains.

        It is asked only where its outline announces cliques: so there are two columns at least.

        Whatever the noise, no clique is asked for that would make the junction tree larger than
        ``max_cells``, except single columns and wanted pairs.
        """
