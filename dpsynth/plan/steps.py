"""The steps of a release that spend: their prices, noise and expected errors.

Invariant: exact. Prices are rationals whose sum is the budget, and every noise scale is rounded
towards more noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Literal

from dpsynth.accounting.events import (
    Measure,
    exponential_within,
    gaussian_within,
    laplace_within,
    selection_within,
    threshold_within,
)
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import mean_absolute_error
from dpsynth.domain.public_marginals import NOTHING_KNOWN, Known
from dpsynth.plan.outline import Outlined, Shares
from dpsynth.plan.searches import PlannedSearch

Noise = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class PlannedStep:
    """One step that spends.

    Attributes:
        step: "domain: " and what is sought, "one_way", "structure" or "marginals". Where structure asks for
            choices and for noisy distances, each has an entry.
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


def one_way_weights(domain: Domain, near: Neighbours, known: Known = NOTHING_KNOWN) -> dict[Clique, Fraction]:
    """The one-way questions, the total first unless it is public, with their shares' weights.

    Weights grow with the number of cells as n^(2/3), which makes the expected L1 error,
    summed over all columns, least for Gaussian noise within a given rho. What is known is not asked.
    """
    asked: list[Clique] = [] if near.rows_public or known.rows is not None else [()]
    asked += [(c,) for c in domain.columns if c not in known.columns]
    return {clique: Fraction(domain.cells(clique) ** (2 / 3)) for clique in asked}


@dataclass(frozen=True)
class Spending:
    """What is spent, and on what terms.

    Attributes:
        budget: of the whole release, under the measure.
        measure: how losses are added up.
        near: relation and unit.
        noise: of counts and distances.
        known: what is not asked for, since it is public.
    """

    budget: Fraction
    measure: Measure
    near: Neighbours
    noise: Noise
    known: Known = NOTHING_KNOWN

    def steps(
        self,
        shares: Shares,
        outlined: Outlined,
        domain: Domain,
        searches: Sequence[PlannedSearch] = (),
        rows_price: Fraction = Fraction(0),
    ) -> tuple[PlannedStep, ...]:
        """The steps in order. What a step would have that asks nothing goes to the last one."""
        found = (*self._rows(rows_price), *self._searches(searches))
        if not outlined.cliques:
            return (*found, self._one_way(1 - shares.domain, domain))
        structure = shares.structure if outlined.choices + outlined.errors else Fraction(0)
        asked = one_way_weights(domain, self.near, self.known)
        one_way = shares.one_way if asked else Fraction(0)
        return (
            *found,
            *([self._one_way(one_way, domain)] if asked else []),
            *self._structure(structure, outlined),
            self._counts("marginals", 1 - shares.domain - one_way - structure, outlined.cliques),
        )

    def _rows(self, price: Fraction) -> Iterator[PlannedStep]:
        """The question how many rows people have, if it is asked."""
        if price:
            units = replace(self, near=self.near.counted_once)
            share, scale = float(price / self.budget), units._scale(price)
            yield PlannedStep(
                "domain: max_rows", share, 1, self._mechanism, units._moved, scale, float(price), None
            )

    def _searches(self, searches: Sequence[PlannedSearch]) -> Iterator[PlannedStep]:
        """One step for each kind of search, at the price of one of them."""
        for find in dict.fromkeys(search.find for search in searches):
            alike = [search for search in searches if search.find == find]
            price = sum((search.price for search in alike), Fraction(0))
            mechanism, moved, scale = self._search(alike[0])
            share = float(price / self.budget)
            step = f"domain: {find}"
            yield PlannedStep(step, share, len(alike), mechanism, moved, scale, float(price), None)

    def _search(self, search: PlannedSearch) -> tuple[str, str, float]:
        """Mechanism, sensitivity, and the scale that the whole price of a search buys."""
        if search.find == "values":
            moved = f"at most {self.near.l1} values' numbers of units move, each by 1"
            if self.noise == "gaussian":
                passed = threshold_within(search.price, search.delta, self.measure, self.near.l1)
                return f"threshold of {passed.threshold:,} units", moved, passed.sigma
            picked = selection_within(search.price, search.delta, self.measure, self.near.l1)
            return "partition selection", moved, 1 / picked.epsilon0
        if search.find == "quantiles":
            scale = exponential_within(search.price, self.measure, self.near.l1).scale
            return "exponential mechanism", f"ranks move by at most {self.near.l1}", scale
        return self._mechanism, self._moved, self._scale(search.price)

    def _one_way(self, share: Fraction, domain: Domain) -> PlannedStep:
        weights = one_way_weights(domain, self.near, self.known)
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
        error = mean_absolute_error(self.noise, scale)
        return PlannedStep(
            name, float(share), questions, self._mechanism, self._moved, scale, float(price), error
        )

    @property
    def _moved(self) -> str:
        """How far a marginal moves, in words."""
        if self.noise == "gaussian":
            return f"L2 distance of counts at most {sqrt(self.near.l2_squared):.6g}"
        return f"L1 distance of counts at most {self.near.l1}"

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
