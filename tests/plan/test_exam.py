"""The marginals of the exam: public, each once, within their bounds; and its place in the plan."""

from fractions import Fraction
from itertools import combinations

import pytest

from dpsynth.accounting.calibration import reach
from dpsynth.columns.domain import Domain
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import EXAM_SHARE, MOST_CELLS, MOST_PAIRS, MOST_TRIPLES, exam_of, make_plan
from tests.plan.outlines import Outline

SIZES = {"a": 2, "b": 3, "c": 50, "d": 4, "e": 5}


def test_all_pairs_the_larger_statistics_and_a_triple_for_every_four_pairs_are_examined() -> None:
    found = exam_of(Domain(SIZES), [("a",), ("b", "a"), ("e", "c", "a"), ("a", "c", "e")])
    of = {kind: [e.clique for e in found if e.kind == kind] for kind in ("pair", "statistic", "triple")}
    assert of["pair"] == list(combinations(SIZES, 2))
    assert of["statistic"] == [("a", "c", "e")]
    assert 2 <= len(of["triple"]) <= 3 and all(len(set(c)) == 3 for c in of["triple"])
    assert len({e.clique for e in found}) == len(found)


def test_the_triples_are_drawn_by_names_and_repeat() -> None:
    columns = [f"c{i}" for i in range(30)]
    one, again = (exam_of(Domain(dict.fromkeys(columns, 3)), []) for _ in range(2))
    other = exam_of(Domain(dict.fromkeys(["x", *columns[1:]], 3)), [])
    assert one == again
    assert sum(e.kind == "triple" for e in one) == MOST_TRIPLES
    assert [e.clique for e in one if e.kind == "triple"] != [e.clique for e in other if e.kind == "triple"]


def test_marginals_of_too_many_cells_and_pairs_beyond_the_bound_are_left_out() -> None:
    wide = Domain({"a": 3000, "b": 3000, "c": 9})
    assert {e.clique for e in exam_of(wide, [("a", "b", "c")])} == {("a", "c"), ("b", "c")}
    assert all(wide.cells(e.clique) <= MOST_CELLS for e in exam_of(wide, []))
    many = exam_of(Domain({f"c{i}": 2 + i for i in range(90)}), [])
    pairs = [e.clique for e in many if e.kind == "pair"]
    assert len(pairs) == MOST_PAIRS and ("c88", "c89") not in pairs and ("c0", "c1") in pairs


def test_a_table_of_one_column_has_none() -> None:
    assert exam_of(Domain({"a": 2}), [("a",)]) == ()


@pytest.mark.parametrize(("split", "share"), [("", EXAM_SHARE), (", split: {exam: 0.2}", Fraction(1, 5))])
def test_the_exam_is_the_last_step_and_takes_its_share_of_all_others(load_with, split, share) -> None:
    spec = load_with(replace=("epsilon: 1.0", f"epsilon: 1.0{split}"))
    plan = make_plan(compiled(spec), Outline())
    none = make_plan(
        compiled(load_with(replace=("epsilon: 1.0", "epsilon: 1.0, split: {exam: 0}"))), Outline()
    )
    assert plan.steps[-1].step == "exam" and plan.exam_price == plan.budget * share
    assert plan.steps[-1].questions == len(plan.exam) > 0
    assert none.exam == () and none.exam_price == 0 and "exam" not in {s.step for s in none.steps}
    for with_exam, without in zip(plan.steps[:-1], none.steps, strict=True):
        assert with_exam.share == pytest.approx(without.share * float(1 - share))


def test_beside_the_shares_of_all_steps_that_of_the_exam_is_0_unless_it_is_named(load_with) -> None:
    whole = "epsilon: 1.0, split: {one_way: 0.3, structure: 0.1, marginals: 0.5"
    for more, share in (("}", 0), (", exam: 0.1}", Fraction(1, 10))):
        spec = load_with(replace=("epsilon: 1.0", whole + more))
        plan = make_plan(compiled(spec), Outline())
        assert plan.shares.exam == share
        assert sum(s.share for s in plan.steps) == pytest.approx(1)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("{exam: 0.6}", "must be at most 0.5"),
        ("{exam: 0.00001}", "must be 0 or at least 0.0001"),
        ("{structure: 0.1, exam: 0.1}", "one_way is missing"),
        ("{one_way: 0.3, structure: 0.1, marginals: 0.5, exam: 0.2}", "sum to at most 1"),
    ],
)
def test_a_share_that_can_not_be_is_refused(load_with, split, words) -> None:
    with pytest.raises(ConfigError, match=words):
        load_with(replace=("epsilon: 1.0", f"epsilon: 1.0, split: {split}"))


def test_a_share_for_a_table_of_one_column_is_refused(load_text) -> None:
    head = "source: {path: t.csv}\ncolumns:\n  x: {type: boolean}\n"
    with pytest.raises(ConfigError, match="about columns together"):
        load_text(head + "privacy: {epsilon: 1, split: {exam: 0.1}}\n")


def test_the_reach_of_a_distance_is_the_quantile_of_its_noise() -> None:
    assert reach("gaussian", 10.0) == pytest.approx(19.6, abs=0.01)
    assert reach("laplace", 100.0) == pytest.approx(299.6, abs=0.1)
