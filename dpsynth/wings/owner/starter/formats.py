"""Registry of the formats of descriptions, and the draft that each gives.

A new format is one file beside this one and one line in ``FORMATS``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsynth.columns.section import one_of
from dpsynth.config.files.form import named_form
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter import (
    bundle_manifest,
    domains,
    pandera_schema,
    sdv,
    table_schema,
)
from dpsynth.wings.owner.starter.documents import read_document
from dpsynth.wings.owner.starter.header import FORMATS as TABLES
from dpsynth.wings.owner.starter.header import read_header
from dpsynth.wings.owner.starter.sketch import Draft, Format, Profile, fitted

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
    if form is not None and form not in (*FORMATS, *TABLES):
        raise ConfigError(f"--format must be {one_of((*TABLES, *FORMATS))}, not '{form}'.")
    if form in TABLES or (form is None and named_form(str(thing))[0] is not None):
        if table is not None:
            raise ConfigError(f"{thing} is a table itself; --table goes with a description of one.")
        return read_header(thing, form).draft()
    draft = _described(thing, form, pick)
    if table is not None:
        header = read_header(table)
        draft = replace(
            draft.in_order_of(header.names),
            origin=(*draft.origin, f"The header of {table} was read, for the columns' order."),
            table=str(table),
            form=header.form,
        )
    if not any(sketch.declared for sketch in draft.columns):
        raise ConfigError(f"{thing} describes no column that a configuration could declare.")
    return draft


def drafts_of(tables: Sequence[Path], form: str | None) -> dict[str, Draft]:
    """A draft of each of several linked tables, by plain words; ConfigError if one is given twice."""
    found: dict[str, Draft] = {}
    for i, path in enumerate(tables):
        if path.resolve() in [other.resolve() for other in tables[:i]]:
            raise ConfigError(f"{path} is given twice. Give each of the linked tables once.")
        word = re.sub(r"\W+", "_", path.name.split(".")[0]).strip("_")[:50]
        name = word if word[:1].isalpha() else f"table_{word}"
        found[name if name not in found else f"{name}_{i + 1}"] = read_header(path, form).draft()
    return found


def guessed(draft: Draft, look: Profile) -> Draft:
    """A draft with its gaps filled by guesses from the private table that the grammar accepts."""
    if not look.columns:
        return draft
    filled = draft.with_guesses(look)
    return replace(filled, columns=tuple(map(fitted, filled.columns)))


def _described(path: Path, form: str | None, pick: str | None) -> Draft:
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
    draft = FORMATS[form].read(document, str(path), pick)
    names = [sketch.name for sketch in draft.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ConfigError(f"{path} describes the column '{twice}' twice.")
    if len(names) > MAX_COLUMNS:
        raise ConfigError(
            f"{path} describes {len(names):,} columns; a configuration can declare {MAX_COLUMNS:,}."
        )
    return draft
