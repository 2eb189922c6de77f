"""The spine: the steps of a release, in order, once.

    config -> plan -> reservation -> curator(private table, budget, journal)
                                        |  noisy answers only
    contribution bound and domains, if they are to be found; the plan of the remaining steps
                                        |
    one-way marginals -> warnings: go on, or pause for the owner
                                        |
    sums of means that are asked for
                                        |
    compressed domain -> structure, marginals                          SELECT, MEASURE
                                        |
    model -> synthetic table                                           GENERATE: post-processing
                                        |
    exam: noisy distances of that table                                the door's last question
                                        |
    statistics -> public bundle                                        post-processing

With audiences the steps from the single columns to the bundle come once for each, in rising order of epsilon:
a tier each. The ledger closes the release, and the bundles appear, after the last.

The same sequence runs plainly and as Prefect tasks: ``run`` takes the function that runs a step.

Invariant: the table is read after ``dpsynth.lifecycle.release_run`` has reserved the whole budget, and
only the curator's answers leave it. Before, the file is only checked to be readable. A bundle is published
once, after the ledger has closed the release with the digest of its answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpsynth.config import Spec
from dpsynth.errors import DpsynthError
from dpsynth.evidence.evidence import Answered
from dpsynth.lifecycle.aggregating import begun, enter, hold, read_reports, show, write_local
from dpsynth.lifecycle.answers import Measured
from dpsynth.lifecycle.beginning import DEFAULT_REQUEST, Request, begin
from dpsynth.lifecycle.examining import examine
from dpsynth.lifecycle.generating import fit_model, spread_over_values, tabulate
from dpsynth.lifecycle.inputs import Inputs, MemoryTable, inputs_of, with_public_table
from dpsynth.lifecycle.measuring import (
    OpenDoor,
    Stage,
    Unbounded,
    compress,
    earlier_answers,
    find_contribution_bound,
    find_domains,
    measure_one_way,
    measure_statistics,
    next_tier,
    open_door,
    select,
)
from dpsynth.lifecycle.outputs import Synthesis, public_of, publish, write
from dpsynth.lifecycle.pausing import heed_warnings
from dpsynth.lifecycle.progress import Tell, silently
from dpsynth.lifecycle.rehearsal import rehearsal_of
from dpsynth.lifecycle.release_run import ReleaseRun, composed, settle
from dpsynth.lifecycle.result import Release
from dpsynth.lifecycle.sampling import sample_rows
from dpsynth.lifecycle.steps import RunStep, Step, Steps, plainly


def run(
    spec: Spec,
    request: Request = DEFAULT_REQUEST,
    *,
    table: MemoryTable | None = None,
    tell: Tell = silently,
    run_step: RunStep = plainly,
    door: OpenDoor = open_door,
) -> Release:
    """Run a release from its spec to its bundle.

    Args:
        spec: the checked config.
        request: the folder of bundles, the release to resume, the slice of the table.
        table: a private table in memory, in place of the config's file.
        tell: takes public sentences: warnings, and news of a release that is resumed or shown again.
        run_step: runs a step, plainly or as a task of an orchestrator.
        door: opens the door to the private table.

    Raises:
        ConfigError, BudgetRefused, SourceError: before anything is charged.
        Paused: its single columns say that something was misread; ``resume`` goes on as it is.
        Interrupted: stopped by a signal; ``resume`` finishes it.
        StepFailed: an unforeseen error, its details withheld.
    """
    step = Steps(run_step)
    planned = step(Step.PLAN, inputs_of, spec, table)
    inputs = planned if spec.public_table is None else step(Step.PUBLIC_TABLE, with_public_table, planned)
    with step(Step.RESERVE, begin, inputs, request, tell) as release_run:
        earlier = step(Step.EARLIER, earlier_answers, inputs, release_run, request.outputs)
        first = step(Step.OPEN, door, inputs, release_run)
        if isinstance(first, Unbounded):
            bounded = step(Step.FIND_BOUND, find_contribution_bound, inputs, first)
        else:
            bounded = first
        stage = step(Step.FIND_DOMAINS, find_domains, inputs, bounded) if bounded.plan.searches else bounded
        tiers = [_tier(step, inputs, release_run, stage, earlier, tell)]
        while (done := tiers[-1]).stage.plan.later:
            stage = step(Step.NEXT_AUDIENCE, next_tier, inputs, done.stage, done.measured)
            tiers.append(_tier(step, inputs, release_run, stage, (), tell))
        step(Step.SETTLE, settle, release_run, done.stage.plan, done.synthesis.guarantee)
        step(Step.PUBLISH, publish, release_run, tell)
    releases = [_result(inputs, release_run, tier) for tier in tiers]
    audiences = {one.audience: one for one in releases if one.audience}
    return replace(releases[-1], audiences=audiences)


@dataclass(frozen=True, eq=False)
class _Tier:
    """A tier of a release: all that is asked for one audience, and what is made of it."""

    stage: Stage
    measured: Measured
    synthesis: Synthesis


def _tier(
    steps: Steps,
    inputs: Inputs,
    release_run: ReleaseRun,
    stage: Stage,
    earlier: tuple[Answered, ...],
    tell: Tell,
) -> _Tier:
    """The steps from the single columns to the bundle, which are those of every audience."""
    step, place = steps.of_audience(stage.plan.audience), stage.plan.place
    rng = np.random.default_rng([release_run.seed, place] if place else release_run.seed)
    answers = step(Step.MEASURE_SINGLES, measure_one_way, inputs, stage, release_run, earlier)
    warnings = step(Step.HEED_WARNINGS, heed_warnings, inputs, stage, release_run, answers, tell)
    if stage.plan.own.number:
        answers = step(Step.MEASURE_STATISTICS, measure_statistics, inputs, stage, answers)
    expansion = step(Step.MERGE, compress, inputs, stage, answers)
    measured = step(Step.SELECT, select, inputs, stage, answers, expansion)
    fit = step.counted(Step.FIT, fit_model, inputs, stage, measured)
    fitted = step(Step.SPREAD, spread_over_values, inputs, stage, measured, fit)
    public = None if release_run.published else public_of(release_run, stage.plan)
    drawn = step.by_rows(Step.SAMPLE, sample_rows, inputs, fitted, public, rng)
    exam = step(Step.EXAMINE, examine, inputs, stage, fitted, drawn) if stage.plan.exam else None
    guarantee = step(Step.COMPOSE, composed, stage.plan, release_run.journal)
    statistics = step(Step.TABULATE, tabulate, inputs, fitted, rng, exam)
    synthesis = Synthesis(fitted, drawn, statistics, guarantee, warnings, exam)
    if not release_run.published:
        step(Step.WRITE, write, inputs, release_run, stage.plan, synthesis)
    return _Tier(stage, measured, synthesis)


def _result(inputs: Inputs, release_run: ReleaseRun, tier: _Tier) -> Release:
    """The result of a tier, for callers in Python."""
    made, plan = tier.synthesis, tier.stage.plan
    return Release(
        release_run.release_id,
        release_run.final,
        made.guarantee,
        made.table,
        {t.title: t for t in made.statistics},
        plan.steps,
        made.exam,
        made.warnings,
        audience=plan.audience,
    )


def aggregate(
    spec: Spec, reports: Path, outputs: Path = Path("outputs"), *, run_step: RunStep = plainly
) -> Release:
    """Make a release from the reports of respondents, under trust: local.

    The steps after the last answer are those of ``run``. There is no curator, and the ledger gets an entry
    without a charge: each respondent has borne the loss of her own report.

    Args:
        spec: the contract's config.
        reports: folder of reports.
        outputs: folder under which ``<release>/<release id>`` appears.
        run_step: runs a step.

    Raises:
        ConfigError: the config is not of the local model, or the ledger can't be used.
        SourceError: there are too few reports.
        DpsynthError: the folder of reports can't be read.
    """
    step = Steps(run_step)
    collected = step(Step.READ_REPORTS, read_reports, spec, reports)
    rng = np.random.default_rng(collected.seed)
    measured = step(Step.HOLD_ANSWERS, hold, collected)
    fit = step.counted(Step.FIT, fit_model, collected, collected, measured)
    fitted = step(Step.SPREAD, spread_over_values, collected, collected, measured, fit)
    place = step(Step.BEGIN_BUNDLE, begun, spec, outputs)
    drawn = step.by_rows(Step.SAMPLE, sample_rows, collected, fitted, place.partial / "public", rng)
    statistics = step(Step.TABULATE, tabulate, collected, fitted, rng, unbiased=collected.answers)
    synthesis = Synthesis(fitted, drawn, statistics, collected.guarantee)
    step(Step.WRITE, write_local, collected, place, synthesis)
    step(Step.ENTER, enter, collected, place)
    step(Step.PUBLISH, show, place)
    titles = {t.title: t for t in statistics}
    return Release(
        place.release_id,
        place.final,
        collected.guarantee,
        drawn,
        titles,
        (),
        collection=collected.collection,
    )


def rehearse(
    spec: Spec,
    *,
    rows: int | None = None,
    outputs: str | Path = "outputs",
    period: str | None = None,
    tell: Tell = silently,
    run_step: RunStep = plainly,
) -> Release:
    """Run all steps of a release on a made-up table: nothing private is read, and nothing charged.

    Args:
        spec: the checked config; neither its source nor its ledger is opened.
        rows: number of made-up rows; left out: the public number of rows, or 10 000.
        outputs: folder under which ``rehearsals/<release>/<rehearsal id>`` appears.
        period: label of the slice to make up, if the config has periods.
        tell: takes public sentences.
        run_step: runs a step, plainly or as a task of an orchestrator.

    Raises:
        ConfigError, BudgetRefused: a release of the config would not begin either.
        DpsynthError: the rehearsal was stopped; nothing of it is left.
        StepFailed: an unforeseen error, its details withheld.
    """
    with rehearsal_of(spec, Path(outputs), rows, period) as rehearsal:
        try:
            return rehearsal.kept(run(rehearsal.spec, rehearsal.request, tell=tell, run_step=run_step))
        except KeyboardInterrupt:
            raise DpsynthError(
                "The rehearsal was stopped. Nothing was charged, and nothing of it is left."
            ) from None
