"""Table Schema of the Data Package standard (Frictionless), versions 1 and 2; alone or in a package.

A field's type, format, constraints, categories and missing values are used. A schema that a
document only points to is not fetched.
"""

from __future__ import annotations

from typing import cast

from dpsynth.columns.declaration import Declared
from dpsynth.columns.moment_formats import ISO, MomentKind
from dpsynth.columns.section import Value
from dpsynth.config.files.form import SEPARATORS, FileForm
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter.documents import (
    Mapping,
    about,
    coded,
    inside,
    mapping,
    moment,
    named_values,
    picked,
    sequence,
    shown,
    texts,
    with_missing,
)
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Format, Reference, Sketch, first_fit, fitted

_NAMING = {"email", "uri", "uuid"}
_UNSUPPORTED = {"object", "array", "list", "geopoint", "geojson", "binary"}
_TRUTHS = (["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"])


def is_schema(document: Mapping) -> bool:
    """True if a document looks like a schema, a resource with a schema, or a package of resources."""
    inner = document.get("schema")
    return (
        isinstance(document.get("fields"), list)
        or isinstance(document.get("resources"), list)
        or (isinstance(inner, dict) and isinstance(inner.get("fields"), list))
        or (isinstance(inner, str) and "path" in document)
    )


def read_schema(document: Mapping, file: str, pick: str | None = None) -> Draft:
    """A draft of the table that the schema describes.

    Raises:
        ConfigError: of several tables none is picked, the schema is in another file, or it doesn't follow
            the standard.
    """
    found, where, separator = document, file, ","
    if "resources" in document:
        listed = sequence(document["resources"], file, "resources")
        resources = {_name_of(resource, i): resource for i, resource in enumerate(listed)}
        name, resource = picked(resources, file, pick)
        found, where = mapping(resource, file, f"resource {name}"), f"Resource '{shown(name)}' of {file}"
    origin = [f"{where} is described by a Table Schema of the Data Package standard."]
    if "schema" in found:
        separator, notes = _separator(found.get("dialect"))
        origin += notes
        if isinstance(found["schema"], str):
            raise ConfigError(
                f"{where} only says where its schema is, '{shown(found['schema'])}', and nothing is fetched. "
                "Give the file of the schema itself."
            )
        found = mapping(found["schema"], file, "schema")
    fields = sequence(found.get("fields"), file, "fields")
    keys = found.get("primaryKey")
    key = keys[0] if isinstance(keys, list) and len(keys) == 1 else keys
    columns = []
    for i, field in enumerate(fields):
        facts = mapping(field, file, f"fields[{i}]")
        if not isinstance(facts.get("name"), str):
            raise ConfigError(f"{file}: 'fields[{i}].name' must be a text, the column's name.")
        columns.append(_sketch(facts, found.get("missingValues"), is_key=facts["name"] == key))
    return Draft(tuple(origin), tuple(columns), form=FileForm(separator=separator))


def _name_of(resource: Value, position: int) -> str:
    name = resource.get("name") if isinstance(resource, dict) else None
    return name if isinstance(name, str) else f"resource {position + 1}"


def _separator(dialect: Value) -> tuple[str, list[str]]:
    """The separator of cells, and notes if it can't be read."""
    mark = dialect.get("delimiter", ",") if isinstance(dialect, dict) else ","
    if isinstance(mark, str) and mark in SEPARATORS.values():
        return mark, []
    return ",", ["What separates its cells can't be read: convert the table first."]


def _sketch(field: Mapping, missing_values: Value, *, is_key: bool) -> Sketch:
    name, kind = str(field["name"]), field.get("type", "any")
    declared = field.get("constraints")
    rules: Mapping = declared if isinstance(declared, dict) else {}
    missing = _missing(field.get("missingValues", missing_values), rules.get("required") is True)
    note = about(field.get("title"), field.get("description"))
    text = kind if isinstance(kind, str) else "any"
    identifies = is_key or (rules.get("unique") is True and text in ("string", "integer", "any"))
    if identifies or (text == "string" and field.get("format") in _NAMING):
        return fitted(Sketch(name, {"type": "identifier"})).noted(note)
    if text in _UNSUPPORTED or (text == "string" and field.get("format") == "binary"):
        return Sketch(name, None, (f"Left out: columns of type {text} can't be modelled.",)).noted(note)
    sketch = _listed(name, field, rules, missing) or _of_type(name, text, field, rules, missing)
    return sketch.noted(note)


def _missing(values: Value, required: bool) -> Value:
    """The grammar's rule for missing cells; markers with labels get codes of their own."""
    if required:
        return False
    if not isinstance(values, list):
        return True
    labelled = [v for v in values if isinstance(v, dict)]
    texts = [v.get("value") if isinstance(v, dict) else v for v in values]
    markers = [text for text in texts if isinstance(text, str) and text.strip()]
    if not markers:
        return True
    return {"distinct": cast(Value, markers)} if labelled and len(markers) > 1 else cast(Value, markers)


def _listed(name: str, field: Mapping, rules: Mapping, missing: Value) -> Sketch | None:
    """A field whose values are listed, in the order of its categories."""
    categories, enum = field.get("categories"), rules.get("enum")
    if isinstance(categories, list) and categories:
        values: Value = [c.get("value") if isinstance(c, dict) else c for c in categories]
        if isinstance(enum, list) and isinstance(values, list):
            values = [value for value in values if value in enum] or values
    elif isinstance(enum, list) and enum:
        values = enum
    else:
        return None
    ordered = "ordered" if field.get("categoriesOrdered") is True else "category"
    declared = named_values(ordered, values, missing)
    sketch = first_fit(name, declared, {**declared, "type": "category"} if ordered == "ordered" else declared)
    return sketch.noted(_labels(categories))


def _labels(categories: Value) -> str:
    """The labels of values, as a note; empty without labels."""
    labelled = [c for c in categories if isinstance(c, dict)] if isinstance(categories, list) else []
    meanings = (f"{c.get('value')} is {c['label']}" for c in labelled if isinstance(c.get("label"), str))
    return shown(", ".join(meanings), 200)


def _of_type(name: str, kind: str, field: Mapping, rules: Mapping, missing: Value) -> Sketch:
    if kind in ("integer", "number", "year"):
        return _numeric(name, kind, field, rules, missing)
    if kind == "boolean":
        return fitted(Sketch(name, with_missing(_boolean(field), missing)))
    if kind in ("date", "datetime", "time"):
        return _moment(name, cast(MomentKind, kind), field.get("format"), rules, missing)
    if kind == "yearmonth":
        declared: Declared = {"type": "date", **_months(rules), "unit": "month", "format": "%Y-%m"}
        return fitted(Sketch(name, with_missing(declared, missing)))
    if kind == "duration":
        low, high = (_first(rules, key) for key in ("minimum", "maximum"))
        return fitted(Sketch(name, with_missing({"type": "duration", "min": low, "max": high}, missing)))
    pattern = rules.get("pattern")
    if kind == "string" and isinstance(pattern, str):
        return _coded(name, pattern, missing)
    if kind == "string":
        note = "A text: list its values if they are few, or leave the column out."
        declared = with_missing({"type": "category", "values": None}, missing)
        return fitted(Sketch(name, declared, (note,)))
    return fitted(Sketch(name, with_missing(dict(STUB), missing)))


def _first(rules: Mapping, end: str) -> Value:
    """A bound of a field, inclusive or exclusive."""
    return rules.get(end, rules.get(f"exclusive{end.capitalize()}"))


def _numeric(name: str, kind: str, field: Mapping, rules: Mapping, missing: Value) -> Sketch:
    whole = kind != "number"
    ends = {
        key: inside(_first(rules, end), step, exclusive=end not in rules, whole=whole)
        for key, end, step in (("min", "minimum", 1), ("max", "maximum", -1))
    }
    declared: Declared = {"type": "integer" if whole else "number", **ends}
    notation = {"thousands": field.get("groupChar"), "decimal": field.get("decimalChar")}
    written: Mapping = {key: sign for key, sign in notation.items() if isinstance(sign, str) and sign != "."}
    if notation["thousands"] == ".":
        written["thousands"] = "."
    notes = []
    if field.get("bareNumber") is False:
        declared["format"] = None
        notes.append("Its cells have text around the number: say which, such as format: {prefix: '$'}.")
    elif written:
        declared["format"] = written
    return fitted(Sketch(name, with_missing(declared, missing), tuple(notes)))


def _boolean(field: Mapping) -> Declared:
    """Truth values in the first of the spellings that are listed, unless these are the usual ones."""
    said = [field.get(key) for key in ("falseValues", "trueValues")]
    spelt = [texts[0] for texts in said if isinstance(texts, list) and texts]
    usual = said in ([None, None], [_TRUTHS[1], _TRUTHS[0]])
    return {"type": "boolean"} if usual or len(spelt) < 2 else {"type": "boolean", "values": spelt}


def _moment(name: str, kind: MomentKind, form: Value, rules: Mapping, missing: Value) -> Sketch:
    pattern = form.removeprefix("fmt:") if isinstance(form, str) and form not in ("default", "any") else None
    declared: Declared = {"type": kind}
    if kind != "time":
        ends = (("min", "minimum"), ("max", "maximum"))
        declared |= {key: moment(kind, pattern, _first(rules, end)) for key, end in ends}
    if form == "any":
        declared["format"] = None
    elif pattern is not None and pattern != ISO[kind]:
        declared["format"] = pattern
    return fitted(Sketch(name, with_missing(declared, missing)))


def _months(rules: Mapping) -> Declared:
    ends = {key: _first(rules, end) for key, end in (("min", "minimum"), ("max", "maximum"))}
    return {key: f"{end}-01" if isinstance(end, str) and len(end) == 7 else end for key, end in ends.items()}


def _coded(name: str, pattern: str, missing: Value) -> Sketch:
    try:
        return fitted(Sketch(name, with_missing(coded(pattern), missing)))
    except ValueError as error:
        declared = with_missing({"type": "category", "values": None}, missing)
        return fitted(Sketch(name, declared, (shown(f"Its pattern {pattern} {error}.", 200),)))


def linked_tables(document: Mapping, file: str) -> tuple[dict[str, str], list[Reference]]:
    """The resources of a package with their files, and the foreign keys from one to another.

    Raises:
        ConfigError: a foreign key doesn't follow the standard.
    """
    listed, found = document.get("resources"), list[Reference]()
    resources = enumerate(listed if isinstance(listed, list) else [])
    held = {_name_of(resource, i): resource for i, resource in resources if isinstance(resource, dict)}
    for name, resource in held.items():
        schema = resource.get("schema")
        keys = schema.get("foreignKeys", []) if isinstance(schema, dict) else []
        for one in sequence(keys, file, f"{name}.foreignKeys"):
            key = mapping(one, file, f"{name}.foreignKeys")
            refers = mapping(key.get("reference"), file, f"{name}.foreignKeys.reference")
            columns, of = texts(key.get("fields")), texts(refers.get("fields"))
            # Without a resource, or with an empty name, a table refers to itself.
            above = refers.get("resource") or name
            if above not in held or not columns or len(columns) != len(of):
                words = "must name fields, and as many of one of the resources"
                raise ConfigError(f"{file}: '{shown(name)}.foreignKeys' {words}.")
            found += [Reference(name, columns, str(above), of)] if above != name else []
    paths = {name: resource.get("path") for name, resource in held.items()}
    # As the standard has it, a file lies in the folder of its package or below.
    below = {n: p if isinstance(p, str) and p[:1] != "/" and ".." not in p else "" for n, p in paths.items()}
    return below, found


FORMAT = Format(
    "table-schema", "Table Schema or Data Package (Frictionless)", is_schema, read_schema, linked_tables
)
