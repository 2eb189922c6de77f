"""The first release of tables as their owners bring them: `init --look`, every guess accepted, ε = 1.

    DPSYNTH_DATA=FOLDER python benchmarks/first_contact.py [--tables flights nlswork loans adult randhie]
        [--epsilon 1] [--unit row] [--rows N] [--summary]
    DPSYNTH_DATA=FOLDER python benchmarks/first_contact.py --proposals [--tables NAME ...]
        [--epsilon 1 3] [--times 3]

FOLDER holds the raw tables `flights.csv.gz`, `nlswork.csv.gz`, `loans.csv.gz` and `adult.csv`; RAND comes
with the package statsmodels; hospital, events and census are made (`made_tables.py`). For each table
`dpsynth init --look` writes a configuration. Columns with a gap (null) and the review list are taken out of
it, nothing else is changed, and it is released with `--plain`. A release that pauses is resumed, and its
pauses are counted. --unit row replaces the unit that was guessed; --rows takes that many rows at random.

--proposals makes each release twice: as above, and with all rules that `dpsynth check` proposes under
`constraints`. Its table has, before and after: pauses; columns whose median is more than a tenth off; the
mean distance of columns; columns more than .1 off, and how many of these the verdict lets be used; the
part of their strength (Cramer's V on the grid) that the five strongest pairs of the real table keep; the
rows that break a proposed rule; and columns whose distance the rules made larger by a tenth and .01. --times
releases each as often, and means are printed.

The synthetic table is compared with the real one on a grid that no configuration knows: the values of a
column with few of them, otherwise 12 intervals of about as many rows each, and a place for blanks. Numbers:
the mean, the median and the 90th percentile; then the least, the 1st and 99th percentile and the largest.
Tails are off where one of these percentiles is wrong by more than a twentieth of the real range between them;
ends are far where a number lies beyond the real range by more than half of it. Correlations are of pairs of
columns of numbers whose real correlation, or rank correlation, is .5 or more in size. "Top" is the share of
the value that most rows have. "Invented" are the shares of cells that are blank where the column has no blank
cell, of texts that no real cell holds, and of numbers that can't be: fractions in a column of whole numbers,
16:66 o'clock, the 13th month.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from coded_tables import markdown
from made_tables import MADE
from rules import rand_path

import dpsynth
from dpsynth.bundle.manifest import Manifest
from dpsynth.columns.expression import value_of
from dpsynth.columns.rules import rules_of
from dpsynth.config.compiled import compiled
from dpsynth.config.document import parse_yaml
from dpsynth.errors import Paused
from dpsynth.statistics.verdict import USES
from dpsynth.wings.owner.assess.row_sample import TypedRows, as_numbers

RAW = ("flights", "nlswork", "loans", "adult", "randhie")
TABLES = (*RAW, *MADE)
_BINS = 12
_MARKERS = frozenset(("", "?", "NA"))
_OTHER = "other"
_LISTED = 200


def path_of(table: str) -> Path:
    """Where a raw table lies."""
    if table == "randhie":
        return rand_path()
    plain = Path(os.environ["DPSYNTH_DATA"]) / f"{table}.csv"
    return plain if plain.exists() else plain.with_suffix(".csv.gz")


def brought(table: str, work: Path, rows: int | None, seed: int = 1) -> Path:
    """A plain CSV file of a table, or of some of its rows, in a folder."""
    target = work / f"{table}.csv"
    if table in MADE:
        frame = MADE[table]()
        frame = frame if rows is None else frame.sample(min(rows, len(frame)), random_state=seed)
        frame.to_csv(target, index=False)
        return target
    source = path_of(table)
    with gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb") as old:
        if rows is None:
            with target.open("wb") as new:
                shutil.copyfileobj(old, new)
            return target
        head, *lines = old.read().splitlines(keepends=True)
    kept = sorted(random.Random(seed).sample(range(len(lines)), min(rows, len(lines))))
    target.write_bytes(head + b"".join(lines[i] for i in kept))
    return target


def accepted(config: Path, epsilon: float, unit: str | None) -> dict[str, object]:
    """The values of a configuration with every guess accepted, and columns with a gap left out."""
    values = dict(parse_yaml(config.read_text(encoding="utf-8"), str(config)).values)
    values.pop("review", None)
    privacy, columns = values["privacy"], values["columns"]
    assert isinstance(privacy, dict) and isinstance(columns, dict)
    values["privacy"] = privacy | {"epsilon": epsilon} | ({"unit": unit} if unit else {})
    values["columns"] = {
        name: declared
        for name, declared in columns.items()
        if isinstance(declared, dict) and None not in declared.values()
    }
    ledger = f"sqlite:///{config.parent / 'ledger.db'}"
    values["ledger"] = {"url": ledger, "dataset": "first", "cap": {"epsilon": 1e6, "delta": 0.1}}
    return values


@dataclass(frozen=True)
class Compared:
    """One column of a synthetic table, beside the real one.

    Attributes:
        name: of the column.
        numbers: mean, median and 90th percentile, each of the real and of the synthetic column; empty for
            texts.
        tails: least number, 1st and 99th percentile, largest, in the same form.
        distance: total variation on the grid.
        top: the value that most rows have, with its share of the real and of the synthetic cells.
        invented: shares of invented blanks, texts and impossible numbers, in per cent.
    """

    name: str
    numbers: tuple[tuple[float, float], ...]
    tails: tuple[tuple[float, float], ...]
    distance: float
    top: tuple[str, float, float]
    invented: Mapping[str, float]

    @property
    def median_off(self) -> float | None:
        """The error of the median, relative to the real one; of a median of 0, to the real 90 %."""
        if not self.numbers:
            return None
        (_, _), (real, synthetic), (high, _) = self.numbers
        scale = abs(real) or abs(high) or 1.0
        return abs(synthetic - real) / scale

    @property
    def tails_off(self) -> bool:
        """True if the 1st or 99th percentile is off by over a twentieth of the real range between them."""
        if not self.tails:
            return False
        _, low, high, _ = self.tails
        most = 0.05 * max(high[0] - low[0], 1e-9)
        return any(abs(synthetic - real) > most for real, synthetic in (low, high))

    @property
    def ends_far(self) -> bool:
        """True if a synthetic number lies beyond the real range by more than half of it."""
        if not self.tails:
            return False
        (least, lowest), _, _, (largest, highest) = self.tails
        return max(least - lowest, highest - largest) > (largest - least) / 2


def _numbers(texts: pd.Series) -> pd.Series:
    return pd.to_numeric(texts.where(~texts.isin(_MARKERS)), errors="coerce")


_TWO_VALUES = 2
"""A column of two numbers has no median to speak of: it jumps where both are as frequent."""


def _is_numeric(texts: pd.Series) -> bool:
    known = ~texts.isin(_MARKERS)
    return bool(known.any()) and bool(_numbers(texts)[known].notna().mean() > 0.99)


def compared(name: str, real: pd.Series, synthetic: pd.Series) -> Compared:
    """One column of texts, beside the synthetic one."""
    numeric = _is_numeric(real)
    numbers: tuple[tuple[float, float], ...] = ()
    tails: tuple[tuple[float, float], ...] = ()
    if numeric:
        before, after = _numbers(real), _numbers(synthetic)
        if before.nunique() > _TWO_VALUES:
            numbers = tuple(
                (float(of(before)), float(of(after)))
                for of in (pd.Series.mean, pd.Series.median, lambda c: c.quantile(0.9))
            )
            tails = tuple((float(before.quantile(q)), float(after.quantile(q))) for q in (0, 0.01, 0.99, 1))
        codes, cells = _number_codes(before, after)
    else:
        codes, cells = _text_codes(real, synthetic)
    shares = [np.bincount(found, minlength=cells) / max(len(found), 1) for found in codes]
    plain = [_plain(texts) if numeric else texts for texts in (real, synthetic)]
    most = plain[0][~real.isin(_MARKERS)].mode()
    value = str(most.iloc[0]) if len(most) else ""
    top = (value, *(float((texts == value).mean()) for texts in plain))
    return Compared(
        name,
        numbers,
        tails,
        float(np.abs(shares[0] - shares[1]).sum() / 2),
        (top[0], top[1], top[2]),
        _invented(name, real, synthetic, numeric=numeric),
    )


def _number_codes(real: pd.Series, synthetic: pd.Series) -> tuple[list[np.ndarray], int]:
    known = real.dropna()
    values = np.unique(known)
    if len(values) > 2 * _BINS:
        # A value between two cuts that many rows have gets a place of its own.
        cuts = np.unique(known.quantile(np.linspace(0, 1, _BINS + 1)[1:-1]))
        cells = len(cuts) + 2
        return [
            np.where(c.isna(), cells - 1, np.searchsorted(cuts, c, side="left")) for c in (real, synthetic)
        ], cells
    cells = len(values) + 2
    found = []
    for column in (real, synthetic):
        at = np.searchsorted(values, column)
        there = values[np.minimum(at, len(values) - 1)] == column
        found.append(np.where(column.isna(), cells - 1, np.where(there, at, len(values))))
    return found, cells


def _text_codes(real: pd.Series, synthetic: pd.Series) -> tuple[list[np.ndarray], int]:
    """Codes of texts; moments are numbers."""
    moments = [_moments(column) for column in (real, synthetic)]
    if real.nunique() > 2 * _BINS and moments[0][~real.isin(_MARKERS)].notna().all():
        return _number_codes(*moments)
    known = {value: i for i, value in enumerate(sorted(real.unique()))}
    columns = (real, synthetic)
    codes = [column.map(known).fillna(len(known)).to_numpy(np.int64) for column in columns]
    return codes, len(known) + 1


def _moments(texts: pd.Series) -> pd.Series:
    """Moments as seconds."""
    found = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    return found.map(lambda moment: moment.timestamp() if moment is not pd.NaT else np.nan).astype(float)


def _plain(texts: pd.Series) -> pd.Series:
    """One text for the same number, however it was written."""
    numbers = _numbers(texts)
    return numbers.map("{:.10g}".format).where(numbers.notna(), "")


def _clock(numbers: pd.Series) -> pd.Series:
    return (numbers % 100 < 60) & (numbers >= 0) & (numbers <= 2400)


_POSSIBLE: Mapping[str, Callable[[pd.Series], pd.Series]] = {
    **dict.fromkeys(("dep_time", "sched_dep_time", "arr_time", "sched_arr_time"), _clock),
    "month": lambda n: n.between(1, 12),
    "day": lambda n: n.between(1, 31),
    "hour": lambda n: n.between(0, 23),
    "minute": lambda n: n.between(0, 59),
}


def _invented(name: str, real: pd.Series, synthetic: pd.Series, *, numeric: bool) -> dict[str, float]:
    found = {}
    blank = synthetic.isin(_MARKERS)
    if not real.isin(_MARKERS).any():
        found["blanks"] = float(blank.mean())
    if not numeric:
        known = {*real.unique(), *_MARKERS, _OTHER}
        if real.nunique() <= _LISTED:
            found["texts"] = float((~synthetic.isin(known)).mean())
    else:
        numbers = _numbers(synthetic)
        whole = bool((_numbers(real).dropna() % 1 == 0).all())
        wrong = (numbers % 1 != 0) & numbers.notna() if whole else numbers.isna() & ~blank
        if name in _POSSIBLE:
            wrong |= numbers.notna() & ~_POSSIBLE[name](numbers)
        found["numbers"] = float(wrong.mean())
    return {kind: 100 * share for kind, share in found.items() if share > 0}


_STRONG = 0.5
"""Correlation, or rank correlation, of a pair that is compared."""


@dataclass(frozen=True)
class Correlated:
    """Two columns of numbers that depend strongly on each other.

    Attributes:
        columns: their names.
        pearson, rank: correlation of the real and of the synthetic columns.
    """

    columns: tuple[str, str]
    pearson: tuple[float, float]
    rank: tuple[float, float]


def correlations(real: pd.DataFrame, synthetic: pd.DataFrame) -> list[Correlated]:
    """The strongly correlated pairs of columns of numbers, the strongest first; blanks are left out."""
    names = [c for c in real if c in synthetic and _is_numeric(real[c])]
    numbers = [table[names].apply(_numbers) for table in (real, synthetic)]
    found = {
        method: [table.corr(method).to_numpy() for table in numbers] for method in ("pearson", "spearman")
    }
    pairs = []
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        pearson, rank = ((float(a[i, j]), float(b[i, j])) for a, b in found.values())
        if max(abs(pearson[0]), abs(rank[0])) >= _STRONG:
            pairs.append(Correlated((names[i], names[j]), pearson, rank))
    return sorted(pairs, key=lambda pair: -abs(pair.pearson[0]))


def read_texts(path: Path) -> pd.DataFrame:
    """A CSV file as stripped texts."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.apply(lambda column: column.str.strip())


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def report(columns: Sequence[Compared]) -> list[str]:
    """One line a column."""
    lines = []
    for column in columns:
        said, tails = (
            " · ".join(f"{_shown(real)} → {_shown(synthetic)}" for real, synthetic in some)
            for some in (column.numbers, column.tails)
        )
        value, before, after = column.top
        top = f"{value[:20]} {before:.1%} → {after:.1%}"
        made = ", ".join(f"{kind} {share:.1f} %" for kind, share in column.invented.items())
        off = (column.distance > 0.1, (column.median_off or 0) > 0.1, column.tails_off, column.ends_far)
        marks = "!" * sum(off)
        lines.append(f"{column.name} | {said} | {tails} | {column.distance:.3f} | {top} | {made} | {marks}")
    return lines


def summary(table: str, first: First) -> str:
    """One line a table."""
    rows, left_out, columns = first.rows, first.left_out, first.columns
    medians = [c.median_off for c in columns if c.median_off is not None]
    far = [c for c in columns if c.distance > 0.1]
    worst = max(columns, key=lambda c: c.distance)
    made = [c for c in columns if any(share >= 0.05 for share in c.invented.values())]
    return (
        f"{table}: {rows:,} rows; medians within 10 %: {sum(m <= 0.1 for m in medians)} of {len(medians)}; "
        f"tails off: {sum(c.tails_off for c in columns)}, ends far: {sum(c.ends_far for c in columns)}; "
        f"{_in_short(first.correlated)}; "
        f"TV above 0.1: {len(far)} of {len(columns)} (mean {np.mean([c.distance for c in columns]):.3f}, "
        f"worst {worst.name} {worst.distance:.3f}); columns with invented cells: {len(made)}; "
        f"left out: {', '.join(left_out) or 'none'}; {first.seconds:.0f} s, {first.cpu:.0f} CPU s"
    )


def _in_short(pairs: Sequence[Correlated]) -> str:
    """The strong pairs' mean correlations, each with the sign of the real one."""
    if not pairs:
        return "no strong pair"
    means = []
    for of in ("pearson", "rank"):
        signed = np.array([getattr(pair, of) for pair in pairs])
        real, synthetic = np.nanmean(signed * np.sign(signed[:, :1]), axis=0)
        means.append(f"{synthetic:.3f} of {real:.3f}")
    return f"{len(pairs)} strong pairs: correlation {means[0]}, by rank {means[1]}"


@dataclass(frozen=True)
class Related:
    """One of the strongest pairs of columns, by Cramer's V on the grid.

    Attributes:
        columns: their names.
        real, synthetic: the strength.
    """

    columns: tuple[str, str]
    real: float
    synthetic: float

    @property
    def kept(self) -> float:
        """The part of the strength that the synthetic table has."""
        return self.synthetic / self.real


def _grid(real: pd.Series, synthetic: pd.Series) -> list[np.ndarray]:
    """Codes of both columns, of texts those of the most frequent ones and of all others."""
    if _is_numeric(real):
        return _number_codes(_numbers(real), _numbers(synthetic))[0]
    if real.nunique() > 2 * _BINS:
        if _moments(real)[~real.isin(_MARKERS)].notna().all():
            return _number_codes(_moments(real), _moments(synthetic))[0]
        usual = {*real.value_counts().index[: 2 * _BINS]}
        real, synthetic = (c.where(c.isin(usual), _OTHER) for c in (real, synthetic))
    return _text_codes(real, synthetic)[0]


def _cramer(one: np.ndarray, two: np.ndarray) -> float:
    found = np.zeros((one.max() + 1, two.max() + 1))
    np.add.at(found, (one, two), 1)
    found = found[found.sum(1) > 0][:, found.sum(0) > 0]
    expected = np.outer(found.sum(1), found.sum(0)) / found.sum()
    fewer = min(found.shape) - 1
    return float(np.sqrt((np.square(found - expected) / expected).sum() / found.sum() / max(fewer, 1)))


def related(real: pd.DataFrame, synthetic: pd.DataFrame, most: int = 5) -> list[Related]:
    """The strongest pairs of the real table."""
    grids = {c: _grid(real[c], synthetic[c]) for c in real if c in synthetic and real[c].nunique() > 1}
    found = [
        Related((one, two), _cramer(grids[one][0], grids[two][0]), _cramer(grids[one][1], grids[two][1]))
        for one, two in combinations(grids, 2)
    ]
    return sorted(found, key=lambda pair: -pair.real)[:most]


@dataclass(frozen=True)
class First:
    """A first release: the columns compared, and what was left out.

    Attributes:
        rows: of the private table.
        left_out: columns of it that the synthetic one lacks.
        columns: the columns that both have.
        correlated: the strongly correlated pairs.
        config: the configuration.
        seconds, cpu: of the run, and of resuming it.
        pauses: how many times the owner had to let it go on.
        verdicts: the verdict on each column.
        tables: the private and the synthetic table, as texts.
    """

    rows: int
    left_out: tuple[str, ...]
    columns: tuple[Compared, ...]
    correlated: tuple[Correlated, ...]
    config: Mapping[str, object]
    seconds: float
    cpu: float
    pauses: int
    verdicts: Mapping[str, str]
    tables: tuple[pd.DataFrame, pd.DataFrame]

    @cached_property
    def related(self) -> list[Related]:
        """The five strongest pairs."""
        return related(*self.tables)

    @property
    def distances(self) -> dict[str, float]:
        """The distance of each column."""
        return {column.name: column.distance for column in self.columns}


Changed = Callable[[dict[str, object]], dict[str, object]]


def looked_at(table: Path, epsilon: float = 1.0, unit: str | None = None) -> dict[str, object]:
    """The configuration of a table by `dpsynth init --look`, every guess accepted."""
    config = table.with_suffix(".yaml")
    config.unlink(missing_ok=True)
    command = [sys.executable, "-m", "dpsynth", "init", str(table), "--look", "--out", str(config)]
    subprocess.run(command, check=True, capture_output=True)
    return accepted(config, epsilon, unit)


def written(values: Mapping[str, object], config: Path) -> Path:
    """A configuration as a file."""
    config.write_text(json.dumps(values, default=lambda d: float(d) if isinstance(d, Decimal) else str(d)))
    return config


def proposed(config: Path) -> list[str]:
    """The rules that `dpsynth check` proposes."""
    command = [sys.executable, "-m", "dpsynth", "check", str(config), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    findings = json.loads(done.stdout)["findings"]
    blocks = [f["write"] for f in findings if f["about"] == "constraints" and f["write"]]
    return [rule for block in blocks for rule in yaml.safe_load(block)["constraints"]]


def run_on(config: Path, outputs: Path) -> tuple[Path, int]:
    """The bundle of a release, resumed by its owner at each pause, and the number of its pauses."""
    command = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain", "--out", str(outputs)]
    pauses, more = 0, []
    while True:
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        if done.returncode == 0:
            return Path(done.stdout.strip().splitlines()[-1]), pauses
        paused = re.search(r"Release (\S+) is paused", done.stderr)
        if done.returncode != Paused.exit_code or paused is None:
            sys.exit(f"{' '.join([*command, *more])} failed:\n{done.stderr}")
        pauses, more = pauses + 1, ["--resume", paused.group(1)]


def released(table: Path, values: Mapping[str, object]) -> First:
    """Release a table with some configuration, and compare."""
    config = written(values, table.with_suffix(".yaml"))
    begun, used = time.perf_counter(), _processor()
    bundle, pauses = run_on(config, table.parent / "out")
    seconds, cpu = time.perf_counter() - begun, _processor() - used
    public = bundle / "public"
    synthetic, real = read_texts(public / "synthetic.csv"), read_texts(table)
    verdict = Manifest.read(public).verdict.verdict
    return First(
        rows=len(real),
        left_out=tuple(name for name in real if name not in synthetic),
        columns=tuple(compared(name, real[name], synthetic[name]) for name in real if name in synthetic),
        correlated=tuple(correlations(real, synthetic)),
        config=values,
        seconds=seconds,
        cpu=cpu,
        pauses=pauses,
        verdicts={one.name: one.verdict for one in verdict.columns},
        tables=(real, synthetic),
    )


def _processor() -> float:
    """Seconds of the processor that all processes that were waited for have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_release(
    table: Path, epsilon: float = 1.0, unit: str | None = None, changed: Changed = lambda values: values
) -> First:
    """Look at a table, accept every guess, release it, and compare.

    Args:
        table: a CSV file in a folder to work in.
        epsilon: the budget.
        unit: replaces the unit that was guessed.
        changed: changes the configuration that is released.
    """
    return released(table, changed(looked_at(table, epsilon, unit)))


def impossible(config: Path, rules: Sequence[str], real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Share of synthetic rows that break one of some rules of a configuration; unknown is no breach.

    Where a column determines another, a row breaks it whose partner is not the one that most real rows have.
    """
    layout = compiled(dpsynth.load(config)).layout
    found = rules_of(rules, layout)
    typed = [
        TypedRows(layout, {c: pa.array(table[c].tolist(), pa.string()) for c in table})
        for table in (real, synthetic)
    ]
    rows = typed[1]
    broken = np.zeros(rows.rows, bool)
    for condition in found.conditions:
        operands = rows.operands(found.names(condition.formula, into_sums=False))
        holds = value_of(condition.formula, operands, rows.rows)
        broken |= ~np.asarray(holds.fill_null(fill_value=True))
    for total in found.sums.values():
        operands = rows.operands((total.target, *found.names(total.formula, into_sums=False)))
        target = operands[total.target]
        off = np.abs(as_numbers(target.values) - as_numbers(value_of(total.formula, operands, rows.rows)))
        broken |= np.nan_to_num(off) > (1.001 * 10.0**-target.kind.decimals if target.kind.decimals else 1e-6)
    for tie in found.ties:
        for left, right in ((tie.left, tie.right), (tie.right, tie.left))[: 1 + tie.both]:
            keys, partners = (pd.Series(typed[0].keys(name).to_pylist()) for name in (left, right))
            usual = partners.groupby(keys).agg(lambda group: next(iter(group.mode()), None))
            keys, partners = (pd.Series(rows.keys(name).to_pylist()) for name in (left, right))
            known = keys.isin(usual.index) & partners.notna()
            broken |= np.asarray(known & (keys.map(usual) != partners))
    return float(broken.mean())


@dataclass(frozen=True)
class Figures:
    """What one release, or the mean of several, came out as.

    Attributes:
        pauses: how often the owner had to let it go on.
        medians: columns whose median is more than a tenth off.
        far: columns more than .1 off.
        untold: those of them that the verdict lets be used.
        kept: of the strength of the five strongest pairs.
        broken: share of rows that break a proposed rule.
        distances: of the columns.
    """

    pauses: float
    medians: float
    far: float
    untold: float
    kept: float
    broken: float
    distances: Mapping[str, float]

    @classmethod
    def of(cls, first: First, broken: float) -> Figures:
        """The figures of a release."""
        far = [name for name, distance in first.distances.items() if distance > 0.1]
        return cls(
            first.pauses,
            sum((c.median_off or 0) > 0.1 for c in first.columns),
            len(far),
            sum(first.verdicts.get(name, USES[0]) == USES[0] for name in far),
            float(np.mean([pair.kept for pair in first.related])),
            broken,
            first.distances,
        )

    @classmethod
    def mean(cls, some: Sequence[Figures]) -> Figures:
        """The means of some."""
        single = ("pauses", "medians", "far", "untold", "kept", "broken")
        means = {key: float(np.mean([getattr(one, key) for one in some])) for key in single}
        names = some[0].distances
        return cls(**means, distances={n: float(np.mean([one.distances[n] for one in some])) for n in names})

    @property
    def shown(self) -> list[str]:
        """The figures as texts."""
        return [
            f"{self.pauses:.2g}",
            f"{self.medians:.2g}",
            f"{np.mean([*self.distances.values()]):.3f}",
            f"{self.far:.2g} ({self.untold:.2g})",
            f"{self.kept:.2f}",
            f"{100 * self.broken:.2f} %",
        ]


def with_proposals(table: Path, epsilons: Sequence[float], times: int) -> Iterator[list[str]]:
    """Releases of a table as guessed, and with the proposals of `check`: a line for each epsilon."""
    values = looked_at(table)
    config = table.with_suffix(".yaml")
    rules = proposed(written(values, config))
    for rule in rules:
        print(f"{table.stem}: {rule}", flush=True)
    for epsilon in epsilons:
        privacy = values["privacy"]
        assert isinstance(privacy, dict)
        plain = values | {"privacy": privacy | {"epsilon": epsilon}}
        ways = (plain, plain | {"constraints": rules}) if rules else (plain,)
        found = [Figures.mean([_figures(table, way, rules) for _ in range(times)]) for way in ways]
        before, after = found[0], found[-1]
        both = zip(before.shown, after.shown, strict=True)
        worse = [
            f"{name} {before.distances[name]:.3f} → {distance:.3f}"
            for name, distance in after.distances.items()
            if distance > 1.1 * before.distances[name] + 0.01
        ]
        arrows = [one if one == two else f"{one} → {two}" for one, two in both]
        yield [table.stem, f"{epsilon:g}", f"{len(rules)}", *arrows, ", ".join(worse) or "none"]


def _figures(table: Path, values: Mapping[str, object], rules: Sequence[str]) -> Figures:
    """The figures of one release, with a line for each column far off and each strong pair."""
    first, config = released(table, values), table.with_suffix(".yaml")
    said = f"{table.stem}, {values['privacy']}, {'with rules' if 'constraints' in values else 'as guessed'}"
    for name, distance in first.distances.items():
        if distance > 0.1:
            print(f"{said}: {name} {distance:.3f}, {first.verdicts.get(name, 'no verdict')}")
    for pair in first.related:
        print(f"{said}: {pair.columns}: {pair.real:.3f}, kept {pair.kept:.2f}", flush=True)
    return Figures.of(first, impossible(config, rules, *first.tables) if rules else 0.0)


_HEAD = (
    "table", "ε", "rules", "pauses", "medians off", "mean distance", "above .1 (to be used)",
    "five strongest pairs", "impossible rows", "columns that rules made worse",
)  # fmt: skip


def main() -> None:
    """Print a table for each table, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--unit")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--proposals", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.proposals:
        table: list[list[str]] = []
        for name in chosen.tables:
            with tempfile.TemporaryDirectory() as work:
                table += with_proposals(brought(name, Path(work), chosen.rows), chosen.epsilon, chosen.times)
            print(markdown(_HEAD, table, words=1), flush=True)
        return
    lines = []
    for name in chosen.tables:
        with tempfile.TemporaryDirectory() as work:
            first = first_release(brought(name, Path(work), chosen.rows), chosen.epsilon[0], chosen.unit)
        lines.append(summary(name, first))
        if not chosen.summary:
            head = "column | mean · median · 90 % | least · 1 % · 99 % · largest | TV | top | invented | off"
            print(f"\n{name}\n\n{head}\n---|---|---|--:|---|---|---")
            print("\n".join(report(first.columns)))
            print("\npair | correlation | by rank\n---|---|---")
            for pair in first.correlated:
                both = [f"{real:.3f} → {synthetic:.3f}" for real, synthetic in (pair.pearson, pair.rank)]
                print(" | ".join([" and ".join(pair.columns), *both]), flush=True)
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
