"""Accountants side by side: the noise that each allows.

    python benchmarks/accountants.py [--epsilons 1 3]

It prints the noise scale of the marginals by strategy and accountant, for the shipped configuration of Adult.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import make_plan
from dpsynth.strategy import strategy_of
from dpsynth.testing import STRATEGIES

ADULT = Path(__file__).resolve().parents[1] / "configs" / "adult.yaml"
BY_NOISE = {
    "gaussian": ("zcdp", "gdp"),
    "laplace": ("sequential", "zcdp"),
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


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 3.0])
    scales(parser.parse_args().epsilons)


if __name__ == "__main__":
    main()
