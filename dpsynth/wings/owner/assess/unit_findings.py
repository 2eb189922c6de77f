"""Findings about who repeats in a table, and about columns that name persons, for the owner's eyes.

A release under ``unit: row`` protects each row of a person, and the person less. A published column of
numbers or names of persons gives them away. Neither shows in any cell that is misread.

Invariant: where rows are the units, all columns of the table are looked at, declared or not. A finding is
private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from dpsynth.columns.column import Column
from dpsynth.wings.owner.assess.column_guesses import ColumnTexts
from dpsynth.wings.owner.assess.findings import Finding, examples, keys
from dpsynth.wings.owner.assess.identifier_forms import FREE_TEXT, NAMES, Form
from dpsynth.wings.owner.assess.unit_guesses import NUMBERS, Repeating

_ABOUT = "privacy.unit"
_REMEDY = (
    "if they are, protect them, before the first release; an account that has releases of rows goes on with "
    "persons by dpsynth ledger unit"
)


class UnitTally:
    """Who repeats, by all columns of a table, in one pass and bounded memory."""

    def __init__(self, names: Sequence[str], declared: Sequence[Column], *, rows: bool) -> None:
        """No row of a table.

        Args:
            names: all columns of the table.
            declared: the columns of the config that are published.
            rows: True if rows, or events, are the units.
        """
        self._texts = ColumnTexts(
            list(names) if rows else [column.name for column in declared if not column.part_of]
        )
        self._declared = [column.name for column in declared if not column.part_of]
        self._rows = rows

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        """Count the rows of a batch."""
        self._texts.add(batch)

    def findings(self) -> Iterator[Finding]:
        """Questions about the unit, then the columns that name persons."""
        who = self._texts.who()
        if self._rows:
            yield from self._about_unit(who)
        for name in self._declared:
            form = self._texts.forms[name] or (NUMBERS if name in who.columns else None)
            if form is not None:
                yield self._about_column(name, form)

    def _about_unit(self, who: Repeating) -> Iterator[Finding]:
        if who.unit is not None:
            unit = who.unit
            kind = {} if unit.kind == "person" else {"kind": unit.kind}
            yield Finding(
                _ABOUT,
                self._texts.texts[unit.column].rows,
                f"{unit.question} The unit is one row, so whoever has several is protected less than the "
                "config says of a row",
                _REMEDY,
                keys({"unit": {"column": unit.column, "max_rows": unit.max_rows, **kind}}),
                tuned=True,
            )
        for question in who.questions:
            # A finding ends with a full stop.
            what = question.removesuffix(".") if question.endswith(".") else f"{question} The unit is one row"
            yield Finding(_ABOUT, 0, what, _REMEDY)

    def _about_column(self, name: str, form: Form) -> Finding:
        texts = self._texts.texts[name]
        what = (
            f"its values are {form.words}"
            if form in (NAMES, FREE_TEXT)
            else f"its values look like {form.words}"
        )
        return Finding(
            name,
            texts.rows,
            f"{what}, and it is a column of the synthetic table: {examples(texts.counts)}",
            "leave it out, unless anybody may know who is in the table",
            keys({"type": "identifier"}),
        )
