"""A small publication with awkward names, and a model that is a joint table."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.events import Guarantee
from dpsynth.bundle import Publication, compute_statistics, write_public
from dpsynth.bundle.row_files import TableFiles, TableWriter
from dpsynth.bundle.row_source import RowSource
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Compression
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import NO_PUBLIC_MARGINALS, Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.rules import Rules
from dpsynth.model import Bounds, LeastSquares, MarkovRandomField, Wanted, estimate
from dpsynth.statistics.sources import Sources
from dpsynth.statistics.verdict import USES, Judgement, Verdict
from tests.bundle.requests import crosstab, mean_of


@dataclass(frozen=True)
class Joint:
    """A model given by the whole joint distribution."""

    columns: tuple[str, ...]
    counts: np.ndarray

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def marginal(self, clique: tuple[str, ...]) -> np.ndarray:
        axes = [self.columns.index(name) for name in clique]
        out = tuple(i for i in range(len(self.columns)) if i not in axes)
        kept = sorted(axes)
        return self.counts.sum(axis=out).transpose([kept.index(a) for a in axes])


FORMULAS = CategoryCodec(("=1+1", "-5", "'x", 'a,"b"\nc'))
COLUMNS = (
    Column("age", NumericCodec((0.0, 10.0, 20.0, 21.0), 0, integer=True), missing=True, markers=("NA",)),
    Column("=plan/<script>alert(1)</script>", FORMULAS, markers=("-",)),
    Column('seen, "ever" 🐌', BooleanCodec("no", "yes"), missing=False),
    Column("pay", NumericCodec((-1.0, 0.0, 1.0), 2, integer=False), missing=True),
)
NAMES = tuple(column.name for column in COLUMNS)


def joint(seed: int) -> Joint:
    shape = tuple(column.size for column in COLUMNS)
    return Joint(NAMES, np.random.default_rng(seed).gamma(2.0, size=shape))


def synthetic(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table([c.decode(np.arange(rows) % c.size, rng) for c in COLUMNS], names=list(NAMES))


def source_of(model: MarkovRandomField) -> RowSource:
    wanted = Wanted.of(model, {})
    return RowSource(model, Layout(COLUMNS), Rules(), NO_PUBLIC_MARGINALS, wanted, Bounds())


def write_bundle(folder: Path, of: Publication, table: pa.Table | None = None) -> None:
    """Write a publication with a synthetic table in the formats that it names."""
    with TableWriter(folder, of.layout, of.formats) as writer:
        writer.write(synthetic(of.synthetic.rows) if table is None else table)
    write_public(folder, replace(of, synthetic=writer.written))


VERDICT = Verdict(
    tuple(
        Judgement((name,), USES[place % 3], f"Why of {name}.", place / 10) for place, name in enumerate(NAMES)
    ),
    tuple(
        Judgement(pair, USES[place % 3], f"Why of {pair[0]}.", place / 10, "independent")
        for place, pair in enumerate(combinations(NAMES, 2))
    ),
)
"""Verdicts of every kind, on columns with awkward names."""


@pytest.fixture
def publication() -> Publication:
    pairs = ((NAMES[0], NAMES[1]), (NAMES[1], NAMES[2]))
    model = joint(0)
    cliques = ((), *((name,) for name in NAMES), *pairs)
    measurements = tuple(
        Measurement(c, np.round(model.marginal(c)).astype(np.int64) - 1, "gaussian", 2.5) for c in cliques
    )
    direct = LeastSquares(domain_of(COLUMNS), measurements)
    refits = [joint(seed) for seed in range(1, 5)]
    requests = (
        crosstab(("age",)),
        crosstab(NAMES[:2]),
        crosstab((NAMES[0], NAMES[2])),
        crosstab((NAMES[0], NAMES[3])),
        mean_of("age", NAMES[1]),
        mean_of("pay"),
    )
    events = tuple(
        {
            "question": "marginal" if c else "count",
            "columns": list(c),
            "merged_values": False,
            "candidates": None,
            "mechanism": "discrete Gaussian",
            "scale": 2.5,
            "sensitivity": "1 row (L2)",
            "epsilon": None,
            "rho": 0.08,
            "delta": 0.0,
        }
        for c in cliques
    )
    return Publication(
        release="clinic",
        release_id="r-1",
        date="2026-03-01",
        part=None,
        layout=Layout(COLUMNS),
        synthetic=TableFiles(("synthetic.csv", "synthetic.parquet"), 40),
        singles=measurements[:-2],
        answers=measurements[-2:],
        compression=Compression({}),
        merged_below=64.5,
        rows=source_of(estimate(domain_of(COLUMNS), measurements).model),
        statistics=compute_statistics(requests, Sources(COLUMNS, direct, model, refits)),
        guarantee=Guarantee(1.5, 1e-6, 0.05, "one row", "add_remove", "zcdp"),
        events=events,
        structure="mst",
        cliques=pairs,
        budget={"epsilon": 1.5, "delta": 1e-6, "noise": "gaussian"},
        formats=("csv", "parquet"),
        verdict=VERDICT,
        lost=(),
        versions={"dpsynth": "0.1.0"},
    )


@pytest.fixture
def merged(publication: Publication) -> Publication:
    """The same with values of two columns merged: three of them measured together, a pair again."""
    of_plan, of_pay = np.array([0, 1, 1, 2, 1]), np.array([0, 0, 1])
    compression = Compression({NAMES[1]: of_plan, NAMES[3]: of_pay})
    domain = compression.coarse(domain_of(COLUMNS))
    cliques = (NAMES[1:], (NAMES[0], NAMES[2]), (NAMES[2], NAMES[1]))
    rng = np.random.default_rng(3)
    answers = tuple(
        Measurement(c, rng.integers(-3, 90, domain.shape(c)), "laplace", 1.5 + i)
        for i, c in enumerate(cliques)
    )
    return replace(publication, answers=answers, cliques=cliques, compression=compression, structure="auto")


@pytest.fixture
def written(publication: Publication, tmp_path: Path) -> Callable[..., Path]:
    """Writes the publication, with some fields changed, and gives the folder."""

    def write(of: Publication = publication, **changes: object) -> Path:
        folder = tmp_path / f"public{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        table = changes.pop("table", None)
        write_bundle(folder, replace(of, **changes), table)
        return folder

    return write


@pytest.fixture
def rows() -> Callable[[int], pa.Table]:
    """Makes a synthetic table of so many rows."""
    return synthetic
