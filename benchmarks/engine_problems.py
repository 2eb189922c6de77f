"""Real fitting problems for the engine's benchmarks: noisy marginals of public tables.

    python benchmarks/engine_problems.py FOLDER [--problems a b c d]

Writes FOLDER/a.npz .. d.npz from the coded tables in the folder that the environment
variable DPSYNTH_DATA names. The noise is an ordinary generator's: nothing here is private.

    a  Adult: one-way marginals and the pairs of the spanning tree of most mutual information,
       noise of a release at epsilon 1, delta 1e-9
    b  Adult: one-way marginals and 30 random three-way cliques on a tree of 1e6 to 1e7 cells
    c  NLTCS: one-way marginals and all pairs of a greedy 2-tree
    d  Adult: one-way marginals and random pairs and triples, 73 cliques on a tree of 1e5 cells

A file holds `problem`, a JSON text of the domain, cliques and sigmas, and the int64 arrays
`y0`, `y1`, ... in the cliques' order, so that any library can read it. Sizes of trees come
from a min-fill elimination of this file's own: a problem stays the same whatever the engine does.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpsynth.columns.domain import Domain
    from dpsynth.columns.measurement import Measurement

Clique = tuple[str, ...]
RHO = 0.0115
"""What epsilon 1 at delta 1e-9 comes to in zCDP; a third of it goes to the one-way marginals."""


def read_table(name: str) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Sizes and int64 codes of a coded table's columns."""
    folder = Path(os.environ.get("DPSYNTH_DATA", ""))
    if "DPSYNTH_DATA" not in os.environ:
        raise SystemExit("set DPSYNTH_DATA to the folder that holds the coded tables")
    sizes: dict[str, int] = json.loads((folder / f"{name.removesuffix('-coded')}-domain.json").read_text())
    with (folder / f"{name}.csv").open() as file:
        header = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return sizes, {c: rows[:, header.index(c)] for c in sizes}


def count(sizes: dict[str, int], codes: dict[str, np.ndarray], clique: Clique) -> np.ndarray:
    """Counts of a clique's cells, axes in the clique's order."""
    shape = tuple(sizes[c] for c in clique)
    flat = np.ravel_multi_index([codes[c] for c in clique], shape)
    return np.bincount(flat, minlength=prod(shape)).reshape(shape)


def tree_cells(sizes: dict[str, int], cliques: Sequence[Clique]) -> int:
    """Cells of the junction tree that min-fill elimination leads to."""
    around: dict[str, set[str]] = {c: set() for c in sizes}
    for clique in cliques:
        for a, b in combinations(clique, 2):
            around[a].add(b)
            around[b].add(a)

    def fill(column: str) -> tuple[int, int]:
        missing = sum(b not in around[a] for a, b in combinations(sorted(around[column]), 2))
        return missing, prod(sizes[c] for c in (column, *around[column]))

    maximal: list[set[str]] = []
    while around:
        column = min(around, key=fill)
        near = around.pop(column)
        if not any({column, *near} <= other for other in maximal):
            maximal.append({column, *near})
        for a in near:
            around[a] = (around[a] | near) - {a, column}
    return sum(prod(sizes[c] for c in members) for members in maximal)


def _entropy(counts: np.ndarray) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def _shared(sizes: dict[str, int], codes: dict[str, np.ndarray]) -> Callable[[Clique, Clique], float]:
    """Mutual information of two groups of columns, in nats."""
    found: dict[Clique, float] = {}

    def entropy(clique: Clique) -> float:
        key = tuple(sorted(clique))
        if key not in found:
            found[key] = _entropy(count(sizes, codes, key))
        return found[key]

    return lambda left, right: entropy(left) + entropy(right) - entropy(left + right)


def _spanning_tree(sizes: dict[str, int], codes: dict[str, np.ndarray]) -> list[Clique]:
    shared = _shared(sizes, codes)
    inside: list[str] = [next(iter(sizes))]
    edges: list[Clique] = []
    while len(inside) < len(sizes):
        ways: list[Clique] = [(a, b) for a in inside for b in sizes if b not in inside]
        edge = max(ways, key=lambda way: shared(way[:1], way[1:]))
        edges.append(edge)
        inside.append(edge[1])
    return edges


def _two_tree(sizes: dict[str, int], codes: dict[str, np.ndarray]) -> list[Clique]:
    """Pairs of a 2-tree: each next column hangs on the edge that tells most about it."""
    shared = _shared(sizes, codes)
    every: list[Clique] = list(combinations(sizes, 2))
    pairs = [max(every, key=lambda pair: shared(pair[:1], pair[1:]))]
    inside = set(pairs[0])
    while len(inside) < len(sizes):
        ways = [(pair, c) for pair in pairs for c in sizes if c not in inside]
        (a, b), column = max(ways, key=lambda way: shared(way[0], (way[1],)))
        pairs += [(a, column), (b, column)]
        inside.add(column)
    return pairs


def _random_cliques(
    sizes: dict[str, int], degrees: Sequence[int], wanted: int, cells: tuple[float, float]
) -> list[Clique]:
    """Random cliques, each kept if the tree stays small enough; the first seed that fills it."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        kept: list[Clique] = []
        pool = [c for degree in degrees for c in combinations(sizes, degree)]
        for place in rng.permutation(len(pool)):
            if len(kept) < wanted and tree_cells(sizes, [*kept, pool[place]]) <= cells[1]:
                kept.append(pool[place])
        if len(kept) == wanted and tree_cells(sizes, kept) >= cells[0]:
            return kept
    raise SystemExit("no seed gives such cliques")


def build(name: str, folder: Path) -> Path:
    """Write one problem and return its path."""
    sizes, codes = read_table("nltcs" if name == "c" else "adult-coded")
    ones: list[Clique] = [(c,) for c in sizes]
    if name == "a":
        more = _spanning_tree(sizes, codes)
        sigmas = [sqrt(3 * len(ones) / (2 * RHO))] * len(ones) + [sqrt(3 * len(more) / (4 * RHO))] * len(more)
    elif name == "b":
        more = _random_cliques(sizes, (3,), 30, (1e6, 1e7))
        sigmas = [50.0] * (len(ones) + len(more))
    elif name == "c":
        more = _two_tree(sizes, codes)
        sigmas = [15.0] * (len(ones) + len(more))
    else:
        more = _random_cliques(sizes, (2, 3), 73 - len(ones), (8e4, 1e5))
        sigmas = [50.0] * (len(ones) + len(more))
    cliques = ones + more
    rng = np.random.default_rng(len(cliques))
    arrays: dict[str, np.ndarray] = {}
    for i, (clique, sigma) in enumerate(zip(cliques, sigmas, strict=True)):
        truth = count(sizes, codes, clique)
        arrays[f"y{i}"] = np.rint(truth + rng.normal(0.0, sigma, truth.shape)).astype(np.int64)
    cells = tree_cells(sizes, cliques)
    problem = {"domain": sizes, "cliques": cliques, "sigmas": sigmas, "tree_cells": cells}
    path = folder / f"{name}.npz"
    np.savez(path, problem=np.array(json.dumps(problem)), **arrays)  # type: ignore[arg-type]
    return path


def load_problem(path: Path) -> tuple[Domain, list[Measurement]]:
    """The domain and the measurements of a problem's file."""
    from dpsynth.columns.domain import Domain
    from dpsynth.columns.measurement import Measurement

    with np.load(path, allow_pickle=False) as file:
        problem = json.loads(str(file["problem"]))
        pairs = enumerate(zip(problem["cliques"], problem["sigmas"], strict=True))
        measurements = [Measurement(tuple(c), file[f"y{i}"], "gaussian", sigma) for i, (c, sigma) in pairs]
    return Domain(problem["domain"]), measurements


def main() -> None:
    """Write the problems asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", nargs="+", choices="abcd", default=list("abcd"))
    arguments = parser.parse_args()
    for name in arguments.problems:
        path = build(name, arguments.folder)
        with np.load(path) as file:
            problem = json.loads(str(file["problem"]))
        print(f"{path}: {len(problem['cliques'])} measurements, {problem['tree_cells']} cells", flush=True)


if __name__ == "__main__":
    main()
