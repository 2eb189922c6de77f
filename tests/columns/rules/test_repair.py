"""Rules that hold in the private table cost its columns and measured pairs little."""

import numpy as np
import pytest

from dpsynth.columns.kinds import layout_of
from dpsynth.columns.rules import Drawing, Tied, drawing, repair, rules_of
from dpsynth.columns.rules.drawing import Finer
from dpsynth.columns.rules.grids import Obedience, broken_in
from tests.columns.rules.tables import any_codes, any_marginal
from tests.specs import spec_of
from tests.thinned import some

ROWS = 4000
STAYS = {
    "admission": {
        "type": "date",
        "min": "2024-01-01",
        "max": "2025-12-31",
        "unit": "month",
        "missing": False,
    },
    "discharge": {
        "type": "date",
        "min": "2024-01-01",
        "max": "2025-12-31",
        "unit": "month",
        "missing": False,
    },
    "stay": {"type": "integer", "min": 0, "max": 60, "missing": False},
    "cost": {"type": "number", "min": 0, "max": 30000, "bins": 30, "decimals": 2, "missing": False},
}
BILLS = {
    name: {"type": "number", "min": 0, "max": top, "bins": 20, "decimals": 2, "missing": False}
    for name, top in (("drugs", 4000), ("room", 8000), ("bill", 12000))
}
YEARS = {
    "year": {"type": "integer", "min": 1990, "max": 2009, "missing": False},
    "born": {"type": "integer", "min": 1940, "max": 1959, "missing": False},
    "age": {"type": "integer", "min": 20, "max": 80, "missing": False},
}
TIMES = {
    "sched": {"type": "integer", "min": 0, "max": 2359, "bins": 32, "missing": False},
    "hour": {"type": "integer", "min": 0, "max": 23, "missing": False},
    "minute": {"type": "integer", "min": 0, "max": 59, "missing": False},
}


DEPARTURES = {
    "sched": {"type": "time", "format": "hhmm", "missing": False},
    "dep": {"type": "time", "format": "hhmm", "missing": False},
    "delay": {"type": "integer", "min": -30, "max": 240, "missing": False},
    "minute": {"type": "integer", "min": 0, "max": 59, "missing": False},
}


def departures(rng):
    hour = np.clip(rng.normal(13, 4, ROWS).astype(int), 1, 18)
    sched = 60 * hour + 5 * rng.integers(0, 12, ROWS)
    delay = np.where(rng.random(ROWS) < 0.7, rng.integers(-9, 4, ROWS), rng.integers(0, 200, ROWS))
    clock = {"sched": sched, "dep": sched + delay}
    texts = {name: [f"{t // 60:02}{t % 60:02}" for t in times] for name, times in clock.items()}
    return texts | {"delay": delay, "minute": sched % 60}


def times(rng):
    hour = np.clip(rng.normal(13, 4, ROWS).astype(int), 5, 23)
    minute = np.where(rng.random(ROWS) < 0.5, 5 * rng.integers(0, 12, ROWS), (7 * hour) % 60)
    return {"sched": 100 * hour + minute, "hour": hour, "minute": minute}


def stays(rng):
    admission = rng.integers(0, 690, ROWS)
    stay = np.minimum(rng.gamma(1.2, 3, ROWS).astype(int) + 1, 40)
    days = np.datetime64("2024-01-01") + np.array([admission, admission + stay]).astype("m8[D]")
    return {"admission": days[0], "discharge": days[1], "stay": stay, "cost": 500.0 + 600 * stay}


def bills(rng):
    drugs, room = (
        rng.gamma(1.2, 500, ROWS).clip(0, 3999).round(2),
        rng.gamma(2, 1200, ROWS).clip(0, 7999).round(2),
    )
    return {"drugs": drugs, "room": room, "bill": (drugs + room).round(2)}


def years(rng):
    born = rng.integers(1940, 1960, ROWS)
    year = np.clip(born + rng.integers(40, 60, ROWS), 1990, 2009)
    return {"year": year, "born": born, "age": year - born - rng.integers(0, 2, ROWS)}


class Case:
    """Rows of a table that obeys its rules, drawn without what the rules say: some columns by themselves."""

    def __init__(self, columns, rules, make, alone, measured=(), seed=0):
        import pyarrow as pa

        self.rng = np.random.default_rng(seed)
        self.layout = layout_of(spec_of(columns, rules).columns)
        table = make(self.rng)
        self.codes = {
            c.name: c.encode(pa.array([str(v) for v in table[c.name]], pa.string()))
            for c in self.layout.columns
        }
        for name in alone:
            self.codes[name] = self.rng.permutation(self.codes[name])
        sizes = {c.name: c.size for c in self.layout.columns}

        def marginal(clique):
            (name,) = clique
            return np.bincount(self.codes[name], minlength=sizes[name]).astype(float)

        self.tied = Tied(
            rules_of(rules, self.layout), self.layout, marginal, frozenset(map(frozenset, measured))
        )

    def released(self):
        """The codes of the released rows, and their repairs."""
        drawn = Drawing(self.tied, lambda rows: self.codes, self.rng)
        found = drawn.rows(*self.tied.repaired(self.codes, self.rng))
        texts = self.layout.texts(found.table)
        return {c.name: c.encode(texts[c.name]) for c in self.layout.columns}, found.repairs

    def off(self, found, *names):
        """Total variation of some columns together."""
        size = 1 << 12
        cells = [sum(codes[n] * 100**i for i, n in enumerate(names)) for codes in (self.codes, found)]
        values = np.unique(np.concatenate(cells))
        assert values.size < size
        counts = [np.bincount(np.searchsorted(values, c), minlength=values.size) for c in cells]
        return np.abs(counts[0] - counts[1]).sum() / 2 / ROWS


CASES = {
    "stay": (STAYS, ["stay == days(admission, discharge)"], stays, ["discharge"], [("stay", "cost")]),
    "bill": (BILLS, ["bill == drugs + room"], bills, ["bill"], []),
    "years": (YEARS, ["year >= born + age", "year <= born + age + 1"], years, ["age"], []),
}


@pytest.mark.parametrize("name", some(CASES, 1))
def test_a_rule_that_holds_costs_no_column_and_no_measured_pair_more_than_a_fiftieth(name):
    case = Case(*CASES[name])
    found, repairs = case.released()
    for column in case.codes:
        assert case.off(found, column) < 0.02, column
    for pair in CASES[name][4]:
        assert case.off(found, *pair) < 0.03, pair
    assert repairs.rows == ROWS and min(repairs.broken) > 0.05 * ROWS


def test_a_pair_is_kept_though_a_column_of_its_rule_has_wide_bins():
    # The draw can only guess where in its bin of 75 a time lies, and the rule contradicts most guesses.
    pairs = [("hour", "minute"), ("sched", "minute"), ("sched", "hour")]
    case = Case(TIMES, ["sched == 100 * hour + minute"], times, [], pairs)
    found, repairs = case.released()
    assert repairs.broken[0] > 0.5 * repairs.rows
    # Aims over pieces of bins, which the draw guessed, leave 0.255 and more.
    assert case.off(found, "hour", "minute") < 0.24
    for column in case.codes:
        assert case.off(found, column) < 0.04, column


def test_a_coarse_part_of_a_sum_follows_from_the_others():
    # Cells of hours agree with a delay in cells of minutes, which minutes of the schedule contradict.
    rules = ["delay == minutes(sched, dep)", "minute == minute(sched)"]
    case = Case(DEPARTURES, rules, departures, ["minute"], [("sched", "delay"), ("sched", "dep")])
    found, repairs = case.released()
    for column in case.codes:
        assert case.off(found, column) < 0.02, column
    for pair in (("sched", "delay"), ("sched", "dep")):
        assert case.off(found, *pair) < 0.05, pair
    assert repairs.changed["dep"] > 0.1 * ROWS > 3 * repairs.changed["delay"]


def test_a_small_part_of_a_sum_of_sums_keeps_its_cells():
    # A fee of some coins decides if the grand total is in the next bin, by values inside wide bins alone.
    tops = {"drugs": 4000, "room": 8000, "total": 12000, "fee": 40, "grand": 12040}
    columns = {name: {**BILLS["bill"], "max": top} for name, top in tops.items()}
    columns["fee"]["bins"] = 40

    def charged(rng):
        rows = bills(rng)
        total, fee = rows.pop("bill"), rng.gamma(2, 4, ROWS).clip(0, 39).round(2)
        return rows | {"total": total, "fee": fee, "grand": (total + fee).round(2)}

    case = Case(columns, ["total == drugs + room", "grand == total + fee"], charged, ["fee"])
    found, _ = case.released()
    for column in case.codes:
        assert case.off(found, column) < 0.02, column


def test_a_table_that_is_not_repaired_is_caught(monkeypatch):
    # Rows that violate get the values of rows that obey, as they would without any repair.
    monkeypatch.setattr(drawing, "repaired", lambda obedience, codes, *_: (dict(codes), (0,)))
    case = Case(*CASES["stay"])
    found, _ = case.released()
    assert max(case.off(found, column) for column in case.codes) > 0.1


def test_parts_that_are_not_solved_for_their_sum_are_caught(monkeypatch):
    monkeypatch.setattr(
        drawing, "solved_for_parts", lambda checks, turn, codes, values, *_, **__: dict(values)
    )
    monkeypatch.setattr(drawing, "VALUE_ROUNDS", 0)
    case = Case(*CASES["stay"])
    found, _ = case.released()
    assert case.off(found, "stay") > 0.3


def test_rows_that_obey_keep_their_cells():
    case = Case(STAYS, ["admission <= discharge"], stays, [], [("admission", "discharge")])
    found, repairs = case.released()
    assert all(np.array_equal(found[c], case.codes[c]) for c in ("stay", "cost"))
    assert repairs.broken == (0,) and set(repairs.changed) == {"admission", "discharge"}
    assert all(np.array_equal(found[c], case.codes[c]) for c in case.codes)


def test_no_row_becomes_missing_to_obey_a_rule():
    columns = {n: {"type": "integer", "min": 0, "max": 19} for n in ("a", "b")}
    layout = layout_of(spec_of(columns, ["a <= b"]).columns)
    rng = np.random.default_rng(0)
    codes = {"a": rng.integers(0, 20, 2000), "b": rng.integers(0, 20, 2000)}
    rules = rules_of(["a <= b"], layout)
    found, _ = repair.repaired(Obedience(rules, layout), codes, codes, rng)
    assert (found["a"] <= found["b"]).all() and max(found["a"].max(), found["b"].max()) == 19


def test_columns_that_are_kept_stay_and_rules_that_share_only_these_are_obeyed_apart():
    columns = {n: {"type": "integer", "min": 0, "max": 19, "missing": False} for n in ("a", "b", "c")}
    layout = layout_of(spec_of(columns, ["a <= b", "a + c == 19"]).columns)
    rng = np.random.default_rng(0)
    codes = {n: rng.integers(0, 20, 2000) for n in columns}
    obedience = Obedience(rules_of(["a <= b", "a + c == 19"], layout), layout)
    found, broken = repair.repaired(obedience, codes, codes, rng, kept=("a",))
    assert np.array_equal(found["a"], codes["a"]) and min(broken) > 500
    assert (found["a"] <= found["b"]).all() and (found["a"] + found["c"] == 19).all()
    moved, _ = repair.repaired(obedience, codes, codes, np.random.default_rng(0))
    assert (moved["a"] != codes["a"]).mean() > 0.3


def test_moves_change_what_is_left_to_each_aim_by_the_rows_that_moved():
    case = Case(TIMES, ["sched == 100 * hour + minute"], times, [], [("hour", "minute")])
    columns, measured = ("sched", "hour", "minute"), [frozenset(("hour", "minute"))]
    codes = {c: case.codes[c].astype(np.int64) for c in columns}
    aims, again = (
        repair._Aims.of(case.tied.obedience, codes, codes, columns, measured, {}) for _ in range(2)
    )
    before = aims.loss
    assert not aims.residuals.any() and before == 0
    for rng in (None, case.rng):
        rows = case.rng.permutation(ROWS)[:500]
        new = {c: codes[c][case.rng.permutation(ROWS)[:500]] for c in columns}
        lowered = aims.moved(columns, rows, new, rng)
        moved = (aims.codes("hour")[rows] == new["hour"]).mean()
        assert (moved == 1) if rng is None else (moved < 1)
        if rng is None:
            assert aims.loss == pytest.approx(before - lowered) and aims.loss > 0
    for aim in {aim for of_column in aims.aims.values() for aim in of_column}:
        shape = aim.places.shape[1:]
        lines = aims.coarse if len(aim.columns) > 1 else aims.line
        off = np.zeros(shape)
        for table, sign in ((aims, 1), (again, -1)):
            np.add.at(off, tuple(table.lines[lines[c]] for c in aim.columns), sign)
        for places in aim.places:
            rows_off = np.zeros(places.max() + 1)
            np.add.at(rows_off, places, off)
            want = 16 * aims.weights[places] * rows_off[places]
            assert np.array_equal(aims.residuals[places], want)
    assert aims.residuals[0] == 0 and not aims.rows.any()


@pytest.mark.parametrize(
    "rule",
    [
        "stay == days(admission, discharge)",
        "admission <= discharge or cost > 9000",
        "year(discharge) == 2025 implies stay < 9",
        "cost + 100 * stay < 20000 and not stay == 7",
        "stay is missing or min(stay, 30) >= cost / 1000",
    ],
)
def test_rules_over_rows_close_the_cells_that_their_tables_close(rule, monkeypatch):
    columns = {n: {**declared, "missing": True} for n, declared in STAYS.items()}
    layout = layout_of(spec_of(columns, [rule]).columns)
    rng = np.random.default_rng(0)
    codes, rules = any_codes(layout, rng)(400), rules_of([rule], layout)
    (table,) = Obedience(rules, layout).parts
    monkeypatch.setattr("dpsynth.columns.rules.grids._MOST_CELLS", 0)
    (rows,) = Obedience(rules, layout).parts
    assert table.closed is not None and rows.closed is None
    for moving in (None, *table.columns):
        assert np.array_equal(table.broken(codes, moving), rows.broken(codes, moving)), moving
    assert broken_in([rows], codes).any()


def test_a_finer_cell_lies_in_one_cell_of_the_table_and_missing_stays_missing():
    columns = {
        "a": {"type": "number", "min": 0, "max": 9, "bins": 3, "decimals": 1},
        "b": {"type": "integer", "min": 0, "max": 200, "bins": 10, "missing": ["-1"]},
    }
    layout = layout_of(spec_of(columns, ["a <= b"]).columns)
    rng = np.random.default_rng(0)
    finer = Finer.of(rules_of(["a <= b"], layout), layout, any_marginal(layout, rng))
    codes = any_codes(layout, rng)(3000)
    fine = finer.fine(codes, rng)
    assert set(finer.cell_of) == {"a", "b"} and all(fine[c].max() > codes[c].max() for c in codes)
    assert all(np.array_equal(coarse, codes[c]) for c, coarse in finer.coarse(fine).items())
    for column, before in zip(finer.layout.columns, layout.columns, strict=True):
        drawn = before.codec.text(column.decode(fine[column.name], rng))
        assert np.array_equal(before.encode(drawn), codes[column.name])


def test_repairs_of_pieces_add_up():
    first = repair.RuleRepairs(10, (1, 2), {"a": 3})
    both = repair.RuleRepairs().with_more(first).with_more(repair.RuleRepairs(30, (1, 0), {"a": 1}))
    assert both == repair.RuleRepairs(40, (2, 2), {"a": 4})
    assert both.shares_changed == {"a": 0.1}


def test_a_duration_is_a_part_of_a_sum_that_keeps_its_cell():
    stay = {"type": "duration", "min": "PT0S", "max": "PT10H", "missing": False}
    minutes = {"type": "integer", "min": 0, "max": 900, "bins": 30, "missing": False}
    hours = np.arange(ROWS) % 10
    rows = {"stay": [f"PT{h}H30M" for h in hours], "minutes": 60 * hours + 30}
    rule = "minutes == round(seconds(stay) / 60, 0)"
    case = Case({"stay": stay, "minutes": minutes}, [rule], lambda rng: rows, ["minutes"])
    found, _ = case.released()
    assert case.tied.leavers == () and case.off(found, "stay") < 0.05


def test_rows_that_break_several_rules_are_not_exchanged_for_rows_that_have_nothing_to_break():
    number = {"type": "integer", "min": 0, "max": 50}
    columns = {"rows": {"type": "integer", "min": 0, "max": 4, "missing": False}}
    columns |= {f"{c}{i}": number | {"max": 50 * (1 + (c == "y"))} for i in range(1, 5) for c in "xy"}
    rules = [f"(rows >= {i}) == ({c}{i} is not missing)" for i in range(1, 5) for c in "xy"]
    rules += [f"y{i} == 2 * x{i}" for i in range(1, 5)]

    def make(rng):
        rows = rng.integers(0, 5, ROWS)
        table = {"rows": rows}
        for i in range(1, 5):
            number = rng.binomial(50, 0.4, ROWS)
            held = np.flatnonzero(rows >= i)
            x, y = np.full((2, ROWS), "", object)
            x[held], y[held] = number[held], 2 * rng.permutation(number[held])
            table |= {f"x{i}": x, f"y{i}": y}
        return table

    case = Case(columns, rules, make, [])
    found, repairs = case.released()
    assert min(repairs.broken[-4:]) > 500
    assert max(case.off(found, column) for column in case.codes) < 0.02
