"""Nanoseconds a cell of exact discrete noise: our bulk draws against OpenDP's, in one run.

    python benchmarks/noise_draws.py [--cells 1000000] [--runs 5]

Prints one row a distribution and scale: the time to build the table of thresholds, once a scale, the
best of some bulk draws, and one draw of OpenDP's for as many cells.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from dpsynth.curator import samplers

SCALES = (1.0, 50.0, 1e4)


def seconds(work: object, *arguments: object) -> float:
    """How long one call takes."""
    begun = perf_counter()
    work(*arguments)  # type: ignore[operator]
    return perf_counter() - begun


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    values = np.zeros(arguments.cells, dtype=np.int64)
    peers = {"gaussian": samplers._gaussian, "laplace": samplers._laplace}
    print(f"{'noise':>10}{'scale':>8}{'table ms':>10}{'ns/cell':>10}{'OpenDP':>10}{'ratio':>8}")
    for kind, peer in peers.items():
        for scale in SCALES:
            table = seconds(samplers._table, kind, scale) * 1e3
            ours = min(seconds(samplers.add_in_bulk, kind, scale, values) for _ in range(arguments.runs))
            theirs = seconds(peer(scale), values.tolist())
            ours, theirs = ours / arguments.cells * 1e9, theirs / arguments.cells * 1e9
            print(
                f"{kind:>10}{scale:8g}{table:10.2f}{ours:10.1f}{theirs:10.0f}{theirs / ours:8.0f}", flush=True
            )


if __name__ == "__main__":
    main()
