"""Keyword arguments of a release in Python: the keys of the YAML, with a few short ones.

Invariant: each key has one meaning. A short key is a key of the grammar under a shorter name, and the same
key given in both ways is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict

from dpsynth.config import Spec
from dpsynth.config.privacy import USUAL_DELTA
from dpsynth.errors import ConfigError, nearest

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """A table that gives its columns as an Arrow stream: of pyarrow, Polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream, in a capsule."""
        ...


Table: TypeAlias = "pd.DataFrame | ArrowStream"
"""A table in memory."""

Columns = Mapping[str, Mapping[str, object]]
Number = int | float | Decimal

SHORT = {
    "epsilon": ("privacy", "epsilon"),
    "delta": ("privacy", "delta"),
    "unit": ("privacy", "unit"),
    "dataset": ("ledger", "dataset"),
}
"""Short keys, with the section and the key of the grammar that each stands for."""


class Keys(TypedDict, total=False):
    """Keys of a configuration, as keyword arguments.

    Attributes:
        epsilon: short for ``privacy={"epsilon": ...}``.
        delta: short for ``privacy={"delta": ...}``. Left out: 1e-9, as ``dpsynth init`` writes it. 0 asks for
            pure epsilon-DP, as does ``privacy={"noise": "laplace"}`` without a delta.
        unit: short for ``privacy={"unit": ...}``: "row", or ``{"column": "patient_id", "max_rows": 4}``.
        dataset: short for ``ledger={"dataset": ...}``: the name under which the ledger adds up all releases
            of this table.
        ledger: the ledger's file, the address of its database, or its whole section.
        columns: a declaration for each column to use, by name.
        release: name of the release and of its folder; left out: the dataset's.
    """

    epsilon: Number
    delta: Number | None
    unit: str | Mapping[str, object]
    dataset: str
    ledger: str | Path | Mapping[str, object]
    columns: Columns
    release: str
    privacy: Mapping[str, object]
    constraints: Sequence[str]
    structure: Mapping[str, object]
    sample: Mapping[str, object]
    publish: Mapping[str, object]
    reuse: Mapping[str, object]
    public_table: str | Mapping[str, object]
    public_marginals: Sequence[Mapping[str, object]]
    engine: Mapping[str, object]


def spec_of(keys: Mapping[str, object], path: str | Path | None = None) -> Spec:
    """The spec that keyword arguments describe.

    Args:
        keys: those of ``Keys``.
        path: the file of the table; None for a table in memory.

    Raises:
        ConfigError: a key is unknown, given twice, or has a value that isn't allowed.
    """
    unknown = next((key for key in keys if key not in Keys.__annotations__), None)
    if unknown is not None:
        known = list(Keys.__annotations__)
        raise ConfigError(
            f"{unknown} is not a known key{nearest(unknown, known)}; the keys of a release are "
            f"{', '.join(known)}. A schedule, and a table with periods, need a spec: dpsynth.Spec.from_dict."
        )
    values = {key: value for key, value in keys.items() if key not in SHORT}
    if isinstance(values.get("ledger"), str | Path):
        values["ledger"] = {"url": address(values["ledger"])}
    for short, (section, key) in SHORT.items():
        if short in keys:
            values[section] = _joined(values.get(section, {}), short, section, key, keys[short])
    privacy = values.get("privacy", {})
    if isinstance(privacy, Mapping):
        values["privacy"] = _with_delta(privacy)
    if "columns" not in values:
        raise ConfigError(
            "columns is missing: declare each column to use, such as columns={'age': {'type': 'integer', "
            "'min': 0, 'max': 110}}. dpsynth.describe(table) guesses them, for review."
        )
    return Spec.from_dict(values if path is None else {"source": {"path": str(path)}, **values})


def _with_delta(privacy: Mapping[str, object]) -> dict[str, object]:
    """The section with a delta, unless pure epsilon-DP is asked for, which the grammar writes without one."""
    found = dict(privacy)
    delta = found.setdefault("delta", None if _pure_by_other_keys(privacy) else USUAL_DELTA)
    if isinstance(delta, Number) and not isinstance(delta, bool) and delta == 0:
        found["delta"] = None
    return found


def _pure_by_other_keys(privacy: Mapping[str, object]) -> bool:
    return privacy.get("noise") == "laplace" or privacy.get("accountant") == "sequential"


def _joined(found: object, short: str, section: str, key: str, value: object) -> dict[str, object]:
    """A section with the value of a short key."""
    if not isinstance(found, Mapping):
        raise ConfigError(f"{section} must be a mapping of keys to values.")
    if key in found:
        raise ConfigError(f"{section}.{key} is given twice: as {short}, and under {section}. Keep one.")
    return {**found, key: value}


def address(ledger: object) -> str:
    """The address of a ledger, from that or from the path of its file."""
    return str(ledger) if "://" in str(ledger) else f"sqlite:///{Path(str(ledger)).expanduser()}"
