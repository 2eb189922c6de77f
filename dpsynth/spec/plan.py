"""The plan: how a release will spend its budget, worked out before anything is read.

Invariant: made of the config alone, and exact: shares are rationals, so the parts of a
split never exceed the whole, and every noise scale is rounded towards more noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Literal, Protocol

from dpsynth.accounting.accountants import budget_of, zcdp_epsilon
from dpsynth.accounting.events import (
    Measure,
    exponential_within,
    gaussian_within,
    laplace_within,
)
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.domain.column import domain_of
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import mean_absolute_error
from dpsynth.errors import ConfigError
from dpsynth.spec.grammar import Spec
from dpsynth.spec.privacy import Person

MAX_MODEL_CELLS = 50_000_000


@dataclass(frozen=True)
class Shares:
    """Shares of the budget by step; together at most 1. The last step takes what is left."""

    one_way: Fraction
    structure: Fraction
    marginals: Fraction


class Outline(Protocol):
    """What a plan must know of a structure strategy."""

    @property
    def name(self) -> str:
        """The name in the config."""
        ...

    @property
    def shares(self) -> Shares:
        """Default split of the budget."""
        ...

    def choices(self, columns: int, wanted: int) -> int:
        """How many private choices it makes for so many columns and wanted pairs."""
        ...

    def cliques(self, columns: int) -> int:
        """How many cliques it will have measured."""
        ...


@dataclass(frozen=True)
class PlannedStep:
    """One step that spends.

    Attributes:
        step: "one_way", "structure" or "marginals".
        share: its share of the whole budget.
        questions: how many answers it asks for.
        mechanism: the mechanism's name.
        sensitivity: in words, with its value.
        scale: sigma, b, or the divisor of the exponential mechanism's scores; in rows. Where
            answers differ, that of an answer with an average share.
        cost: epsilon under pure accounting or rho under zCDP, of all answers together.
        expected_error: mean absolute error of one cell in rows; None for choices.
        scale_of: scale of each answer by name, where answers differ.
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


@dataclass(frozen=True)
class Plan:
    """How a release will spend.

    Attributes:
        neighbours: relation and unit.
        measure: how losses are added up, "pure" or "zcdp".
        budget: what may be spent under the measure, rounded down.
        epsilon: as asked for.
        delta: as asked for; None under pure epsilon-DP.
        noise: "gaussian" or "laplace".
        shares: the split in force.
        structure: the strategy's name.
        wanted: pairs to measure whatever is chosen.
        steps: the spending steps, in order.
        model_cells: most cells that the model can have.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    epsilon: Fraction
    delta: Fraction | None
    noise: Literal["gaussian", "laplace"]
    shares: Shares
    structure: str
    wanted: tuple[Clique, ...]
    steps: tuple[PlannedStep, ...]
    model_cells: int

    @property
    def spent_delta(self) -> Fraction:
        """The delta that the release takes from the ledger: 0 under pure accounting."""
        return Fraction(0) if self.measure == "pure" or self.delta is None else self.delta

    @property
    def cell_error(self) -> float:
        """Expected absolute error, in rows, of a cell of the last counted marginals."""
        errors = [s.expected_error for s in self.steps if s.expected_error is not None]
        return errors[-1]

    def to_json(self) -> dict[str, object]:
        """The plan as plain JSON values; floats for people, the exact budget as a fraction."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.spent_delta),
            "neighbours": self.neighbours.relation,
            "unit": self.neighbours.unit,
            "accounting": "zCDP (rho)" if self.measure == "zcdp" else "sequential (epsilon)",
            "budget": float(self.budget),
            "budget_exact": str(self.budget),
            "epsilon_of_budget": float(self._epsilon_of_budget()),
            "noise": f"discrete {self.noise.capitalize()}",
            "rows_public": self.neighbours.rows_public,
            "structure": self.structure,
            "wanted_pairs": [list(pair) for pair in self.wanted],
            "steps": [asdict(s) for s in self.steps],
            "model_cells_at_most": self.model_cells,
            "model_megabytes_at_most": round(self.model_cells * 8 / 1e6, 3),
        }

    def _epsilon_of_budget(self) -> Fraction:
        if self.measure == "pure" or self.delta is None:
            return self.budget
        return zcdp_epsilon(self.budget, self.delta)


def wanted_pairs(spec: Spec) -> tuple[Clique, ...]:
    """Pairs of columns that a requested statistic is about, as far as they make no cycle.

    A strategy that measures a tree measures these first, so that the statistics someone
    asked for rest on answers of their own. They are named in the config, hence public.
    """
    part = {name: i for i, name in enumerate(spec.columns)}
    found: list[Clique] = []
    for request in spec.publish.statistics:
        if len(request.columns) == 2:
            a, b = sorted(request.columns, key=list(spec.columns).index)
            if part[a] != part[b]:
                found.append((a, b))
                part = {c: part[a] if p == part[b] else p for c, p in part.items()}
    return tuple(found)


def neighbours_of(spec: Spec) -> Neighbours:
    """The neighbour relation and unit that a spec declares."""
    unit = spec.privacy.unit
    if isinstance(unit, Person):
        return Neighbours(spec.privacy.neighbours, unit.column, unit.max_rows)
    return Neighbours(spec.privacy.neighbours)


def _measure(spec: Spec) -> Measure:
    pure = spec.privacy.delta is None or spec.privacy.accountant == "sequential"
    return "pure" if pure else "zcdp"


def _shares(spec: Spec, outline: Outline) -> Shares:
    split = spec.privacy.split
    if split is None:
        return outline.shares
    return Shares(Fraction(split.one_way), Fraction(split.structure), Fraction(split.marginals))


def _largest_model(domain: Domain, outline: Outline) -> int:
    """Cells of the largest pairs that a tree can hold, or of all columns on their own."""
    sizes = sorted(domain.sizes.values(), reverse=True)
    pairs = outline.cliques(len(sizes))
    largest = sizes[0] * sum(sizes[1 : pairs + 1]) if pairs else 0
    return max(largest, sum(sizes))


def make_plan(spec: Spec, outline: Outline) -> Plan:
    """Work out the plan of a release.

    Args:
        spec: the checked config.
        outline: the structure strategy that it names.

    Raises:
        ConfigError: the model could grow beyond what fits in memory, or delta and epsilon
            leave no budget.
    """
    near, measure = neighbours_of(spec), _measure(spec)
    epsilon = Fraction(spec.privacy.epsilon)
    delta = None if spec.privacy.delta is None else Fraction(spec.privacy.delta)
    budget = budget_of(measure, epsilon, delta)
    if budget <= 0:
        raise ConfigError(
            f"privacy.epsilon {spec.privacy.epsilon} with privacy.delta {spec.privacy.delta} leaves nothing "
            "to spend. Raise epsilon, or use a delta that is not so small."
        )
    domain = domain_of(spec.table_columns())
    cells = _largest_model(domain, outline)
    if cells > MAX_MODEL_CELLS:
        raise ConfigError(
            f"The model could need {cells:,} cells, and {MAX_MODEL_CELLS:,} are allowed. Give the largest "
            "columns fewer bins or values under columns, or use structure.method independent."
        )
    shares, wanted, noise = _shares(spec, outline), wanted_pairs(spec), spec.privacy.noise
    steps = _steps(shares, budget, measure, near, noise, domain, outline, len(wanted))
    return Plan(near, measure, budget, epsilon, delta, noise, shares, outline.name, wanted, steps, cells)


def one_way_weights(domain: Domain, near: Neighbours) -> dict[Clique, Fraction]:
    """The one-way questions, the total first unless it is public, with their shares' weights.

    Weights grow with the number of cells as n^(2/3), which makes the expected L1 error,
    summed over all columns, least for Gaussian noise within a given rho.
    """
    asked: list[Clique] = [] if near.rows_public else [()]
    asked += [(c,) for c in domain.columns]
    return {clique: Fraction(domain.cells(clique) ** (2 / 3)) for clique in asked}


def _steps(
    shares: Shares,
    budget: Fraction,
    measure: Measure,
    near: Neighbours,
    noise: Literal["gaussian", "laplace"],
    domain: Domain,
    outline: Outline,
    wanted: int,
) -> tuple[PlannedStep, ...]:
    columns = len(domain.columns)
    pairs, choices = outline.cliques(columns), outline.choices(columns, wanted)
    counted = _Counted(measure, near, noise)
    weights = one_way_weights(domain, near)
    one_way = shares.one_way if pairs else Fraction(1)
    singles = counted.step("one_way", one_way, budget * one_way, len(weights))
    whole = sum(weights.values())
    each = {
        clique[0] if clique else "(total)": counted.scale(budget * one_way * weight / whole)
        for clique, weight in weights.items()
    }
    found = [replace(singles, scale_of=each)]
    if choices:
        price = budget * shares.structure
        scale = exponential_within(price / choices, measure, near.l1).scale
        sensitivity = f"L1 distance of counts moves by at most {near.l1}"
        found.append(
            PlannedStep(
                "structure",
                float(shares.structure),
                choices,
                "exponential mechanism",
                sensitivity,
                scale,
                float(price),
                None,
            )
        )
    if pairs:
        rest = 1 - shares.one_way - (shares.structure if choices else 0)
        found.append(counted.step("marginals", rest, budget * rest, pairs))
    return tuple(found)


@dataclass(frozen=True)
class _Counted:
    """How counts are noised."""

    measure: Measure
    near: Neighbours
    noise: Literal["gaussian", "laplace"]

    def scale(self, price: Fraction) -> float:
        if self.noise == "gaussian":
            return gaussian_within(price, self.near.l2_squared).sigma
        return laplace_within(price, self.measure, self.near.l1).scale

    def step(self, name: str, share: Fraction, price: Fraction, questions: int) -> PlannedStep:
        """A step of equally priced answers."""
        scale = self.scale(price / questions)
        if self.noise == "gaussian":
            sensitivity = f"L2 distance of counts at most {sqrt(self.near.l2_squared):.6g}"
        else:
            sensitivity = f"L1 distance of counts at most {self.near.l1}"
        return PlannedStep(
            name,
            float(share),
            questions,
            f"discrete {self.noise.capitalize()}",
            sensitivity,
            scale,
            float(price),
            mean_absolute_error(self.noise, scale),
        )
