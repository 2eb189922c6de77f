"""Tables as they come, with cells that no schema foresaw, their neighbours, and recorded releases of them."""

import csv
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dpsynth.config import Spec, from_mapping
from dpsynth.errors import DpsynthError
from dpsynth.wings.proof.audit.replay import Transcript, faults, observe, replay

HEADER = ("who", "age", "pay", "city", "well", "note")
MORE = tuple(f"more{i}" for i in range(6))
RELATIONS = ("add_remove", "replace_one")
UNITS = ("row", "person")
NOISES = ("gaussian", "laplace")
MAX_ROWS = 3

Row = list[str]

COLUMNS: Mapping[str, object] = {
    "age": {"type": "integer", "bins": [0, 20, 40, 60, 110]},
    "pay": {"type": "number", "bins": [0, 0.5, 10, 100], "decimals": 1},
    "city": {"type": "category", "values": ["A", "B"], "other": "elsewhere", "missing": False},
    "well": {"type": "boolean"},
}
SOUGHT: Mapping[str, object] = {
    "age": {"type": "integer", "bounds": "private", "edges": "tree", "bins": 8},
    "pay": {"type": "number", "min": 0, "max": 100, "edges": "quantiles", "bins": 4, "decimals": 1},
    "city": {"type": "category", "open": True, "values": ["A"], "most": 4},
    "well": {"type": "boolean"},
}
"""The same columns, with bounds, bins and values that are found."""
MANY_VALUED: Mapping[str, object] = {"type": "integer", "min": 0, "max": 29, "bins": 30}
LISTED = [["age", "pay"], ["pay", "city", "well"]]
"""What method fixed measures."""

# Cells that no schema foresaw.
WILD = [
    "",
    "NaN",
    "inf",
    "-1e999",
    "99999999999",
    "-0",
    "\U0001f4a5",
    "x" * 5000,
    "=1+1",
    "?",
    "None",
    'a,b\n"c"',
]


def privacy_of(relation: str, unit: str, noise: str, **more: object) -> dict[str, object]:
    """The privacy section: a delta where noise is Gaussian; no pause for columns that hold wild cells."""
    delta = {"delta": 1e-6} if noise == "gaussian" else {}
    person = {"unit": {"column": "who", "max_rows": MAX_ROWS}} if unit == "person" else {}
    always = {"epsilon": 2, "neighbours": relation, "noise": noise, "on_empty": "go"}
    return {**always, **delta, **person, **more}


def spec_for(
    path: Path,
    privacy: Mapping[str, object],
    method: str = "mst",
    *,
    wide: bool = False,
    columns: Mapping[str, object] = COLUMNS,
    publish: Mapping[str, object] | None = None,
) -> Spec:
    """The config of a release, with a ledger of its own; method "auto" is left out, as the default.

    Args:
        path: of the table.
        privacy: its section of the config.
        method: of the structure.
        wide: whether there are six columns more, of many values.
        columns: their declarations.
        publish: its section of the config.
    """
    structure: dict[str, object] = {"method": method} | ({"cliques": LISTED} if method == "fixed" else {})
    return from_mapping(
        {
            "release": "replay",
            "source": {"path": str(path)},
            "privacy": dict(privacy),
            "ledger": {"url": f"sqlite:///{path.parent}/ledger-{random.randrange(10**9)}.db"},
            "columns": {**columns, **{name: MANY_VALUED for name in MORE if wide}},
            "publish": dict(publish or {}),
        }
        | ({} if method == "auto" else {"structure": structure})
    )


def write(path: Path, rows: list[Row]) -> Path:
    """A table of rows, each with more cells that follow from the others."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*HEADER, *MORE], *map(_lengthened, rows)])
    return path


def _lengthened(row: Row) -> Row:
    if len(row) != len(HEADER):
        return row
    chance = random.Random("|".join(row))
    return [*row, *(chance.choice(["", "0", "7", "8", "29", "30"]) for _ in MORE)]


def usual_row(rng: random.Random, who: str) -> Row:
    age = rng.choice(["5", "33", "47", "80", ""])
    pay = "0" if rng.random() < 0.5 else f"{rng.uniform(0, 90):.1f}"
    return [who, age, pay, rng.choice("ABC"), rng.choice(["true", "false"]), "n"]


def wild_row(rng: random.Random, who: str) -> Row:
    return [who, *(rng.choice(WILD) for _ in range(5))]


def broken_row(rng: random.Random, who: str) -> Row:
    """Too few cells, or too many."""
    return [who] if rng.random() < 0.5 else [*usual_row(rng, who), *MORE, "one", "two"]


def base_table(rng: random.Random) -> list[Row]:
    people = [f"p{i}" for i in range(30)]
    rows = [usual_row(rng, who) for who in people for _ in range(rng.choice([1, 2, 3, 3, 6]))]
    rows += [["p0", "5", "0", "A", "true", "n"]] * 20
    rng.shuffle(rows)
    # One person, the last, whose rows are all alike: each of them moves the same cells.
    return [*rows, *([["alike", "5", "0", "A", "true", "n"]] * MAX_ROWS)]


FAR: Row = ["new", "110", "99", "B", "false", "y"]
"""A row that shares no cell with those of the last person of ``base_table``, nor a bin."""


def neighbours(rows: list[Row], relation: str, unit: str, rng: random.Random) -> Iterator[list[Row]]:
    """Neighbours without end: in turn one that is as far as the relation allows, and one by chance.

    The first one moves as many rows from cell to cell as there can be, whichever rows of a person count.
    """
    far = farthest(rows, relation, unit)
    while True:
        if far:
            yield far.pop(0)
        yield neighbour(rows, relation, unit, rng)


def farthest(rows: list[Row], relation: str, unit: str) -> list[list[Row]]:
    """Neighbours that differ in every column: by as many rows as count, too many, one, or broken ones."""
    if unit == "row":
        kept = rows if relation == "add_remove" else rows[:-1]
        arriving = [[FAR], [["new"]]]
    else:
        kept = rows if relation == "add_remove" else [row for row in rows if row[0] != rows[-1][0]]
        unseen = ["new", "110", "99", "never seen", "false", "y"]
        # Broken rows come on top of as many good ones as count.
        arriving = [[FAR] * MAX_ROWS, [FAR] * 200, [unseen], [FAR] * MAX_ROWS + [["new"]] * 5]
    return [[*kept, *(list(row) for row in unit_rows)] for unit_rows in arriving]


def neighbour(rows: list[Row], relation: str, unit: str, rng: random.Random) -> list[Row]:
    """A neighbour under the relation; adversarial as often as not."""
    changed = [list(r) for r in rows]
    if unit == "row":
        arriving = rng.choice([usual_row, wild_row, broken_row])(rng, rng.choice(["p0", "new", ""]))
        victim = rng.randrange(len(changed))
        if relation == "replace_one":
            changed[victim] = arriving
        elif rng.random() < 0.5:
            del changed[victim]
        else:
            changed.insert(victim, arriving)
        return changed
    people = sorted({r[0] for r in changed})
    leaving, staying = rng.choice([*people, "p0"]), relation == "add_remove" and rng.random() < 0.5
    kept = changed if staying else [r for r in changed if r[0] != leaving]
    if relation == "replace_one" or staying:
        extra = [
            [FAR] * rng.choice([1, MAX_ROWS, 200]),
            [wild_row(rng, rng.choice([" New ", "new", "NEW"])) for _ in range(rng.choice([1, 40]))],
            [usual_row(rng, "new") for _ in range(7)],
            [FAR] * MAX_ROWS + [["new"]] * 5,
        ]
        kept = [list(r) for r in kept]
        for row in rng.choice(extra):
            kept.insert(rng.randrange(len(kept) + 1), list(row))
    return kept


def recorded(
    tmp_path: Path,
    privacy: Mapping[str, object],
    method: str = "mst",
    *,
    wide: bool = False,
    columns: Mapping[str, object] = COLUMNS,
) -> tuple[random.Random, list[Row], Spec, Transcript]:
    """Release a table up to where all is asked: chance for neighbours, the rows, the config, the record."""
    unit = "person" if "unit" in privacy else "row"
    rng = random.Random(f"{privacy['neighbours']}{unit}{privacy['noise']}")
    rows = base_table(rng)
    spec = spec_for(write(tmp_path / "x.csv", rows), privacy, method, wide=wide, columns=columns)
    return rng, rows, spec, observe(spec, tmp_path / "out")


def found_on(tmp_path: Path, spec: Spec, record: Transcript, changed: Iterable[list[Row]]) -> Iterator[str]:
    """What neighbours give away, or by how much one moves an answer too far; a refused question ends it."""
    for rows in changed:
        try:
            yield from faults(record, on_neighbour(tmp_path, spec, record, rows))
        except DpsynthError as error:
            yield str(error)
            return


def on_neighbour(tmp_path: Path, spec: Spec, record: Transcript, rows: list[Row]) -> Transcript:
    """The same release of a neighbour, answered from the record."""
    source = spec.source.model_copy(update={"path": str(write(tmp_path / "y.csv", rows))})
    url = f"sqlite:///{tmp_path}/ledger-{random.randrange(10**9)}.db"
    ledger = spec.ledger.model_copy(update={"url": url})
    other = spec.model_copy(update={"source": source, "ledger": ledger})
    return replay(other, record, tmp_path / "out", tmp_path / "again")
