"""Rules that can't be kept are refused where they stand, before anything is read."""

import time

import pytest

from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from tests.specs import spec_of

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 110},
    "married": {"type": "category", "values": ["yes", "no"]},
    "education": {"type": "category", "values": ["HS", "BA", "PhD"]},
    "num": {"type": "integer", "min": 1, "max": 3},
    "admitted": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "month"},
    "a": {"type": "number", "min": 0, "max": 10, "decimals": 1},
    "b": {"type": "number", "min": 0, "max": 10, "decimals": 2},
    "total": {"type": "number", "min": 0, "max": 20, "decimals": 2},
    "id": {"type": "identifier", "surrogates": "P000001"},
    "gone": {"type": "identifier"},
    "twice": {"type": "derived", "formula": "total * 2"},
    "found": {"type": "number", "bounds": "private", "decimals": 2},
}

REFUSED = {
    "age < 15 implies maried == 'no'": "names 'maried', which is no column of the synthetic "
    "table (did you mean 'married'?)",
    "id != 'P000001'": "names 'id', an identifier",
    "gone == 'x'": "names 'gone'",
    "married == 'No'": "compares 'married' with 'No', which is none of its values (did you mean 'no'?)",
    "married in ['yes', 'noo']": "compares 'married' with 'noo', which is none of its values (did",
    "age < 'x'": "compares a number with a text",
    "age + 1": "comes to a number; it must be a comparison",
    "age <": "has the end where",
    "age = 3": "write == to compare",
    "1 == 1": "names no column",
    "age in 3": "has 3 where [ should stand",
    "age in [3": "has the end where , or ] should stand",
    "age not 3": "has 3 where in should stand",
    "age is 3": "has 3 where missing should stand",
    "admitted <= '2020-13-01'": "compares with '2020-13-01', which is no date",
    "a <-> b + 1": "needs columns on each side of <->",
    "age <-> age": "ties a column to itself",
    "age, num <-> married": "must have as many columns on the right of <-> as on the left",
    "num, age <-> married, b": "gives 'married' and 'b' one mapping: declare them alike",
    "education, married determines b, total": "gives 'b' and 'total' one mapping",
    "education, married determines found, b": "gives 'found' and 'b' one mapping",
    f"age > 3{' and age > 3' * 100}": "has more than 1,000 signs",
    "age determines twice": "ties 'twice', which is computed",
    "age <-> id": "names 'id', an identifier",
    "a == b + 1": "comes to a number of up to 2 decimals, and 'a' has 1; write a == round(..., 1)",
    "total == a * b": "comes to a number of up to 3 decimals, and 'total' has 2; write total == round",
    "total == a / 3": "comes to a number of any number of decimals, and 'total' has 2",
    "total == total + a": "computes 'total' from itself",
    "total == a + twice": "computes 'total' from itself",
    "age < 0": "is obeyed by no row of the declared values that was found",
    "total == a + 30": "is obeyed by no row",
    "age is missing and age is not missing": "is obeyed by no row",
}


def message(*rules, **columns):
    with pytest.raises(ConfigError) as caught:
        spec_of({**COLUMNS, **columns}, rules)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("rule", REFUSED)
def test_a_rule_that_makes_no_sense_is_refused_by_its_place(rule):
    found = message("age < 100", rule)
    assert "constraints[1]" in found and REFUSED[rule] in found


TOGETHER = [
    (["age < 15", "age > 20"], "constraints[1] and constraints[0], 'age < 15', leave no row"),
    (["total == a + b", "total < a"], "constraints[1] and constraints[0], 'total == a + b', leave no row"),
    (["total == a", "total == b - 1"], "constraints[1] computes 'total' a second time"),
    (["education determines num", "age determines num"], "constraints[1] decides 'num', which another rule"),
    (["education determines num", "num determines education"], "ties 'education' to 'num' in a second way"),
    (["education <-> num", "num <-> age", "age <-> education"], "constraints[2] ties 'education' to 'age'"),
    (["total == a + b", "total determines age"], "constraints[1] ties 'total', which another rule computes"),
    (["total == a + b", "a == total + 0"], "'a' has 1; write a == round"),
    (["total == b + 1", "b == total - 1"], "computes 'total' from itself"),
    (
        ["a < 3", "age < 50 or num == 1", "age >= 50 or num == 2", "num == 3"],
        "leave no row of the declared values: none was found that obeys 'age < 50 or num == 1', 'age >= 50 "
        "or num == 2', 'num == 3' together",
    ),
    (["age < 3", "age < 3"], "constraints[1] repeats 'age < 3'"),
    (["age < 3", ""], "constraints[1]"),
    ([7], "constraints[0]"),
]


@pytest.mark.parametrize(("rules", "words"), TOGETHER, ids=[str(r) for r, _ in TOGETHER])
def test_rules_that_leave_no_row_together_are_refused(rules, words):
    assert words in message(*rules)


def test_a_tie_of_too_many_pairs_of_values_is_refused():
    wide = {"type": "integer", "min": 0, "max": 9999, "bins": 10_000}
    assert "100,0" in message("x <-> y", x=wide, y=wide)


KEPT = [
    ["twice < 10", "total == a + b"],
    ["age is missing or age > 3"],
    ["education <-> num", "age determines education", "num <-> admitted"],
    ["age * num == 12"],
    ["age == num * 3"],
    ["a + b == 4.25 and b * 3 <= 8"],
    ["admitted is missing", "age is not missing implies age > 100"],
    ["first(married, 1) == 'y' implies year(admitted) == 2020"],
    [
        "age not in [1, 2, 3]",
        "not (married == 'yes' and age < 18)",
        "age < 18 implies age < 12 implies num == 1",
    ],
]


@pytest.mark.parametrize("rules", KEPT, ids=str)
def test_rules_that_some_row_obeys_are_accepted(rules):
    assert spec_of(COLUMNS, rules).constraints == tuple(rules)


def test_rules_are_part_of_both_fingerprints_and_of_neither_without_any():
    specs = [compiled(spec_of(COLUMNS, rules)) for rules in ([], ["age < 3"], ["age < 4"])]
    assert len({s.fingerprint for s in specs}) == len({s.whole_fingerprint for s in specs}) == 3
    assert ["constraints" in s._questions for s in specs] == [False, True, True]


def test_tied_columns_are_measured_together():
    from dpsynth.plan.plan import wanted_pairs

    spec = spec_of(COLUMNS, ["num <-> education", "age < 3"])
    assert wanted_pairs(compiled(spec)) == (("education", "num"),)
    both = spec_of(COLUMNS, spec.constraints, publish={"statistics": [{"crosstab": ["age", "num"]}]})
    assert wanted_pairs(compiled(both)) == (("education", "num"), ("age", "num"))


def test_many_rules_are_obeyed_by_a_row_that_is_found_soon():
    columns = {f"x{i}": {"type": "integer", "min": 0, "max": 99} for i in range(101)}
    wide = {f"y{i}": {"type": "integer", "min": 0, "max": 1000, "bins": 20} for i in range(12)}
    days = {
        f"d{i}": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "month"}
        for i in range(10)
    }
    rules = [
        *(f"x{i} < 10 and x{i} > 7" for i in range(40)),
        *(f"x{i} <= x{i + 1}" for i in range(50, 100)),
        *(f"y{i} < y{i + 1}" for i in range(11)),
        *(f"days(d{i + 1}, d{i}) >= 3" for i in range(9)),
    ]
    begin = time.process_time()
    assert len(spec_of(columns | wide | days, rules).constraints) == len(rules)
    assert time.process_time() - begin < 20
