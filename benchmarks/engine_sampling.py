"""How far a sample's marginals are from its model's, and conditional samples from exact conditionals.

    python benchmarks/engine_sampling.py [--problems a c d] [--rows 1000 10000 100000 1000000]
                                         [--triples 100] [--samples 5] [--tests 200]

The models are fits to the problems of engine_problems.py and, on Adult, those of a release at
epsilon 1 by each structure strategy. The tables come from the folder that DPSYNTH_DATA names.

First table: mean total variation distance between the model's marginals and a sample's, over
single columns, all pairs, and random triples inside and outside the cliques of the tree. "expected"
is the exact mean for independent rows (De Moivre's formula for the mean deviation of a binomial):
rounding earns its name where it is below.

Second table: each test fixes one to three random columns at values of a random row, draws 20 000
rows given them, and compares one or two other columns with the exact conditional, taken from a
marginal over all of these columns together. Chi-squared must not exceed its degrees of freedom by
more than chance, and falls short of them where rounding helps.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from coded_tables import config_text
from engine_problems import build, count, load_problem, read_table
from scipy.special import gammaln
from scipy.stats import chi2

import dpsynth
from dpsynth.columns.domain import Clique
from dpsynth.model import MarkovRandomField, estimate, load, sample
from dpsynth.strategy import STRATEGIES

DRAWN = 20_000
MOST_CELLS = 5_000_000


def models(problems: Sequence[str]) -> Iterator[tuple[str, MarkovRandomField]]:
    """Fitted models and what to call them."""
    with tempfile.TemporaryDirectory() as folder:
        for name in problems:
            domain, measurements = load_problem(build(name, Path(folder)))
            yield name, estimate(domain, measurements).model
    sizes, codes = read_table("adult-coded")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "adult-coded"
        table.mkdir()
        (table / "domain.json").write_text(json.dumps(sizes))
        np.savetxt(
            table / "train.csv",
            np.column_stack([codes[c] for c in sizes]),
            fmt="%d",
            delimiter=",",
            header=",".join(sizes),
            comments="",
        )
        for method in STRATEGIES:
            config = table / f"{method}.yaml"
            privacy = "epsilon: 1, delta: 1.0e-9"
            config.write_text(config_text(table, table / "ledger.db", privacy, f"method: {method}"))
            release = dpsynth.release(dpsynth.load(config), outputs=table)
            yield method, load(release.folder / "public" / "model.npz")


def cliques_of(model: MarkovRandomField, triples: int, rng: np.random.Generator) -> dict[str, list[Clique]]:
    """Columns, pairs, and random triples inside and outside the cliques of the tree."""
    domain = model.tree.domain
    inside = {domain.canonical(t) for c in model.tree.cliques for t in combinations(c, 3)}
    pools = {"triples inside": sorted(inside)}
    pools["triples outside"] = [t for t in combinations(domain.columns, 3) if t not in inside]
    found: dict[str, list[Clique]] = {
        "columns": [(c,) for c in domain.columns],
        "pairs": list(combinations(domain.columns, 2)),
    }
    for kind, pool in pools.items():
        found[kind] = [pool[i] for i in rng.permutation(len(pool))[:triples]]
    return {kind: cliques for kind, cliques in found.items() if cliques}


def expected_distance(shares: np.ndarray, rows: int) -> float:
    """Mean total variation distance between a distribution and independent draws from it."""
    p = shares[(shares > 0) & (shares < 1)]
    whole = np.floor(rows * p)
    deviation = 2 * rows * p * np.exp(rows * np.log1p(-p))
    some = whole > 0
    p, whole = p[some], whole[some]
    choices = gammaln(rows + 1) - gammaln(whole + 2) - gammaln(rows - whole)
    terms = choices + (whole + 1) * np.log(p) + (rows - whole) * np.log1p(-p)
    deviation[some] = 2 * (whole + 1) * np.exp(terms)
    return 0.5 * float(deviation.sum()) / rows


def distances(name: str, model: MarkovRandomField, sizes: Sequence[int], triples: int, samples: int) -> None:
    """Print the distances of samples of one model."""
    rng, domain = np.random.default_rng(0), model.tree.domain
    tables: dict[tuple[str, int], list[dict[str, np.ndarray]]] = {}
    seconds: dict[tuple[str, int], float] = {}
    for rows in sizes:
        taken, kept = [], []
        for _ in range(samples):
            begun = perf_counter()
            drawn = sample(model, rows, rng)
            taken.append(perf_counter() - begun)
            kept.append({c: codes.astype(np.min_scalar_type(domain.sizes[c])) for c, codes in drawn.items()})
        tables["rounding", rows], seconds["rounding", rows] = kept, median(taken)
    groups = cliques_of(model, triples, rng)
    print(f"\n{name}: {model.tree.cells} cells; mean total variation distance over {samples} samples")
    print(f"{'rows':>9} {'method':12}{'seconds':>9}" + "".join(f"{kind:>17}" for kind in groups))
    found: dict[tuple[str, int], list[float]] = {way: [] for way in tables}
    found |= {("expected", rows): [] for rows in sizes}
    for cliques in groups.values():
        sums = dict.fromkeys(found, 0.0)
        for clique in cliques:
            wanted = model.marginal(clique)
            wanted = wanted / wanted.sum()
            for way, drawn_tables in tables.items():
                for table in drawn_tables:
                    had = count(dict(domain.sizes), table, clique) / way[1]
                    sums[way] += 0.5 * float(np.abs(had - wanted).sum()) / samples
            for rows in sizes:
                sums["expected", rows] += expected_distance(wanted, rows)
        for way, total in sums.items():
            found[way].append(total / len(cliques))
    for rows in sizes:
        for method in ("rounding", "expected"):
            time = f"{seconds[method, rows]:9.3f}" if (method, rows) in seconds else " " * 9
            print(
                f"{rows:9d} {method:12}{time}" + "".join(f"{d:17.5f}" for d in found[method, rows]),
                flush=True,
            )


def _test(model: MarkovRandomField, rng: np.random.Generator) -> tuple[int, float, int] | None:
    """Number of fixed columns, chi-squared and its degrees of freedom; None for no freedom."""
    domain = model.tree.domain
    while True:
        chosen = [domain.columns[i] for i in rng.permutation(len(domain.columns))]
        fixed, targets = chosen[: rng.integers(1, 4)], chosen[-rng.integers(1, 3) :]
        if domain.cells((*fixed, *targets)) <= MOST_CELLS:
            break
    row = sample(model, 1, rng)
    given = {c: int(row[c][0]) for c in fixed}
    weights = model.marginal((*fixed, *targets))[tuple(given.values())].reshape(-1)
    wanted = DRAWN * weights / weights.sum()
    drawn = sample(model, DRAWN, rng, given=given)
    if any((drawn[c] != v).any() for c, v in given.items()):
        raise SystemExit(f"a fixed value was not kept: {given}")
    had = count(dict(domain.sizes), dict(drawn), tuple(targets)).reshape(-1)
    if had[wanted == 0].any():
        raise SystemExit(f"an impossible cell was drawn given {given}")
    # Cells that are expected too rarely are counted as one, if need be together with a large one.
    large = wanted >= 5
    if not large.any():
        return None
    rest_wanted, rest_had = wanted[~large].sum(), had[~large].sum()
    wanted, had = wanted[large], had[large].astype(np.float64)
    if rest_wanted >= 5:
        wanted, had = np.append(wanted, rest_wanted), np.append(had, rest_had)
    else:
        wanted[0], had[0] = wanted[0] + rest_wanted, had[0] + rest_had
    if len(wanted) < 2:
        return None
    return len(fixed), float((np.square(had - wanted) / wanted).sum()), len(wanted) - 1


def conditionals(name: str, model: MarkovRandomField, tests: int) -> None:
    """Print how conditional samples of one model fare against exact conditionals."""
    rng = np.random.default_rng(1)
    print(f"\n{name}: samples given one to three columns, against exact conditionals")
    print(f"{'fixed':>6}{'tests':>7}{'mean chi2/df':>14}{'smallest p':>12}")
    done = [found for found in (_test(model, rng) for _ in range(tests)) if found]
    for fixed in (1, 2, 3):
        ratios = [value / freedom for f, value, freedom in done if f == fixed]
        p = [float(chi2.sf(value, freedom)) for f, value, freedom in done if f == fixed]
        if p:
            print(f"{fixed:6d}{len(p):7d}{np.mean(ratios):14.3f}{min(p):12.4f}", flush=True)


def main() -> None:
    """Print both tables for every model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", nargs="*", choices="abcd", default=list("acd"))
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--triples", type=int, default=100)
    parser.add_argument("--samples", type=int, default=5, help="tables to average over")
    parser.add_argument("--tests", type=int, default=200)
    arguments = parser.parse_args()
    for name, model in models(arguments.problems):
        distances(name, model, arguments.rows, arguments.triples, arguments.samples)
        conditionals(name, model, arguments.tests)


if __name__ == "__main__":
    main()
