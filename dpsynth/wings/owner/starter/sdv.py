"""Metadata JSON of SDV, since its version 1: the sdtype of each column of one table, or of several.

It gives the kinds of columns and seldom their values, so most bounds and values stay gaps. Keys, and columns
that SDV calls personal (names, addresses, card numbers), become identifiers, which are never read.
"""

from __future__ import annotations

from dpsynth.columns.declaration import Declared
from dpsynth.columns.moment_formats import ISO
from dpsynth.columns.section import Value
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter.documents import (
    Mapping,
    cells,
    has_clock,
    mapping,
    picked,
    sequence,
    shown,
    texts,
)
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Format, Reference, Sketch, first_fit, fitted

_PLACES = {"city", "country_code", "state", "state_abbr", "administrative_unit", "postcode", "province"}
_DEGREES = {"latitude": 90, "longitude": 180}


def is_metadata(document: Mapping) -> bool:
    """True if a document looks like metadata of one table or several."""
    if "METADATA_SPEC_VERSION" in document:
        return True
    tables = document.get("tables")
    found = [*tables.values()] if isinstance(tables, dict) else [document]
    return any(isinstance(table, dict) and (_typed(table, "sdtype") or _old(table)) for table in found)


def _typed(table: Mapping, key: str) -> bool:
    columns = table.get("columns")
    return isinstance(columns, dict) and any(isinstance(c, dict) and key in c for c in columns.values())


def _old(table: Mapping) -> bool:
    """True if a table is described in the format before SDV 1.0."""
    fields = table.get("fields")
    return isinstance(fields, dict) and any(isinstance(f, dict) and "type" in f for f in fields.values())


def read_metadata(document: Mapping, file: str, pick: str | None = None) -> Draft:
    """A draft of the only table, or of the one that is picked.

    Raises:
        ConfigError: of several tables none is picked, or one that doesn't exist; or a table is not in
            SDV's format.
    """
    tables, where, described = document.get("tables"), file, document
    if isinstance(tables, dict):
        name, table = picked(tables, file, pick)
        where, described = f"Table '{shown(name)}' of {file}", mapping(table, file, f"tables.{name}")
    if _old(described) and "columns" not in described:
        raise ConfigError(
            f"{file} is metadata of SDV before 1.0. Convert it first, with upgrade_metadata of SDV 1."
        )
    keys = _keys(described)
    columns = mapping(described.get("columns"), file, "columns")
    sketches = [
        _sketch(name, mapping(facts, file, f"columns.{name}"), is_key=name in keys)
        for name, facts in columns.items()
    ]
    person = described.get("sequence_key")
    origin = f"{where} is SDV metadata: it says what columns are, and seldom what they can hold."
    return Draft((origin,), tuple(sketches), person=person if isinstance(person, str) else None)


def _keys(table: Mapping) -> set[str]:
    """Columns that identify rows or persons."""
    found: set[str] = set()
    for key in ("primary_key", "sequence_key", "alternate_keys"):
        named = table.get(key)
        for name in named if isinstance(named, list) else [named]:
            # An alternate key of several columns together names a row by all of them.
            if isinstance(name, str):
                found.add(name)
    return found


def _sketch(name: str, facts: Mapping, *, is_key: bool) -> Sketch:
    sdtype = facts.get("sdtype")
    kind = sdtype if isinstance(sdtype, str) else ""
    if is_key or kind == "id":
        return fitted(Sketch(name, {"type": "identifier"}))
    if kind == "boolean":
        return fitted(Sketch(name, {"type": "boolean"}))
    if kind == "numerical":
        return fitted(Sketch(name, _numerical(facts.get("computer_representation"))))
    if kind == "categorical":
        return _categorical(name, facts)
    if kind == "datetime":
        return _datetime(name, facts.get("datetime_format"))
    if kind in _DEGREES and facts.get("pii") is not True:
        end = _DEGREES[kind]
        return fitted(Sketch(name, {"type": "number", "min": -end, "max": end}))
    if kind in _PLACES and facts.get("pii") is not True:
        return fitted(Sketch(name, {"type": "category", "values": None}))
    if not kind or (kind == "unknown" and facts.get("pii") is False):
        return fitted(Sketch(name, dict(STUB), ("SDV doesn't know what it is.",)))
    note = f"SDV calls it '{shown(kind)}', which identifies a person: it is not read."
    return fitted(Sketch(name, {"type": "identifier"}, (note,)))


def _numerical(stored: Value) -> Declared:
    if not isinstance(stored, str) or "Int" not in stored:
        return {"type": "number", "min": None, "max": None}
    return {"type": "integer", "min": 0 if stored.startswith("UInt") else None, "max": None}


def _categorical(name: str, facts: Mapping) -> Sketch:
    order = facts.get("order")
    if isinstance(order, list) and order:
        ordered: Declared = {"type": "ordered", "values": cells(order)}
        return first_fit(name, ordered, {**ordered, "type": "category"})
    return fitted(Sketch(name, {"type": "category", "values": None}))


def _datetime(name: str, pattern: Value) -> Sketch:
    if not isinstance(pattern, str):
        note = "The format of its cells is unknown."
        return fitted(Sketch(name, {"type": "date", "min": None, "max": None, "format": None}, (note,)))
    declared: Declared = {"type": "datetime" if has_clock(pattern) else "date", "min": None, "max": None}
    if pattern not in ISO.values():
        declared["format"] = pattern
    return fitted(Sketch(name, declared))


_SIDES = ("child_table_name", "child_foreign_key", "parent_table_name", "parent_primary_key")


def linked_tables(document: Mapping, file: str) -> tuple[dict[str, str], list[Reference]]:
    """The tables of metadata with relationships, which name no files, and these as references.

    Raises:
        ConfigError: a relationship names no tables, or not their columns.
    """
    tables, found = document.get("tables"), list[Reference]()
    named = dict.fromkeys(tables, "") if isinstance(tables, dict) else dict[str, str]()
    for i, one in enumerate(sequence(document.get("relationships", []), file, "relationships")):
        facts = mapping(one, file, f"relationships[{i}]")
        table, columns, above, key = (texts(facts.get(side)) for side in _SIDES)
        if not {table, above} <= {(name,) for name in named} or not columns or len(columns) != len(key):
            raise ConfigError(f"{file}: 'relationships[{i}]' must name two of the tables, and their columns.")
        found.append(Reference(table[0], columns, above[0], key))
    return named, found


FORMAT = Format("sdv", "SDV metadata", is_metadata, read_metadata, linked_tables)
