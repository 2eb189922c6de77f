"""What a public table brings: the error of a release with and without one, like the private table and unlike.

    python benchmarks/public_prior.py --table TABLE.csv --domain DOMAIN.json [--epsilon 0.1 0.5 1]
        [--structure auto] [--runs 3] [--public 0 like few drifted shuffled sorted]

TABLE holds codes from 0, DOMAIN the number of values of each column. In each run one half of the rows,
drawn at random, is the private table; the other half is made a public one:

- like: as it is; few: 1,000 rows of it.
- drifted: rows drawn again so that the two columns of fewest values have quite another mix.
- shuffled: every column in a random order of its own: single columns like the private ones, no relations.
- sorted: every column sorted: single columns like the private ones, and all of their relations wrong.

Errors are mean total variation distances, over all marginals of one, two and three columns, between the
synthetic table and the private one. Releases run in this process, one after another.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
from coded_tables import DELTA, config_text, markdown

import dpsynth

Rows = pd.DataFrame


def drifted(rows: Rows, domain: Mapping[str, int], rng: np.random.Generator) -> Rows:
    """As many rows, drawn with odds that rise steeply with the two columns of fewest values."""
    first, second = sorted(domain, key=domain.__getitem__)[:2]
    tilt = rows[first] / max(1, domain[first] - 1) - rows[second] / max(1, domain[second] - 1)
    odds = np.exp(1.5 * (tilt - tilt.mean()) / tilt.std())
    return rows.iloc[rng.choice(len(rows), len(rows), p=odds / odds.sum())]


PUBLIC: Mapping[str, Callable[[Rows, Mapping[str, int], np.random.Generator], Rows]] = {
    "like": lambda rows, domain, rng: rows,
    "few": lambda rows, domain, rng: rows.head(1000),
    "drifted": drifted,
    "shuffled": lambda rows, domain, rng: rows.apply(lambda c: rng.permutation(c.to_numpy())),
    "sorted": lambda rows, domain, rng: rows.apply(lambda c: np.sort(c.to_numpy())),
}


def distances(real: Rows, synthetic: Rows, domain: Mapping[str, int]) -> list[float]:
    """Mean total variation distance of all marginals of one, two and three columns."""
    found = []
    for ways in (1, 2, 3):
        each = []
        for clique in combinations(domain, ways):
            shape = [domain[c] for c in clique]
            if np.prod(shape) > 1e6:
                continue
            one, two = (
                np.bincount(
                    np.ravel_multi_index([t[c].to_numpy() for c in clique], shape),
                    minlength=int(np.prod(shape)),
                )
                / len(t)
                for t in (real, synthetic)
            )
            each.append(0.5 * float(np.abs(one - two).sum()))
        found.append(mean(each))
    return found


def scored(
    private: Rows, public: Rows | None, domain: Mapping[str, int], epsilon: str, method: str
) -> list[float]:
    """Release the private table, with a public one or without, and score it."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "domain.json").write_text(json.dumps(domain))
        private.to_csv(work / "train.csv", index=False)
        text = config_text(
            work, work / "ledger.db", f"epsilon: {epsilon}, delta: {DELTA}", f"method: {method}"
        )
        text = text.replace(f"release: {work.name}", "release: prior")
        if public is not None:
            public.to_csv(work / "public.csv", index=False)
            text += f"public_table: {work / 'public.csv'}\n"
        (work / "config.yaml").write_text(text)
        release = dpsynth.release(dpsynth.load(work / "config.yaml"), outputs=work / "out")
        return distances(private, release.synthetic.astype(int), domain)


def cases(
    given: argparse.Namespace, domain: Mapping[str, int], run: int
) -> tuple[Rows, dict[str, Rows | None]]:
    """A private table, and the public tables to go with it."""
    rng = np.random.default_rng(run)
    rows = pd.read_csv(given.table)[list(domain)]
    rows = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)
    half = len(rows) // 2
    made = {name: PUBLIC[name](rows.iloc[half:], domain, rng) for name in given.public}
    return rows.iloc[:half], {"none": None, **made}


def main() -> None:
    """Print a line for each release, then a table of means in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--domain", type=Path, required=True)
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.5", "1"])
    parser.add_argument("--structure", nargs="+", default=["auto"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--public", nargs="*", choices=list(PUBLIC), default=list(PUBLIC))
    given = parser.parse_args()
    domain: dict[str, int] = json.loads(given.domain.read_text())
    found: dict[tuple[str, str, str], list[list[float]]] = {}
    for run in range(given.runs):
        private, publics = cases(given, domain, run)
        for method in given.structure:
            for epsilon in given.epsilon:
                for name, public in publics.items():
                    scores = scored(private, public, domain, epsilon, method)
                    found.setdefault((method, epsilon, name), []).append(scores)
                    print(f"{method:8} {epsilon:>5} {name:10}", *(f"{s:.4f}" for s in scores), flush=True)
    lines: list[Sequence[str]] = []
    for (method, epsilon, name), runs in found.items():
        means = [mean(r[i] for r in runs) for i in range(3)]
        alone = mean(r[2] for r in found[method, epsilon, "none"])
        spread = stdev(r[2] for r in runs) if len(runs) > 1 else 0.0
        change = "" if name == "none" else f"{100 * (means[2] / alone - 1):+.0f} %"
        figures = [f"{m:.4f}" for m in means]
        lines.append([method, epsilon, name, *figures[:2], f"{figures[2]} ± {spread:.4f}", change])
    print(f"\nMeans of {given.runs} runs, ± the standard deviation of a run; delta {DELTA}.\n")
    head = ["method", "ε", "public table", "1 column", "2 columns", "3 columns", "change"]
    print(markdown(head, lines, words=3))


if __name__ == "__main__":
    main()
