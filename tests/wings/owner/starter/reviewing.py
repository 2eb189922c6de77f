"""A starter as its reader would finish it."""

from decimal import Decimal
from pathlib import Path

import dpsynth
from dpsynth.columns.section import Value
from dpsynth.config import Spec, from_mapping
from dpsynth.config.document import parse_yaml

ENDS = {
    "integer": (0, 1000),
    "number": (0, 1000),
    "date": ("2000-01-01", "2026-12-31"),
    "datetime": ("2000-01-01", "2026-12-31"),
    "duration": ("PT0S", "PT9H"),
}


def taken_over(text: str) -> dict[str, dict[str, Value]]:
    """The columns of a starter."""
    columns = parse_yaml(text, "starter").values["columns"]
    assert isinstance(columns, dict)
    return columns


def to_review(text: str) -> list[str]:
    """What a starter lists for review."""
    listed = parse_yaml(text, "starter").values["review"]
    assert isinstance(listed, list)
    return [str(entry) for entry in listed]


def without_list(text: str) -> str:
    """A starter whose reader took every line out of the list."""
    return text[: text.index("# dpsynth refuses")] + "review: []\n"


def filled(columns: dict[str, Value]) -> Spec:
    """The columns of a starter whose reader filled every gap, as a checked configuration."""
    whole = {name: _filled(declared) for name, declared in columns.items() if isinstance(declared, dict)}
    privacy: dict[str, Value] = {"epsilon": 1, "delta": Decimal("1e-9")}
    return from_mapping({"source": {"path": "t.csv"}, "privacy": privacy, "columns": {**whole}})


def _filled(declared: dict[str, Value]) -> dict[str, Value]:
    found = {key: value for key, value in declared.items() if value is not None}
    kind = declared["type"]
    if kind is None:
        return {**found, "type": "category", "values": ["one thing", "another"]}
    if "values" in declared and declared["values"] is None:
        found["values"] = ["one thing", "another"]
    gaps = [end for end in ("min", "max") if end in declared and declared[end] is None]
    if len(gaps) == 2:
        found |= zip(("min", "max"), ENDS[str(kind)], strict=True)
    elif gaps:
        known = found["max" if gaps == ["min"] else "min"]
        step = 1 if gaps == ["max"] else -1
        found[gaps[0]] = known + step if isinstance(known, int | Decimal) else known
        # From a text to itself there is one value only, which a place for missing cells makes two.
        found["missing"] = True
    return found


def loaded(text: str, folder: Path) -> Spec:
    """A configuration loaded from a file."""
    path = folder / "started.yaml"
    path.write_text(text, encoding="utf-8")
    return dpsynth.load(path)
