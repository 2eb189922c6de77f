"""The exam and the verdict: the door's last question, about the finished synthetic table, and what follows.

Invariant: the table that is examined is the table that is handed over, in the codes of its own values. The
verdict asks nothing more.
"""

from __future__ import annotations

import numpy as np

from dpsynth.columns.finished_table import FinishedTable
from dpsynth.pipeline.generating import Described, FittedModel
from dpsynth.pipeline.inputs import Inputs
from dpsynth.pipeline.measuring import Stage
from dpsynth.pipeline.sampling import SyntheticTable
from dpsynth.statistics.cut_off import CutOff
from dpsynth.statistics.exam import Basis, Exam
from dpsynth.statistics.verdict import Judged, Verdict


def examine(inputs: Inputs, stage: Stage, fitted: FittedModel, table: SyntheticTable) -> Exam:
    """The measured errors of the finished table, for what was kept of the budget.

    Its counts are scaled to the number of rows of the private table if that is public, otherwise to the
    estimate.
    """
    plan = stage.plan
    finished = FinishedTable(table.coded, max(fitted.rows, 1))
    door = stage.curator.keeping(plan.later)
    cliques = [examined.clique for examined in plan.exam]
    distances = door.examine(cliques, finished, plan.kept)
    return Exam(plan.exam, distances, finished.stands_for, stage.domain, _basis(inputs, fitted))


def judge(
    inputs: Described,
    fitted: FittedModel,
    table: SyntheticTable,
    exam: Exam | None = None,
    cut: CutOff | None = None,
) -> Verdict:
    """The verdict on the finished table, by noisy counts and, where there is one, the exam.

    It says so if a large share of the rows was cut off.
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
        basis=_basis(inputs, fitted),
        exam=exam,
        changed=table.repairs.shares_changed,
    ).verdict()
    return found.beside(cut)


def _basis(inputs: Described, fitted: FittedModel) -> Basis:
    """The marginals that a table rests on."""
    measured = fitted.measured
    earlier, tiers = [m.clique for m in measured.selection.earlier], measured.answers.tiers.cliques
    again = [clique for clique in earlier if clique in tiers]
    public = [m.clique for m in inputs.compiled.public_marginals.marginals]
    return Basis([*(m.clique for m in measured.joint), *again], public, earlier)
