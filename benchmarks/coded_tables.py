"""Accuracy, time and memory of whole releases on coded tables, scored by an outside scorer.

    python benchmarks/coded_tables.py --scorer FOLDER [--tables adult-coded nltcs titanic]
        [--gzipped fire census-kdd] [--extra FOLDER ...] [--epsilon 0.1 1 10] [--structure auto mst]
        [--runs 5] [--laplace] [--missing]

FOLDER holds `make_split.py`, which writes the tables, `scorer.py` and `specs/`. A folder after --extra
is one more table: `train.csv`, `test.csv` and `domain.json`, all values codes from 0. One that `specs/`
doesn't know is scored without a prediction task, unless its target stands in TARGETS below. --gzipped
tables are read from the folder that DPSYNTH_DATA names. --laplace leaves delta out: pure epsilon-DP.
--missing doesn't declare that no cell is missing.

Each run is a fresh process of `dpsynth run --plain`, timed and measured from outside. Prints one row
a run, and in the end a table of means in Markdown, with the standard error of tvd3 over the runs.
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
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

DELTA = "1.0e-9"
SCORES = ("tvd1", "tvd2", "tvd3", "tstr_auc")
TARGETS = {"census-kdd": "income"}
FILES = Path(__file__).with_name("coded_files.py")


def config_text(table: Path, ledger: Path, privacy: str, structure: str, *, missing: bool = False) -> str:
    """A config that declares the coded domain; the keys of two sections as a flow mapping has them."""
    none = "" if missing else ", missing: false"
    domain: dict[str, int] = json.loads((table / "domain.json").read_text())
    columns = "\n".join(
        f"  {json.dumps(name)}: {{type: integer, min: 0, max: {size - 1}, bins: {size}{none}}}"
        for name, size in domain.items()
    )
    return (
        f"release: {table.name}\nsource: {{path: {table / 'train.csv'}}}\n"
        f"privacy: {{{privacy}, on_empty: go}}\nstructure: {{{structure}}}\n"
        f"ledger: {{url: 'sqlite:///{ledger}', dataset: {table.name}, "
        "cap: {epsilon: 1000000, delta: 0.1}}\n"
        f"columns:\n{columns}\n"
    )


def split(scorer: Path, tables: Sequence[str], folder: Path) -> None:
    """Have the scorer's tables written, each into a folder of its name."""
    if tables:
        command = [sys.executable, str(scorer / "make_split.py"), str(folder), *tables]
        subprocess.run(command, check=True, capture_output=True)


def measured(command: Sequence[str]) -> tuple[str, dict[str, float]]:
    """Run a command; its last line of output, seconds, seconds of all processors and peak megabytes.

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
    figures = {"seconds": time.perf_counter() - begun, "cpu": usage.ru_utime + usage.ru_stime, "MB": peak}
    return printed.strip().splitlines()[-1], figures


def scores(scorer: Path, table: Path, synthetic: Path, spec: Path | None) -> dict[str, float]:
    """What the scorer says of a synthetic table; without a spec no prediction is scored."""
    if spec is None:
        spec = synthetic.with_name("no-spec.json")
        target = TARGETS.get(table.name)
        spec.write_text(json.dumps({"target": target} if target else {}))
    command = [sys.executable, str(scorer / "scorer.py")]
    command += ["--real", str(table / "train.csv"), "--test", str(table / "test.csv")]
    command += ["--domain", str(table / "domain.json"), "--spec", str(spec), "--synth", str(synthetic)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    command = [sys.executable, str(FILES), "four-way"]
    command += [str(table / "train.csv"), str(synthetic), str(table / "domain.json")]
    four = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    kept = {key: found[key] for key in SCORES if found.get(key) is not None}
    return {"tvd4": four, **kept}


def releases(scorer: Path, table: Path, config: str, runs: int, work: Path) -> Iterator[dict[str, float]]:
    """Seconds, megabytes and scores of each run on one table, with a config as ``config_text`` gives it."""
    path = work / f"{table.name}.yaml"
    path.write_text(config)
    command = [sys.executable, "-m", "dpsynth", "run", str(path), "--plain", "--out", str(work / "out")]
    spec = scorer / "specs" / f"{table.name}.json"
    for _ in range(runs):
        bundle, figures = measured(command)
        synthetic = Path(bundle) / "public" / "synthetic.csv"
        yield figures | scores(scorer, table, synthetic, spec if spec.is_file() else None)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table in Markdown, its first columns words and the others numbers."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _means(rows: Sequence[dict[str, float]]) -> list[str]:
    """One line's numbers: means of the runs, and by how much tvd3 varies."""
    found = {key: mean(row[key] for row in rows) for key in rows[0]}
    error = stdev(row["tvd3"] for row in rows) / sqrt(len(rows)) if len(rows) > 1 else 0.0
    spread = f" ± {error:.4f}" if len(rows) > 1 else ""
    auc = f"{found['tstr_auc']:.4f}" if "tstr_auc" in found else ""
    distances = [f"{found[key]:.4f}" for key in ("tvd1", "tvd2", "tvd3")]
    distances[-1] += spread
    times = [f"{found[key]:.1f}" for key in ("seconds", "cpu")]
    return [*times, f"{found['MB']:.0f}", *distances, f"{found['tvd4']:.4f}", auc]


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser of what to score on which tables at which epsilon."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=["adult-coded", "nltcs", "titanic"])
    parser.add_argument("--gzipped", nargs="+", default=[])
    parser.add_argument("--extra", nargs="+", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    return parser


def tables_of(arguments: argparse.Namespace, work: Path) -> list[Path]:
    """The folders of the tables asked for, the scorer's own written into ``work``."""
    split(arguments.scorer, arguments.tables, work)
    if arguments.gzipped and "DPSYNTH_DATA" not in os.environ:
        sys.exit("--gzipped reads tables from the folder that the variable DPSYNTH_DATA names: set it.")
    for name in arguments.gzipped:
        command = [sys.executable, str(FILES), "split", os.environ["DPSYNTH_DATA"], name, str(work / name)]
        subprocess.run(command, check=True)
    names = [*arguments.tables, *arguments.gzipped]
    return [*(work / name for name in names), *(path.resolve() for path in arguments.extra)]


def main() -> None:
    """Print a table of runs for each case, then one of all means."""
    parser = options(__doc__)
    parser.add_argument("--structure", nargs="+", default=["auto"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--laplace", action="store_true", help="no delta: pure epsilon-DP")
    parser.add_argument("--missing", action="store_true", help="don't declare that no cell is missing")
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
            method = f"method: {structure}"
            config = config_text(table, work / "ledger.db", privacy, method, missing=arguments.missing)
            for row in releases(arguments.scorer, table, config, arguments.runs, work):
                if not rows:
                    print("".join(f"{key:>10}" for key in row))
                print("".join(f"{value:10.4f}" for value in row.values()), flush=True)
                rows.append(row)
            lines.append([structure, table.name, epsilon, *_means(rows)])
    print(f"\nMeans of {arguments.runs} runs, {'no delta' if arguments.laplace else f'delta {DELTA}'}.\n")
    head = ["method", "table", "ε", "seconds", "CPU s", "MB", "tvd1", "tvd2", "tvd3", "tvd4", "AUC"]
    print(markdown(head, lines, words=2))


if __name__ == "__main__":
    main()
