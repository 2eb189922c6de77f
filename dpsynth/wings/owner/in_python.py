"""The owner's look at a table in Python: ``dpsynth.describe``, ``dpsynth.check`` and ``dpsynth.evaluate``.

Invariant: what is found is private, for its owner's eyes. Guesses stay marked, and a release refuses them,
until the owner hands over what was reviewed. A table in memory stays closed in its ``MemoryTable``. Nothing
is charged, and no ledger is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Unpack, cast

from dpsynth.api.releasing import SHORT, Keys, Table, described_by, held, spelt_in_python
from dpsynth.columns.section import Guessed, Value
from dpsynth.config import Spec
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError, nearest
from dpsynth.pipeline.result import Release
from dpsynth.wings.owner.assess.checking import Check
from dpsynth.wings.owner.assess.checking import check as look
from dpsynth.wings.owner.assess.evaluation import Evaluation, write_evaluation
from dpsynth.wings.owner.assess.evaluation import evaluate as compare
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

_ASSUMED = {"epsilon": 1, "dataset": "table"}
"""Keys of a release that a check doesn't rest on, so that they may be left out of it."""
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


def describe(source: Table | str | Path) -> Description:
    """A look at a private table: a guess of each column's declaration, for review by the table's owner.

    It reads all of the table, charges nothing, and releases nothing: it is ``dpsynth init --look`` in Python.
    The guesses are private facts. Bounds and values that are tuned to a table aren't private, and no noise
    protects them; so a release refuses them until ``reviewed`` hands them over.

    Args:
        source: the table, as for ``release``, or the path of its file.

    Raises:
        DpsynthError: SourceError if it can't be read, StepFailed for an unforeseen error.
    """
    if isinstance(source, Mapping):
        raise ConfigError("describe takes one table. For linked ones, write files: dpsynth init FILES --look")
    closed = held(source)
    del source
    if isinstance(closed, Spec):
        raise ConfigError("A spec declares its columns already: describe takes a table, or the path of one.")
    if isinstance(closed, Path):
        draft = draft_of(closed)
        return _description(guessed(draft, look_at(draft.table, draft.form, draft.to_look_at, draft.person)))
    draft = draft_in_memory(closed.names, closed.types)
    return _description(guessed(draft, look_in_memory(closed, draft.to_look_at)))


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


def check(
    source: Spec | Table | str | Path,
    spec: Spec | None = None,
    /,
    *,
    period: str | None = None,
    **keys: Unpack[Keys],
) -> Check:
    """A look at a private table as a release would read it: what is clipped, unknown, missing or unread.

    It is ``dpsynth check`` in Python, for the table's owner alone. It charges nothing and writes nothing.

        dpsynth.check(frame, columns=dpsynth.describe(frame).columns)    # guesses may be checked
        dpsynth.check(spec)

    Args:
        source: a spec that names a file, a table in memory, or the path of a file, as for ``release``.
        spec: with a table, all that is to be known of its release, in place of keyword arguments.
        period: the slice of the table, if the spec has periods. Left out: the last one that has ended.
        keys: those of ``release``; ``epsilon`` and ``dataset`` may be left out.

    Returns:
        The check. Shown, it has the words of the command line; ``frame`` has a row a column, ``findings`` has
        each finding with its remedy. All of it is private.

    Raises:
        DpsynthError: ConfigError, SourceError or StepFailed; none of them quotes a cell.
    """
    closed = held(source)
    del source
    by_keys = spec is None and not isinstance(closed, Spec)
    with spelt_in_python():
        found, table = described_by(closed, spec, _completed(keys) if by_keys else keys)
        return look(found, period, table)


def _completed(keys: Mapping[str, object]) -> dict[str, object]:
    """The keys, with those that a check doesn't rest on, and with guesses as they are, but for gaps."""
    found = dict(keys)
    for short, (section, key) in SHORT.items():
        given = found.get(section)
        if short in _ASSUMED and not (isinstance(given, Mapping) and key in given):
            found.setdefault(short, _ASSUMED[short])
    columns = found.get("columns")
    if isinstance(columns, Mapping):
        found["columns"] = {
            name: dict(declared) if isinstance(declared, Guessed) else declared
            for name, declared in columns.items()
            if not (isinstance(declared, Guessed) and None in declared.values())
        }
    return found


def evaluate(
    bundle: Release | str | Path,
    against: Table | Mapping[str, Table] | str | Path | None = None,
    /,
    *,
    targets: Sequence[str] = (),
    config: str | Path | Spec | None = None,
) -> Evaluation:
    """A comparison of a release with its private table, for the table's owner alone.

    It is ``dpsynth evaluate`` in Python: it charges nothing, and writes into the bundle's folder ``private``.

    Args:
        bundle: the release, or the folder of its bundle.
        against: the private table, in memory or the path of its file, or linked ones in memory, by name; left
            out: those of ``config``.
        targets: columns to predict, from synthetic and from private rows.
        config: the release's YAML file or spec: how the table's file is written, or how tables are linked.

    Returns:
        The evaluation. ``frame`` has the distances of columns and pairs, ``report()`` is its page. All of it
        is private.

    Raises:
        DpsynthError: ConfigError, SourceError or StepFailed; none of them quotes a cell.
    """
    closed = None if against is None else held(against)
    del against
    if isinstance(closed, Spec):
        raise ConfigError("A release is compared with a table, not with a spec: hand over the table.")
    folder = bundle.folder / bundle.audience if isinstance(bundle, Release) else Path(bundle)
    with spelt_in_python():
        found = compare(folder, closed, Path(config) if isinstance(config, str) else config, targets)
        write_evaluation(found)
    return found
