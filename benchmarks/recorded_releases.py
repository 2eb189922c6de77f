"""Releases recorded with one version of the code, and replayed with another: same journal, same bytes.

    python benchmarks/recorded_releases.py record FOLDER [--only PART]
    python benchmarks/recorded_releases.py replay FOLDER [--only PART]

``record`` makes small tables, runs some eighty releases of them (every strategy, row and person, both noises,
each accountant, finding, constraints, what is public, reuse, every type of column) and keeps each with its
config, its tables and its journal in a folder of its own. Run it with the environment of the earlier version:
``/path/to/earlier/.venv/bin/python benchmarks/recorded_releases.py record FOLDER``.

``replay`` treats each journal as that of a release that was interrupted at its very end, and resumes it with
the code at hand, in a new folder with a new ledger. All answers are on record, so nothing may be drawn. Then
it compares:

- the synthetic table and the statistics byte by byte, Parquet files value by value and type by type; any
  difference is a failure;
- the manifest and the metadata of Parquet files key by key; differences are listed, and are no failure.

It exits with 1 if a release failed or differs. Where a later version has another name for a key of the
config, of the manifest or of a column, write it into ``RENAMED_YAML`` and ``RENAMED_KEYS``; where the first
line of a journal holds other things, into ``translated``.

Noise comes from the operating system, so two recordings differ; replays don't.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import dpsynth
from dpsynth.config import Spec, compiled
from dpsynth.errors import Paused
from dpsynth.pipeline.result import Release

RENAMED_YAML: Mapping[str, str] = {
    "within: sloped": "within: linear",
    "within: even": "within: uniform",
    "known: [": "public_marginals: [",
    "public: survey.csv": "public_table: survey.csv",
    "missing: {apart: ": "missing: {distinct: ",
}
"""Pieces of a recorded config, and what they are called now: ``{"within: sloped": "within: ..."}``."""
RENAMED_KEYS: Mapping[str, str] = {
    "lapse": "approximate_delta",
    "known_marginals": "public_marginals",
    "has_a_place": "modelled",
    "told_apart": "distinct_markers",
    "worth_rows": "equivalent_rows",
}
"""Keys of a recorded manifest, columns of statistics and measurements, and what they are called now."""

OF_FILES = frozenset({"sha256", "bytes"})
"""Keys of the manifest that follow from the bytes of files; what matters of these is compared by itself."""

# ---- the configs ----

PEOPLE = """
source: {path: people.csv}
columns:
  age: {type: integer, min: 0, max: 89, bins: 18, missing: false}
  sex: {type: category, values: [F, M], missing: false}
  income: {type: number, bins: [0, 0.01, 500, 1000, 2000, 4000, 8000, 20000], decimals: 2}
  city: {type: category, values: [Aa, Bb, Cc, Dd, Ee], missing: "?"}
  smoker: {type: boolean, values: ["no", "yes"], missing: false}
  grade: {type: ordered, values: [low, mid, high], missing: n/a}
"""

STATISTICS = """
publish:
  statistics:
    - {crosstab: [sex, city]}
    - {mean: income, by: sex}
    - {mean: age}
    - {crosstab: [sex, city, grade]}
"""

SAMPLE = "sample: {seed: 7}\n"

LEDGER = """
ledger: {url: "sqlite:///ledger.db", dataset: people, cap: {epsilon: 1000, delta: 0.01}}
"""

ROW, PERSON = "unit: row", "unit: {column: person, max_rows: 3}"
GAUSSIAN, LAPLACE = "epsilon: 2, delta: 1.0e-6", "epsilon: 2"

PRIVACY: Mapping[str, str] = {
    "row-gdp": f"privacy: {{{GAUSSIAN}, accountant: gdp, {ROW}}}",
    "row-zcdp": f"privacy: {{{GAUSSIAN}, accountant: zcdp, {ROW}}}",
    "row-laplace-zcdp": f"privacy: {{{GAUSSIAN}, noise: laplace, accountant: zcdp, {ROW}}}",
    "person": f"privacy: {{{GAUSSIAN}, {PERSON}}}",
    "person-sequential": f"privacy: {{{LAPLACE}, accountant: sequential, {PERSON}}}",
    "replaced": f"privacy: {{{GAUSSIAN}, neighbours: replace_one, {PERSON}}}",
    "replaced-sequential": f"privacy: {{{LAPLACE}, neighbours: replace_one, {ROW}}}",
}

STRUCTURES: Mapping[str, str] = {
    "auto": "structure: auto",
    "independent": "structure: independent",
    "mst": "structure: mst",
    "privbayes": "structure: privbayes",
    "aim": "structure: {method: aim, max_model_mb: 0.2}",
    "one_shot": "structure: one_shot",
    "fixed": "structure: {method: fixed, cliques: [[age, sex], [sex, income, city], [smoker, grade]]}",
}

FOUND = """
source: {path: people.csv}
columns:
  age: {type: integer, bounds: private, edges: equal, bins: 12}
  income: {type: number, bounds: private, edges: tree, bins: 16, decimals: 2}
  paid: {type: number, min: 0, max: 5000, edges: quantiles, bins: 8, decimals: 2}
  visits: {type: integer, min: 0, max: 365, edges: tree, bins: 10}
  city: {type: category, open: true, values: [Aa], most: 8}
  code: {type: text, pattern: '[0-9]{5}', levels: [1, 3, 5], most: 40}
  sex: {type: category, values: [F, M], missing: false}
sample: {seed: 7}
publish: {statistics: [{mean: income, by: sex}]}
"""

FEW = """
source: {path: people.csv}
columns:
  age: {type: integer, min: 0, max: 89, bins: 9, missing: false}
  sex: {type: category, values: [F, M], missing: false}
  city: {type: category, values: [Aa, Bb, Cc, Dd, Ee], missing: "?"}
  smoker: {type: boolean, values: ["no", "yes"], missing: false}
publish: {statistics: [{crosstab: [sex, city]}, {crosstab: [sex]}, {mean: age, by: city}]}
"""

EVERY_TYPE = """
release: every
source: {path: every.parquet}
privacy: {epsilon: 20, delta: 1.0e-6}
columns:
  id: {type: identifier, surrogates: P00001}
  seen: {type: date, min: 2020-01-01, max: 2021-12-31, unit: month, format: "%d/%m/%Y"}
  age: {type: integer, min: 0, max: 99, bins: 10, format: {width: 3}, missing: false}
  pay:
    type: number
    min: 0
    max: 9000
    bins: 9
    decimals: 2
    format: {thousands: " ", decimal: ",", suffix: " €"}
    missing: {distinct: [refused, unknown], markers: ["?"]}
  bonus: {type: number, min: -100, max: 100, bins: 4, decimals: 1, missing: false, within: uniform}
  spent: {type: number, min: 0, max: 100000, edges: log, bins: 12, decimals: 2, within: linear}
  grade: {type: ordered, values: [low, mid, high], missing: n/a}
  town: {type: category, values: [Ay, Bo], other: elsewhere}
  member: {type: boolean, values: ["no", "yes"], missing: false}
  arrived: {type: datetime, min: 2020-01-01, max: 2020-12-31, format: "%-m/%-d/%Y %-I:%M %p"}
  woke: {type: time, format: "%H:%M"}
  waited: {type: duration, min: "0:00", max: "10:00", unit: hour, format: "HH:MM"}
  zip: {type: text, pattern: '[0-9]{5}', prefixes: ["75", "69", "01"]}
  secret: {type: identifier}
  total: {type: derived, formula: pay + bonus, format: {prefix: "€", thousands: ","}}
  score: {type: derived, formula: grade, map: {low: 1, mid: 2, high: 5}, missing: none}
  year: {type: derived, formula: year(seen)}
  department: {type: derived, formula: "first(zip, 2)"}
  minor: {type: derived, formula: "if(age < 18, 'yes', 'no')"}
structure: mst
sample: {rows: 400, seed: 3}
publish: {formats: [csv, parquet], statistics: [{mean: waited, by: grade}, {crosstab: [pay, grade]}]}
"""

CONSTRAINTS = """
constraints:
  - age < 15 implies not smoker
  - income <= 100 * age
  - city determines grade
"""

PARTS = """
source: {path: people.csv}
columns:
  age: {type: integer, min: 0, max: 89, bins: 18, missing: false}
  smoker: {type: boolean, values: ["no", "yes"], missing: false}
  level: {type: ordered, values: [low, mid, high], missing: false}
  number: {type: integer, min: 0, max: 2, missing: false}
  first: {type: date, min: 2022-01-01, max: 2024-12-31, unit: month}
  last: {type: date, min: 2022-01-01, max: 2024-12-31, unit: month}
  drugs: {type: number, min: 0, max: 2000, bins: 10, decimals: 2}
  room: {type: number, min: 0, max: 3000, bins: 10, decimals: 2}
  bill: {type: number, min: 0, max: 5000, bins: 10, decimals: 2}
constraints:
  - age < 15 implies not smoker
  - level <-> number
  - first <= last
  - bill == drugs + room
publish: {formats: [csv], statistics: [{crosstab: [level, number]}, {mean: bill, by: smoker}]}
"""

MONTHLY = """
period: {column: visited, every: month}
"""


@dataclass(frozen=True)
class Step:
    """One release of a case: the config's file without its ending, and the period, where there is one."""

    config: str
    period: str | None = None
    cut: bool = False
    """True if the release is killed between a charge and its answer, which is lost, and then resumed."""


@dataclass(frozen=True)
class Case:
    """Releases of one ledger, in order."""

    name: str
    configs: Mapping[str, str]
    steps: tuple[Step, ...]


def single(name: str, *parts: str, cut: bool = False) -> Case:
    """A case of one release."""
    text = "\n".join(parts)
    return Case(name, {"config": text if "\nledger:" in text else text + LEDGER}, (Step("config", cut=cut),))


def cases() -> Iterator[Case]:
    """All releases."""
    for method, structure in STRUCTURES.items():
        for privacy, section in PRIVACY.items():
            yield single(f"{method}-{privacy}", PEOPLE, section, structure, SAMPLE, STATISTICS)
    gaussian, laplace = PRIVACY["row-gdp"], PRIVACY["person-sequential"]
    person = PRIVACY["person"]
    yield single("lost-answer", PEOPLE, gaussian, STRUCTURES["mst"], STATISTICS, cut=True)
    yield single("no-merging", PEOPLE, gaussian, "structure: {method: auto, merge_rare: 0}", STATISTICS)
    yield single(
        "workload", PEOPLE, gaussian,
        "structure: {workload: {ways: 2, marginals: [{columns: [age, income, grade], weight: 3}], "
        "weights: {income: 2}, targets: [smoker], target_weight: 4}, max_seconds: 30}",
    )  # fmt: skip
    yield single(
        "split", PEOPLE, "sample: {rows: 500}", STRUCTURES["mst"],
        f"privacy: {{{GAUSSIAN}, {PERSON}, split: {{one_way: 0.3, structure: 0.1, marginals: 0.6}}}}",
    )  # fmt: skip
    yield single("found-gaussian", FOUND, "privacy: {epsilon: 6, delta: 1.0e-5}")
    yield single("found-person", FOUND, f"privacy: {{epsilon: 8, delta: 1.0e-5, {PERSON}}}")
    yield single("found-laplace", FOUND, "privacy: {epsilon: 6, delta: 1.0e-5, noise: laplace}")
    yield single(
        "found-sequential", FOUND,
        "privacy: {epsilon: 6, delta: 1.0e-5, noise: laplace, accountant: sequential, "
        "neighbours: replace_one}",
    )  # fmt: skip
    private = "unit: {column: person, max_rows: private, at_most: 8, missing: together}"
    yield single("rows-private", PEOPLE, f"privacy: {{{GAUSSIAN}, {private}}}", STATISTICS)
    yield single(
        "rows-private-laplace", PEOPLE, f"privacy: {{{LAPLACE}, on_empty: go, {private}}}", STATISTICS
    )
    yield single("found-rows-private", FOUND, f"privacy: {{epsilon: 8, delta: 1.0e-5, {private}}}")
    yield single("constraints", PEOPLE, gaussian, CONSTRAINTS, STATISTICS, SAMPLE)
    yield single("constraints-parts", PARTS, person)
    yield single("constraints-aim", PARTS, gaussian, STRUCTURES["aim"])
    stated = "{columns: [sex], counts: {F: 620, M: 580}}, {columns: [sex, city], file: totals.csv}"
    counts = f"public_marginals: [{stated}]"
    shares = "public_marginals: [{columns: [smoker], shares: {'no': 3, 'yes': 1}}]"
    yield single("known-counts", FEW, gaussian, counts)
    yield single("known-shares", FEW, laplace, shares)
    yield single("known-independent", FEW, PRIVACY["replaced"], shares, STRUCTURES["independent"])
    yield single("public", PEOPLE, gaussian, "public_table: survey.csv", STATISTICS)
    yield single("public-laplace", PEOPLE, laplace, "public_table: survey.csv", STRUCTURES["mst"], STATISTICS)
    yield single("public-fixed", PEOPLE, person, "public_table: survey.csv", STRUCTURES["fixed"], SAMPLE)
    yield single("every-type", EVERY_TYPE)
    views = (
        "publish: {statistics: [{crosstab: [sex, city]}, {crosstab: [city, grade]}], suppress_below: 10, "
        "rounding: {base: 5, method: unbiased}, k_anonymity: {k: 3, quasi_identifiers: [sex, age, city], "
        "l_diversity: {l: 2, sensitive: [grade]}}}"
    )
    yield single("views", PEOPLE, gaussian, views, SAMPLE)
    yield single("sampled", PEOPLE, f"privacy: {{{GAUSSIAN}, {ROW}, sample_rate: 0.5}}", STATISTICS)
    yield single("sampled-persons", PEOPLE, f"privacy: {{{GAUSSIAN}, {PERSON}, sample_rate: 0.5}}", SAMPLE)
    yield single("without-exam", PEOPLE, f"privacy: {{{GAUSSIAN}, {PERSON}, split: {{exam: 0, cutoff: 0}}}}")
    yield single("quantiles", PEOPLE, gaussian, "publish: {statistics: [{quantiles: income, by: sex}]}")
    audiences = "audiences: {public: {epsilon: 0.5}, partners: {epsilon: 2}}"
    yield single("audiences", PEOPLE, f"privacy: {{delta: 1.0e-6, {ROW}}}", audiences, STATISTICS, SAMPLE)
    same = "reuse: {same_period: true}"
    earlier = "reuse: {same_period: true, earlier_periods: true}"
    month = (FEW, MONTHLY, LEDGER, "structure: {method: auto}")
    yield Case(
        "months",
        {
            "first": "\n".join((*month, gaussian, "release: first")),
            "again": "\n".join((*month, gaussian, "release: again", same)),
            "later": "\n".join((*month, gaussian, "release: later", earlier, "public_table: survey.csv")),
        },
        (
            Step("first", "2024-01"), Step("first", "2024-02"), Step("again", "2024-02"),
            Step("later", "2024-02"), Step("later", "2024-03"),
        ),
    )  # fmt: skip
    whole = (FEW, LEDGER, laplace, "structure: {method: mst}")
    yield Case(
        "earlier",
        {
            "first": "\n".join((*whole, "release: first")),
            "second": "\n".join((*whole, "release: second", "reuse: {earlier_periods: true}")),
        },
        (Step("first"), Step("second")),
    )
    parallel = "period: {column: visited, every: quarter, composition: parallel}"
    yield Case(
        "parallel",
        {"config": "\n".join((FEW, parallel, LEDGER, gaussian, "structure: {method: mst}"))},
        (Step("config", "2024-Q1"), Step("config", "2024-Q2")),
    )


# ---- the tables ----


together = partial(zip, strict=True)


def people(rows: int, seed: int) -> pd.DataFrame:
    """A table of persons with some rows each, whose columns depend on each other; some cells are bad."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 90, rows)
    city = draw.choice(["Aa", "Bb", "Cc", "Dd", "Ee"], rows, p=[0.5, 0.25, 0.15, 0.07, 0.03])
    level = np.clip(age // 30 + draw.integers(-1, 2, rows), 0, 2)
    income = np.where((age < 18) | (draw.random(rows) < 0.1), 0, draw.lognormal(7 + 0.3 * level, 0.6))
    smoker = (draw.random(rows) < 0.1 + 0.3 * (city == "Bb")) & (age >= 15)
    drugs, room = draw.integers(0, 150_000, rows) / 100, draw.integers(0, 250_000, rows) / 100
    first = draw.integers(0, 900, rows)
    day = pd.Timestamp("2022-01-01")
    table = pd.DataFrame(
        {
            "person": [
                f"p{n}" for n in draw.zipf(1.6, rows).clip(max=400) + draw.integers(0, rows // 3, rows)
            ],
            "age": age,
            "sex": np.where(draw.random(rows) < 0.4 + 0.2 * (city == "Aa"), "F", "M"),
            "income": np.round(income, 2),
            "city": np.where(draw.random(rows) < 0.05, "?", city),
            "smoker": np.where(smoker, "yes", "no"),
            "grade": np.array(["low", "mid", "high"])[level],
            "level": np.array(["low", "mid", "high"])[level],
            "number": level,
            "paid": np.round(draw.gamma(2, 300, rows), 2),
            "visits": draw.geometric(0.2, rows) - 1,
            "code": [
                f"{a}{b * 25:04}"
                for a, b in together(draw.choice([1, 3, 7], rows), draw.integers(0, 40, rows))
            ],
            "first": [(day + pd.Timedelta(days=int(d))).date().isoformat() for d in first],
            "last": [(day + pd.Timedelta(days=int(d))).date().isoformat() for d in first + 60],
            "drugs": drugs,
            "room": room,
            "bill": np.round(drugs + room, 2),
            "visited": [
                f"2024-{m:02}-{d:02}"
                for m, d in together(draw.integers(1, 7, rows), draw.integers(1, 29, rows))
            ],
        }
    ).astype(str)
    for name, bad in (("income", ""), ("grade", "n/a"), ("age", "unreadable"), ("person", "")):
        table.loc[draw.choice(rows, rows // 50, replace=False), name] = bad
    return table


def every_type(rows: int) -> pd.DataFrame:
    """A table with a column of every type, some cells of which are bad."""
    draw = np.random.default_rng(4)

    def numbers(low: int, high: int) -> list[int]:
        return [int(n) for n in draw.integers(low, high, rows)]

    table = pd.DataFrame(
        {
            "seen": [
                f"{d:02}/{m:02}/{y}"
                for d, m, y in together(numbers(1, 28), numbers(1, 13), numbers(2020, 2022))
            ],
            "age": [f"{n:03}" for n in numbers(10, 90)],
            "pay": [
                f"{a} {b},{c} €" for a, b, c in together(numbers(1, 8), numbers(100, 999), numbers(10, 99))
            ],
            "bonus": [f"{n}.5" for n in numbers(-90, 90)],
            "spent": [f"{n:.2f}" for n in draw.lognormal(5, 2, rows)],
            "grade": draw.choice(["low", "mid", "high"], rows, p=[0.6, 0.3, 0.1]),
            "town": draw.choice(["Ay", "Bo", "Zz"], rows),
            "member": draw.choice(["no", "yes"], rows),
            "arrived": [
                f"{m}/{d}/2020 {h}:05 PM"
                for m, d, h in together(numbers(1, 13), numbers(1, 28), numbers(1, 13))
            ],
            "woke": [f"{h}:{m}" for h, m in together(numbers(10, 24), numbers(10, 60))],
            "waited": [f"0{h}:{m}" for h, m in together(numbers(0, 10), numbers(10, 60))],
            "zip": [
                f"{a}{b}" for a, b in together(draw.choice(["75", "69", "44"], rows), numbers(100, 1000))
            ],
        }
    )
    for name, bad in (
        ("pay", "refused"),
        ("seen", "30/02/2020"),
        ("zip", "x"),
        ("waited", "-1"),
        ("town", ""),
    ):
        table.loc[draw.choice(rows, rows // 40, replace=False), name] = bad
    return table


def write_tables(folder: Path) -> None:
    """All tables that configs name."""
    people(1200, 1).to_csv(folder / "people.csv", index=False)
    survey = people(600, 2)[["age", "sex", "income", "city", "grade"]]
    survey.to_csv(folder / "survey.csv", index=False)
    every_type(600).to_parquet(folder / "every.parquet", index=False)
    cells = {"F": (330, 150, 80, 40, 20), "M": (270, 150, 100, 40, 20)}
    lines = [
        f"{sex},{c},{n}"
        for sex, found in cells.items()
        for c, n in zip(("Aa", "Bb", "Cc", "Dd", "Ee"), found, strict=True)
    ]
    (folder / "totals.csv").write_text("\n".join(["sex,city,count", *lines, ""]))


# ---- recording ----


def record(folder: Path, only: str) -> int:
    """Run each case in a folder of its own, and keep it."""
    for case in cases():
        if only not in case.name:
            continue
        began, home = time.perf_counter(), folder / case.name
        home.mkdir(parents=True)
        write_tables(home)
        for name, text in case.configs.items():
            (home / f"{name}.yaml").write_text(text)
        found = []
        with contextlib.chdir(home):
            for step in case.steps:
                spec = dpsynth.load(f"{step.config}.yaml")
                made = released(spec, period=step.period)
                if step.cut:
                    cut(Path("outputs", spec.release, made.release_id))
                    Path("ledger.db").unlink()
                    made = released(spec, resume=made.release_id)
                found.append({"config": step.config, "release": spec.release, "id": made.release_id})
        Path(home, "steps.json").write_text(json.dumps(found, indent=2))
        print(f"{case.name:32} {time.perf_counter() - began:5.1f} s", flush=True)
    return 0


def released(spec: Spec, *, period: str | None = None, resume: str | None = None) -> Release:
    """A release, which goes on as it is wherever it pauses."""
    while True:
        try:
            return dpsynth.release(spec, period=period, resume=resume)
        except Paused as paused:
            resume = paused.release_id


def cut(bundle: Path) -> None:
    """Make a whole bundle a release that was killed after half of its charges, an answer of which is lost."""
    lines = (bundle / "private" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    charges = [i for i, line in enumerate(lines) if json.loads(line)["kind"] == "charge"]
    private = bundle.parent / f".{bundle.name}.partial" / "private"
    private.mkdir(parents=True)
    (private / "journal.jsonl").write_bytes(b"".join(lines[: charges[len(charges) // 2] + 1]))
    shutil.rmtree(bundle)


# ---- replaying ----


def translated(header: Mapping[str, object], spec: Spec, outputs: Path) -> dict[str, object]:
    """A recorded journal's first line, as the code at hand would have written it.

    The digest of the config is that of today's reading of it. Releases that serve as evidence have been
    replayed before, and compared; their files may hold other metadata, so their digests are taken anew.
    """
    found = {**header, "spec": compiled(spec).fingerprint}
    if found.get("reused"):
        reused = json.loads(json.dumps(found["reused"]))
        for release in reused["releases"]:
            path = outputs / release["release"] / release["release_id"] / "public" / "measurements.parquet"
            release["measurements_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        found["reused"] = reused
    return found


def renamed_text(text: str) -> str:
    for old, new in RENAMED_YAML.items():
        text = text.replace(old, new)
    return text


def charged(lines: list[bytes]) -> list[bytes]:
    """The charges, answers and losses of a journal."""
    return [line for line in lines if json.loads(line)["kind"] != "open"]


def replay(folder: Path, only: str) -> int:
    """Resume each recorded release with the code at hand, compare, and say how many differ."""
    failed: list[str] = []
    listed: dict[str, str] = {}
    recorded = sorted(path.parent for path in folder.glob("*/steps.json") if only in path.parent.name)
    for home in recorded:
        began = time.perf_counter()
        try:
            wrong, told = replayed(home)
        except Exception as error:
            traceback.print_exc()
            wrong, told = [f"{type(error).__name__}: {error}"], {}
        print(
            f"{home.name:32} {time.perf_counter() - began:5.1f} s  {'DIFFERS' if wrong else 'same'}",
            flush=True,
        )
        for sentence in wrong:
            print(f"    {sentence}")
        failed += [home.name] if wrong else []
        listed |= told
    for place, example in sorted(listed.items()):
        print(f"no failure: {place} {example}")
    print(f"{len(recorded)} cases, {len(failed)} differ" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed or not recorded else 0


def replayed(home: Path) -> tuple[list[str], dict[str, str]]:
    """Differences between a recorded case and its replay: failures, and those that are listed only."""
    wrong: list[str] = []
    told: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for path in home.iterdir():
            if path.suffix in (".csv", ".parquet"):
                shutil.copy(path, place)
            elif path.suffix == ".yaml":
                Path(path.name).write_text(renamed_text(path.read_text()))
        for step in json.loads((home / "steps.json").read_text()):
            bundle = home / "outputs" / step["release"] / step["id"]
            spec = dpsynth.load(f"{step['config']}.yaml")
            journal = resumed_at_its_end(bundle, step["release"], spec)
            before = charged(journal.read_bytes().splitlines())
            made = released(spec, resume=step["id"])
            after = charged((made.folder / "private" / "journal.jsonl").read_bytes().splitlines())
            if after != before:
                wrong.append(f"{step['id']}: {len(after) - len(before)} more lines in the journal")
            more, few = differences(bundle / "public", made.folder / "public")
            wrong += more
            told |= few
    return wrong, told


def resumed_at_its_end(bundle: Path, release: str, spec: object) -> Path:
    """The journal of a recorded bundle, where an interrupted release has it."""
    header, *rest = (bundle / "private" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    line = json.dumps(translated(json.loads(header), spec, Path("outputs")), separators=(",", ":"))
    private = Path("outputs", release, f".{bundle.name}.partial", "private")
    private.mkdir(parents=True, mode=0o700)
    path = private / "journal.jsonl"
    path.write_bytes(line.encode() + b"\n" + b"".join(rest))
    path.chmod(0o600)
    return path


def differences(old: Path, new: Path) -> tuple[list[str], dict[str, str]]:
    """Differences between two public folders: failures, and those that are listed only."""
    wrong: list[str] = []
    told: dict[str, str] = {}
    tables = sorted(p.relative_to(old) for p in old.rglob("*") if p.suffix in (".csv", ".parquet"))
    there = {p.relative_to(new) for p in new.rglob("*") if p.suffix in (".csv", ".parquet")}
    wrong += [f"{path} is not there any more" for path in tables if path not in there]
    wrong += [f"{path} is new" for path in sorted(there - set(tables))]
    for path in tables:
        if path not in there:
            continue
        if path.suffix == ".csv":
            header, rest = (old / path).read_bytes().split(b"\n", 1)
            if path.name != "synthetic.csv":
                names = header.decode().split(",")
                header = ",".join(RENAMED_KEYS.get(name, name) for name in names).encode()
                # The basis of a figure that the config states.
                rest = rest.replace(b",known\n", b",public\n")
            if header + b"\n" + rest != (new / path).read_bytes():
                wrong.append(f"{path} differs")
            continue
        was, now = pq.read_table(old / path), pq.read_table(new / path)
        notes = [t.schema.metadata or {} for t in (was, now)]
        if path.name == "measurements.parquet":
            was = was.rename_columns([RENAMED_KEYS.get(name, name) for name in was.column_names])
        if not was.equals(now):
            wrong.append(f"{path} differs")
        for key in notes[0] | notes[1]:
            a, b = (metadata.get(key) for metadata in notes)
            told |= told_of(parsed(a), parsed(b), f"{path.name}, metadata {key.decode()}")
    manifests = (json.loads((place / "manifest.json").read_text(encoding="utf-8")) for place in (old, new))
    told |= told_of(*manifests, "manifest")
    return wrong, told


def parsed(value: bytes | None) -> object:
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


def told_of(old: object, new: object, path: str) -> dict[str, str]:
    """Where two JSON values differ, and how; keys of the old one under their new names."""
    if isinstance(old, dict) and isinstance(new, dict):
        old = {RENAMED_KEYS.get(key, key): value for key, value in old.items()}
        found = {f"{path}.{key}": "is gone" for key in old if key not in new}
        found |= {f"{path}.{key}": "is new" for key in new if key not in old}
        for key in old.keys() & new.keys():
            if key not in OF_FILES:
                found |= told_of(old[key], new[key], f"{path}.{key}")
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return {k: v for a, b in zip(old, new, strict=True) for k, v in told_of(a, b, f"{path}[]").items()}
    return {} if old == new else {path: f"differs, such as {str(old)[:60]!r}, now {str(new)[:60]!r}"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases with this in their name")
    args = parser.parse_args()
    began = time.perf_counter()
    code = (record if args.what == "record" else replay)(args.folder.resolve(), args.only)
    print(f"{args.what}: {time.perf_counter() - began:.0f} s with {Path(dpsynth.__file__).parent}")
    return code


if __name__ == "__main__":
    sys.exit(main())
