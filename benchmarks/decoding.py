"""Means, 90th and 99th percentiles of skewed columns: real against synthetic, by bins and by decoding.

    python benchmarks/decoding.py [--adult adult.csv] [--epsilon 0.5 1 4] [--runs 5] [--unit row person]
        [--bins equal log "log, 12" tree] [--values]

The spending columns of RAND (from the package statsmodels), and the capital gains and losses of Adult where
its file is given. Each release has some more columns, so the budget is shared as in earnest. Bins: 32 of one
width between public ends; 32 or 12 that grow between the same (`edges: log`); found with budget between them
(`edges: tree`). Inside a bin values are its middle, uniform (`within: uniform`) or linear (the default).

Releases run in this process, by `dpsynth.release`, and the codes that are drawn in each are decoded in all
ways. Prints for each epsilon the error of each figure in per cent of the real one, the median over the
runs; "real" is the figure itself. Where the real percentile is 0, so is the synthetic one or the error is
infinite. --values prints median synthetic figures rather than errors.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from coded_tables import markdown
from numpy.typing import NDArray

import dpsynth
from dpsynth.columns import numeric
from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.layout import Layout, Part
from dpsynth.columns.numeric import NumericCodec

FIGURES = ("mean", "90 %", "99 %")
DECODINGS = ("middle", "uniform", "linear")


@dataclass(frozen=True)
class Table:
    """A table; its skewed columns with the largest value that is public; and columns beside them.

    Attributes:
        path: of a CSV file.
        skewed: declarations without bins.
        others: whole declarations.
        person: column of the unit, and its rows.
    """

    path: Path
    skewed: Mapping[str, Mapping[str, object]]
    others: Mapping[str, Mapping[str, object]]
    person: tuple[str, int] | None = None


def randhie() -> Table:
    """Dollars a year for health by kind, visits and stays; the ends are far from the largest values."""
    package = find_spec("statsmodels")
    assert package is not None and package.origin is not None

    def money(most: int) -> dict[str, object]:
        return {"type": "number", "min": 0, "max": most, "decimals": 2}

    return Table(
        Path(package.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv",
        {
            **{name: money(10_000) for name in ("outpdol", "drugdol", "suppdol", "mentdol")},
            **{name: money(100_000) for name in ("inpdol", "meddol")},
            "mdvis": {"type": "integer", "min": 0, "max": 365},
        },
        {
            "site": {"type": "category", "values": [1, 2, 3, 4, 5, 6]},
            "coins": {"type": "category", "values": [0, 25, 50, 95, 100]},
            "year": {"type": "integer", "min": 1, "max": 5},
            "female": {"type": "boolean", "values": ["0", "1"]},
            "xage": {"type": "integer", "bins": [0, 6, 12, 18, 25, 35, 45, 55, 65]},
            "hlthg": {"type": "boolean", "values": ["0", "1"]},
        },
        ("zper", 5),
    )


def adult(path: Path) -> Table:
    """Gains and losses of capital, zero for nine in ten, with some who report the largest value."""
    return Table(
        path,
        {
            "capital-gain": {"type": "integer", "min": 0, "max": 100_000},
            "capital-loss": {"type": "integer", "min": 0, "max": 10_000},
        },
        {
            "age": {"type": "integer", "min": 16, "max": 99},
            "education-num": {"type": "integer", "min": 1, "max": 16},
            "sex": {"type": "category", "values": ["Female", "Male"]},
            "hours-per-week": {"type": "integer", "min": 1, "max": 99},
            "income": {"type": "category", "values": ["<=50K", ">50K"]},
        },
    )


def figures(values: pd.Series[float]) -> NDArray[np.float64]:
    """The mean and the two percentiles."""
    return np.array([values.mean(), *values.quantile([0.9, 0.99])])


def released(table: Table, unit: str, epsilon: str, bins: str, work: Path) -> NDArray[np.float64]:
    """The figures of the skewed columns in one release, float64[decodings, columns, figures]."""
    edges, _, number = bins.partition(", ")
    person = None if unit == "row" or table.person is None else table.person
    skewed = {
        name: {**kind, "bins": int(number or 32), "edges": edges} for name, kind in table.skewed.items()
    }
    config = {
        "release": f"{table.path.stem}-{unit}",
        "source": {"path": str(table.path)},
        "privacy": {
            "epsilon": float(epsilon),
            "delta": 1e-6,
            **({"unit": {"column": person[0], "max_rows": person[1]}} if person else {}),
        },
        "ledger": {"url": f"sqlite:///{work / 'ledger.db'}", "cap": {"epsilon": 1_000_000, "delta": 0.1}},
        "columns": {**skewed, **table.others},
    }
    path = work / "config.yaml"
    path.write_text(json.dumps(config))
    made: list[pa.Table] = []

    def decoded(self: Layout, codes: Mapping[str, Codes], rng: np.random.Generator) -> pa.Table:
        flat = Layout(tuple(uniform(part) for part in self.parts))
        with patch.object(numeric, "drawn_between", middle):
            made.append(decode(flat, codes, rng))
        made.append(decode(flat, codes, rng))
        made.append(decode(self, codes, rng))
        return made[-1]

    decode = Layout.decode
    with patch.object(Layout, "decode", decoded):
        dpsynth.release(dpsynth.load(path), outputs=work / "out")
    return np.array([[figures(t.column(name).to_pandas()) for name in table.skewed] for t in made])


def uniform(part: Part) -> Part:
    """A column as `within: uniform` has it."""
    if isinstance(part, Column) and isinstance(part.codec, NumericCodec):
        return replace(part, codec=replace(part.codec, slopes=()))
    return part


def middle(
    low: NDArray[np.int64], high: NDArray[np.int64], codes: Codes, _: np.random.Generator
) -> NDArray[np.int64]:
    """What to draw from each place, if it is its middle."""
    return (low[codes] + high[codes]) // 2


def shown(values: NDArray[np.float64]) -> str:
    """A mean and two percentiles, or their errors in per cent."""
    return " / ".join(
        "∞" if np.isinf(v) else f"{v:,.0f}" if v >= 9.95 or v == 0 else f"{v:.2g}" for v in values
    )


def compared(
    table: Table, unit: str, epsilon: str, ways: Sequence[str], runs: int, work: Path, *, values: bool
) -> None:
    """Print the lines of one table at one epsilon."""
    raw = pd.read_csv(table.path)
    real = np.array([figures(raw[name].dropna()) for name in table.skewed])
    errors: dict[str, NDArray[np.float64]] = {}
    lines: dict[tuple[str, str], list[str]] = {(c, bins): [] for c in table.skewed for bins in ways}
    for bins in ways:
        found = np.stack([released(table, unit, epsilon, bins, work) for _ in range(runs)])
        # 0 for 0 is no error, and anything else for 0 an infinite one.
        off = np.divide(found - real, real, where=real > 0, out=np.where(found == real, 0.0, np.inf))
        errors[bins] = np.median(np.abs(off), axis=0) * 100
        told = np.median(found, axis=0) if values else errors[bins]
        for i, column in enumerate(table.skewed):
            lines[column, bins] = [shown(way[i]) for way in told]
    what = "median synthetic figures" if values else "median errors in per cent"
    print(f"\n{table.path.stem}, {unit}s as units, epsilon {epsilon}: {what}: {' / '.join(FIGURES)}\n")
    rows = [
        [column, shown(real[list(table.skewed).index(column)]), bins, *cells]
        for (column, bins), cells in lines.items()
    ]
    overall = [
        ["median error of all", "", bins, *(shown(np.median(way, axis=0)) for way in errors[bins])]
        for bins in ways
    ]
    print(markdown(["column", "real", "bins", *DECODINGS], [*rows, *overall], words=3), flush=True)


def main() -> None:
    """Print a table in Markdown for each table, unit and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--epsilon", nargs="+", default=["0.5", "1", "4"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--unit", nargs="+", choices=["row", "person"], default=["row", "person"])
    parser.add_argument("--bins", nargs="+", default=["equal", "log", "log, 12", "tree"])
    parser.add_argument("--values", action="store_true")
    arguments = parser.parse_args()
    tables = [randhie(), *([adult(arguments.adult)] if arguments.adult else [])]
    with tempfile.TemporaryDirectory() as folder:
        for table in tables:
            for unit in arguments.unit if table.person else ["row"]:
                for epsilon in arguments.epsilon:
                    compared(
                        table,
                        unit,
                        epsilon,
                        arguments.bins,
                        arguments.runs,
                        Path(folder),
                        values=arguments.values,
                    )


if __name__ == "__main__":
    main()
