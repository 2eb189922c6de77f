"""The starter file: a configuration from a draft, with comments, and with gaps and guesses listed for review.

Invariant: read back, the text holds exactly the values of the draft; each gap and each guess has its column
in the list under ``review``, and a configuration with such a list is not run. No file is overwritten. Only
its owner can read a file with guesses from the private table.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path, PurePath
from textwrap import wrap
from typing import cast

from dpsynth.columns.section import Value
from dpsynth.config.document import MAX_BYTES, parse_yaml
from dpsynth.config.files.form import SEPARATORS, FileForm, named_form, usual_name
from dpsynth.config.grammar import release_named
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wings.owner.assess.identifier_forms import named_whose
from dpsynth.wings.owner.starter.documents import shown
from dpsynth.wings.owner.starter.sketch import Draft, Linked, Sketch

_SCHEMAS = ("dpsynth.schema.json", "schemas/dpsynth.schema.json", "../schemas/dpsynth.schema.json")
"""Places of the JSON Schema for editors, from the configuration's folder."""


def write_starter(draft: Draft, target: Path, command: str) -> Path:
    """Write the configuration, and nothing else. It names the schema for editors if one is near.

    Args:
        draft: the sketches of the columns.
        target: the configuration's file.
        command: the command that the user ran, for the first comment.

    Returns:
        The file that was written.

    Raises:
        ConfigError: the file exists, or would be too large.
        DpsynthError: the file can't be written.
    """
    must_be_new(target)
    near = next((f for f in _SCHEMAS if (target.parent / f).is_file()), None)
    text = starter_text(draft, target.stem, near, command)
    try:
        _write(target, text, 0o600 if draft.looked else 0o666)
    except OSError as error:
        raise DpsynthError(f"{target} can't be written: {error.strerror or type(error).__name__}.") from None
    return target


def must_be_new(target: Path) -> None:
    """Refuse a file that exists, before anything is read.

    Raises:
        ConfigError: the file exists.
    """
    if os.path.lexists(target):
        raise ConfigError(f"There is a file {target} already, and it is kept. Give another name with --out.")


def starter_text(draft: Draft, name: str, schema: str | None, command: str) -> str:
    """The configuration's text, read back and compared.

    Args:
        draft: the sketches of the columns.
        name: the name of the configuration's file, without its ending.
        schema: path of the JSON Schema from the configuration's folder; None where there is none.
        command: the command that the user ran.

    Raises:
        ConfigError: the text would be too large to be read.
    """
    text = config_text(draft, release_name(name), schema, command)
    if len(text.encode("utf-8")) > MAX_BYTES:
        raise ConfigError(
            f"The configuration would be larger than {MAX_BYTES:,} bytes, too large to be read. Describe "
            "fewer columns."
        )
    read = parse_yaml(text, "the configuration").values
    tables = cast(dict[str, dict[str, Value]], read.get("tables", {"": read}))
    told = [values_of(table) for table in draft.tables or (draft,)]
    if [table["columns"] for table in tables.values()] != told:
        raise RuntimeError("the configuration does not say what was to be written")
    return text


def _write(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


_WIDTH = 110
_ASIDE = 40

_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./()+<>=-]|[ ](?=[A-Za-z0-9_(/<>=+-]))*")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

_WHAT_TO_DO = (
    "Go through the list under review, at the end: fill in what is null, check the rest, and take each line "
    "out of the list when it is right. All that stands here is public. Take bounds and values from a "
    "codebook, the law or common sense, never from a look at the table. The kinds of columns are listed in "
    "docs/columns.md."
)

_AFTER_A_LOOK = (
    "Go through the list under review, at the end. Then run dpsynth check. It proposes rules of columns, "
    "and synthetic rows keep only those that stand under constraints. The kinds of columns are listed in "
    "docs/columns.md, what is found with a part of the budget in docs/finding.md."
)

EXAMPLES = {
    "age": {"type": "integer", "min": 0, "max": 110},
    "pay": {"type": "number", "min": 0, "max": 100_000, "edges": "log", "decimals": 2},
    "sex": {"type": "category", "values": ["F", "M"]},
    "degree": {"type": "ordered", "values": ["none", "Bachelor", "Master", "Doctor"]},
    "member": {"type": "boolean"},
    "seen": {"type": "date", "min": "2020-01-01", "max": "2026-12-31"},
    "postcode": {"type": "text", "pattern": "[0-9]{5}", "keep": 2},
    "name": {"type": "identifier"},
}
"""Kinds of columns, for a reader who has to choose one."""


_KINDS = (
    ("edges", "tree", "bins are found with a part of the budget: narrow where many rows are"),
    ("type", "identifier", "left out of the synthetic table: numbers of rows or persons, names, free text"),
    ("type", "integer", "a number; if it is a code, as of a region, write type: category and its values"),
    ("format", "hhmm", "the number 517 is the time 05:17"),
    ("parts", None, "hour and weekday are measured, each as a column more; without them they are invented"),
    ("step", None, "all times of day lie at such steps"),
    ("type", "ordered", "numbers of which there are few: each is listed"),
    ("other", None, "takes all values that aren't listed; those of fewer than 10 rows, or persons, weren't"),
    ("open", True, "values are found with a part of the budget: those of many rows"),
    ("levels", None, "as many first characters as there are rows for, found with a part of the budget"),
    ("missing", False, "no cell was empty; take it out where one may be"),
    ("expected", None, "shares of cells, rounded up, that are no sign of a misread; never published"),
)
"""Guesses that a reader may wonder at: key, value or None for any, and what they mean."""

_LINES = {
    "header_row": "is that the line of the columns' names, and are those above it titles?",
    "skip": "are so many lines below the header no rows, such as units?",
    "totals": "rows with these texts are left out: are they totals, and nobody's?",
}
"""Questions to the reader about lines that are no rows."""

_QUESTIONS = {
    "fill": "To fill in: what is null.",
    "bounds": "Bounds. Could anyone name them without the table? Wider is safe, and costs little.",
    "values": "Lists of values. Those of a codebook are public; what one person alone may have is not.",
    "kinds": "No bounds and no values. Is each of the right kind?",
}
"""Questions to the reader, by the group of columns that they are about."""


def config_text(draft: Draft, release: str, schema: str | None, command: str) -> str:
    """The configuration.

    Args:
        draft: the sketches of the columns.
        release: name of the release; the dataset is named after the table, if there is one.
        schema: path of the JSON Schema from the configuration's folder, for editors; or None.
        command: the command that the user ran, for the first comment.
    """
    lines = [] if schema is None else [f"# yaml-language-server: $schema={schema}", "#"]
    origin = [f"Started by `{shown(command, 200)}`.", *draft.summary()]
    # After a look the summary says what to ask of each guess.
    for paragraph in (" ".join(origin), _WHAT_TO_DO if not draft.looked else _AFTER_A_LOOK):
        lines += [*_comment(paragraph), "#"]
    lines[-1] = ""
    lines += [f"release: {_scalar(release)}", *([] if draft.tables else _source(draft)), ""]
    lines += [*_privacy(draft), "", "ledger:", f"  dataset: {_scalar(release_name(draft.table or release))}"]
    lines += [
        _aside("  cap: {epsilon: 10, delta: 1.0e-5}", "the most that all releases of it may cost together")
    ]
    lines += ["", "tables:" if draft.tables else _columns(draft)]
    lines += _examples() if any("type" in sketch.gaps for _, sketch in draft.sketches) else []
    lines += _legend(draft)
    # Where all columns were guessed, the page's head says so once.
    marked = not all(sketch.guessed for _, sketch in draft.sketches if sketch.declared is not None)
    for sketch in draft.columns:
        lines += _column(sketch, marked=marked)
    for table in draft.tables:
        lines += [*_links(table, table is draft.tables[0]), f"    {_columns(table)}"]
        lines += [f"    {line}" for sketch in table.columns for line in _column(sketch, marked=marked)]
    return "\n".join([*lines, *_provenance(draft), "", *_review(draft)]) + "\n"


def _columns(draft: Draft | Linked) -> str:
    """The line above the columns; a table of which all are left out has none."""
    return "columns:" if values_of(draft) else "columns: {}"


def _links(table: Linked, root: bool) -> list[str]:
    """The keys of one of linked tables that come before its columns."""
    lines = [f"  {table.name}:", *_comment(table.note, "    "), f"    {_source(table.draft)[0]}"]
    lines += [f"    key: {_key(table.key)}"] if table.key or root else []
    if root:
        household = any(named_whose(name) == "household" for name in (table.name, *table.key))
        return [*lines, "    unit: household"] if household else lines
    above, columns = (table.parent.above, table.parent.columns) if table.parent else (None, ())
    parent = f"table: {_scalar(above)}, key: {_key(columns)}, max_children: {_scalar(table.most)}"
    lines += [_aside(f"    parent: {{{parent}}}", "" if table.most else "to fill in")]
    lines += [f"    order_by: {_scalar(table.order)}"] if table.order else []
    return [*lines, "    distinct: true"] if table.distinct else lines


def _key(columns: Sequence[str]) -> str:
    return _flow(list(columns)) if len(columns) > 1 else _scalar(columns[0] if columns else None)


def release_name(path: str) -> str:
    """A name for a release from the path of a table or a description.

    >>> release_name("data/Visits of 2024.csv"), release_name("flights.csv.gz")
    ('Visits-of-2024', 'flights')
    """
    name, (_, compression, _) = PurePath(path), named_form(path)
    return release_named(PurePath(name.stem).stem if compression else name.stem)


def values_of(draft: Draft | Linked) -> dict[str, Value]:
    """The columns that a configuration of the draft declares, as plain values."""
    return {s.name: dict(s.declared) for s in draft.columns if s.declared is not None}


def _comment(text: str, indent: str = "") -> list[str]:
    width = _WIDTH - len(indent) - 2
    lines = wrap(shown(text, 5_000), width, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]


def _source(draft: Draft) -> list[str]:
    table = draft.table
    keys = "".join(
        f", {key}: {_flow(value)}" for key, value in _told_by_no_name(draft.form, table or "").items()
    )
    if table is None:
        return [_aside(f"source: {{path: null{keys}}}", "the table: .csv, .parquet or .xlsx")]
    return [f"source: {{path: {_scalar(table)}{keys}}}"]


def _told_by_no_name(form: FileForm, path: str) -> dict[str, Value]:
    """Keys of a file's form that its name doesn't tell, and that aren't the defaults."""
    kind, compression, separator = named_form(path)
    words = {sign: word for word, sign in SEPARATORS.items()}
    plain = FileForm(separator=separator)
    found: dict[str, tuple[Value, bool]] = {
        "format": (form.kind, path != "" and form.kind != kind),
        "separator": (words[form.separator], form.kind == "csv" and form.separator != plain.separator),
        "encoding": (usual_name(form.encoding), form.encoding != plain.encoding),
        "compression": (form.compression, form.compression != compression),
        "multiline": (form.multiline, not form.multiline),
        "sheet": (form.sheet, form.sheet is not None),
        "header_row": (form.header_row, form.header_row is not None),
        "skip": (form.skip, form.skip > 0),
        "totals": ({name: list(texts) for name, texts in form.totals}, form.totals != ()),
    }
    return {key: value for key, (value, said) in found.items() if said}


def _privacy(draft: Draft) -> list[str]:
    unit = "row"
    advice = "right if nobody has two rows; otherwise {column: patient_id, max_rows: 4}"
    if draft.tables:
        unit, advice = draft.tables[0].name, "its rows are protected, each with all that belongs to it"
    elif draft.unit is not None:
        kind = "" if draft.unit.kind == "person" else f", kind: {draft.unit.kind}"
        unit = f"{{column: {_scalar(draft.unit.column)}, max_rows: {draft.unit.max_rows}{kind}}}"
        advice = "a guess: its values repeat; unit: row if they are no persons"
    elif draft.person is not None:
        unit = f"{{column: {_scalar(draft.person)}, max_rows: null}}"
        advice = "the description says that this column names the person of a row"
    return [
        "privacy:",
        _aside("  epsilon: 1.0", "less protects more; 0.1 to 5 is usual"),
        _aside("  delta: 1.0e-9", "well below 1 divided by the number of rows"),
        *(line for question in draft.asked for line in _comment(question, "  ")),
        _aside(f"  unit: {unit}", advice),
    ]


def _aside(code: str, words: str) -> str:
    """A line of code, with its comment if there is one."""
    return f"{code.ljust(_ASIDE)}  # {words}" if words else code


def _examples() -> list[str]:
    said = (f"  #   {name}: {_flow(cast(Value, declared))}" for name, declared in EXAMPLES.items())
    return ["  # Say what each is, as in these examples; columns that nobody needs can be deleted.", *said]


def _legend(draft: Draft) -> list[str]:
    """What the guesses mean, each explained once."""
    guessed = [
        {key: value for key, value in (sketch.declared or {}).items() if key in sketch.guessed}
        for _, sketch in draft.sketches
    ]
    said = [
        (f"{key}: {'...' if wanted is None else _scalar(wanted)}", words)
        for key, wanted, words in _KINDS
        if any(key in keys and wanted in (None, keys[key]) for keys in guessed)
    ]
    head = ["  # What some guesses mean:"] if said else []
    return [*head, *(f"  #   {code:<18}  {words}" for code, words in said)]


def _column(sketch: Sketch, *, marked: bool) -> list[str]:
    lines = [line for note in sketch.notes for line in _comment(note, "  ")]
    if sketch.declared is None:
        return [*_comment(f"{sketch.name}:", "  "), *lines]
    mark = "to fill in" if sketch.gaps else "a guess" if sketch.guessed and marked else ""
    name, pairs = _scalar(sketch.name), [(key, _flow(value)) for key, value in sketch.declared.items()]
    short = f"  {name}: {{{', '.join(f'{key}: {text}' for key, text in pairs)}}}"
    if len(_aside(short, mark)) <= _WIDTH:
        return [*lines, _aside(short, mark)]
    lines.append(_aside(f"  {name}:", mark))
    for key, text in pairs:
        lines += _wrapped(f"    {key}: ", sketch.declared[key], text)
    return lines


def _group(sketch: Sketch) -> str | None:
    """The group of a column in the list under review; None for a column that nobody has to review."""
    if sketch.gaps:
        return "fill"
    if not sketch.guessed:
        return None
    if {"min", "max"} & sketch.guessed:
        return "bounds"
    listed = sketch.declared is not None and sketch.declared.get("type") in ("category", "ordered", "text")
    return "values" if listed else "kinds"


def _wrapped(start: str, value: Value, text: str) -> list[str]:
    """A key with its value, a long list on several lines."""
    if len(start) + len(text) <= _WIDTH or not isinstance(value, list):
        return [start + text]
    lines, line = [], start + "["
    for i, item in enumerate(value):
        piece = _flow(item) + ("]" if i == len(value) - 1 else ",")
        if len(line) + len(piece) + 1 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * (len(start) + 1)
        line += piece + " "
    return [*lines, line.rstrip()]


def _provenance(draft: Draft) -> list[str]:
    """The columns whose declarations come from the table, for the release to say so."""
    names = [table.name for table in draft.tables if table.most]
    for place, sketch in draft.sketches:
        table = f"{place.split('.')[1]}." if draft.tables else ""
        names += [_flow(f"{table}{sketch.name}")] if sketch.guessed and not sketch.gaps else []
    if not draft.looked or not names:
        return []
    head = "  # The release says of these that a look told of them. Take out what is known without the table."
    return ["", "provenance:", head, "  looked_at: [", *_filling("    ", names), "  ]"]


def _review(draft: Draft) -> list[str]:
    entries = [("privacy", "how much is protected, and whose rows belong together")]
    sources = {f"tables.{t.name}.": t.draft for t in draft.tables} or {"": draft}
    entries += [(f"{key}source.path", "to fill in") for key, one in sources.items() if one.table is None]
    links = "are these the keys? is max_children known without the table?"
    entries += [(f"tables.{table.name}.parent", links) for table in draft.tables[1:]]
    if draft.described:
        entries.append(("columns", "is every bound and value known without the table?"))
    told = _told_by_no_name(draft.form, draft.table or "")
    entries += [(f"source.{key}", words) for key, words in _LINES.items() if key in told]
    lines = [_aside(f"  {_scalar(entry)},", words) for entry, words in entries]
    groups = [
        (group, f"{place}.{sketch.name}") for place, sketch in draft.sketches if (group := _group(sketch))
    ]
    for group, question in _QUESTIONS.items():
        names = [_flow(name) for of, name in groups if of == group]
        lines += [f"  # {question}", *_filling("  ", names)] if names else []
    head = "# dpsynth refuses to plan or run while anything is listed here. Take out what you have checked."
    return [head, "review: [", *lines, "]"]


def _filling(indent: str, items: Sequence[str]) -> list[str]:
    """Items with a comma behind each, as many on a line as it holds."""
    lines = [indent]
    for item in items:
        if len(lines[-1]) + len(item) + 1 > _WIDTH and lines[-1].strip():
            lines.append(indent)
        lines[-1] += f"{item}, "
    return [line.rstrip() for line in lines]


def _flow(value: Value) -> str:
    """A value in YAML's flow style, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Value) -> str:
    """A single value; texts are quoted unless every reader of YAML takes them for texts."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return _number(value)
    text = str(value)
    if _DAY.fullmatch(text) or (_PLAIN.fullmatch(text) and text.casefold() not in _WORDS):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _number(value: Decimal) -> str:
    plain = format(value, "f")
    return plain if len(plain) <= 30 else format(value, "E").lower()
