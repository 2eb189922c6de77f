"""Steps from row to row of one person, for `privacy.unit.history`: columns that never change, or never fall.

Exact and private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.layout import Layout
from dpsynth.config.privacy import History
from dpsynth.wings.owner.assess.findings import Finding, listed
from dpsynth.wings.owner.assess.row_sample import RowSample, TypedRows

_FEWEST = 100
"""Steps of a column from which something is proposed."""
_OFTEN = 0.999
"""Share of the steps of which a proposal holds, at least."""
_PLACES = 2.0**64
_VERBS = {"constant": "change", "rising": "fall"}
_ABOUT = "privacy.unit.history"


class StepTally:
    """Rows of some persons, all of them in a small table, in one pass and bounded memory.

    Args:
        ruled: True if synthetic rows are changed so that they obey constraints.
    """

    def __init__(self, layout: Layout, history: History, *, ruled: bool) -> None:
        self._history, self._sample, self._ruled = history, RowSample(layout), ruled

    def add(self, batch: Mapping[str, pa.StringArray], persons: NDArray[np.uint64]) -> None:
        """Some rows more, and the random number of each row's person."""
        self._sample.add(batch, persons / _PLACES)

    def findings(self) -> Iterator[Finding]:
        """Stated columns that rows break, and those that could be stated."""
        rows, order = self._sample.sampled(), self._history.order_by
        person = np.unique(self._sample.numbers, return_inverse=True)[1]
        ranks = {c.name: _ranks(rows, c) for c in rows.columns}
        turn = np.lexsort((ranks[order], person))
        given = {*self._history.constant, *self._history.rising, order}
        found: dict[str, list[str]] = {"constant": [], "rising": []}
        for column in rows.columns:
            own = ranks[column.name][turn]
            held = own >= 0
            same = np.diff(person[turn][held]) == 0
            steps = np.diff(own[held])[same]
            most = (1 - _OFTEN) * steps.size
            changes, falls = int((steps != 0).sum()), int((steps < 0).sum())
            for key, off in (("constant", changes), ("rising", falls)):
                if column.name in getattr(self._history, key) and off > most:
                    words = f"{_VERBS[key]}s in {off:,} of {steps.size:,} steps from row to row of a person"
                    yield Finding(
                        f"{_ABOUT}.{key}",
                        off,
                        f"{column.name} {words}",
                        "synthetic rows have no such step: leave it out if they should",
                    )
            if column.name not in given and steps.size >= _FEWEST and np.unique(own[held]).size > 1:
                if changes <= most:
                    found["constant"].append(column.name)
                elif falls <= most and column.codec.ordered:
                    found["rising"].append(column.name)
        if any(found.values()):
            yield self._proposed(found)

    def _proposed(self, found: Mapping[str, list[str]]) -> Finding:
        told = [
            f"{listed(names)} never {_VERBS[key]}{'s' * (len(names) == 1)}"
            for key, names in found.items()
            if names
        ]
        keys = [f"order_by: {self._history.order_by}"]
        for key, names in found.items():
            both = [*getattr(self._history, key), *names]
            keys += [f"{key}: [{', '.join(both)}]"] if both else []
        otherwise = "synthetic persons break it otherwise"
        if self._ruled:
            otherwise += ", in many rows if rows are changed until they obey the constraints"
        return Finding(
            _ABOUT,
            0,
            f"from row to row of a person {listed(told)}",
            f"state it, as far as anyone could say so without the table; {otherwise}",
            f"history: {{{', '.join(keys)}}}",
            tuned=True,
        )


def _ranks(rows: TypedRows, column: Column) -> NDArray[np.int64]:
    """The place of each value in the order of the column's values, from 0 on; -1 where it is missing."""
    values = rows.operand(column.name).values
    if pa.types.is_string(values.type) or pa.types.is_boolean(values.type):
        values = rows.keys(column.name)
    ranks = np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense"), np.int64) - 1
    return np.where(np.asarray(values.is_valid()), ranks, -1)
