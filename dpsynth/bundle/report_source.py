"""The public facts that the report is made of, read from the public folder of a bundle.

A report is made of the other public files alone, when a release ends and ever after. So it can be made anew,
and shows nothing that a recipient doesn't have.

Invariant: equal files make equal reports.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsynth.bundle.manifest import MANIFEST, BundleRefused, Facts, Manifest, Statistic, read_values
from dpsynth.bundle.row_files import restore
from dpsynth.bundle.structure_tree import PairError
from dpsynth.errors import ConfigError
from dpsynth.statistics import exam
from dpsynth.statistics.tables import StatisticTable

REPORT = "report.html"
_UNEVEN = 1.5
"""Ratio of the widest to the narrowest bin above which bins are of unequal width."""


@dataclass(frozen=True)
class ShownColumn:
    """A column as its histogram needs it.

    Attributes:
        values: number of its values, without those of missing cells.
        ordered: True if their order has a meaning.
        numeric: True if they are bins of numbers.
        uneven: True if these are of unequal width.
    """

    values: int
    ordered: bool
    numeric: bool
    uneven: bool

    @staticmethod
    def of(described: Facts) -> ShownColumn:
        """The column that a public schema describes."""
        missing, edges = described["missing"], described.get("edges")
        gone = bool(missing["modelled"]) + len(missing.get("distinct_markers", ()))
        widths = [b - a for a, b in pairwise(edges)] if edges else []
        # The last bin of whole numbers ends half a step above its last value.
        inner = widths[:-1] or widths
        return ShownColumn(
            values=len(described["labels"]) - gone,
            ordered=bool(described.get("ordered", edges is not None or "unit" in described)),
            numeric=edges is not None,
            uneven=bool(inner) and max(inner) > _UNEVEN * min(inner),
        )


@dataclass(frozen=True, eq=False)
class ReportSource:
    """The facts of a report.

    Attributes:
        manifest: the manifest; of its ``files`` the names alone are used.
        files: names of the public files.
        statistics: the published tables of statistics.
        errors: the measured error of each pair that was examined.
    """

    manifest: Manifest
    files: Collection[str]
    statistics: tuple[StatisticTable, ...]
    errors: Mapping[frozenset[str], PairError]


def report_source(folder: Path, manifest: Manifest, files: Collection[str]) -> ReportSource:
    """The facts of a report.

    Args:
        folder: the public folder.
        manifest: its manifest, which may lack ``files``.
        files: names of the public files, without those that are written after the report.
    """
    errors = _errors(folder / exam.FILE) if exam.FILE in files else {}
    tables = tuple(_statistic(folder, stated) for stated in manifest.statistics)
    return ReportSource(manifest, frozenset(files), tables, errors)


def read_source(folder: Path) -> ReportSource:
    """The facts of a finished bundle's report.

    Raises:
        ConfigError: the folder is not the public folder of a bundle, or is damaged.
    """
    manifest = stated_in(folder)
    try:
        return report_source(folder, manifest, manifest.files)
    except FileNotFoundError as error:
        raise _missing(folder, str(error.filename)) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise damaged(folder) from None


def stated_in(folder: Path) -> Manifest:
    """A bundle's manifest, as the owner's commands read it.

    Raises:
        ConfigError: the folder has none, or it is damaged.
    """
    values = stated_values(folder)
    try:
        return Manifest.of_values(values)
    except ValueError:
        raise damaged(folder) from None


def stated_values(folder: Path) -> dict[str, Any]:
    """The values of a bundle's manifest, as the owner's commands read them.

    Raises:
        ConfigError: the folder has none, or it is damaged.
    """
    if not (folder / MANIFEST).exists():
        raise _missing(folder, MANIFEST)
    try:
        return read_values(folder)
    except BundleRefused:
        raise damaged(folder) from None


def _missing(folder: Path, file: str) -> ConfigError:
    return ConfigError(f"{folder} is not the public folder of a bundle: it has no {Path(file).name}.")


def damaged(folder: Path) -> ConfigError:
    """The error of a bundle whose files don't say what a report needs."""
    return ConfigError(
        f"The bundle in {folder} can't be read: a file of it is damaged, or was written by another version "
        "of dpsynth. Its manifest.json names the version under software."
    )


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file of the bundle, with texts as they were."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    return restore(pa.array(header, pa.string())).to_pylist(), rows


def _statistic(folder: Path, stated: Statistic) -> StatisticTable:
    header, rows = _rows(folder / stated.file)
    labels = header.index("estimate")
    columns = []
    for spot in range(len(header)):
        cells = [row[spot] for row in rows]
        columns.append(restore(pa.array(cells, pa.string())) if spot < labels else _figures(cells))
    return StatisticTable(
        name=Path(stated.file).stem,
        title=stated.title,
        kind=stated.kind,
        columns=stated.columns,
        table=pa.table(columns, names=header),
        measured=stated.measured,
    )


def _figures(cells: Sequence[str]) -> pa.Array:
    """Numbers, null where empty; or texts, in a column that says what the numbers rest on."""
    try:
        return pa.array([float(cell) if cell else None for cell in cells], pa.float64())
    except ValueError:
        return restore(pa.array(cells, pa.string()))


def _errors(path: Path) -> dict[frozenset[str], PairError]:
    """The measured errors of the pairs in exam.csv."""
    header, rows = _rows(path)
    found = {}
    for row in rows:
        cells = dict(zip(header, restore(pa.array(row, pa.string())).to_pylist(), strict=True))
        if cells["kind"] == "pair":
            pair = frozenset((cells["column_1"], cells["column_2"]))
            found[pair] = PairError(*(float(cells[name]) for name in ("error", "low", "high")))
    return found
