"""Registry of the formats of descriptions, and the draft that each gives.

A new format is one file beside this one and one line in ``FORMATS``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsynth.columns.section import one_of
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.errors import ConfigError
from dpsynth.figures import listed
from dpsynth.wings.owner.starter import bundle_manifest, domains, pandera_schema, sdv, table_schema
from dpsynth.wings.owner.starter.documents import Mapping as Document
from dpsynth.wings.owner.starter.documents import read_document
from dpsynth.wings.owner.starter.header import FORMATS as TABLES
from dpsynth.wings.owner.starter.header import read_header
from dpsynth.wings.owner.starter.sketch import Draft, Format, Profile, Reference, fitted

# From the clearest signs to the weakest: a domain.json has only its whole numbers.
FORMATS: Mapping[str, Format] = {
    form.word: form
    for form in (
        bundle_manifest.FORMAT,
        table_schema.FORMAT,
        sdv.FORMAT,
        pandera_schema.FORMAT,
        domains.GOOGLE,
        domains.MBI,
    )
}


def draft_of(
    thing: Path, *, table: Path | None = None, form: str | None = None, pick: str | None = None
) -> Draft:
    """A draft from a table's header, or from a description.

    Args:
        thing: the table or the description.
        table: with a description, the table whose header gives the order of the columns.
        form: the format of ``thing``; left out: found by its ending and its contents.
        pick: the name of the table to pick of several.

    Raises:
        ConfigError: the description can't be used.
        SourceError: the table's header can't be used.
    """
    if not _is_described(thing, form):
        if table is not None:
            raise ConfigError(f"{thing} is a table itself; --table goes with a description of one.")
        return read_header(thing, form).draft()
    draft = _described(*_recognised(thing, form), str(thing), pick)
    draft = draft if table is None else _ordered(draft, table)
    if not any(sketch.declared for sketch in draft.columns):
        raise ConfigError(f"{thing} describes no column that a configuration could declare.")
    return draft


def _is_described(thing: Path, form: str | None) -> bool:
    """True for a description, False for a table; ConfigError for an unknown format."""
    if form is not None and form not in (*FORMATS, *TABLES):
        raise ConfigError(f"--format must be {one_of((*TABLES, *FORMATS))}, not '{form}'.")
    return form in FORMATS or (form is None and thing.suffix.lower() in (".json", ".yaml", ".yml"))


def _ordered(draft: Draft, table: Path) -> Draft:
    """A draft with the columns in the order of its table's header."""
    header = read_header(table)
    origin = (*draft.origin, f"The header of {table} was read, for the columns' order.")
    return replace(draft.in_order_of(header.names), origin=origin, table=str(table), form=header.form)


def drafts_of(
    things: Sequence[Path], form: str | None
) -> tuple[dict[str, Draft], Sequence[Reference] | None] | None:
    """Drafts of linked tables by plain words, with their references if these are described.

    Args:
        things: several tables; or a description of several, and then files that are called like these.
        form: the format of the first.

    Returns:
        None for one table, or a description of one.

    Raises:
        ConfigError: a table is given twice, or the description can't be used.
        SourceError: a table's header can't be used.
    """
    described = _is_described(things[0], form)
    if len(things) == 1 and not described:
        return None
    files: dict[str, Path] = {}
    for i, path in enumerate(things[described:]):
        if path.resolve() in [other.resolve() for other in files.values()]:
            raise ConfigError(f"{path} is given twice. Give each of the linked tables once.")
        name = _word(path.name.split(".")[0])
        files[name if name not in files else f"{name}_{i + 1}"] = path
    if not described:
        found = {name: read_header(path, form).draft() for name, path in files.items()}
        return found, None
    document, form = _recognised(things[0], form)
    named, references = FORMATS[form].links(document, str(things[0]))
    if not references:
        if files:
            raise ConfigError(f"{things[0]} describes no linked tables. Give its table with --table.")
        return None
    words = {name: _word(name) for name in named}
    unknown = next((path for name, path in files.items() if name not in words.values()), None)
    if unknown is not None:
        known = listed([*words.values()])
        raise ConfigError(f"{unknown} is called like none of the tables of {things[0]}, {known}. Rename it.")
    drafts: dict[str, Draft] = {}
    for name, word in words.items():
        draft, beside = _described(document, form, str(things[0]), name), things[0].parent / named[name]
        file = files.get(word, beside if named[name] and beside.is_file() else None)
        drafts[word] = draft if file is None else _ordered(draft, file)
    return drafts, [replace(r, table=words[r.table], above=words[r.above]) for r in references]


def _word(name: str) -> str:
    """A name of a table as a configuration can have it."""
    word = re.sub(r"\W+", "_", name).strip("_")[:50]
    return word if word[:1].isalpha() else f"table_{word}"


def guessed(draft: Draft, look: Profile) -> Draft:
    """A draft with its gaps filled by guesses from the private table that the grammar accepts."""
    if not look.columns:
        return draft
    filled = draft.with_guesses(look)
    return replace(filled, columns=tuple(map(fitted, filled.columns)))


def _recognised(path: Path, form: str | None) -> tuple[Document, str]:
    """A description, and the word of its format."""
    document = read_document(path)
    if form is None:
        if {"privacy", "columns"} <= document.keys():
            raise ConfigError(f"{path} is a configuration already: try 'dpsynth plan {path}'.")
        form = next((name for name, known in FORMATS.items() if known.recognised(document)), None)
    if form is None:
        known = "; ".join(f"{name} ({format_.name})" for name, format_ in FORMATS.items())
        raise ConfigError(
            f"{path} is not recognised as a description of a table. Say what it is with --format: {known}."
        )
    return document, form


def _described(document: Document, form: str, file: str, pick: str | None) -> Draft:
    draft = FORMATS[form].read(document, file, pick)
    names = [sketch.name for sketch in draft.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ConfigError(f"{file} describes the column '{twice}' twice.")
    if len(names) > MAX_COLUMNS:
        raise ConfigError(
            f"{file} describes {len(names):,} columns; a configuration can declare {MAX_COLUMNS:,}."
        )
    return draft
