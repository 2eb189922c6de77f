"""The steps of a release that spend: their prices, noise and expected errors.

Invariant: exact. Prices are rationals whose sum is the budget, and every noise scale is rounded
towards more noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Literal

from dpsynth.accounting.events import Measure, exponential_within, gaussian_within, laplace_within
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import mean_absolute_error
from dpsynth.spec.outline import Outlined, Shares

Noise = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class PlannedStep:
    """One step that spends.

    Attributes:
        step: "one_way", "structure" or "marginals". Where structure asks for choices and for noisy
            distances, each has an entry.
        share: its share of the whole budget.
        questions: how many answers it asks for; for structure at most.
        mechanism: the mechanism's name.
        sensitivity: in words, with its value.
        scale: sigma, b, or the divisor of the exponential mechanism's scores; in rows. Where
            answers differ, that of an answer with an average share.
        cost: under the plan's measure, of all answers together.
        expected_error: mean absolute error, in rows, of one cell, or of one noisy distance; None
            for choices.
        scale_of: scale of each answer by name, where it is known to differ.
    """

    step: str
    share: float
    questions: int
    mechanism: str
    sensitivity: str
    scale: float
    cost: float
    expected_error: float | None
    scale_of: Mapping[str, float] = field(default_factory=dict)


def one_way_weights(domain: Domain, near: Neighbours) -> dict[Clique, Fraction]:
    """The one-way questions, the total first unless it is public, with their shares' weights.

    Weights grow with the number of cells as n^(2/3), which makes the expected L1 error,
    summed over all columns, least for Gaussian noise within a given rho.
    """
    asked: list[Clique] = [] if near.rows_public else [()]
    asked += [(c,) for c in domain.columns]
    return {clique: Fraction(domain.cells(clique) ** (2 / 3)) for clique in asked}


@dataclass(frozen=True)
class Spending:
    """What is spent, and on what terms.

    Attributes:
        budget: of the whole release, under the measure.
        measure: how losses are added up.
        near: relation and unit.
        noise: of counts and distances.
    """

    budget: Fraction
    measure: Measure
    near: Neighbours
    noise: Noise

    def steps(self, shares: Shares, outlined: Outlined, domain: Domain) -> tuple[PlannedStep, ...]:
        """The steps in order. What a step would have that asks nothing goes to the last one."""
        if not outlined.cliques:
            return (self._one_way(Fraction(1), domain),)
        structure = shares.structure if outlined.choices + outlined.errors else Fraction(0)
        return (
            self._one_way(shares.one_way, domain),
            *self._structure(structure, outlined),
            self._counts("marginals", 1 - shares.one_way - structure, outlined.cliques),
        )

    def _one_way(self, share: Fraction, domain: Domain) -> PlannedStep:
        weights = one_way_weights(domain, self.near)
        whole = sum(weights.values())
        scales = {
            clique[0] if clique else "(total)": self._scale(self.budget * share * weight / whole)
            for clique, weight in weights.items()
        }
        return replace(self._counts("one_way", share, len(weights)), scale_of=scales)

    def _counts(self, name: str, share: Fraction, questions: int) -> PlannedStep:
        """Marginals at an average price."""
        price = self.budget * share
        scale = self._scale(price / questions)
        moved = (
            f"L2 distance of counts at most {sqrt(self.near.l2_squared):.6g}"
            if self.noise == "gaussian"
            else f"L1 distance of counts at most {self.near.l1}"
        )
        error = mean_absolute_error(self.noise, scale)
        return PlannedStep(name, float(share), questions, self._mechanism, moved, scale, float(price), error)

    def _structure(self, share: Fraction, outlined: Outlined) -> list[PlannedStep]:
        """Choices at one price, and noisy distances at one price."""
        moved = f"L1 distance of counts moves by at most {self.near.l1}"
        told = outlined.told if outlined.choices else Fraction(1)
        found = []
        for number, part, chosen in (
            (outlined.choices, share * (1 - (told if outlined.errors else 0)), True),
            (outlined.errors, share * told, False),
        ):
            if not number:
                continue
            each = self.budget * part / number
            if chosen:
                mechanism, error = "exponential mechanism", None
                scale = exponential_within(each, self.measure, self.near.l1).scale
            else:
                mechanism, scale = self._mechanism, self._scale(each, one_number=True)
                error = mean_absolute_error(self.noise, scale)
            cost = float(self.budget * part)
            found.append(PlannedStep("structure", float(part), number, mechanism, moved, scale, cost, error))
        return found

    @property
    def _mechanism(self) -> str:
        return f"discrete {self.noise.capitalize()}"

    def _scale(self, price: Fraction, *, one_number: bool = False) -> float:
        """Scale of the noise of a marginal, or of one number that moves by ``near.l1``, at a price."""
        if self.noise == "gaussian":
            squared = self.near.l1**2 if one_number else self.near.l2_squared
            return gaussian_within(price, squared, self.measure).sigma
        return laplace_within(price, self.measure, self.near.l1).scale
