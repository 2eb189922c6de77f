"""The spine: the steps of a release, in order, once.

    config -> plan -> reservation -> curator(private table, budget, journal)
                                        |  noisy answers only
    rows of persons, counted, and then bounded
                                        |
    number of rows -> empty: go on, or pause for the owner
                                        |
    domains, if they are to be found; the plan of the remaining steps
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
    statistics                                                         post-processing
                                        |
    verdict, criteria: go on, or pause for the owner                   post-processing
                                        |
    public bundle                                                      post-processing

With audiences the steps from the single columns to the bundle come once for each, in rising order of epsilon:
a tier each. The ledger closes the release, and the bundles appear, after the last.

The same sequence runs plainly and as Prefect tasks: ``run`` takes the function that runs a step.

Invariant: the table is read after ``dpsynth.pipeline.release_run`` has reserved the whole budget, and
only the curator's answers leave it. Before, the file is only checked to be readable. A bundle is published
once, after the ledger has closed the release with the digest of its answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth.config import Spec
from dpsynth.model.measurement_file import Answered
from dpsynth.pipeline.beginning import DEFAULT_REQUEST, Request, begin
from dpsynth.pipeline.generating import fit_model, sample_rows, spread_over_values, tabulate
from dpsynth.pipeline.inputs import Inputs, MemoryTable, inputs_of, with_public_table
from dpsynth.pipeline.measuring import (
    OpenDoor,
    Stage,
    Unbounded,
    bound_contributions,
    compress,
    count_rows,
    earlier_answers,
    find_domains,
    measure_one_way,
    measure_statistics,
    next_tier,
    open_door,
    select,
)
from dpsynth.pipeline.outputs import Synthesis, public_of, publish, release_of, write
from dpsynth.pipeline.pausing import examine, heed_size, heed_verdict, heed_warnings, judge
from dpsynth.pipeline.release_run import ReleaseRun, composed, settle
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import RunStep, Step, Steps, Tell, plainly, silently


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
        request: the folder of bundles, the release to resume, the slice of the table.
        table: a private table in memory, in place of the config's file.
        tell: takes public sentences: warnings, and news of a release that is resumed or shown again.
        run_step: runs a step, plainly or as a task of an orchestrator.

    Raises:
        ConfigError, BudgetRefused, SourceError: before anything is charged.
        Paused: its table seems to be empty, its single columns say that something was misread, or its
            finished table contradicts its own counts; ``resume`` goes on as it is.
        Interrupted: stopped by a signal; ``resume`` finishes it.
        StepFailed: an unforeseen error, its details withheld.
    """
    step = Steps(run_step)
    planned = step(Step.PLAN, inputs_of, spec, table)
    inputs = planned if spec.public_table is None else step(Step.PUBLIC_TABLE, with_public_table, planned)
    with step(Step.RESERVE, begin, inputs, request, tell) as release_run:
        earlier = step(Step.EARLIER, earlier_answers, inputs, release_run, request.outputs)
        opened = step(Step.OPEN, door, inputs, release_run)
        if isinstance(opened, Unbounded):
            # Under the same name, so that the rows before bounding needn't be held any longer.
            opened = step(Step.BOUND, bound_contributions, inputs, opened)
        counted = step(Step.COUNT_ROWS, count_rows, inputs, opened)
        step(Step.HEED_SIZE, heed_size, inputs, counted, release_run, tell)
        stage = step(Step.FIND_DOMAINS, find_domains, inputs, counted) if counted.plan.searches else counted
        tiers: list[Release] = []
        for _ in counted.plan.tiers:
            made = _tier(step, inputs, release_run, stage, () if tiers else earlier, tell)
            tiers.append(release_of(release_run, stage.plan, made))
            if stage.plan.later:
                stage = step(Step.NEXT_AUDIENCE, next_tier, inputs, stage, made.fitted.measured)
        step(Step.SETTLE, settle, release_run, stage.plan)
        step(Step.PUBLISH, publish, inputs, release_run, tell)
    return replace(tiers[-1], audiences={tier.audience: tier for tier in tiers if tier.audience})


def _tier(
    steps: Steps,
    inputs: Inputs,
    release_run: ReleaseRun,
    stage: Stage,
    earlier: tuple[Answered, ...],
    tell: Tell,
) -> Synthesis:
    step, place = steps.of_audience(stage.plan.tier.audience), stage.plan.tier.place
    compiled = inputs.compiled
    rng = np.random.default_rng([release_run.seed, place] if place else release_run.seed)
    answers = step(Step.MEASURE_SINGLES, measure_one_way, inputs, stage, release_run, earlier)
    warnings = step(Step.HEED_WARNINGS, heed_warnings, inputs, stage, release_run, answers, tell)
    if stage.plan.own.asked:
        answers = step(Step.MEASURE_STATISTICS, measure_statistics, inputs, stage, answers)
    expansion = step(Step.MERGE, compress, inputs, stage, answers)
    measured = step(Step.SELECT, select, inputs, stage, answers, expansion)
    fit = step(Step.FIT, fit_model, compiled, stage.layout, stage.plan.max_cells, measured)
    fitted = step(Step.SPREAD, spread_over_values, compiled, stage.layout, measured, fit)
    public = None if release_run.published else public_of(release_run, stage.plan)
    drawn = step(Step.SAMPLE, sample_rows, compiled, fitted, public, rng)
    exam = step(Step.EXAMINE, examine, inputs, stage, fitted, drawn) if stage.plan.exam else None
    cut = measured.answers.cut_off(stage.plan.neighbours)
    statistics = step(Step.TABULATE, tabulate, compiled, fitted, rng, exam)
    verdict = step(Step.JUDGE, judge, compiled, fitted, drawn, exam, cut, statistics)
    step(Step.HEED_VERDICT, heed_verdict, inputs, release_run, verdict, tell)
    guarantee = step(Step.COMPOSE, composed, stage.plan, release_run.journal)
    synthesis = Synthesis(fitted, drawn, statistics, guarantee, warnings, exam, verdict, cut)
    if not release_run.published:
        step(Step.WRITE, write, inputs, release_run, stage.plan, synthesis)
    return synthesis
