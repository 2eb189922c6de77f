"""Membership inference from the synthetic table alone, as its recipient would try it.

The attacker knows all rows but one unit's, the config, and the code. So they can make releases of their own,
with the unit and without it, and learn from these what a release with the unit looks like. For each set of
columns they count the synthetic rows in the unit's cells: a release based on marginals shows a unit there and
nowhere else (Golob et al. 2024). What they learn is a linear discriminant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.audit.observed_door import Transcript
from dpsynth.domain.column import codes_of, each_once
from dpsynth.domain.finished_table import FinishedTable
from dpsynth.errors import DpsynthError

Features = NDArray[np.float64]

MOST_PAIRS = 300
"""Largest number of pairs of columns that are looked at."""


def features(transcript: Transcript, target: Mapping[str, pa.StringArray]) -> Features:
    """Shares of synthetic rows that agree with the unit's first row, float64[sets of columns].

    The sets are all single columns, and the first ``MOST_PAIRS`` pairs. A table found empty has shares of 0.

    Args:
        transcript: the transcript of a release, with its synthetic table.
        target: column to the texts of the unit's rows.

    Raises:
        DpsynthError: the release has not made its table.
    """
    layout, table = transcript.layout, transcript.synthetic
    if layout is None or table is None:
        raise DpsynthError("The release that is audited has made no table.")
    finished = FinishedTable.of(layout, table, max(table.num_rows, 1))
    codes = finished.coded.whole()
    agree = {
        column.name: codes[column.name]
        == each_once(partial(codes_of, column), target[column.name].slice(0, 1))[0]
        for column in layout.columns
    }
    names: Sequence[str] = sorted(agree)
    rows = max(finished.rows, 1)
    single = [agree[name].sum() / rows for name in names]
    pairs = [(agree[a] & agree[b]).sum() / rows for a, b in list(combinations(names, 2))[:MOST_PAIRS]]
    return np.array([*single, *pairs], dtype=np.float64)


def scores(inside: Features, outside: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The attacker's scores of all releases, learnt from the first third of them.

    ``lower_bounds.lower_bound`` chooses its threshold on the same third, and judges on the rest.

    Args:
        inside: float64[releases, sets of columns], features of releases with the unit.
        outside: the same, of releases without it.
    """
    known, others = inside[: len(inside) // 3], outside[: len(outside) // 3]
    spread = known.var(axis=0) + others.var(axis=0)
    weights = (known.mean(axis=0) - others.mean(axis=0)) / (spread + spread.mean() / 10 + 1e-12)
    return inside @ weights, outside @ weights
