"""One judge from outside the project on one released table, or on linked ones, as JSON.

    PYTHON benchmarks/judge_files.py sdmetrics|sdmetrics-linked|syntheval|anonymeter FOLDER

PYTHON is the interpreter of an environment that holds the judge: this file needs nothing of the project.
FOLDER holds `real.csv`, `synthetic.csv` and `control.csv` with the same columns, where an empty cell is
missing and a date is in ISO 8601, and `facts.json`: `kinds` has SDMetrics' word for each column, `secret` a
column to be inferred. Exit code 3: the judge isn't installed. Of linked tables, FOLDER holds a
`real-NAME.csv` and a `synthetic-NAME.csv` each, and `metadata.json` in SDV's format.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ABSENT = 3
_ROWS = 2000
"""Rows that syntheval sees, which compares all rows with all others."""
_MOST = 20_000
"""Synthetic rows that anonymeter sees."""
_ATTACKS = 300


def read(folder: Path, kinds: dict[str, str], name: str) -> pd.DataFrame:
    """A table with numbers, dates and texts."""
    table = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False, na_values=[""])
    for column, kind in kinds.items():
        if kind == "numerical":
            table[column] = pd.to_numeric(table[column], errors="coerce").astype(float)
        elif kind == "datetime":
            table[column] = pd.to_datetime(table[column], errors="coerce", format="ISO8601")
        else:
            table[column] = table[column].astype(object)
    return table


def filled(table: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    """A table of numbers and texts without missing cells: 1 below all numbers, or a text of their own."""
    done = table.copy()
    for column, kind in kinds.items():
        if kind == "datetime":
            done[column] = done[column].map(lambda moment: moment.timestamp() / 3600).astype(float)
        if kind != "categorical":
            done[column] = done[column].fillna(-1.0)
        else:
            done[column] = done[column].fillna("missing").astype(str)
    return done


def _same_ends(real: pd.DataFrame, synthetic: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    """The synthetic table with numbers cut off at the real ends, and two more rows that have these."""
    numbers = [column for column, kind in kinds.items() if kind == "numerical"]
    least, largest = real[numbers].min(), real[numbers].max()
    within = synthetic.assign(**{c: synthetic[c].clip(least[c], largest[c]) for c in numbers})
    return pd.concat([within, pd.DataFrame([least, largest])], ignore_index=True)


def sdmetrics(folder: Path, kinds: dict[str, str], _: str) -> dict[str, object]:
    """Quality, with its parts: each column's shape, and each pair that counts; and quality by equal ends."""
    from sdmetrics.reports.single_table import QualityReport  # type: ignore[import-not-found]

    real, synthetic = (read(folder, kinds, name) for name in ("real", "synthetic"))
    metadata = {"columns": {column: {"sdtype": kind} for column, kind in kinds.items()}}
    report, same = QualityReport(), QualityReport()
    report.generate(real, synthetic, metadata, verbose=False)
    same.generate(real, _same_ends(real, synthetic, kinds), metadata, verbose=False)
    properties = dict(report.get_properties().itertuples(index=False))
    columns = report.get_details("Column Shapes")
    pairs = report.get_details("Column Pair Trends").dropna(subset=["Score"])
    pairs = pairs[pairs["Meets Threshold?"].astype(bool)]
    return {
        "quality": report.get_score(),
        "shapes": properties["Column Shapes"],
        "pairs": properties["Column Pair Trends"],
        "quality with the same ends": same.get_score(),
        "columns": columns.dropna(subset=["Score"]).set_index("Column")["Score"].to_dict(),
        "trends": pairs[["Column 1", "Column 2", "Metric", "Score"]].to_numpy().tolist(),
    }


def sdmetrics_linked(folder: Path) -> dict[str, object]:
    """Quality of linked tables with its parts: columns, pairs, numbers of child rows, and parent x child."""
    from sdmetrics.reports.multi_table import QualityReport  # type: ignore[import-not-found]

    metadata = json.loads((folder / "metadata.json").read_text())
    real, synthetic = (
        {name: pd.read_csv(folder / f"{kind}-{name}.csv") for name in metadata["tables"]}
        for kind in ("real", "synthetic")
    )
    report = QualityReport()
    report.generate(real, synthetic, metadata, verbose=False)
    return {"quality": report.get_score(), **dict(report.get_properties().itertuples(index=False))}


def syntheval(folder: Path, kinds: dict[str, str], _: str) -> dict[str, object]:
    """Distances of columns and of their relations, and distances between rows, on some rows."""
    from syntheval import SynthEval  # type: ignore[import-not-found]

    some = [
        filled(table.sample(min(_ROWS, len(table)), random_state=1), kinds).reset_index(drop=True)
        for table in (read(folder, kinds, name) for name in ("real", "synthetic", "control"))
    ]
    real, synthetic, control = some
    texts = [column for column, kind in kinds.items() if kind == "categorical"]
    judge = SynthEval(real, holdout_dataframe=control, cat_cols=texts, verbose=False)
    found = judge.evaluate(
        synthetic, h_dist={}, corr_diff={"mixed_corr": True}, mi_diff={}, nnaa={"n_resample": 5}, dcr={}
    )
    return {row["metric"]: float(row["val"]) for _, row in found.iterrows() if pd.notna(row["val"])}


def anonymeter(folder: Path, kinds: dict[str, str], secret: str) -> dict[str, object]:
    """Risks that rows are singled out, linked and inferred, above that of rows which weren't released."""
    from anonymeter.evaluators import (  # type: ignore[import-not-found]
        InferenceEvaluator,
        LinkabilityEvaluator,
        SinglingOutEvaluator,
    )

    np.random.seed(1)
    real, synthetic, control = (
        filled(read(folder, kinds, name), kinds) for name in ("real", "synthetic", "control")
    )
    synthetic = synthetic.sample(min(_MOST, len(synthetic)), random_state=1)
    known = [column for column in kinds if column != secret]
    given = {"n_attacks": min(_ATTACKS, len(control)), "control": control}
    judges = {
        "singling out": SinglingOutEvaluator(real, synthetic, n_cols=3, max_attempts=20000, **given),
        "linkability": LinkabilityEvaluator(
            real, synthetic, aux_cols=(known[::2], known[1::2]), n_neighbors=10, **given
        ),
        "inference": InferenceEvaluator(real, synthetic, aux_cols=known, secret=secret, **given),
    }
    risks: dict[str, object] = {}
    for name, judge in judges.items():
        judge.evaluate(**({"mode": "multivariate"} if name == "singling out" else {"n_jobs": 1}))
        risk = judge.risk()
        risks[name], risks[f"{name} at most"] = risk.value, risk.ci[1]
    return risks


def main() -> None:
    """Print one judge's figures."""
    judge, folder = sys.argv[1], Path(sys.argv[2])
    if importlib.util.find_spec(judge.removesuffix("-linked")) is None:
        sys.exit(ABSENT)
    if judge == "sdmetrics-linked":
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings(action="ignore"):
            linked = sdmetrics_linked(folder)
        print(json.dumps(linked))
        return
    facts = json.loads((folder / "facts.json").read_text())
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        figures = {"sdmetrics": sdmetrics, "syntheval": syntheval, "anonymeter": anonymeter}[judge](
            folder, facts["kinds"], facts["secret"]
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
