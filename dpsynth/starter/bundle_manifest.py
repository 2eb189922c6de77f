"""The manifest.json of a bundle: the columns of a release, for the next one.

What a release found with a part of its budget (ends, bins, values) is in its manifest, and public from then
on: declared in the next configuration it costs nothing again, and all releases have the same places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import cast

from dpsynth.config.yaml_reader import Value
from dpsynth.errors import ConfigError
from dpsynth.starter.documents import Mapping, mapping
from dpsynth.starter.fitting import first_fit, fitted
from dpsynth.starter.sketch import STUB, Declared, Draft, Sketch

FORMAT = "dpsynth"
NAME = "a bundle's manifest.json"

_HUGE = 10**20
_SAME = ("unit", "min", "max", "format")


def is_manifest(document: Mapping) -> bool:
    """Whether a document looks like one."""
    return {"release_id", "guarantee", "columns"} <= document.keys() and isinstance(document["columns"], list)


def read_manifest(document: Mapping, file: str) -> Draft:
    """A draft with the columns of a release.

    Raises:
        ConfigError: it is no manifest.
    """
    listed = document.get("columns")
    if not isinstance(listed, list):
        raise ConfigError(f"{file} has no list of columns: it is no manifest.json of a bundle.")
    described = [mapping(facts, file, f"columns[{i}]") for i, facts in enumerate(listed)]
    columns = [_sketch(facts) for facts in described]
    origin = f"{file} is the manifest of a release: its columns and their places, which are public."
    return Draft((origin,), tuple(columns), described=False)


def _sketch(facts: Mapping) -> Sketch:
    name, kind = facts.get("name"), facts.get("type")
    called = name if isinstance(name, str) else ""
    if "made_up_from" in facts:
        return fitted(Sketch(called, {"type": "identifier", "surrogates": facts["made_up_from"]}))
    if "computed_from" in facts:
        note = (
            "It is computed from other columns; copy its declaration from the configuration of that release."
        )
        return fitted(Sketch(called, dict(STUB), (note,)))
    declared = _declared(facts, kind if isinstance(kind, str) else "")
    if declared is None:
        return fitted(Sketch(called, dict(STUB), ("The manifest doesn't say what it is.",)))
    return first_fit(called, {**declared, **_missing(facts)}, declared)


def _declared(facts: Mapping, kind: str) -> Declared | None:
    """The declaration but for missing cells; None where the facts are none of a column."""
    labels = _texts(facts.get("labels"))
    if "edges" in facts:
        return _numeric(facts, kind)
    if "pattern" in facts:
        prefixes = _texts(facts.get("prefixes"))
        other = labels[len(prefixes) : len(prefixes) + 1]
        return {"type": "text", "pattern": facts["pattern"], "prefixes": cast(Value, prefixes)} | (
            {"other": other[0]} if other else {}
        )
    if kind in ("date", "datetime", "time", "duration"):
        return {"type": kind, **{key: facts[key] for key in _SAME if key in facts}}
    if kind == "boolean":
        return {"type": "boolean", "values": cast(Value, labels[:2])}
    if "ordered" in facts and labels:
        return _category(facts, kind, labels)
    return None


def _category(facts: Mapping, kind: str, labels: list[str]) -> Declared:
    other = facts.get("other")
    values = [label for label in labels if label != other]
    declared: Declared = {
        "type": "ordered" if facts["ordered"] is True else "category",
        "values": cast(Value, list(map(int, values)) if kind == "integer" and _whole_all(values) else values),
    }
    return declared | ({"other": other} if other is not None else {})


def _whole_all(texts: Sequence[str]) -> bool:
    return all(re.fullmatch(r"-?[0-9]{1,15}", text) for text in texts)


def _numeric(facts: Mapping, kind: str) -> Declared | None:
    edges = facts["edges"]
    if not isinstance(edges, list) or len(edges) < 2:
        return None
    numbers = [Decimal(e) for e in edges if isinstance(e, int | Decimal) and not isinstance(e, bool)]
    found = [number for number in numbers if number.is_finite() and abs(number) < _HUGE]
    form = {"format": facts["format"]} if "format" in facts else {}
    if len(found) < len(edges):
        return None
    if kind == "integer":
        return {"type": "integer", **_whole(found), **form}
    return {"type": "number", "bins": cast(Value, found), "decimals": facts.get("decimals"), **form}


def _whole(edges: Sequence[Decimal]) -> Declared:
    """Bins of whole numbers. The upper edge of the last lies half a step above its largest value."""
    starts, last = [int(edge) for edge in edges[:-1]], int(edges[-1])
    if all(b - a == 1 for a, b in pairwise([*starts, last + 1])):
        return {"min": starts[0], "max": last, "bins": len(starts)}
    # A last bin of one value can't be written as edges; it gets the next value too.
    return {"bins": cast(Value, [*starts, max(last, starts[-1] + 1)])}


def _missing(facts: Mapping) -> Declared:
    missing = facts.get("missing")
    if not isinstance(missing, dict):
        return {}
    markers, apart = _texts(missing.get("markers")), _texts(missing.get("told_apart"))
    if missing.get("has_a_place") is False:
        return {"missing": False}
    if apart:
        return {"missing": cast(Value, {"apart": apart} | ({"markers": markers} if markers else {}))}
    return {"missing": cast(Value, markers)} if markers else {}


def _texts(listed: Value) -> list[str]:
    """The texts of a list but for the labels of missing cells, which come last."""
    found = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return [text for text in found if text != "(missing)" and not text.startswith("(missing: ")]
