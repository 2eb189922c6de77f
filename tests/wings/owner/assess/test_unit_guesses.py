"""Whoever repeats is found by the values of a column, whatever its name; things that repeat are none."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.wings.owner.assess import column_guesses as profiling
from dpsynth.wings.owner.assess.column_guesses import profile
from dpsynth.wings.owner.assess.identifier_forms import form_of
from dpsynth.wings.owner.assess.unit_guesses import Texts, identifier_form
from dpsynth.wings.owner.starter.sketch import Unit
from tests.examples import examples
from tests.thinned import some
from tests.wings.owner.assess.repeaters import FORMS, PERSONS, texts, things, visits


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("form", some(FORMS, 9))
def test_a_column_of_persons_is_the_unit_and_no_column_to_publish(form, named):
    column = FORMS[form][0] if named else "f7"
    table = visits(form, column)
    found = profile([table], list(table))
    assert found.unit is not None and found.unit.column == column
    rows = len(table[column])
    assert found.unit.question == f"{PERSONS:,} values of {column} come {rows:,} times: are they persons?"
    assert found.columns[column] == {"type": "identifier"}


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_things_that_repeat_are_no_persons(seed):
    table = texts(things(np.random.default_rng(seed), 10_000))
    found = profile([table], list(table))
    assert (found.unit, found.questions) == (None, ())
    assert [name for name, guess in found.columns.items() if guess["type"] == "identifier"] == []


@pytest.mark.parametrize("form", some(FORMS, 8))
def test_a_row_for_each_person_stays_a_row(form):
    rng = np.random.default_rng(1)
    table = texts({FORMS[form][0]: FORMS[form][1](rng, PERSONS), "ward": rng.integers(1, 80, PERSONS)})
    found = profile([table], list(table))
    assert (found.unit, found.questions) == (None, ())
    assert found.columns[FORMS[form][0]] == {"type": "identifier"}


def test_names_of_few_persons_and_free_text_are_no_columns():
    rng = np.random.default_rng(2)
    surnames = ("Schmidt", "Weber", "Koch", "Wolf", "Braun", "Lange", "Klein", "Neumann")
    names = [f"{a} {b}" for a in ("Anna", "Ben", "Emma", "Jan", "Maria", "Paul") for b in surnames]
    reports = [
        f"Seen on the ward, no complaints about the {a} after {b} days"
        for a in ("knee", "hip", "back", "heart", "eye", "ear")
        for b in range(2, 20)
    ]
    answers = [
        "I agree with this statement",
        "I do not agree with this statement",
        "I have no opinion on this",
    ]
    table = {"f1": rng.choice(names, 9000), "f2": rng.choice(reports, 9000), "f3": rng.choice(answers, 9000)}
    found = profile([texts(table)], list(table))
    assert found.unit is None
    assert [guess["type"] for guess in found.columns.values()] == ["identifier", "identifier", "category"]


def test_a_card_is_within_a_customer_and_a_household_is_asked_about():
    rng = np.random.default_rng(3)
    card = rng.integers(0, 900, 6000)
    table = texts(
        {
            "card_no": [f"K{i:06}" for i in card],
            "konto": [f"{i // 3:010}" for i in card],
            "x": rng.integers(0, 9, 6000),
        }
    )
    assert profile([table], list(table)).unit == Unit("konto", 20)
    person = rng.integers(0, 900, 3000)
    table = texts({"patient_id": person, "household": person // 3, "x": rng.integers(0, 9, 3000)})
    found = profile([table], list(table))
    assert found.unit is not None and (found.unit.column, found.unit.kind) == ("patient_id", "person")
    assert found.questions == ("300 values of household come 3,000 times: are they households?",)
    assert [found.columns[name]["type"] for name in table] == ["identifier", "identifier", "integer"]
    alone = {name: cells for name, cells in table.items() if name != "patient_id"}
    found = profile([alone], list(alone))
    assert found.unit is not None and (found.unit.column, found.unit.kind) == ("household", "household")


def test_persons_that_two_columns_name_together_are_asked_about():
    rng = np.random.default_rng(4)
    person = rng.integers(0, 2000, 6000)
    sex = rng.choice(["F", "M"], 2000)
    clinic, number = person // 400, person % 400
    table = texts({"clinic": clinic, "nr": number, "sex": sex[person], "ward": rng.integers(1, 9, 6000)})
    found = profile([table], list(table))
    # Each number is that of five persons, one in each clinic.
    assert found.unit is not None and found.unit.column == "nr"
    assert (
        "pairs of nr and clinic come 6,000 times in the first rows: are they persons?" in found.questions[0]
    )
    # Where nothing belongs to them together, nothing is asked.
    table["sex"] = texts({"sex": rng.choice(["F", "M"], 6000)})["sex"]
    assert profile([table], list(table)).questions == ()


def visiting() -> dict[str, object]:
    """Visits of 300 patients; one of them has a rare diagnosis 25 times, and one row is a total."""
    rng = np.random.default_rng(5)
    whose = np.repeat(np.arange(300), 4)
    diagnosis = rng.choice(["A", "B", "C"], 1200).astype(object)
    cost = rng.integers(50, 900, 1200)
    seen = [f"2024-0{i % 9 + 1}-11" for i in range(1200)]
    return {
        "patient": [*(f"p{i}" for i in whose), *["p7"] * 25, "p0"],
        "diagnosis": [*diagnosis, *["Rare"] * 25, "A"],
        "cost": [*cost, *[300] * 25, 754_321],
        "fee": [*(cost + 0.5), *[99_000.5] * 25, 1.5],
        "seen": [*seen, *["1988-03-01"] * 25, "2024-01-01"],
        "dose": [*np.tile([10, 20, 40, 400], 300), *[9000] * 12, *[10] * 14],
    }


def seen_of_visits(*parts: int) -> profiling.Profile:
    table = texts(visiting())  # type: ignore[arg-type]
    cuts = [0, *parts, len(table["patient"])]
    batches = [
        {name: cells.slice(start, stop - start) for name, cells in table.items()}
        for start, stop in pairwise(cuts)
    ]
    return profile(batches, list(table))


@pytest.mark.parametrize("parts", [(), (5, 700, 701)])
def test_values_and_bounds_are_those_of_ten_persons(parts):
    found = seen_of_visits(*parts)
    assert found.unit is not None and found.unit.column == "patient"
    columns = {
        name: {k: v for k, v in guess.items() if k != "missing"} for name, guess in found.columns.items()
    }
    assert columns["diagnosis"] == {"type": "category", "values": ["A", "B", "C"], "other": "other"}
    assert (columns["cost"]["min"], columns["cost"]["max"]) == (0, 900)
    assert (columns["fee"]["min"], columns["fee"]["max"]) == (Decimal(0), Decimal(900))
    assert (columns["seen"]["min"], columns["seen"]["max"]) == ("2024-01-01", "2024-12-31")
    assert columns["dose"] == {"type": "ordered", "values": [10, 20, 40, 400]}


def test_a_look_that_counts_rows_is_caught(monkeypatch):
    # The planted fault: rows where persons are to be counted.
    monkeypatch.setattr(profiling, "_count_units", lambda *given: None)
    found = seen_of_visits()
    assert "Rare" in found.columns["diagnosis"]["values"]
    assert found.columns["fee"]["max"] >= 99_000


def test_a_person_that_a_description_names_is_counted_though_nobody_looks_at_the_column():
    table = texts(visiting())  # type: ignore[arg-type]
    found = profile([table], ["diagnosis"], "patient")
    assert found.unit is None and found.columns["diagnosis"]["values"] == ["A", "B", "C"]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=30),
            st.from_regex(r"[0-9]{8,18}", fullmatch=True),
            st.from_regex(r"[A-Z]{0,6}[0-9A-Z² ./+-]{6,34}", fullmatch=True),
        ),
        min_size=20,
        max_size=40,
        unique=True,
    ),
    st.integers(1, 3),
)
@examples(300)
def test_whatever_cells_hold_their_form_is_told_or_none_is(cells, times):
    assert form_of(cells) is None or form_of(cells).words
    texts = Texts(
        "a", dict.fromkeys([*cells, *(f"{cell}0" for cell in cells)], times), True, 80 * times, 0, "text"
    )
    assert identifier_form(texts) is None or texts.counts


@pytest.mark.parametrize("form", ["{:.3E}", "{:.3f}"])
def test_numbers_with_decimals_or_exponents_are_nobodys(form):
    rng = np.random.default_rng(4)
    numbers = 10 + np.floor(90 * rng.random(4_000) * 10) / 10 + rng.integers(1, 4, 4_000) / 1_000
    table = texts({"level": [form.format(number) for number in numbers], "ward": rng.integers(1, 80, 4_000)})
    found = profile([table], list(table))
    assert found.unit is None and found.columns["level"]["type"] == "number"
