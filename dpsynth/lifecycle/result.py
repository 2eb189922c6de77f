"""The result of a finished release, for callers in Python and for notebooks.

Invariant: all of it is public, but for the folder ``private`` on disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.diagnostics import DataWarning
from dpsynth.errors import DpsynthError
from dpsynth.lifecycle.sampling import SyntheticTable
from dpsynth.local.collection import Collection
from dpsynth.plan.steps import PlannedStep
from dpsynth.presentation.figures import rounded_up
from dpsynth.presentation.inline_page import InlinePage
from dpsynth.publish.exam import Exam
from dpsynth.publish.frames import frame_of
from dpsynth.publish.row_source import RowSource
from dpsynth.publish.statistics import StatisticTable
from dpsynth.publish.verdict import NO_VERDICT, Verdict

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 8
"""Most titles of statistics that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A finished release. All of it may be shared, except ``folder / "private"``.

    Attributes:
        release_id: the permanent name of the release.
        folder: the bundle on disk, with ``public`` and ``private`` inside.
        guarantee: the guarantee composed of the journal's events.
        drawn: the synthetic rows; ``table`` and ``synthetic`` hold them in memory.
        tables: tables of statistics with error bars, by title ("age", "age and sex", "income by city").
        steps: the planned steps, in the order in which they spent the budget.
        exam: the measured errors of the synthetic table; None if the budget had no share for it.
        warnings: signs in the noisy single columns that something was misread.
        collection: the reports that it was made from, under trust: local; None if a curator answered.
        verdict: the verdicts on each column and each pair: use, with care, don't use.
        audience: the audience of the bundle; "" where there are none. ``folder`` is that of all audiences.
        audiences: the result for each audience by name, in rising order of epsilon; the result itself is that
            of the last one. Empty where there are none.
    """

    release_id: str
    folder: Path
    guarantee: Guarantee
    drawn: SyntheticTable
    tables: Mapping[str, StatisticTable]
    steps: tuple[PlannedStep, ...]
    exam: Exam | None = None
    warnings: tuple[DataWarning, ...] = ()
    collection: Collection | None = None
    verdict: Verdict = NO_VERDICT
    audience: str = ""
    audiences: Mapping[str, Release] = field(default_factory=dict)

    @property
    def handed_over(self) -> Path:
        """The folder that may be handed over, to its audience where there are some."""
        return self.folder / (self.audience or "public")

    @property
    def table(self) -> pa.Table:
        """The synthetic rows as an Arrow table, typed, under the original column names.

        A table of many rows lies in files, and is drawn once more, into memory, when this is asked for.
        """
        return self.drawn.table

    @property
    def rows(self) -> RowSource:
        """The source of further synthetic rows."""
        return self.drawn.source

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic rows as a pandas table; nullable types if cells may be missing.

        Dates are datetime64, ordered categories an ordered Categorical, times of day datetime.time.
        """
        return frame_of(self.table)

    def sample(self, n: int, seed: int | None = None) -> pd.DataFrame:
        """More synthetic rows, drawn from the fitted model: free, as it is post-processing.

        They obey the constraints, and agree with the public marginals, as those of ``synthetic``.

        Args:
            n: number of rows.
            seed: makes the rows repeatable. Left out: new rows each time.

        Raises:
            DpsynthError: n is negative.
        """
        if n < 0:
            raise DpsynthError(f"n must be a number of rows of at least 0, not {n}.")
        return frame_of(self.rows.seeded(n, seed))

    @cached_property
    def statistics(self) -> Mapping[str, pd.DataFrame]:
        """Statistics with error bars as pandas tables, by title; each has a row a cell.

        The columns that it is about come first; then estimate, standard_error, low and high. ``attrs`` has
        the table's title, kind and columns, and whether it was measured.
        """
        return {title: _statistic(table) for title, table in self.tables.items()}

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The measured error of every pair of columns of ``table``, and of other marginals, with 95 % limits.

        Without rows if there was no exam.
        """
        import pandas as pd

        return pd.DataFrame() if self.exam is None else self.exam.table.to_pandas()

    @cached_property
    def plan(self) -> pd.DataFrame:
        """The planned steps: share of the budget, number of answers, mechanism, noise, expected error.

        Noise scale and error are in rows, of an answer of average share.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "step": [s.step for s in self.steps],
                "share": [s.share for s in self.steps],
                "answers": [s.questions for s in self.steps],
                "mechanism": [s.mechanism for s in self.steps],
                "noise_scale": [s.scale for s in self.steps],
                "expected_error": [s.expected_error for s in self.steps],
            }
        )

    def report(self, height: int = 700) -> InlinePage:
        """The release's report, which a notebook shows in place.

        Args:
            height: height of its frame, in pixels.
        """
        return InlinePage(self.handed_over / "report.html", height)

    def save(self, outputs: str | Path) -> Path:
        """Copy the whole bundle to ``outputs/<release>/<release id>``, unless it is there.

        Returns:
            The bundle's folder under ``outputs``.

        Raises:
            DpsynthError: another file or folder has that name.
        """
        target = Path(outputs) / self.folder.parent.name / self.folder.name
        if target.exists():
            if target.samefile(self.folder):
                return target
            raise DpsynthError(f"{target} exists already; a bundle is never overwritten.")
        shutil.copytree(self.folder, target)
        return target

    @property
    def _facts(self) -> dict[str, str]:
        rows, columns, promise = self.drawn.rows, self.drawn.columns, self.guarantee
        more = len(self.tables) - _SHOWN
        titles = [*list(self.tables)[:_SHOWN], *([f"{more} more"] if more > 0 else [])]
        return {
            "Guarantee": f"ε = {rounded_up(promise.epsilon)}, δ = {rounded_up(promise.delta)} for "
            f"{promise.unit} ({promise.neighbours})",
            "Synthetic": f"{rows:,} rows of {columns} columns",
            "Verdict": self.verdict.lines[0],
            "Statistics": ", ".join(titles),
            "To hand over": str(self.handed_over),
            "To keep private": str(self.folder / "private"),
        }

    def __repr__(self) -> str:
        """A few lines, without a row of the synthetic table."""
        title = f"Release {self.release_id} of {self.folder.parent.name}"
        lines = [f"  {name}: {words}" for name, words in self._facts.items()]
        return "\n".join([title, *lines, *(f"  Warning: {warning.sentence}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        """The same as a table of a notebook."""
        rows = [*self._facts.items(), *(("Warning", warning.sentence) for warning in self.warnings)]
        cells = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(words)}</td></tr>'
            for name, words in rows
        )
        title = f"Release {self.release_id} of {self.folder.parent.name}"
        return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def _statistic(found: StatisticTable) -> pd.DataFrame:
    frame: pd.DataFrame = found.table.to_pandas()
    frame.attrs = {
        "title": found.title,
        "kind": found.kind,
        "columns": list(found.columns),
        "measured": found.measured,
    }
    return frame
