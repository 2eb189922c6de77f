"""False words of answers to recipients' questions, where these are hardest: claims just near, or just not.

    python benchmarks/questions.py [--runs 500] [--epsilon 0.3 1 3] [--rows 2000] [--noise laplace]

Under each epsilon four questions are answered so many times, each by a release of its own of the table of
criteria.py, in this process: a count by groups, a share under a condition, a mean by groups, and coefficients
of a regression. Each answer has limits of the true figure t. Claims just not near t are judged, t (1 + w) and
t (1 - w) with w = 5 % and a little more, of which "holds" is false; and claims just near it, of which "does
not hold" is. Prints the share of false words, their standard error with an answer counting once, and how wide
limits are, by the figure.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from coded_tables import markdown
from criteria import A_LEDGER, NOISE, SIZES, table

import dpsynth
from dpsynth.bundle.recipient.query import answered
from dpsynth.columns.section import Value
from dpsynth.config import Spec, compiled, from_mapping
from dpsynth.wings.governance.verification.answering import config_of
from dpsynth.wings.governance.verification.papers import ODDS, outcome
from dpsynth.wings.governance.verification.regression import coefficients

WITHIN = 0.05
QUESTIONS = (
    "count by a, b",
    "share(d == 'v0') by b where x >= 30",
    "mean(x) by c",
    "coefficients of y ~ x + a",
)


def true_figures(real: pd.DataFrame) -> list[dict[tuple[str, ...], float]]:
    """The true answers to the questions, by group."""
    counts = real.groupby(["a", "b"]).size()
    some = real[real["x"] >= 30]
    shares = some.groupby("b")["d"].apply(lambda d: float((d == "v0").mean()))
    means = real.groupby("c")["x"].mean()
    terms = np.column_stack([np.ones(len(real)), real["x"], real["a"] == "v1"]).astype(float)
    slopes = pd.Series(np.linalg.lstsq(terms, real["y"])[0][1:], ["x", "(a == 'v1')"])
    return [
        {key if isinstance(key, tuple) else (key,): float(value) for key, value in found.items()}
        for found in (counts, shares, means, slopes)
    ]


def specs_of(
    real: pd.DataFrame, columns: dict[str, Value], epsilon: float, noise: str, text: str, folder: str
) -> tuple[Spec, Spec]:
    """The configuration asked about, and that of releases that answer; with a ledger of their own."""
    real.to_csv(f"{folder}/made.csv", index=False)
    values: dict[str, Value] = {
        "release": "made",
        "source": {"path": f"{folder}/made.csv"},
        "privacy": {"epsilon": 1, **NOISE[noise]},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "cap": {"epsilon": 1000000}},
        "columns": columns,
        "verification": {"epsilon": 100, "question": epsilon},
    }
    return from_mapping(values), from_mapping(config_of(from_mapping(values), values, text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=QUESTIONS)
    parser.add_argument("--noise", choices=[*NOISE], default="gaussian")
    chosen = parser.parse_args()
    real = table(chosen.rows)
    real["x"] = np.random.default_rng(2).integers(0, 60, len(real)) + 3 * real["a"].eq("v1")
    blur = np.random.default_rng(3).integers(0, 40, len(real))
    real["y"] = (real["x"] + 20 * real["a"].eq("v1") + blur).clip(0, 100)
    truth = dict(zip(QUESTIONS, true_figures(real), strict=True))
    columns: dict[str, Value] = {
        name: {"type": "category", "values": [f"v{i}" for i in range(size)], "missing": False}
        for name, size in SIZES.items()
    }
    columns["x"] = {"type": "integer", "min": 0, "max": 62, "missing": False}
    columns["y"] = {"type": "integer", "min": 0, "max": 100, "missing": False}
    lines = []
    for epsilon in chosen.epsilon:
        for text in chosen.questions:
            figures = truth[text]
            false, wide = defaultdict(list), []
            for start in range(0, chosen.runs, A_LEDGER):
                with tempfile.TemporaryDirectory() as folder:
                    about, spec = specs_of(real, columns, epsilon, chosen.noise, text, folder)
                    layout = compiled(about).layout
                    for _ in range(min(A_LEDGER, chosen.runs - start)):
                        made = dpsynth.release(spec, outputs=Path(folder, "out"), tell=lambda _: None)
                        wrong: dict[str, list[bool]] = defaultdict(list)
                        opened = dpsynth.open_bundle(made.folder)
                        for row in (coefficients(opened, text, layout) or answered(opened, text)).rows:
                            found, t = row.estimate, figures[row.labels]
                            ends = (found.low, found.high) if found.low == found.low else (None, None)
                            wide.append((found.high - found.low) / abs(t))
                            for side in (1 + WITHIN, 1 - WITHIN):
                                beyond = 1e-6 if side > 1 else -1e-6
                                claims = {"holds": t * (side + beyond), "does not hold": t * (side - beyond)}
                                for word, claimed in claims.items():
                                    wrong[word].append(outcome(claimed, *ends, WITHIN) == word)
                        for word, said in wrong.items():
                            false[word].append(float(np.mean(said)))
            for word, shares in false.items():
                spread = float(np.std(shares)) / sqrt(len(shares))
                figures = f"{np.mean(shares):.4f}", f"{spread:.4f}", f"{np.nanmedian(wide):.3f}"
                lines.append([f"{epsilon:g}", text.replace("|", ""), word, f"{ODDS:g}", *figures])
    head = ["ε", "question", "false word", "odds stated", "share", "standard error", "width of limits"]
    print(markdown(head, lines, 3))


if __name__ == "__main__":
    main()
