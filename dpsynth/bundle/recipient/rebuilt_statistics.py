"""The published tables of a bundle, rebuilt from its measurements, or from its model, and compared.

A table of columns that were measured together follows from the answers: each of its numbers is compared. A
table by the model has errors from random refits; its estimates are compared where they are the model's own,
which they are unless some answers lie beside the model's tree.

Invariant: what can't be rebuilt is said, never passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.bundle import Provenance, StatisticRequest, StatisticTable, compute_statistics
from dpsynth.bundle.recipient.bundle import MANIFEST, Bundle
from dpsynth.config.statistic_kinds import request_of
from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

_CLOSE = 1e-6
"""Largest difference, as a part of the largest number of a column: files have nine digits."""
_PAIR = 2

Fault = tuple[str, str]
"""A file and a sentence on what is wrong with it."""


@dataclass(frozen=True)
class _Counts:
    """A request for counts."""

    crosstab: tuple[str, ...]


@dataclass(frozen=True)
class _Mean:
    """A request for a mean."""

    mean: str
    by: str | None


def rebuilt(bundle: Bundle) -> tuple[list[str], list[Fault]]:
    """Sentences on what was rebuilt, and faults."""
    listed: Sequence[Mapping[str, Any]] = bundle.manifest["statistics"]
    if bundle.manifest["earlier_releases"] is not None or bundle.manifest["public_table"] is not None:
        return [
            "The statistics rest on earlier releases or on a public table as well, so they can't be rebuilt "
            "from this bundle alone; only their checksums were compared."
        ], []
    source = bundle.rows
    try:
        tables = compute_statistics(
            [r for facts in listed if (r := _request(facts)) is not None],
            source.layout.columns,
            bundle.measured,
            bundle.model,
            (),
            provenance=Provenance(
                public_marginals=source.public_marginals,
                sums=bundle.sums,
                finer=bundle.finer,
                distances=bundle.distances,
                sampled=bundle.sampled,
            ),
        )
    except ConfigError as error:
        return [], [(MANIFEST, f"lists statistics that can't be made: {error}")]
    again = {(t.kind, t.columns, _text_of(t.asked)): t for t in tables}
    own = _in_the_tree(bundle)
    faults: list[Fault] = []
    compared = by_model = left = 0
    for (title, frame), facts in zip(bundle.statistics.items(), listed, strict=True):
        table = again.get((facts["kind"], tuple(facts["columns"]), _text_of(facts.get("asked"))))
        if table is None or (not table.measured and not own):
            left += 1
            continue
        if table.measured is not facts["measured"]:
            faults.append((MANIFEST, f"calls the statistic {title} measured, or by the model, wrongly."))
            continue
        by_model += not table.measured
        compared += table.measured
        faults += [(facts["file"], words) for words in _differences(frame, table)]
    return _told(compared, by_model, left), faults


def _told(compared: int, by_model: int, left: int) -> list[str]:
    found = [f"{compared} tables of statistics are what measurements.parquet gives, number by number."]
    if by_model:
        found.append(
            f"The estimates of {by_model} more are those of model.npz; their errors are random refits."
        )
    if left:
        found.append(
            f"{left} tables follow from the model and further answers by random draws; only their "
            "checksums were compared."
        )
    return found


def _request(facts: Mapping[str, Any]) -> StatisticRequest | None:
    columns = tuple(facts["columns"])
    if "asked" in facts:
        return request_of(facts["asked"])
    if facts["kind"] == "crosstab" and columns:
        return _Counts(columns)
    if facts["kind"] == "mean" and 0 < len(columns) <= _PAIR:
        return _Mean(columns[-1], columns[0] if len(columns) == _PAIR else None)
    return None


def _text_of(asked: Mapping[str, Any] | None) -> str:
    return "" if asked is None else json.dumps(asked, sort_keys=True)


def _in_the_tree(bundle: Bundle) -> bool:
    """True if every answer lies within a clique of the model's tree."""
    names = {column: groups for groups, column in bundle.rows.wanted.values_of.items()}
    tree = bundle.model.tree
    return all(
        tree.home([names.get(c, c) for c in answer.clique]) is not None for answer in bundle.answers.answers
    )


def _differences(frame: pd.DataFrame, table: StatisticTable) -> list[str]:
    """Differences between a published table and a rebuilt one."""
    made = table.table.to_pandas()
    if list(frame.columns) != list(made.columns) or len(frame) != len(made):
        return ["has other rows or columns than the measurements give."]
    found = []
    for name in made.columns:
        if name == "limits" and not table.measured:
            # Without refits a figure by the model has no interval to claim anything of.
            continue
        if name in table.label_names or name in ("basis", "limits"):
            if frame[name].astype(str).tolist() != made[name].astype(str).tolist():
                found.append(f"has other texts in the column {name} than the measurements give.")
        elif table.measured or name == "estimate":
            one, two = (f[name].to_numpy(dtype=np.float64, na_value=np.nan) for f in (frame, made))
            largest = max(float(np.nanmax(np.abs(two), initial=0.0)), 1.0)
            if not np.allclose(one, two, rtol=0.0, atol=_CLOSE * largest, equal_nan=True):
                found.append(f"has other numbers in the column {name} than the measurements give.")
    return found
