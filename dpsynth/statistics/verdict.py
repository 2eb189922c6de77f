"""The verdict of a release on itself: each column and each pair to be used, with care, or not.

Everything in it follows from public facts: noisy counts, the finished synthetic table, and the exam.

Invariant: a pure function of answers and public facts. Neighbours that give the same answers get the same
verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import log, pi, sqrt
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.layout import Layout
from dpsynth.columns.statistic_kinds import Asked
from dpsynth.figures import count, listed
from dpsynth.statistics.cut_off import CutOff, percent
from dpsynth.statistics.estimates import Z95
from dpsynth.statistics.exam import Basis, Exam

if TYPE_CHECKING:
    import pandas as pd

Use = Literal["use", "with care", "don't use"]
USES: tuple[Use, ...] = get_args(Use)
"""From the best to the worst."""

MOST_SHOWN = 100
"""Columns whose pairs a page shows as a matrix, and are judged without an exam; the pairs of more are not."""

USABLE = 0.05
"""Largest error of what is to be used, by its upper limit, and least of what is not, by its lower limit."""
UNUSABLE = 0.1
"""Error, beyond chance, from which on a column or a pair is not to be used."""
DEVIATIONS = 1.64
"""Standard deviations to a limit: one error in 20 is above, or below."""
CONTRADICTION = 0.05
"""Distance of a column from its own counts, beyond noise, that is a contradiction."""
_SURE = 5.0
"""Standard deviations of the noise's share in such a distance that never are noise."""
_WIDER = 1.3
"""Least upper limit of a column's error, in estimates of it."""
_FINE = 0.3
"""Largest error of a pair that is taken for chance. If chance makes more, cells are too fine to tell."""
_FEW = 5
"""Pairs of a basis that say what errors of its pairs are usual."""
_OVER = 3.0
"""Standard deviations above which no noise lifts a column's count, or an exam's error, among all others."""
_OUT_OF = 40
"""Columns of which noise alone lifts a value in one above what passes for noise."""
_CHANGED = 0.01
"""Least share of a column that rules changed, of which its verdict speaks."""
_LINES = 5
_PAIR = 2

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """The verdict on one column or one pair.

    Attributes:
        columns: the column, or the two in table order.
        verdict: the verdict.
        why: one sentence or two.
        error: share of the rows that are off; None if nothing says how large. Of a column, estimated: the
            share of all rows, or of those with a value, in the wrong cell. Of a pair, that of exam.csv.
        basis: of a pair, how the model has the relation, see ``exam.BASES``; "" of a column.
        beyond_noise: of a column, the distance of the finished table from its own noisy counts, less what
            noise explains: a share of the rows, above 0 only if it can't be by chance.
        changed: of a column, the share of the drawn rows whose cell rules changed.
    """

    columns: tuple[str, ...]
    verdict: Use
    why: str
    error: Annotated[float, Field(ge=0)] | None = None
    basis: str = ""
    beyond_noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    changed: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def name(self) -> str:
        return " with ".join(self.columns)

    @property
    def rank(self) -> tuple[int, float]:
        return USES.index(self.verdict), self.error or 0.0


Outcome = Literal["met", "not met", "can't be told"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Criterion:
    """An acceptance criterion, judged.

    Attributes:
        asked: its keys in the configuration.
        words: what it asks, as a sentence.
        outcome: the outcome.
        why: one sentence.
        odds: the largest probability that noise makes a "met", or a "not met", false; 0 if noise has no part.
    """

    asked: Mapping[str, object]
    words: str
    outcome: Outcome
    why: str
    odds: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def line(self) -> str:
        return f"{self.outcome.capitalize()}: {self.words} {self.why}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The verdicts on all columns and pairs of a release.

    Attributes:
        columns: of the columns that were read from the private table, in table order; then of those that are
            computed from them.
        pairs: of all pairs that were examined, and of all others of a small table.
        rows: a sentence if counts of rows are much too low, as many were cut off; otherwise "".
        criteria: the acceptance criteria of the configuration.
        links: a sentence on how rows follow each other; otherwise "".
    """

    columns: tuple[Judgement, ...]
    pairs: tuple[Judgement, ...]
    rows: str = ""
    criteria: tuple[Criterion, ...] = ()
    links: str = ""

    def beside(self, cut: CutOff | None) -> Verdict:
        return self if cut is None or not cut.large else replace(self, rows=cut.too_low)

    @property
    def contradictions(self) -> tuple[Judgement, ...]:
        """The columns that contradict their own counts beyond noise."""
        return tuple(c for c in self.columns if c.beyond_noise > CONTRADICTION)

    @property
    def unmet(self) -> tuple[Criterion, ...]:
        """The criteria that are not met, then those of which it can't be told."""
        return tuple(c for outcome in OUTCOMES[1:] for c in self.criteria if c.outcome == outcome)

    @property
    def lines(self) -> tuple[str, ...]:
        """At most five lines: numbers of verdicts, criteria, rows, links, the worst columns and pair."""
        head = f"Columns: {_numbers(self.columns)}."
        if self.pairs:
            head = f"{head} Pairs of columns: {_numbers(self.pairs)}."
        worst = sorted((c for c in self.columns if c.verdict != USES[0]), key=lambda c: c.rank, reverse=True)
        # A pair is no better than its columns: what is said of these is not said once more.
        bad = {name for c in self.columns if c.verdict == USES[-1] for name in c.columns}
        apart = [p for p in self.pairs if p.verdict == USES[-1] and not bad.intersection(p.columns)]
        apart.sort(key=lambda p: p.rank, reverse=True)
        rows = (*self._of_criteria, *(words for words in (self.rows, self.links) if words))
        places = _LINES - 1 - len(rows)
        chosen = [*worst[: places - bool(apart)], *apart][:places]
        return (head, *rows, *(f"{one.verdict.capitalize()}: {one.name}. {one.why}" for one in chosen))

    @property
    def _of_criteria(self) -> tuple[str, ...]:
        """A line on the criteria; one more on the first that is not met."""
        if not self.criteria:
            return ()
        found = Counter(one.outcome for one in self.criteria)
        head = f"Criteria: {', '.join(f'{found[outcome]:,} {outcome}' for outcome in OUTCOMES)}."
        return (head, *(one.line for one in self.unmet[:1]))

    def on(self, columns: Sequence[str]) -> str:
        """The worst verdict on some columns and their pairs, with its reason; "" if none of them is judged.

        It also names the pairs among them that the model takes to be independent.
        """
        found = [one for one in (*self.columns, *self.pairs) if {*columns}.issuperset(one.columns)]
        if not found:
            return ""
        worst = max(found, key=lambda one: one.rank)
        said = f"{worst.verdict}: {worst.name}. {worst.why}"
        apart = [one.name for one in found if one.basis == "independent" and one is not worst]
        return f"{said} Taken to be independent: {', '.join(apart)}." if apart else said

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The verdicts as a pandas table: columns first, then pairs."""
        import pandas as pd

        rows = [((*one.columns, "")[:_PAIR], one) for one in (*self.columns, *self.pairs)]
        cells = [(*names, one.verdict, one.error, one.why) for names, one in rows]
        return pd.DataFrame(cells, columns=["column_1", "column_2", "verdict", "error", "why"])

    def __repr__(self) -> str:
        return "\n".join(self.lines)


NO_VERDICT = Verdict((), ())


@dataclass(frozen=True)
class Finished:
    """The public facts of a finished release that its criteria are judged by.

    Attributes:
        requests: the tables of statistics that were asked for.
        tables: these, with a row a figure.
        pieces: the codes of the synthetic rows, piece by piece.
    """

    verdict: Verdict
    exam: Exam | None
    domain: Domain
    requests: Sequence[Asked]
    tables: Sequence[pd.DataFrame]
    pieces: Callable[[], Iterator[Mapping[str, NDArray[np.unsignedinteger]]]]


def _numbers(judged: Sequence[Judgement]) -> str:
    found = Counter(one.verdict for one in judged)
    return ", ".join(f"{found[verdict]:,} {verdict}" for verdict in USES)


@dataclass(frozen=True, eq=False)
class Judged:
    """The public facts that a verdict follows from.

    Attributes:
        counts: their noisy counts, float64[codes], and the noise's standard deviation; without those of a
            column that is public.
        table: counts of the finished table, float64[codes] for each column, scaled to ``rows``.
        drawn: number of rows of the finished table.
        changed: share of the drawn rows whose cell rules changed, by column.
        computed: for each derived column, the columns above that it is computed from.
    """

    columns: Sequence[Column]
    counts: Mapping[str, tuple[Numbers, float]]
    table: Mapping[str, Numbers]
    rows: float
    drawn: int
    basis: Basis
    exam: Exam | None = None
    changed: Mapping[str, float] = field(default_factory=dict)
    computed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        layout: Layout,
        codes: Mapping[str, NDArray[np.int64]],
        counts: Mapping[str, tuple[Numbers, float]],
        *,
        rows: float,
        basis: Basis,
        exam: Exam | None,
        changed: Mapping[str, float],
    ) -> Judged:
        """The facts about a finished table.

        Args:
            codes: its rows of each code, int64[codes] for each of the layout's columns.
        """
        drawn = max((int(found.sum()) for found in codes.values()), default=0)
        scale = np.float64(rows / max(drawn, 1))
        table = {name: np.asarray(found * scale, np.float64) for name, found in codes.items()}
        return cls(layout.columns, counts, table, rows, drawn, basis, exam, changed, layout.computed)

    def verdict(self) -> Verdict:
        pairs = list(self._pairs())
        columns = {column.name: self._ruled(self._column(column, pairs)) for column in self.columns}
        together = tuple(_no_better(p.judged, columns) for p in pairs)
        found = {one.columns: one for one in (*columns.values(), *together)}
        derived = [_derived(name, tuple(given), found) for name, given in self.computed.items() if given]
        return Verdict((*columns.values(), *derived), together, links=self._links)

    @property
    def _links(self) -> str:
        links = None if self.exam is None else self.exam.links
        if links is None:
            return ""
        error, low, high = map(percent, (links.mean_error, links.low, links.high))
        itself = "From row to row of a person, a column with itself in the row before is"
        return f"{itself} {error} off on average ({low} to {high})."

    def _ruled(self, one: Judgement) -> Judgement:
        """A column that says how often rules changed it; what that did to its error is judged already."""
        share = self.changed.get(one.name, 0.0)
        said = f"{one.why} Rules changed {percent(share)} of it." if share >= _CHANGED else one.why
        return replace(one, why=said, changed=share)

    def _column(self, column: Column, pairs: Sequence[_Pair]) -> Judgement:
        counted = self.counts.get(column.name)
        if counted is None:
            return Judgement((column.name,), "use", "Its counts are public, so no noise is in them.")
        look = _Look(column, *counted, self.table[column.name], self.rows, self.drawn)
        found = look.verdict()
        # No pair is nearer to the private table than its columns are.
        limits = [p.surely for p in pairs if p.surely is not None and column.name in p.judged.columns]
        if found.verdict == USES[1] and min(limits, default=1.0) <= USABLE * look.valued:
            share = percent(min(limits) / look.valued)
            return replace(found, verdict="use", why=f"At most {share} of its values are off.")
        return found

    def _pairs(self) -> Iterator[_Pair]:
        names = [column.name for column in self.columns]
        exam = None if self.exam is None or self.exam.distances is None else self.exam
        if exam is None:
            for pair in combinations(names, _PAIR) if len(names) <= MOST_SHOWN else ():
                basis = self.basis.of(pair)
                why = f"{_HAD[basis]} How far it is from the private table was not measured."
                yield _Pair(Judgement(pair, "with care", why, None, basis), None)
            return
        spots = [i for i, e in enumerate(exam.examined) if e.kind == "pair"]
        usual = {basis: exam.raw[[i for i in spots if exam.bases[i] == basis]] for basis in {*exam.bases}}
        for i in spots:
            yield self._examined(exam, i, usual[exam.bases[i]])

    def _examined(self, exam: Exam, spot: int, usual: Numbers) -> _Pair:
        raw, error, basis = float(exam.raw[spot]), exam.standard_error, exam.bases[spot]
        pair, shown = exam.examined[spot].clique, min(max(raw, 0.0), 1.0)
        mean, spread = _posterior(raw, error, usual)
        # No error is below 0, so noise that is larger than a limit never tells that one is kept.
        low, high = mean - DEVIATIONS * spread, max(mean, 0.0) + DEVIATIONS * spread
        if low > USABLE and mean > UNUSABLE and mean - min(self._chance(pair), _FINE) > UNUSABLE:
            found: Use = "don't use"
        elif high <= USABLE and basis != "independent":
            found = "use"
        else:
            found = "with care"
        why = f"{percent(shown)} of the rows are off (standard error {percent(error)}). {_HAD[basis]}"
        return _Pair(Judgement(pair, found, why, shown, basis), max(raw, 0.0) + _OVER * error)

    def _chance(self, pair: Clique) -> float:
        """Error by chance alone of a pair whose columns are independent; a share of the rows.

        Two tables of n rows that are drawn from one population differ by about 2 m / sqrt(1 + pi m) rows in a
        cell of m rows.
        """
        one, two = (self.table[column] for column in pair)
        expected = np.outer(one, two) / max(self.rows, 1.0)
        return float((expected / np.sqrt(1.0 + pi * expected)).sum()) / max(self.rows, 1.0)


_HAD: Mapping[str, str] = {
    "measured": "The two were measured together.",
    "public": "Their counts are public.",
    "earlier": "The two were found together in earlier releases or a public table only.",
    "through others": "The two were not measured together: they are related through other columns only.",
    "independent": "These two were taken to be independent.",
}
"""Origin of a relation, as a sentence."""


@dataclass(frozen=True)
class _Pair:
    """The verdict on a pair, and the error that it surely doesn't exceed; None if it was not examined."""

    judged: Judgement
    surely: float | None


def _no_better(pair: Judgement, columns: Mapping[str, Judgement]) -> Judgement:
    worst = max((columns[name] for name in pair.columns), key=lambda one: one.rank)
    if USES.index(worst.verdict) <= USES.index(pair.verdict):
        return pair
    return replace(pair, verdict=worst.verdict, why=f"{pair.why} {worst.name}: {worst.why}")


def _derived(name: str, given: tuple[str, ...], found: Mapping[tuple[str, ...], Judgement]) -> Judgement:
    """A column that is computed from others, by the verdicts on these and their pairs.

    Its error is at most that of the marginal of all that it is computed from, up to the width of bins. If
    these are more than two, or a pair that was not examined, nothing says how large that is.
    """
    if whole := found.get(given):
        they = "that column is" if len(given) == 1 else "the two are together"
        why = f"It is computed from {listed(given)}, and no better than {they}. {whole.why}"
        return Judgement((name,), whole.verdict, why, whole.error)
    some = [one for columns, one in found.items() if {*given}.issuperset(columns)]
    worst = max(some, key=lambda one: one.rank)
    found_use = worst.verdict if worst.verdict == USES[-1] else USES[1]
    why = f"It is computed from {listed(given)}, whose relation as a whole was not measured."
    if worst.verdict != USES[0]:
        why = f"{why} {worst.name}: {worst.why}"
    return Judgement((name,), found_use, why)


def _posterior(raw: float, error: float, usual: Numbers) -> tuple[float, float]:
    """Posterior mean and standard deviation of an error: empirical Bayes over the pairs of its basis."""
    if len(usual) < _FEW:
        return raw, error
    middle, of_mean = float(usual.mean()), error / sqrt(len(usual))
    # Errors vary by half of their mean at least, which may itself be larger than noise lets it seem.
    varies = max(float(usual.var()) - error**2, ((max(middle, 0.0) + of_mean) / 2) ** 2)
    weight = varies / (varies + error**2)
    spread = weight * error**2 + ((1 - weight) * of_mean) ** 2
    return middle + weight * (raw - middle), sqrt(spread)


@dataclass(frozen=True, eq=False)
class _Look:
    """A look at one column of a finished table, by its own noisy counts.

    The column with k cells has noisy counts y of standard deviation s. The finished table, scaled to n rows,
    has counts t. The column's error is the share of rows in the wrong cell. The table follows the noise in
    the cells that it really has, those with t > s. With a such cells Stein's unbiased estimate of the squared
    error is

        sum (t - y)^2 + s^2 (2a - k).

    The error is that of normal errors of this size in a cells, or that of the noise in these cells if it is
    more. It is taken of all rows, or of the rows with a value if that is more. A column contradicts its
    counts if the distance sum |t - y| is more than noise in k cells, its chance and the rounding to whole
    rows explain.

    Attributes:
        noisy: its noisy counts, float64[codes].
        table: the finished table's counts, scaled to the private table's rows.
        drawn: rows of the finished table.
    """

    column: Column
    noisy: Numbers
    stddev: float
    table: Numbers
    rows: float
    drawn: int

    @property
    def _valued(self) -> slice:
        return slice(0, len(self.column.codec.labels))

    @cached_property
    def valued(self) -> float:
        known = max(float(self.table[self._valued].sum()), float(self.noisy[self._valued].sum()), 0.0)
        return min(known / max(self.rows, 1.0), 1.0)

    def _error(self, cells: slice, rows: float) -> float:
        table, noisy, s = self.table[cells], self.noisy[cells], self.stddev
        there = table > s
        most = int(there.sum())
        squared = float(np.square(table - noisy).sum()) + s * s * (2 * most - table.size)
        noise = _MEAN * s * most + float(table[~there].sum())
        return min(max(_MEAN * sqrt(max(squared, 0.0) * max(most, 1)), noise) / (2 * max(rows, 1.0)), 1.0)

    @cached_property
    def error(self) -> float:
        """Estimated share of rows in the wrong cell: of all, or of those with a value if that is more."""
        whole = self._error(slice(None), self.rows)
        return max(whole, self._error(self._valued, max(self.valued * self.rows, 1.0)))

    @cached_property
    def beyond_noise(self) -> float:
        """Distance from the noisy counts that neither noise nor rounding explains; 0 if that is by chance."""
        cells, twice = self.table.size, 2 * max(self.rows, 1.0)
        apart = float(np.abs(self.table - self.noisy).sum()) / twice
        explained = _MEAN * self.stddev * cells / twice + cells / (2 * max(self.drawn, 1))
        chance = _SURE * self.stddev * sqrt(cells * (1 - _MEAN**2)) / twice
        # Few rows by one noisy answer may have many in the counts of another one.
        return min(apart - explained, 1.0) if apart > explained + chance else 0.0

    @property
    def alone(self) -> bool:
        """True if no value can be told from noise, neither by its own count nor by the squares of all."""
        signal = self.noisy[self._valued] / max(self.stddev, 1e-9)
        cells = max(signal.size, 1)
        highest = sqrt(2 * log(_OUT_OF * cells))
        squares = float(np.square(signal).sum()) - cells
        return bool(signal.max(initial=0.0) < highest and squares < _OVER * sqrt(2 * cells))

    @property
    def unknown(self) -> int:
        """Number of listed values whose count can't be told from none."""
        codec = self.column.codec
        listed = codec.closed and not codec.ordered
        return int((self.noisy[self._valued] < Z95 * self.stddev).sum()) if listed else 0

    def verdict(self) -> Judgement:
        # Of few errors the sum varies more than of many: by 0.76/sqrt(a) of its mean.
        cells = max(int((self.table > self.stddev).sum()) - 1, 1)
        wider = max(1 + DEVIATIONS * sqrt((1 / _MEAN**2 - 1) / cells), _WIDER)
        found, why = self._found(min(wider * self.error, 1.0))
        if self.unknown and not self.alone:
            some = f"{self.unknown} of its {self._valued.stop} values"
            why = f"{why} Nothing is known of {some}: noise hides them."
        return Judgement((self.column.name,), found, why, self.error, beyond_noise=self.beyond_noise)

    def _found(self, high: float) -> tuple[Use, str]:
        whose = "its rows" if self.valued > UNUSABLE else "its rows with a value"
        if self.alone:
            return "don't use", (
                f"Its values are noise alone: none of the {self._valued.stop:,} values or bins has more rows "
                f"than noise may give it, which is {count(self.stddev)} rows for each."
            )
        if self.beyond_noise > CONTRADICTION:
            return "don't use", (
                "The table contradicts the column's own noisy counts: beyond all that noise explains, "
                f"{percent(self.beyond_noise)} of its rows are elsewhere."
            )
        if self.error > UNUSABLE:
            return (
                "don't use",
                f"Noise puts about {percent(self.error)} of {whose} in the wrong value or bin.",
            )
        if self.beyond_noise:
            return "with care", (
                f"The table is {percent(self.beyond_noise)} off the column's own noisy counts, beyond what "
                "noise explains."
            )
        if high <= USABLE:
            return "use", f"At most {percent(high)} of {whose} are off."
        return "with care", f"Noise may put up to {percent(high)} of {whose} in the wrong value or bin."


_MEAN = sqrt(2 / pi)
"""Mean size of a normal error, in standard deviations."""
