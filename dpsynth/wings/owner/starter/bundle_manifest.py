"""The manifest.json of a bundle: the columns of a release, for the next one.

Ends, bins and values that a release found with a part of its budget are in its manifest, and public from then
on. Declared in the next configuration they cost nothing, and all releases have the same cells.
"""

from __future__ import annotations

from dpsynth.columns.public_schema import declared_from
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter.documents import Mapping, mapping
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Format, Sketch, first_fit, fitted


def is_manifest(document: Mapping) -> bool:
    """True if a document looks like a manifest."""
    return {"release_id", "guarantee", "columns"} <= document.keys() and isinstance(document["columns"], list)


def read_manifest(document: Mapping, file: str, _: str | None = None) -> Draft:
    """A draft with the columns of a release.

    Raises:
        ConfigError: the document is no manifest, or that of a rehearsal.
    """
    if document.get("rehearsal") is True:
        raise ConfigError(
            f"{file} is the manifest of a rehearsal: what it found is made up. Use that of a release."
        )
    listed = document.get("columns")
    if not isinstance(listed, list):
        raise ConfigError(f"{file} has no list of columns: it is no manifest.json of a bundle.")
    described = [mapping(facts, file, f"columns[{i}]") for i, facts in enumerate(listed)]
    columns = [_sketch(facts) for facts in described]
    origin = f"{file} is the manifest of a release: its columns and their values, which are public."
    return Draft((origin,), tuple(columns), described=False)


def _sketch(facts: Mapping) -> Sketch:
    name = facts.get("name")
    called = name if isinstance(name, str) else ""
    if "computed_from" in facts:
        note = (
            "It is computed from other columns; copy its declaration from the configuration of that release."
        )
        return fitted(Sketch(called, dict(STUB), (note,)))
    declared = declared_from(facts)
    if declared is None:
        return fitted(Sketch(called, dict(STUB), ("The manifest doesn't say what it is.",)))
    return first_fit(called, declared, {k: v for k, v in declared.items() if k != "missing"})


FORMAT = Format("dpsynth", "a bundle's manifest.json", is_manifest, read_manifest)
