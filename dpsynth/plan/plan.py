"""The plan: the spending of a release, fixed before the table is read.

Invariant: a plan is made of the config alone, and is exact: shares are rationals, so the parts of a split
never exceed the whole, and every noise scale is rounded towards more noise. Its accountant, its exam and the
size of its model follow from public facts alone.

The exam asks for the distances of some marginals from the finished synthetic table: of all pairs of columns,
of the requested statistics of three columns and more, and of some sets of three columns. So a release states
the error of its own table, not that of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from math import comb, sqrt

import numpy as np

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.calibration import Calibration, NoiseName, noise_named, noise_variance
from dpsynth.accounting.composition import Cost, planned
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours, left_unprotected
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.column import Column, ValueSearch, domain_of
from dpsynth.columns.domain import Clique, Domain, row_before
from dpsynth.columns.measurement import Examined, Observation
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.config.compiled import CompiledSpec, digest_of
from dpsynth.config.grammar import Spec
from dpsynth.config.privacy import Promise
from dpsynth.config.structure import METHODS
from dpsynth.errors import ConfigError
from dpsynth.plan.questions import (
    ASSUMED_ROWS,
    Allowances,
    BinnedNumbers,
    GroupNoise,
    OwnQuestions,
    PlannedStatistic,
    best_centring,
    best_pieces,
    own_noise,
    planned_statistics,
    share_of_statistics,
)
from dpsynth.plan.resources import Forecast, cells_within, forecast_of
from dpsynth.plan.spending import (
    Asked,
    Outline,
    PlannedSearch,
    PlannedStep,
    Shares,
    Spending,
    StrategyOutline,
    Tier,
    measures_of,
    part_of,
    planned_searches,
    price_of_bound,
    tiers_of,
)

MOST_CELLS = 1 << 22
"""Largest number of cells of a marginal that is examined."""

MOST_PAIRS = 3000
"""Largest number of pairs that are examined; of more, those of fewest cells."""

TRIPLES_A_PAIR, MOST_TRIPLES = 4, 100
"""One set of three columns for so many pairs; and at most so many sets."""

_TRIES = 50

_PAIR, _TRIPLE = 2, 3


def exam_of(
    domain: Domain, statistics: Sequence[Clique], criteria: Sequence[Clique] = ()
) -> tuple[Examined, ...]:
    """The marginals of the exam, each once; none for a table of one column.

    Args:
        statistics: the columns of requested statistics; those of three or more are examined.
        criteria: the columns of acceptance criteria.
    """
    pairs = _pairs(domain)
    judged = [c for c in dict.fromkeys(map(domain.canonical, criteria)) if c not in pairs]
    asked = dict.fromkeys(domain.canonical(columns) for columns in statistics if len(columns) > _PAIR)
    named = [clique for clique in asked if domain.cells(clique) <= MOST_CELLS and clique not in judged]
    number = min(-(-len(pairs) // TRIPLES_A_PAIR), MOST_TRIPLES)
    triples = [clique for clique in _triples(domain, number) if clique not in (*asked, *judged)]
    return (
        *(Examined("pair", clique) for clique in pairs),
        *(Examined("criterion", clique) for clique in judged),
        *(Examined("statistic", clique) for clique in named),
        *(Examined("triple", clique) for clique in triples),
    )


def _pairs(domain: Domain) -> list[Clique]:
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


DOMAIN_SHARE, LEAST_DOMAIN_SHARE = Fraction(1, 4), Fraction(1, 20)
"""Default share of the budget for domain discovery: with all columns to be found, and at least."""

BOUND_SHARE = Fraction(1, 50)
"""Default share of the budget for finding the contribution bound alone."""

CUTOFF_SHARE = Fraction(1, 100)
"""Default share of the budget for the rows that a given contribution bound cuts off; docs/persons.md."""

HISTORY_SHARE = Fraction(2, 5)
"""Share of what is for columns together that goes to pairs of a row and the one before; docs/histories.md."""

EXAM_SHARE = Fraction(3, 100)
"""Default share of the budget for the exam; docs/exam.md weighs it."""


@dataclass(frozen=True)
class Found:
    """The state of a release, from which a new plan is made.

    Attributes:
        plan: the plan made before, with the contribution bound that was found.
        next_tier: True if the new plan is of the next tier; False if of the rest of the same one.
    """

    plan: Plan
    columns: Sequence[Column]
    next_tier: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan of a release, or of one tier of it.

    Attributes:
        budget: the budget under the measure, rounded down.
        bound_price: the price of finding the contribution bound; 0 for a bound that is given.
        total_price: the price of the number of rows, the first but for rows of units; 0 if it is public.
        cutoff_price: the price of asking how many rows a given bound cuts off; 0 if it isn't asked.
        exam_price: the price of the exam, which is kept for it; 0 without one.
        selection_delta: the part of the release's delta for partition selection.
        wanted: pairs that are measured whatever is chosen.
        own: the means, sums and quantiles that questions of their own could measure.
        outlined: the expected questions of the strategy.
        exam: the marginals whose distances from the finished table are asked for; none without an exam.
        targets: the columns that classifiers of the finished table guess, and what each is trained for.
        steps: the spending steps, in order. The last one takes what is left; with an exam, so does the one
            before, but for what is kept for the exam.
        max_cells: largest number of cells of the model's junction tree that the strategy may use.
        model_cells: largest number of cells that the strategy can reach, at most ``max_cells``.
        merged_below: rows; values of a column with fewer rows, by noisy counts, are merged.
        tiers: the tiers of the release; one where there are no audiences. The last one is the whole release.
        later: the part of the release's budget that is kept for later tiers.
        sampling: the sample of units that is asked; None if all are.
        one_way: the weights by which the single columns that are asked for share their step.
        cost: the cost of all tiers, which a ledger reserves.
        weighs: true if the strategy is asked by weights, should noisy numbers of rows and persons say that
            these pay. Its noise is then at most that of the forecast.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    noise: NoiseName
    shares: Shares
    bound_price: Fraction
    total_price: Fraction
    cutoff_price: Fraction
    exam_price: Fraction
    searches: tuple[PlannedSearch, ...]
    selection_delta: Fraction
    structure: str
    wanted: tuple[Clique, ...]
    own: OwnQuestions
    outlined: StrategyOutline
    exam: tuple[Examined, ...]
    targets: tuple[tuple[str, str], ...]
    steps: tuple[PlannedStep, ...]
    max_cells: int
    model_cells: int
    merged_below: float
    forecast: Forecast
    tiers: tuple[Tier, ...]
    tier: Tier
    later: Fraction
    one_way: Mapping[Clique, Fraction]
    cost: Cost
    before: Plan | None = None
    sampling: Sampling | None = None
    weighs: bool = False

    @property
    def first(self) -> Plan:
        """The plan of the first tier, which found all domains."""
        return self if self.before is None else self.before.first

    @property
    def whole(self) -> Tier:
        return self.tiers[-1]

    @property
    def last_measured(self) -> PlannedStep:
        """The last step before the exam: the chosen marginals, or the single columns without any."""
        return self.steps[-2 if self.exam else -1]

    @property
    def bought(self) -> Calibration:
        return Calibration(self.neighbours, self.measure, noise_named(self.noise))

    def question_of(
        self, asked: PlannedStatistic, column: Column, counted: Observation, groups: int
    ) -> Centring | Pieces:
        """The offsets and the limit of a sum, or the pieces of finer counts, by the column's noisy counts."""
        pairs = [noise_variance(self.noise, step.scale) for step in self.steps if step.step == "marginals"]
        cell = sqrt(max(pairs, default=0.0)) if asked.by else counted.stddev
        noise = GroupNoise(cell, own_noise(self.bought, asked.price, asked.levels), groups)
        bins = BinnedNumbers.of(column, counted)
        return (best_pieces(bins, noise, asked.levels) if asked.levels else best_centring(bins, noise))[0]

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all but how long it takes, which is no part of what is asked."""
        return digest_of({k: v for k, v in self.to_json().items() if k != "rough_forecast"})

    def to_json(self) -> dict[str, object]:
        tier, measure = self.tier, self.measure
        delta = None if tier.asked_delta is None else tier.asked_delta - self.selection_delta
        return {
            "audience": tier.audience or None,
            "sample_rate": None if self.sampling is None else float(self.sampling.rate),
            "epsilon": float(tier.epsilon),
            "delta": float(tier.spent_delta),
            "neighbours": self.neighbours.relation,
            "unit": self.neighbours.unit,
            "unit_leaves_unprotected": left_unprotected(self.neighbours.unit),
            "accounting": measure.title,
            "budget": float(self.budget),
            "budget_exact": str(self.budget),
            "epsilon_of_budget": float(measure.epsilon(tier.budget, delta)),
            "noise": noise_named(self.noise).mechanism,
            "rows_public": self.neighbours.rows_public,
            "structure": self.structure,
            **({"by_weights_if_they_pay": True} if self.weighs else {}),
            "contribution_bound_share": float(self.bound_price / self.budget) if self.bound_price else None,
            "searches": [
                {"column": s.column, "find": s.find, "share": float(s.price / self.budget)}
                for s in self.searches
            ],
            "wanted_pairs": [list(pair) for pair in self.wanted],
            **self.own.to_json(),
            "rounds": self.outlined.rounds,
            "examined": [list(examined.clique) for examined in self.exam],
            "classified": [list(target) for target in self.targets],
            "steps": [step.to_json() for step in self.steps],
            "merged_below_rows": round(self.merged_below, 1),
            "model_cells_allowed": self.max_cells,
            "model_cells_at_most": self.model_cells,
            "model_megabytes_at_most": round(self.model_cells * CELL_BYTES / 1e6, 3),
            "rough_forecast": self.forecast.facts,
        }


def promised(plan: Plan) -> Guarantee:
    """The guarantee of a release that spends all that its plan allows."""
    measure, budget = plan.measure, plan.whole.budget
    asked = plan.tier.spent_delta if plan.sampling is None else plan.tier.spent_delta / plan.sampling.rate
    epsilon = measure.epsilon(budget, asked - plan.selection_delta if measure.needs_delta else None)
    found = Guarantee(
        epsilon=float(epsilon),
        delta=float(plan.tier.spent_delta),
        rho=float(measure.rho(budget)) if measure.needs_delta else None,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        accountant=measure.accountant,
        mu=measure.mu(budget),
        approximate_delta=float(plan.selection_delta),
    )
    return found if plan.sampling is None else plan.sampling.of_whole(found, epsilon, plan.tier.spent_delta)


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


def make_plan(compiled: CompiledSpec, outline: Outline, found: Found | None = None) -> Plan:
    """The plan of a release.

    Args:
        found: the state of the release. Without it, a column whose domain is to be found has the most
            cells that its search allows, and a person the most rows.

    Raises:
        ConfigError: the model would be too large, the accountant doesn't suit the strategy, or delta
            and epsilon leave no budget.
    """
    spec, columns, known = compiled.spec, compiled.columns, compiled.public_marginals
    domain = domain_of(columns if found is None else found.columns)
    wanted = wanted_pairs(compiled) if found is None else found.plan.wanted
    exam = _exam(compiled, domain)
    before = None if found is None else found.plan if found.next_tier else found.plan.before
    place, promises = 0 if before is None else before.tier.place + 1, spec.promises
    sampling = spec.privacy.sampling
    near, noise = spec.protected if found is None else found.plan.neighbours, spec.privacy.noise
    own = None if found is None else found.plan.own
    total = None if found is None or found.next_tier else found.plan.total_price
    terms = [
        (Spending(budget, measure, near, noise, known, compiled.rules.partners), outlined, tiers, selection)
        for measure in measures_of(spec)
        if found is None or measure == found.plan.measure
        for outlined in [outline.outline(domain.sizes, wanted, measure, noise)]
        for selection in [_for_selection(columns, measure, promises[0].delta)]
        for tiers in [tiers_of(promises, measure, selection, sampling)]
        if (budget := part_of(tiers, place)) > 0
    ]
    asked = compiled, domain, wanted, exam
    ways = [
        _way(compiled, domain, each, _own(*asked, *each[:2]) if own is None else own, exam, place == 0, total)
        for each in terms
    ]
    if not ways:
        raise ConfigError(
            f"{_epsilon_of(promises[place])} with privacy.delta {spec.privacy.delta} leaves nothing "
            "to spend. Raise epsilon, or use a delta that is not so small."
        )
    last = -2 if exam else -1
    way = min(ways, key=lambda way: way.steps[last].scale)
    outlined, whole = way.outlined, way.tiers[-1]
    allowed, cells = model_cells(spec, outline, outlined, domain.sizes, wanted)
    return Plan(
        neighbours=near,
        measure=way.spending.measure,
        budget=way.spending.budget,
        noise=noise,
        shares=way.shares,
        bound_price=way.asked.bound_price,
        total_price=way.total_price,
        cutoff_price=way.asked.cutoff_price,
        exam_price=way.spending.budget * way.shares.exam,
        searches=way.asked.searches,
        selection_delta=way.selection,
        structure=outline.name,
        wanted=wanted,
        own=way.own,
        outlined=outlined,
        exam=exam,
        targets=way.asked.targets,
        steps=way.steps,
        max_cells=allowed,
        model_cells=cells,
        merged_below=_merged_below(spec, outlined, way.steps[last]),
        forecast=forecast_of(
            len(domain.columns),
            cells,
            outlined.rounds + 1,
            chooses=outlined.choices + outlined.errors > 0,
            made=None if spec.sample.rows == "same" else int(spec.sample.rows),
            beside=outlined.errors > 0 and outlined.rounds > 1,
        ),
        tiers=way.tiers,
        tier=way.tiers[place],
        later=whole.budget - way.tiers[place].budget,
        one_way={c: weight for c, weight in way.spending.weights(domain).items() if c},
        cost=planned(
            way.spending.measure, noise, whole.budget, Amount(whole.epsilon, whole.spent_delta), way.selection
        ),
        before=before,
        sampling=sampling,
        weighs=outlined.by_weights and outlined.cliques > 0 and near.max_rows > 1 and _rows_alone(compiled),
    )


def _rows_alone(compiled: CompiledSpec) -> bool:
    """True if no answers about rows meet those of the strategy, with which weights can't be compared.

    Such answers are those that it begins with, and those of later tiers and releases that go on from its own.
    """
    spec = compiled.spec
    reused = spec.reuse.same_period or spec.reuse.earlier_periods or spec.public_table is not None
    joint = any(len(m.clique) > 1 for m in compiled.public_marginals.marginals)
    return len(spec.promises) == 1 and not (reused or joint)


def _epsilon_of(promise: Promise) -> str:
    key = f"audiences.{promise.audience}" if promise.audience else "privacy"
    return f"{key}.epsilon {float(promise.epsilon):g}"


@dataclass(frozen=True)
class _Way:
    spending: Spending
    tiers: tuple[Tier, ...]
    selection: Fraction
    outlined: StrategyOutline
    own: OwnQuestions
    shares: Shares
    asked: Asked
    total_price: Fraction
    steps: tuple[PlannedStep, ...]


def _way(
    compiled: CompiledSpec,
    domain: Domain,
    terms: tuple[Spending, StrategyOutline, tuple[Tier, ...], Fraction],
    own: OwnQuestions,
    exam: Sequence[Examined],
    finds: bool,
    total: Fraction | None,
) -> _Way:
    """The way to spend a budget on given terms: spending, outline, tiers, and the delta of selections.

    Domains are found, and rows of units asked for, by the first tier alone; the others have no share for it.
    """
    spending, outlined, tiers, selection = terms
    columns = compiled.columns if finds else ()
    shares = _shares(compiled, outlined, len(own.asked), exam)
    if compiled.linked:
        shares = shares.with_history(HISTORY_SHARE)
    shares = shares if finds else replace(shares, domain=Fraction(0), cutoff=Fraction(0))
    allowance = spending.budget * shares.domain
    rows = price_of_bound(columns, allowance) * (finds and compiled.spec.privacy.max_rows_private)
    searches = planned_searches(columns, allowance - rows, selection)
    cutoff, accept = spending.budget * shares.cutoff, compiled.spec.accept
    targets = () if accept is None else accept.targets
    finer, linked = len(own.asked) - own.sums, len(compiled.linked) + len(compiled.lasting)
    asked = Asked(searches, rows, own.sums, finer, len(exam), targets, total, cutoff, linked)
    steps = spending.steps(shares, outlined, domain, asked)
    priced = own.at(spending.budget * shares.statistics / max(len(own.asked), 1))
    of_total = spending.price_of_total(shares, outlined, domain, asked)
    return _Way(spending, tiers, selection, outlined, priced, shares, asked, of_total, steps)


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

    wished = [*((of, by, ()) for of, by in compiled.summable), *compiled.quantiles]
    asked = [(of, by, levels) for of, by, levels in wished if able(of, by)]
    number = len(asked)
    shares = _shares(compiled, outlined, number, exam)
    if not shares.statistics or compiled.spec.privacy.sampling is not None:
        return OwnQuestions()
    prices = Allowances(
        one_way=spending.budget * shares.one_way / (len(domain.columns) + 1),
        pair=spending.budget * shares.marginals / max(outlined.cliques, 1),
        each=spending.budget * shares.statistics / number,
        rows=float(compiled.public_marginals.rows or ASSUMED_ROWS),
    )
    return OwnQuestions(planned_statistics(asked, compiled.columns, domain, spending.bought, prices))


def _merged_below(spec: Spec, outlined: StrategyOutline, last: PlannedStep) -> float:
    if not outlined.cliques:
        return 0.0
    return float(spec.structure.merge_rare) * sqrt(noise_variance(spec.privacy.noise, last.scale))


def _for_selection(columns: Sequence[Column], measure: Measure, delta: Fraction | None) -> Fraction:
    """The part of delta for partition selection: half, or all if nothing else needs delta."""
    if delta is None or not any(isinstance(c.search, ValueSearch) for c in columns):
        return Fraction(0)
    return delta / 2 if measure.needs_delta else delta


def _exam(compiled: CompiledSpec, domain: Domain) -> tuple[Examined, ...]:
    spec, whole = compiled.spec, domain.with_rows_before
    if spec.privacy.exam == 0:
        return ()
    asked = [clique for statistic in spec.publish.statistics for clique in statistic.cliques]
    links = [(c, row_before(c)) for c in compiled.linked]
    return (
        *exam_of(domain, asked, () if spec.accept is None else spec.accept.sets),
        *(Examined("link", link) for link in links if whole.cells(link) <= MOST_CELLS),
    )


def _shares(compiled: CompiledSpec, outlined: StrategyOutline, own: int, exam: Sequence[Examined]) -> Shares:
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
