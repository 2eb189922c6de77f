"""The loss by a free choice among configurations, and the cost of one that is paid for.

    DPSYNTH_DATA=FOLDER python benchmarks/candidates.py [--tables adult flights nlswork] [--epsilon 0.3 1 3]

Candidates for the raw tables of bins.py: the configuration as it is, 8 and 32 bins in each column of numbers,
and the method mst, judged by the mean total variation distance of all pairs; and every second column dropped,
judged by the pairs of those that are left. Each is released twice from the private rows, and once from each
stand-in: synthetic tables of two earlier releases at the same epsilon, one of an earlier release at a tenth
of the budget, the rows held out (a public table of a quarter as many rows), and a made-up table.

Printed is which candidate each stand-in chooses, and by how much its error on the private rows is above that
of the best candidate in hindsight. Then, by how the best error falls from one epsilon to the next, how much
larger it is at half of epsilon (about what a random number of trials leaves), at half of the budget in rho or
mu^2/2 (two candidates, one of which is kept), and at nine tenths of it (a pilot).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, pairwise
from math import log, sqrt
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from bins import Judge, Table, _distance, posed, with_bins

import dpsynth
from dpsynth.config import from_mapping
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.rehearsal import made_up_table
from dpsynth.pipeline.reservation import occasion_of

RUNS = 2
MODELS, COLUMNS = ("as it is", "8 bins", "32 bins", "mst"), ("as it is", "half of the columns")


def candidates(config: dict[str, object], table: Table) -> Iterator[tuple[str, dict[str, object]]]:
    columns = config["columns"]
    assert isinstance(columns, dict)
    yield "as it is", config
    yield "8 bins", with_bins(config, table, 8, "declared")
    yield "32 bins", with_bins(config, table, 32, "declared")
    yield "mst", config | {"structure": "mst"}
    yield "half of the columns", config | {"columns": {c: columns[c] for c in [*columns][::2]}}


def spec_of(config: dict[str, object], epsilon: float, path: Path, work: Path) -> dpsynth.Spec:
    privacy = config["privacy"]
    assert isinstance(privacy, dict)
    return from_mapping(
        config
        | {
            "release": "candidate",
            "source": {"path": str(path)},
            "privacy": privacy | {"epsilon": epsilon},
            "ledger": {
                "url": f"sqlite:///{work}/ledger.db",
                "dataset": "x",
                "cap": {"epsilon": 1000000, "delta": 0.5},
            },
        }
    )


def released(config: dict[str, object], epsilon: float, path: Path, work: Path) -> pd.DataFrame:
    made = dpsynth.release(spec_of(config, epsilon, path, work), outputs=work / "out", tell=lambda _: None)
    return pd.read_csv(made.folder / "public" / "synthetic.csv", dtype=str)


def errors(table: Table, real: pd.DataFrame, synthetic: pd.DataFrame) -> tuple[float, float]:
    """The mean distance of all pairs of the synthetic table, and of those of every second column."""
    kept = [c for c in real if c in synthetic]
    ranges = {c: span for c, span in table.numbers.items() if c in kept}
    judge = Judge(replace(table, numbers=ranges), real[kept], real)
    codes = [judge.codes(frame[kept]) for frame in (real, synthetic)]
    found = {pair: _distance([[of[c] for c in pair] for of in codes]) for pair in combinations(kept, 2)}
    half = {*[*table.numbers, *table.texts][::2]}
    return fmean(found.values()), fmean(far for pair, far in found.items() if half.issuperset(pair))


def stand_ins(
    config: dict[str, object], epsilon: float, judge: Judge, path: Path, work: Path
) -> Iterator[tuple[str, Path]]:
    for i, name in enumerate(("an earlier release", "another one")):
        released(config, epsilon, path, work).to_csv(work / f"earlier-{i}.csv", index=False)
        yield name, work / f"earlier-{i}.csv"
    released(config, epsilon * sqrt(0.1), path, work).to_csv(work / "pilot.csv", index=False)
    yield "a pilot", work / "pilot.csv"
    judge.held_out.to_csv(work / "public.csv", index=False)
    yield "a public table", work / "public.csv"
    spec = spec_of(config, epsilon, path, work)
    occasion = occasion_of(spec, datetime.now(UTC), None)
    made = made_up_table(inputs_of(spec), occasion, len(judge.real), np.random.default_rng(1))
    pd.DataFrame(made.to_pydict()).to_csv(work / "made-up.csv", index=False)
    yield "a made-up table", work / "made-up.csv"


def chosen(best: Mapping[str, float], among: Mapping[str, float]) -> str:
    """A choice, and what it loses."""
    taken = min(among, key=among.__getitem__)
    return f"{taken} ({100 * (best[taken] / min(best.values()) - 1):.1f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["adult", "flights", "nlswork"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    given = parser.parse_args()
    for name in given.tables:
        least: dict[tuple[int, float], float] = {}
        for epsilon in given.epsilon:
            with tempfile.TemporaryDirectory() as folder:
                work = Path(folder)
                judge, config = posed(name, work)
                source, some = work / f"{name}-real.csv", [*candidates(config, judge.table)]
                true = {
                    one: [
                        errors(judge.table, judge.real, released(c, epsilon, source, work))
                        for _ in range(RUNS)
                    ]
                    for one, c in some
                }
                tried = {
                    where: {
                        one: errors(
                            judge.table, pd.read_csv(path, dtype=str), released(c, epsilon, path, work)
                        )
                        for one, c in some
                    }
                    for where, path in stand_ins(config, epsilon, judge, source, work)
                }
            for which, contest in enumerate((MODELS, COLUMNS)):
                best = {one: fmean(run[which] for run in true[one]) for one in contest}
                least[which, epsilon] = min(best.values())
                print(f"{name}, ε {epsilon:g}: " + ", ".join(f"{one} {far:.4f}" for one, far in best.items()))
                for where, found in tried.items():
                    print(
                        f"  on {where}: {chosen(best, {one: found[one][which] for one in contest})}",
                        flush=True,
                    )
        for low, high in pairwise(given.epsilon):
            for which, contest in enumerate((MODELS, COLUMNS)):
                power = log(least[which, low] / least[which, high]) / log(high / low)
                costs = (2**power - 1, sqrt(2**power) - 1, (1 / 0.9) ** (power / 2) - 1)
                shown = ", ".join(f"{100 * cost:.0f} %" for cost in costs)
                print(f"{name}, {contest[-1]}, ε {low:g} to {high:g}: a paid choice costs {shown}")


if __name__ == "__main__":
    main()
