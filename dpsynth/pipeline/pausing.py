"""The exam and the verdict, and the pauses at which a release's owner decides: to go on, or to end it.

A release of an empty period, or one whose single columns say that something was misread, would spend its
budget on nothing. So it is paused after its number of rows, or after its single columns, before the rest of
the budget is spent. A release whose finished table contradicts its own noisy counts would mislead whoever
gets it. So it is paused before anything is shown. ``--resume`` and its id go on; ``--abandon`` ends it.

Invariant: warnings and verdicts are made of answers that are charged and recorded, so they cost nothing,
and a neighbouring table with the same answers has the same ones. The table that is examined is the table that
is handed over, in the codes of its own values. A release that is paused goes on only if it is asked for by
its
id after the pause is on record: never by a schedule, nor by a second run of its occasion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth.bundle.publication import JUDGE
from dpsynth.bundle.row_files import SyntheticTable
from dpsynth.columns.finished_table import FinishedTable
from dpsynth.config import CompiledSpec
from dpsynth.errors import Paused
from dpsynth.pipeline.generating import FittedModel
from dpsynth.pipeline.inputs import Inputs
from dpsynth.pipeline.measuring import Answers, Stage
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.pipeline.steps import Step, Tell
from dpsynth.plan.spending import GUESSES_SHARE
from dpsynth.statistics.cut_off import CutOff
from dpsynth.statistics.exam import Basis, Exam
from dpsynth.statistics.single_columns import DataWarning, empty_table, warnings_of
from dpsynth.statistics.tables import StatisticTable
from dpsynth.statistics.verdict import Finished, Judged, Verdict


def examine(inputs: Inputs, stage: Stage, fitted: FittedModel, table: SyntheticTable) -> Exam:
    """The measured errors of the finished table, for what was kept of the budget.

    Its counts are scaled to the number of rows of the private table if that is public, otherwise to the
    estimate.
    """
    plan = stage.plan
    finished = FinishedTable(table.coded, max(fitted.rows, 1))
    door = stage.curator.keeping(plan.later)
    cliques = [examined.clique for examined in plan.exam]
    each, accept = plan.exam_price * GUESSES_SHARE, inputs.spec.accept
    linked = fitted.measured.history is not None
    examiner = door.with_rows_before() if linked else door
    distances = examiner.examine(cliques, finished, plan.exam_price - each * len(plan.targets))
    trained = () if accept is None else accept.classifiers(finished, stage.layout.columns)
    answers = [door.classified(classifier, each) for classifier in trained]
    classified = tuple(answer for answer in answers if answer is not None)
    basis = _basis(inputs.compiled, fitted)
    domain = stage.domain.with_rows_before if linked else stage.domain
    return Exam(plan.exam, distances, finished.stands_for, domain, basis, classified)


def judge(
    compiled: CompiledSpec,
    fitted: FittedModel,
    table: SyntheticTable,
    exam: Exam | None = None,
    cut: CutOff | None = None,
    statistics: tuple[StatisticTable, ...] = (),
) -> Verdict:
    """The verdict on the finished table, by noisy counts and, where there is one, the exam.

    It says so if a large share of the rows was cut off, and judges the criteria of the configuration.
    """
    counts = {column.name: np.zeros(column.size, np.int64) for column in fitted.layout.columns}
    for _, codes in table.coded.pieces():
        for column in fitted.layout.columns:
            counts[column.name] += np.bincount(codes[column.name], minlength=column.size)
    found = Judged.of(
        fitted.layout,
        counts,
        fitted.densities,
        rows=fitted.rows,
        basis=_basis(compiled, fitted),
        exam=exam,
        changed=table.repairs.shares_changed,
    ).verdict()
    found, accept = found.beside(cut), compiled.spec.accept
    if accept is None:
        return found
    finished = Finished(
        found,
        exam,
        compiled.domain,
        compiled.spec.publish.statistics,
        [figures.table.to_pandas() for figures in statistics if figures.kind != "one_way"],
        lambda: (codes for _, codes in table.coded.pieces()),
    )
    judged = JUDGE.needed("accept")(accept.stated, finished)
    return replace(found, criteria=judged)


def _basis(compiled: CompiledSpec, fitted: FittedModel) -> Basis:
    measured = fitted.measured
    earlier, tiers = [m.clique for m in measured.selection.earlier], measured.answers.tiers.cliques
    again = [clique for clique in earlier if clique in tiers]
    public = [m.clique for m in compiled.public_marginals.marginals]
    links = () if measured.history is None else (m.clique for m in measured.history.links)
    return Basis([*(m.clique for m in measured.joint), *links, *again], public, earlier)


def heed_size(inputs: Inputs, stage: Stage, run: ReleaseRun, tell: Tell) -> None:
    """Tell that the table seems to be empty, if the release pauses for it.

    Raises:
        Paused: so it seems, and the release's owner has not decided yet.
    """
    warning = empty_table(*stage.total)
    if warning and inputs.spec.privacy.on_empty == "stop" and _undecided(run, Step.HEED_SIZE):
        tell(warning.paragraph)
        _put_down(run, Step.HEED_SIZE)
        raise _paused(run.release_id, (warning,), "before its columns were asked for")


def heed_warnings(
    inputs: Inputs, stage: Stage, run: ReleaseRun, answers: Answers, tell: Tell
) -> tuple[DataWarning, ...]:
    """The warnings to publish. Each is told, and so is each question to the owner.

    Raises:
        Paused: one of them is serious, and the release's owner has not decided yet. Only the first
            tier pauses. That the table is small has been decided if its number of rows said so before.
    """
    part = run.occasion.part
    found = {search.column for search in stage.plan.first.searches}
    warnings = warnings_of(
        stage.layout.columns,
        answers.first,
        found,
        None if part is None else part.column,
        inputs.spec.expected,
    )
    for warning in warnings:
        tell(warning.paragraph)
    decided = {"small_table"} if empty_table(*stage.total) else set()
    pauses = stage.plan.before is None and any(w.serious and w.kind not in decided for w in warnings)
    if pauses and inputs.spec.privacy.on_empty == "stop" and _undecided(run, Step.HEED_WARNINGS):
        # Told before it is on record: an owner who resumes has been shown the warnings.
        _put_down(run, Step.HEED_WARNINGS)
        raise _paused(run.release_id, warnings, "after its single columns")
    return tuple(warning for warning in warnings if warning.published)


def heed_verdict(inputs: Inputs, run: ReleaseRun, verdict: Verdict, tell: Tell) -> None:
    """Tell each contradiction of the finished table to its own counts, and each criterion that is not met.

    Raises:
        Paused: there is one, and the release's owner has not decided yet.
    """
    against, accept = verdict.contradictions, inputs.spec.accept
    unmet = [one.line for one in verdict.unmet]
    told = [*(f"Column {column.name}: {column.why}" for column in against), *unmet]
    # All of it before a pause: whoever goes on has been shown the whole.
    for sentence in told:
        tell(sentence)
    if against and inputs.spec.privacy.on_empty == "stop" and _undecided(run, Step.JUDGE):
        _put_down(run, Step.JUDGE)
        against_it = ", ".join(column.name for column in against)
        raise Paused(
            run.release_id,
            told,
            f"before it is shown, because its table contradicts its own counts in {against_it}",
            "Often a rule under constraints does that: correct it, and release again. To publish this one as "
            f"it is, with its verdict: dpsynth run CONFIG --resume {run.release_id}. To end it: dpsynth run "
            f"CONFIG --abandon {run.release_id}. It says what the release is charged.",
        )
    if unmet and accept is not None and accept.stops and _undecided(run, Step.JUDGE):
        _put_down(run, Step.JUDGE)
        raise Paused(
            run.release_id,
            told,
            f"before it is shown, because it fails {len(unmet)} of its {len(verdict.criteria)} criteria",
            "The budget is spent, so to publish it as it is, with its verdict, costs nothing: dpsynth run "
            f"CONFIG --resume {run.release_id}. To end it: dpsynth run CONFIG --abandon {run.release_id}.",
            without="accept.on_fail: publish",
        )


def _undecided(run: ReleaseRun, step: Step) -> bool:
    journal = run.journal
    # Nobody need decide about a made-up table.
    open_still = not run.rehearsal and not journal.sealed and journal.at_end
    return open_still and not (run.by_id and step in journal.pauses)


def _put_down(run: ReleaseRun, step: Step) -> None:
    if step not in run.journal.pauses:
        run.journal.pause(step)


def _paused(release_id: str, warnings: tuple[DataWarning, ...], where: str) -> Paused:
    grave = dict.fromkeys(
        "the table" if w.column is None else f"column {w.column}" for w in warnings if w.serious
    )
    return Paused(
        release_id,
        [warning.paragraph for warning in warnings],
        f"{where}, because of {', '.join(grave)}: see the warnings",
        f"To go on as it is: dpsynth run CONFIG --resume {release_id}. To end it, so that a "
        f"corrected config can be released: dpsynth run CONFIG --abandon {release_id}. It says what the "
        "release is charged.",
    )
