"""The spending of a budget: tiers of audiences, and the steps of each with price, noise and error.

Invariant: all of it follows from the config and from the columns' sizes. It is exact: prices are rationals
whose sum is the budget, and every noise scale is rounded towards more noise.

A structure strategy outlines its questions and cells from public facts, mostly the columns' sizes, and never
exceeds that. If it makes fewer choices than outlined, their price goes to its last step.

Tiers. The first tier is asked for the audience of the smallest epsilon, within its budget. Each further tier
has what the next audience's budget has beyond that, and the answers so far besides. So an audience's
guarantee is that of all answers up to the end of its tier, and all audiences together bear the last one's. To
answer the larger audience first and to add noise for the smaller one would give the same variances of a
marginal that both get: under Gaussian DP precisions add up. But then what is chosen for the smaller audience
would depend on choices at the larger one's epsilon. In this order each bundle is a function of what its own
audience pays for, and needs no argument but composition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, Protocol

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.calibration import Calibrated, Calibration, NoiseName, noise_named
from dpsynth.accounting.events import RecordedEvent
from dpsynth.accounting.measures import GDP, PURE, Measure, measure_named
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import NO_PUBLIC_MARGINALS, PublicMarginals
from dpsynth.config import Spec
from dpsynth.config.privacy import Promise
from dpsynth.errors import ConfigError

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
    if spec.ledger.filter == "auto" or measure_named(spec.ledger.filter) != GDP:
        return True
    return measure.implied(Fraction(1), spec.privacy.noise == "laplace")[1] is not None


@dataclass(frozen=True)
class Tier:
    """One audience's part of a release; the only one where there are no audiences.

    Attributes:
        place: its place among the tiers, from 0.
        epsilon, delta: the guarantee asked for, of all answers up to the end of the tier; delta is None
            under pure epsilon-DP.
        asked_delta: the delta of what is asked: of the sample if there is one, else that of the guarantee.
        spent_delta: the delta of the guarantee; under pure accounting only that of partition selection.
        budget: the budget of all these answers, under the measure.
    """

    audience: str
    place: int
    epsilon: Fraction
    delta: Fraction | None
    asked_delta: Fraction | None
    spent_delta: Fraction
    budget: Fraction


def tiers_of(
    promises: Sequence[Promise], measure: Measure, selection: Fraction, sampling: Sampling | None = None
) -> tuple[Tier, ...]:
    """The tiers of a release, in the order in which they are asked.

    Args:
        promises: the guarantee of each audience, in rising order.
        selection: the part of each delta for partition selection, which the first tier asks.
        sampling: the sample of units; the budget is then that of the release on the sample.
    """
    found: list[Tier] = []
    for place, promise in enumerate(promises):
        epsilon, delta = promise.epsilon, promise.delta
        asked = None if delta is None else delta if sampling is None else delta / sampling.rate
        if sampling is not None:
            of_sample = sampling.of_sample(Amount(epsilon, delta or Fraction(0)))
            epsilon, delta = of_sample.epsilon, None if delta is None else of_sample.delta
        budget = measure.budget(epsilon, None if delta is None else delta - selection)
        spent = promise.delta or Fraction(0) if measure.needs_delta else selection
        found.append(Tier(promise.audience, place, promise.epsilon, promise.delta, asked, spent, budget))
    return tuple(found)


def part_of(tiers: Sequence[Tier], place: int) -> Fraction:
    """The budget of one tier by itself, beyond that of the tier before."""
    return tiers[place].budget - (tiers[place - 1].budget if place else 0)


@dataclass(frozen=True)
class Shares:
    """Shares of the budget by step; together at most 1.

    The last step before the exam takes what is left but for the exam's share; ``cutoff`` is for the rows that
    the contribution bound cuts off, ``history`` for the pairs of a row and the one before.
    """

    one_way: Fraction
    structure: Fraction
    marginals: Fraction
    domain: Fraction = Fraction(0)
    statistics: Fraction = Fraction(0)
    exam: Fraction = Fraction(0)
    cutoff: Fraction = Fraction(0)
    history: Fraction = Fraction(0)

    def with_history(self, part: Fraction) -> Shares:
        """The same split, with so much of what is for columns together for the rows before."""
        taken = min((self.structure + self.marginals) * part, self.marginals)
        return replace(self, marginals=self.marginals - taken, history=taken)

    def beside(self, domain: Fraction, statistics: Fraction, exam: Fraction, cutoff: Fraction) -> Shares:
        """The same split of what domain discovery, statistics, exam and cut-off leave, with their shares."""
        rest = 1 - domain - statistics - exam - cutoff
        parts = self.one_way * rest, self.structure * rest, self.marginals * rest
        return Shares(*parts, domain, statistics, exam, cutoff)


@dataclass(frozen=True)
class StrategyOutline:
    """The expected questions of a strategy, for a table of given sizes.

    Attributes:
        rounds: number of fits while choosing and measuring: 1 if all cliques are measured at once, 0 without
            cliques.
        choices: largest number of private choices by the exponential mechanism.
        errors: largest number of noisy distances.
        cliques: expected number of measured cliques; 0 if the single columns have the whole budget, as in a
            table of one column. Then the strategy isn't asked to select.
        cells: largest number of cells of the model, before the bound of the plan.
        distance_share: the part of the structure step's budget for noisy distances, if the strategy asks
            for choices too.
        by_weights: true if it may be asked by weights, where persons have several rows.
    """

    rounds: int
    choices: int
    errors: int
    cliques: int
    cells: int
    shares: Shares
    distance_share: Fraction = Fraction(1, 2)
    by_weights: bool = False


class Outline(Protocol):
    """The part of a structure strategy that a plan needs."""

    @property
    def name(self) -> str:
        """The name in the config."""

    @property
    def max_cells(self) -> int:
        """Largest number of cells of the model, if the config sets no bound."""

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """The expected questions.

        If the accountant is free to be chosen, a plan asks under each measure that suits, and uses the one
        under which the last step has the least noise. Sizes are in table order; every structure includes the
        wanted pairs.
        """


Find = Literal["bounds", "quantiles", "tree", "values", "prefixes"]

_WEIGHTS: dict[Find, int] = {"bounds": 2, "quantiles": 3, "tree": 3, "values": 5, "prefixes": 3}

_ROWS_WEIGHT = 3
"""Weight of the question for the contribution bound."""


@dataclass(frozen=True)
class PlannedSearch:
    """One search for a part of a column's domain.

    Attributes:
        find: "bounds", "quantiles", "tree", "values" or "prefixes".
        price: the most that all its questions may cost together, under the plan's measure.
        delta: the delta that all its questions may use together; 0 except for values.
    """

    column: str
    find: Find
    price: Fraction
    delta: Fraction = Fraction(0)


def planned_searches(
    columns: Iterable[Column], allowance: Fraction, delta: Fraction
) -> tuple[PlannedSearch, ...]:
    """The searches for some columns, in order, with their parts of an allowance and of a delta."""
    wanted = [(c.name, find) for c in columns for find in _finds(c)]
    whole = sum(_WEIGHTS[find] for _, find in wanted)
    values = sum(find == "values" for _, find in wanted)
    return tuple(
        PlannedSearch(
            column,
            find,
            allowance * _WEIGHTS[find] / whole,
            delta / values if find == "values" else Fraction(0),
        )
        for column, find in wanted
    )


def price_of_bound(columns: Iterable[Column], allowance: Fraction) -> Fraction:
    """The part of an allowance for the contribution bound; the rest goes to the searches."""
    whole = sum(_WEIGHTS[find] for c in columns for find in _finds(c))
    return allowance * _ROWS_WEIGHT / (_ROWS_WEIGHT + whole)


def _finds(column: Column) -> list[Find]:
    search = column.search
    if isinstance(search, ValueSearch):
        return ["values"]
    if isinstance(search, PrefixSearch):
        return ["prefixes"]
    found: list[Find] = []
    if isinstance(search, NumberSearch):
        if search.low is None:
            found.append("bounds")
        if search.edges != "equal":
            found.append(search.edges)
    return found


@dataclass(frozen=True)
class PlannedStep:
    """One spending step.

    Attributes:
        step: "cutoff", "domain: " and the kind of search, "one_way", "sums", "quantiles", "history",
            "structure", "marginals" or "exam". If structure asks for choices and distances, each has
            an entry.
        questions: number of answers; for structure the largest number.
        sensitivity: in words, with its value.
        scale: sigma, b, or the divisor of the exponential mechanism's scores; in rows. If
            answers differ, the scale of an answer with an average share. For sums, times the limit of a row.
        cost: the cost of all answers together under the plan's measure.
        expected_error: mean absolute error, in rows, of one cell, or of one noisy distance; None
            for choices.
        scale_of: scale of each answer by name, if the scales differ.
        events: the events of its answers, at average prices, each with the number of times it is charged.
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
    events: tuple[tuple[RecordedEvent, int], ...] = ()

    def to_json(self) -> dict[str, object]:
        return {key: value for key, value in asdict(replace(self, events=())).items() if key != "events"}


def one_way_weights(
    domain: Domain,
    near: Neighbours,
    public: PublicMarginals = NO_PUBLIC_MARGINALS,
    partners: Mapping[str, int] = MappingProxyType({}),
) -> dict[Clique, Fraction]:
    """The one-way questions, the total first unless it is public, with their shares' weights.

    Weights grow with the number of cells as n^(2/3), which makes the expected L1 error,
    summed over all columns, least for Gaussian noise within a given rho. An error of a column that rules tie
    to several others, as the number of a household's members, is one of theirs too, and counts as often.
    Public marginals are not asked.
    """
    asked: list[Clique] = [] if near.rows_public or public.rows is not None else [()]
    asked += [(c,) for c in domain.columns if c not in public.columns]
    times: dict[Clique, int] = {(c,): max(number, 1) for c, number in partners.items()}
    return {c: Fraction((domain.cells(c) * times.get(c, 1)) ** (2 / 3)) for c in asked}


@dataclass(frozen=True)
class Asked:
    """The questions beside those of the strategy and of the single columns.

    Attributes:
        finer: number of finer counts, for quantiles.
        examined: number of distances of the exam.
        targets: the columns that classifiers guess in the exam, and what each is trained for.
        total_price: the price at which the number of rows was asked; None if this plan sets it.
        cutoff_price: the price of asking how many rows a given contribution bound cuts off; 0 if it isn't
            asked.
        linked: the number of columns counted together with the row before, and with the first row.
    """

    searches: tuple[PlannedSearch, ...] = ()
    bound_price: Fraction = Fraction(0)
    sums: int = 0
    finer: int = 0
    examined: int = 0
    targets: tuple[tuple[str, str], ...] = ()
    total_price: Fraction | None = None
    cutoff_price: Fraction = Fraction(0)
    linked: int = 0


NOTHING_ELSE = Asked()

GUESSES_SHARE = Fraction(1, 10)
"""Part of the exam's price for the right guesses of one classifier: few numbers, where distances are many."""

LEAST_FOR_TOTAL = Fraction(1, 100)
"""Least share of the budget for the number of rows, by which an empty table is told from a small one."""


@dataclass(frozen=True)
class Spending:
    """A budget under a measure, and the terms on which it is spent.

    Attributes:
        public: public marginals, which are not asked.
        partners: the number of columns that rules tie to each.
    """

    budget: Fraction
    measure: Measure
    near: Neighbours
    noise: NoiseName
    public: PublicMarginals = NO_PUBLIC_MARGINALS
    partners: Mapping[str, int] = field(default_factory=dict)

    def weights(self, domain: Domain) -> dict[Clique, Fraction]:
        return one_way_weights(domain, self.near, self.public, self.partners)

    def steps(
        self, shares: Shares, outlined: StrategyOutline, domain: Domain, asked: Asked = NOTHING_ELSE
    ) -> tuple[PlannedStep, ...]:
        """The steps in order. The share of a step without questions goes to the last step before the exam."""
        found = (
            *self._rows("cutoff", asked.cutoff_price),
            *self._rows("domain: max_rows", asked.bound_price),
            *self._searches(asked.searches),
        )
        own, left = self._own(shares, asked), self._left(shares, asked)
        exam = tuple(self._exam(shares.exam, asked.examined, len(asked.targets)))
        if not outlined.cliques:
            return (*found, *self._statistics(own, asked), self._one_way(left, domain, asked), *exam)
        structure = shares.structure if outlined.choices + outlined.errors else Fraction(0)
        singles = self.weights(domain)
        one_way = shares.one_way if singles else Fraction(0)
        return (
            *found,
            *([self._one_way(one_way, domain, asked)] if singles else []),
            *self._statistics(own, asked),
            *([self._counts("history", shares.history, asked.linked)] if shares.history else []),
            *self._structure(structure, outlined),
            self._counts("marginals", left - one_way - structure - shares.history, outlined.cliques),
            *exam,
        )

    def price_of_total(
        self, shares: Shares, outlined: StrategyOutline, domain: Domain, asked: Asked
    ) -> Fraction:
        """The price of the number of rows, which is asked before the columns; 0 if it is public."""
        share = shares.one_way if outlined.cliques else self._left(shares, asked)
        return self._prices(share, domain, asked).get((), Fraction(0))

    def _own(self, shares: Shares, asked: Asked) -> Fraction:
        return shares.statistics if asked.sums + asked.finer else Fraction(0)

    def _left(self, shares: Shares, asked: Asked) -> Fraction:
        return 1 - shares.domain - shares.cutoff - self._own(shares, asked) - shares.exam

    def _prices(self, share: Fraction, domain: Domain, asked: Asked) -> dict[Clique, Fraction]:
        """The prices of the one-way questions, by their weights; a total that was asked keeps its price.

        By its weight alone the number of rows would not tell a small table from an empty one.
        """
        weights, allowance = self.weights(domain), self.budget * share
        paid: dict[Clique, Fraction] = {}
        if () in weights:
            own = allowance * weights[()] / sum(weights.values())
            least = min(self.budget * LEAST_FOR_TOTAL, allowance / 2)
            paid[()] = max(own, least) if asked.total_price is None else asked.total_price
        still = {clique: weight for clique, weight in weights.items() if clique not in paid}
        each = (allowance - sum(paid.values())) / (sum(still.values()) or 1)
        return {**paid, **{clique: each * weight for clique, weight in still.items()}}

    def _rows(self, name: str, price: Fraction) -> Iterator[PlannedStep]:
        if price:
            yield self._step(name, price, 1, self.bought.counted_once.counts(price))

    def _searches(self, searches: Sequence[PlannedSearch]) -> Iterator[PlannedStep]:
        for find in dict.fromkeys(search.find for search in searches):
            alike = [search for search in searches if search.find == find]
            price = sum((search.price for search in alike), Fraction(0))
            yield self._step(f"domain: {find}", price, len(alike), self._search(alike[0]))

    def _search(self, search: PlannedSearch) -> Calibrated[RecordedEvent]:
        if search.find == "values":
            return self.bought.values(search.price, search.delta)
        if search.find == "quantiles":
            return self.bought.quantiles(search.price)
        return self.bought.counts(search.price)

    def _one_way(self, share: Fraction, domain: Domain, asked: Asked) -> PlannedStep:
        prices = self._prices(share, domain, asked)
        bought = {clique: self.bought.counts(price) for clique, price in prices.items()}
        return replace(
            self._counts("one_way", share, len(prices)),
            scale_of={clique[0] if clique else "(total)": noise.scale for clique, noise in bought.items()},
            events=tuple((noise.event, 1) for noise in bought.values()),
        )

    def _counts(self, name: str, share: Fraction, questions: int) -> PlannedStep:
        price = self.budget * share
        noise = self.bought.counts(price / questions)
        return self._step(name, price, questions, noise, noise.expected_error)

    def _statistics(self, share: Fraction, asked: Asked) -> Iterator[PlannedStep]:
        """Sums, with the noise of a limit of one step, and finer counts, all at one price each."""
        each = self.budget * share / max(asked.sums + asked.finer, 1)
        if asked.sums:
            yield self._step("sums", each * asked.sums, asked.sums, self.bought.sums(each, 1))
        if asked.finer:
            noise = self.bought.counts(each)
            yield self._step("quantiles", each * asked.finer, asked.finer, noise, noise.expected_error)

    def _structure(self, share: Fraction, outlined: StrategyOutline) -> Iterator[PlannedStep]:
        price = self.budget * share
        distances = outlined.distance_share if outlined.choices else Fraction(1)
        if choices := outlined.choices:
            part = price * (1 - (distances if outlined.errors else 0))
            yield self._step("structure", part, choices, self.bought.choices(part / choices))
        if errors := outlined.errors:
            noise = self.bought.distances(price * distances / errors)
            yield self._step("structure", price * distances, errors, noise, noise.expected_error)

    def _exam(self, share: Fraction, number: int, classified: int) -> Iterator[PlannedStep]:
        if number:
            price = self.budget * share
            each = price * GUESSES_SHARE
            noise = self.bought.distances(price - each * classified, number)
            step = self._step("exam", price, number, noise, noise.expected_error, charges=1)
            guesses = [(self.bought.counts(each).event, 1) for _ in range(classified)]
            yield replace(step, events=(*step.events, *guesses))

    def _step(
        self,
        name: str,
        price: Fraction,
        questions: int,
        bought: Calibrated[RecordedEvent],
        error: float | None = None,
        charges: int | None = None,
    ) -> PlannedStep:
        """A step at a price for all its questions.

        Args:
            error: expected absolute error of one number; None if it has no meaning.
        """
        share = float(price / self.budget)
        return PlannedStep(
            step=name,
            share=share,
            questions=questions,
            mechanism=bought.mechanism,
            sensitivity=bought.moved,
            scale=bought.scale,
            cost=float(price),
            expected_error=error,
            events=((bought.event, questions if charges is None else charges),),
        )

    @property
    def bought(self) -> Calibration:
        return Calibration(self.near, self.measure, noise_named(self.noise))
