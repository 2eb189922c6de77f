"""A look at a private table in Python: a guess of each column's declaration, for review.

Invariant: guesses are private facts, for their owner's eyes. They stay marked, and a release refuses them,
until the owner hands over what was reviewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import cast

from dpsynth.config import Spec
from dpsynth.config.section import Guessed, nearest
from dpsynth.config.yaml_reader import Value, parse_yaml
from dpsynth.errors import ConfigError
from dpsynth.pipeline.inputs import MemoryTable
from dpsynth.wings.owner.assess.profiling import look_at, look_in_memory
from dpsynth.wings.owner.starter import (
    Draft,
    Sketch,
    draft_in_memory,
    draft_of,
    guessed,
    release_name,
    starter_text,
)

_CAUTION = (
    "Guesses from the private table itself, for its owner's eyes: bounds and values tuned to the table are "
    "not private. Check each against a codebook, the law or common sense, then hand over .reviewed()."
)
_SHOWN = 100
"""Longest text of a declaration that is shown."""


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """Guesses of a configuration for a private table. Keep it as you keep the table.

    What is guessed from a table says something about it: the largest amount, or a rare value, may be that of
    one person. No noise protects it, and what stands in a configuration is published with every release.

    Attributes:
        yaml: the text of a configuration, as ``dpsynth init --look`` writes it.
        columns: the declaration of each column. A release refuses one that has a guess or a gap.
        unit: the privacy unit: "row", or the column of the person with a bound on rows.
        questions: questions about who repeats, with exact numbers.
        review: the keys that someone has to check, each with what there is to do.
    """

    yaml: str
    columns: Mapping[str, dict[str, object]]
    unit: object
    review: tuple[str, ...]
    questions: tuple[str, ...] = ()

    def reviewed(
        self, changes: Mapping[str, Mapping[str, object] | None] | None = None
    ) -> dict[str, dict[str, object]]:
        """The declarations as plain dicts, on the word of the caller that they were reviewed.

        Args:
            changes: declarations that replace those of their columns; None leaves a column out.

        Returns:
            What the key ``columns`` of a release takes.

        Raises:
            ConfigError: a name is no column of the table.
        """
        changes = changes or {}
        unknown = next((name for name in changes if name not in self.columns), None)
        if unknown is not None:
            raise ConfigError(f"The table has no column '{unknown}'{nearest(unknown, list(self.columns))}.")
        kept = {name: changes.get(name, declared) for name, declared in self.columns.items()}
        return {name: dict(declared) for name, declared in kept.items() if declared is not None}

    def _lines(self) -> list[tuple[str, str, str]]:
        """Name, declaration and mark of each column."""
        tasks = dict(line.partition(": ")[::2] for line in self.review)
        return [
            (name, _short(declared), tasks.get(f"columns.{name}", ""))
            for name, declared in self.columns.items()
        ]

    def __repr__(self) -> str:
        """A line a column."""
        lines = self._lines()
        wide = max((len(name) for name, _, _ in lines), default=0)
        shown = [
            f"  {name:{wide}}  {declared}{f'  <- {mark}' if mark else ''}" for name, declared, mark in lines
        ]
        return "\n".join([_CAUTION, *self.questions, f"unit: {_short(self.unit)}", "columns:", *shown])

    def _repr_html_(self) -> str:
        """A row a column."""
        left = '<td style="text-align:left">'
        rows = "".join(
            f"<tr>{left}{escape(name)}</td>{left}<code>{escape(declared)}</code></td>{left}{escape(mark)}</td></tr>"
            for name, declared, mark in self._lines()
        )
        head = "<tr><th>column</th><th>declaration</th><th>to review</th></tr>"
        asked = "".join(f"<p>{escape(question)}</p>" for question in self.questions)
        unit = f"{asked}<p>unit: <code>{escape(_short(self.unit))}</code></p>"
        return f"<p>{escape(_CAUTION)}</p>{unit}<table>{head}{rows}</table>"


def described(source: Spec | MemoryTable | Path) -> Description:
    """Guesses for a table; see ``dpsynth.describe``."""
    if isinstance(source, Spec):
        raise ConfigError("A spec declares its columns already: describe takes a table, or the path of one.")
    if isinstance(source, Path):
        draft = draft_of(source)
        return _description(guessed(draft, look_at(draft.table, draft.form, draft.to_look_at, draft.person)))
    draft = draft_in_memory(source.names, source.types)
    return _description(guessed(draft, look_in_memory(source, draft.to_look_at)))


def _description(draft: Draft) -> Description:
    text = starter_text(draft, release_name(draft.table or "table"), "schemas", "dpsynth.describe(table)")
    values = parse_yaml(text, "the description").values
    marks = {f"columns.{sketch.name}": _mark(sketch) for sketch in draft.columns}
    review = tuple(
        f"{key}: {marks[key]}" if marks.get(key) else key for key in cast(list[str], values["review"])
    )
    declared = cast(dict[str, dict[str, Value]], values["columns"] or {})
    columns: dict[str, dict[str, object]] = {}
    for name, keys in declared.items():
        found = {key: _python(value) for key, value in keys.items()}
        columns[name] = Guessed(found) if marks[f"columns.{name}"] else found
    privacy = cast(dict[str, Value], values["privacy"])
    return Description(text, columns, _python(privacy["unit"]), review, draft.asked)


def _mark(sketch: Sketch) -> str:
    """The work left to do on a column, in a few words; empty if there is none."""
    guesses = [key for key in sketch.declared or {} if key in sketch.guessed]
    open_keys = f"to fill in: {', '.join(sketch.gaps)}" if sketch.gaps else ""
    return "; ".join(filter(None, (open_keys, f"guessed: {', '.join(guesses)}" if guesses else "")))


def _python(value: Value) -> object:
    """A value of YAML as people write it in Python."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_python(item) for item in value]
    if isinstance(value, dict):
        return {key: _python(item) for key, item in value.items()}
    return value


def _short(value: object) -> str:
    text = (
        ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
    )
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
