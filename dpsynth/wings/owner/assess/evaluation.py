"""The evaluation of a bundle against the private table, for its owner's eyes: ``dpsynth evaluate``.

Everything here is exact and private. Nothing of it is charged, because nothing of it is released: it is
written into the bundle's folder ``private``, and shown nowhere else.

Invariant: an error names files and columns, and nothing else of the table; how an evaluation ends tells
nothing about cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from dpsynth import figures
from dpsynth.bundle.pages import InlinePage
from dpsynth.config import load
from dpsynth.config.files import FileForm
from dpsynth.config.files.form import named_form
from dpsynth.config.files.opening import unheard
from dpsynth.config.files.place import Place, place_of
from dpsynth.curator import MemoryTable, check_source
from dpsynth.errors import ConfigError
from dpsynth.pipeline.steps import Steps, plainly
from dpsynth.wings.owner.assess.agreement import Agreement, Unseen, agreement, unseen_pairs
from dpsynth.wings.owner.assess.coded_table import private_table, synthetic_table
from dpsynth.wings.owner.assess.coefficients import Regression, regression
from dpsynth.wings.owner.assess.distances import (
    Distance,
    MarginalScore,
    column_distances,
    marginal_score,
    pair_distances,
)
from dpsynth.wings.owner.assess.interval_coverage import Coverages, interval_coverage
from dpsynth.wings.owner.assess.owned_bundle import PAGE, OwnedBundle
from dpsynth.wings.owner.assess.prediction import Prediction, check_targets, prediction
from dpsynth.wings.owner.assess.propensity import Propensity, propensity
from dpsynth.wings.owner.assess.raw_values import Correlation, RawColumn, correlations, raw_columns
from dpsynth.wings.owner.assess.violations import Violations, violations

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
        """A few lines below a warning."""
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
    config: Path | None = None,
    targets: Sequence[str] = (),
) -> Evaluation:
    """The evaluation of a bundle.

    Args:
        bundle: the folder with ``public`` and ``private``.
        against: the private table, or the path of its file; left out: the config's.
        config: the release's configuration, for the form of the table's file; left out: that in the manifest.
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
    bundle: Path, against: Path | MemoryTable | None, config: Path | None, targets: Sequence[str]
) -> Evaluation:
    owned = OwnedBundle.at(bundle)
    check_targets(owned.columns, targets)
    names, step = list(dict.fromkeys(c.source for c in owned.columns)), Steps(plainly)
    if isinstance(against, MemoryTable):
        path: Place | str = "the table in memory"
        step("check the table's header", against.check, names)
        real = step("read the private table", private_table, owned, against, FileForm("csv"))
    else:
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
        pairs=step.counted("compare pairs of columns", pair_distances, real, made),
        score=step.counted("score triples of columns", marginal_score, real, made),
        propensity=step("tell rows apart", propensity, real, made),
        raw=step("compare raw values", raw_columns, real, made),
        correlations=step("compare correlations", correlations, real, made),
        coverages=step("check published intervals", interval_coverage, owned, real, made),
        agreement=step("look for rows that agree", agreement, real, made),
        unseen=step.counted("look for unseen pairs of values", unseen_pairs, real, made),
        violations=step("check constraints", violations, owned.columns, owned.rules, real, made),
        predictions=tuple((t, step(f"predict {t}", prediction, real, made, t)) for t in targets),
        regressions=tuple((t, step(f"regress {t}", regression, real, made, t)) for t in targets),
    )


def _source(against: Path | None, config: Path | None, released: FileForm | None) -> tuple[Place, FileForm]:
    """The private table's path and form: as in the config, as it was released, or by its file's name."""
    if config is not None:
        source = load(config, source=None if against is None else str(against)).source
        if source.path is None:
            raise ConfigError(f"{config} names no table. Name it with --against.")
        return place_of(source.path), source.form
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
