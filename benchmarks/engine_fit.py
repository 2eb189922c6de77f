"""One fit in a process of its own, by dpsynth or by mbi, for benchmarks that measure whole processes.

    python benchmarks/engine_fit.py dpsynth PROBLEM.npz RESULT.npz
    PEER/bin/python benchmarks/engine_fit.py mbi PROBLEM.npz RESULT.npz ESTIMATOR ITERATIONS

RESULT.npz holds the fitted marginals of the measured cliques as `m0`, `m1`, ... and `report`, a
JSON text of seconds, steps, total and peak memory. Either library is imported only where it
is asked for, and gets the same numbers: sums and objectives are taken by whoever reads the result.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

Report = dict[str, float]


def peak_megabytes() -> float:
    """Peak resident memory of this process.

    Linux's own figure for a finished child counts the memory of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) / 1e3
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def marginal(table: np.ndarray, columns: Sequence[str], clique: Sequence[str]) -> np.ndarray:
    """A table summed to some of its columns, in their order."""
    letters = {column: chr(ord("a") + i) for i, column in enumerate(columns)}
    formula = f"{''.join(letters.values())}->{''.join(letters[c] for c in clique)}"
    return np.asarray(np.einsum(formula, table))


def fit_with_dpsynth(path: Path) -> tuple[list[np.ndarray], Report]:
    """Measured marginals of our fit, everything at its default."""
    from engine_problems import load_problem

    from dpsynth.model import estimate

    domain, measurements = load_problem(path)
    begun = perf_counter()
    fit = estimate(domain, measurements)
    seconds = perf_counter() - begun
    found = [fit.model.marginal(m.clique) for m in measurements]
    return found, {"fit seconds": seconds, "steps": fit.iterations, "total": fit.model.total}


def fit_with_mbi(path: Path, estimator: str, iterations: int) -> tuple[list[np.ndarray], Report]:
    """Measured marginals of a fit by one of mbi's estimators."""
    import jax  # type: ignore[import-not-found]
    from mbi import Domain, LinearMeasurement, estimation  # type: ignore[import-not-found]

    with np.load(path, allow_pickle=False) as file:
        problem = json.loads(str(file["problem"]))
        values = [file[f"y{i}"] for i in range(len(problem["cliques"]))]
    cliques = [tuple(c) for c in problem["cliques"]]
    domain = Domain(list(problem["domain"]), list(problem["domain"].values()))
    triples = zip(values, cliques, problem["sigmas"], strict=True)
    measurements = [LinearMeasurement(y.ravel().astype(np.float64), c, s) for y, c, s in triples]
    begun = perf_counter()
    model = getattr(estimation, estimator)().estimate(domain, measurements, iters=iterations)
    jax.block_until_ready(model.marginals)
    seconds = perf_counter() - begun
    tables = {tuple(c): np.asarray(model.marginals[c].values, dtype=np.float64) for c in model.cliques}
    found = []
    for clique in cliques:
        home = next(c for c in tables if set(clique) <= set(c))
        axes = list(model.marginals[home].domain.attributes)
        found.append(marginal(tables[home], axes, clique))
    return found, {"fit seconds": seconds, "steps": iterations, "total": float(model.total)}


def main() -> None:
    """Fit and write the result."""
    system, problem, result, *options = sys.argv[1:]
    if system == "mbi":
        found, report = fit_with_mbi(Path(problem), options[0], int(options[1]))
    else:
        found, report = fit_with_dpsynth(Path(problem))
    arrays = {f"m{i}": values for i, values in enumerate(found)}
    report["peak MB"] = peak_megabytes()
    np.savez(result, report=np.array(json.dumps(report)), **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
