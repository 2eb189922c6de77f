"""Accountants side by side: the noise that each allows, and what the loss distribution of choices buys.

    python benchmarks/accountants.py [--epsilons 1 3]
    DPSYNTH_DATA=FOLDER python benchmarks/accountants.py --errors [--releases 5] [--methods mst aim]

The first form prints, for the shipped configuration of Adult, the noise scale of the marginals by strategy
and accountant. The second form makes releases of Adult with accountants gdp and pld, which draw the same
noise for counts and differ in how sharp choices are, and prints the mean error of three-way marginals.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from coverage import Table, adult, three_way

from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.plan.plan import make_plan
from dpsynth.strategy import STRATEGIES, strategy_of

ADULT = Path(__file__).resolve().parents[1] / "configs" / "adult.yaml"
BY_NOISE = {
    "gaussian": ("zcdp", "rdp", "gdp", "pld"),
    "laplace": ("sequential", "advanced", "optimal", "zcdp", "rdp"),
}


def scales(epsilons: Sequence[float]) -> None:
    """Print the noise scale of the marginals."""
    whole = yaml.safe_load(ADULT.read_text(encoding="utf-8"))
    for noise, accountants in BY_NOISE.items():
        print(f"\n{noise} noise, scale of the marginals\n{'':24}", *(f"{a:>11}" for a in accountants))
        for epsilon in epsilons:
            for method in STRATEGIES:
                shown = [f"{_scale(whole, noise, epsilon, method, a):>11}" for a in accountants]
                print(f"epsilon {epsilon:<4g} {method:<11}", *shown, flush=True)


def _scale(whole: Mapping[str, object], noise: str, epsilon: float, method: str, accountant: str) -> str:
    privacy = {"epsilon": epsilon, "delta": 1e-9, "noise": noise, "accountant": accountant}
    try:
        spec = from_mapping({**whole, "privacy": privacy, "structure": {"method": method}})
        return f"{make_plan(compiled(spec), strategy_of(method)).last_measured.scale:.4g}"
    except ConfigError:
        return "-"


def errors(folder: Path, methods: Sequence[str], epsilons: Sequence[float], releases: int) -> None:
    """Print the mean error of three-way marginals, with its standard error."""
    table = adult(folder)
    for method in methods:
        for epsilon in epsilons:
            for accountant in ("gdp", "pld"):
                found = [_error(table, method, epsilon, accountant) for _ in range(releases)]
                spread = np.std(found, ddof=1) / np.sqrt(releases)
                print(
                    f"{method}, epsilon {epsilon:g}, {accountant}: {np.mean(found):.5f} +- {spread:.5f}",
                    flush=True,
                )


def _error(table: Table, method: str, epsilon: float, accountant: str) -> float:
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "table.csv"
        table.frame.to_csv(path, index=False)
        config = {
            "release": "accountants",
            "source": {"path": str(path)},
            "privacy": {"epsilon": epsilon, "delta": 1e-9, "accountant": accountant},
            "ledger": {"url": f"sqlite:///{work}/ledger.db"},
            "columns": json.loads(json.dumps(table.columns)),
            "structure": {"method": method},
        }
        return three_way(table, pipeline.run(from_mapping(config), Request(Path(work) / "out")).synthetic)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--methods", nargs="*", default=["mst"])
    parser.add_argument("--releases", type=int, default=5)
    given = parser.parse_args()
    if given.errors:
        errors(Path(os.environ["DPSYNTH_DATA"]), given.methods, given.epsilons, given.releases)
    else:
        scales(given.epsilons)


if __name__ == "__main__":
    main()
