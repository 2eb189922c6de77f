"""How the cost of a fit grows with cells, columns and measurements.

    python benchmarks/engine_growth.py [--cells 1e4 ... 1e8] [--columns 10 ... 200]
                                       [--measurements 10 ... 2000] [--limit 3600] [--memory 16]

One of the three varies at a time:

    cells         12 columns of equal size, 33 measurements: every column, and every pair of
                  columns at most two apart, so that the tree has 10 cliques of three columns
    columns       the same shape on about 1e5 cells, 600 measurements: cliques are measured
                  again and again until there are as many, as iterative mechanisms do
    measurements  16 columns of 3 values, a tree of 7 cliques of ten columns (413 343 cells):
                  those seven and distinct cliques of up to five columns inside them

The rows come from a mixture of 20 product distributions, 50 000 of them, noise sigma 20. Each
case is a fresh process. The floor is np.exp over as many float64 cells as the tree has, in
place, in the same process: what one pass over the cells costs at least. MB is the peak of the
whole process before the floor is taken. The case of 1e8 cells wants some 10 GB free: an array
of them alone is 800 MB. A case that asks for more than --memory GB fails rather than take the
machine down.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod
from statistics import median
from time import perf_counter

import numpy as np
from engine_fit import peak_megabytes

Clique = tuple[str, ...]
ROWS = 50_000
SIGMA = 20.0
AXES: dict[str, list[float]] = {
    "cells": [1e4, 1e5, 1e6, 1e7, 1e8],
    "columns": [10, 20, 50, 100, 200],
    "measurements": [10, 30, 100, 300, 1000, 2000],
}
HEAD = (
    "cells",
    "columns",
    "measurements",
    "seconds",
    "steps",
    "ms/step",
    "floor ms",
    "step/floor",
    "fit/floor",
    "MB",
)


def windows(columns: Sequence[str], width: int) -> list[Clique]:
    """Every run of neighbouring columns: the cliques of a tree that is a path."""
    return [tuple(columns[i : i + width]) for i in range(len(columns) - width + 1)]


def _subsets(cliques: Sequence[Clique], degrees: Sequence[int]) -> list[Clique]:
    """Distinct cliques of some degrees inside the given ones."""
    return list(
        dict.fromkeys(c for degree in degrees for whole in cliques for c in combinations(whole, degree))
    )


def case(axis: str, value: float) -> tuple[dict[str, int], list[Clique], int]:
    """Sizes of the columns, the cliques to measure, and the cells of their tree."""
    if axis == "measurements":
        sizes = {f"c{i}": 3 for i in range(16)}
        tree = windows(list(sizes), 10)
        inside = _subsets(tree, (1, 2, 3, 4, 5))
        order = np.random.default_rng(16).permutation(len(inside))
        cliques = (tree + [inside[i] for i in order])[: int(value)]
    else:
        columns = int(value) if axis == "columns" else 12
        cells = value if axis == "cells" else 1e5
        sizes = {f"c{i}": round((cells / (columns - 2)) ** (1 / 3)) for i in range(columns)}
        tree = windows(list(sizes), 3)
        inside = _subsets(tree, (1, 2))
        wanted = 600 if axis == "columns" else len(inside)
        cliques = [inside[i % len(inside)] for i in range(wanted)]
    return sizes, cliques, sum(prod(sizes[c] for c in clique) for clique in tree)


def table(sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows of a mixture of product distributions."""
    group = np.sort(rng.integers(0, 20, ROWS))
    bounds = np.searchsorted(group, np.arange(21))
    codes = {}
    for column, size in sizes.items():
        weights = rng.dirichlet(np.full(size, 0.3), 20)
        draws = [
            rng.choice(size, b - a, p=w) for w, a, b in zip(weights, bounds[:-1], bounds[1:], strict=True)
        ]
        codes[column] = np.concatenate(draws)
    return codes


def run(axis: str, value: float) -> dict[str, float]:
    """Fit one case in this process."""
    from dpsynth.columns.domain import Domain
    from dpsynth.columns.measurement import Measurement
    from dpsynth.model import estimate

    sizes, cliques, cells = case(axis, value)
    rng = np.random.default_rng(0)
    codes = table(sizes, rng)
    measurements = []
    for clique in cliques:
        shape = tuple(sizes[c] for c in clique)
        truth = np.bincount(np.ravel_multi_index([codes[c] for c in clique], shape), minlength=prod(shape))
        noisy = np.rint(truth.reshape(shape) + rng.normal(0.0, SIGMA, shape)).astype(np.int64)
        measurements.append(Measurement(clique, noisy, "gaussian", SIGMA))
    begun = perf_counter()
    fit = estimate(Domain(sizes), measurements, total=float(ROWS))
    seconds = perf_counter() - begun
    peak = peak_megabytes()
    if fit.model.tree.cells != cells:
        sys.exit(f"the tree has {fit.model.tree.cells} cells, not {cells}")
    floor = median(_floor(cells))
    step = seconds / max(1, fit.iterations)
    figures = (cells, len(sizes), len(cliques), seconds, fit.iterations, step * 1e3, floor * 1e3)
    return dict(zip(HEAD, (*figures, step / floor, seconds / floor, peak), strict=True))


def _floor(cells: int) -> Iterator[float]:
    """Seconds of some passes over the cells; the model's own memory has been paid by then."""
    start = np.linspace(-1.0, 0.0, cells)
    for _ in range(5):
        values = start.copy()
        begun = perf_counter()
        np.exp(values, out=values)
        yield perf_counter() - begun


def main() -> None:
    """Print one row a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for axis in AXES:
        parser.add_argument(f"--{axis}", nargs="*", type=float)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that one case may take")
    parser.add_argument("--memory", type=float, default=16.0, help="GB that one case may take")
    parser.add_argument("--case", nargs=2, metavar=("AXIS", "VALUE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        most = int(arguments.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        print(json.dumps(run(arguments.case[0], float(arguments.case[1]))))
        return
    asked: dict[str, list[float] | None] = {axis: getattr(arguments, axis) for axis in AXES}
    chosen = AXES if not any(asked.values()) else {axis: values or [] for axis, values in asked.items()}
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    for axis, values in chosen.items():
        print(f"growing {axis}\n" + "".join(f"{h:>13}" for h in HEAD) if values else "", flush=True)
        for value in values:
            command = [sys.executable, __file__, "--case", axis, str(value)]
            command += ["--memory", str(arguments.memory)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
            except subprocess.TimeoutExpired:
                print(f"{axis} {value:g}: over {arguments.limit:.0f} s", flush=True)
                continue
            if done.returncode:
                print(f"{axis} {value:g}: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
                continue
            figures = json.loads(done.stdout).values()
            print("".join(f"{f:13d}" if isinstance(f, int) else f"{f:13.2f}" for f in figures), flush=True)


if __name__ == "__main__":
    main()
