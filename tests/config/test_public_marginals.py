"""Known marginals in a configuration: what is read, and what is refused with which words."""

import numpy as np
import pytest

from dpsynth.columns.bins import growing_starts
from dpsynth.config import compiled
from dpsynth.errors import ConfigError

SEX = "public_marginals: [{columns: [sex], counts: {F: 40, M: 60}}]\n"


def numbers(spec):
    known = compiled(spec).public_marginals
    return {m.clique: m.numbers.tolist() for m in known.marginals}


def test_counts_are_by_place_and_what_is_missing_has_none_unless_listed(load_with):
    assert numbers(load_with(SEX)) == {("sex",): [40, 60, 0]}
    more = load_with("public_marginals: [{columns: [sex], counts: {F: 40, M: 60, '(missing)': 3}}]\n")
    assert numbers(more) == {("sex",): [40, 60, 3]}


def test_numbers_fall_into_the_bins_that_hold_them(load_with):
    ages = ", ".join(f"{age}: {age}" for age in range(111))
    spec = load_with(f"public_marginals: [{{columns: [age], counts: {{{ages}}}}}]\n")
    (found,) = numbers(spec).values()
    assert sum(found) == sum(range(111)) and found[-1] == 0
    labels = compiled(spec).columns[0].codec.labels
    assert len(found) == len(labels) + 1


@pytest.mark.parametrize("order", [("sex", "member", "count"), ("count", "member", "sex")])
def test_a_file_has_cells_of_several_columns_in_any_order(load_with, tmp_path, order):
    cells = {("F", "true"): 5, ("F", "false"): 6, ("M", "true"): 7}
    lines = [{"sex": s, "member": m, "count": n} for (s, m), n in cells.items()]
    text = "\n".join([",".join(order), *(",".join(str(line[c]) for c in order) for line in lines)])
    (tmp_path / "totals.csv").write_text("\ufeff" + text, encoding="utf-8")
    spec = load_with(f"public_marginals: [{{columns: [sex, member], file: {tmp_path / 'totals.csv'}}}]\n")
    (found,) = numbers(spec).values()
    assert np.array_equal(np.array(found)[:2, :2], [[6, 5], [0, 7]])


def test_the_fingerprint_tells_other_totals_apart(load_with, tmp_path):
    path = tmp_path / "totals.csv"
    added = f"public_marginals: [{{columns: [sex], file: {path}}}]\n"
    prints = {compiled(load_with()).fingerprint, compiled(load_with(SEX)).fingerprint}
    for text in ("sex,count\nF,1\nM,2\n", "sex,count\nF,1\nM,3\n", "sex,share\nF,1\nM,3\n"):
        path.write_text(text)
        prints.add(compiled(load_with(added)).fingerprint)
    assert len(prints) == 5


def test_what_is_known_is_not_asked_and_leaves_its_part_to_the_others(load_with):
    from dpsynth.plan.plan import make_plan
    from dpsynth.strategy import strategy_of

    plain, with_known = (make_plan(compiled(load_with(t)), strategy_of("auto")) for t in ("", SEX))
    asked, left = (p.steps[0].scale_of for p in (plain, with_known))
    assert set(asked) - set(left) == {"sex", "(total)"}
    assert all(left[c] < asked[c] for c in left)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have the columns sex and one more, count or share"),
        ("sex\nF\n", "count or share"),
        ("sex,count,share\nF,1,1\n", "count or share"),
        ("sex,age,count\nF,1,1\n", "must have the columns sex"),
        ("sex,count\nF,many\n", "line 2"),
        ("sex,count\nF,1\nM\n", "line 3"),
        ("sex,count\nF,nan\n", "line 2"),
        ("sex,count\nF,-1\n", "line 2"),
        ('sex,count\n"F,1\n', "no CSV file"),
        ("sex,count\nF,1\n", "says nothing of 'M'"),
    ],
)
def test_a_file_that_is_no_table_of_totals_is_refused(load_with, tmp_path, text, words):
    path = tmp_path / "totals.csv"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_with(f"public_marginals: [{{columns: [sex], file: {path}}}]\n")
    assert words in str(refused.value)


def test_rules_and_known_counts_are_not_promised_together(load_with):
    with pytest.raises(ConfigError, match="public_marginals must be left out where there are constraints"):
        load_with(SEX + "constraints: [\"age < 15 implies sex == 'F'\"]\n")


def test_with_all_columns_known_there_must_be_something_to_choose(load_text, load_with):
    incomes = [start / 100 for start in growing_starts(0, 100_000, 32)]
    listed = {"age": range(111), "sex": "FM", "income": incomes, "member": ("true", "false")}
    known = ", ".join(
        f"{{columns: [{c}], shares: {{{', '.join(f'{v}: 1' for v in values)}}}}}"
        for c, values in listed.items()
    )
    load_with(f"public_marginals: [{known}]\n")
    with pytest.raises(ConfigError, match="nothing to ask"):
        load_with(f"public_marginals: [{known}]\nstructure: independent\n")
    alone = "source: {path: t.csv}\nprivacy: {epsilon: 1}\ncolumns: {sex: {type: category, values: [F, M]}}\n"
    with pytest.raises(ConfigError, match="nothing to ask"):
        load_text(alone + "public_marginals: [{columns: [sex], shares: {F: 1, M: 1}}]\n")
