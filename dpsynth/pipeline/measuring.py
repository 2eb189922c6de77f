"""The steps that ask the private table: domains, one-way marginals, structure, marginals.

Counts are separated by provenance: only ``own`` and ``joint`` were paid for, or are exact totals. Their types
say so, and only they can be written as the release's measurements.

Invariant: a step takes a ``Stage`` and gives the next one, or answers. Rows are read only here, by
``open_door``, after the reservation, and stay behind the door. Which engine loads them, this process or
workers, changes no question and no answer. An engine that can't be used is refused before anything is
reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.bundle.publication import TierAnswers
from dpsynth.columns.column import domain_of
from dpsynth.columns.domain import Clique, Compression, Domain
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import (
    CombinedCounts,
    ExactTotal,
    Measurement,
    Observation,
    OwnAnswer,
    PublicCounts,
    PublicMarginals,
    UnitsByRows,
    WeightedCounts,
    estimated_total,
)
from dpsynth.columns.rules import grids_of, refuse_unobeyed, told_apart, zeros_of
from dpsynth.columns.sums import Centring, FinerCounts, MeasuredSums
from dpsynth.config import CompiledSpec
from dpsynth.config.files.opening import unheard
from dpsynth.curator import Curator, Room, Terms, UnboundedCurator, UnboundedEngine, UnitSample, load_rows
from dpsynth.errors import BudgetRefused, ConfigError
from dpsynth.model import Denoised, Expansion, estimate, posteriors, public_counts, zeros_within
from dpsynth.model.denoising import margins
from dpsynth.model.estimation import Fit
from dpsynth.model.junction_tree import Zeros
from dpsynth.model.least_squares import LeastSquares
from dpsynth.model.measurement_file import Answered
from dpsynth.model.rare_values import Numbers, rare_groups
from dpsynth.model.reused_answers import MOST_BEFORE, ReusedAnswers, discounted, within
from dpsynth.pipeline.earlier_releases import Reused, answers_of, weighted_evidence
from dpsynth.pipeline.inputs import Inputs, cells_of
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.pipeline.weighing import OF_A_PAIR, OF_PAIRS, OF_SURPLUS, OF_WEIGHTS, WeighedDoor, weighed
from dpsynth.plan.plan import Found, Plan, make_plan
from dpsynth.statistics.cut_off import CutOff, Kept
from dpsynth.strategy.discovery import contribution_bound, discover, noise_per_row
from dpsynth.strategy.independent import Independent
from dpsynth.strategy.public_table import with_public_relations
from dpsynth.strategy.strategy import RULED_CELLS, Problem, Selection
from dpsynth.wing import Point

Answer = TypeVar("Answer", bound=OwnAnswer)

MOST_PLACES = 64
"""Places of the column that rows are ordered by, up to which none of them are merged."""


@dataclass(frozen=True, eq=False)
class EarlierTiers:
    """The answers of earlier tiers, which are answers of this release like its later ones.

    Attributes:
        joint: the joint marginals of each tier that measured some, over its own groups.
    """

    singles: tuple[Measurement, ...] = ()
    joint: tuple[TierAnswers, ...] = ()

    def after(self, audience: str, measured: Measured) -> EarlierTiers:
        """These answers and those of one more tier."""
        own = measured.answers
        noisy = [m for m in (*own.first, *own.again) if isinstance(m, Measurement)]
        singles = (*self.singles, *noisy)
        if not measured.joint:
            return EarlierTiers(singles, self.joint)
        joint = TierAnswers(audience, tuple(measured.joint), measured.expansion.compression)
        return EarlierTiers(singles, (*self.joint, joint))

    def evidence(self, domain: Domain) -> ReusedAnswers:
        """The joint answers as evidence about the same rows."""
        return ReusedAnswers(domain, tuple(tier.answered for tier in self.joint))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns that earlier tiers have measured together."""
        return tuple(dict.fromkeys(m.clique for tier in self.joint for m in tier.answers))


NO_TIERS = EarlierTiers()


@dataclass(frozen=True, eq=False)
class Answers:
    """Counts by provenance, over all values of the columns.

    Attributes:
        first: the total and the one-way marginals of the first measurement.
        again: one-way marginals that the strategy measured once more.
        combined: one-way counts from answers about several columns, where no column was measured alone.
        units: the numbers of units by their rows, of the first tier; None if they were not asked for.
    """

    first: tuple[OwnAnswer, ...]
    public_one_way: tuple[PublicCounts, ...]
    public_joint: tuple[PublicCounts, ...]
    evidence: ReusedAnswers
    reused: Reused | None
    again: tuple[Measurement, ...] = ()
    sums: tuple[MeasuredSums, ...] = ()
    finer: tuple[FinerCounts, ...] = ()
    combined: tuple[CombinedCounts, ...] = ()
    tiers: EarlierTiers = NO_TIERS
    units: UnitsByRows | None = None

    @property
    def own(self) -> tuple[OwnAnswer, ...]:
        """The total and the one-way marginals of the release itself."""
        return (*self.tiers.singles, *self.first, *self.again)

    @property
    def of_this_tier(self) -> tuple[Observation, ...]:
        """The total and all one-way counts, without evidence and without the answers of earlier tiers."""
        return (*self.first, *self.public_one_way, *self.combined, *self.again)

    @property
    def one_way(self) -> tuple[Observation, ...]:
        """The total and all one-way counts, without evidence."""
        return (*self.tiers.singles, *self.of_this_tier)

    @property
    def rows(self) -> float:
        """The number of rows by the first answers: exact where it is public, otherwise estimated."""
        return estimated_total((*self.tiers.singles, *self.first))

    def cut_off(self, near: Neighbours) -> CutOff | None:
        """The rows that the contribution bound of a unit cuts off; None if it was not asked."""
        return None if self.units is None else CutOff(self.units, near, Kept.of(self.own))


@dataclass(frozen=True, eq=False)
class History:
    """Answers about rows that follow each other.

    Attributes:
        links: each column with that of the row before, or of a first row, over groups, values, or kinds.
        lengths: float64[contribution bound], the number of persons with 1, 2, ... rows.
        rows: the number of rows, by these too.
        axes: the parts and the kinds of steps of an answer, as JSON values.
    """

    links: tuple[Measurement, ...]
    lengths: NDArray[np.float64]
    rows: float
    axes: Mapping[Clique, Mapping[str, object]] = field(default_factory=dict)

    @property
    def described(self) -> tuple[tuple[Measurement, Mapping[str, object]], ...]:
        """Each answer, with its axes where they are steps."""
        return tuple((m, self.axes.get(m.clique, {})) for m in self.links)


LINKS: Point[Callable[[CompiledSpec, Stage, Answers, Curator | WeighedDoor, Expansion], History]] = Point(
    "links", "histories"
)
"""Asks about some columns and the row before."""


@dataclass(frozen=True, eq=False)
class Measured:
    """All answers of a release, after its last question.

    Attributes:
        expansion: the map between values and the groups that were measured; it has all one-way counts.
        weights: the same map with one-way counts by weights, which the model is fitted to; None where it is
            fitted to counts of rows.
        counted: pairs that were counted as rows beside a strategy that was asked by weights.
        by_weights: the number of persons and the single columns, by weights; as in ``weights``.
        surplus: the single columns by surplus.
        history: what was asked about rows that follow each other; None where none does.
        zeros: cells that no row has by the rules, over groups.
    """

    answers: Answers
    expansion: Expansion
    selection: Selection
    weights: Expansion | None = None
    counted: tuple[Measurement, ...] = ()
    by_weights: tuple[WeightedCounts, ...] = ()
    surplus: tuple[WeightedCounts, ...] = ()
    history: History | None = None
    zeros: Zeros = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Answers, expansion: Expansion, selection: Selection, zeros: Zeros) -> Measured:
        """All answers, with the single columns that the strategy measured once more."""
        again = selection.singles
        whole = replace(expansion, singles=(*expansion.singles, *again))
        return cls(replace(answers, again=(*answers.again, *again)), whole, selection, zeros=zeros)

    @property
    def persons(self) -> float:
        """The number of persons who have rows, by weights; 0 where it was not asked for."""
        asked = (w for w in self.by_weights if w.clique == ())
        return next((float(w.drawn.values) / w.whole for w in asked if w.drawn is not None), 0.0)

    @property
    def rows(self) -> float:
        """The number of rows, by all answers. It is no smaller than that of persons, where the noise is."""
        if self.history is not None:
            return self.history.rows
        return max(estimated_total(self.answers.own), self.persons)

    @property
    def joint(self) -> list[Measurement]:
        """Answers of the release about several columns together, over groups."""
        return [*(m for m in self.selection.answers if m is not None), *self.counted]

    @property
    def fitted_to(self) -> list[Observation]:
        """Counts of several columns together that the model rests on, over groups."""
        return [*self.selection.held, *self.answers.public_joint, *self.selection.earlier]

    @property
    def spread(self) -> Expansion:
        """The map from groups to values, by all one-way counts, of rows and by weights."""
        more = () if self.weights is None else self.weights.singles
        return replace(self.expansion, singles=(*self.expansion.singles, *more))

    def direct(self, public: PublicMarginals) -> LeastSquares:
        """The counts over values rather than groups, by the answers alone, reconciled."""
        answers, domain = self.answers, self.expansion.domain
        one_way, joint = answers.one_way, answers.public_joint
        if public.rows is None:
            # Public shares were made counts by the estimated number of rows, which they don't measure.
            one_way = tuple(m for m in one_way if not public.columns & set(m.clique))
            joint = ()
        counts = (m for m in self.joint if not isinstance(m, WeightedCounts))
        own = replace(self.expansion, singles=one_way).direct(counts)
        return LeastSquares(
            domain, (*own, *joint, *answers.evidence.direct(), *answers.tiers.evidence(domain).direct())
        )

    @cached_property
    def posteriors(self) -> dict[Clique, Denoised]:
        """Posteriors of the cliques that the model is fitted to, over groups."""
        of_one, asked = self.weights or self.expansion, self.fitted_to
        zeros = zeros_within(of_one.coarse, (), self.zeros, RULED_CELLS)
        if self.weights is None:
            return posteriors(asked, estimate(of_one.coarse, of_one.sums, zeros=zeros).model)
        found: dict[Clique, Denoised] = {}
        for clique in dict.fromkeys(m.clique for m in asked):
            # By weights single columns are hardly asked; the answers about other cliques tell of them too.
            counts = (*of_one.sums, *margins(m for m in asked if m.clique != clique))
            about = estimate(of_one.coarse, counts, zeros=zeros).model
            found |= posteriors((m for m in asked if m.clique == clique), about)
        return found


class Workers(Protocol):
    """Several processes that count the private table together."""

    def accept(self, inputs: Inputs) -> None:
        """Check that they can be used.

        Raises:
            ConfigError: they aren't installed, or the table is in this process's memory.
            SourceError: they can't be reached, or may not hold private rows.
        """

    def rows_of(self, inputs: Inputs, run: ReleaseRun, sample: UnitSample | None) -> UnboundedEngine:
        """All rows of the release's slice and sample, coded, before contribution bounding.

        Raises:
            ConfigError, SourceError: the table can't be read, or the workers can't be used.
        """


WORKERS: Point[Workers] = Point("workers", "cluster")


def accept_engine(inputs: Inputs) -> None:
    """Check that the engine can be used; a scheduler that runs already is asked for its workers.

    Raises:
        ConfigError, SourceError: it can't be used.
    """
    if inputs.spec.engine.by_workers:
        WORKERS.needed("engine.dask").accept(inputs)


def rows_of(inputs: Inputs, run: ReleaseRun) -> UnboundedEngine:
    """All rows of the release's slice and sample, coded, before contribution bounding.

    The run ends what is started here.

    Raises:
        ConfigError, SourceError: the table can't be read, or the engine can't be used.
    """
    plan, engine, part = inputs.plan, inputs.spec.engine, run.occasion.part
    sampling = plan.sampling
    sample = None if sampling is None else UnitSample(sampling.threshold, run.key)
    # With a sealed journal every answer is there.
    asks = plan.neighbours.rows_public or not run.journal.sealed
    if engine.by_workers and asks:
        return WORKERS.needed("engine.dask").rows_of(inputs, run, sample)
    batches = cells_of(inputs, run.occasion) if asks else iter(())
    if sample is not None:
        batches = sample.of(batches, plan.neighbours)
    room = Room(engine.memory, run.partial / "private")
    by = inputs.spec.privacy.order_by
    able = {c.name for c in inputs.compiled.columns if c.codec.steps is not None and c.search is None}
    summed = plan.own.columns | ({by} & able)
    rows = load_rows(batches, inputs.compiled.columns, plan.neighbours, run.key, part, summed, room)
    return replace(rows, order=by)


@dataclass(frozen=True, eq=False)
class Unbounded:
    """The door before contribution bounding."""

    door: UnboundedCurator


@dataclass(frozen=True, eq=False)
class Stage:
    """The state of a release between two steps that ask.

    Attributes:
        plan: the plan of the remaining steps, with measure and budget of the first plan.
        layout: the table's columns, with the domains found so far.
        units: the noisy numbers of units by their rows; None if they were not asked for.
    """

    curator: Curator
    plan: Plan
    layout: Layout
    tiers: EarlierTiers = NO_TIERS
    total: tuple[OwnAnswer, ...] = ()
    units: UnitsByRows | None = None

    @classmethod
    def of(cls, curator: Curator, plan: Plan, layout: Layout, units: UnitsByRows | None = None) -> Stage:
        """The stage whose curator keeps what the plan has for the exam, and for later tiers."""
        return cls(curator.keeping(plan.later + plan.exam_price), plan, layout, units=units)

    def after(self, curator: Curator, plan: Plan, layout: Layout) -> Stage:
        return replace(Stage.of(curator, plan, layout, self.units), tiers=self.tiers, total=self.total)

    @property
    def domain(self) -> Domain:
        return domain_of(self.layout.columns)


def earlier_answers(inputs: Inputs, run: ReleaseRun, outputs: Path) -> tuple[Answered, ...]:
    """The answers of the earlier releases that serve as evidence.

    Raises:
        ConfigError: the answers or the public table have changed since the release began.
    """
    if run.public_sha256 != inputs.public_sha256:
        raise ConfigError(
            "This release began with another public table as evidence, or with none, and can't go "
            "on with this one. Put back the file that public_table.path named, or a copy of it: its SHA-256 "
            f"is {run.public_sha256}."
        )
    return answers_of(run.reused, inputs.compiled.columns, outputs)


class OpenDoor(Protocol):
    """A function that reads the private table and returns its door; see ``open_door``."""

    def __call__(self, inputs: Inputs, run: ReleaseRun) -> Stage | Unbounded:
        """The door of a release."""


@unheard()
def open_door(
    inputs: Inputs,
    run: ReleaseRun,
    curator: type[Curator] = Curator,
    unbounded: type[UnboundedCurator] = UnboundedCurator,
) -> Stage | Unbounded:
    """The door to the private table, which is read here: a curator of rows after contribution bounding.

    If the numbers of rows of persons are asked for, all rows are kept behind a door that answers about these
    only. The classes of the doors may be those of a test, which records the questions.
    """
    plan, rows = inputs.plan, rows_of(inputs, run)
    budget, delta = plan.whole.budget, plan.selection_delta
    terms = Terms(plan.neighbours, plan.measure, budget, plan.noise, delta, kept=plan.later)
    if inputs.compiled.ranges_of_rows:
        return Unbounded(unbounded(rows, terms, run.journal, run.key))
    door = curator(rows.bounded(plan.neighbours.max_rows, run.key), terms, run.journal)
    return Stage.of(door, plan, inputs.compiled.layout)


def bound_contributions(inputs: Inputs, unbounded: Unbounded) -> Stage:
    """The stage after contribution bounding, with the noisy numbers of persons by their rows.

    If the bound is to be found, it is the one that balances lost rows and noise by these numbers.
    """
    plan, door, layout = inputs.plan, unbounded.door, inputs.compiled.layout
    most = plan.neighbours.max_rows
    units = door.rows_per_unit(inputs.compiled.ranges_of_rows, plan.bound_price or plan.cutoff_price)
    if not plan.bound_price:
        return Stage.of(door.bounded(most), plan, layout, units)
    found = contribution_bound(units.up_to(most), noise_per_row(plan, inputs.compiled.domain))
    bounded = replace(plan, neighbours=replace(plan.neighbours, max_rows=found))
    return Stage.of(door.bounded(found), _plan_again(inputs, bounded, layout), layout, units)


def count_rows(inputs: Inputs, stage: Stage) -> Stage:
    """The stage with the number of rows: noisy, at its planned price, or as it is public.

    It comes before searches and columns, so that a table that seems to be empty has cost no more than this.
    Only the rows of persons come before, as they are counted before they are bounded: without a bound one
    person could move the number by as many rows as a person may have at most.

    Raises:
        BudgetRefused: interruptions have used up the budget.
    """
    known = inputs.compiled.public_marginals.rows
    total = stage.curator.count(stage.plan.total_price) if known is None else ExactTotal.of(known)
    return replace(stage, total=answered([total]))


def answered(answers: Sequence[Answer | None]) -> tuple[Answer, ...]:
    """Answers that are all there."""
    found = tuple(answer for answer in answers if answer is not None)
    if len(found) < len(answers):
        raise BudgetRefused(
            "Interruptions used up the budget of this release before its columns were measured."
        )
    return found


def find_domains(inputs: Inputs, stage: Stage) -> Stage:
    """The stage with the domains that the plan's searches find.

    Raises:
        DpsynthError: no row of these domains was found that obeys the constraints.
    """
    columns, searches = inputs.compiled.columns, stage.plan.searches
    layout = inputs.compiled.layout.found(discover(stage.curator, columns, searches))
    refuse_unobeyed(inputs.compiled.rules, layout)
    return stage.after(stage.curator.coded(layout.columns), _plan_again(inputs, stage.plan, layout), layout)


def _plan_again(inputs: Inputs, plan: Plan, layout: Layout) -> Plan:
    return make_plan(inputs.compiled, inputs.strategy, Found(plan, layout.columns))


def next_tier(inputs: Inputs, stage: Stage, measured: Measured) -> Stage:
    """The stage of the next tier, which has the answers of this one, all that is kept for it, and its total.

    What this tier has left over, by rounding, is left to the next.
    """
    tiers, layout = stage.tiers.after(stage.plan.tier.audience, measured), stage.layout
    plan = make_plan(inputs.compiled, inputs.strategy, Found(stage.plan, layout.columns, next_tier=True))
    return count_rows(inputs, replace(stage.after(stage.curator, plan, layout), tiers=tiers))


def measure_one_way(inputs: Inputs, stage: Stage, run: ReleaseRun, earlier: tuple[Answered, ...]) -> Answers:
    """The total and the marginal of every column, with public counts and evidence."""
    public, table = inputs.compiled.public_marginals, inputs.public_table
    first, tiers = (*stage.total, *_one_way(stage)), stage.tiers
    own = (*tiers.singles, *first)
    one_way, joint = public_counts(public, estimated_total(own))
    columns = stage.layout.columns
    counts = None if table is None else table.answered(columns)
    evidence, reused = weighted_evidence(run.reused, earlier, columns, (*own, *one_way), counts)
    # Those of a sample would tell of the sample.
    units = stage.units if stage.plan.sampling is None else None
    return Answers(first, one_way, joint, evidence, reused, tiers=tiers, units=units)


def _one_way(stage: Stage) -> tuple[OwnAnswer, ...]:
    """The marginal of every column, without those that are public; the total is paid for already."""
    curator, plan = stage.curator, stage.plan
    if plan.last_measured.step == "one_way":
        allowance = curator.remaining - plan.own.price
    else:
        allowance = plan.budget * plan.shares.one_way - plan.total_price
    return answered(curator.marginals(list(plan.one_way), allowance, list(plan.one_way.values())))


def measure_statistics(inputs: Inputs, stage: Stage, answers: Answers) -> Answers:
    """The answers with sums and finer counts, whose offsets and pieces follow from noisy single columns."""
    columns = {column.name: column for column in stage.layout.columns}
    counts = {m.clique: m for m in answers.one_way}
    sums: list[MeasuredSums] = []
    finer: list[FinerCounts] = []
    rest = sum((asked.price for asked in stage.plan.own.asked), Fraction(0))
    for asked in stage.plan.own.asked:
        # Interruptions may have left less than all of them were to cost.
        price = asked.price * min(stage.curator.remaining / rest, Fraction(1))
        of, by, rest = asked.column, asked.by, rest - asked.price
        chosen = stage.plan.question_of(asked, columns[of], counts[of,], stage.domain.cells(by))
        if isinstance(chosen, Centring):
            sums.append(stage.curator.sums(of, by, chosen, price))
        else:
            finer.append(stage.curator.finer_counts(of, by, chosen, price))
    return replace(answers, sums=tuple(sums), finer=tuple(finer))


def compress(inputs: Inputs, stage: Stage, answers: Answers) -> Expansion:
    """Domain compression: rare values of a column that count as one with other columns.

    Columns of a requested statistic with several columns, or of a joint public marginal, keep all values. If
    only single columns are measured, no values are merged. Groups stand beside values in the final model, and
    may take half of its cells. Ends of a column that a constraint names join no other group, and a group ends
    where a rule tells two kinds of values: otherwise a rule holds for a part of the group only, and its cells
    are no zeros of the model.
    """
    plan, columns = stage.plan, stage.layout.columns
    paired = {c for clique in (*plan.wanted, *(m.clique for m in answers.public_joint)) for c in clique}
    # Rows follow each other by values, as long as these are not too many.
    by, rules = inputs.spec.privacy.order_by, inputs.compiled.rules
    paired.update([by] if by and stage.domain.sizes[by] <= MOST_PLACES else [])
    earlier = discounted(answers.evidence.columns, answers.one_way)
    values = {c.name: len(c.codec.labels) for c in columns}
    numbers = {c.name: len(c.codec.labels) for c in columns if c.codec.continuous}
    beside = (*answers.tiers.singles, *earlier)
    singles = [m for m in answers.of_this_tier if paired.isdisjoint(m.clique)]
    single = {c.name for c in columns if c.name in numbers and not np.any(c.codec.half_widths)}
    found = Numbers(numbers, single, max(answers.rows, 1.0))
    compression = rare_groups(
        stage.domain, singles, plan.merged_below, beside, values, found, plan.max_cells // 2
    )
    compression = told_apart(compression, grids_of(rules, stage.layout))
    return Expansion(stage.domain, compression, (*answers.one_way, *earlier), numbers, values)


def select(inputs: Inputs, stage: Stage, answers: Answers, expansion: Expansion) -> Measured:
    """The strategy's choices, measured: marginals over groups, or over values in columns without groups."""
    persons: tuple[WeightedCounts, ...] = ()
    door: WeighedDoor | None = None
    if stage.plan.weighs:
        most, columns = stage.plan.neighbours.max_rows, len(stage.domain.columns)
        persons, door = weighed(stage.curator, most, answers.rows, columns)
    history = None
    if stage.plan.shares.history:
        ask = LINKS.needed("privacy.unit.history")
        history = ask(inputs.compiled, stage, answers, door or stage.curator, expansion)
    if door is not None:
        found = _by_weights(inputs, stage, answers, expansion, persons, door)
    else:
        found = replace(_by_rows(inputs, stage, answers, expansion), by_weights=persons)
    return replace(found, history=history)


def _by_rows(inputs: Inputs, stage: Stage, answers: Answers, expansion: Expansion) -> Measured:
    compression, capacity = expansion.compression, stage.plan.max_cells - expansion.cells
    independent = estimate(expansion.coarse, expansion.sums)
    problem = _problem(inputs, stage, answers, expansion, independent)
    public = answers.evidence.public_joint(expansion, independent.model)
    door = stage.curator.grouped(compression) if compression.groups else stage.curator
    problem, believed = with_public_relations(door, problem, independent, public)
    strategy = inputs.strategy if stage.plan.outlined.cliques else Independent()
    selection = _columns_apart(strategy.select(door, problem), compression)
    measured = selection.held
    held = [m.clique for m in (*measured, *answers.public_joint)]
    earlier = within(problem.domain, held, problem.earlier[len(answers.public_joint) :], capacity)
    earlier = (*earlier, *_measured_again(answers, expansion, independent, held))
    cliques = tuple(m.clique for m in believed if any(m is kept for kept in earlier))
    selection = replace(selection, earlier=discounted(earlier, measured), public=cliques)
    return Measured.of(answers, expansion, selection, problem.zeros)


def _columns_apart(selection: Selection, compression: Compression) -> Selection:
    """The selection with its answers about one column alone, over values, among ``singles``."""
    every = [
        (len(c) == 1 and c[0] not in compression.groups, c, m)
        for c, m in zip(selection.cliques, selection.answers, strict=True)
    ]
    alone = (m for apart, _, m in every if apart and m is not None)
    cliques, answers = tuple(c for a, c, _ in every if not a), tuple(m for a, _, m in every if not a)
    return replace(selection, cliques=cliques, answers=answers, singles=(*selection.singles, *alone))


def _by_weights(
    inputs: Inputs,
    stage: Stage,
    answers: Answers,
    expansion: Expansion,
    persons: tuple[WeightedCounts, ...],
    door: WeighedDoor,
) -> Measured:
    plan, curator, compression = stage.plan, stage.curator, expansion.compression
    rest, columns = curator.remaining, [(c,) for c in expansion.domain.columns]
    parts = [plan.one_way.get(c, Fraction(1)) for c in columns]
    by_weights = (*persons, *_weighted(door.marginals(columns, rest * OF_WEIGHTS, parts)))
    surplus = door.surplus(list(plan.one_way), rest * OF_SURPLUS, list(plan.one_way.values()))
    pairs = curator.grouped(compression) if compression.groups else curator
    published = {frozenset(request.columns) for request in inputs.spec.publish.statistics}
    asked = [pair for pair in plan.wanted if frozenset(pair) in published]
    price = rest * min(OF_A_PAIR * len(asked), OF_PAIRS)
    counted = tuple(m for m in pairs.marginals(asked, price) if m is not None)
    weights = replace(expansion, singles=by_weights)
    independent = estimate(weights.coarse, weights.sums)
    wanted = tuple(pair for pair in plan.wanted if pair not in asked)
    problem = replace(_problem(inputs, stage, answers, weights, independent), wanted=wanted)
    selection = inputs.strategy.select(door.grouped(compression), problem)
    by_weights = (*by_weights, *_weighted(selection.singles))
    weights = replace(weights, singles=by_weights)
    measured = Measured.of(answers, expansion, replace(selection, singles=()), problem.zeros)
    return replace(measured, weights=weights, counted=counted, by_weights=by_weights, surplus=surplus)


def _weighted(answers: Sequence[Measurement | None]) -> tuple[WeightedCounts, ...]:
    return tuple(m for m in answered(answers) if isinstance(m, WeightedCounts))


def _measured_again(
    answers: Answers, expansion: Expansion, independent: Fit, held: Sequence[Clique]
) -> tuple[Observation, ...]:
    """The answers of earlier tiers about columns that the model holds together by answers of this one.

    They make these answers more precise. Others, whose noise is larger, would take the model's capacity, or
    stand in the way of what this tier finds: a strategy doesn't see them.
    """
    again = answers.tiers.evidence(expansion.domain).joint(expansion, independent.model, MOST_BEFORE * 2)
    return tuple(m for m in again if any(set(m.clique) <= set(clique) for clique in held))


def _problem(
    inputs: Inputs, stage: Stage, answers: Answers, expansion: Expansion, independent: Fit
) -> Problem:
    plan, capacity = stage.plan, stage.plan.max_cells - expansion.cells
    asks = plan.outlined.choices + plan.outlined.errors > 0
    problem = Problem(
        domain=expansion.coarse,
        values=expansion.domain,
        singles=expansion.sums,
        start=independent,
        workload=inputs.compiled.workload,
        wanted=plan.wanted,
        structure=plan.budget * plan.shares.structure if asks else Fraction(0),
        max_cells=capacity,
        earlier=(*answers.public_joint, *answers.evidence.joint(expansion, independent.model, capacity)),
        zeros=zeros_of(grids_of(inputs.compiled.rules, stage.layout), expansion.compression.groups),
    )
    told = problem.earlier or problem.zeros
    return replace(problem, start=problem.refit((), independent)) if told else problem
