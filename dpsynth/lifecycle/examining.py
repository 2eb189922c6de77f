"""The exam: the door's last question, about the finished synthetic table.

Invariant: the table that is examined is the table that is handed over, in the codes of its own values.
"""

from __future__ import annotations

from dpsynth.domain.finished_table import FinishedTable
from dpsynth.lifecycle.generating import FittedModel
from dpsynth.lifecycle.inputs import Inputs
from dpsynth.lifecycle.measuring import Stage
from dpsynth.lifecycle.sampling import SyntheticTable
from dpsynth.publish.exam import Basis, Exam


def examine(inputs: Inputs, stage: Stage, fitted: FittedModel, table: SyntheticTable) -> Exam:
    """The measured errors of the finished table, for what was kept of the budget.

    Its counts are scaled to the number of rows of the private table if that is public, otherwise to the
    estimate.
    """
    plan, measured = stage.plan, fitted.measured
    finished = FinishedTable(table.coded, max(fitted.rows, 1))
    door, earlier = stage.curator.keeping(plan.later), [m.clique for m in measured.selection.earlier]
    cliques = [examined.clique for examined in plan.exam]
    again = [clique for clique in earlier if clique in stage.tiers.cliques]
    basis = Basis(
        [*(m.clique for m in measured.joint), *again],
        [m.clique for m in inputs.compiled.public_marginals.marginals],
        earlier,
    )
    distances = door.examine(cliques, finished, plan.kept)
    return Exam(plan.exam, distances, finished.stands_for, stage.domain, basis)
