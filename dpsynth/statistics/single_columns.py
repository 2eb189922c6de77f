"""Warnings about the private table: signs, in noisy counts of single columns, that it was misread.

A warning is raised only if the noise can't have caused it, except with a small probability (``CHANCE``).

Invariant: every field of a warning is a public fact, made of noisy answers and of the configuration. All
limits of a release hold together, but for a chance of ``CHANCE``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from math import ceil, floor, sqrt
from typing import Literal

import numpy as np
from jinja2 import Template

from dpsynth.accounting.calibration import noise_named
from dpsynth.columns.bins import WIDE
from dpsynth.columns.column import Column
from dpsynth.columns.measurement import LEAST_VARIANCE, ExactTotal, Measurement, OwnAnswer
from dpsynth.figures import count
from dpsynth.page_templates import environment, paragraphs

CHANCE = 1e-4
"""Probability that any limit of a release is wrong, because of the noise."""


@dataclass(frozen=True)
class Limits:
    """A noisy figure, and the limits that the noise allows it."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class NoisyRows:
    """The number of rows by the first answers.

    Attributes:
        rows: the public number if there is one, otherwise the average of the answers' sums.
        variance: its variance, in rows squared; 0 if it is public.
        reach: rows that the noise of the answers' average may come to, whether or not the number is public.
        deviations: standard deviations that no noise of the release exceeds, but for a small chance.
    """

    rows: float
    variance: float
    reach: float
    deviations: float

    @classmethod
    def of(cls, answers: Sequence[OwnAnswer]) -> NoisyRows:
        """The number of rows.

        Args:
            answers: the number of rows, noisy or public, and the noisy marginals of single columns; at least
                one of them is noisy.
        """
        noisy = [m for m in answers if isinstance(m, Measurement)]
        # A lower and an upper limit for each cell.
        limits = 2 * sum(m.values.size for m in noisy)
        each, single = (max(noise_named(m.noise).deviations(k, CHANCE) for m in noisy) for k in (limits, 1))
        precisions = [1.0 / _variance_of_sum(m) for m in noisy]
        own = 1.0 / sum(precisions)
        exact = [float(t.values) for t in answers if isinstance(t, ExactTotal)]
        if exact:
            return cls(exact[0], 0.0, single * sqrt(own), each)
        sums = (p * float(m.values.sum()) for p, m in zip(precisions, noisy, strict=True))
        return cls(own * sum(sums), own, single * sqrt(own), each)

    @property
    def below_noise(self) -> bool:
        return self.rows <= self.reach

    def share(self, answer: Measurement, codes: Sequence[int]) -> Limits:
        """Share of all rows that have one of some codes of a column; only for a table above its noise.

        A share is a ratio of two noisy numbers that are linear in the answers: a count M, and the number of
        rows N, averaged over its own answer and all columns' sums with weights by their precision. By
        Fieller's theorem its limits are the roots s of (M - sN)^2 = z^2 Var(M - sN), where z is a number of
        standard deviations. They are real if N exceeds z of its own; otherwise noise allows any share. With w
        the weight of M's own column in N, Var(M - sN) = Var(M)(1 - 2sw) + s^2 Var(N).
        """
        found = float(answer.values[list(codes)].sum())
        variance = max(answer.variance, LEAST_VARIANCE) * len(codes)
        weight, z2 = self.variance / _variance_of_sum(answer), self.deviations**2
        a = self.rows**2 - z2 * self.variance
        b = self.rows * found - z2 * weight * variance
        c = found**2 - z2 * variance
        if a <= 0:
            return Limits(min(max(found / self.rows, 0.0), 1.0), 0.0, 1.0)
        root = sqrt(max(b * b - a * c, 0.0))
        low, high = (min(max((b + side) / a, 0.0), 1.0) for side in (-root, root))
        return Limits(min(max(found / self.rows, low), high), low, high)


def _variance_of_sum(answer: Measurement) -> float:
    return max(answer.variance_of_sum, LEAST_VARIANCE)


WarningKind = Literal[
    "small_table",
    "empty_column",
    "mostly_missing",
    "one_value",
    "unseen_values",
    "unexpected_share",
    "partly_missing",
    "partly_other",
    "perhaps_clipped",
]
"""Written in manifests, but for those of ``FOR_THE_OWNER``."""

FOR_THE_OWNER: frozenset[WarningKind] = frozenset({"partly_missing", "partly_other", "perhaps_clipped"})
"""Signs that a healthy column may show too: a question to the table's owner, and nothing to publish."""


@dataclass(frozen=True)
class DataWarning:
    """A sign that the table was not read as its owner thinks.

    Attributes:
        kind: the kind of sign.
        column: the column; None for the whole table.
        serious: true if the column, or the table, tells nothing, so that a release of it is worth nothing.
        figures: the noisy figures that it rests on, as JSON values.
        sentence: the finding, for anybody.
        remedy: the remedy, for the table's owner.
    """

    kind: WarningKind
    column: str | None
    serious: bool
    figures: Mapping[str, float | Sequence[str]]
    sentence: str
    remedy: str

    @property
    def published(self) -> bool:
        """True if it stands in the bundle; otherwise it is for the owner alone."""
        return self.kind not in FOR_THE_OWNER

    @property
    def paragraph(self) -> str:
        return f"{self.sentence} {self.remedy}"


MOSTLY = 0.5
"""Share of cells that are missing in a column that is mostly missing."""

NEARLY_ALL = 0.95
"""Share of cells that are missing in an empty column, or count as one value."""

DOUBTFUL = 0.9
"""Share of cells that count as one value which also takes undeclared ones: a bin that clips, or ``other``."""

OF_EVEN = 0.25
"""Part of an even share below which a declared value is unseen."""

DRIFT = 0.02
"""Share by which an expected share may be exceeded: tables change."""

A_TENTH = 0.1
"""Share of cells that a misread may cost without a word."""

MANY_OTHERS = 0.25
"""Share of cells that ``other``, which was declared for some, takes without a word."""

MISSED = 0.025
"""Probability that a table without rows doesn't seem to be empty, by its number of rows alone."""

_SPIKE = 3
"""Times the cells of its neighbour that an end has where values seem to be clipped."""

_FEWEST_CELLS = 4

_SHOWN = 6

Shares = Mapping[str, Decimal | int]
"""The largest shares of cells that are expected, by the keys of ``Column.takers``, and of one value."""

_NONE: Mapping[str, Shares] = {}


def warnings_of(
    columns: Sequence[Column],
    answers: Sequence[OwnAnswer],
    found: Collection[str] = (),
    slice_column: str | None = None,
    expected: Mapping[str, Shares] = _NONE,
) -> tuple[DataWarning, ...]:
    """The warnings of a release, in the order of its columns.

    A column is

    *   empty, if certainly more than half of its cells are missing, and perhaps 95 % or more;
    *   mostly missing, if certainly more than half of its cells are missing, and certainly fewer than 95 %;
    *   in one place, if certainly more than 95 % of its cells count as one value, and perhaps all; more than
        90 % if that value also takes undeclared ones;
    *   misspelt in its declaration, if some declared values have certainly less than a quarter of an even
        share, and perhaps no row at all, while a full even share of the cells, and a tenth, certainly has no
        declared value.

    Codes that take more than one thing, such as missing, which takes what is empty and what can't be read,
    may have a share that is expected: by ``expected`` in the configuration. It takes the place of these
    rules: then the sign is a share that is certainly larger, by more than ``DRIFT``. Where no share is
    expected, a tenth of the cells that is missing, a quarter that counts as ``other``, or a tenth at an end
    that has more than three times the cells of its neighbour, is a question to the owner, and is not
    published: healthy columns show it too.

    "Perhaps" is what the noise allows. In a small table it stands for "can't be told from". A table is below
    its noise if its number of rows doesn't exceed the noise of the columns' sums; then nothing is said about
    its columns.

    Args:
        columns: the columns, with their final domains.
        answers: the total and the noisy marginals of single columns. Columns without one, whose counts are
            public, were not asked for.
        found: names of the columns whose domain was found with a part of the budget.
        slice_column: the column that says which rows belong to the slice of the release; it may well have
            one value there.
        expected: by column, the shares of cells that its owner expects.
    """
    singles = {m.clique[0]: m for m in answers if isinstance(m, Measurement) and m.clique}
    if not singles:
        return ()
    rows = NoisyRows.of(answers)
    if rows.below_noise:
        return (_small_table(rows),)
    asked = [
        _Look(c, c.name in found, singles[c.name], rows, expected.get(c.name, {}))
        for c in columns
        # Parts of moments are read from the cells of the moments, of which all is said.
        if c.name in singles and not c.part_of
    ]
    return tuple(
        warning
        for look in asked
        for warning in look.warnings()
        if warning.kind not in ("one_value", "perhaps_clipped") or warning.column != slice_column
    )


def empty_table(total: OwnAnswer) -> DataWarning | None:
    """The warning of a table that seems to have no rows, before its columns are asked for; None otherwise.

    The limit is what noise adds to nothing except with a probability of ``MISSED``: 1.96 standard deviations
    of Gaussian noise, 2.12 of Laplace noise, rounded up. So a table without rows gets the warning with a
    probability of at least 1 - ``MISSED``. A table of more than twice the limit gets it with at most
    ``MISSED``, and one of six standard deviations, if these are many rows, with about 0.00003, or 0.002 of
    Laplace noise. A public number has no noise, and says whether there are rows.
    """
    if isinstance(total, ExactTotal):
        none = {"rows": 0.0, "low": 0.0, "high": 0.0}
        return None if total.values > 0 else _warning("small_table", None, none, serious=True, rows=None)
    limit = ceil(total.stddev * noise_named(total.noise).deviations(1, MISSED))
    return _small_table(NoisyRows.of([total])) if total.values <= limit else None


def _small_table(rows: NoisyRows) -> DataWarning:
    noisy = bool(rows.variance)
    low, high = max(0.0, rows.rows - rows.reach), rows.rows + rows.reach
    ends = (rows.rows, low, high) if noisy else (rows.rows,) * 3
    figures = {name: round(end, 1) for name, end in zip(("rows", "low", "high"), ends, strict=True)}
    facts = {"rows": rows.rows, "noisy": noisy, "high": high, "reach": rows.reach}
    return _warning("small_table", None, figures, serious=True, **facts)


@cache
def _template() -> Template:
    texts = environment("statistics")
    texts.filters |= {"count": count, "counted": _counted}
    return texts.get_template("warnings.txt.j2")


def _warning(
    kind: WarningKind,
    column: str | None,
    figures: Mapping[str, float | Sequence[str]],
    *,
    serious: bool = False,
    **facts: object,
) -> DataWarning:
    sentence, remedy = paragraphs(_template(), kind, {"column": column, "key": f"columns.{column}", **facts})
    return DataWarning(kind, column, serious, figures, sentence, remedy)


def _counted(rows: float) -> str:
    shown = count(max(0.0, rows))
    return f"{shown} row{'s' * (shown != '1')}"


@dataclass(frozen=True)
class _Look:
    """A look at the noisy counts of one column.

    Attributes:
        found: true if its domain was found with a part of the budget.
        expected: the shares of cells that are expected.
    """

    column: Column
    found: bool
    counts: Measurement
    rows: NoisyRows
    expected: Shares

    def warnings(self) -> Iterator[DataWarning]:
        beyond = list(self._beyond_expected())
        certain = beyond or list(self._signs())
        yield from certain or self._questions()

    def _beyond_expected(self) -> Iterator[DataWarning]:
        for key, code in self._takers.items():
            if key not in self.expected:
                continue
            share = self._share(code)
            if share.low > float(self.expected[key]) + DRIFT:
                serious = share.low > MOSTLY and share.high >= NEARLY_ALL
                counted_as = self._counted_as(key, code)
                yield self._said("unexpected_share", share, serious=serious, counted_as=counted_as)

    @property
    def _takers(self) -> dict[str, int]:
        """The codes whose share is foreseeable, by key; cells that were found may be narrow or wide."""
        ends = ("first", "last") if self.found else ()
        return {key: code for key, code in self.column.takers.items() if key not in ends}

    def _counted_as(self, key: str, code: int) -> str:
        if key == "missing":
            return "are missing"
        takes = self._also_takes(code)
        return f"count as '{self.column.labels[code]}', which also takes {' and '.join(takes)}"

    def _share(self, code: int) -> Limits:
        return self.rows.share(self.counts, [code])

    def _questions(self) -> Iterator[DataWarning]:
        """Shares that a healthy column may have too, where nobody said what is expected."""
        for key, code in self.column.takers.items():
            if key in self.expected:
                continue
            kind: WarningKind
            share = self._share(code)
            if key == "missing" and A_TENTH < share.low <= MOSTLY:
                kind = "partly_missing"
            elif key == "other" and share.low > MANY_OTHERS and not self.found:
                kind = "partly_other"
            elif key in ("first", "last") and share.low > A_TENTH and self._stands_out(key, code, share):
                kind = "perhaps_clipped"
            else:
                continue
            yield self._said(kind, share, counted_as=self._counted_as(key, code), spike=_SPIKE)

    def _stands_out(self, key: str, code: int, share: Limits) -> bool:
        """True if an end has many more cells than its neighbour; zero is no end at which values are cut."""
        cells = len(self.column.codec.labels)
        schema = self.column.codec.schema
        edges = schema.get("edges")
        zero = schema.get("min") == "PT0S" or (isinstance(edges, list) and edges[0] == 0)
        natural = key == "first" and self.column.missing and zero
        if cells < _FEWEST_CELLS or natural:
            return False
        neighbour = self._share(code + 1 if key == "first" else code - 1)
        return share.low > _SPIKE * neighbour.high

    def _signs(self) -> Iterator[DataWarning]:
        missing = self._missing
        if missing.low > MOSTLY and missing.high >= NEARLY_ALL:
            yield self._said("empty_column", missing, serious=True, declared=self._declared)
            return
        if missing.low > MOSTLY:
            yield self._said("mostly_missing", missing, declared=self._declared)
        one_value = list(self._one_value())
        yield from one_value or self._unseen()

    @property
    def _missing(self) -> Limits:
        """Share of cells that are empty or can't be read; 0 where a share of them is expected."""
        if not self.column.missing or "missing" in self.expected:
            return Limits(0.0, 0.0, 0.0)
        return self.rows.share(self.counts, [self.column.unusable])

    def _one_value(self) -> Iterator[DataWarning]:
        labels = self.column.codec.labels
        code = int(self.counts.values[: len(labels)].argmax())
        codes = self._first_cells if code in self._first_cells else [code]
        share = self.rows.share(self.counts, codes)
        takes = self._also_takes(codes[0])
        if share.high < 1.0 or share.low <= (DOUBTFUL if takes else NEARLY_ALL):
            return
        if any(self.column.takers.get(key) == codes[0] for key in self.expected) or (
            "one_value" in self.expected and not takes
        ):
            return
        yield self._said(
            "one_value",
            share,
            serious=bool(takes) and not self.found and share.low > NEARLY_ALL,
            label="' to '".join(labels[c] for c in codes[:: max(len(codes) - 1, 1)]),
            takes=" and ".join(takes),
            found=self.found,
            declared=self._declared,
        )

    @property
    def _first_cells(self) -> list[int]:
        """Codes of numbers in a small first part of the range, where all rows are if bounds are too large."""
        centres = self.column.centres if self.column.codec.continuous else None
        if centres is None:
            return [0]
        return np.flatnonzero(centres <= centres[0] + (centres[-1] - centres[0]) / WIDE).tolist()

    def _also_takes(self, code: int) -> list[str]:
        column, last = self.column, len(self.column.codec.labels) - 1
        takes = []
        if code in column.codec.catch_all:
            clips = column.codec.ordered and not column.codec.closed
            beyond = {0: "whatever lies below", last: "whatever lies above"} if clips else {}
            takes.append(beyond.get(code, "every value that isn't declared"))
        if code in column.catch_all and code == column.fallback and not column.missing:
            takes.append("every cell that can't be read")
        return takes

    def _unseen(self) -> Iterator[DataWarning]:
        codec, rows = self.column.codec, self.rows
        if self.found or not codec.closed:
            return
        values = [code for code in range(len(codec.labels)) if code not in codec.catch_all]
        even = 1.0 / len(values)
        nowhere = [*codec.catch_all, *([self.column.unusable] if self.column.missing else [])]
        if not nowhere:
            return
        elsewhere = rows.share(self.counts, nowhere)
        allowed = sum(float(self.expected.get(key, 0)) for key in ("missing", "other"))
        if elsewhere.low <= max(even, allowed + A_TENTH):
            return
        shares = {code: rows.share(self.counts, [code]) for code in values}
        unseen = [code for code, s in shares.items() if s.low == 0.0 and s.high < OF_EVEN * even]
        if not unseen:
            return
        names = [codec.labels[code] for code in unseen]
        worst = max(shares[code].high for code in unseen)
        yield _warning(
            "unseen_values",
            self.column.name,
            {"values": names, "high": round(worst, 4), "undeclared": round(elsewhere.estimate, 4)},
            several=len(names) > 1,
            names=_listed(names),
            percent=_percent(elsewhere),
            allowed=_allowed(elsewhere),
        )

    @property
    def _declared(self) -> str:
        codec = self.column.codec
        if codec.closed:
            return f"Its declared values are {_listed(codec.labels)}."
        ends = f"'{codec.labels[0]}' to '{codec.labels[-1]}'"
        facts = [f"{key} {codec.schema[key]}" for key in ("format", "pattern") if key in codec.schema]
        return f"Its declared values are {ends}{', with the ' if facts else ''}{' and the '.join(facts)}."

    def _said(
        self, kind: WarningKind, share: Limits, *, serious: bool = False, **facts: object
    ) -> DataWarning:
        def about(what: str) -> str:
            return f"Column {name}: about {_percent(share)} of its cells {what} ({_allowed(share)})"

        name = self.column.name
        figures = {"share": share.estimate, "low": share.low, "high": share.high}
        rounded = {key: round(figure, 4) for key, figure in figures.items()}
        return _warning(kind, name, rounded, serious=serious, about=about, **facts)


def _percent(share: Limits) -> str:
    return f"{100 * share.estimate:.0f} %"


def _allowed(share: Limits) -> str:
    return f"noise allows {floor(100 * share.low)} to {ceil(100 * share.high)} %"


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(f"'{label}'" for label in labels[:_SHOWN])
    return shown if len(labels) <= _SHOWN else f"{shown} and {len(labels) - _SHOWN} more"
