"""The rules of warnings: which noisy counts of single columns say that a table was misread.

A warning is raised only if the noise can't have caused it, except with a small probability (``CHANCE``). A
column is

*   empty, if certainly more than half of its cells are missing, and perhaps 95 % or more;
*   mostly missing, if certainly more than half of its cells are missing, and certainly fewer than 95 %;
*   in one place, if certainly more than 95 % of its cells count as one value, and perhaps all; more than 90 %
    if that value also takes undeclared ones;
*   misspelt in its declaration, if some declared values have certainly less than a quarter of an even share,
    and perhaps no row at all, while a full even share of the cells certainly has no declared value.

"Perhaps" is what the noise allows. In a small table it stands for "can't be told from".

A table is below its noise if its number of rows doesn't exceed the noise of the columns' sums; then nothing
is said about its columns.

Invariant: the rules see the answers and public facts, nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor

from dpsynth.diagnostics.noisy_rows import Limits, NoisyRows
from dpsynth.diagnostics.warning import DataWarning, WarningKind
from dpsynth.domain.column import Column
from dpsynth.domain.measurement import Measurement, OwnAnswer
from dpsynth.presentation.figures import count

MOSTLY = 0.5
"""Share of cells that are missing in a column that is mostly missing."""
NEARLY_ALL = 0.95
"""Share of cells that are missing in an empty column, or count as one value."""
DOUBTFUL = 0.9
"""Share of cells that count as one value which also takes undeclared ones: a bin that clips, or ``other``."""
OF_EVEN = 0.25
"""Part of an even share below which a declared value is unseen."""
_SHOWN = 6


def warnings_of(
    columns: Sequence[Column],
    answers: Sequence[OwnAnswer],
    found: Collection[str] = (),
    slice_column: str | None = None,
) -> tuple[DataWarning, ...]:
    """The warnings of a release, in the order of its columns.

    Args:
        columns: the columns, with their final domains.
        answers: the total and the noisy marginals of single columns. Columns without one, whose counts are
            public, were not asked for.
        found: names of the columns whose domain was found with a part of the budget.
        slice_column: the column that says which rows belong to the slice of the release; it may well have
            one value there.
    """
    singles = {m.clique[0]: m for m in answers if isinstance(m, Measurement) and m.clique}
    if not singles:
        return ()
    rows = NoisyRows.of(answers)
    if rows.below_noise:
        return (_small_table(rows),)
    asked = [_Look(c, c.name in found, singles[c.name], rows) for c in columns if c.name in singles]
    return tuple(
        warning
        for look in asked
        for warning in look.warnings()
        if warning.kind != "one_value" or warning.column != slice_column
    )


def _small_table(rows: NoisyRows) -> DataWarning:
    low, high = max(0.0, rows.rows - rows.reach), rows.rows + rows.reach
    if rows.variance:
        sentence = (
            f"The table seems to have {_counted(rows.rows)} (noise allows up to {count(high)}): it can't be "
            "told from an empty one."
        )
    else:
        low = high = rows.rows
        sentence = (
            f"The table has {_counted(rows.rows)}, fewer than the {count(rows.reach)} that noise may add or "
            "take away: its answers tell nothing."
        )
    return DataWarning(
        "small_table",
        None,
        True,
        {"rows": round(rows.rows, 1), "low": round(low, 1), "high": round(high, 1)},
        sentence,
        "If the table has more, see what is read of it with dpsynth check CONFIG: source.path or "
        "source.separator may be wrong, or a period without rows was asked for. If it is so small, "
        "release it with more rows or with a larger privacy.epsilon.",
    )


def _counted(rows: float) -> str:
    shown = count(max(0.0, rows))
    return f"{shown} row{'s' * (shown != '1')}"


@dataclass(frozen=True)
class _Look:
    """A look at the noisy counts of one column.

    Attributes:
        column: the column.
        found: true if its domain was found with a part of the budget.
        counts: its noisy counts.
        rows: the number of rows.
    """

    column: Column
    found: bool
    counts: Measurement
    rows: NoisyRows

    def warnings(self) -> Iterator[DataWarning]:
        """The faults of the column."""
        missing = self._missing
        if missing.low > MOSTLY and missing.high >= NEARLY_ALL:
            yield self._said(
                "empty_column",
                missing,
                f"about {_percent(missing)} of its cells are missing ({_allowed(missing)}), so hardly "
                "a value of it is known.",
                "They may be empty in the table: then leave the column out, for its values are little more "
                f"than noise. Or they can't be read. {self._declared} See with dpsynth check CONFIG how the "
                f"table writes them, and correct columns.{self.column.name}.",
                serious=True,
            )
            return
        if missing.low > MOSTLY:
            yield self._said(
                "mostly_missing",
                missing,
                f"about {_percent(missing)} of its cells are missing ({_allowed(missing)}).",
                "If they aren't empty in the table, see with dpsynth check CONFIG which of them can't be "
                f"read. {self._declared}",
            )
        one_value = list(self._one_value())
        yield from one_value or self._unseen()

    @property
    def _missing(self) -> Limits:
        """Share of cells that are empty or can't be read."""
        if not self.column.missing:
            return Limits(0.0, 0.0, 0.0)
        return self.rows.share(self.counts, [self.column.unusable])

    def _one_value(self) -> Iterator[DataWarning]:
        labels = self.column.codec.labels
        code = int(self.counts.values[: len(labels)].argmax())
        share = self.rows.share(self.counts, [code])
        takes = self._also_takes(code)
        if share.high < 1.0 or share.low <= (DOUBTFUL if takes else NEARLY_ALL):
            return
        also = f", which also takes {' and '.join(takes)}" if takes else ""
        if self.found:
            remedy = (
                "Its values were searched for, and hardly any were found. List or bound them, if that is "
                "public knowledge, or give the search a larger share with privacy.split.domain."
            )
        elif takes:
            remedy = f"{self._declared} Compare them, and their unit, with the table: dpsynth check CONFIG."
        else:
            remedy = "If that is so in the table, nothing is wrong; such a column may be left out."
        yield self._said(
            "one_value",
            share,
            f"about {_percent(share)} of its cells count as '{labels[code]}' ({_allowed(share)}){also}.",
            remedy,
            serious=bool(takes) and not self.found and share.low > NEARLY_ALL,
        )

    def _also_takes(self, code: int) -> list[str]:
        """The undeclared cells that a code takes, in words."""
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
        if elsewhere.low <= even:
            return
        shares = {code: rows.share(self.counts, [code]) for code in values}
        unseen = [code for code, s in shares.items() if s.low == 0.0 and s.high < OF_EVEN * even]
        if not unseen:
            return
        names = [codec.labels[code] for code in unseen]
        worst, s = max(shares[code].high for code in unseen), "s" * (len(names) > 1)
        yield DataWarning(
            "unseen_values",
            self.column.name,
            False,
            {"values": names, "high": round(worst, 4), "undeclared": round(elsewhere.estimate, 4)},
            f"Column {self.column.name}: hardly a cell, or none, has the declared value{s} {_listed(names)}, "
            f"while about {_percent(elsewhere)} of the cells have no declared value ({_allowed(elsewhere)}).",
            "The table may write them in another way: see with dpsynth check CONFIG, and correct "
            f"columns.{self.column.name}.values.",
        )

    @property
    def _declared(self) -> str:
        """The column's declared values, as a sentence."""
        codec = self.column.codec
        if codec.closed:
            return f"Its declared values are {_listed(codec.labels)}."
        ends = f"'{codec.labels[0]}' to '{codec.labels[-1]}'"
        facts = [f"{key} {codec.schema[key]}" for key in ("format", "pattern") if key in codec.schema]
        return f"Its declared values are {ends}{', with the ' if facts else ''}{' and the '.join(facts)}."

    def _said(
        self, kind: WarningKind, share: Limits, sentence: str, remedy: str, *, serious: bool = False
    ) -> DataWarning:
        figures = {"share": share.estimate, "low": share.low, "high": share.high}
        return DataWarning(
            kind,
            self.column.name,
            serious,
            {name: round(figure, 4) for name, figure in figures.items()},
            f"Column {self.column.name}: {sentence}",
            remedy,
        )


def _percent(share: Limits) -> str:
    return f"{100 * share.estimate:.0f} %"


def _allowed(share: Limits) -> str:
    return f"noise allows {floor(100 * share.low)} to {ceil(100 * share.high)} %"


def _listed(labels: Sequence[str]) -> str:
    """Labels in quotes: all of a short list, the first of a long one."""
    shown = ", ".join(f"'{label}'" for label in labels[:_SHOWN])
    return shown if len(labels) <= _SHOWN else f"{shown} and {len(labels) - _SHOWN} more"
