"""Accuracy, time and memory of whole releases on coded tables, scored by an outside scorer.

    python benchmarks/coded_tables.py --scorer FOLDER [--tables adult-coded nltcs titanic]
        [--extra FOLDER ...] [--epsilon 0.1 1 10] [--structure auto mst] [--runs 5] [--laplace]

FOLDER holds `make_split.py`, which writes the tables, `scorer.py` and `specs/`. A folder after --extra
is one more table: `train.csv`, `test.csv` and `domain.json`, all values codes from 0. One that `specs/`
doesn't know is scored without a prediction task. --laplace leaves delta out: pure epsilon-DP.

Each run is a fresh process of `dpsynth run --plain`, timed and measured from outside. Prints one row
a run, and in the end a table of means in Markdown, with the standard deviation of tvd3 over the runs.
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
from statistics import mean, stdev

DELTA = "1.0e-9"
SCORES = ("tvd1", "tvd2", "tvd3", "tstr_auc")


def config_text(table: Path, ledger: Path, privacy: str, structure: str) -> str:
    """A config that declares the coded domain; the keys of two sections as a flow mapping has them."""
    domain: dict[str, int] = json.loads((table / "domain.json").read_text())
    columns = "\n".join(
        f"  {json.dumps(name)}: {{type: integer, min: 0, max: {size - 1}, bins: {size}, missing: false}}"
        for name, size in domain.items()
    )
    return (
        f"release: {table.name}\nsource: {{path: {table / 'train.csv'}}}\n"
        f"privacy: {{{privacy}}}\nstructure: {{{structure}}}\n"
        f"ledger: {{url: 'sqlite:///{ledger}', cap: {{epsilon: 1000000, delta: 0.1}}}}\n"
        f"columns:\n{columns}\n"
    )


def split(scorer: Path, tables: Sequence[str], folder: Path) -> None:
    """Have the scorer's tables written, each into a folder of its name."""
    if tables:
        command = [sys.executable, str(scorer / "make_split.py"), str(folder), *tables]
        subprocess.run(command, check=True, capture_output=True)


def measured(command: Sequence[str]) -> tuple[str, float, float]:
    """Run a command; its last line of output, wall seconds and peak megabytes.

    Where the system counts what a process had before it became the command, the peak is at least
    this process's own: a caller has to stay small.
    """
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


def scores(scorer: Path, table: Path, synthetic: Path, spec: Path | None) -> dict[str, float]:
    """What the scorer says of a synthetic table; without a spec no prediction is scored."""
    if spec is None:
        spec = synthetic.with_name("no-spec.json")
        spec.write_text("{}")
    command = [sys.executable, str(scorer / "scorer.py")]
    command += ["--real", str(table / "train.csv"), "--test", str(table / "test.csv")]
    command += ["--domain", str(table / "domain.json"), "--spec", str(spec), "--synth", str(synthetic)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {key: found[key] for key in SCORES if found.get(key) is not None}


def releases(
    scorer: Path, table: Path, privacy: str, structure: str, runs: int, work: Path
) -> Iterator[dict[str, float]]:
    """Seconds, megabytes and scores of each run on one table."""
    config = work / f"{table.name}.yaml"
    config.write_text(config_text(table, work / "ledger.db", privacy, f"method: {structure}"))
    command = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain", "--out", str(work / "out")]
    spec = scorer / "specs" / f"{table.name}.json"
    for _ in range(runs):
        bundle, seconds, peak = measured(command)
        synthetic = Path(bundle) / "public" / "synthetic.csv"
        found = scores(scorer, table, synthetic, spec if spec.is_file() else None)
        yield {"seconds": seconds, "MB": peak} | found


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table in Markdown, its first columns words and the others numbers."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _means(rows: Sequence[dict[str, float]]) -> list[str]:
    """One line's numbers: means of the runs, and by how much tvd3 varies."""
    found = {key: mean(row[key] for row in rows) for key in rows[0]}
    spread = f" ± {stdev(row['tvd3'] for row in rows):.4f}" if len(rows) > 1 else ""
    auc = f"{found['tstr_auc']:.4f}" if "tstr_auc" in found else ""
    distances = [f"{found[key]:.4f}" for key in ("tvd1", "tvd2", "tvd3")]
    distances[-1] += spread
    return [f"{found['seconds']:.2f}", f"{found['MB']:.0f}", *distances, auc]


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser of what to score on which tables at which epsilon."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=["adult-coded", "nltcs", "titanic"])
    parser.add_argument("--extra", nargs="+", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    return parser


def tables_of(arguments: argparse.Namespace, work: Path) -> list[Path]:
    """The folders of the tables asked for, the scorer's own written into ``work``."""
    split(arguments.scorer, arguments.tables, work)
    return [*(work / name for name in arguments.tables), *(path.resolve() for path in arguments.extra)]


def main() -> None:
    """Print a table of runs for each case, then one of all means."""
    parser = options(__doc__)
    parser.add_argument("--structure", nargs="+", default=["auto"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--laplace", action="store_true", help="no delta: pure epsilon-DP")
    arguments = parser.parse_args()
    delta = "" if arguments.laplace else f", delta: {DELTA}"
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tables = tables_of(arguments, work)
        cases = [(t, e, s) for t in tables for e in arguments.epsilon for s in arguments.structure]
        for table, epsilon, structure in cases:
            privacy = f"epsilon: {epsilon}{delta}"
            print(f"{table.name}, {structure}, {privacy}")
            rows: list[dict[str, float]] = []
            for row in releases(arguments.scorer, table, privacy, structure, arguments.runs, work):
                if not rows:
                    print("".join(f"{key:>10}" for key in row))
                print("".join(f"{value:10.4f}" for value in row.values()), flush=True)
                rows.append(row)
            lines.append([structure, table.name, epsilon, *_means(rows)])
    print(f"\nMeans of {arguments.runs} runs, {'no delta' if arguments.laplace else f'delta {DELTA}'}.\n")
    print(markdown(["method", "table", "ε", "seconds", "MB", "tvd1", "tvd2", "tvd3", "AUC"], lines, words=2))


if __name__ == "__main__":
    main()
