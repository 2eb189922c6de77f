"""Real tables with declared columns, and statistics of each kind, for ``benchmarks/coverage.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pandas as pd

MOST_PAIRS = 20
"""Most pairs of a column of numbers and a column of groups."""

Declared = Mapping[str, object]
Statistic = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """A table with its declared columns and statistics.

    Attributes:
        frame: the rows that are released, none of them with a missing cell.
        columns: declarations.
        asked: statistics that the configuration asks for: two columns of them are measured together.
        further: statistics that are computed from the bundle, as a recipient would.
    """

    frame: pd.DataFrame
    columns: Mapping[str, Declared]
    asked: Sequence[Statistic]
    further: Sequence[Statistic]


def adult(folder: Path) -> Table:
    """Numbers and categories of a census."""
    frame = pd.read_csv(folder / "adult.csv")
    frame.columns = frame.columns.str.strip()
    columns: dict[str, Declared] = {
        "age": {"type": "integer", "bins": list(range(17, 92))},
        "education-num": {"type": "integer", "min": 1, "max": 16},
        "hours-per-week": {"type": "integer", "min": 1, "max": 99, "bins": [1, 20, 35, 40, 45, 60, 99]},
    }
    categories = ("marital-status", "relationship", "race", "sex", "income")
    asked = [
        {"mean": "hours-per-week", "by": "sex"},
        {"sum": "hours-per-week"},
        {"quantiles": "age", "by": "income"},
        {"correlation": ["age", "education-num"]},
        {"model": "linear", "target": "education-num", "on": ["age", "sex"]},
        {"model": "logistic", "target": "income", "on": ["age", "education-num"]},
    ]
    return _crossed(frame, columns, categories, asked)


def nltcs(folder: Path) -> Table:
    """Sixteen binary columns."""
    frame = pd.read_csv(folder / "nltcs.csv")
    one, *others = frame.columns
    asked = [
        {"mean": others[0], "by": one},
        {"correlation": list(frame.columns[:4])},
        {"model": "linear", "target": one, "on": others[4:6]},
        {"model": "logistic", "target": one, "on": others[7:9]},
    ]
    numbers: dict[str, Declared] = {c: {"type": "integer", "min": 0, "max": 1} for c in frame.columns}
    return _crossed(frame, numbers, (), asked)


def flights(folder: Path) -> Table:
    """A tenth of the flights of a year: delays with long tails."""
    frame = pd.read_csv(folder / "flights.csv.gz").iloc[::10]
    delays = [-60, -20, -10, -5, 0, 5, 10, 20, 40, 60, 90, 120, 180, 300, 1500]
    columns: dict[str, Declared] = {
        "month": {"type": "integer", "min": 1, "max": 12},
        "dep_delay": {"type": "integer", "bins": delays},
        "arr_delay": {"type": "integer", "bins": [-100, *delays]},
        "distance": {"type": "integer", "bins": [0, 300, 600, 900, 1200, 1800, 2500, 5000]},
        "hour": {"type": "integer", "min": 1, "max": 23},
    }
    asked = [
        {"mean": "dep_delay", "by": "origin"},
        {"sum": "arr_delay", "by": "carrier"},
        {"quantiles": "arr_delay", "by": "origin"},
        {"correlation": ["month", "hour"]},
        {"model": "linear", "target": "hour", "on": ["month", "origin"]},
    ]
    return _crossed(frame, columns, ("origin", "carrier"), asked)


def randhie(folder: Path) -> Table:
    """Visits and health by plan, of person-years."""
    del folder
    package = find_spec("statsmodels")
    assert package is not None and package.origin is not None
    frame = pd.read_csv(Path(package.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv")
    columns: dict[str, Declared] = {
        "mdvis": {"type": "integer", "bins": [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 31, 100]},
        "xage": {"type": "number", "bins": [0, 6, 12, 18, 25, 35, 45, 55, 65], "decimals": 2},
        "year": {"type": "integer", "min": 1, "max": 5},
        "num": {"type": "integer", "min": 1, "max": 14},
        "coins": {"type": "integer", "bins": [0, 1, 26, 51, 96, 101]},
    }
    asked = [
        {"mean": "mdvis", "by": "site"},
        {"sum": "mdvis", "by": "female"},
        {"quantiles": "mdvis", "by": "hlthg"},
        {"correlation": ["year", "num"]},
        {"model": "linear", "target": "num", "on": ["year", "female"]},
        {"model": "logistic", "target": "female", "on": ["year", "num"]},
    ]
    return _crossed(frame, columns, ("site", "female", "hlthg"), asked)


TABLES = {"adult": adult, "nltcs": nltcs, "flights": flights, "randhie": randhie}


def _crossed(
    frame: pd.DataFrame,
    numbers: Mapping[str, Declared],
    categories: Sequence[str],
    asked: Sequence[Statistic],
) -> Table:
    """A table of whole rows; beside what is asked for, statistics of each kind for pairs of columns."""
    frame = frame[[*numbers, *categories]].dropna().reset_index(drop=True)
    frame = frame.assign(**{c: frame[c].astype(str).str.strip() for c in categories})
    kinds = {c: {"type": "category", "values": sorted(set(frame[c])), "missing": False} for c in categories}
    columns = {c: {**kind, "missing": False} for c, kind in numbers.items()} | kinds
    groups = [*categories, *(c for c in numbers if frame[c].nunique() <= 12)]
    pairs = [(n, g) for n in numbers for g in groups if n != g]
    pairs = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    further: list[Statistic] = [{"crosstab": list(pair)} for pair in combinations(columns, 2)]
    further += [{kind: n, "by": g} for kind in ("mean", "sum", "quantiles", "variance") for n, g in pairs]
    further += [{"correlation": list(numbers)[:6]}]
    further += [{"model": "linear", "target": n, "on": [g]} for n, g in pairs]
    binary = [c for c in columns if frame[c].nunique() == 2]
    further += [{"model": "logistic", "target": b, "on": [n]} for b in binary[:3] for n in numbers if n != b]
    return Table(frame, columns, asked, further)
