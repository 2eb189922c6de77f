"""The evaluation as a page and as JSON, in the bundle's folder ``private``.

Invariant: both files go into ``private`` alone, readable for their owner alone, whole or not at all; their
first words say that they must never be shared. The page shows every name as text, runs no script and fetches
nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from dpsynth import figures
from dpsynth.page_templates import PairCell, PairMatrix, environment, pair_matrix
from dpsynth.wings.owner.assess.distances import Distance
from dpsynth.wings.owner.assess.evaluation import PRIVATE, Evaluation
from dpsynth.wings.owner.assess.owned_bundle import PAGE

FACTS = "utility.json"
_PAIRS_SHOWN = 12
_DARKEST = 0.3
"""Distance whose cell of the matrix is darkest."""


def write_evaluation(evaluation: Evaluation) -> Path:
    """Write the page and the JSON file; an earlier evaluation is replaced.

    Returns:
        The path of the page.
    """
    private = evaluation.bundle.private
    private.mkdir(mode=0o700, exist_ok=True)
    _write(
        private / FACTS, json.dumps(facts(evaluation), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )
    _write(private / PAGE, page(evaluation))
    return private / PAGE


def _write(path: Path, text: str) -> None:
    """Write a file of mode 0600 under a name of its own, then rename it into place."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def facts(evaluation: Evaluation) -> dict[str, object]:
    """The evaluation as plain JSON values; the first key says that they are private."""
    plain: dict[str, object] = {
        "private": PRIVATE,
        "release": evaluation.bundle.manifest["release"],
        "release_id": evaluation.bundle.manifest["release_id"],
        "against": str(evaluation.path),
        "rows": dict(zip(("private", "synthetic"), evaluation.rows, strict=True)),
        "columns": [asdict(d) for d in evaluation.columns],
        "pairs": [asdict(d) for d in evaluation.pairs],
    }
    for name in ("score", "propensity", "agreement", "unseen", "coverages"):
        found = getattr(evaluation, name)
        plain[name] = None if found is None else asdict(found)
    for name in ("raw", "correlations", "violations"):
        plain[name] = [asdict(one) for one in getattr(evaluation, name)]
    plain["predictions"] = {t: None if p is None else asdict(p) for t, p in evaluation.predictions}
    plain["regressions"] = {
        t: None if r is None else {**asdict(r), "overlap": r.overlap} for t, r in evaluation.regressions
    }
    return plain


def page(evaluation: Evaluation) -> str:
    """The page."""
    pages = environment()
    pages.filters["count"] = figures.count
    pages.filters["percent"] = figures.percent
    pages.filters["number"] = figures.number
    pages.filters["plain"] = _plain
    pages.filters["correlation"] = lambda value: f"{value:z.2f}".replace("-", "\N{MINUS SIGN}")
    pages.filters["percent_of_width"] = lambda value: f"{value:.2f}%"
    pairs = {d.columns: d for d in evaluation.pairs}
    far = sorted(evaluation.pairs, key=lambda d: d.by_chance - d.distance)
    intervals = sum(c.intervals for c in evaluation.coverages.found)
    return pages.get_template("utility.html.j2").render(
        evaluation=evaluation,
        manifest=evaluation.bundle.manifest,
        private=PRIVATE,
        matrix=_matrix(evaluation, pairs),
        worst=[d for d in far[:_PAIRS_SHOWN] if d.distance > d.by_chance],
        columns=sorted(evaluation.columns, key=lambda d: -d.distance),
        longest=max([1e-9, *(d.distance for d in evaluation.columns)]),
        held=sum(c.held for c in evaluation.coverages.found) / intervals if intervals else None,
        kinds=_KINDS,
    )


_KINDS = {
    "one_way": "Counts by one column",
    "crosstab": "Counts by several columns",
    "count": "Counts",
    "mean": "Means",
    "sum": "Sums",
    "variance": "Variances",
    "quantiles": "Quantiles",
    "correlation": "Correlations",
    "model": "Regressions",
    "exam": "Exam",
}
"""Kinds of statistics in words."""


def _plain(value: float) -> str:
    """A number in raw units, without zeros behind its last decimal."""
    text = figures.number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _matrix(evaluation: Evaluation, pairs: Mapping[tuple[str, ...], Distance]) -> PairMatrix | None:
    def cell(one: str, other: str) -> PairCell:
        found = pairs[one, other]
        off, chance = (f"{100 * share:.1f} %" for share in (found.distance, found.by_chance))
        words = f"{one} and {other}: {off} off, {chance} by chance alone"
        return PairCell(f"{100 * found.distance:.0f}", words, min(found.distance / _DARKEST, 1.0))

    return pair_matrix([d.columns[0] for d in evaluation.columns], cell)
