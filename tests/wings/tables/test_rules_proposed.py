"""A check proposes rules of linked tables in words of one table: pasted there, they load and hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import dpsynth
from dpsynth.config import load
from dpsynth.wings.owner.assess.checking import check
from dpsynth.wings.tables.widened import in_words

from .linked import TABLES, frames, two
from .test_wide_rows import spec_of

CONFIG = """
release: hospital
tables:
  patients:
    source: {{path: {folder}/patients.csv}}
    key: pid
    columns:
      birth: {{type: date, min: 1925-01-01, max: 2024-12-31}}
      reviewed: {{type: date, min: 2015-01-01, max: 2028-12-31}}
      "last seen": {{type: date, min: 2015-01-01, max: 2028-12-31}}
      sex: {{type: category, values: [f, m]}}
  visits:
    source: {{path: {folder}/visits.csv}}
    parent: {{table: patients, key: pid, max_children: 8, roles: 3}}
    order_by: admitted
    columns:
      admitted: {{type: date, min: 2014-01-01, max: 2028-12-31, missing: false}}
      stay: {{type: integer, min: 0, max: 300, missing: false}}
      discharged: {{type: date, min: 2014-01-01, max: 2028-12-31, missing: false}}
      ward: {{type: category, values: [kids, medicine, surgery, maternity], missing: false}}
      department: {{type: category, values: [a, b], missing: false}}
privacy: {{epsilon: 1, delta: 1.0e-6}}
ledger: {{dataset: hospital}}
"""


def hospital(folder: Path, patients: int = 3000, late: int = 0) -> Path:
    """A configuration of patients with visits after their birth, up to the day they were last seen.

    Args:
        late: patients who are born after all of their visits.
    """
    rng, begin = np.random.default_rng(1), np.datetime64("1970-01-01")
    birth = rng.integers(-16_000, 19_000, patients)
    whose = np.repeat(np.arange(patients), np.minimum(rng.geometric(0.3, patients), 8))
    start = np.maximum(birth, 45 * 365)[whose]
    admitted = start + (rng.random(len(whose)) * (54 * 365 - start)).astype(int)
    order = np.lexsort((admitted, whose))
    whose, admitted = whose[order], admitted[order]
    stay = rng.geometric(0.2, len(whose)) - 1
    sex = rng.choice(["f", "m"], patients)
    ward = rng.choice(["kids", "medicine", "surgery", "maternity"], len(whose))
    ward = np.where((sex[whose] == "m") & (ward == "maternity"), "surgery", ward)
    first = pd.Series(admitted).groupby(whose).first().to_numpy()
    last = pd.Series(admitted + stay).groupby(whose).max().to_numpy() + rng.integers(0, 99, patients)
    birth[:late] = last[:late] + 1

    def day(number: np.ndarray) -> np.ndarray:
        return begin + number.astype("m8[D]")

    above = {
        "birth": day(birth),
        "reviewed": day(first + rng.integers(0, 9, patients)),
        "last seen": day(last),
    }
    below = {"admitted": day(admitted), "stay": stay, "discharged": day(admitted + stay), "ward": ward}
    below["department"] = np.where(np.isin(ward, ["kids", "medicine"]), "a", "b")
    pd.DataFrame({"pid": range(patients), **above, "sex": sex}).to_csv(folder / "patients.csv", index=False)
    pd.DataFrame({"pid": whose, **below}).to_csv(folder / "visits.csv", index=False)
    config = folder / "hospital.yaml"
    config.write_text(CONFIG.format(folder=folder))
    return config


def pasted(config: str, block: str) -> str:
    """A configuration with the lines of a proposal, each below the name of its table."""
    (first, *lines), table = block.splitlines(), ""
    assert first == "tables:"
    for line in reversed(lines):
        table = f"{line}\n{table}"
        if line.startswith("  ") and line[2] != " ":
            assert config.count(f"\n{line}\n") == 1
            config, table = config.replace(f"\n{line}\n", f"\n{table}"), ""
    return config


def test_rules_that_hold_in_all_rows_are_proposed_once_in_words_of_their_table(tmp_path):
    config = hospital(tmp_path)
    (found,) = [f for f in check(load(config)).findings if f.write.startswith("tables:")]
    rules = {name: table["constraints"] for name, table in yaml.safe_load(found.write)["tables"].items()}
    assert {
        "patients.birth <= admitted",
        "discharged <= patients.`last seen`",
        "stay == days(admitted, discharged)",
        "ward determines department",
        "ward == 'maternity' implies patients.sex == 'f'",
    } <= {*rules["visits"]}
    # It holds in first visits alone.
    assert not any("reviewed" in rule for rule in [*rules["visits"], *rules.get("patients", [])])
    assert not any("_other_" in rule or "_1_" in rule for rule in rules["visits"])
    again = pasted(config.read_text(), found.write)
    (tmp_path / "again.yaml").write_text(again)
    findings = check(load(tmp_path / "again.yaml")).findings
    assert not any("determines" in f.write for f in findings)
    (stated,) = [f for f in findings if "of the config" in f.what]
    assert "hold in every row" in stated.what


def test_rows_that_break_a_rule_are_counted_in_all_places_together(tmp_path):
    config = hospital(tmp_path, late=40)
    text = pasted(
        config.read_text(), "tables:\n  visits:\n    constraints:\n      - patients.birth <= admitted"
    )
    config.write_text(text)
    said = [f.what for f in check(load(config)).findings if "birth" in f.what]
    # Three visits are told apart, and one stands for all others.
    early = pd.read_csv(tmp_path / "visits.csv").query("pid < 40").groupby("pid").size().clip(upper=4).sum()
    assert [f"{early} of" in w and "break patients.birth <= admitted" in w for w in said].count(True) == 1


@pytest.mark.parametrize(
    ("rule", "table", "said", "rules"),
    [
        ("rent >= 2 * persons_2_age", "persons", "households.rent >= 2 * age", 3),
        ("persons_1_sex == 'f' implies persons_1_trips > 0", "persons", "sex == 'f' implies trips > 0", 3),
        ("persons_3_trips_2_mode == 'car' implies persons_3_age > 17", "trips",
         "mode == 'car' implies persons.age > 17", 6),
        ("persons_3_trips_2_mode == persons_3_trips_1_mode", "persons", "trips_2_mode == trips_1_mode", 3),
        ("persons_3_sex determines persons_3_age", "persons", "sex determines age", 1),
        ("persons_1_sex, persons_2_sex, persons_3_sex <-> persons_1_age, persons_2_age, persons_3_age",
         "persons", "sex <-> age", 1),
        ("persons_1_sex, persons_2_sex <-> persons_1_age, persons_2_age", "households",
         "persons_1_sex, persons_2_sex <-> persons_1_age, persons_2_age", 1),
        ("persons_1_age >= persons_2_age", "households", "persons_1_age >= persons_2_age", 1),
        ("persons >= 2 or rent < 9", "households", "persons >= 2 or rent < 9", 1),
        ("region determines persons_1_sex", "persons", "households.region determines sex", 1),
    ],
)  # fmt: skip
def test_a_rule_of_the_wide_table_is_one_of_the_table_of_its_rows(rule, table, said, rules):
    tables = spec_of(TABLES).tables
    assert in_words(tables, rule)[:2] == (table, said)
    own = in_words(tables, rule)[2]
    assert len(own) == rules and (rule in own or "determines" in rule)
    stated = {
        **TABLES,
        table: {**TABLES[table], "constraints": [*TABLES[table].get("constraints", ()), said]},
    }
    assert {*own} <= {*spec_of(stated).constraints}


def test_check_in_python_shows_them(tmp_path):
    spec = load(hospital(tmp_path, 1500))
    assert "          - patients.birth <= admitted" in repr(dpsynth.check(spec))


def test_columns_that_are_figures_of_rows_below_are_to_be_derived():
    rng, given = np.random.default_rng(4), frames(400)
    persons, homes = given["persons"], given["households"].set_index("house")
    ages = persons.assign(age=persons.age.astype(int)).groupby("house").age
    homes["members"] = ages.size().reindex(homes.index, fill_value=0)
    homes["years"] = ages.sum().reindex(homes.index, fill_value=0)
    homes["oldest one"] = ages.max().reindex(homes.index)
    homes["about"] = homes.years + (rng.random(len(homes)) < 0.02)
    homes["one"] = 1
    columns = {name: {"type": "integer", "min": 0, "max": 500} for name in homes.columns[2:]}
    tables = two()
    tables["households"] |= {"columns": TABLES["households"]["columns"] | columns}
    held = {"households": homes.reset_index().astype(str).replace("nan", ""), "persons": persons}
    found = dpsynth.check(held, tables=tables, epsilon=1, delta=1e-6, dataset="homes").findings
    told = {f.about: yaml.safe_load(f.write)["tables"] for f in found if "a figure of" in f.what}
    assert told == {
        "tables.households.columns.members": {"households": {"derived": {"members": {"count": "persons"}}}},
        "tables.households.columns.years": {
            "households": {"derived": {"years": {"sum": "persons", "of": "age"}}}
        },
        "tables.households.columns.oldest one": {
            "households": {"derived": {"oldest one": {"max": "persons", "of": "age"}}}
        },
    }
    derived = {name: one for block in told.values() for name, one in block["households"]["derived"].items()}
    kept = {c: d for c, d in tables["households"]["columns"].items() if c not in derived}
    tables["households"] |= {"columns": kept, "derived": {**tables["households"]["derived"], **derived}}
    again = dpsynth.check(held, tables=tables, epsilon=1, delta=1e-6, dataset="homes").findings
    assert not any("a figure of" in f.what for f in again)
