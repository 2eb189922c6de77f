"""Answers to a recipient's questions, each with estimate, interval and basis.

Means come from measured sums where there are some. Counts, and all that follows from them, come from public
marginals or measured answers where they cover all columns of a question, otherwise from the model. Answering
costs nothing: it is post-processing of what is published.

Invariant: an answer says what it rests on. A number by the model has no interval, because no error of it is
known to hold.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpsynth.domain.cell_values import Intervals
from dpsynth.domain.column import Column
from dpsynth.domain.domain import Clique
from dpsynth.publish.csv_safety import neutralise
from dpsynth.publish.summed_means import summed_means, sums_of
from dpsynth.recipient import estimates
from dpsynth.recipient.bundle import Bundle
from dpsynth.recipient.condition import Condition, condition_of
from dpsynth.recipient.estimates import Estimate, Group, Numbers
from dpsynth.recipient.question import Question, QuestionRefused, question_in
from dpsynth.recipient.sources import Counts, by_the_model, public_or_measured

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 10_000
"""Largest number of rows of an answer."""

FIGURES = ("estimate", "low", "high", "rows", "basis")


@dataclass(frozen=True)
class AnswerRow:
    """The answer for one group.

    Attributes:
        labels: the group's value in each column after ``by``.
        estimate: the number, with the ends of its 95 % interval; None where undefined or withheld.
        rows: estimated rows that it rests on; None where withheld.
        basis: "public", "measured", "measured sum" or "model"; "withheld" where the owner's minimum set
            size is not met, or the set overlaps that of an earlier question.
    """

    labels: tuple[str, ...]
    estimate: Estimate
    rows: float | None
    basis: str


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question.

    Attributes:
        question: the question as it was understood.
        rows: a row a group; one row without groups.
        interval: a sentence on what the intervals cover, or why there is none.
        minimum_set_size: the owner's rule; None without one.
        maximum_set_overlap: the owner's rule on overlapping questions; None without one.
    """

    question: Question
    rows: tuple[AnswerRow, ...]
    interval: str
    minimum_set_size: int | None = None
    maximum_set_overlap: int | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The answer as a pandas table: columns of the groups, estimate, low, high, rows, basis."""
        import pandas as pd

        return pd.DataFrame(list(self._lines()), columns=[*self.question.by, *FIGURES])

    def _lines(self) -> Iterator[tuple[object, ...]]:
        for row in self.rows:
            found = row.estimate
            yield (*row.labels, found.value, found.low, found.high, row.rows, row.basis)

    def to_json(self) -> dict[str, object]:
        """The answer as JSON values."""
        by = self.question.by
        return {
            "question": self.question.written,
            "measure": self.question.measure,
            "by": list(by),
            "interval": self.interval,
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
    where = condition_of(question.where, layout, bundle.rules)
    part = condition_of(question.part, layout, bundle.rules)
    least = bundle.manifest.get("minimum_set_size")
    least = least if isinstance(least, int) else None
    summed = _summed(bundle, question, where, least)
    if summed is not None:
        return Answer(question, tuple(summed), _OF_SUMS, least)
    kept = _kept(question, where, part)
    clique = tuple(dict.fromkeys((*kept, *where.columns)))
    columns = {c.name: c for c in layout.columns}
    counts: Counts | None = public_or_measured(source.public_marginals, bundle.of_all_rows, clique)
    if counts is None:
        clique, counts = kept, by_the_model(bundle.model, kept, where, bundle.sampled)
    groups = prod(columns[c].size for c in question.by)
    if groups > MOST_GROUPS:
        raise QuestionRefused(
            f"The question asks for {groups:,} groups, and {MOST_GROUPS:,} are allowed. Name fewer columns "
            "after by."
        )
    table = _Table(tuple(columns[c] for c in clique), counts, where, part)
    return Answer(question, tuple(_rows(question, table, least)), _interval(table, question), least)


_OF_SUMS = "95 %: noise, and numbers beyond the limit of a row, which were cut off."


def _summed(
    bundle: Bundle, question: Question, where: Condition, least: int | None
) -> list[AnswerRow] | None:
    """The rows of a mean whose sums were measured; None for any other question."""
    if question.measure != "mean" or where.factors or not set(where.masks) <= set(question.by):
        return None
    clique = (*question.by, *question.of)
    measured = sums_of(clique, bundle.sums)
    if measured is None or not bundle.measured.covers(clique):
        return None
    columns = {c.name: c for c in bundle.rows.layout.columns}
    found = summed_means(measured, columns[measured.column], bundle.measured)
    groups = [(label,) for label in columns[question.by[0]].labels] if question.by else [()]
    mask = where.masks.get(question.by[0]) if question.by else None
    rows = []
    for number, group in enumerate(groups):
        if mask is not None and not mask[number]:
            continue
        ends = (float(figure[number]) for figure in (found.mean, found.low, found.high))
        value, low, high = (None if np.isnan(end) else end for end in ends)
        of_group = float(found.rows[number])
        if least is not None and of_group < least:
            rows.append(AnswerRow(group, estimates.UNDEFINED, None, "withheld"))
        else:
            rows.append(AnswerRow(group, Estimate(value, low, high), of_group, "measured sum"))
    return rows


def _kept(question: Question, where: Condition, part: Condition) -> Clique:
    """The columns whose cells an answer is made from, those of the groups first."""
    of_factors = (c for factor in where.factors for c in factor.columns)
    return tuple(dict.fromkeys((*question.by, *question.of, *part.columns, *of_factors)))


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of the cells of some columns, those of the groups first, with the conditions on them."""

    columns: tuple[Column, ...]
    counts: Counts
    where: Condition
    part: Condition

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        return tuple(c.size for c in self.columns)

    def on_axis(self, name: str, values: Numbers) -> Numbers:
        """One number a code of a column, broadcast to all cells."""
        place = [c.name for c in self.columns].index(name)
        shape = [1] * len(self.columns)
        shape[place] = len(values)
        return np.broadcast_to(values.reshape(shape), self.shape)

    def weights(self, condition: Condition, which: str) -> Numbers:
        """The part of each cell's rows that satisfies a condition: "share", "least" or "most"."""
        names = [c.name for c in self.columns]
        found = np.ones(self.shape)
        for column, mask in condition.masks.items():
            if column in names:
                found = found * self.on_axis(column, mask.astype(np.float64))
        for factor in condition.factors:
            order = np.argsort([names.index(c) for c in factor.columns])
            shape = [1] * len(names)
            for c, size in zip(factor.columns, factor.share.shape, strict=True):
                shape[names.index(c)] = size
            found = found * getattr(factor, which).transpose(order).reshape(shape)
        return found

    def numbers(self, name: str, of_codes: Numbers | None) -> Numbers:
        """Numbers of a column's cells, 0 where missing, broadcast to all cells."""
        (column,) = (c for c in self.columns if c.name == name)
        values = np.zeros(column.size)
        if of_codes is not None:
            values[: len(of_codes)] = of_codes
        return self.on_axis(name, values)

    def present(self, name: str) -> Numbers:
        """1 where a column's cells have a value, else 0."""
        (column,) = (c for c in self.columns if c.name == name)
        return self.on_axis(name, (np.arange(column.size) < len(column.codec.labels)).astype(np.float64))


def _rows(question: Question, table: _Table, least: int | None) -> Iterator[AnswerRow]:
    """The rows of an answer; a group that the condition excludes has none."""
    by = table.columns[: len(question.by)]
    groups = prod(c.size for c in by)
    cells = table.counts.cells
    flat = cells.reshape(groups, -1)
    share, low, high = (table.weights(table.where, w).reshape(groups, -1) for w in ("share", "least", "most"))
    every = Group(
        flat.reshape(-1), share.reshape(-1), low.reshape(-1), high.reshape(-1), _variance(table, None)
    )
    measure = _Measure(question, table, every)
    for number in range(groups):
        if question.by and not high[number].any():
            continue
        group = Group(
            flat[number], share[number], low[number], high[number], _variance(table, (number, groups))
        )
        labels = np.unravel_index(number, [c.size for c in by]) if by else ()
        texts = tuple(c.labels[int(code)] for c, code in zip(by, labels, strict=True))
        found, rows = measure.of(group, number)
        if least is not None and rows < least:
            yield AnswerRow(texts, estimates.UNDEFINED, None, "withheld")
        else:
            yield AnswerRow(texts, found, rows, table.counts.basis)


def _variance(table: _Table, place: tuple[int, int] | None) -> estimates.Variance:
    """The variance of weighted sums of the cells of one group, or of all cells."""

    def variance(weights: Numbers) -> float | None:
        whole = weights
        if place is not None:
            number, groups = place
            whole = np.zeros((groups, weights.size))
            whole[number] = weights
        return table.counts.variance(whole.reshape(table.shape))

    return variance


@dataclass(frozen=True, eq=False)
class _Measure:
    """The measure of a question, for one group after another."""

    question: Question
    table: _Table
    every: Group

    def _of(self, values: Numbers, group: int) -> Numbers:
        """The part of an array of all cells that is a group's."""
        groups = prod(c.size for c in self.table.columns[: len(self.question.by)])
        return values.reshape(groups, -1)[group]

    def of(self, group: Group, number: int) -> tuple[Estimate, float]:
        """The estimate for a group, and the rows that it rests on."""
        measure, table = self.question.measure, self.table
        if measure == "count":
            return estimates.count(group), group.rows
        if measure == "share":
            return self._share(group, number)
        present = np.ones(table.shape)
        for name in self.question.of:
            present = present * table.present(name)
        held = group.within(self._of(present, number))
        columns = {c.name: c for c in table.columns}
        first = columns[self.question.of[0]]
        centres, half_widths = (
            self._of(table.numbers(first.name, v), number)
            for v in (first.codec.centres, first.codec.half_widths)
        )
        if measure == "sum":
            return estimates.total(held, centres, half_widths), held.rows
        has_value = self._of(present, number) > 0
        shown = _only(held, has_value)
        if measure == "mean":
            return estimates.mean(shown, centres[has_value], half_widths[has_value]), held.rows
        if measure == "quantile":
            ends = (self._of(table.numbers(first.name, end), number)[has_value] for end in _ends(first))
            return estimates.quantile(shown, self.question.level, *ends), held.rows
        second = columns[self.question.of[1]]
        other = self._of(table.numbers(second.name, second.codec.centres), number)
        exact = not any(bool(np.any(c.codec.half_widths)) for c in (first, second))
        found = estimates.correlation(shown, centres[has_value], other[has_value], exact=exact)
        return found, held.rows

    def _share(self, group: Group, number: int) -> tuple[Estimate, float]:
        if self.question.part is not None:
            named = {
                which: self._of(self.table.weights(self.table.part, which), number) for which in _WEIGHTS
            }
            part = Group(
                group.cells,
                group.share * named["share"],
                group.least * named["least"],
                group.most * named["most"],
                group.variance,
            )
            return estimates.share(group, part), group.rows
        mine = np.zeros((len(self.every.cells) // max(len(group.cells), 1), len(group.cells)))
        mine[number] = 1.0
        return estimates.share(self.every, self.every.within(mine.reshape(-1))), group.rows


_WEIGHTS = ("share", "least", "most")


def _only(group: Group, cells: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Group:
    """The group's cells where a column has a value; weights of all other cells are 0."""

    def variance(weights: Numbers) -> float | None:
        whole = np.zeros(cells.shape)
        whole[cells] = weights
        return group.variance(whole)

    return Group(group.cells[cells], group.share[cells], group.least[cells], group.most[cells], variance)


def _ends(column: Column) -> tuple[Numbers, Numbers]:
    """The lowest and the highest value of each cell with a number."""
    held = column.codec.cell_values
    if isinstance(held, Intervals):
        return held.low, held.high
    centres, half_widths = column.codec.centres, column.codec.half_widths
    assert centres is not None and half_widths is not None
    return centres - half_widths, centres + half_widths


def _interval(table: _Table, question: Question) -> str:
    """The claim of the intervals of an answer, or the reason why there is none."""
    if table.counts.basis == "model":
        return (
            "None: the number is the model's, as its columns were not measured together. How far the model "
            "may be from the private table is not known for it."
        )
    if table.where.cut and question.measure != "count":
        return f"None: the condition cuts through bins of {', '.join(table.where.cut)}."
    wide = [c.name for c in table.columns if c.name in question.of and np.any(c.codec.half_widths)]
    if question.measure == "correlation" and wide:
        return f"None: it is the correlation of bins, and those of {', '.join(wide)} hold several values."
    return "95 %: noise, and values that are unknown inside bins."
