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

from dpsynth.accounting.events import Guarantee
from dpsynth.bundle.pages import InlinePage
from dpsynth.bundle.publication import WithoutCurator
from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.row_files import Library, SyntheticTable, frame_of
from dpsynth.bundle.row_source import RowSource
from dpsynth.errors import DpsynthError
from dpsynth.figures import rounded_up
from dpsynth.plan.spending import PlannedStep
from dpsynth.statistics.exam import Exam
from dpsynth.statistics.single_columns import DataWarning
from dpsynth.statistics.tables import StatisticTable
from dpsynth.statistics.verdict import NO_VERDICT, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.bundle.recipient import Bundle
    from dpsynth.bundle.recipient.bundle import Picture
    from dpsynth.bundle.recipient.more_rows import Given
    from dpsynth.bundle.recipient.query import Answer

_SHOWN = 8
"""Most titles of statistics that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A finished release. All of it may be shared, except ``folder / "private"``.

    Attributes:
        release_id: the permanent name of the release.
        folder: the bundle on disk, with ``public`` and ``private`` inside.
        drawn: the synthetic rows; ``table`` and ``synthetic`` hold them in memory.
        tables: tables of statistics with error bars, by title ("age", "age and sex", "income by city").
        exam: the measured errors of the synthetic table; None if the budget had no share for it.
        warnings: signs in the noisy single columns that something was misread.
        collection: the reports that it was made from, under trust: local; None if a curator answered.
        verdict: the verdicts on each column and each pair: use, with care, don't use.
        audience: the audience of the bundle; "" where there are none. ``folder`` is that of all audiences.
        audiences: the result for each audience by name, in rising order of epsilon; the result itself is that
            of the last one. Empty where there are none.
        library: the library of its frames: that of a private table in memory, otherwise pandas.
    """

    release_id: str
    folder: Path
    guarantee: Guarantee
    drawn: SyntheticTable
    tables: Mapping[str, StatisticTable]
    steps: tuple[PlannedStep, ...]
    exam: Exam | None = None
    warnings: tuple[DataWarning, ...] = ()
    collection: WithoutCurator | None = None
    verdict: Verdict = NO_VERDICT
    audience: str = ""
    audiences: Mapping[str, Release] = field(default_factory=dict)
    library: Library = "pandas"

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
        return self.drawn.source

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic rows as a frame of the private table's library, otherwise of pandas.

        In pandas types are nullable if cells may be missing. Dates are datetime64, ordered categories an
        ordered Categorical, times of day datetime.time.
        """
        return frame_of(self.table, self.library)

    @cached_property
    def bundle(self) -> Bundle:
        return open_bundle(self.handed_over)

    def sample(self, n: int, seed: int | None = None, *, given: Given = None) -> pd.DataFrame:
        """More synthetic rows, drawn from the fitted model: free, as it is post-processing.

        They obey the constraints, and agree with the public marginals, as those of ``synthetic``.

        Args:
            seed: makes the rows repeatable. Left out: new rows each time.
            given: what each row must have: ``{"sex": "F"}``, ``"age >= 65"``, or several such conditions.

        Raises:
            DpsynthError: n is negative, or no row has what is given.
        """
        if n < 0:
            raise DpsynthError(f"n must be a number of rows of at least 0, not {n}.")
        if given is None:
            # Rows of all kinds need no file of the bundle, which may be gone.
            return frame_of(self.rows.seeded(n, seed), self.library)
        from dpsynth.bundle.recipient.more_rows import more_rows

        return frame_of(pa.concat_tables(more_rows(self.bundle, n, given, seed)), self.library)

    def query(self, question: str) -> Answer:
        """The answer to a question such as ``mean(cost) by sex``, with a ``frame``; see ``Bundle.query``."""
        return self.bundle.query(question)

    @cached_property
    def statistics(self) -> Mapping[str, pd.DataFrame]:
        """Statistics with error bars as frames, by title; each has a row a cell.

        The columns that it is about come first; then estimate, standard_error, low and high. In pandas
        ``attrs`` has the table's title, kind and columns, and whether it was measured.
        """
        return {title: self._statistic(table) for title, table in self.tables.items()}

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The measured error of every pair of columns of ``table``, and of other marginals, with 95 % limits.

        Without rows if there was no exam.
        """
        return self._figures(pa.table({}) if self.exam is None else self.exam.table)

    @cached_property
    def plan(self) -> pd.DataFrame:
        """The planned steps: share of the budget, number of answers, mechanism, noise, expected error.

        Noise scale and error are in rows, of an answer of average share.
        """
        return self._figures(
            pa.table(
                {
                    "step": [s.step for s in self.steps],
                    "share": [s.share for s in self.steps],
                    "answers": [s.questions for s in self.steps],
                    "mechanism": [s.mechanism for s in self.steps],
                    "noise_scale": [s.scale for s in self.steps],
                    "expected_error": [s.expected_error for s in self.steps],
                }
            )
        )

    def _figures(self, table: pa.Table) -> pd.DataFrame:
        return table.to_pandas() if self.library == "pandas" else frame_of(table, self.library)

    def _statistic(self, found: StatisticTable) -> pd.DataFrame:
        frame = self._figures(found.table)
        if self.library == "pandas":
            frame.attrs = {
                "title": found.title,
                "kind": found.kind,
                "columns": list(found.columns),
                "measured": found.measured,
            }
        return frame

    def plot(self, *columns: str) -> Picture:
        """A picture of one column, of a pair, or of all verdicts; see ``Bundle.plot``."""
        return self.bundle.plot(*columns)

    def report(self, height: int = 700) -> InlinePage:
        """The release's report, which a notebook shows in place."""
        return InlinePage(self.handed_over / "report.html", height)

    def save(self, outputs: str | Path) -> Path:
        """Copy the whole bundle to ``outputs/<release>/<release id>``, unless it is there.

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
        rows = [*self._facts.items(), *(("Warning", warning.sentence) for warning in self.warnings)]
        cells = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(words)}</td></tr>'
            for name, words in rows
        )
        title = f"Release {self.release_id} of {self.folder.parent.name}"
        return f"<table><caption>{escape(title)}</caption>{cells}</table>"
