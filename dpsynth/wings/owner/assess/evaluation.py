"""The evaluation of a bundle against the private table, for its owner's eyes: ``dpsynth evaluate``.

Everything here is exact and private. Nothing of it is charged, because nothing of it is released: a page and
a JSON file in the bundle's folder ``private`` hold it, and their first words say that they must never be
shared.

Invariant: both files go into ``private`` alone, readable for their owner alone, whole or not at all. The page
shows every name as text, runs no script and fetches nothing. An error names files and columns, and nothing
else of the table; how an evaluation ends tells nothing about cells.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from dpsynth import figures
from dpsynth.bundle.pages import InlinePage
from dpsynth.bundle.structure_tree import PairCell, PairMatrix, pair_matrix
from dpsynth.config import Spec, load
from dpsynth.config.files import FileForm
from dpsynth.config.files.form import named_form
from dpsynth.config.files.opening import unheard
from dpsynth.config.files.place import Place, place_of
from dpsynth.curator import MemoryTable, check_source
from dpsynth.errors import ConfigError
from dpsynth.page_templates import environment
from dpsynth.pipeline.inputs import LINKED, LinkedRows
from dpsynth.pipeline.steps import Steps, plainly
from dpsynth.wings.owner.assess.comparison import (
    Agreement,
    Correlation,
    Distance,
    MarginalScore,
    RawColumn,
    Unseen,
    Violations,
    agreement,
    column_distances,
    correlations,
    marginal_score,
    pair_distances,
    raw_columns,
    unseen_pairs,
    violations,
)
from dpsynth.wings.owner.assess.interval_coverage import Coverages, interval_coverage
from dpsynth.wings.owner.assess.models import (
    Prediction,
    Propensity,
    Regression,
    check_targets,
    prediction,
    propensity,
    regression,
)
from dpsynth.wings.owner.assess.owned_bundle import PAGE, OwnedBundle, private_table, synthetic_table

if TYPE_CHECKING:
    import pandas as pd


PRIVATE = "PRIVATE, never to be shared: exact figures of the private table, for its owner alone."


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The result of an evaluation. Private: it holds exact figures of the private table.

    Attributes:
        bundle: the bundle.
        path: the place of the private table; "the table in memory" of one that was handed over.
        rows: rows of the private table that the release used, and of the synthetic table.
        columns, pairs: distances of single columns and of pairs.
        score: the k-marginal score; None with fewer than three columns.
        propensity: None with too few rows.
        raw: columns of numbers in raw units.
        correlations: correlations of columns of numbers, the largest gap first.
        coverages: published intervals against exact statistics.
        agreement: rows that agree with real ones.
        unseen: rows with a pair of values that no real row has.
        violations: rows that violate a constraint.
        predictions, regressions: of the targets named; None where there are too few rows or no fitting kind.
    """

    bundle: OwnedBundle
    path: Place | str
    rows: tuple[int, int]
    columns: tuple[Distance, ...]
    pairs: tuple[Distance, ...]
    score: MarginalScore | None
    propensity: Propensity | None
    raw: tuple[RawColumn, ...]
    correlations: tuple[Correlation, ...]
    coverages: Coverages
    agreement: Agreement
    unseen: Unseen
    violations: tuple[Violations, ...]
    predictions: tuple[tuple[str, Prediction | None], ...]
    regressions: tuple[tuple[str, Regression | None], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The distances of columns, then of pairs, as a pandas table. Private.

        A distance is a share of the rows; ``by_chance`` is the one that a fresh sample would have.
        """
        import pandas as pd

        rows = [((*d.columns, "")[:2], d) for d in (*self.columns, *self.pairs)]
        cells = [(*names, d.distance, d.by_chance) for names, d in rows]
        return pd.DataFrame(cells, columns=["column_1", "column_2", "distance", "by_chance"])

    def report(self, height: int = 700) -> InlinePage:
        """Its page ``private/utility.html``, which a notebook shows in place. Private.

        Args:
            height: height of its frame, in pixels.
        """
        return InlinePage(self.bundle.private / PAGE, height)

    def __repr__(self) -> str:
        lines = [f"Rows: {self.rows[0]:,} private, {self.rows[1]:,} synthetic"]
        for name, found in (("Columns", self.columns), ("Pairs", self.pairs)):
            if found:
                far = max(found, key=lambda d: d.distance)
                mean = sum(d.distance for d in found) / len(found)
                lines.append(
                    f"{name}: {figures.percent(mean)} of the rows are off on average; most in "
                    f"{' with '.join(far.columns)}, {figures.percent(far.distance)}"
                )
        lines.append(f"Page: {self.bundle.private / PAGE}")
        return "\n".join([PRIVATE, *(f"  {line}" for line in lines)])


@unheard()
def evaluate(
    bundle: Path,
    against: Path | MemoryTable | None,
    config: Path | Spec | None = None,
    targets: Sequence[str] = (),
) -> Evaluation:
    """The evaluation of a bundle.

    Args:
        bundle: the folder with ``public`` and ``private``.
        against: the private table, or the path of its file; left out: the config's.
        config: the release's configuration, for linked tables, or for the form of the table's file; left out:
            that in the manifest.
        targets: columns to predict.

    Raises:
        ConfigError: the bundle, the config or a target can't be used.
        SourceError: the table can't be read.
        StepFailed: an unforeseen error, its details withheld.
    """
    # Imported first: the limit holds of libraries that are there.
    import sklearn.ensemble  # noqa: F401

    # Models of few rows in several threads wait for one another, above all on a machine with other work.
    with threadpool_limits(1):
        return _evaluation(bundle, against, config, targets)


def _evaluation(
    bundle: Path, against: Path | MemoryTable | None, config: Path | Spec | None, targets: Sequence[str]
) -> Evaluation:
    owned = OwnedBundle.at(bundle)
    check_targets(owned.columns, targets)
    names, step = list(dict.fromkeys(c.source for c in owned.columns)), Steps(plainly)
    rows: MemoryTable | LinkedRows | None = against if isinstance(against, MemoryTable) else None
    if owned.facts.tables is not None:
        if config is None or isinstance(against, Path):
            raise ConfigError(
                "Linked tables are compared with --config, which describes them, not by a path."
            )
        linked = config if isinstance(config, Spec) else load(config)
        rows = LINKED.needed("tables")(linked, against)
    if rows is not None:
        path: Place | str = "the linked tables" if owned.facts.tables else "the table in memory"
        step("check the table's header", rows.check, names)
        real = step("read the private table", private_table, owned, rows, FileForm("csv"))
    else:
        assert not isinstance(against, MemoryTable)
        place, form = _source(against, config, owned.form)
        path = place
        step("check the table's header", check_source, place, names, form)
        real = step("read the private table", private_table, owned, place, form)
    made = step("read the synthetic table", synthetic_table, owned)
    return Evaluation(
        bundle=owned,
        path=path,
        rows=(real.rows, made.rows),
        columns=step("compare columns", column_distances, real, made),
        pairs=step("compare pairs of columns", pair_distances, real, made),
        score=step("score triples of columns", marginal_score, real, made),
        propensity=step("tell rows apart", propensity, real, made),
        raw=step("compare raw values", raw_columns, real, made),
        correlations=step("compare correlations", correlations, real, made),
        coverages=step("check published intervals", interval_coverage, owned, real, made),
        agreement=step("look for rows that agree", agreement, real, made),
        unseen=step("look for unseen pairs of values", unseen_pairs, real, made),
        violations=step("check constraints", violations, owned.columns, owned.rules, real, made),
        predictions=tuple((t, step(f"predict {t}", prediction, real, made, t)) for t in targets),
        regressions=tuple((t, step(f"regress {t}", regression, real, made, t)) for t in targets),
    )


def _source(
    against: Path | None, config: Path | Spec | None, released: FileForm | None
) -> tuple[Place, FileForm]:
    """The private table's path and form: as in the config, as it was released, or by its file's name."""
    if config is not None:
        named = None if against is None else str(against)
        source = (config if isinstance(config, Spec) else load(config, source=named)).source
        if (path := named or source.path) is None:
            raise ConfigError(f"{config} names no table. Name it with --against.")
        return place_of(path), source.form
    if against is None:
        raise ConfigError(
            "Name the private table with --against TABLE, or the release's configuration with --config."
        )
    kind, compression, separator = named_form(str(against))
    if released is not None and kind in (None, released.kind):
        return against, released if kind is None else replace(released, compression=compression)
    if kind is None:
        raise ConfigError(
            f"--against {against}: the ending of its name doesn't say what file it is. Give the release's "
            "configuration as well, with --config."
        )
    return against, FileForm(kind, separator, compression=compression)


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
        "release": evaluation.bundle.facts.release,
        "release_id": evaluation.bundle.facts.release_id,
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
    pages = environment("wings/owner")
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
        manifest=evaluation.bundle.facts,
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
