"""The spine: the steps of a release, in order, once.

    config -> spec -> plan -> reservation -> curator(private table, budget, journal)
                                                 |  noisy answers only
    most rows of a person, bounds, bins and values, where these are sought; and the plan again
                                                 |
    one-way marginals -> merged values -> structure, marginals  SELECT, MEASURE
                                                 |
    model -> synthetic table, statistics -> public bundle       GENERATE: post-processing

The same sequence runs plainly and as Prefect tasks: ``run`` is handed the function that
runs a step.

Invariant: the table is read after ``dpsynth.lifecycle.release_run`` has reserved the whole budget, and
nothing of it leaves but the curator's answers. Before, it is only looked at for whether it can be read
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dpsynth.accounting.accountants import compose
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.rounding import float_up
from dpsynth.config import Spec
from dpsynth.curator import Contributions, Curator, Journal
from dpsynth.discovery import discover
from dpsynth.discovery.contribution_bound import most_rows, noise_per_row
from dpsynth.domain.column import domain_of
from dpsynth.domain.domain import Domain
from dpsynth.domain.layout import Layout
from dpsynth.domain.measurement import Measurement
from dpsynth.domain.public_marginals import Known
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError
from dpsynth.evidence.discount import doubted
from dpsynth.evidence.drift import pooled_counts
from dpsynth.evidence.earlier_releases import answers_of, basis_of, weighed
from dpsynth.evidence.evidence import Evidence, within
from dpsynth.evidence.public_table import PublicUse
from dpsynth.lifecycle.inputs import accept_source, check_room, open_door, read_public
from dpsynth.lifecycle.outputs import publication_of, publish
from dpsynth.lifecycle.progress import Advance
from dpsynth.lifecycle.release_run import Tell, begin, settle, silently
from dpsynth.lifecycle.result import Release
from dpsynth.lifecycle.steps import RunStep, guarded, plainly
from dpsynth.model import (
    Expansion,
    Fit,
    LeastSquares,
    MarkovRandomField,
    agreeing,
    agreeing_rows,
    estimate,
    estimated_total,
    known_answers,
    refits,
    sample,
    zeros_within,
)
from dpsynth.plan.occasion import Occasion
from dpsynth.plan.plan import Found, Plan, make_plan
from dpsynth.plan.steps import one_way_weights
from dpsynth.publish import StatisticTable, compute_statistics
from dpsynth.rules import Rules, grids_of, obeying, refuse_unobeyed, zeros_of
from dpsynth.structure import Strategy, strategy_of
from dpsynth.structure.compression import rare_groups
from dpsynth.structure.public_relations import trusted
from dpsynth.structure.strategy import Problem, Selection

T = TypeVar("T")

REPLICATES = 12


def run(
    spec: Spec,
    *,
    outputs: str | Path = "outputs",
    resume: str | None = None,
    period: str | None = None,
    tell: Tell = silently,
    run_step: RunStep = plainly,
) -> Release:
    """Run a release from its spec to its bundle.

    Args:
        spec: the checked config.
        outputs: folder under which ``<release>/<release id>`` appears.
        resume: id of an interrupted release to finish.
        period: label of the slice of the table to release, if the config has periods; left out: the
            last one that has ended.
        tell: is told in public sentences what was found: a release that goes on, or was finished.
        run_step: how to run a step; plainly, or as a task of an orchestrator.

    Raises:
        ConfigError, BudgetRefused, SourceError: before anything is charged.
        Interrupted: stopped by a signal; ``resume`` finishes it.
        StepFailed: an unforeseen error, its details withheld.
    """

    def step(name: str, action: Callable[[Advance], T]) -> T:
        return run_step(name, lambda: guarded(name, action))

    strategy = strategy_of(spec.structure.method, spec.structure.cliques or ())
    rules = spec.rules()

    def accept(occasion: Occasion) -> None:
        accept_source(spec, plan, occasion)

    plan = step("plan", lambda _: make_plan(spec, strategy))
    known = plan.known
    check_room(plan, domain_of(spec.table_columns()))
    public = None
    if spec.public is not None:
        public = step("read the public table", lambda _: read_public(spec, spec.table_columns()))
    digest = None if public is None else public.sha256
    work = step(
        "reserve budget",
        lambda _: begin(spec, plan, Path(outputs), resume, period, tell, digest, accept),
    )
    with work:
        if work.public != digest:
            raise ConfigError(
                "This release began with another public table as evidence, or with none, and can't go "
                "on with this one. Put back the file that public.path named, or a copy of it: its SHA-256 is "
                f"{work.public}."
            )
        rng = np.random.default_rng(work.seed)
        told = step(
            "read earlier releases", lambda _: answers_of(work.reused, spec.table_columns(), Path(outputs))
        )
        door = step("open the table", lambda _: open_door(spec, plan, work))
        if isinstance(door, Contributions):
            unbounded, most = door, plan
            plan, curator = step("find most rows", lambda _: find_most_rows(spec, strategy, unbounded, most))
        else:
            curator = door
        layout = spec.layout()
        if plan.searches:
            layout = step("find places", lambda _: find_places(spec, curator, plan))
            curator, plan = curator.coded(layout.columns), plan_again(spec, strategy, plan, layout)
        domain = domain_of(layout.columns)
        singles = step("measure single columns", lambda _: measure_singles(curator, domain, plan, known))
        counts = None if public is None else public.answered(layout.columns)
        stated, stated_joint = known_answers(known, estimated_total(singles))
        told_singly = (*singles, *stated)
        evidence, reused = weighed(work.reused, told, layout.columns, told_singly, counts)
        use = PublicUse.of(public, evidence, estimated_total(singles))
        expansion = step(
            "merge rare values",
            lambda _: merge_rare(plan, layout, told_singly, stated_joint, evidence),
        )
        selection = step(
            "choose and measure marginals",
            lambda _: select(strategy, curator, expansion, stated_joint, evidence, spec, plan),
        )
        answers = tuple(m for m in selection.answers if m is not None)
        singles, told_singly = (*singles, *selection.singles), (*told_singly, *selection.singles)
        expansion = replace(expansion, singles=(*expansion.singles, *selection.singles))
        layout = sloped(layout, singles)
        guarantee = step("compose the guarantee", lambda _: composed(plan, work.journal))
        given = (*answers, *stated_joint)
        fitted = step(
            "fit the model",
            lambda advance: fit(expansion, given, selection, layout, rules, plan.max_cells, advance),
        )
        model = step("spread groups over values", lambda _: agreeing(expansion.model(fitted.model), known))
        table = step("sample rows", lambda _: sampled(spec, layout, rules, model, singles, known, rng))
        statistics = step(
            "compute statistics",
            lambda _: tabulated(
                spec,
                layout,
                model,
                expansion,
                fitted,
                told_singly,
                stated_joint,
                selection,
                evidence,
                known,
                rng,
            ),
        )
        if not work.published:
            publication = publication_of(
                spec,
                layout,
                plan,
                work,
                table,
                expansion,
                singles,
                selection,
                reused,
                use,
                known,
                model,
                statistics,
                guarantee,
            )
            step("publish the bundle", lambda _: publish(work, publication))
        step("settle the ledger", lambda _: settle(work, plan, guarantee))
    titles = {t.title: t for t in statistics}
    return Release(work.release_id, work.final, guarantee, table, titles)


def find_most_rows(spec: Spec, strategy: Strategy, door: Contributions, plan: Plan) -> tuple[Plan, Curator]:
    """The plan from here on, and a curator, with as many rows of a person as are worth their noise."""
    numbers, _ = door.rows_per_unit(plan.neighbours.max_rows, plan.rows_price)
    most = most_rows(numbers, noise_per_row(plan, domain_of(spec.table_columns())))
    bounded = replace(plan, neighbours=replace(plan.neighbours, max_rows=most))
    return plan_again(spec, strategy, bounded, spec.layout()), door.bounded(most)


def find_places(spec: Spec, curator: Curator, plan: Plan) -> Layout:
    """The table's columns with the places that the plan's searches find.

    Raises:
        DpsynthError: no row of them was found that obeys the constraints.
    """
    layout = spec.layout().found(discover(curator, spec.table_columns(), plan.searches))
    refuse_unobeyed(spec.rules(), layout)
    return layout


def plan_again(spec: Spec, strategy: Strategy, plan: Plan, layout: Layout) -> Plan:
    """The plan of the steps to come, once more is known; measure and budget stay."""
    return make_plan(spec, strategy, Found(plan, layout.columns))


def measure_singles(curator: Curator, domain: Domain, plan: Plan, known: Known) -> tuple[Measurement, ...]:
    """The total and the marginal of every column, as far as they are not known."""
    weights = one_way_weights(domain, plan.neighbours, known)
    last = plan.steps[-1].step == "one_way"
    allowance = curator.remaining if last else plan.budget * plan.shares.one_way
    public: list[Measurement | None] = []
    if known.rows is not None:
        public = [Measurement((), np.array(known.rows), "none", 0.0)]
    elif plan.neighbours.rows_public:
        public = [curator.count(allowance)]
    answers = [*public, *curator.marginals(list(weights), allowance, list(weights.values()))]
    measured = tuple(m for m in answers if m is not None)
    if len(measured) < len(answers):
        raise BudgetRefused(
            "Interruptions used up the budget of this release before its columns were measured."
        )
    return measured


def merge_rare(
    plan: Plan,
    layout: Layout,
    singles: tuple[Measurement, ...],
    stated: tuple[Measurement, ...],
    evidence: Evidence,
) -> Expansion:
    """Which values count as one with other columns, and how they are told apart again.

    Columns that a requested statistic pairs with another, or that are known together, keep all of their
    values. Where
    nothing is measured but single columns, there is nothing to merge for. Groups stand beside
    values in the model that comes out: they may take half of its cells.
    """
    paired = {column for clique in (*plan.wanted, *(m.clique for m in stated)) for column in clique}
    domain, earlier = domain_of(layout.columns), doubted(evidence.columns, singles)
    found = rare_groups(domain, singles, plan.merged_below, paired, earlier)
    numbers = {c.name: len(c.codec.labels) for c in layout.columns if c.codec.continuous}
    return Expansion(domain, found, (*singles, *earlier), numbers).within(plan.max_cells // 2)


def select(
    strategy: Strategy,
    curator: Curator,
    expansion: Expansion,
    stated: tuple[Measurement, ...],
    evidence: Evidence,
    spec: Spec,
    plan: Plan,
) -> Selection:
    """What the strategy measures: marginals over groups, where values were merged."""
    grouping, room = expansion.grouping, plan.max_cells - expansion.cells
    independent = estimate(expansion.coarse, expansion.sums)
    asks = plan.outlined.choices + plan.outlined.errors > 0
    problem = Problem(
        domain=expansion.coarse,
        values=expansion.domain,
        singles=expansion.sums,
        start=independent,
        workload=spec.workload(),
        wanted=plan.wanted,
        structure=plan.budget * plan.shares.structure if asks else Fraction(0),
        max_cells=room,
        earlier=(*stated, *evidence.joint(expansion, independent.model, room)),
    )
    if problem.earlier:
        problem = replace(problem, start=problem.refit((), independent))
    door = curator.grouped(grouping) if grouping.groups else curator
    public = evidence.public_joint(expansion, independent.model)
    problem, told = trusted(door, problem, independent, public)
    selection = strategy.select(door, problem)
    answers = [m for m in selection.answers if m is not None]
    held = [m.clique for m in (*answers, *stated)]
    earlier = within(problem.domain, held, problem.earlier[len(stated) :], room)
    believed = tuple(m.clique for m in told if any(m is kept for kept in earlier))
    return replace(selection, earlier=doubted(earlier, answers), public=believed)


def composed(plan: Plan, journal: Journal) -> Guarantee:
    """The guarantee that the journal's events add up to, checked against the plan."""
    guarantee = compose((e.event for e in journal.entries), plan.measure, plan.delta, plan.neighbours)
    if guarantee.epsilon > float_up(plan.epsilon) or guarantee.delta > float(plan.spent_delta):
        raise DpsynthError(
            f"The journal {journal.path} adds up to epsilon {guarantee.epsilon:g}, more than the "
            f"{float(plan.epsilon):g} planned. Nothing is published; please report this."
        )
    return guarantee


def fit(
    expansion: Expansion,
    answers: Sequence[Measurement],
    selection: Selection,
    layout: Layout,
    rules: Rules,
    max_cells: int,
    advance: Advance,
) -> Fit:
    """Fit the model of groups to all noisy marginals, from where the strategy's own fit ended.

    Cells that constraints shut are zeros of it, as far as it has room for them; rows are drawn again for
    the others.
    """
    limit, known = 1000, [*expansion.sums, *answers, *selection.earlier]
    shut = zeros_of(grids_of(rules, layout), expansion.grouping.groups)
    room = max_cells - expansion.cells
    return estimate(
        expansion.coarse,
        known,
        prior_rows=selection.prior * estimated_total(known),
        max_iterations=limit,
        zeros=zeros_within(expansion.coarse, [m.clique for m in known], shut, room),
        start=selection.fit,
        progress=lambda done: advance(done, limit),
    )


def sloped(layout: Layout, singles: Sequence[Measurement]) -> Layout:
    """The layout that values are drawn by: inside bins as the counts of single columns suggest."""
    counts = pooled_counts(singles)
    return layout.with_density({column: (values, sqrt(v)) for (column,), (values, v) in counts.items()})


def sampled(
    spec: Spec,
    layout: Layout,
    rules: Rules,
    model: MarkovRandomField,
    singles: Sequence[Measurement],
    known: Known,
    rng: np.random.Generator,
) -> pa.Table:
    """The synthetic table: codes drawn from the model, decoded column by column, every row as the rules say.

    It has as many rows as the private table if their number is public, else as estimated.
    """
    public = [int(m.values) for m in singles if m.noise == "none"]
    same = public[0] if public else round(model.total)
    rows = same if spec.sample.rows == "same" else spec.sample.rows
    if rules.written:
        return obeying(rules, layout, rows, lambda n: sample(model, n, rng), model.marginal, rng)
    return layout.decode(agreeing_rows(model, known, sample(model, rows, rng), rng), rng)


def tabulated(
    spec: Spec,
    layout: Layout,
    model: MarkovRandomField,
    expansion: Expansion,
    fitted: Fit,
    singles: tuple[Measurement, ...],
    stated: tuple[Measurement, ...],
    selection: Selection,
    evidence: Evidence,
    known: Known,
    rng: np.random.Generator,
) -> tuple[StatisticTable, ...]:
    """Statistics with standard errors; refits are made only if one needs them.

    What was answered about other periods has no part in what counts as measured.
    """
    answers = [m for m in selection.answers if m is not None]
    joint: tuple[Measurement, ...] = ()
    if known.rows is None:
        # Their counts were made from the estimated number of rows, of which they tell nothing.
        singles = tuple(m for m in singles if not known.columns & set(m.clique))
    else:
        joint = stated
    about_these = replace(expansion, singles=singles).direct(answers)
    direct = LeastSquares(expansion.domain, (*about_these, *joint, *evidence.direct()))
    requests = spec.publish.statistics
    modelled = any(not direct.covers(r.columns) for r in requests)
    fitted_to = [*answers, *stated, *selection.earlier]
    replicates = refits(fitted, fitted_to, REPLICATES, rng, expansion) if modelled else ()
    return compute_statistics(
        requests, layout.columns, direct, model, replicates, basis=basis_of(evidence), known=known
    )
