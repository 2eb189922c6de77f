"""Verdicts of releases on themselves against the truth, for columns and pairs of real tables.

    DPSYNTH_DATA=FOLDER python benchmarks/verdicts.py [--tables flights titanic ...] [--epsilon 0.3 1 3]
        [--rows 10000] [--columns 20] [--seeds 3]

Each table is configured by `dpsynth init --look`, every guess accepted as in `first_contact.py`, with rows
as the unit, its first columns, and 10 000 of its rows at random. It is released with `--plain` under each
epsilon. The verdict on each column and pair is read from the manifest. The true error is the share of rows
that would have to change, by the columns' own values and bins, as in `exam.csv`. Of a column it is that among
the rows with a value, if that is more; of a pair, that of one of its columns, if that is more. Printed are a
line for each epsilon and verdict: how many, how many of them are truly off by more than 5 %, and the least
and largest true error; then each column and pair to be used that is off by more, and each not to be used that
is not. The thresholds of verdicts were chosen on some of the tables; all others are printed by themselves.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from coded_tables import markdown
from first_contact import RAW, brought, looked_at, read_texts, written
from made_tables import MADE

from dpsynth.bundle.recipient import open_bundle
from dpsynth.columns.column import Column
from dpsynth.statistics.verdict import USABLE, USES

CHOSEN_ON = (*RAW, "persons", "households", "titanic", "nltcs", "fire")
"""Tables on which the thresholds of verdicts were chosen."""
UNSEEN = (*MADE, "census-kdd", "artificial-characters")
TABLES = (*CHOSEN_ON, *UNSEEN)
Codes = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Held:
    """A verdict beside the truth.

    Attributes:
        table, epsilon: of the release.
        name: the column, or the pair.
        pair: True of a pair.
        verdict: the release's own.
        error: the true error.
    """

    table: str
    epsilon: float
    name: str
    pair: bool
    verdict: str
    error: float

    @property
    def off(self) -> bool:
        """True if it is off by more than may be used."""
        return self.error > USABLE


def released(table: Path, epsilon: float, columns: int) -> Path:
    """The public folder of a release of the first columns, every guess accepted."""
    config = table.with_name(f"{table.stem}-{epsilon:g}.yaml")
    values = looked_at(table, epsilon, "row")
    privacy, declared = values["privacy"], values["columns"]
    assert isinstance(privacy, dict) and isinstance(declared, dict)
    values["privacy"] = {"delta": 1e-9, **privacy, "on_empty": "go"}
    values["columns"] = dict(list(declared.items())[:columns])
    values = {key: value for key, value in values.items() if key not in ("constraints", "publish")}
    command = [sys.executable, "-m", "dpsynth", "run", str(written(values, config)), "--plain"]
    command += ["--out", str(table.with_name("out"))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Path(done.stdout.splitlines()[-1]) / "public"


def coded(columns: tuple[Column, ...], table: pd.DataFrame) -> Codes:
    """The codes of a table of texts."""
    return {c.name: np.asarray(c.encode(pa.array(table[c.source].tolist(), pa.string()))) for c in columns}


def apart(real: np.ndarray, synthetic: np.ndarray) -> float:
    """Total variation distance of two arrays of counts, the second scaled to the first."""
    scaled = synthetic * (real.sum() / max(synthetic.sum(), 1))
    return float(np.abs(real - scaled).sum() / 2 / max(real.sum(), 1))


def held(table: Path, public: Path, epsilon: float) -> Iterator[Held]:
    """The verdicts of a release beside the truth."""
    bundle = open_bundle(public)
    columns = bundle.layout.columns
    sizes = {c.name: c.size for c in columns}
    tables = [coded(columns, read_texts(path)) for path in (table, public / "synthetic.csv")]

    def error(names: tuple[str, ...]) -> float:
        shape = [sizes[name] for name in names]
        places = [np.ravel_multi_index([codes[name] for name in names], shape) for codes in tables]
        return apart(*(np.bincount(place, minlength=int(np.prod(shape))) for place in places))

    single = {}
    for column in columns:
        counts = [np.bincount(codes[column.name], minlength=column.size) for codes in tables]
        values = len(column.codec.labels)
        # Rows with a value, at as many as the private table has of all rows.
        real, synthetic = counts[0], counts[1] * (counts[0].sum() / max(counts[1].sum(), 1))
        known = np.abs(real[:values] - synthetic[:values]).sum() / 2 / max(real[:values].sum(), 1)
        single[column.name] = max(error((column.name,)), float(known))
    verdict = bundle.verdict
    for one in verdict.columns:
        yield Held(table.stem, epsilon, one.name, False, one.verdict, single[one.name])
    for one in verdict.pairs:
        true = max(error(one.columns), *(single[name] for name in one.columns))
        yield Held(table.stem, epsilon, one.name, True, one.verdict, true)


def lines(found: list[Held]) -> Iterator[list[str]]:
    """A line of the table for each epsilon, kind and verdict."""
    for epsilon in sorted({one.epsilon for one in found}):
        for pair in (False, True):
            for use in USES:
                some = [x for x in found if (x.epsilon, x.pair, x.verdict) == (epsilon, pair, use)]
                errors = [x.error for x in some] or [float("nan")]
                off = sum(x.off for x in some)
                kind = "pairs" if pair else "columns"
                yield [
                    f"{epsilon:g}",
                    kind,
                    use,
                    f"{len(some)}",
                    f"{off}",
                    f"{min(errors):.3f}",
                    f"{max(errors):.3f}",
                ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    found: list[Held] = []
    for seed in range(1, chosen.seeds + 1):
        for name in chosen.tables:
            with tempfile.TemporaryDirectory() as work:
                table = brought(name, Path(work), chosen.rows, seed)
                for epsilon in chosen.epsilon:
                    found += held(table, released(table, epsilon, chosen.columns), epsilon)
            print(f"{name}, seed {seed}: {len(found):,} verdicts so far", file=sys.stderr, flush=True)
    head = ("ε", "of", "verdict", "number", "off by more than 5 %", "least error", "largest error")
    for kind, tables in (("chosen on", CHOSEN_ON), ("unseen", UNSEEN)):
        if some := [one for one in found if one.table in tables]:
            print(f"{kind}: {', '.join(sorted({one.table for one in some}))}")
            print(markdown(head, list(lines(some)), words=3))
    for one in found:
        if one.off == (one.verdict == USES[0]) and one.verdict != USES[1]:
            print(f"{one.table}, ε = {one.epsilon:g}: {one.name}: {one.verdict}, truly {one.error:.3f} off")


if __name__ == "__main__":
    main()
