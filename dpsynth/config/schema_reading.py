"""Facts of a column in the public schema of a release, read back.

Ends, bins and values that a release found with a part of its budget are public from then on. Declared in
the next configuration they cost nothing, and all releases have the same cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import cast

from dpsynth.config.declaration import Declared, Described
from dpsynth.config.yaml_reader import Value

_HUGE = 10**20
_SPAN = ("unit", "min", "max", "format", "step")
_START = "0000-01-01T00:00"
"""Suffix that turns a year, month or hour into a moment that the grammar takes."""


def value_labels(listed: Value) -> list[str]:
    """Labels of values, without the labels of missing cells that end the list."""
    found = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return [text for text in found if text != "(missing)" and not text.startswith("(missing: ")]


def spanned(described: Described, kind: str) -> Declared | None:
    """The declaration of a column of moments or durations: unit, ends and format."""
    if described.get("type") != kind:
        return None
    found: Declared = {"type": kind, **{key: described[key] for key in _SPAN if key in described}}
    whole = {"date": len("2020-01-31"), "datetime": len("2020-01-31T13:45")}.get(kind, 0)
    for key in ("min", "max"):
        end = found.get(key)
        if isinstance(end, str):
            # A format without days or minutes has ends without them.
            found[key] = end + _START[len(end) : whole]
    if isinstance(parts := described.get("parts"), list):
        found["parts"] = [part["part"] for part in parts if isinstance(part, dict) and "part" in part]
    return found


def named_values(described: Described, kind: str) -> Declared | None:
    """The declaration of a column of categories, ordered or not."""
    labels = value_labels(described.get("labels"))
    if not labels or "ordered" not in described:
        return None
    if described["ordered"] is not (kind == "ordered"):
        return None
    other = described.get("other")
    # A search that found no value leaves the label of all others alone.
    values = [label for label in labels if label != other] or labels
    whole = described.get("type") == "integer" and all(re.fullmatch(r"-?[0-9]{1,15}", v) for v in values)
    declared: Declared = {"type": kind, "values": cast(Value, list(map(int, values)) if whole else values)}
    return declared | ({} if other is None else {"other": other})


def edges_of(described: Described) -> list[Decimal] | None:
    """Edges of bins of numbers; None without usable edges."""
    edges = described.get("edges")
    if not isinstance(edges, list) or len(edges) < 2:
        return None
    numbers = [Decimal(e) for e in edges if isinstance(e, int | Decimal) and not isinstance(e, bool)]
    found = [number for number in numbers if number.is_finite() and abs(number) < _HUGE]
    return found if len(found) == len(edges) else None


def number_bins(edges: Sequence[Decimal], decimals: Value) -> list[Decimal]:
    """The edges as they are declared: a largest value that is alone in its bin is given twice."""
    half = Decimal(5).scaleb(-decimals - 1) if isinstance(decimals, int) else None
    return [*edges[:-1], edges[-2]] if edges[-1] - edges[-2] == half else list(edges)


def whole_bins(edges: Sequence[Decimal]) -> Declared:
    """The keys of bins of whole numbers. The last upper edge lies half a step above the largest value."""
    starts, last = [int(edge) for edge in edges[:-1]], int(edges[-1])
    if all(b - a == 1 for a, b in pairwise([*starts, last + 1])):
        return {"min": starts[0], "max": last, "bins": len(starts)}
    # A last edge that is given twice makes a bin of the largest value alone.
    return {"bins": cast(Value, [*starts, last])}


def format_of(described: Described) -> Declared:
    """The keys of the notation of numbers; none for plain notation."""
    return {"format": described["format"]} if "format" in described else {}
