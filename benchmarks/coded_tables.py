"""Accuracy, time and memory of whole releases on coded tables, scored by an outside scorer.

    python benchmarks/coded_tables.py --scorer FOLDER [--tables adult-coded nltcs titanic]
                                      [--epsilon 1] [--runs 5] [--structure mst]

FOLDER holds `make_split.py`, `scorer.py` and `specs/`; the tables come from the folder that
the environment variable DPSYNTH_DATA names. Each run is a fresh process of
`dpsynth run --plain`, timed and measured from outside. Prints one row a run and a mean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

DELTA = "1.0e-9"
SCORES = ("tvd1", "tvd2", "tvd3", "tstr_auc")


def config_text(table: Path, epsilon: str, structure: str, ledger: Path) -> str:
    """A config that declares the coded domain and nothing else."""
    domain: dict[str, int] = json.loads((table / "domain.json").read_text())
    columns = "\n".join(
        f"  {json.dumps(name)}: {{type: integer, min: 0, max: {size - 1}, missing: false}}"
        for name, size in domain.items()
    )
    return (
        f"release: {table.name}\nsource: {{path: {table / 'train.csv'}}}\n"
        f"privacy: {{epsilon: {epsilon}, delta: {DELTA}}}\nstructure: {{method: {structure}}}\n"
        f"ledger: {{url: 'sqlite:///{ledger}', cap: {{epsilon: 1000000, delta: 0.1}}}}\n"
        f"columns:\n{columns}\n"
    )


def measured(command: Sequence[str]) -> tuple[str, float, float]:
    """Run a command; its last line of output, wall seconds and peak megabytes."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    # Linux counts in kilobytes, macOS in bytes.
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return printed.strip().splitlines()[-1], time.perf_counter() - begun, peak


def runs(table: Path, arguments: argparse.Namespace, work: Path) -> Iterator[dict[str, float]]:
    """Scores, seconds and megabytes of each run on one table."""
    config = work / f"{table.name}.yaml"
    config.write_text(config_text(table, arguments.epsilon, arguments.structure, work / "ledger.db"))
    release = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain", "--out", str(work / "out")]
    for _ in range(arguments.runs):
        bundle, seconds, peak = measured(release)
        score = [sys.executable, str(arguments.scorer / "scorer.py")]
        score += ["--real", str(table / "train.csv"), "--test", str(table / "test.csv")]
        score += ["--domain", str(table / "domain.json")]
        score += ["--spec", str(arguments.scorer / "specs" / f"{table.name}.json")]
        score += ["--synth", f"{bundle}/public/synthetic.csv"]
        found = json.loads(subprocess.run(score, capture_output=True, text=True, check=True).stdout)
        yield {"seconds": seconds, "MB": peak} | {k: found[k] for k in SCORES if found.get(k) is not None}


def main() -> None:
    """Print a table of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["adult-coded", "nltcs", "titanic"])
    parser.add_argument("--epsilon", default="1.0")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--structure", default="mst")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        split = [sys.executable, str(arguments.scorer / "make_split.py"), folder, *arguments.tables]
        subprocess.run(split, check=True, capture_output=True)
        for name in arguments.tables:
            rows = list(runs(work / name, arguments, work))
            print(f"{name}, epsilon {arguments.epsilon}, delta {DELTA}, {arguments.structure}")
            print("".join(f"{key:>10}" for key in rows[0]))
            for row in rows:
                print("".join(f"{value:10.4f}" for value in row.values()))
            mean = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
            print("".join(f"{value:10.4f}" for value in mean.values()), " mean", flush=True)


if __name__ == "__main__":
    main()
