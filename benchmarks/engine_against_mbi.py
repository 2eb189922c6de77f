"""The engine against the peer library mbi: the same measurements in, side by side in one run.

    python benchmarks/engine_against_mbi.py [--mbi PYTHON] [--problems a b c d] [--runs 3]
        [--estimator MirrorDescent] [--iterations 1000] [--limit 900]

PYTHON is the interpreter of an environment that holds mbi (`pip install mbi`; never a dependency
of this project). Without it only our own engine runs. The problems are those of
engine_problems.py, made from the tables in the folder that DPSYNTH_DATA names.

Every fit is a fresh process, the systems take turns, and seconds are those of the whole process
from outside: interpreter, imports, compilation, fit, and writing the measured marginals. The
objective, sum of |P mu - y|^2 / (2 sigma^2) over the measurements, is computed here from those
marginals in float64, in the same way for both. Neither is told the number of rows; both totals
are printed. mbi computes in float32 unless JAX_ENABLE_X64=1 is set. Figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from engine_problems import build

FIT = Path(__file__).with_name("engine_fit.py")
COLUMNS = ("seconds", "fit seconds", "peak MB", "steps", "total", "objective")


def objective(problem: Path, result: Path) -> float:
    """The weighted squared error of fitted marginals."""
    with np.load(problem) as asked, np.load(result) as fitted:
        sigmas = json.loads(str(asked["problem"]))["sigmas"]
        gaps = ((fitted[f"m{i}"] - asked[f"y{i}"]) / sigma for i, sigma in enumerate(sigmas))
        return sum(0.5 * float(np.square(gap).sum()) for gap in gaps)


def fitted(command: list[str], problem: Path, result: Path, limit: float) -> dict[str, float] | None:
    """Figures of one fresh process; None if it took longer than the limit."""
    begun = perf_counter()
    try:
        done = subprocess.run(command, timeout=limit, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        return None
    seconds = perf_counter() - begun
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed\n{done.stderr}")
    with np.load(result) as file:
        report: dict[str, float] = json.loads(str(file["report"]))
    return report | {"seconds": seconds, "objective": objective(problem, result)}


def main() -> None:
    """Print one row a problem and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mbi", metavar="PYTHON")
    parser.add_argument("--problems", nargs="+", choices="abcd", default=list("abcd"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--estimator", default="MirrorDescent")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that one fit may take")
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    print(f"{'problem':8}{'cells':>10} {'system':8}" + "".join(f"{c:>13}" for c in COLUMNS) + "   ratio")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.problems:
            problem, result = build(name, Path(folder)), Path(folder) / "result.npz"
            with np.load(problem) as file:
                cells = json.loads(str(file["problem"]))["tree_cells"]
            files = [str(FIT), "dpsynth", str(problem), str(result)]
            commands = {"dpsynth": [sys.executable, *files]}
            if arguments.mbi:
                files[1] = "mbi"
                commands["mbi"] = [arguments.mbi, *files, arguments.estimator, str(arguments.iterations)]
            runs: dict[str, list[dict[str, float]]] = {system: [] for system in commands}
            for _ in range(arguments.runs):
                for system, command in commands.items():
                    figures = fitted(command, problem, result, arguments.limit)
                    if figures is not None:
                        runs[system].append(figures)
            ours = median(run["seconds"] for run in runs["dpsynth"]) if runs["dpsynth"] else float("nan")
            for system, figured in runs.items():
                head = f"{name:8}{cells:10d} {system:8}"
                if len(figured) < arguments.runs:
                    print(f"{head}  over {arguments.limit:.0f} s in {arguments.runs - len(figured)} runs")
                    continue
                middle = {c: median(run[c] for run in figured) for c in COLUMNS}
                row = "".join(f"{middle[c]:13.2f}" for c in COLUMNS)
                print(f"{head}{row}{middle['seconds'] / ours:8.1f}", flush=True)
    print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
