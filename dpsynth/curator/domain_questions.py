"""Domain discovery: questions about the texts of a column whose domain is to be found privately.

Invariant: a question, its charge and the form of its answer depend on public arguments alone, never on
the texts in the table. Values that aren't public come out by partition selection only; all other answers are
counts in public cells, or choices among public cuts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.accounting.events import ExponentialEvent, SelectionEvent, ThresholdEvent
from dpsynth.columns.codec import INVALID, Codec, recorded_name
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.columns.number_texts import NumberFormat
from dpsynth.columns.numeric import NumericCodec
from dpsynth.curator import samplers
from dpsynth.curator.charging import WORTHLESS, PrivacyFilter
from dpsynth.curator.journal import Lost
from dpsynth.curator.table import Engine, TextCounts
from dpsynth.errors import BudgetRefused

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]
Run = tuple[int, int]
"""First cut of a run, and the one after its last."""

LONGEST = 200
"""Longest value that may be selected, in characters."""
_FIRST_PART = Fraction(9, 10)
"""Part of the remaining delta that an attempt takes; if its answer is lost, the next takes from the rest."""


class DomainQuestions(PrivacyFilter):
    """Questions about the columns of a table that keep their texts."""

    _table: Engine
    _texts_counted: dict[str, TextCounts]
    _numbers_read: dict[tuple[str, NumberFormat], Numbers]

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[Counts, float]:
        """Noisy numbers of rows in each cell of a public partition.

        Sensitivity: that of a marginal, as a row stands in one cell at most: ``neighbours.l1`` in L1 and
        ``neighbours.l2_squared`` in squared L2.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a cell.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        The cells are public; they may follow from earlier answers.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column keeps no texts.
        """
        self._check_texts(column)
        places = _digest([recorded_name(codec), list(codec.labels), dict(codec.schema)])
        question = {"ask": "counts", "column": column.name, "places": places}

        def exact() -> Counts:
            texts = self._texts(column)
            found = self._codes_of(column, texts, codec)
            counts = np.zeros(len(codec.labels), dtype=np.int64)
            np.add.at(counts, found[found != INVALID], texts.rows[found != INVALID])
            return counts

        values, bought = self._noisy(question, exact, price, self._calibration.counts)
        return values, bought.stddev

    def medians(self, column: Column, cuts: Numbers, runs: Sequence[Run], price: Fraction) -> Counts:
        """For each run of public cuts, the index of a cut near the median of the values between its ends.

        The rows of a run are those with values from its first cut to below its last one. The score of a cut
        is minus the absolute difference between its run's rows below the cut, and at it or above.

        Sensitivity: one unit moves the scores of run r by at most m_r, with sum m_r <= ``neighbours.l1``.
        Distribution: Pr[cut] ~ exp(score/scale), independently a run and with the same scale.
        Cost: that of one ``ExponentialEvent`` with sensitivity ``neighbours.l1`` for all runs together.

        Proof. No two runs share a value, so a row lies in one run at most, and moves the scores of that run
        alone, by one in either direction. One unit adds, removes or exchanges ``neighbours.l1`` rows at
        most, so the sum of the m_r is no larger, also where rows move from one run to another. The choice in
        run r has bounded range 2 m_r/scale: log ratios of its outcomes lie within an interval of that length.
        Log ratios of independent choices add up, and so do the intervals. So all choices together have
        bounded range 2 sum m_r/scale <= 2 l1/scale, from which the event's other costs follow.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column is no column of numbers that keeps its texts, the cuts don't rise,
                or a run is empty, out of range or overlaps with another.
        """
        self._check_texts(column)
        form = _number_format(column)
        cuts = np.asarray(cuts, dtype=np.float64)
        _check_runs(cuts, runs)
        if not runs:
            return np.zeros(0, dtype=np.int64)
        digest = sha256(cuts.astype("<f8").tobytes()).hexdigest()
        spans = sha256(json.dumps([list(run) for run in runs]).encode()).hexdigest()
        question = {"ask": "medians", "column": column.name, "cuts": digest, "runs": spans}

        def exact() -> Counts:
            texts = self._texts(column)
            return _balances(self._numbers(column, texts, form), texts.rows, cuts, runs)

        ends = np.cumsum([stop - start for start, stop in runs])[:-1]

        def ask(price: Fraction) -> tuple[Counts | Lost, ExponentialEvent]:
            event = self._calibration.quantiles(price).event

            def draw(scores: Counts) -> Counts:
                parts = zip(runs, np.split(scores, ends), strict=True)
                chosen = [run[0] + samplers.choose_index(part, event.scale) for run, part in parts]
                return np.array(chosen, dtype=np.int64)

            return self._ask(question, event, exact, draw), event

        return self._insist(price, ask)[0]

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Values that enough units hold, by partition selection.

        A value is a cell's text without blanks around it. Never selected are missing cells, the values
        ``known``, and texts that are longer than 200 characters or not printable.

        Sensitivity: one unit moves the number of units of at most ``neighbours.l1`` values, each by one.
        Distribution: with Laplace noise, ``samplers.select``; with Gaussian noise, the values
        whose number of units plus discrete Gaussian noise reaches a threshold. Noise is drawn for values
        that some unit holds, and for no others.
        Cost: that of ``SelectionEvent`` or ``ThresholdEvent``, with a delta of its own.

        A question lost to an interruption stays paid for, delta included. It is asked again from what is left
        of its delta; for that a tenth is held back.

        Args:
            delta: probability, over all attempts, that may be spent on a unit's own values.

        Raises:
            BudgetRefused: the budget or the delta of the release does not allow it, or interruptions
                have used them up.
            ValueError: the column keeps no texts, or the delta is not between 0 and 1.
        """
        self._check_texts(column)
        left = delta
        question = {"ask": "values", "column": column.name, "known": _digest(sorted(set(known)))}

        def ask(price: Fraction) -> tuple[tuple[str, ...] | Lost, SelectionEvent | ThresholdEvent]:
            nonlocal left
            if left <= delta / WORTHLESS:
                raise BudgetRefused(
                    "Interruptions used up the delta for finding values. Start a new release."
                )
            event = self._calibration.values(price, left * _FIRST_PART).event
            left -= event.delta
            return self._ask(
                question,
                event,
                lambda: self._held(column, known),
                lambda held: tuple(sorted(_selected(held, event))),
            ), event

        return self._insist(price, ask)[0]

    def _check_texts(self, column: Column) -> None:
        if column.name not in self._table.texts_kept:
            raise ValueError(f"the texts of column {column.name} are not kept")

    def _texts(self, column: Column) -> TextCounts:
        if column.name not in self._texts_counted:
            self._texts_counted[column.name] = self._table.texts_of(column.name)
        return self._texts_counted[column.name]

    def _numbers(self, column: Column, texts: TextCounts, form: NumberFormat) -> Numbers:
        key = column.name, form
        if key not in self._numbers_read:
            self._numbers_read[key] = texts.each(lambda cells: form.read(column.values_of(cells)))
        return self._numbers_read[key]

    def _codes_of(self, column: Column, texts: TextCounts, codec: Codec) -> Counts:
        if isinstance(codec, NumericCodec):
            # The texts are read as numbers once, for all questions.
            return codec.codes_of(self._numbers(column, texts, codec.form))
        return texts.each(lambda cells: codec.encode(column.values_of(cells)))

    def _held(self, column: Column, known: Iterable[str]) -> dict[str, int]:
        public = frozenset(known)

        def may_be_selected(cells: pa.StringArray) -> NDArray[np.bool_]:
            values = column.values_of(cells).to_pylist()
            return np.array([_selectable(v) and v not in public for v in values], dtype=np.bool_)

        texts = self._texts(column)
        spots = np.flatnonzero(texts.each(may_be_selected) & (texts.units > 0))
        values = texts.distinct.take(pa.array(spots)).to_pylist()
        return dict(zip(values, texts.units[spots].tolist(), strict=True))


def _selectable(value: str | None) -> bool:
    return value is not None and len(value) <= LONGEST and value.isprintable()


def _selected(held: dict[str, int], event: SelectionEvent | ThresholdEvent) -> list[str]:
    units = np.array(list(held.values()), dtype=np.int64)
    if isinstance(event, SelectionEvent):
        kept = samplers.select(units, event)
    else:
        kept = samplers.add_gaussian(units, event.sigma) >= event.threshold
    return [value for value, is_kept in zip(held, kept.tolist(), strict=True) if is_kept]


def _balances(numbers: Numbers, rows: Counts, cuts: Numbers, runs: Sequence[Run]) -> Counts:
    known = np.flatnonzero(~np.isnan(numbers))
    rising = known[np.argsort(numbers[known], kind="stable")]
    upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows[rising])])
    below = upto[np.searchsorted(numbers[rising], cuts, side="left")]
    # Rows at a cut or above it and below the end, less those below the cut and not below the start.
    return np.concatenate([-np.abs(below[b - 1] + below[a] - 2 * below[a:b]) for a, b in runs])


def _check_runs(cuts: Numbers, runs: Sequence[Run]) -> None:
    if cuts.ndim != 1 or not (np.diff(cuts) > 0).all() or np.isnan(cuts).any():
        raise ValueError("cuts must be rising numbers")
    rising = sorted(runs)
    if any(not 0 <= start < stop <= len(cuts) for start, stop in rising):
        raise ValueError("a run must be a range of the cuts, and hold one at least")
    if any(one[1] - 1 > two[0] for one, two in pairwise(rising)):
        raise ValueError("no two runs may share a value")


def _number_format(column: Column) -> NumberFormat:
    if not isinstance(column.search, NumberSearch):
        raise ValueError(f"column {column.name} has no numbers to be found")
    return column.search.form


def _digest(public: object) -> str:
    return sha256(json.dumps(public).encode()).hexdigest()
