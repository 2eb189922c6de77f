"""Accuracy of the local model on NLTCS and Adult, beside the central model: bias, coverage, three-way error.

Every respondent of a table randomises her row; the reports are aggregated to a release. For each ε a person
a line tells, over all collections, of all cells of single columns: the largest mean error in its standard
errors, the squared errors relative to the variances stated, and the coverage of 95 % intervals. Then the mean
total variation distance of three-way marginals from the respondents' own: of some synthetic tables, of tables
with the same single columns and no pairs, of independent columns without noise, and of a central release with
that ε.

    DPSYNTH_DATA=... python -m benchmarks.local_model nltcs --runs 500 --central
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.config import Spec, compiled
from dpsynth.pipeline.generating import fit_model, row_source, spread_over_values
from dpsynth.pipeline.measuring import Measured
from dpsynth.strategy.strategy import Selection
from dpsynth.wings.local.aggregating import Aggregated, hold
from dpsynth.wings.local.contract import Contract, contract_of
from dpsynth.wings.local.estimates import local_answers
from dpsynth.wings.local.randomisers import dice
from dpsynth.wings.local.reports import Tally

FILES = {"nltcs": ("nltcs.csv", "nltcs-domain.json"), "adult": ("adult-coded.csv", "adult-domain.json")}
TRIPLES = 60


def table_of(name: str) -> tuple[pd.DataFrame, dict[str, dict[str, object]]]:
    """The coded table, and its columns."""
    folder = Path(os.environ["DPSYNTH_DATA"])
    table, domain = FILES[name]
    sizes = json.loads((folder / domain).read_text())
    columns = {
        c: {"type": "integer", "min": 0, "max": n - 1, "bins": n, "missing": False} for c, n in sizes.items()
    }
    return pd.read_csv(folder / table)[list(columns)], columns


def spec_of(name: str, columns: dict[str, dict[str, object]], epsilon: float, rows: int) -> Spec:
    """The config of a collection."""
    return Spec.from_dict(
        {
            "release": name,
            "trust": "local",
            "privacy": {"epsilon": epsilon},
            "local": {"respondents": rows},
            "columns": columns,
        }
    )


def collected(contract: Contract, frame: pd.DataFrame) -> Aggregated:
    """All rows of a table, each randomised as its respondent would, and aggregated.

    Files and the memory of a respondent's side are left out: they change no number.
    """
    rows = len(frame)
    tally = Tally(tuple([] for _ in contract.questions), rows)
    drawn = dice(len(contract.questions), rows) if contract.one else None
    for number, question in enumerate(contract.questions):
        shape = contract.domain.shape(question.columns)
        cells = np.ravel_multi_index([frame[c].to_numpy() for c in question.columns], shape)
        asked = cells if drawn is None else cells[drawn == number]
        tally.answers[number].extend(question.randomiser.randomise(asked))
    return Aggregated(contract, tally, local_answers(contract, tally))


def errors_of(aggregated: Aggregated, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The error of each cell of each single column, and its standard error as stated."""
    errors, stated = [], []
    for column, size in aggregated.contract.domain.sizes.items():
        truth = np.bincount(frame[column], minlength=size)
        errors.append(aggregated.answers.marginal((column,)) - truth)
        stated.append(np.sqrt(aggregated.answers.cell_variances((column,))))
    return np.concatenate(errors), np.concatenate(stated)


def three_way(synthetic: pd.DataFrame, frame: pd.DataFrame, sizes: dict[str, int]) -> float:
    """Mean total variation distance of three-way marginals, over a fixed choice of triples."""
    triples = list(combinations(sizes, 3))
    chosen = np.random.default_rng(0).permutation(len(triples))[:TRIPLES]
    distances = []
    for t in chosen:
        names = list(triples[t])
        shape = tuple(sizes[c] for c in names)
        cells = int(np.prod(shape))
        shares = [
            np.bincount(np.ravel_multi_index([x[c].to_numpy() for c in names], shape), minlength=cells)
            / len(x)
            for x in (synthetic, frame)
        ]
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(distances))


def synthetic_of(aggregated: Aggregated, measured: Measured) -> pd.DataFrame:
    """The synthetic table of a collection."""
    compiled, layout = aggregated.compiled, aggregated.compiled.layout
    fit = fit_model(compiled, layout, aggregated.max_cells, measured)
    fitted = spread_over_values(compiled, layout, measured, fit)
    source = row_source(compiled, fitted)
    return source.table(fitted.rows, np.random.default_rng(0)).to_pandas()


def without_pairs(measured: Measured) -> Measured:
    """The same single columns, taken to be independent."""
    return replace(measured, selection=Selection((), (), measured.selection.fit))


def central_of(
    spec: Spec, frame: pd.DataFrame, columns: dict[str, dict[str, object]], epsilon: float
) -> pd.DataFrame:
    """The synthetic table of a central release with the same epsilon, pure."""
    with TemporaryDirectory() as folder:
        central = Spec.from_dict(
            {
                "privacy": {"epsilon": epsilon},
                "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": spec.release},
                "columns": columns,
            }
        )
        return dpsynth.release(frame, central, outputs=folder).synthetic


def main() -> None:
    """Print a line for each epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=tuple(FILES))
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 2.0, 4.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tables", type=int, default=3, help="synthetic tables, of the first runs")
    parser.add_argument("--central", action="store_true")
    args = parser.parse_args()
    frame, columns = table_of(args.table)
    sizes = {name: int(column["bins"]) for name, column in columns.items()}  # type: ignore[call-overload]
    alone = pd.DataFrame({c: frame[c].sample(frac=1, random_state=i).to_numpy() for i, c in enumerate(sizes)})
    for epsilon in args.epsilon:
        spec = spec_of(args.table, columns, epsilon, len(frame))
        contract = contract_of(compiled(spec))
        collections = (collected(contract, frame) for _ in range(args.runs))
        errors, stated, distances = [], [], []
        for number, aggregated in enumerate(collections):
            found = errors_of(aggregated, frame)
            errors.append(found[0])
            stated.append(found[1])
            if number < args.tables:
                measured = hold(aggregated)
                tables = (measured, without_pairs(measured))
                distances.append([three_way(synthetic_of(aggregated, m), frame, sizes) for m in tables])
        far, expected = np.array(errors), np.array(stated)
        bias = far.mean(axis=0) / (far.std(axis=0, ddof=1) / sqrt(args.runs))
        error, of_columns = np.mean(distances, axis=0)
        line = {
            "table": args.table,
            "epsilon": epsilon,
            "questions": len(contract.questions),
            "answers": "one" if contract.one else "all",
            "protocols": dict(Counter(q.randomiser.name for q in contract.questions)),
            "runs": args.runs,
            "cells": far.shape[1],
            "coverage": round(float((np.abs(far) <= 1.96 * expected).mean()), 4),
            "largest_bias_in_standard_errors": round(float(np.abs(bias).max()), 2),
            "variance_as_stated": round(float((far**2).mean() / (expected**2).mean()), 3),
            "three_way": round(error, 4),
            "three_way_of_its_columns": round(of_columns, 4),
            "three_way_independent": round(three_way(alone, frame, sizes), 4),
        }
        if args.central:
            line["three_way_central"] = round(
                three_way(central_of(spec, frame, columns, epsilon), frame, sizes), 4
            )
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
