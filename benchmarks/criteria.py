"""False words of acceptance criteria, where these are hardest: allowed is just what the error is not.

    python benchmarks/criteria.py [--runs 500] [--epsilon 0.3 1 3] [--rows 2000]
        [--noise gaussian laplace]

A made table of five columns is released so many times under each epsilon, in this process. After each release
the true errors are counted: the share of rows that would have to change, of one column, of each pair, of four
columns together, and the mean over pairs. Then criteria are judged whose `at_most` is just below the true
error, so that "met" is false, and just above it, so that "not met" is. Of a classifier, by accuracy and by
balanced accuracy, its `at_least` is just above and just below its true score. Nobody could declare such
criteria beforehand: any other is judged wrongly less often. Prints the share of false words with its
standard error, for two confidences, beside the odds that are stated; and how far limits lie from the error.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from coded_tables import markdown

import dpsynth
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Domain
from dpsynth.columns.finished_table import CodedRows, FinishedTable
from dpsynth.config import compiled, from_mapping
from dpsynth.statistics.verdict import Finished
from dpsynth.wings.governance.acceptance.judging import judged, reach_of
from dpsynth.wings.governance.acceptance.keys import ErrorOf
from dpsynth.wings.governance.acceptance.training import trained

SIZES = {"a": 2, "b": 4, "c": 6, "d": 3, "e": 5}
FOUR = ["a", "b", "d", "e"]
CONFIDENCES = (0.95, 0.8)
A_LEDGER = 25
"""Releases that share a ledger: each reads the whole of it."""
SCORES = ("accuracy", "balanced_accuracy")
NOISE = {"gaussian": {"delta": 1e-6}, "laplace": {"noise": "laplace"}}


def table(rows: int) -> pd.DataFrame:
    """Columns of which each depends on the one before."""
    rng = np.random.default_rng(1)
    codes = {"a": rng.integers(0, 2, rows)}
    for before, (name, size) in zip(SIZES, list(SIZES.items())[1:], strict=False):
        noise = rng.integers(0, size, rows)
        codes[name] = np.where(rng.random(rows) < 0.5, codes[before] % size, noise)
    return pd.DataFrame({name: [f"v{code}" for code in found] for name, found in codes.items()})


def error(real: pd.DataFrame, synthetic: pd.DataFrame, columns: list[str]) -> float:
    """The share of rows that would have to change."""
    one, two = (frame.value_counts(columns, normalize=True) for frame in (real, synthetic))
    return float(one.sub(two, fill_value=0.0).abs().sum()) / 2


def claims_of(
    errors: Sequence[tuple[object, float]], scores: Mapping[str, float]
) -> Iterator[tuple[dict[str, object], str, str]]:
    """Criteria that are just off, each with the word that is false of it, and its kind."""
    for confidence in CONFIDENCES:
        for of, off in errors:
            for word, at_most in (("met", max(off - 1e-6, 0.0)), ("not met", min(off + 1e-6, 1.0))):
                yield {"error_of": of, "at_most": at_most, "confidence": confidence}, word, ""
        for score, true in scores.items():
            for word, least in (("met", true + 1e-6), ("not met", true - 1e-6)):
                one = {"classifier": "b", "score": score, "at_least": least, "confidence": confidence}
                yield one, word, f", {score.replace('_', ' ')}"


def coded_rows(columns: Sequence[Column], frame: pd.DataFrame) -> CodedRows:
    rows = CodedRows()
    rows.add({c.name: c.encode(pa.array(frame[c.name], pa.string())).astype(c.code_type) for c in columns})
    return rows


def true_scores(real: CodedRows, synthetic: CodedRows, columns: Sequence[Column]) -> dict[str, float]:
    """The scores among real rows of the classifiers that a release trains."""
    codes, found = real.whole(), {}
    for score in SCORES:
        right = trained(FinishedTable(synthetic, 1), columns, "b", score.replace("_", " ")).right(codes)
        each = [right[codes["b"] == code].mean() for code in range(SIZES["b"])]
        found[score] = float(np.mean(each) if score == "balanced_accuracy" else right.mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--noise", nargs="+", choices=[*NOISE], default=[*NOISE])
    chosen = parser.parse_args()
    real, domain = table(chosen.rows), Domain(dict(SIZES))
    columns = {
        name: {"type": "category", "values": [f"v{i}" for i in range(size)], "missing": False}
        for name, size in SIZES.items()
    }
    pairs = [list(pair) for pair in combinations(SIZES, 2)]
    lines: list[list[str]] = []
    for noise, keys in ((noise, NOISE[noise]) for noise in chosen.noise):
        for epsilon in chosen.epsilon:
            false: dict[tuple[float, str], list[bool]] = defaultdict(list)
            reach = 0.0
            for start in range(0, chosen.runs, A_LEDGER):
                with tempfile.TemporaryDirectory() as folder:
                    spec = from_mapping(
                        {
                            "release": "made",
                            "source": {"path": f"{folder}/made.csv"},
                            "privacy": {"epsilon": epsilon, **keys, "on_empty": "go"},
                            "ledger": {
                                "url": f"sqlite:///{folder}/ledger.db",
                                "cap": {"epsilon": 1e6, "delta": 0.5},
                            },
                            "columns": columns,
                            "accept": {
                                "on_fail": "publish",
                                "criteria": [
                                    *(
                                        {"classifier": "b", "score": score, "at_least": 0.5}
                                        for score in SCORES
                                    ),
                                    {"error_of": FOUR, "at_most": 0.5},
                                    {"error_of": "c", "at_most": 0.5},
                                ],
                            },
                        }
                    )
                    real.to_csv(f"{folder}/made.csv", index=False)
                    coded = compiled(spec).columns
                    for _ in range(min(A_LEDGER, chosen.runs - start)):
                        made = dpsynth.release(spec, outputs=Path(folder, "out"), tell=lambda _: None)
                        synthetic = made.synthetic.astype(str)
                        true = {tuple(c): error(real, synthetic, c) for c in (["c"], FOUR, *pairs)}
                        asked: list[tuple[object, float]] = [(list(c), e) for c, e in true.items()]
                        asked.append(("pairs", float(np.mean([true[tuple(c)] for c in pairs]))))
                        finished = Finished(made.verdict, made.exam, domain, (), (), lambda: iter(()))
                        scores = true_scores(coded_rows(coded, real), coded_rows(coded, synthetic), coded)
                        claims = [*claims_of(asked, scores)]
                        outcomes = judged([criterion for criterion, _, _ in claims], finished)
                        for (criterion, word, kind), said in zip(claims, outcomes, strict=True):
                            false[float(str(criterion["confidence"])), f"{word}{kind}"].append(
                                said.outcome == word
                            )
                        assert made.exam is not None and made.exam.distances is not None
                        answers = made.exam.distances
                        reach = reach_of(
                            ErrorOf(error_of="c", at_most=0.5),
                            answers.noise,
                            answers.scale,
                            made.exam.rows,
                            1,
                        )
            for (confidence, word), found in false.items():
                share = float(np.mean(found))
                # The words of one release hang together, so a release counts as one.
                spread = sqrt(share * (1 - share) / chosen.runs)
                lines.append(
                    [noise, f"{epsilon:g}", f"{1 - confidence:.2f}", word, f"{share:.4f}", f"{spread:.4f}"]
                )
            lines.append([noise, f"{epsilon:g}", "", "limits lie off by", f"{reach:.4f}", ""])
    print(markdown(["noise", "ε", "odds stated", "false word", "share", "standard error"], lines))


if __name__ == "__main__":
    main()
