"""No synthetic row violates a rule, whatever the rules and whatever the model says."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dpsynth.columns.kinds import layout_of
from dpsynth.columns.rules import Checks, drawing, rules_of
from dpsynth.columns.rules import drawing as solving
from dpsynth.columns.rules import rule as reading
from dpsynth.columns.rules.grids import NONE, OBEYED, VIOLATED
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from tests.columns.rules import independent as plain
from tests.columns.rules.tables import any_codes, any_marginal, checks_of, obeying, texts_of
from tests.examples import examples
from tests.specs import spec_of
from tests.thinned import some

SOME = examples(30, suppress_health_check=list(HealthCheck))
MANY = settings(SOME, max_examples=1500)

SUMS = {
    "a": {"type": "integer", "min": 0, "max": 50, "bins": 5},
    "b": {"type": "number", "min": -20, "max": 20, "bins": 4, "decimals": 1},
    "c": {"type": "number", "min": 0, "max": 5, "bins": 5, "decimals": 2, "missing": ["-1", "3"]},
    "sum": {"type": "number", "min": -10, "max": 60, "decimals": 2, "missing": "7"},
    "all": {"type": "number", "min": -500, "max": 500, "decimals": 4},
    "half": {"type": "derived", "formula": "sum / 2", "decimals": 2},
}


def cells(texts, name):
    return [plain.typed(name, text) for text in texts[name]]


def any_conditions(conditions, seed):
    rules = [plain.written(c) for c in conditions]
    try:
        layout = layout_of(spec_of(plain.COLUMNS, rules).columns)
    except ConfigError:
        assume(False)
    texts = texts_of(layout, rules, 60, seed)
    for condition in conditions:
        assert plain.violations(condition, texts) == 0, plain.written(condition)


_LISTS = st.lists(plain.conditions, min_size=1, max_size=4, unique_by=plain.written)


@SOME
@given(_LISTS, st.integers(0, 99))
def test_rows_obey_any_conditions(conditions, seed):
    any_conditions(conditions, seed)


@pytest.mark.slow
@MANY
@given(_LISTS, st.integers(0, 99))
def test_rows_obey_very_many_conditions(conditions, seed):
    any_conditions(conditions, seed)


def grid_says_no_more_than_rows(condition, seed):
    layout = layout_of(spec_of(plain.COLUMNS).columns)
    checks = checks_of(layout, [plain.written(condition)])
    rng = np.random.default_rng(seed)
    codes = any_codes(layout, rng)(80)
    texts = layout.texts(layout.decode(codes, rng))
    found = [
        plain.value(condition, row) for row in plain.rows_of({n: t.to_pylist() for n, t in texts.items()})
    ]
    for grid in checks.grids:
        for state, value in zip(grid.of(codes), found, strict=True):
            assert not (state == VIOLATED and value is not False), plain.written(condition)
            assert not (state == OBEYED and value is False), plain.written(condition)


@SOME
@given(plain.conditions, st.integers(0, 99))
def test_what_places_decide_is_so_in_every_row(condition, seed):
    try:
        grid_says_no_more_than_rows(condition, seed)
    except ValueError:
        # It names no column.
        assume(False)


def test_a_grid_that_says_too_much_is_caught(monkeypatch):
    def careless(sign, a, b, c, d):
        return (a < c, a >= c) if sign == "<" else (a <= c, a > c)

    monkeypatch.setattr("dpsynth.columns.conditions.order", careless)
    with pytest.raises(AssertionError):
        for seed in range(5):
            grid_says_no_more_than_rows(("<", ("column", "n"), ("column", "x")), seed)


@pytest.mark.parametrize(
    "rules",
    [
        ["sum == a + b"],
        ["a - b == sum", "all == sum * c"],
        ["sum == round(a / 3, 2) - b"],
        ["sum == a + b", "half < 10", "sum <= a"],
        ["all == max(a, c) + min(b, c)", "all > 20 implies a > 30", "sum == c"],
        ["sum == if(a > 20, b, c)", "all == half * 2"],
    ],
)
@pytest.mark.parametrize("seed", some(range(3), 1))
def test_sums_hold_wherever_all_parts_are_there(rules, seed):
    layout = layout_of(spec_of(SUMS, rules).columns)
    texts = texts_of(layout, rules, 400, seed)
    number = {n: np.array([np.nan if t in ("", "7", "-1") else float(t) for t in texts[n]]) for n in SUMS}
    number["c"][np.array(texts["c"]) == "3.00"] = np.nan
    value = dict(number, np=np, nan=np.nan)
    whole = {
        "sum == a + b": "sum - (a + b)", "a - b == sum": "sum - (a - b)", "all == sum * c": "all - sum * c",
        "sum == round(a / 3, 2) - b": "sum - (np.round(a / 3, 2) - b)", "sum == c": "sum - c",
        "all == max(a, c) + min(b, c)": "all - (np.maximum(a, c) + np.minimum(b, c))",
        "sum == if(a > 20, b, c)": "sum - np.where(a > 20, b, c)", "all == half * 2": "all - 2 * half",
        "half < 10": "np.where(half >= 10, 1, 0)", "sum <= a": "np.where(sum > a, 1, 0)",
        "all > 20 implies a > 30": "np.where((all > 20) & (a <= 30), 1, 0)",
    }  # fmt: skip
    for rule in rules:
        off = eval(whole[rule], {"__builtins__": {}}, value)
        if "if(" in rule:
            # A missing condition, or a missing value of the branch not taken, leaves the sum unknown.
            off = np.where(np.isnan(number["a"] + number["b"] + number["c"]), 0, off)
        assert (np.abs(np.nan_to_num(off)) < 1e-9).all(), rule
    for name in ("sum", "all"):
        known = number[name][~np.isnan(number[name])]
        assert SUMS[name]["min"] <= known.min() and known.max() <= SUMS[name]["max"]
        assert len(known) > 100


TIES = {
    "a": {"type": "category", "values": list("pqrstuv")},
    "b": {"type": "integer", "min": 0, "max": 40, "bins": 5},
    "c": {"type": "ordered", "values": ["i", "ii", "iii", "iv"], "missing": False},
    "d": {"type": "date", "min": "2020-01-01", "max": "2020-04-30", "unit": "month"},
    "e": {"type": "number", "min": 0, "max": 10, "bins": 3, "decimals": 1},
}


def partners_seen(texts, left, right):
    found = {}
    for a, b in zip(texts[left], texts[right], strict=True):
        if a and b:
            found.setdefault(a, set()).add(b)
    return found


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_ties_hold(seed):
    rules = ["a determines b", "c <-> b", "d <-> c", "a determines e", "e < 9 or d > '2020-01-31'"]
    layout = layout_of(spec_of(TIES, rules).columns)
    texts = texts_of(layout, rules, 500, seed)
    for left, right in [("a", "b"), ("c", "b"), ("b", "c"), ("d", "c"), ("c", "d"), ("a", "e")]:
        seen = partners_seen(texts, left, right)
        assert seen and all(len(values) == 1 for values in seen.values()), (left, right)
    assert len(set(texts["b"]) - {""}) == 4, "a place of five has no partner among four"


def test_a_check_that_passes_everything_is_caught(monkeypatch):
    order = ("<=", ("column", "from"), ("column", "to"))
    layout = compiled(spec_of(plain.COLUMNS, [plain.written(order)])).layout
    assert plain.violations(order, texts_of(layout, [plain.written(order)], 300)) == 0
    monkeypatch.setattr(
        Checks, "violating_values", lambda self, codes, summed: np.zeros(len(codes["to"]), bool)
    )
    assert plain.violations(order, texts_of(layout, [plain.written(order)], 300)) > 0


def test_a_tie_that_is_forgotten_is_caught(monkeypatch):
    layout = layout_of(spec_of(TIES, ["a determines c"]).columns)
    monkeypatch.setattr(drawing.Tied, "partners", ())
    seen = partners_seen(texts_of(layout, ["a determines c"], 300), "a", "c")
    assert any(len(values) > 1 for values in seen.values())


def test_rows_that_no_repair_mends_are_given_the_values_of_rows_that_obey(monkeypatch):
    # Without repair of cells, only rows that were drawn right obey.
    monkeypatch.setattr(drawing, "repaired", lambda obedience, codes, *_: (dict(codes), (0,)))
    column = {"type": "integer", "min": 0, "max": 999, "bins": 1000, "missing": False}
    columns, rules = {"a": column, "b": column, "free": column}, ["a + b == 1001 and a >= 500"]
    layout = layout_of(spec_of(columns, rules).columns)
    calls = []

    def draw(rows):
        calls.append(rows)
        codes = {name: np.zeros(rows, dtype=np.int64) for name in columns}
        codes["free"] = np.arange(rows) % 1000
        if len(calls) == 3:
            codes["a"][:3], codes["b"][:3] = [500, 600, 700], [501, 401, 301]
        return codes

    rng = np.random.default_rng(0)
    found = obeying(checks_of(layout, rules).rules, layout, 50, draw, None, rng).to_pydict()
    assert set(zip(found["a"], found["b"], strict=True)) == {(500, 501), (600, 401), (700, 301)}
    assert found["free"] == list(range(50)), "columns that no rule is about stay as they were drawn"
    assert len(calls) == 3 <= drawing.ROW_ROUNDS


def test_where_the_model_has_no_row_that_obeys_a_witness_stands_in():
    columns = {
        "a": {"type": "integer", "min": 0, "max": 9},
        "day": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "month"},
        "size": {"type": "ordered", "values": ["S", "M"]},
        "free": {"type": "integer", "min": 0, "max": 9},
        "twice": {"type": "derived", "formula": "a * 2"},
    }
    rules = ["twice == 14 and day > '2020-06-10' and size == 'M'"]
    layout = layout_of(spec_of(columns, rules).columns)
    rng = np.random.default_rng(0)

    def draw(rows):
        return {c.name: rng.integers(0, 2, rows) for c in layout.columns}

    table = obeying(checks_of(layout, rules).rules, layout, 30, draw, None, rng)
    found = table.to_pydict()
    assert set(found["a"]) == {7} and set(found["twice"]) == {14} and set(found["size"]) == {"M"}
    assert len(set(found["free"])) == 2, "columns that no rule is about stay as they were drawn"
    assert table.schema.field("size").type == layout.parts[2].codec.arrow_type


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_as_good_as_many(rows):
    rules = ["n <= m", "c <-> e"]
    layout = layout_of(spec_of(plain.COLUMNS, rules).columns)
    assert len(texts_of(layout, rules, rows)["n"]) == rows


def test_a_value_without_partner_has_none():
    from dpsynth.columns.rules.grids import partners

    rows = np.array([[9.0, 1.0], [8.0, 7.0], [1.0, 2.0]])
    open_ = np.zeros((3, 2), dtype=bool)
    assert partners(rows, open_, both=True).tolist() == [0, 1, NONE]
    assert partners(rows, open_, both=False).tolist() == [0, 0, 1]
    shut = open_.copy()
    shut[1] = True
    assert partners(rows, shut, both=False).tolist() == [0, NONE, 1]


@pytest.mark.parametrize("sign", ["determines", "<->"])
@pytest.mark.parametrize("number", [False, True])
def test_pairs_of_columns_have_one_mapping(sign, number):
    """Whatever each pair's own counts say, all rows decide; of values in bins, too."""
    city = {"type": "category", "values": ["A", "B", "C", "D"]}
    country = {"type": "category", "values": ["W", "X", "Y", "Z"]}
    country = {"type": "number", "min": 0, "max": 4, "bins": 4, "decimals": 3} if number else country
    columns = {"home": city, "land": country, "work": city, "abroad": country, "free": city}
    rules = [f"home, work {sign} land, abroad"]
    layout = layout_of(spec_of(columns, rules).columns)
    rng = np.random.default_rng(4)
    many, few = np.full((5, 5), 1.0), np.full((5, 5), 1.0)
    many[np.arange(4), [1, 0, 3, 2]], few[np.arange(4), np.arange(4)] = 90.0, 40.0
    counts = {("home", "land"): many, ("work", "abroad"): few}
    draw = any_codes(layout, rng)
    table = obeying(checks_of(layout, rules).rules, layout, 400, draw, counts.__getitem__, rng)
    found = {name: texts.to_pylist() for name, texts in layout.texts(table).items()}
    pairs = {
        *zip(found["home"], found["land"], strict=True),
        *zip(found["work"], found["abroad"], strict=True),
    }
    whole = sorted(pair for pair in pairs if all(pair))
    assert len(whole) == 4 and [int(float(b)) if number else "WXYZ".index(b) for _, b in whole] == [
        1,
        0,
        3,
        2,
    ]


def test_values_that_were_found_for_each_column_have_one_mapping_by_their_names():
    from dpsynth.columns.rules.grids import partners_of

    def listed(values):
        return {"type": "category", "values": [*values]}

    columns = {"a": listed("PQR"), "x": listed("12"), "b": listed("RP"), "y": listed("231")}
    rules = rules_of(["a, b determines x, y"], layout := layout_of(spec_of(columns).columns))
    counts = {
        ("a", "x"): [[9, 0, 0], [0, 9, 0], [5, 4, 0], [0, 0, 0]],
        ("b", "y"): [[0, 7, 0, 0], [0, 0, 1, 0]],
    }
    marginal = lambda pair: np.array(counts[pair], float)  # noqa: E731
    (_, first), (_, second) = partners_of(rules, layout, (), marginal)
    # R is 3 by the rows of both, which the first pair's second column doesn't have.
    assert first.tolist() == [0, 1, NONE] and second.tolist() == [1, 2]


def test_marginals_are_asked_of_ties_and_of_numbers_in_wide_bins_alone():
    layout = layout_of(spec_of(plain.COLUMNS, ["n <= m"]).columns)
    rng = np.random.default_rng(0)
    asked = []

    def marginal(clique):
        asked.append(clique)
        return any_marginal(layout, rng)(clique)

    for rule in ("flag or c is missing", "n <= m", "c <-> e"):
        obeying(checks_of(layout, [rule]).rules, layout, 10, any_codes(layout, rng), marginal, rng)
    assert asked == [("n",), ("c", "e")]


def test_rules_on_parts_of_one_moment_are_obeyed_where_few_rows_obey_any():
    """Cells say nothing of the minute: rows are drawn within cells, or take those of rows that obey."""
    ends = {"min": "2015-01-01", "max": "2015-12-31", "format": "%Y-%m-%d %H:%M"}
    columns = {
        "at": {"type": "datetime", "parts": ["hour", "weekday"], **ends},
        "late": {"type": "category", "values": ["no", "yes"]},
    }
    written = [
        "hour(at) == 5 implies late == 'yes'",
        "weekday(at) == 7 implies late == 'no'",
        "minute(at) < 50",
        "(at is missing) == (late is missing)",
    ]
    whole, rng = compiled(spec_of(columns, written)), np.random.default_rng(2)
    table = obeying(
        whole.rules, whole.layout, 3000, any_codes(whole.layout, rng), any_marginal(whole.layout, rng), rng
    )
    at, late = table.column("at").to_pandas(), table.column("late").to_pandas()
    assert set(late[at.dt.hour == 5]) == {"yes"} and set(late[at.dt.day_of_week == 6]) == {"no"}
    assert not ((at.dt.hour == 5) & (at.dt.day_of_week == 6)).any()
    assert at.dt.minute.max() == 49 and (at.isna() == late.isna()).all() and at.dt.hour.nunique() == 24


def test_a_sum_of_moments_leaves_them_their_measured_hours_and_the_sum_its_cell():
    ends = {"min": "2015-01-01", "max": "2016-12-31", "format": "%Y-%m-%d %H:%M", "missing": False}
    columns = {
        name: {"type": "datetime", "unit": "month", "parts": ["hour", "weekday"], **ends}
        for name in ("came", "left")
    }
    columns |= {
        "stay": {"type": "integer", "min": 0, "max": 60, "missing": False},
        "age": {"type": "integer", "min": 0, "max": 9, "missing": False},
    }
    whole, rng = compiled(spec_of(columns, ["stay == days(came, left)"])), np.random.default_rng(2)

    def draw(rows):
        """Days of stay that moments in neighbouring months can have; hours are 9 and 16."""
        month = rng.integers(0, 22, rows)
        found = {c.name: rng.integers(0, c.size, rows) for c in whole.columns}
        hours = {"hour(came)": np.full(rows, 9), "hour(left)": np.full(rows, 16)}
        return found | hours | {"came": month, "left": month + 1, "stay": rng.integers(5, 31, rows)}

    table = obeying(whole.rules, whole.layout, 2000, draw, any_marginal(whole.layout, rng), rng)
    came, left, stay = (table.column(name).to_pandas() for name in ("came", "left", "stay"))
    assert (stay == (left - came).dt.days).all()
    assert (came.dt.hour == 9).all() and (left.dt.hour == 16).mean() > 0.99
    assert 14 <= stay.median() <= 21 and stay.between(5, 30).mean() > 0.95


CLOCK = {
    "planned": {"type": "time", "format": "hhmm", "unit": "hour", "missing": False},
    "left": {"type": "time", "format": "hhmm", "unit": "hour", "missing": False},
    "delay": {"type": "integer", "min": -60, "max": 120, "bins": 12, "missing": False},
    "hour": {"type": "integer", "min": 0, "max": 23, "missing": False},
    "minute": {"type": "integer", "min": 0, "max": 59, "missing": False},
}
CLOCK_RULES = ("delay == minutes(planned, left)", "hour == hour(planned)", "minute == minute(planned)")


def clock_rows():
    """Rows of times of day, of which all that are planned lie at whole and half hours."""
    layout, rng = layout_of(spec_of(CLOCK, CLOCK_RULES).columns), np.random.default_rng(3)
    minutes = {c.name: c for c in layout.columns}["minute"].codec.labels

    def draw(rows):
        hour = rng.integers(5, 22, rows)
        half = rng.integers(0, 2, rows)
        late = rng.integers(0, 45, rows)
        delay = {c.name: c for c in layout.columns}["delay"]
        return {
            "planned": hour,
            "left": (60 * hour + 30 * half + late) // 60,
            "delay": delay.encode(pa.array(late.astype(str))),
            "hour": hour,
            "minute": np.where(half, minutes.index("30"), minutes.index("0")),
        }

    rules = rules_of(CLOCK_RULES, layout)
    found = obeying(rules, layout, 400, draw, any_marginal(layout, rng), rng)
    return {name: texts.to_pylist() for name, texts in layout.texts(found).items()}


def minutes_of(text):
    return int(text) // 100 * 60 + int(text) % 100


def off_by(rows):
    """How far each delay is from the minutes between its times, as they are written."""
    return [
        minutes_of(left) - minutes_of(planned) - int(delay)
        for planned, left, delay in zip(rows["planned"], rows["left"], rows["delay"], strict=True)
    ]


def at_halves(rows):
    return np.mean([minute in ("0", "30") for minute in rows["minute"]])


def test_times_that_are_written_in_minutes_keep_sums_of_minutes_as_they_are_written():
    assert not any(off_by(clock_rows()))


def test_a_part_of_two_sums_is_solved_for_the_one_that_leaves_it_least_room():
    rows = clock_rows()
    assert at_halves(rows) > 0.95
    assert all(int(p) % 100 == int(m) for p, m in zip(rows["planned"], rows["minute"], strict=True))


def test_steps_of_a_second_would_be_noticed(monkeypatch):
    """The planted fault: values of times are a second apart, whatever is written."""
    true = solving._step
    monkeypatch.setattr(solving, "_step", lambda c: 1e6 if c.codec.kind.word == "time" else true(c))
    assert any(off_by(clock_rows()))


def test_sums_in_the_order_of_the_config_would_be_noticed(monkeypatch):
    """The planted fault: the first sum takes the part that a later one needs."""
    monkeypatch.setattr(reading, "_room", lambda turn, layout: (0, 0))
    assert at_halves(clock_rows()) < 0.7
