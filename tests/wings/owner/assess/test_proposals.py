"""A check proposes the rules that the table keeps, and only those; in the config they load and hold."""

import numpy as np
import pytest
import yaml

from tests.thinned import some
from tests.wings.owner.assess.checked import Checks, about, csv_bytes

ROWS = 2000
DAY = {"type": "date", "min": "2020-01-01", "max": "2024-12-31"}
MOMENT = {"type": "datetime", "min": "2020-01-01", "max": "2024-12-31", "unit": "month"}
COUNT = {"type": "integer", "min": 0, "max": 200}
AMOUNT = {"type": "number", "min": 0, "max": 5000, "decimals": 2}
FLAG = {"type": "boolean"}


def codes(*values):
    return {"type": "category", "values": list(values)}


def dates(rng, rows=ROWS):
    return np.datetime64("2021-01-01") + rng.integers(0, 900, rows).astype("m8[D]")


def amounts(rng, rows=ROWS):
    return rng.integers(100, 90_000, rows) / 100


def sums(rng):
    """Five parts, one of which is mostly zero, and two parts of the total."""
    parts = [amounts(rng) for _ in range(4)]
    late = np.where(rng.random(ROWS) < 0.02, amounts(rng), 0.0)
    total = sum(parts) + late
    insured = np.round(total * rng.random(ROWS), 2)
    cells = dict(zip(("room", "drugs", "lab", "food"), parts, strict=True)) | {"late": late, "total": total}
    cells |= {"insured": insured, "own": total - insured}
    columns = dict.fromkeys(cells, AMOUNT)
    return columns, {name: [f"{x:.2f}" for x in found] for name, found in cells.items()}


def ages(rng):
    year, born = rng.integers(1990, 2020, ROWS), rng.integers(1930, 1985, ROWS)
    cells = {"year": year, "born": born, "age at visit": year - born - rng.integers(0, 2, ROWS)}
    return {name: {**COUNT, "max": 2030} for name in cells}, cells


def ages_at_dates(rng):
    seen, born = dates(rng), np.datetime64("1940-01-01") + rng.integers(0, 20_000, ROWS).astype("m8[D]")
    age = seen.astype("M8[Y]").astype(int) - born.astype("M8[Y]").astype(int) - rng.integers(0, 2, ROWS)
    columns = {"seen": DAY, "born": {**DAY, "min": "1940-01-01"}, "age": COUNT}
    return columns, {"seen": seen, "born": born, "age": age}


def stays(rng):
    admitted, stay = dates(rng), rng.geometric(0.2, ROWS) - 1
    cells = {"admitted": admitted, "discharged": admitted + stay.astype("m8[D]"), "stay": stay}
    return {"admitted": DAY, "discharged": DAY, "stay": COUNT}, cells


def orders(rng):
    """Three dates in order, and a count within a count."""
    first = dates(rng)
    second = first + rng.integers(0, 60, ROWS).astype("m8[D]")
    third = second + rng.integers(0, 60, ROWS).astype("m8[D]")
    most = rng.integers(0, 60, ROWS)
    cells = {"a": first, "b": second, "c": third, "cards": most, "open cards": rng.binomial(most, 0.6)}
    return {"a": DAY, "b": DAY, "c": DAY, "cards": COUNT, "open cards": COUNT}, cells


def parts_of_times(rng):
    start = np.datetime64("2021-01-01T00:00") + rng.integers(0, 900 * 1440, ROWS).astype("m8[m]")
    minutes = start.astype("M8[m]").astype(int) % 1440
    clock = rng.integers(0, 24, ROWS) * 100 + rng.integers(0, 60, ROWS)
    took = rng.integers(1, 5000, ROWS)
    cells = {
        "start": start,
        "end": start + took.astype("m8[m]"),
        "took": took,
        "hour": minutes // 60,
        "month": start.astype("M8[M]").astype(int) % 12 + 1,
        "weekday": (start.astype("M8[D]").astype(int) + 3) % 7 + 1,
        "planned": clock,
        "minute": clock % 100,
    }
    columns = {name: {**COUNT, "max": 5000} for name in cells}
    columns |= {"start": MOMENT, "end": MOMENT, "planned": {"type": "time", "format": "hhmm"}}
    return columns, cells


def towns(rng):
    """A code within a code, a hierarchy, and two names of one thing."""
    town = rng.integers(0, 24, ROWS)
    cells = {
        "code": [f"{'ABCD'[t % 4]}{10 + t}" for t in town],
        "chapter": ["ABCD"[t % 4] for t in town],
        "town": [f"town {t}" for t in town],
        "region": [f"region {t % 6}" for t in town],
        "country": [f"country {t % 3}" for t in town],
        "land": [f"land {t % 3}" for t in town],
    }
    columns = {name: codes(*sorted(set(found))) for name, found in cells.items()}
    columns["code"] = {"type": "text", "pattern": "[A-D][0-9]{2}", "keep": 3}
    return columns, cells


def gaps(rng):
    """Cells that are missing together, or where another one says so."""
    alive, taken, ward = rng.random(ROWS) < 0.7, rng.random(ROWS) < 0.5, rng.integers(0, 4, ROWS)
    cells = {
        "alive": np.where(alive, "yes", "no"),
        "died": np.where(alive, "", dates(rng).astype(str)),
        "systolic": np.where(taken, rng.integers(90, 180, ROWS).astype(str), ""),
        "diastolic": np.where(taken, rng.integers(50, 90, ROWS).astype(str), ""),
        "pulse": np.where(taken & (rng.random(ROWS) < 0.5), rng.integers(40, 150, ROWS).astype(str), ""),
        "ward": [f"w{w}" for w in ward],
        "bed": np.where((ward == 0) | (rng.random(ROWS) < 0.3), "", rng.integers(1, 30, ROWS).astype(str)),
    }
    columns = dict.fromkeys(cells, COUNT) | {
        "alive": FLAG,
        "died": DAY,
        "ward": codes("w0", "w1", "w2", "w3"),
    }
    return columns, cells


def ratios(rng):
    price, quantity, hours = amounts(rng) / 100, rng.integers(1, 30, ROWS), rng.integers(5, 60, ROWS)
    net = amounts(rng)
    cells = {
        "price": [f"{x:.2f}" for x in np.round(price, 2)],
        "quantity": quantity,
        "amount": [f"{x:.2f}" for x in np.round(price, 2) * quantity],
        "net": [f"{x:.2f}" for x in net],
        "gross": [f"{x:.2f}" for x in np.round(net * 1.19, 2)],
        "hours": hours,
        "pace": [f"{x:.2f}" for x in quantity / hours],
    }
    return dict.fromkeys(cells, AMOUNT) | {"quantity": COUNT, "hours": COUNT}, cells


def implications(rng):
    schooling = rng.choice([8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18], ROWS)
    role = rng.choice(["husband", "wife", "child"], ROWS)
    cells = {
        "schooling": schooling,
        "graduate": np.where(schooling >= 16 - 3 * (rng.random(ROWS) < 0.5), "yes", "no"),
        "role": role,
        "sex": np.where(role == "wife", "F", np.where(role == "husband", "M", rng.choice(["F", "M"], ROWS))),
    }
    columns = {"schooling": {**COUNT, "max": 20}, "graduate": FLAG}
    return columns | {"role": codes("husband", "wife", "child"), "sex": codes("F", "M")}, cells


TABLES = {
    "sums of any number of parts": (
        sums, {"total == room + drugs + lab + food + late", "insured == total - own"},
    ),
    "ages within a year": (ages, {"year >= born + `age at visit`", "year <= born + `age at visit` + 1"}),
    "ages at dates": (
        ages_at_dates, {"year(seen) >= age + year(born)", "year(seen) <= age + year(born) + 1"},
    ),
    "the time between dates": (stays, {"stay == days(admitted, discharged)"}),
    "orders": (orders, {"a <= b", "b <= c", "`open cards` <= cards"}),
    "parts of dates and times": (
        parts_of_times,
        {
            "took == minutes(start, end)", "hour == hour(start)", "month == month(start)",
            "weekday == weekday(start)", "minute == minute(planned)", "start <= end",
        },
    ),
    "hierarchies": (
        towns,
        {
            "chapter == first(code, 1)", "code determines town", "town determines chapter",
            "town determines region", "region determines country", "country <-> land",
        },
    ),
    "missing cells": (
        gaps,
        {"alive == (died is missing)", "(systolic is missing) == (diastolic is missing)",
         "systolic is missing implies pulse is missing", "ward == 'w0' implies bed is missing"},
    ),
    "products, quotients and multiples": (
        ratios,
        {"amount == round(price * quantity, 2)", "gross == round(1.19 * net, 2)",
         "pace == round(quantity / hours, 2)"},
    ),
    "implications": (
        implications,
        {"schooling >= 16 implies graduate", "graduate implies schooling >= 13",
         "role == 'husband' implies sex == 'M'", "role == 'wife' implies sex == 'F'"},
    ),
}  # fmt: skip


def checked(checks, made, seed=3, **config):
    """The findings about rules of a made-up table."""
    columns, cells = made(np.random.default_rng(seed))
    table = csv_bytes(tuple(cells), list(zip(*cells.values(), strict=True)))
    return about(checks.of(table, columns, **config), "constraints")


def proposed(findings):
    return [
        rule for finding in findings if finding.write for rule in yaml.safe_load(finding.write)["constraints"]
    ]


@pytest.fixture
def checks(tmp_path):
    return Checks(tmp_path)


@pytest.mark.parametrize("name", some(TABLES, 5))
def test_a_rule_that_the_table_keeps_is_proposed_and_pasted_it_loads_and_holds(checks, name):
    made, wanted = TABLES[name]
    found = checked(checks, made)
    rules = proposed(found)
    assert set(rules) == wanted
    (finding,) = found
    assert "without the table" in finding.remedy and finding.cells == 0
    (again,) = checked(checks, made, constraints=rules)
    assert "of the config hold" in again.what and not again.write


def test_what_few_rows_contradict_is_told_with_their_number_and_what_many_do_is_not(checks):
    def bills(wrong):
        def made(rng):
            columns, cells = sums(rng)
            total = [*(f"{float(x) + 9:.2f}" for x in cells["total"][:wrong]), *cells["total"][wrong:]]
            names = ("room", "drugs", "lab", "food", "late")
            kept = {name: cells[name] for name in names} | {"total": total}
            return {name: columns[name] for name in kept}, kept

        return made

    (few,) = checked(checks, bills(5))
    assert few.cells == 5 and "# in all but 5 of 2,000 rows" in few.write
    rules = proposed([few])
    (stated,) = checked(checks, bills(5), constraints=rules)
    assert stated.what == f"5 of 2,000 rows break {rules[0]}" and not stated.remedy
    assert not checked(checks, bills(60))
    (stated,) = checked(checks, bills(60), constraints=rules)
    assert "60 of 2,000 rows" in stated.what and "the rule that you mean" in stated.remedy


def noise(rng, rows=ROWS):
    """Flags, counts that are mostly 0, dates, codes and gaps that have nothing to do with each other."""
    cells = {
        "flag": rng.integers(0, 2, rows),
        "mostly": rng.integers(0, 50, rows) * (rng.random(rows) < 0.05),
        "rare": rng.poisson(0.2, rows),
        "count": rng.integers(0, 50, rows),
        "from": dates(rng, rows),
        "to": dates(rng, rows),
        "ward": rng.choice(["a", "b", "c"], rows, p=[0.98, 0.01, 0.01]),
        "pay": np.where(rng.random(rows) < 0.3, "", rng.integers(0, 90, rows).astype(str)),
        "rent": np.where(rng.random(rows) < 0.3, "", rng.integers(0, 90, rows).astype(str)),
        "id": [f"p{i}" for i in rng.permutation(rows)],
    }
    columns = dict.fromkeys(cells, COUNT) | {"from": DAY, "to": DAY, "ward": codes("a", "b", "c")}
    return columns | {"id": {"type": "category", "open": True}}, cells


@pytest.mark.parametrize("rows", some([80, 300, ROWS], 1))
def test_what_agrees_by_chance_is_not_proposed(checks, rows):
    assert not checked(checks, lambda rng: noise(rng, rows))


def test_an_order_that_bounds_or_other_orders_imply_is_not_proposed(checks):
    def made(rng):
        low = rng.integers(0, 40, ROWS)
        cells = {"a": low, "b": low + rng.integers(0, 9, ROWS), "far": rng.integers(100, 200, ROWS)}
        cells["c"] = cells["b"] + rng.integers(0, 9, ROWS)
        return dict.fromkeys(cells, COUNT), cells

    assert set(proposed(checked(checks, made))) == {"a <= b", "b <= c"}


def test_a_rule_of_a_sample_that_the_other_rows_break_is_not_proposed(checks, monkeypatch):
    """Planted: an order that holds in all rows but those that a sample of a few hundred leaves out."""
    monkeypatch.setattr("dpsynth.wings.owner.assess.row_sample._MOST", 300)

    def made(rng):
        low = rng.integers(0, 90, ROWS)
        cells = {"a": low, "b": low + 1, "c": low + rng.integers(0, 20, ROWS), "d": low + 2}
        cells["d"][:100] = 0
        return dict.fromkeys(cells, COUNT), cells

    found = proposed(checked(checks, made))
    assert "b == a + 1" in found or "a == b - 1" in found
    assert "a <= c" in found and not any("d" in rule for rule in found)


def test_so_many_rules_are_proposed_and_no_more(checks):
    def made(rng):
        low = rng.integers(0, 40, ROWS)
        cells = {f"x{i}": low + rng.integers(0, 50, ROWS) for i in range(40)} | {"low": low}
        return dict.fromkeys(cells, COUNT), cells

    assert len(proposed(checked(checks, made))) == 30


def test_rules_of_a_period_are_those_of_its_rows(checks, monkeypatch):
    """Planted: an order that all rows of another year break."""
    monkeypatch.setattr("dpsynth.wings.owner.assess.row_sample._MOST", 300)

    def made(rng):
        seen, low = dates(rng), rng.integers(0, 60, ROWS)
        later = seen.astype("M8[Y]").astype(int) + 1970 > 2021
        cells = {"seen": seen, "a": low, "b": np.where(later, low + rng.integers(0, 30, ROWS), 0)}
        return {"seen": DAY, "a": COUNT, "b": COUNT}, cells

    period = {"every": "year", "column": "seen"}
    columns, cells = made(np.random.default_rng(3))
    table = csv_bytes(tuple(cells), list(zip(*cells.values(), strict=True)))
    assert "a <= b" in proposed(about(checks.of(table, columns, "2022", period=period), "constraints"))
    assert "a <= b" not in proposed(about(checks.of(table, columns, "2021", period=period), "constraints"))


def test_of_columns_whose_missing_cells_rules_decide_no_other_is_proposed(checks):
    def homes(rng):
        second, person = rng.random(ROWS) < 0.5, {"type": "integer", "min": 0, "max": 99, "missing": True}
        cells = {"persons": 1 + second}
        cells |= {c: np.where(second, rng.integers(0, 99, ROWS).astype(str), "") for c in ("2nd age", "rent")}
        return {"persons": COUNT, "2nd age": person, "rent": person}, cells

    assert any("missing" in rule for rule in proposed(checked(checks, homes)))
    rules = [f"(persons >= 2) == (`{c}` is not missing)" for c in ("2nd age", "rent")]
    assert not proposed(checked(checks, homes, constraints=rules))
