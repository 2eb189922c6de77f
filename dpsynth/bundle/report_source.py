"""The public facts that the report is made of, read from the public folder of a bundle.

A report is made of the other public files alone, when a release ends and ever after. So it can be made anew,
and shows nothing that a recipient doesn't have.

Invariant: equal files make equal reports.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow as pa

from dpsynth.accounting.events import Guarantee
from dpsynth.bundle.csv_files import restore
from dpsynth.columns.domain import Clique
from dpsynth.errors import ConfigError
from dpsynth.statistics import exam
from dpsynth.statistics.sampled_estimates import SampledUnits
from dpsynth.statistics.structure_tree import PairError
from dpsynth.statistics.tables import StatisticTable
from dpsynth.statistics.verdict import Verdict

MANIFEST = "manifest.json"
REPORT = "report.html"
_UNEVEN = 1.5
"""Ratio of the widest to the narrowest bin above which bins are of unequal width."""
Facts = Mapping[str, object]


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
        missing = cast(Facts, described["missing"])
        gone = bool(missing["modelled"]) + len(cast(Sequence[str], missing.get("distinct_markers", ())))
        edges = cast("Sequence[float] | None", described.get("edges"))
        widths = [b - a for a, b in pairwise(edges)] if edges else []
        # The last bin of whole numbers ends half a step above its last value.
        inner = widths[:-1] or widths
        return ShownColumn(
            values=len(cast(Sequence[str], described["labels"])) - gone,
            ordered=bool(described.get("ordered", edges is not None or "unit" in described)),
            numeric=edges is not None,
            uneven=bool(inner) and max(inner) > _UNEVEN * min(inner),
        )


@dataclass(frozen=True, eq=False)
class ReportSource:
    """The facts of a report.

    Attributes:
        manifest: the manifest's JSON values; of ``files`` the names alone are used.
        files: names of the public files.
        statistics: the published tables of statistics.
        errors: the measured error of each pair that was examined.
    """

    manifest: Facts
    files: Collection[str]
    statistics: tuple[StatisticTable, ...]
    errors: Mapping[frozenset[str], PairError]

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee."""
        promise = cast(Mapping[str, str], self.manifest["guarantee"])
        keys = ("epsilon", "delta", "rho", "unit", "neighbours", "accountant", "mu", "approximate_delta")
        sampled = SampledUnits.from_json(self.manifest.get("sampling"))
        rate = None if sampled is None else sampled.rate
        return Guarantee(**{key: promise[key] for key in keys}, sample_rate=rate)  # type: ignore[arg-type]

    @property
    def verdict(self) -> Verdict:
        """The verdicts on columns and pairs."""
        return Verdict.from_json(cast("Mapping[str, object]", self.manifest["verdict"]))

    @property
    def relations(self) -> exam.Basis:
        """The sets of columns that the model rests on."""
        structure = cast(Mapping[str, Sequence[Sequence[str]]], self.manifest["structure"])
        public = cast(Sequence[Mapping[str, Sequence[str]]], self.manifest["public_marginals"])
        return exam.Basis(
            measured=_cliques(structure["measured_together"]),
            public=_cliques([marginal["columns"] for marginal in public]),
            earlier=_cliques(structure["known_from_elsewhere"]),
        )

    @property
    def modelled(self) -> Mapping[str, Facts]:
        """The descriptions of the columns that were read from the private table, and of parts, by name."""
        columns = cast(Sequence[Facts], self.manifest["columns"])
        described = [d for facts in columns for d in (facts, *cast(Sequence[Facts], facts.get("parts", ())))]
        return {str(facts["name"]): facts for facts in described if "labels" in facts}

    def checksum(self, name: str) -> str | None:
        """The SHA-256 of a public file by the manifest; None where it lists no such file."""
        found = cast(Mapping[str, Mapping[str, str]], self.manifest["files"]).get(name)
        return None if found is None else found["sha256"]


def report_source(folder: Path, manifest: Facts, files: Collection[str]) -> ReportSource:
    """The facts of a report.

    Args:
        folder: the public folder.
        manifest: the manifest's values; they may lack ``files``.
        files: names of the public files, without those that are written after the report.
    """
    listed = cast(Sequence[Facts], manifest["statistics"])
    plain = json.loads(json.dumps(manifest, default=str))
    errors = _errors(folder / exam.FILE) if exam.FILE in files else {}
    return ReportSource(plain, frozenset(files), tuple(_statistic(folder, facts) for facts in listed), errors)


def read_source(folder: Path) -> ReportSource:
    """The facts of a finished bundle's report.

    Args:
        folder: the public folder.

    Raises:
        ConfigError: the folder is not the public folder of a bundle, or is damaged.
    """
    manifest = read_manifest(folder)
    try:
        return report_source(folder, manifest, list(cast(Facts, manifest["files"])))
    except FileNotFoundError as error:
        raise _missing(folder, error) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise damaged(folder) from None


def read_manifest(folder: Path) -> Facts:
    """The values of a bundle's manifest.

    Args:
        folder: the public folder.

    Raises:
        ConfigError: the folder has none, or it is damaged.
    """
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _missing(folder, error) from None
    except (OSError, ValueError):
        raise damaged(folder) from None
    if not isinstance(found, dict):
        raise damaged(folder)
    return found


def _missing(folder: Path, error: FileNotFoundError) -> ConfigError:
    name = Path(str(error.filename)).name
    return ConfigError(f"{folder} is not the public folder of a bundle: it has no {name}.")


def damaged(folder: Path) -> ConfigError:
    """The error of a bundle whose files don't say what a report needs."""
    return ConfigError(
        f"The bundle in {folder} can't be read: a file of it is damaged, or was written by another version "
        "of dpsynth. Its manifest.json names the version under software."
    )


def _cliques(listed: Sequence[Sequence[str]]) -> tuple[Clique, ...]:
    return tuple(tuple(clique) for clique in listed)


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file of the bundle, with texts as they were."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    return restore(pa.array(header, pa.string())).to_pylist(), rows


def _statistic(folder: Path, facts: Facts) -> StatisticTable:
    name = str(facts["file"])
    header, rows = _rows(folder / name)
    labels = header.index("estimate")
    columns = []
    for spot in range(len(header)):
        cells = [row[spot] for row in rows]
        columns.append(restore(pa.array(cells, pa.string())) if spot < labels else _figures(cells))
    return StatisticTable(
        name=Path(name).stem,
        title=str(facts["title"]),
        kind=str(facts["kind"]),
        columns=tuple(cast(Sequence[str], facts["columns"])),
        table=pa.table(columns, names=header),
        measured=bool(facts["measured"]),
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
