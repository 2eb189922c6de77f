"""Verdicts: each follows from noisy counts, the finished table and the exam, and says why."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpsynth.bundle.manifest import StatedVerdict
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.measurement import Examined, NoisyDistances
from dpsynth.statistics import verdict as verdicts
from dpsynth.statistics.exam import Basis, Exam
from dpsynth.statistics.verdict import Judged, Judgement, Verdict

ROWS = 10_000


def column(name: str, values: int, *, missing: bool = False) -> Column:
    return Column(name, CategoryCodec(tuple(f"{name}{i}" for i in range(values))), missing=missing)


def judged(
    shares: Sequence[float],
    stddev: float,
    rng: np.random.Generator,
    moved: float = 0.0,
    *,
    missing: bool = False,
) -> Judgement:
    """The verdict on a column whose table follows its noisy counts, but for some rows in another cell."""
    true = np.array(shares) * ROWS
    noisy = true + rng.normal(0, stddev, true.size)
    table = np.maximum(noisy, 0)
    table *= ROWS / max(table.sum(), 1)
    table[0], table[-1] = table[0] - moved * ROWS, table[-1] + moved * ROWS
    one = column("a", true.size - missing, missing=missing)
    facts = Judged((one,), {"a": (noisy, stddev)}, {"a": table}, ROWS, ROWS, Basis(()))
    (found,) = facts.verdict().columns
    return found


def healthy(rng: np.random.Generator) -> Judgement:
    cells = int(rng.integers(2, 60))
    return judged(rng.dirichlet(np.full(cells, rng.choice([0.1, 1, 10]))), float(rng.uniform(1, 300)), rng)


def test_no_healthy_column_contradicts_its_counts():
    rng = np.random.default_rng(1)
    assert not any(healthy(rng).beyond_noise for _ in range(1000))


def test_a_bound_without_chance_would_be_noticed(monkeypatch):
    """The planted fault: nothing but the noise's mean explains a distance, and less of it."""
    monkeypatch.setattr(verdicts, "_SURE", -30.0)
    rng = np.random.default_rng(1)
    assert any(healthy(rng).beyond_noise for _ in range(1000))


def test_a_column_that_the_table_bends_beyond_noise_contradicts_its_counts():
    found = judged([0.6, 0.3, 0.1], 20.0, np.random.default_rng(2), moved=0.2)
    assert found.verdict == "don't use" and found.beyond_noise == pytest.approx(0.2, abs=0.02)
    assert "contradicts the column's own noisy counts" in found.why
    slightly = judged([0.6, 0.3, 0.1], 20.0, np.random.default_rng(2), moved=0.03)
    assert slightly.verdict == "with care" and "beyond what noise explains" in slightly.why


def test_no_more_than_all_rows_are_elsewhere_where_few_rows_have_many_in_a_columns_counts():
    one, noisy, table = column("a", 3), np.array([900.0, 700.0, 400.0]), np.array([1.0, 1.0, 1.0])
    (found,) = Judged((one,), {"a": (noisy, 20.0)}, {"a": table}, 3, 3, Basis(())).verdict().columns
    assert found.beyond_noise == 1 and found.verdict == "don't use" and "100 % of its rows" in found.why


def test_a_column_of_noise_alone_is_not_to_be_used_and_says_so():
    shares = [*np.full(30, 0.01 / 30), 0.99]
    found = judged(shares, 60.0, np.random.default_rng(3), missing=True)
    assert found.verdict == "don't use" and found.why.startswith(
        "Its values are noise alone: none of the 30 "
    )
    assert "read" not in found.why


def test_a_column_with_few_values_is_judged_by_the_rows_that_have_one():
    rng = np.random.default_rng(4)
    few = judged([*np.full(10, 0.003), 0.97], 8.0, rng, missing=True)
    many = judged([*np.full(10, 0.09), 0.1], 8.0, rng, missing=True)
    assert many.verdict == "use" and few.verdict == "don't use" and "rows with a value" in few.why


def test_values_that_noise_hides_are_counted():
    found = judged([0.5, 0.495, 0.0025, 0.0025], 40.0, np.random.default_rng(5))
    assert "Nothing is known of 2 of its 4 values" in found.why


def test_the_error_of_a_column_is_that_which_it_has():
    """Over many columns, the estimate is about the true error, and its limit is rarely passed."""
    rng, ratios = np.random.default_rng(6), []
    for _ in range(300):
        shares, stddev = rng.dirichlet(np.full(20, 5.0)), float(rng.uniform(5, 60))
        before = rng.bit_generator.state
        found = judged(shares, stddev, rng)
        rng.bit_generator.state = before
        noisy = shares * ROWS + rng.normal(0, stddev, 20)
        table = np.maximum(noisy, 0) * ROWS / np.maximum(noisy, 0).sum()
        ratios.append(np.abs(table - shares * ROWS).sum() / 2 / ROWS / found.error)
    assert 0.7 < np.mean(ratios) < 1.1 and np.mean(np.array(ratios) > 1.3) < 0.05


def examined(
    errors: Sequence[float], stddev: float, rng: np.random.Generator, basis: Basis, lost: bool = False
) -> Verdict:
    """The verdict on six columns whose pairs have some errors, measured with noise."""
    columns = tuple(column(name, 2) for name in "abcdef")
    pairs = list(combinations("abcdef", 2))
    values = np.rint(np.array(errors) * 2 * ROWS + rng.normal(0, stddev, len(pairs))).astype(np.int64)
    distances = None if lost else NoisyDistances(tuple(pairs), values, "gaussian", stddev)
    exam = Exam([Examined("pair", p) for p in pairs], distances, ROWS, domain_of(columns), basis)
    table = {c.name: np.array([ROWS / 2, ROWS / 2]) for c in columns}
    counts = {c.name: (table[c.name], 5.0) for c in columns}
    return Judged(columns, counts, table, ROWS, ROWS, basis, exam).verdict()


MEASURED = Basis(tuple(combinations("abcdef", 2)))


def test_pairs_are_judged_by_their_measured_error_with_its_noise():
    errors = [*[0.01] * 5, *[0.07] * 5, *[0.4] * 5]
    found = examined(errors, 100.0, np.random.default_rng(7), MEASURED)
    assert [p.verdict for p in found.pairs] == ["use"] * 5 + ["with care"] * 5 + ["don't use"] * 5
    assert (
        "40 % of the rows are off (standard error 0.5 %). The two were measured together."
        in found.pairs[-1].why
    )


def test_little_is_said_to_be_of_use_where_the_exam_is_too_noisy_to_tell():
    errors = [*[0.01] * 5, *[0.07] * 5, *[0.4] * 5]
    many = [examined(errors, 4000.0, np.random.default_rng(seed), MEASURED) for seed in range(100)]
    assert np.mean([pair.verdict == "use" for found in many for pair in found.pairs]) < 0.01


@pytest.mark.parametrize("names", ["ab", "abc", "abcdef"])
def test_an_exam_whose_noise_exceeds_all_rows_makes_nothing_of_use(names):
    """Noise far below 0 is no small error: neither a pair nor a column is to be used for it."""
    columns, pairs = tuple(column(name, 2) for name in names), tuple(combinations(names, 2))
    table = {name: np.array([ROWS / 2, ROWS / 2]) for name in names}
    counts = {name: (table[name] * [1.1, 0.9], ROWS / 20) for name in names}
    for seed in range(50):
        noise = np.rint(np.random.default_rng(seed).laplace(0, ROWS, len(pairs))).astype(np.int64)
        noise[0] = -8 * ROWS
        distances = NoisyDistances(pairs, noise, "laplace", ROWS)
        exam = Exam([Examined("pair", p) for p in pairs], distances, ROWS, domain_of(columns), MEASURED)
        found = Judged(columns, counts, table, ROWS, ROWS, MEASURED, exam).verdict()
        assert not any(one.verdict == "use" for one in (*found.columns, *found.pairs))


def test_a_good_pair_says_as_little_of_a_column_as_that_has_values():
    """3 % of all rows are off in the pair: of a column with values in a third of the rows that may be 9 %."""
    columns = tuple(column(name, 2) for name in "ab")
    for share in (1.0, 0.9, 0.5, 0.3):
        known = np.array([1.0, 1.0]) * share * ROWS / 2
        table = {"a": np.append(known, ROWS * (1 - share)), "b": np.append([ROWS / 2] * 2, 0.0)}
        counts = {name: (table[name], 0.06 * share * ROWS) for name in "ab"}
        distances = NoisyDistances((("a", "b"),), np.array([round(0.06 * ROWS)]), "gaussian", 1.0)
        exam = Exam([Examined("pair", ("a", "b"))], distances, ROWS, domain_of(columns), MEASURED)
        found = Judged(columns, counts, table, ROWS, ROWS, MEASURED, exam).verdict().columns[0]
        assert (found.verdict == "use") == (share > 0.6), (share, found)


def wrong(deviations: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, int]:
    """Share of pairs to be used that are off by more than 5 %, and their number."""
    monkeypatch.setattr(verdicts, "DEVIATIONS", deviations)
    rng, off = np.random.default_rng(9), []
    for _ in range(300):
        errors = rng.gamma(2.0, 0.02, 15)
        found = examined(errors, float(rng.choice([100, 400, 1000])), rng, MEASURED)
        off += [e > 0.05 for e, p in zip(errors, found.pairs, strict=True) if p.verdict == "use"]
    return float(np.mean(off)), len(off)


def test_a_pair_to_be_used_is_rarely_off_by_more_than_five_per_cent(monkeypatch):
    share, number = wrong(verdicts.DEVIATIONS, monkeypatch)
    assert number > 500 and share < 0.03


def test_limits_without_their_noise_would_be_noticed(monkeypatch):
    share, _ = wrong(0.0, monkeypatch)
    assert share > 0.03


def test_what_is_taken_to_be_independent_is_at_best_used_with_care_and_said():
    found = examined([0.005] * 15, 50.0, np.random.default_rng(10), Basis((("a", "b"),)))
    assert {p.columns: p.verdict for p in found.pairs}["a", "b"] == "use"
    assert {p.verdict for p in found.pairs if p.basis == "independent"} == {"with care"}
    assert "These two were taken to be independent." in found.on(["c", "d"])
    assert found.on(["a", "b"]).startswith("use: ") and found.on(["x"]) == ""
    assert "Taken to be independent: " in found.on(["a", "c", "d"])


def test_a_pair_is_no_better_than_its_columns():
    whole = examined([0.005] * 15, 50.0, np.random.default_rng(11), MEASURED)
    bad = replace(whole.columns[0], verdict="don't use", why="Noise.")
    pair = verdicts._no_better(whole.pairs[0], {"a": bad, "b": whole.columns[1]})
    assert pair.verdict == "don't use" and pair.why.endswith("a: Noise.")


@pytest.mark.parametrize("lost", [True, False])
def test_without_an_exam_columns_are_judged_by_counts_and_no_pair_is_simply_used(lost):
    basis = Basis((("a", "b"),))
    found = examined([0.0] * 15, 1.0, np.random.default_rng(12), basis, lost=True)
    if not lost:
        columns = tuple(column(name, 2) for name in "ab")
        table = {name: np.array([5e3, 5e3]) for name in "ab"}
        found = Judged(columns, {"a": (table["a"], 5.0)}, table, ROWS, ROWS, basis).verdict()
        assert found.columns[1].why == "Its counts are public, so no noise is in them."
    assert {c.verdict for c in found.columns} == {"use"} and {p.verdict for p in found.pairs} == {"with care"}
    assert "was not measured" in found.pairs[0].why


def test_the_lines_are_at_most_five_name_the_worst_and_come_back_from_the_manifest():
    columns = tuple(
        Judgement((f"c{i}",), "don't use" if i % 2 else "with care", "Why.", i / 10) for i in range(9)
    )
    pairs = tuple(
        Judgement(("c0", f"c{2 * i}"), "don't use", "Far.", i / 10, "independent") for i in range(1, 5)
    )
    found = Verdict(columns, pairs)
    assert len(found.lines) == 5
    assert found.lines[0] == (
        "Columns: 0 use, 5 with care, 4 don't use. Pairs of columns: 0 use, 0 with care, 4 don't use."
    )
    assert found.lines[1] == "Don't use: c7. Why." and found.lines[4] == "Don't use: c0 with c8. Far."
    assert list(found.frame["verdict"]) == [one.verdict for one in (*columns, *pairs)]
    stated = StatedVerdict(in_words=found.lines, columns=columns, pairs=pairs)
    assert StatedVerdict.model_validate_json(stated.model_dump_json(), strict=True).verdict == found
    damaged = stated.model_dump_json().replace("don't use", "buy")
    with pytest.raises(ValueError, match="Input should be 'use', 'with care'"):
        StatedVerdict.model_validate_json(damaged, strict=True)


def test_a_column_says_how_often_rules_changed_it():
    columns, table = (column("a", 2), column("b", 2)), {name: np.array([5e3, 5e3]) for name in "ab"}
    counts = {name: (table[name], 5.0) for name in "ab"}
    facts = Judged(columns, counts, table, ROWS, ROWS, Basis(()), changed={"a": 0.25, "b": 0.001})
    one, two = facts.verdict().columns
    assert one.why.endswith("Rules changed 25 % of it.") and "Rules" not in two.why
    assert (one.changed, two.changed) == (0.25, 0.001)


def computed(given: Sequence[str], errors: Sequence[float], exam: bool = True) -> Judgement:
    """The verdict on a column that is computed from some of six columns, whose pairs have some errors."""
    columns = tuple(column(name, 2) for name in "abcdef")
    pairs = list(combinations("abcdef", 2))
    values = np.rint(np.array(errors) * 2 * ROWS).astype(np.int64)
    found = NoisyDistances(tuple(pairs), values, "gaussian", 50.0)
    of_pairs = Exam([Examined("pair", p) for p in pairs], found, ROWS, domain_of(columns), MEASURED)
    table = {c.name: np.array([ROWS / 2, ROWS / 2]) for c in columns}
    counts = {c.name: (table[c.name], 5.0) for c in columns}
    facts = Judged(columns, counts, table, ROWS, ROWS, MEASURED, of_pairs if exam else None)
    verdict = replace(facts, computed={"sum": given, "made up": ()}).verdict()
    assert [c.name for c in verdict.columns] == [*"abcdef", "sum"]
    return verdict.columns[-1]


def test_a_column_that_is_computed_is_no_better_than_what_it_is_computed_from():
    errors = [0.4, *[0.01] * 14]
    one, two, good = computed("c", errors), computed("ab", errors), computed("cd", errors)
    assert one.verdict == "use" and one.why.startswith(
        "It is computed from c, and no better than that column"
    )
    assert two.verdict == "don't use" and two.error == pytest.approx(0.4, abs=0.01)
    assert "computed from a and b, and no better than the two are together. 40 % of the rows" in two.why
    assert good.verdict == "use"


def test_a_column_that_is_computed_from_more_than_was_measured_is_at_best_used_with_care():
    three, bad = computed("cde", [0.01] * 15), computed("abc", [0.4, *[0.01] * 14])
    assert (three.verdict, three.error) == ("with care", None) and "c, d and e, whose relation" in three.why
    assert bad.verdict == "don't use" and "a with b: 40 %" in bad.why
    assert computed("cd", [0.01] * 15, exam=False).verdict == "with care"


def test_an_empty_table_is_judged_too():
    one = column("a", 3)
    facts = Judged((one,), {"a": (np.zeros(3), 50.0)}, {"a": np.zeros(3)}, 0, 0, Basis(()))
    assert facts.verdict().columns[0].verdict == "don't use"
