"""The plan: the spending of a release, fixed before the table is read.

Invariant: a plan is made of the config alone, and is exact: shares are rationals, so the parts of a
split never exceed the whole, and every noise scale is rounded towards more noise.

Tiers: the parts of a release that are asked for one audience after the other.

The first tier is asked for the audience of the smallest epsilon, within its budget. Each further tier has
what the next audience's budget has beyond that, and the answers so far besides. So an audience's guarantee is
that of all answers up to the end of its tier, and all audiences together bear the last one's.

To answer the larger audience first and to add noise for the smaller one would give the same variances of a
marginal that both get: under Gaussian DP precisions add up. But then what is chosen for the smaller audience
would depend on choices at the larger one's epsilon. In this order each bundle is a function of what its own
audience pays for, and needs no argument but composition.

Invariant: budgets are exact, and rise from tier to tier.

Means, sums and quantiles that are asked for, and which of them get a question of their own.

Invariant: all of it follows from the config. The price of each such question is the same.

The size of the model: the number of cells that it may have, and the number that it can reach.

Invariant: both follow from the config and from the columns' sizes.

The accountants that a config allows, and the one that a plan takes.

Invariant: the choice follows from the config and the plan's own noise scales, hence from public facts alone.

The exam: the marginals whose distances from the finished synthetic table are asked for at the end.

All pairs of columns are examined, the requested statistics of three columns and more, and some sets of three
columns. So a release states the error of its own table, not that of a model.

Invariant: the marginals follow from the config and from the columns' sizes, never from answers about rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from math import comb, sqrt
from typing import TypeVar

import numpy as np

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import GDP, PURE, Measure, measure_named
from dpsynth.accounting.neighbours import Neighbours, PerPeriod, left_unprotected
from dpsynth.accounting.noises import NoiseName, noise_named
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Examined, noise_variance
from dpsynth.columns.search import ValueSearch
from dpsynth.config.compiled import CompiledSpec
from dpsynth.config.grammar import Spec
from dpsynth.config.privacy import Person, Promise
from dpsynth.config.structure import METHODS
from dpsynth.errors import ConfigError
from dpsynth.plan.questions import (
    ASSUMED_ROWS,
    Allowances,
    PlannedMean,
    PlannedQuantiles,
    planned_means,
    planned_quantiles,
)
from dpsynth.plan.resources import Forecast, cells_within, forecast_of
from dpsynth.plan.steps import (
    Asked,
    Outline,
    PlannedSearch,
    PlannedStep,
    Shares,
    Spending,
    StrategyOutline,
    planned_searches,
    price_of_bound,
)

MOST_CELLS = 1 << 22
"""Largest number of cells of a marginal that is examined."""

MOST_PAIRS = 3000
"""Largest number of pairs that are examined; of more, those of fewest cells."""

TRIPLES_A_PAIR, MOST_TRIPLES = 4, 100
"""One set of three columns for so many pairs; and at most so many sets."""

_TRIES = 50

_PAIR, _TRIPLE = 2, 3


def exam_of(domain: Domain, statistics: Sequence[Clique]) -> tuple[Examined, ...]:
    """The marginals of the exam, each once; none for a table of one column.

    Args:
        domain: the columns, with all their values.
        statistics: the columns of each requested statistic.
    """
    pairs = _pairs(domain)
    asked = dict.fromkeys(domain.canonical(columns) for columns in statistics if len(columns) > _PAIR)
    named = [clique for clique in asked if domain.cells(clique) <= MOST_CELLS]
    number = min(-(-len(pairs) // TRIPLES_A_PAIR), MOST_TRIPLES)
    triples = [clique for clique in _triples(domain, number) if clique not in asked]
    return (
        *(Examined("pair", clique) for clique in pairs),
        *(Examined("statistic", clique) for clique in named),
        *(Examined("triple", clique) for clique in triples),
    )


def _pairs(domain: Domain) -> list[Clique]:
    """The pairs of fewest cells, in table order; of pairs alike, the first ones."""
    names, sizes = domain.columns, np.array(domain.shape(domain.columns), dtype=np.float64)
    first, second = np.triu_indices(len(names), 1)
    cells = sizes[first] * sizes[second]
    few = np.sort(np.argsort(cells, kind="stable")[:MOST_PAIRS])
    return [(names[first[i]], names[second[i]]) for i in few.tolist() if cells[i] <= MOST_CELLS]


def _triples(domain: Domain, number: int) -> Iterator[Clique]:
    """At most so many sets of three columns, in table order; the same for the same names and sizes."""
    columns = list(domain.columns)
    if comb(len(columns), _TRIPLE) <= number:
        drawn = set(combinations(range(len(columns)), _TRIPLE))
    else:
        drawn = set()
        for turn in range(_TRIES * number):
            # The choice is public. It follows from the names, so it repeats for a release that is resumed.
            digest = sha256(repr((columns, turn)).encode()).digest()
            at = {int.from_bytes(digest[8 * i : 8 * i + 8]) % len(columns) for i in range(_TRIPLE)}
            if len(at) == _TRIPLE and domain.cells([columns[i] for i in at]) <= MOST_CELLS:
                drawn.add(tuple(sorted(at)))
            if len(drawn) == number:
                break
    cliques = (tuple(columns[i] for i in at) for at in sorted(drawn))
    return (clique for clique in cliques if domain.cells(clique) <= MOST_CELLS)


@dataclass(frozen=True)
class Tier:
    """One audience's part of a release; the only one where there are no audiences.

    Attributes:
        audience: the name of the audience; "" where there are none.
        epsilon, delta: its guarantee, for all answers up to the end of the tier.
        budget: the budget of all these answers, under the measure.
    """

    audience: str
    epsilon: Fraction
    delta: Fraction | None
    budget: Fraction

    def spent_delta(self, measure: Measure, selection: Fraction) -> Fraction:
        """The delta of the guarantee; under pure accounting only that of partition selection."""
        if not measure.needs_delta:
            return selection
        return Fraction(0) if self.delta is None else self.delta


def tiers_of(
    promises: Sequence[Promise], measure: Measure, selection: Fraction, sampling: Sampling | None = None
) -> tuple[Tier, ...]:
    """The tiers of a release, in the order in which they are asked.

    Args:
        promises: the guarantee of each audience, in rising order.
        measure: the measure of losses, the same for all tiers.
        selection: the part of each delta for partition selection, which the first tier asks.
        sampling: the sample of units; the budget is then that of the release on the sample.
    """
    found = []
    for promise in promises:
        epsilon, delta = promise.epsilon, promise.delta
        if sampling is not None:
            of_sample = sampling.of_sample(Amount(epsilon, delta or Fraction(0)))
            epsilon, delta = of_sample.epsilon, None if delta is None else of_sample.delta
        budget = measure.budget(epsilon, _beside(delta, selection))
        found.append(Tier(promise.audience, promise.epsilon, promise.delta, budget))
    return tuple(found)


def part_of(tiers: Sequence[Tier], place: int) -> Fraction:
    """The budget of one tier by itself: what its audience's has beyond that of the tier before."""
    return tiers[place].budget - (tiers[place - 1].budget if place else 0)


def _beside(delta: Fraction | None, selection: Fraction) -> Fraction | None:
    return None if delta is None else delta - selection


SHARE_OF_ONE, LARGEST_SHARE = Fraction(1, 20), Fraction(3, 20)
"""Default share of the budget for one such question, and for all together."""


def share_of_statistics(number: int) -> Fraction:
    """The default share of the budget for so many questions of statistics."""
    return min(SHARE_OF_ONE * number, LARGEST_SHARE)


@dataclass(frozen=True)
class OwnQuestions:
    """The statistics that questions of their own could measure.

    Attributes:
        means: means and sums, each with the way in which it is measured.
        quantiles: quantiles, each with the way in which they are measured.
    """

    means: tuple[PlannedMean, ...] = ()
    quantiles: tuple[PlannedQuantiles, ...] = ()

    @property
    def summed(self) -> tuple[PlannedMean, ...]:
        """The means that are measured by sums."""
        return tuple(mean for mean in self.means if mean.summed)

    @property
    def finer(self) -> tuple[PlannedQuantiles, ...]:
        """The quantiles that are measured by finer counts."""
        return tuple(each for each in self.quantiles if each.price > 0)

    @property
    def number(self) -> int:
        """Number of questions."""
        return len(self._asked)

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose numbers are kept."""
        return frozenset(column for column, _ in self._asked)

    @property
    def price(self) -> Fraction:
        """The price of all questions together."""
        return sum((price for _, price in self._asked), Fraction(0))

    @property
    def _asked(self) -> list[tuple[str, Fraction]]:
        """Column and price of each question."""
        summed = [(mean.column, mean.price) for mean in self.summed]
        return [*summed, *((each.column, each.price) for each in self.finer)]

    def at(self, price: Fraction) -> OwnQuestions:
        """The same questions at another price each."""
        return OwnQuestions(
            tuple(replace(mean, price=price) if mean.price else mean for mean in self.means),
            tuple(replace(each, price=price) if each.price else each for each in self.quantiles),
        )

    def described_means(self) -> list[Mapping[str, object]]:
        """The means as plain JSON values."""
        return [
            {
                **_described(mean.column, mean.by, mean.found, mean.rows),
                "measured_by": "sums" if mean.summed else "counts",
                "half_width_by_sums": mean.by_sums,
                "half_width_by_counts": mean.by_counts,
            }
            for mean in self.means
        ]

    def described_quantiles(self) -> list[Mapping[str, object]]:
        """The quantiles as plain JSON values."""
        return [
            {
                **_described(each.column, each.by, each.found, each.rows),
                "at": list(each.levels),
                "measured_by": "finer counts" if each.price else "counts",
                "half_width_by_finer_counts": each.by_finer,
                "half_width_by_counts": each.by_counts,
            }
            for each in self.quantiles
        ]


def _described(column: str, by: Clique, found: bool, rows: int) -> Mapping[str, object]:
    return {
        "column": column,
        "by": list(by),
        "half_width_in": "the column's range" if found else "the column's unit",
        "rows": rows,
    }


CELL_BYTES = 8


def model_cells(
    spec: Spec,
    outline: Outline,
    outlined: StrategyOutline,
    sizes: Mapping[str, int],
    wanted: tuple[Clique, ...],
) -> tuple[int, int]:
    """Number of cells that the model may have, and the number that it can reach."""
    structure = spec.structure
    allowed = outline.max_cells
    if structure.max_model_mb is not None:
        allowed = int(structure.max_model_mb * 1_000_000 / CELL_BYTES)
    given = _least_cells(sizes, wanted if outlined.cliques else ())
    # A method without choices can't leave out a clique.
    needed = max(given, outlined.cells) if not METHODS[outline.name].chooses else given
    if needed > allowed:
        raise ConfigError(
            f"The model needs {needed:,} cells ({needed * CELL_BYTES / 1e6:,.1f} MB) for the single columns "
            f"and for the pairs of constraints, publish.statistics or structure.cliques; {allowed:,} are "
            "allowed. "
            "Give the largest of them fewer bins or values, ask for less, or raise structure.max_model_mb."
        )
    if structure.max_seconds is not None:
        hinted = cells_within(float(structure.max_seconds), len(sizes), outlined.rounds + 1)
        allowed = max(needed, min(allowed, hinted))
    return allowed, max(needed, min(allowed, outlined.cells))


def _least_cells(sizes: Mapping[str, int], wanted: tuple[Clique, ...]) -> int:
    """Cells of a model of the wanted pairs, which make no cycle, and of the columns in none."""
    paired = {c for pair in wanted for c in pair}
    alone = sum(size for column, size in sizes.items() if column not in paired)
    return alone + sum(sizes[a] * sizes[b] for a, b in wanted)


Way = TypeVar("Way")

Terms = tuple[Measure, Sequence[PlannedStep], float]
"""The measure of a way, its steps, and the noise scale of its last measuring step."""

_FREE = {"gaussian": ("gdp", "zcdp"), "laplace": ("zcdp",)}
"""The accountants that auto weighs where there is a delta, by noise, the most usual one first.

``sequential`` would have the ledger add up epsilon for good.
"""


def measures_of(spec: Spec) -> list[Measure]:
    """The measures that suit a config, the most usual one first.

    Where the config names the ledger's filter, auto leaves out a measure that it can't bound.

    Raises:
        ConfigError: the accountant that the config names can't be honoured by the filter that it names.
    """
    privacy = spec.privacy
    delta = None if privacy.delta is None else Fraction(privacy.delta)
    if privacy.accountant != "auto":
        if delta is None and privacy.accountant != PURE.accountant:
            raise ConfigError(f"privacy.delta is missing: accountant {privacy.accountant} needs it.")
        measure = measure_named(privacy.accountant)
        if privacy.noise not in measure.noises:
            raise ConfigError(f"{privacy.accountant} counts {' or '.join(measure.noises)} noise only.")
        if not _honoured(spec, measure):
            raise ConfigError(
                f"ledger.filter {spec.ledger.filter} adds up mu of Gaussian DP, and a release with "
                f"{privacy.noise} noise under privacy.accountant {privacy.accountant} has no bound on mu. "
                "Use privacy.accountant gdp, or another ledger.filter: zcdp or sequential."
            )
        return [measure]
    if delta is None:
        return [PURE]
    found = [measure_named(name) for name in _FREE[privacy.noise]]
    return [measure for measure in found if _honoured(spec, measure)]


def _honoured(spec: Spec, measure: Measure) -> bool:
    """True if the filter that the config names can bound a release under a measure."""
    if spec.ledger.filter == "auto" or measure_named(spec.ledger.filter) != GDP:
        return True
    return measure.implied(Fraction(1), spec.privacy.noise == "laplace")[1] is not None


def least_noise(ways: Sequence[Way], terms: Callable[[Way], Terms]) -> Way:
    """The way with the least noise in its last measuring step, the first of several.

    Args:
        ways: at least one; ``measures_of`` gave their measures.
        terms: the terms of a way.
    """
    return min(ways, key=lambda way: terms(way)[2])


DOMAIN_SHARE, LEAST_DOMAIN_SHARE = Fraction(1, 4), Fraction(1, 20)
"""Default share of the budget for domain discovery: with all columns to be found, and at least."""

BOUND_SHARE = Fraction(1, 50)
"""Default share of the budget for finding the contribution bound alone."""

CUTOFF_SHARE = Fraction(1, 100)
"""Default share of the budget for the rows that a given contribution bound cuts off; docs/persons.md."""

EXAM_SHARE = Fraction(3, 100)
"""Default share of the budget for the exam; docs/exam.md weighs it."""


@dataclass(frozen=True)
class Found:
    """The state of a release, from which a new plan is made.

    Attributes:
        plan: the plan made before, with the contribution bound that was found.
        columns: the columns of the table, with the domains found so far.
        next_tier: True if the new plan is of the next tier; False if of the rest of the same one.
    """

    plan: Plan
    columns: Sequence[Column]
    next_tier: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan of a release, or of one tier of it.

    Attributes:
        neighbours: relation and unit.
        measure: the measure of losses.
        budget: the budget under the measure, rounded down.
        epsilon: the epsilon asked for, of all answers up to the end of the tier.
        delta: the delta asked for; None under pure epsilon-DP.
        noise: "gaussian" or "laplace".
        shares: the split in force.
        bound_price: the price of finding the contribution bound; 0 for a bound that is given.
        total_price: the price of the number of rows, the first but for rows of units; 0 if it is public.
        cutoff_price: the price of asking how many rows a given bound cuts off; 0 if it isn't asked.
        searches: the searches of domain discovery, with their prices.
        structure: the strategy's name.
        wanted: pairs that are measured whatever is chosen.
        own: the means, sums and quantiles that questions of their own could measure.
        outlined: the expected questions of the strategy.
        exam: the marginals whose distances from the finished table are asked for; none without an exam.
        steps: the spending steps, in order. The last one takes what is left; with an exam, so does the one
            before, but for what is kept for the exam.
        max_cells: largest number of cells of the model's junction tree that the strategy may use.
        model_cells: largest number of cells that the strategy can reach, at most ``max_cells``.
        merged_below: rows; values of a column with fewer rows, by noisy counts, are merged.
        forecast: time and memory, roughly.
        tiers: the tiers of the release; one where there are no audiences.
        before: the plan of the tier before; None for the first tier.
        sampling: the sample of units that is asked; None if all are.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    epsilon: Fraction
    delta: Fraction | None
    noise: NoiseName
    shares: Shares
    bound_price: Fraction
    total_price: Fraction
    cutoff_price: Fraction
    searches: tuple[PlannedSearch, ...]
    structure: str
    wanted: tuple[Clique, ...]
    own: OwnQuestions
    outlined: StrategyOutline
    exam: tuple[Examined, ...]
    steps: tuple[PlannedStep, ...]
    max_cells: int
    model_cells: int
    merged_below: float
    forecast: Forecast
    tiers: tuple[Tier, ...]
    before: Plan | None = None
    sampling: Sampling | None = None

    @property
    def place(self) -> int:
        """The place of its tier among ``tiers``."""
        return 0 if self.before is None else self.before.place + 1

    @property
    def audience(self) -> str:
        """The audience of its tier; "" where there are none."""
        return self.tiers[self.place].audience

    @property
    def first(self) -> Plan:
        """The plan of the first tier, which found all domains."""
        return self if self.before is None else self.before.first

    @property
    def whole(self) -> Tier:
        """The last tier, whose budget is that of the whole release."""
        return self.tiers[-1]

    @property
    def later(self) -> Fraction:
        """The part of the release's budget that is kept for later tiers."""
        return self.whole.budget - self.tiers[self.place].budget

    @property
    def kept(self) -> Fraction:
        """The part of the budget that is kept for the exam of this tier."""
        return self.budget * self.shares.exam

    @property
    def last_measured(self) -> PlannedStep:
        """The last step before the exam: the chosen marginals, or the single columns without any."""
        return self.steps[-2 if self.exam else -1]

    @property
    def selection_delta(self) -> Fraction:
        """The part of delta for partition selection."""
        return sum((search.delta for search in self.first.searches), Fraction(0))

    @property
    def asked_delta(self) -> Fraction | None:
        """The delta of what is asked: of the sample if there is one, else that of the guarantee."""
        if self.delta is None or self.sampling is None:
            return self.delta
        return self.delta / self.sampling.rate

    @property
    def _measure_delta(self) -> Fraction | None:
        """The part of that delta for the measure: the rest after partition selection."""
        return None if self.asked_delta is None else self.asked_delta - self.selection_delta

    @property
    def spent_delta(self) -> Fraction:
        """The delta of the tier's guarantee; under pure accounting only that of searches."""
        return self.tiers[self.place].spent_delta(self.measure, self.selection_delta)

    @property
    def whole_delta(self) -> Fraction:
        """The delta that the whole release takes from the ledger."""
        return self.whole.spent_delta(self.measure, self.selection_delta)

    def to_json(self) -> dict[str, object]:
        """The plan as plain JSON values; floats for people, the exact budget as a fraction."""
        return {
            "audience": self.audience or None,
            "sample_rate": None if self.sampling is None else float(self.sampling.rate),
            "epsilon": float(self.epsilon),
            "delta": float(self.spent_delta),
            "neighbours": self.neighbours.relation,
            "unit": self.neighbours.unit,
            "unit_leaves_unprotected": left_unprotected(self.neighbours.unit),
            "accounting": self.measure.title,
            "budget": float(self.budget),
            "budget_exact": str(self.budget),
            "epsilon_of_budget": float(
                self.measure.epsilon(self.tiers[self.place].budget, self._measure_delta)
            ),
            "noise": noise_named(self.noise).mechanism,
            "rows_public": self.neighbours.rows_public,
            "structure": self.structure,
            "contribution_bound_share": float(self.bound_price / self.budget) if self.bound_price else None,
            "searches": [
                {"column": s.column, "find": s.find, "share": float(s.price / self.budget)}
                for s in self.searches
            ],
            "wanted_pairs": [list(pair) for pair in self.wanted],
            "means": self.own.described_means(),
            "quantiles": self.own.described_quantiles(),
            "rounds": self.outlined.rounds,
            "examined": [list(examined.clique) for examined in self.exam],
            "steps": [step.to_json() for step in self.steps],
            "merged_below_rows": round(self.merged_below, 1),
            "model_cells_allowed": self.max_cells,
            "model_cells_at_most": self.model_cells,
            "model_megabytes_at_most": round(self.model_cells * CELL_BYTES / 1e6, 3),
            "rough_forecast": self.forecast.facts,
        }


def wanted_pairs(compiled: CompiledSpec) -> tuple[Clique, ...]:
    """Pairs of columns of a constraint or a statistic, as far as they make no cycle.

    A strategy that measures pairs measures these whatever it chooses. So constraints find the combinations
    of values, and requested statistics rest on answers of their own. The pairs are named in the config,
    hence public. Pairs with public marginals need no answer.
    """
    spec, known = compiled.spec, compiled.public_marginals
    names = [part.name for part in compiled.layout.named.values()]
    part = {name: i for i, name in enumerate(names)}
    found: list[Clique] = []
    pairs = [*compiled.rules.pairs, *(request.columns for request in spec.publish.statistics)]
    for columns in pairs:
        if len(columns) == 2:
            a, b = sorted(columns, key=names.index)
            if part[a] != part[b] and known.shares((a, b)) is None:
                found.append((a, b))
                part = {c: part[a] if p == part[b] else p for c, p in part.items()}
    return tuple(found)


def neighbours_of(spec: Spec) -> Neighbours:
    """The neighbour relation and unit of a spec, with the largest bound if the bound is to be found."""
    unit = spec.privacy.unit
    if isinstance(unit, Person):
        per = None if unit.per is None else PerPeriod(unit.per.column, unit.per.every)
        kind = None if unit.kind == "person" else unit.kind
        return Neighbours(spec.privacy.neighbours, unit.column, unit.bound, unit.missing, kind, per)
    return Neighbours(spec.privacy.neighbours, kind=None if unit.kind == "row" else unit.kind)


def make_plan(compiled: CompiledSpec, outline: Outline, found: Found | None = None) -> Plan:
    """The plan of a release.

    Args:
        compiled: the config.
        outline: the structure strategy that the config names.
        found: the state of the release. Without it, a column whose domain is to be found has the most
            cells that its search allows, and a person the most rows.

    Raises:
        ConfigError: the model would be too large, the accountant doesn't suit the strategy, or delta
            and epsilon leave no budget.
    """
    spec, columns, known = compiled.spec, compiled.columns, compiled.public_marginals
    near, noise = neighbours_of(spec) if found is None else found.plan.neighbours, spec.privacy.noise
    domain = domain_of(columns if found is None else found.columns)
    wanted = wanted_pairs(compiled) if found is None else found.plan.wanted
    exam = _exam(spec, domain)
    before = None if found is None else found.plan if found.next_tier else found.plan.before
    place, promises = 0 if before is None else before.place + 1, spec.promises
    sampling = spec.privacy.sampling
    own = None if found is None else found.plan.own
    total = None if found is None or found.next_tier else found.plan.total_price
    terms = [
        (Spending(budget, measure, near, noise, known), outlined, selection)
        for measure, outlined in _measures(spec, outline, domain.sizes, wanted)
        if found is None or measure == found.plan.measure
        for selection in [_for_selection(columns, measure, promises[0].delta)]
        if (budget := part_of(tiers_of(promises, measure, selection, sampling), place)) > 0
    ]
    asked = compiled, domain, wanted, exam
    planned = [
        _way(compiled, domain, each, _own(*asked, *each[:2]) if own is None else own, exam, place == 0, total)
        for each in terms
    ]
    if not planned:
        raise ConfigError(
            f"{_epsilon_of(promises[place])} with privacy.delta {spec.privacy.delta} leaves nothing "
            "to spend. Raise epsilon, or use a delta that is not so small."
        )
    way = least_noise(planned, lambda way: way.terms(-2 if exam else -1))
    outlined, steps = way.outlined, way.steps
    allowed, cells = model_cells(spec, outline, outlined, domain.sizes, wanted)
    return Plan(
        neighbours=near,
        measure=way.spending.measure,
        budget=way.spending.budget,
        epsilon=promises[place].epsilon,
        delta=promises[place].delta,
        noise=noise,
        shares=way.shares,
        bound_price=way.asked.bound_price,
        total_price=way.total_price,
        cutoff_price=way.asked.cutoff_price,
        searches=way.asked.searches,
        structure=outline.name,
        wanted=wanted,
        own=way.own,
        outlined=outlined,
        exam=exam,
        steps=steps,
        max_cells=allowed,
        model_cells=cells,
        merged_below=_merged_below(spec, outlined, steps[-2 if exam else -1]),
        forecast=forecast_of(
            len(domain.columns),
            cells,
            outlined.rounds + 1,
            chooses=outlined.choices + outlined.errors > 0,
            made=None if spec.sample.rows == "same" else int(spec.sample.rows),
            beside=outlined.errors > 0 and outlined.rounds > 1,
        ),
        tiers=tiers_of(promises, way.spending.measure, way.selection, sampling),
        before=before,
        sampling=sampling,
    )


def _epsilon_of(promise: Promise) -> str:
    key = f"audiences.{promise.audience}" if promise.audience else "privacy"
    return f"{key}.epsilon {float(promise.epsilon):g}"


@dataclass(frozen=True)
class _Way:
    """One way to spend the budget, under one measure."""

    spending: Spending
    selection: Fraction
    outlined: StrategyOutline
    own: OwnQuestions
    shares: Shares
    asked: Asked
    total_price: Fraction
    steps: tuple[PlannedStep, ...]

    def terms(self, last: int) -> Terms:
        """The terms by which ways are compared, of its last measuring step."""
        return self.spending.measure, self.steps, self.steps[last].scale


def _way(
    compiled: CompiledSpec,
    domain: Domain,
    terms: tuple[Spending, StrategyOutline, Fraction],
    own: OwnQuestions,
    exam: Sequence[Examined],
    finds: bool,
    total: Fraction | None,
) -> _Way:
    """The way to spend a budget on given terms: the spending, the outline, and the delta of selections.

    Domains are found, and rows of units asked for, by the first tier alone; the others have no share for it.
    """
    spending, outlined, selection = terms
    columns = compiled.columns if finds else ()
    shares = _shares(compiled, outlined, own.number, exam)
    shares = shares if finds else replace(shares, domain=Fraction(0), cutoff=Fraction(0))
    allowance = spending.budget * shares.domain
    rows = price_of_bound(columns, allowance) * (finds and compiled.spec.privacy.max_rows_private)
    searches = planned_searches(columns, allowance - rows, selection)
    cutoff = spending.budget * shares.cutoff
    asked = Asked(searches, rows, len(own.summed), len(own.finer), len(exam), total, cutoff)
    steps = spending.steps(shares, outlined, domain, asked)
    priced = own.at(spending.budget * shares.statistics / max(own.number, 1))
    of_total = spending.price_of_total(shares, outlined, domain, asked)
    return _Way(spending, selection, outlined, priced, shares, asked, of_total, steps)


def _own(
    compiled: CompiledSpec,
    domain: Domain,
    wanted: tuple[Clique, ...],
    exam: Sequence[Examined],
    spending: Spending,
    outlined: StrategyOutline,
) -> OwnQuestions:
    """The statistics that could be measured, at prices that follow from the shares beside all of them.

    The counts of such a column in its groups are measured, and are not public.
    """
    pairs = {frozenset(pair) for pair in (wanted if outlined.cliques else ())}

    def able(of: str, by: Clique) -> bool:
        counted = not by or frozenset((of, *by)) in pairs
        return counted and compiled.public_marginals.shares((*by, of)) is None

    means = [(of, by) for of, by in compiled.summable if able(of, by)]
    quantiles = [(of, by, at) for of, by, at in compiled.quantiles if able(of, by)]
    number = len(means) + len(quantiles)
    shares = _shares(compiled, outlined, number, exam)
    if not shares.statistics or compiled.spec.privacy.sampling is not None:
        return OwnQuestions()
    prices = Allowances(
        one_way=spending.budget * shares.one_way / (len(domain.columns) + 1),
        pair=spending.budget * shares.marginals / max(outlined.cliques, 1),
        each=spending.budget * shares.statistics / number,
        rows=float(compiled.public_marginals.rows or ASSUMED_ROWS),
    )
    terms = compiled.columns, domain, spending.bought, prices
    return OwnQuestions(planned_means(means, *terms), planned_quantiles(quantiles, *terms))


def _merged_below(spec: Spec, outlined: StrategyOutline, last: PlannedStep) -> float:
    """Rows that a value needs to exceed the noise of a marginal."""
    if not outlined.cliques:
        return 0.0
    return float(spec.structure.merge_rare) * sqrt(noise_variance(spec.privacy.noise, last.scale))


def _for_selection(columns: Sequence[Column], measure: Measure, delta: Fraction | None) -> Fraction:
    """The part of delta for partition selection: half, or all if nothing else needs delta."""
    if delta is None or not any(isinstance(c.search, ValueSearch) for c in columns):
        return Fraction(0)
    return delta / 2 if measure.needs_delta else delta


def _exam(spec: Spec, domain: Domain) -> tuple[Examined, ...]:
    """The marginals of the exam; none if its share is 0."""
    if spec.privacy.exam == 0:
        return ()
    return exam_of(domain, [clique for asked in spec.publish.statistics for clique in asked.cliques])


def _shares(compiled: CompiledSpec, outlined: StrategyOutline, own: int, exam: Sequence[Examined]) -> Shares:
    """The split in force: that of the config, or the default for so many own questions and an exam."""
    spec, columns = compiled.spec, compiled.columns
    split, given = spec.privacy.split, spec.privacy.exam
    examined = (EXAM_SHARE if given is None else Fraction(given)) if exam else Fraction(0)
    cut = spec.privacy.cutoff
    cutoff = CUTOFF_SHARE if cut is None else Fraction(cut)
    if split is None or split.one_way is None:
        domain = BOUND_SHARE if spec.privacy.max_rows_private else Fraction(0)
        if searched := sum(c.search is not None for c in columns):
            domain = max(DOMAIN_SHARE * searched / len(columns), LEAST_DOMAIN_SHARE)
        return outlined.shares.beside(domain, share_of_statistics(own), examined, cutoff)
    return Shares(
        Fraction(split.one_way),
        Fraction(split.structure),
        Fraction(split.marginals),
        Fraction(split.domain),
        Fraction(split.statistics) if own else Fraction(0),
        examined,
        cutoff,
    )


def _measures(
    spec: Spec, outline: Outline, sizes: Mapping[str, int], wanted: tuple[Clique, ...]
) -> list[tuple[Measure, StrategyOutline]]:
    """The measures that suit the config, with the strategy's outline under each.

    There are several only if the accountant is free.
    """
    noise = spec.privacy.noise
    return [(m, outline.outline(sizes, wanted, m, noise)) for m in measures_of(spec)]
