"""The spine: the steps of a release, in order, once.

    config -> spec -> plan -> reservation -> curator(private table, budget, journal)
                                                 |  noisy answers only
    one-way marginals -> merged values -> structure, marginals  SELECT, MEASURE
                                                 |
    model -> synthetic table, statistics -> public bundle       GENERATE: post-processing

The same sequence runs plainly and as Prefect tasks: ``run`` is handed the function that
runs a step.

Invariant: the table is opened after ``dpsynth.work`` has reserved the whole budget, and nothing of it
leaves but the curator's answers.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dpsynth.accounting import events
from dpsynth.accounting.accountants import compose
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.rounding import float_up
from dpsynth.curator import Curator, Journal, Terms, load_table, read_batches
from dpsynth.domain.column import domain_of
from dpsynth.domain.domain import Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted, StepFailed
from dpsynth.model import (
    Evidence,
    Expansion,
    Fit,
    LeastSquares,
    MarkovRandomField,
    estimate,
    estimated_total,
    refits,
    sample,
    within,
)
from dpsynth.progress import Advance, showing
from dpsynth.publish import Publication, StatisticTable, commit, compute_statistics, write_public
from dpsynth.publish.earlier_releases import answers_of, weighed
from dpsynth.publish.reused import Reused
from dpsynth.released import Release
from dpsynth.spec import Spec
from dpsynth.spec.plan import Plan, make_plan
from dpsynth.spec.steps import one_way_weights
from dpsynth.structure import Strategy, strategy_of
from dpsynth.structure.rare import rare_groups
from dpsynth.structure.strategy import Problem, Selection
from dpsynth.work import Tell, Work, begin, settle, silently

T = TypeVar("T")

REPLICATES = 12
_FULL = {
    errno.ENOSPC: "the disk that bundles are written to (--out) is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would be larger than this process may write",
}
"""What may stop a step that only writes files of our own, and passes once there is room."""
_PACKAGES = ("dpsynth", "opendp", "numpy", "pyarrow")


class RunStep(Protocol):
    """Runs one named step of a release and returns what it returns."""

    def __call__(self, name: str, action: Callable[[], T]) -> T:
        """Run ``action`` under a public name."""
        ...


def guarded(name: str, action: Callable[[Advance], T]) -> T:
    """Run a step so that only errors of our own get out, and none that may quote a cell.

    Details of any other error are written to a file of mode 0600 if DPSYNTH_DEBUG is set.
    """
    try:
        with showing(name) as advance:
            return action(advance)
    except DpsynthError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        failure: BaseException = StepFailed.of(
            name, error, _details() if os.environ.get("DPSYNTH_DEBUG") else None
        )
        if isinstance(error, OSError) and error.errno in _FULL:
            failure = Interrupted(f"Step '{name}' stopped: {_FULL[error.errno]}.")
    except BaseException:
        # A signal; or a panic in a library, whose text may quote a cell too.
        failure = KeyboardInterrupt()
    raise failure


def _details() -> str:
    """Write the traceback under way to a new file that its owner alone can read."""
    descriptor, path = tempfile.mkstemp(prefix="dpsynth-debug-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(traceback.format_exc())
    return path


def plainly(name: str, action: Callable[[], T]) -> T:
    """Run a step as a plain function."""
    del name
    return action()


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
    domain = domain_of(spec.table_columns())

    plan = step("plan", lambda _: make_plan(spec, strategy))
    work = step("reserve budget", lambda _: begin(spec, plan, Path(outputs), resume, period, tell))
    with work:
        rng = np.random.default_rng(work.seed)
        told = step(
            "read earlier releases", lambda _: answers_of(work.reused, spec.table_columns(), Path(outputs))
        )
        curator = step("open the table", lambda _: open_door(spec, plan, work))
        singles = step("measure single columns", lambda _: measure_singles(curator, domain, plan))
        evidence, reused = weighed(work.reused, told, spec.table_columns(), singles)
        expansion = step("merge rare values", lambda _: merge_rare(spec, plan, domain, singles, evidence))
        selection = step(
            "choose and measure marginals",
            lambda _: select(strategy, curator, expansion, evidence, spec, plan),
        )
        answers = tuple(m for m in selection.answers if m is not None)
        singles = (*singles, *selection.singles)
        expansion = replace(expansion, singles=(*expansion.singles, *selection.singles))
        guarantee = step("compose the guarantee", lambda _: composed(plan, work.journal))
        fitted = step("fit the model", lambda advance: fit(expansion, answers, selection, advance))
        model = step("spread groups over values", lambda _: expansion.model(fitted.model))
        table = step("sample rows", lambda _: sampled(spec, model, singles, rng))
        statistics = step(
            "compute statistics",
            lambda _: tabulated(spec, model, expansion, fitted, singles, selection, evidence, rng),
        )
        if not work.published:
            publication = publication_of(
                spec, plan, work, table, expansion, singles, selection, reused, model, statistics, guarantee
            )
            step("publish the bundle", lambda _: publish(work, publication))
        step("settle the ledger", lambda _: settle(work, plan, guarantee))
    titles = {t.title: t for t in statistics}
    return Release(work.release_id, work.final, guarantee, table, titles)


def open_door(spec: Spec, plan: Plan, work: Work) -> Curator:
    """Read the private table, bound each person's rows, and put a curator before it."""
    columns = spec.table_columns()
    person = plan.neighbours.person
    names = dict.fromkeys([c.name for c in columns] + ([person] if person else []))
    source = spec.source
    if source.path is None or source.format is None:
        raise ConfigError("source.path is missing.")
    part = work.occasion.part
    names.update({} if part is None else {part.column: None})
    batches = read_batches(Path(source.path), list(names), source.format, keep_broken=person is None)
    if work.journal.sealed and not plan.neighbours.rows_public:
        # The journal has every answer.
        batches = iter(())
    table = load_table(batches, columns, plan.neighbours, work.key, part)
    return Curator(table, Terms(plan.neighbours, plan.measure, plan.budget, plan.noise), work.journal)


def measure_singles(curator: Curator, domain: Domain, plan: Plan) -> tuple[Measurement, ...]:
    """The total and the marginal of every column."""
    weights = one_way_weights(domain, plan.neighbours)
    last = plan.steps[-1].step == "one_way"
    allowance = curator.remaining if last else plan.budget * plan.shares.one_way
    public = [curator.count(allowance)] if plan.neighbours.rows_public else []
    answers = [*public, *curator.marginals(list(weights), allowance, list(weights.values()))]
    measured = tuple(m for m in answers if m is not None)
    if len(measured) < len(answers):
        raise BudgetRefused(
            "Interruptions used up the budget of this release before its columns were measured."
        )
    return measured


def merge_rare(
    spec: Spec, plan: Plan, domain: Domain, singles: tuple[Measurement, ...], evidence: Evidence
) -> Expansion:
    """Which values count as one with other columns, and how they are told apart again.

    Columns that a requested statistic pairs with another keep all of their values. Where
    nothing is measured but single columns, there is nothing to merge for. Groups stand beside
    values in the model that comes out: they may take half of its cells.
    """
    paired = {column for pair in plan.wanted for column in pair}
    earlier = evidence.columns
    found = rare_groups(domain, singles, plan.merged_below, paired, earlier)
    return Expansion(domain, found, (*singles, *earlier)).within(plan.max_cells // 2)


def select(
    strategy: Strategy, curator: Curator, expansion: Expansion, evidence: Evidence, spec: Spec, plan: Plan
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
        earlier=evidence.joint(expansion, independent.model, room),
    )
    if problem.earlier:
        problem = replace(problem, start=problem.refit((), independent))
    selection = strategy.select(curator.grouped(grouping) if grouping.groups else curator, problem)
    measured = [m.clique for m in selection.answers if m is not None]
    return replace(selection, earlier=within(problem.domain, measured, problem.earlier, room))


def composed(plan: Plan, journal: Journal) -> Guarantee:
    """The guarantee that the journal's events add up to, checked against the plan."""
    guarantee = compose((e.event for e in journal.entries), plan.measure, plan.delta, plan.neighbours)
    if guarantee.epsilon > float_up(plan.epsilon) or guarantee.delta > float(plan.spent_delta):
        raise DpsynthError(
            f"The journal {journal.path} adds up to epsilon {guarantee.epsilon:g}, more than the "
            f"{float(plan.epsilon):g} planned. Nothing is published; please report this."
        )
    return guarantee


def fit(expansion: Expansion, answers: Sequence[Measurement], selection: Selection, advance: Advance) -> Fit:
    """Fit the model of groups to all noisy marginals, from where the strategy's own fit ended."""
    limit, known = 1000, [*expansion.sums, *answers, *selection.earlier]
    return estimate(
        expansion.coarse,
        known,
        prior_rows=selection.prior * estimated_total(known),
        max_iterations=limit,
        start=selection.fit,
        progress=lambda done: advance(done, limit),
    )


def sampled(
    spec: Spec, model: MarkovRandomField, singles: Sequence[Measurement], rng: np.random.Generator
) -> pa.Table:
    """The synthetic table: codes drawn from the model, decoded column by column.

    It has as many rows as the private table if their number is public, else as estimated.
    """
    public = [int(m.values) for m in singles if m.noise == "none"]
    same = public[0] if public else round(model.total)
    rows = same if spec.sample.rows == "same" else spec.sample.rows
    codes = sample(model, rows, rng)
    return spec.layout().decode(codes, rng)


def tabulated(
    spec: Spec,
    model: MarkovRandomField,
    expansion: Expansion,
    fitted: Fit,
    singles: tuple[Measurement, ...],
    selection: Selection,
    evidence: Evidence,
    rng: np.random.Generator,
) -> tuple[StatisticTable, ...]:
    """Statistics with standard errors; refits are made only if one needs them.

    What was answered about other periods has no part in what counts as measured.
    """
    answers = [m for m in selection.answers if m is not None]
    about_these = replace(expansion, singles=singles).direct(answers)
    direct = LeastSquares(expansion.domain, (*about_these, *evidence.direct()))
    requests = spec.publish.statistics
    modelled = any(not direct.covers(r.columns) for r in requests)
    fitted_to = [*answers, *selection.earlier]
    replicates = refits(fitted, fitted_to, REPLICATES, rng, expansion) if modelled else ()
    return compute_statistics(
        requests, spec.table_columns(), direct, model, replicates, earlier_periods=bool(evidence.before)
    )


def publication_of(
    spec: Spec,
    plan: Plan,
    work: Work,
    table: pa.Table,
    expansion: Expansion,
    singles: tuple[Measurement, ...],
    selection: Selection,
    reused: Reused | None,
    model: MarkovRandomField,
    statistics: tuple[StatisticTable, ...],
    guarantee: Guarantee,
) -> Publication:
    """Everything that is handed to the public, in one value."""
    shares = plan.shares
    together = tuple(dict.fromkeys(m.clique for m in selection.earlier))
    return Publication(
        release=spec.release,
        release_id=work.release_id,
        date=work.date,
        part=work.occasion.part,
        layout=spec.layout(),
        synthetic=table,
        singles=singles,
        answers=tuple(m for m in selection.answers if m is not None),
        grouping=expansion.grouping,
        merged_below=plan.merged_below,
        model=model,
        statistics=statistics,
        guarantee=guarantee,
        events=tuple(_described(e.question, e.event) for e in work.journal.entries),
        structure=plan.structure,
        cliques=selection.cliques,
        budget={
            "epsilon": float(plan.epsilon),
            "delta": float(plan.spent_delta),
            "noise": plan.noise,
            "split": {
                "one_way": float(shares.one_way),
                "structure": float(shares.structure),
                "marginals": float(shares.marginals),
            },
        },
        formats=spec.publish.formats,
        lost=tuple(c for c, m in zip(selection.cliques, selection.answers, strict=True) if m is None),
        versions={p: _version(p) for p in _PACKAGES} | {"python": ".".join(map(str, sys.version_info[:3]))},
        reused=None if reused is None else replace(reused, cliques=together),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _described(question: object, event: events.Event) -> dict[str, object]:
    assert isinstance(question, dict)
    recorded = events.to_json(event)  # type: ignore[arg-type]
    candidates = question.get("candidates")
    bounds = {"l1": "L1 {}", "l2_squared": "squared L2 {}", "sensitivity": "each score {}"}
    sensitivity = next(text.format(recorded[key]) for key, text in bounds.items() if key in recorded)
    return {
        "question": question["ask"] if question.get("columns") != [] else "count",
        "columns": question.get("columns"),
        "merged_values": "grouping" in question,
        "candidates": candidates["number"] if isinstance(candidates, dict) else None,
        "mechanism": recorded["mechanism"],
        "scale": recorded.get("scale", recorded.get("sigma")),
        "sensitivity": sensitivity,
        "epsilon": None if event.epsilon is None else float_up(event.epsilon),
        "rho": float_up(event.rho),
    }


def publish(work: Work, publication: Publication) -> None:
    """Write the bundle beside its place and show it whole."""
    public = work.partial / "public"
    shutil.rmtree(public, ignore_errors=True)
    public.mkdir()
    write_public(public, publication)
    commit(work.partial, work.final)
