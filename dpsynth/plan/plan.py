"""The plan: the spending of a release, fixed before the table is read.

Invariant: a plan is made of the config alone, and is exact: shares are rationals, so the parts of a
split never exceed the whole, and every noise scale is rounded towards more noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours, PerPeriod, left_unprotected
from dpsynth.accounting.noises import NoiseName, noise_named
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.examined import Examined
from dpsynth.columns.measurement import noise_variance
from dpsynth.columns.search import ValueSearch
from dpsynth.config.audiences import Promise
from dpsynth.config.compiled import CompiledSpec
from dpsynth.config.grammar import Spec
from dpsynth.config.privacy import Person
from dpsynth.errors import ConfigError
from dpsynth.plan.choice_of_accountant import Terms, least_noise, measures_of
from dpsynth.plan.exam import exam_of
from dpsynth.plan.model_size import CELL_BYTES, model_cells
from dpsynth.plan.outline import Outline, Shares, StrategyOutline
from dpsynth.plan.own_questions import OwnQuestions, share_of_statistics
from dpsynth.plan.quantiles import planned_quantiles
from dpsynth.plan.resources import Forecast, forecast_of
from dpsynth.plan.searches import PlannedSearch, planned_searches, price_of_bound
from dpsynth.plan.steps import Asked, PlannedStep, Spending
from dpsynth.plan.sums import ASSUMED_ROWS, Allowances, planned_means
from dpsynth.plan.tiers import Tier, part_of, tiers_of

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
    way = least_noise(planned, lambda way: way.terms(-2 if exam else -1), checked=found is None)
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
