"""Judges from outside the project, of first releases of raw tables.

    python -m venv /tmp/judges && /tmp/judges/bin/pip install sdmetrics anonymeter
    python -m venv /tmp/syntheval && /tmp/syntheval/bin/pip install syntheval
    DPSYNTH_DATA=FOLDER python benchmarks/judges.py --python /tmp/judges/bin/python /tmp/syntheval/bin/python
        [--tables adult loans flights] [--epsilon 1 3] [--runs 3] [--judges sdmetrics ...] [--parts]
        [--rows N] [--proposals] [--keep FOLDER]

The judges are no dependencies of the project, and not all of them agree on a numpy. Each runs with the first
interpreter that has it, and is left out with a sentence where none has.

Each table is released as `first_contact.py` does: `dpsynth init --look`, every guess accepted. A tenth of the
rows, at most 2000, isn't released: the judges of privacy ask how much better they guess released rows than
these. Two more tables are judged: a bootstrap of the released rows (the best that a judge of likeness can
say, and no privacy), and their columns, each shuffled by itself. The package mbi has an engine and no MST, so
that peer isn't among them. Columns that the release lacks, such as
identifiers, are judged in none of them. Columns of more than three numbers are numbers to the judges, dates
are dates, all others are categories; ?, NA and an empty cell are missing. Syntheval, whose time grows as the
square of the rows, sees 2000 of them.

SDMetrics' quality is the mean of two scores: of the columns, and of the pairs whose real correlation is above
.5 (numbers), or whose Cramer's V is above .3 (with a category; numbers are cut into ten intervals between the
ends that each table has itself, so that one far value moves all of them: the quality "with the same ends" is
of numbers that were cut off at the real ends). --proposals adds releases with the rules that `dpsynth check`
proposes. --parts prints what costs points:
each column's shape, and the pairs, from the worst.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import cast

import pandas as pd
from coded_tables import markdown
from first_contact import (
    _MARKERS,
    _is_numeric,
    _plain,
    brought,
    looked_at,
    proposed,
    read_texts,
    run_on,
    written,
)
from judge_files import ABSENT

JUDGE = Path(__file__).resolve().with_name("judge_files.py")
JUDGES = ("sdmetrics", "syntheval", "anonymeter")
SECRETS = {"adult": "income", "loans": "homeownership", "flights": "carrier"}
_FEW = 3
"""Values, with the blank, up to which a column of numbers is one of categories."""
_SHOWN = 20
Figures = dict[str, object]


def split(table: Path) -> pd.DataFrame:
    """Take the control rows out of a file, and return them as texts."""
    head, *lines = table.read_bytes().splitlines(keepends=True)
    held = set(random.Random(2).sample(range(len(lines)), min(len(lines) // 10, 2000)))
    control = table.with_suffix(".control")
    control.write_bytes(head + b"".join(line for i, line in enumerate(lines) if i in held))
    table.write_bytes(head + b"".join(line for i, line in enumerate(lines) if i not in held))
    return read_texts(control)


def prepared(folder: Path, tables: Mapping[str, pd.DataFrame], values: Figures, secret: str) -> None:
    """Write tables as judges read them, with the kinds of their columns."""
    real = tables["real"]
    declared = cast("dict[str, dict[str, str]]", values["columns"])
    kinds = {}
    numbers = {name for name in declared if _is_numeric(real[name])}
    for name, column in declared.items():
        if column["type"] in {"date", "datetime"}:
            kinds[name] = "datetime"
        elif column["type"] != "identifier":
            few = _plain(real[name]).nunique() <= _FEW
            kinds[name] = "numerical" if name in numbers and not few else "categorical"
    for told, table in tables.items():
        columns = {}
        for name, kind in kinds.items():
            texts = table[name].where(~table[name].isin(_MARKERS), "")
            texts = _plain(texts) if name in numbers else texts
            if kind == "datetime":
                form = declared[name].get("format", "ISO8601")
                moments = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
                texts = moments.dt.strftime("%Y-%m-%dT%H:%M:%S").fillna("")
            columns[name] = texts
        pd.DataFrame(columns).to_csv(folder / f"{told}.csv", index=False)
    (folder / "facts.json").write_text(json.dumps({"kinds": kinds, "secret": secret}))


def judged(judge: str, folder: Path, pythons: Sequence[str]) -> Figures | None:
    """The figures of a judge; None if no interpreter has it."""
    for python in pythons:
        command = [python, str(JUDGE), judge, "."]
        # Syntheval leaves pictures where it runs.
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if done.returncode == 0:
            return cast(Figures, json.loads(done.stdout))
        if done.returncode != ABSENT:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return None


def rivals(
    table: Path, epsilons: Sequence[float], runs: int, *, proposals: bool
) -> Iterator[tuple[str, pd.DataFrame, Figures]]:
    """The tables to be judged, each with its name and the configuration."""
    real = read_texts(table)
    values = looked_at(table)
    ways: dict[str, Figures] = {"": values}
    if proposals:
        rules = proposed(written(values, table.with_suffix(".yaml")))
        ways[", with rules"] = values | {"constraints": rules}
    yield "bootstrap", real.sample(len(real), replace=True, random_state=1), values
    shuffled = {c: real[c].sample(frac=1, random_state=i).array for i, c in enumerate(real)}
    yield "independent", pd.DataFrame(shuffled), values
    for _ in range(runs):
        for epsilon, (name, way) in product(epsilons, ways.items()):
            privacy = cast("dict[str, object]", values["privacy"]) | {"epsilon": epsilon}
            with tempfile.TemporaryDirectory(dir=table.parent) as work:
                config = written(way | {"privacy": privacy}, table.with_suffix(".yaml"))
                bundle, _ = run_on(config, Path(work))
                yield f"ε = {epsilon:g}{name}", read_texts(bundle / "public" / "synthetic.csv"), values


def parts(found: Sequence[Figures]) -> Iterator[str]:
    """Losses of SDMetrics' quality by column and pair, the mean of some runs, the worst first."""
    shapes = pd.DataFrame([cast("dict[str, float]", one["columns"]) for one in found]).mean()
    trends = pd.DataFrame(
        [trend for one in found for trend in cast("list[list[object]]", one["trends"])],
        columns=["one", "two", "metric", "score"],
    )
    pairs = trends.groupby(["one", "two", "metric"])["score"].mean()
    sides = pd.concat([trends.assign(side=trends[end]) for end in ("one", "two")])
    for column, score in shapes.sort_values().head(_SHOWN).items():
        yield f"    column {column}: {score:.3f}"
    for column, score in sides.groupby("side")["score"].mean().sort_values().items():
        yield f"    pairs of {column}: {score:.3f}"
    for names, score in pairs.sort_values().head(_SHOWN).items():
        yield f"    pair {', '.join(cast('tuple[str, ...]', names))}: {score:.3f}"


def cells(judge: str, found: Sequence[Figures]) -> list[str]:
    """A row's figures: means of the runs, with the standard deviation."""
    told = []
    for key, first in found[0].items():
        if isinstance(first, float):
            each = [cast(float, one[key]) for one in found if key in one]
            spread = f" ± {stdev(each):.3f}" if len(each) > 1 else ""
            told.append(f"{key} {mean(each):.3f}{spread}")
    return [judge, "; ".join(told)]


def main() -> None:
    """Print a line for each table, rival and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--tables", nargs="+", default=list(SECRETS), choices=list(SECRETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--judges", nargs="+", default=list(JUDGES), choices=JUDGES)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--proposals", action="store_true", help="also with the rules that check proposes")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the tables are left")
    given = parser.parse_args()
    rows = []
    for name in given.tables:
        with tempfile.TemporaryDirectory() as work:
            table = brought(name, Path(work), given.rows)
            control = split(table)
            real = read_texts(table)
            found: dict[tuple[str, str], list[Figures]] = {}
            counted: dict[str, int] = {}
            for rival, synthetic, values in rivals(
                table, given.epsilon, given.runs, proposals=given.proposals
            ):
                run = counted[rival] = counted.get(rival, 0) + 1
                folder = (given.keep or Path(work)) / f"{name}-{rival.replace(' ', '')}-{run}"
                folder.mkdir(parents=True, exist_ok=True)
                tables = {"real": real, "synthetic": synthetic, "control": control}
                prepared(folder, tables, values, SECRETS[name])
                for judge in given.judges:
                    figures = judged(judge, folder, given.python)
                    if figures is not None:
                        found.setdefault((rival, judge), []).append(figures)
            for (rival, judge), some in found.items():
                rows.append([name, rival, *cells(judge, some)])
                print(" | ".join(rows[-1]), flush=True)
                if given.parts and judge == "sdmetrics":
                    print("\n".join(parts(some)), flush=True)
            judges_found = {judge for _, judge in found}
            for judge in given.judges:
                if judge not in judges_found:
                    print(f"{judge} was left out: no interpreter that --python names has it.")
    print("\n" + markdown(["table", "rows", "judge", "figures"], rows, words=4))


if __name__ == "__main__":
    main()
