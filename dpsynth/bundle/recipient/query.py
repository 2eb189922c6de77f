"""Answers to a recipient's questions, each with estimate, interval and basis.

Means come from measured sums where there are some. Counts, and all that follows from them, come from public
marginals or measured answers where they cover all columns of a question, otherwise from the model. Answering
costs nothing: it is post-processing of what is published.

Invariant: an answer says what it rests on. A number by the model has an interval only where the exam has
measured how far the synthetic table is from the private one in its columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, floor, inf, isnan, log10
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpsynth.bundle.csv_safety import neutralise
from dpsynth.bundle.recipient.bundle import Bundle
from dpsynth.bundle.recipient.question import Question, QuestionRefused, question_in
from dpsynth.columns.domain import Clique
from dpsynth.errors import spelt_out
from dpsynth.model import MarkovRandomField, answers
from dpsynth.statistics.conditions import Condition, ConditionRefused, condition_of
from dpsynth.statistics.counted_cells import ModelCells, examined, public_or_measured
from dpsynth.statistics.estimates import HOLDS, Z95
from dpsynth.statistics.finer_quantiles import FinerQuantiles, finer_counts_of
from dpsynth.statistics.group_figures import UNDEFINED, Estimate
from dpsynth.statistics.grouped_counts import EVERY_ROW, GroupedCounts, Measure
from dpsynth.statistics.sampled_estimates import of_all_rows
from dpsynth.statistics.summed_means import summed_means, sums_of, total_of_sums

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 10_000
"""Largest number of rows of an answer."""
MOST_CELLS = 20_000_000
"""Largest number of cells of a table that an answer is made from."""

FIGURES = ("estimate", "low", "high", "rows", "basis")


@dataclass(frozen=True)
class AnswerRow:
    """The answer for one group.

    Attributes:
        labels: the group's value in each column after ``by``.
        estimate: the number, with the ends of its 95 % interval; NaN where undefined or withheld.
        rows: estimated rows that it rests on; None where withheld.
        basis: "public", "measured", "measured sum" or "model"; "withheld" where the owner's minimum set
            size is not met, or the set overlaps that of an earlier question.
    """

    labels: tuple[str, ...]
    estimate: Estimate
    rows: float | None
    basis: str


_OF_ROWS = ("count", "sum")
"""Measures that grow with the number of rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question.

    Attributes:
        question: the question as it was understood.
        rows: a row a group; one row without groups.
        interval: a sentence on what the intervals cover, or why there is none.
        minimum_set_size: the owner's rule; None without one.
        maximum_set_overlap: the owner's rule on overlapping questions; None without one.
        verdict: the worst verdict of the release on the columns that it is about, as a sentence with its
            reason; "" without one.
        too_low: of counts and sums, a sentence if rows were cut off for sure; otherwise "".
    """

    question: Question
    rows: tuple[AnswerRow, ...]
    interval: str
    minimum_set_size: int | None = None
    maximum_set_overlap: int | None = None
    verdict: str = ""
    too_low: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """The answer as a pandas table: columns of the groups, estimate, low, high, rows, basis."""
        import pandas as pd

        return pd.DataFrame(list(self._lines()), columns=[*self.question.by, *FIGURES])

    def _lines(self) -> Iterator[tuple[object, ...]]:
        for row in self.rows:
            found = row.estimate
            ends = (None if isnan(x) else x for x in (found.value, found.low, found.high))
            yield (*row.labels, *ends, row.rows, row.basis)

    def __repr__(self) -> str:
        """The words of ``dpsynth query``: a line a group, then what the intervals and the verdict say."""
        lines = [[*self.question.by, *FIGURES]]
        for row in self.rows:
            figures = (row.estimate.value, row.estimate.low, row.estimate.high, row.rows)
            lines.append([*row.labels, *map(_figure, figures), row.basis])
        texts = [[spelt_out(cell) for cell in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        left = len(self.question.by)
        shown = []
        for line in texts:
            cells = [
                cell.ljust(width) if place < left or place == len(line) - 1 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            shown.append("  ".join(cells).rstrip())
        shown.append(f"Interval: {self.interval}")
        if self.too_low:
            shown.append(self.too_low)
        if self.verdict:
            shown.append(f"Verdict on the synthetic table: {spelt_out(self.verdict)}")
        if self.minimum_set_size is not None:
            shown.append(f"Answers on fewer than {self.minimum_set_size:,} rows, by estimate, are withheld.")
        if self.maximum_set_overlap is not None:
            shown.append(
                f"Answers on sets that share more than {self.maximum_set_overlap:,} synthetic rows with that "
                "of an earlier question are withheld."
            )
        return "\n".join(shown)

    def to_json(self) -> dict[str, object]:
        """The answer as JSON values."""
        by = self.question.by
        return {
            "question": self.question.written,
            "measure": self.question.measure,
            "by": list(by),
            "interval": self.interval,
            "verdict": self.verdict,
            "too_low": self.too_low,
            "minimum_set_size": self.minimum_set_size,
            "maximum_set_overlap": self.maximum_set_overlap,
            "rows": [
                {
                    "group": dict(zip(by, row.labels, strict=True)),
                    **dict(zip(FIGURES, line[len(by) :], strict=True)),
                }
                for row, line in zip(self.rows, self._lines(), strict=True)
            ],
        }

    def to_csv(self) -> str:
        """The answer as CSV; texts that a spreadsheet might run have an apostrophe in front."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow([*_neutral(self.question.by), *FIGURES])
        for row, line in zip(self.rows, self._lines(), strict=True):
            figures = ["" if cell is None else cell for cell in line[len(row.labels) :]]
            writer.writerow([*_neutral(row.labels), *figures])
        return written.getvalue()


def _figure(value: float | None) -> str:
    """A number with up to six digits, and all digits before the point."""
    if value is None or isnan(value):
        return ""
    digits = 6 if value == 0 else max(0, 5 - floor(log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def _neutral(texts: tuple[str, ...]) -> list[str]:
    found: list[str] = neutralise(pa.array(texts, pa.string())).to_pylist()
    return found


def answered(bundle: Bundle, text: str) -> Answer:
    """The answer to a question.

    Raises:
        QuestionRefused: the question can't be read, or asks for too many cells.
        BundleRefused: a file of the bundle can't be used.
    """
    source = bundle.rows
    layout = source.layout
    question = question_in(text, layout)
    try:
        where, part = (condition_of(f, layout, bundle.rules) for f in (question.where, question.part))
    except ConditionRefused as refused:
        raise QuestionRefused(str(refused)) from None
    least = bundle.manifest.get("minimum_set_size")
    least = least if isinstance(least, int) else None
    said = bundle.verdict.on((*_kept(question, where, part), *where.columns))
    too_low = bundle.too_low if question.measure in _OF_ROWS else ""
    figures = _own_figures(bundle, question, where)
    if figures is not None:
        own = tuple(_own_rows(bundle, question, where, figures, least))
        return Answer(question, own, figures.interval, least, verdict=said, too_low=too_low)
    table = grouped_counts(bundle, question, where, part)
    if table.groups > MOST_GROUPS:
        raise QuestionRefused(
            f"The question asks for {table.groups:,} groups, and {MOST_GROUPS:,} are allowed. Name fewer "
            "columns after by."
        )
    measure = Measure(question.measure, question.of, question.level, part if question.part else None)
    rows = tuple(_rows(table, measure, least))
    return Answer(question, rows, _interval(table, measure), least, verdict=said, too_low=too_low)


def grouped_counts(
    bundle: Bundle, question: Question, where: Condition = EVERY_ROW, part: Condition = EVERY_ROW
) -> GroupedCounts:
    """The counts that a question is answered from.

    Masks of columns that the question doesn't name otherwise are taken out before the model is asked, unless
    the exam has all columns.

    Raises:
        QuestionRefused: the columns have too many cells together.
    """
    kept = _kept(question, where, part)
    clique = tuple(dict.fromkeys((*kept, *where.columns)))
    columns = {c.name: c for c in bundle.rows.layout.columns}
    counted = public_or_measured(bundle.rows.public_marginals, bundle.measured, clique)
    if counted is None and frozenset(clique) in bundle.distances:
        counted = examined(bundle.model.marginal(clique), clique, bundle.distances, bundle.measured, "model")
    if counted is None:
        clique, counted = kept, by_the_model(bundle.model, kept, where)
    counted = of_all_rows(counted, bundle.sampled)
    return GroupedCounts(tuple(columns[c] for c in clique), len(question.by), counted, where)


_OF_SUMS = "95 %: noise, and numbers beyond the limit of a row, which were cut off."
_OF_PIECES = "95 %: noise, and values that are unknown inside pieces of bins."


@dataclass(frozen=True)
class _OwnFigures:
    """Figures by group that were measured by a question of their own.

    Attributes:
        basis: their basis.
        interval: the claim of their intervals.
        figure: from the number of a group to its figure, and the rows that it rests on.
    """

    basis: str
    interval: str
    figure: Callable[[int], tuple[Estimate, float]]


def _own_figures(bundle: Bundle, question: Question, where: Condition) -> _OwnFigures | None:
    """The figures of a mean, a sum or a quantile with a question of its own; None for any other question."""
    clique = (*question.by, *question.of)
    if where.factors or not set(where.masks) <= set(question.by) or not bundle.measured.covers(clique):
        return None
    columns = {c.name: c for c in bundle.rows.layout.columns}
    sums = sums_of(clique, bundle.sums) if question.measure in ("mean", "sum") else None
    if sums is not None:
        means = summed_means(sums, columns[sums.column], bundle.measured)
        totals, errors = total_of_sums(sums, columns[sums.column], bundle.measured)

        def mean(number: int) -> tuple[Estimate, float]:
            value, low, high = (float(figure[number]) for figure in (means.mean, means.low, means.high))
            return Estimate(value, low, high), float(means.rows[number])

        def total(number: int) -> tuple[Estimate, float]:
            value, reach = float(totals[number]), Z95 * float(np.broadcast_to(errors, totals.shape)[number])
            return Estimate(value, value - reach, value + reach), float(means.rows[number])

        return _OwnFigures("measured sum", _OF_SUMS, mean if question.measure == "mean" else total)
    finer = finer_counts_of(clique, bundle.finer) if question.measure == "quantile" else None
    if finer is None:
        return None
    quantiles = FinerQuantiles(finer, columns[finer.column], bundle.measured)
    return _OwnFigures("measured", _OF_PIECES, lambda number: quantiles.figure(number, question.level))


def _own_rows(
    bundle: Bundle, question: Question, where: Condition, figures: _OwnFigures, least: int | None
) -> Iterator[AnswerRow]:
    """A row for each group that the condition leaves."""
    columns = {c.name: c for c in bundle.rows.layout.columns}
    groups = [(label,) for label in columns[question.by[0]].labels] if question.by else [()]
    mask = where.masks.get(question.by[0]) if question.by else None
    for number, group in enumerate(groups):
        if mask is not None and not mask[number]:
            continue
        found, rows = figures.figure(number)
        if least is not None and rows < least:
            yield AnswerRow(group, UNDEFINED, None, "withheld")
        else:
            yield AnswerRow(group, found, rows, figures.basis)


def _kept(question: Question, where: Condition, part: Condition) -> Clique:
    """The columns whose cells an answer is made from, those of the groups first."""
    of_factors = (c for factor in where.factors for c in factor.columns)
    return tuple(dict.fromkeys((*question.by, *question.of, *part.columns, *of_factors)))


def by_the_model(model: MarkovRandomField, kept: Clique, where: Condition) -> ModelCells:
    """The model's counts of the cells of some columns, among rows that the masks of a condition allow.

    Raises:
        QuestionRefused: the columns have too many cells together.
    """
    cells = model.tree.domain.cells(kept)
    if cells > MOST_CELLS:
        raise QuestionRefused(
            f"The question joins columns with {cells:,} combinations of values ({', '.join(kept)}); "
            f"{MOST_CELLS:,} are allowed. Name fewer of them."
        )
    masks = {column: mask for column, mask in where.masks.items() if not mask.all()}
    log_share = answers.log_probability(model, masks)
    if log_share == -inf:
        return ModelCells(np.zeros(model.tree.domain.shape(kept)))
    rows = model.total * exp(log_share)
    return ModelCells(rows * np.asarray(answers.conditional(model, kept, masks, limit=MOST_CELLS)))


def _rows(table: GroupedCounts, measure: Measure, least: int | None) -> Iterator[AnswerRow]:
    """The rows of an answer; a group that the condition excludes has none."""
    for number in range(table.groups):
        if table.by and not table.possible(number):
            continue
        labels = table.labels(number)
        found, rows = table.figure(number, measure)
        if least is not None and rows < least:
            yield AnswerRow(labels, UNDEFINED, None, "withheld")
            continue
        shown = found if found.sound and table.counted.limits == HOLDS else Estimate(found.value)
        # No row satisfies a condition that the declared values exclude.
        basis = table.counted.basis if table.possible(number) else "public"
        yield AnswerRow(labels, shown, rows, basis)


def _interval(table: GroupedCounts, measure: Measure) -> str:
    """The claim of the intervals of an answer, or the reason why there is none."""
    if table.counted.limits != HOLDS:
        return (
            "None: the number is the model's, as its columns were not measured together. How far the model "
            "may be from the private table is not known for it, because exam.csv doesn't have these columns."
        )
    if table.where.cut and measure.kind != "count":
        return f"None: the condition cuts through bins of {', '.join(table.where.cut)}."
    wide = [c.name for c in table.columns if c.name in measure.of and np.any(c.codec.half_widths)]
    if measure.kind == "correlation" and wide:
        return f"None: it is the correlation of bins, and those of {', '.join(wide)} hold several values."
    if table.counted.basis == "model":
        return (
            "95 %: the measured distance of the synthetic table in these columns (exam.csv), and values "
            "that are unknown inside bins."
        )
    return "95 %: noise, and values that are unknown inside bins."
