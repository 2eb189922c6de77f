"""Text of a configuration from a draft, with comments, and with gaps and guesses listed for review.

Invariant: read back, the text holds exactly the values of the draft; each gap and each guess
has its column in the list under ``review``, and a configuration with such a list is not run.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import PurePath
from textwrap import wrap
from typing import cast

from dpsynth.config.declaration import Declared
from dpsynth.config.grammar import release_named
from dpsynth.config.yaml_reader import Value
from dpsynth.files.form import SEPARATORS, FileForm, named_form
from dpsynth.starter.documents import shown
from dpsynth.starter.sketch import Draft, Sketch

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


_WIDE = 1000
_WIDE_ADVICE = (
    "Amounts of money, counts and sizes: with edges: log bins are narrow where values are small. Bins of one "
    "width would put nearly all of them in the first."
)


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
    for paragraph in (" ".join(origin), _WHAT_TO_DO):
        lines += [*_comment(paragraph), "#"]
    lines[-1] = ""
    lines += [f"release: {_scalar(release)}", *_source(draft), "", *_privacy(draft), ""]
    lines += [f"ledger: {{dataset: {_scalar(release_name(draft.table or release))}}}", "", "columns:"]
    lines += _examples() if any("type" in sketch.gaps for sketch in draft.columns) else []
    for sketch in draft.columns:
        lines += _column(sketch)
    return "\n".join([*lines, "", *_review(draft)]) + "\n"


def release_name(path: str) -> str:
    """A name for a release from the path of a table or a description.

    >>> release_name("data/Visits of 2024.csv")
    'Visits-of-2024'
    """
    return release_named(PurePath(path).stem)


def values_of(draft: Draft) -> dict[str, Value]:
    """The columns that a configuration of the draft declares, as plain values."""
    return {s.name: dict(s.declared) for s in draft.columns if s.declared is not None}


def _comment(text: str, indent: str = "") -> list[str]:
    width = _WIDTH - len(indent) - 2
    lines = wrap(shown(text, 5_000), width, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]


def _source(draft: Draft) -> list[str]:
    table = draft.table
    keys = "".join(
        f", {key}: {_scalar(value)}" for key, value in _told_by_no_name(draft.form, table or "").items()
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
        "encoding": (form.encoding, form.encoding != plain.encoding),
        "compression": (form.compression, form.compression != compression),
        "multiline": (form.multiline, form.multiline),
        "sheet": (form.sheet, form.sheet is not None),
    }
    return {key: value for key, (value, said) in found.items() if said}


def _privacy(draft: Draft) -> list[str]:
    unit = "row"
    advice = "right if nobody has two rows; otherwise {column: patient_id, max_rows: 4}"
    if draft.person is not None:
        unit = f"{{column: {_scalar(draft.person)}, max_rows: null}}"
        advice = "the description says that this column names the person of a row"
    return [
        "privacy:",
        _aside("  epsilon: 1.0", "less protects more; 0.1 to 5 is usual"),
        _aside("  delta: 1.0e-9", "well below 1 divided by the number of rows"),
        _aside(f"  unit: {unit}", advice),
    ]


def _aside(code: str, words: str) -> str:
    """A line of code, with its comment if there is one."""
    return f"{code.ljust(_ASIDE)}  # {words}" if words else code


def _examples() -> list[str]:
    said = (f"  #   {name}: {_flow(cast(Value, declared))}" for name, declared in EXAMPLES.items())
    return ["  # Say what each is, as in these examples; columns that nobody needs can be deleted.", *said]


def _column(sketch: Sketch) -> list[str]:
    notes = (*sketch.notes, _WIDE_ADVICE) if _is_wide(sketch.declared) else sketch.notes
    lines = [line for note in notes for line in _comment(note, "  ")]
    if sketch.declared is None:
        return [*_comment(f"{sketch.name}:", "  "), *lines]
    mark = "to fill in" if sketch.gaps else "a guess" if sketch.guessed else ""
    name, pairs = _scalar(sketch.name), [(key, _flow(value)) for key, value in sketch.declared.items()]
    short = f"  {name}: {{{', '.join(f'{key}: {text}' for key, text in pairs)}}}"
    if len(_aside(short, mark)) <= _WIDTH:
        return [*lines, _aside(short, mark)]
    lines.append(_aside(f"  {name}:", mark))
    for key, text in pairs:
        lines += _wrapped(f"    {key}: ", sketch.declared[key], text)
    return lines


def _is_wide(declared: Declared | None) -> bool:
    """True if a column's numbers may differ much in size while its bins have one width."""
    if (
        declared is None
        or declared.get("type") not in ("integer", "number")
        or {"bins", "edges"} & declared.keys()
    ):
        return False
    low, high = declared.get("min"), declared.get("max")
    if not isinstance(low, int | Decimal) or not isinstance(high, int | Decimal):
        return False
    return low >= 0 and high >= _WIDE * max(low, 1)


def _marks(sketch: Sketch) -> str:
    """Tasks that are left for a column, in a few words."""
    guessed = [key for key in sketch.declared or {} if key in sketch.guessed]
    tasks = []
    if sketch.gaps:
        tasks.append(f"to fill in: {', '.join(sketch.gaps)}")
    if guessed:
        tasks.append(f"guessed from the table: {', '.join(guessed)}")
    return "; ".join(tasks)


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


def _review(draft: Draft) -> list[str]:
    entries = [("privacy", "how much is protected, and whose rows belong together")]
    if draft.table is None:
        entries.append(("source.path", "to fill in"))
    if draft.described:
        entries.append(("columns", "is every bound and value known without the table?"))
    entries += [(f"columns.{s.name}", _marks(s)) for s in draft.columns if _marks(s)]
    return [
        "# dpsynth refuses to plan or run while anything is listed here.",
        "review:",
        *(_aside(f"  - {_scalar(entry)}", words) for entry, words in entries),
    ]


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
