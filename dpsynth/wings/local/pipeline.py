"""The spine of the local model: the steps from a folder of reports to a release, in order, once.

    reports -> debiased answers -> held answers -> model -> synthetic table -> verdict -> statistics -> bundle
    -> ledger

The steps after the answers are those of ``dpsynth.pipeline.spine``. There is no curator, and the ledger gets
an entry without a charge: each respondent has borne the loss of her own report.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpsynth.config import Spec
from dpsynth.pipeline.generating import fit_model, sample_rows, spread_over_values, tabulate
from dpsynth.pipeline.outputs import Synthesis
from dpsynth.pipeline.pausing import judge
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import RunStep, Step, Steps, plainly
from dpsynth.wings.local.aggregating import begun, enter, hold, read_reports, show, write_local


def aggregate(
    spec: Spec, reports: Path, outputs: Path = Path("outputs"), *, run_step: RunStep = plainly
) -> Release:
    """Make a release from the reports of respondents, under trust: local.

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
    compiled, layout = collected.compiled, collected.compiled.layout
    fit = step(Step.FIT, fit_model, compiled, layout, collected.max_cells, measured)
    fitted = step(Step.SPREAD, spread_over_values, compiled, layout, measured, fit)
    place = step(Step.BEGIN_BUNDLE, begun, spec, outputs)
    drawn = step(Step.SAMPLE, sample_rows, compiled, fitted, place.partial / "public", rng)
    verdict = step(Step.JUDGE, judge, compiled, fitted, drawn)
    statistics = step(Step.TABULATE, tabulate, compiled, fitted, rng, unbiased=collected.answers)
    synthesis = Synthesis(fitted, drawn, statistics, collected.guarantee, verdict=verdict)
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
        verdict=verdict,
    )
