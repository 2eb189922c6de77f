"""Domains of other libraries: the YAML of google/dpsynth, and the domain.json of mbi (private-pgm).

That of google/dpsynth is one mapping of attributes, each a mapping of its fields. The key ``type`` gives the
kind of an attribute. Older files have no such key; then a field decides that only one kind has:
possible_values, min_value, max_tokens, default_value.

That of mbi holds each column's number of codes only. Its tables hold codes from 0. They are read as whole
numbers, one cell a code.
"""

from __future__ import annotations

from dpsynth.columns.declaration import MAX_DOMAIN_SIZE, ONE_A_VALUE, Declared
from dpsynth.columns.section import Value
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter.documents import (
    Mapping,
    about,
    cells,
    mapping,
    named_values,
    number,
    shown,
    with_missing,
)
from dpsynth.wings.owner.starter.sketch import Draft, Format, Sketch, first_fit, fitted

_KIND_OF_FIELD = {
    "possible_values": "CategoricalAttribute",
    "min_value": "NumericalAttribute",
    "max_value": "NumericalAttribute",
    "max_tokens": "FreeFormTextAttribute",
    "default_value": "OpenSetCategoricalAttribute",
    "public_possible_values": "OpenSetCategoricalAttribute",
}
_KINDS = frozenset(_KIND_OF_FIELD.values())


def is_google_domain(document: Mapping) -> bool:
    """True if a document looks like such a domain."""
    return any(isinstance(fields, dict) and _kind(fields) is not None for fields in document.values())


def _kind(fields: Mapping) -> str | None:
    named = fields.get("type")
    if isinstance(named, str) and named in _KINDS:
        return named
    return next((kind for field, kind in _KIND_OF_FIELD.items() if field in fields), None)


def read_google_domain(document: Mapping, file: str, _: str | None = None) -> Draft:
    """A draft with the values and ranges of the domain.

    Raises:
        ConfigError: an attribute is no mapping.
    """
    columns = tuple(_sketch(name, mapping(fields, file, name)) for name, fields in document.items())
    return Draft((f"{file} is a domain of google/dpsynth.",), columns)


def _sketch(name: str, fields: Mapping) -> Sketch:
    kind, note = _kind(fields), about(fields.get("description"))
    if kind == "CategoricalAttribute":
        return _categorical(name, fields).noted(note)
    if kind == "NumericalAttribute":
        return _numerical(name, fields).noted(note)
    if kind == "FreeFormTextAttribute":
        return Sketch(name, None, ("Left out: free text can't be modelled.",)).noted(note)
    values = cells(fields.get("public_possible_values")) or None
    listed: Declared = {"type": "category", "values": values}
    found = {key: value for key, value in listed.items() if value is not None}
    return first_fit(name, {**found, "open": True}, listed).noted(note, "An open set: values may be unknown.")


def _categorical(name: str, fields: Mapping) -> Sketch:
    """A column of listed values. Values outside go to one of the list, or to missing if that one is null."""
    values, index = fields.get("possible_values"), fields.get("out_of_domain_index", 0)
    if not isinstance(values, list):
        return fitted(Sketch(name, {"type": "category", "values": values}))
    if None in values:
        return fitted(Sketch(name, named_values("category", values, True)))
    declared = named_values("category", values, False)
    if type(index) is int and 0 <= index < len(values):
        unlisted = cells(values[index : index + 1])
        if declared["type"] == "boolean":
            declared["default"] = values[index]
        elif index and isinstance(unlisted, list):
            declared["default"] = str(unlisted[0])
    return fitted(Sketch(name, declared))


def _numerical(name: str, fields: Mapping) -> Sketch:
    whole = fields.get("dtype") == "int"
    low, high = number(fields.get("min_value")), number(fields.get("max_value"))
    declared: Declared = {"type": "integer" if whole else "number", "min": low, "max": high}
    edges = fields.get("bin_edges")
    if isinstance(edges, list) and edges:
        declared["bins"] = _edges([number(edge) for edge in edges], low, high)
    if fields.get("clip_to_range", True) is not False:
        return fitted(Sketch(name, with_missing(declared, False)))
    sentinel = number(fields.get("sentinel"))
    marker: Value = True if sentinel is None else [str(sentinel)]
    note = "Cells outside min to max were a value of their own; here they count as min or max."
    return fitted(Sketch(name, with_missing(declared, marker), (note,)))


def _edges(edges: list[Value], low: Value, high: Value) -> list[Value]:
    """Inner edges with the ends of the range around them."""
    first = [] if low is None or edges[0] == low else [low]
    last = [] if high is None or edges[-1] == high else [high]
    return [*first, *edges, *last]


def is_mbi_domain(document: Mapping) -> bool:
    """True if a document looks like such a domain: names with whole numbers, and nothing else."""
    return bool(document) and all(type(size) is int for size in document.values())


def read_mbi_domain(document: Mapping, file: str, _: str | None = None) -> Draft:
    """A draft in which each column holds the codes from 0 to its size less one.

    Raises:
        ConfigError: a size is no whole number of at least 1.
    """
    columns = []
    for name, size in document.items():
        if type(size) is not int or size < 1:
            raise ConfigError(
                f"{file}: '{shown(name)}' must have a whole number of at least 1, the size of its domain."
            )
        declared: Declared = {"type": "integer", "min": 0, "max": size - 1}
        if ONE_A_VALUE < size <= MAX_DOMAIN_SIZE:
            declared["bins"] = size
        # Codes are made to be read: a code that most rows have says nothing of a misread.
        expected: Declared = {"first": 1, "last": 1, "one_value": 1}
        columns.append(fitted(Sketch(name, {**declared, "missing": False, "expected": expected})))
    origin = f"{file} is a domain.json of mbi: the columns' numbers of codes. Codes count from 0."
    return Draft((origin,), tuple(columns))


GOOGLE = Format("google-dpsynth", "google/dpsynth domain", is_google_domain, read_google_domain)
MBI = Format("mbi", "mbi domain.json", is_mbi_domain, read_mbi_domain)
