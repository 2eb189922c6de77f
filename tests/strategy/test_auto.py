"""Auto: its bound and budget whatever the noise says, and where the budget goes when it says something."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation
from dpsynth.model.junction_tree import junction_tree
from dpsynth.strategy import allocation, auto, second_round
from dpsynth.strategy.second_round import later_distances, would_tell
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.examples import cases, examples
from tests.strategy.drawn_pairs import forest
from tests.thinned import some

AUTO = STRATEGIES["auto"]
TERMS = [(ZCDP, "gaussian"), (ZCDP, "laplace"), (PURE, "laplace"), (GDP, "gaussian")]
BUDGET = {ZCDP: Fraction(1, 50), GDP: Fraction(1, 50), PURE: Fraction(1)}


@st.composite
def workloads(draw, columns):
    """All k-way marginals, a list, or both; with weights and targets."""
    two = len(columns) > 1
    listed = []
    if two and draw(st.booleans()):
        listed = draw(
            st.lists(
                st.sets(st.sampled_from(columns), min_size=2, max_size=4).map(sorted).map(tuple), max_size=3
            )
        )
    weights = draw(st.dictionaries(st.sampled_from(columns), st.integers(1, 1000), max_size=2))
    ways = None if listed or not two else draw(st.integers(2, min(4, len(columns))))
    return Workload(
        columns,
        ways=ways,
        marginals=tuple((m, draw(st.integers(1, 9))) for m in dict.fromkeys(listed)),
        weights=tuple(weights.items()),
        targets=draw(st.sampled_from([(), columns[-1:]])),
    )


@st.composite
def situations(draw, largest=10):
    """A domain, wanted pairs, a bound that they keep, a workload, terms, a seed, and lost answers."""
    columns = tuple(f"c{i:02}" for i in range(draw(st.integers(1, largest))))
    kind = draw(st.sampled_from(["binary", "small", "mixed", "huge"]))
    sizes = {"binary": [2], "small": [1, 2, 3, 4], "mixed": [2, 3, 7, 40], "huge": [900, 3000]}[kind]
    domain = Domain({c: draw(st.sampled_from(sizes)) for c in columns})
    wanted = () if kind == "huge" else forest(columns, draw, 5)
    least = Triangulation.of(domain, wanted).cells
    room = prod(domain.sizes.values()) if kind != "huge" else 10**6
    bound = least + draw(st.integers(0, 2 * min(room, 10**6)))
    lost = frozenset(draw(st.lists(st.sampled_from([*((c,) for c in columns), *combinations(columns, 2)]))))
    measure, noise = draw(st.sampled_from(TERMS))
    scale = Fraction(10) ** draw(st.sampled_from([-6, -3, -1, 0, 0, 1, 2]))
    return (
        domain,
        wanted,
        bound,
        draw(workloads(columns)),
        (measure, noise, scale * BUDGET[measure]),
        draw(st.integers(0, 2**32)),
        lost,
    )


def ready(domain, rows, seed, measure=ZCDP, noise="gaussian", budget=None, **terms):
    """A door on a table of independent uniform columns."""
    rng = np.random.default_rng(seed)
    codes = {c: rng.integers(0, size, rows) for c, size in domain.sizes.items()}
    return FakeDoor(domain, codes, budget or BUDGET[measure], rng, measure, noise, **terms)


def keeps_its_word(door, problem, found, before):
    """What must hold of every run."""
    domain, asked = door.domain, door.asked[before:]
    measured = [c for kind, (c, *_), _ in asked if kind == "marginal"]
    assert len(found.cliques) == len(found.answers)
    # Cliques are measured again where there are later rounds alone.
    twice = {c for c in measured if measured.count(c) > 1}
    assert twice <= set(found.cliques) and (
        not twice or found.distances or "parities" in {kind for kind, _, _ in asked}
    )
    assert len(set(found.beside)) == len(found.beside)
    assert not set(found.beside) & set(found.inside)
    assert [m is None for m in found.answers] == [c in door.lost for c in found.cliques]
    assert all(m is None or m.clique == c for c, m in zip(found.cliques, found.answers, strict=True))
    assert all(domain.canonical(c) == c and len(c) > 1 for c in found.cliques)
    assert set(problem.wanted) <= set(found.cliques)
    assert junction_tree(domain, found.inside).cells <= problem.max_cells
    choosing = sum(price for kind, _, price in asked if kind not in {"marginal", "parities"})
    assert choosing * door.thrift * (1 - door.rounding) <= problem.structure
    said = AUTO.outline(domain.sizes, problem.wanted, door.measure, door.noise)
    assert sum(kind == "choose" for kind, _, _ in asked) <= said.choices
    assert sum(len(about) for kind, about, _ in asked if kind == "errors") <= said.errors
    assert junction_tree(domain, found.inside).cells <= max(said.cells, sum(domain.sizes.values()))
    assert all(
        problem.workload.weight(p) > 0 or p in problem.wanted for c in found.cliques for p in pairs_of(c)
    )
    assert found.prior > 0


def pairs_of(clique):
    return combinations(clique, 2)


def posed(door, bound, wanted, workload):
    """What auto is to solve with a door's budget."""
    return problem_of(
        door,
        one_way=door.budget / 5,
        structure=door.budget / 10,
        max_cells=bound,
        wanted=wanted,
        workload=workload,
    )


@given(situations(), st.booleans())
@examples(150)
def test_whatever_the_noise_says_the_tree_keeps_its_bound_and_all_is_spent_and_no_more(situation, wild):
    domain, wanted, bound, workload, (measure, noise, budget), seed, _ = situation
    # Real prices are rounded, and choices cost a little less than was offered: here a lot less.
    door = ready(
        domain,
        60,
        seed,
        measure,
        noise,
        budget,
        wild=wild,
        thrift=Fraction(1, 1 + seed % 3),
        rounding=Fraction(seed % 2, 10**15),
    )
    problem = posed(door, bound, wanted, workload)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted


@given(situations(largest=6))
@examples(60)
def test_answers_that_are_lost_are_none_and_all_others_come(situation):
    domain, wanted, bound, workload, (measure, noise, budget), seed, lost = situation
    door = ready(domain, 60, seed, measure, noise, budget)
    problem = posed(door, bound, wanted, workload)
    door.lost, before = lost, len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    again = [c for kind, (c, *_), _ in door.asked[before:] if kind == "marginal" and len(c) == 1]
    assert [m.clique for m in found.singles] == [c for c in again if c not in lost]


@pytest.mark.parametrize("left", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10)])
def test_where_interruptions_left_no_more_than_choosing_may_cost_half_of_that_is_kept_for_measuring(left):
    domain = Domain(dict.fromkeys("abcdef", 3))
    door = ready(domain, 500, 1)
    problem = problem_of(door, one_way=door.budget * (1 - left), structure=door.budget / 10)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    spent = [price for kind, _, price in door.asked[before:] if kind == "marginal"]
    assert door.exhausted and (found.cliques or found.singles)
    assert sum(spent) >= door.budget * left / 2


def test_a_working_bound_below_the_plans_keeps_others_out_and_never_a_wanted_pair(monkeypatch):
    monkeypatch.setattr(auto, "LEAST_CELLS", 1)
    monkeypatch.setattr(auto, "CELLS_A_SIGNAL", 0)
    domain = Domain({"a": 30, "b": 40, "c": 2, "d": 2, "e": 2})
    wanted = (("a", "b"), ("a", "c"))
    for wild in (False, True):
        door = ready(domain, 3000, 2, budget=Fraction(1), wild=wild)
        problem = problem_of(
            door, one_way=door.budget / 5, structure=door.budget / 10, max_cells=1300, wanted=wanted
        )
        before = len(door.asked)
        found = AUTO.select(door, problem)
        keeps_its_word(door, problem, found, before)
        assert door.exhausted


def test_columns_that_alone_have_more_cells_than_the_noise_allows_to_tell_of_keep_no_small_pair_out():
    rng = np.random.default_rng(3)
    wide = {f"c{i:03}": rng.integers(0, 1750, 3000) for i in range(60)}
    two = rng.integers(0, 2, 3000)
    codes = wide | {"x": two, "y": two}
    domain = Domain(dict.fromkeys(wide, 1750) | {"x": 2, "y": 2})
    for budget, expected in ((Fraction(4), {("x", "y")}), (Fraction(1, 10**6), set())):
        door = FakeDoor(domain, codes, budget, rng)
        problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
        found = AUTO.select(door, problem)
        assert set(found.cliques) & {("x", "y")} == expected
        assert len(found.singles) >= 60 and door.exhausted


def test_a_pair_for_which_there_is_no_room_keeps_no_smaller_one_out():
    rng = np.random.default_rng(4)
    a, x = rng.integers(0, 20, 5000), rng.integers(0, 3, 5000)
    codes = {"a": a, "b": (a + (rng.random(5000) < 0.1)) % 20, "c": (a + (rng.random(5000) < 0.1)) % 20}
    codes |= {"x": x, "y": (x + (rng.random(5000) < 0.4)) % 3, "z": (x + (rng.random(5000) < 0.4)) % 3}
    domain = Domain({c: 20 if c in "abc" else 3 for c in codes})
    # Two pairs of large columns, with a third they would have 8000 cells; and a clique of small ones.
    door = FakeDoor(domain, codes, Fraction(1), rng)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, max_cells=1900)
    found = AUTO.select(door, problem)
    large = {p for p in together(found) if p <= set("abc")}
    assert len(large) == 2
    assert {frozenset(p) for p in pairs_of("xyz")} <= together(found)


@pytest.mark.parametrize(("measure", "noise"), TERMS)
def test_where_no_pair_fits_everything_goes_to_the_columns_and_nothing_is_chosen(measure, noise):
    domain = Domain(dict.fromkeys("abcd", 2000))
    door = ready(domain, 500, 3, measure, noise)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    assert found.cliques == () and [m.clique for m in found.singles] == [("a",), ("b",), ("c",), ("d",)]
    assert {kind for kind, _, _ in door.asked[before:]} == {"marginal"} and door.exhausted


def test_columns_of_one_place_are_in_no_clique_but_a_wanted_one():
    domain = Domain({"a": 1, "b": 2, "c": 1, "d": 3, "e": 1})
    for wanted in ((), (("a", "b"),)):
        door = ready(domain, 500, 3, budget=Fraction(100), wild=True)
        problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, wanted=wanted)
        found = AUTO.select(door, problem)
        assert {c for clique in found.cliques if clique not in wanted for c in clique} <= {"b", "d"}
        assert set(wanted) <= set(found.cliques) and door.exhausted


def test_columns_that_get_alike_little_because_they_are_many_are_measured_again_all_the_same():
    class Asked(FakeDoor):
        def singles(self, columns, allowance, weights=()):
            assert allowance == self.remaining and len(weights) == len(columns)
            self.asked.append(("marginal", tuple((c,) for c in columns), allowance))
            return []

    domain = Domain({f"c{i}": 2 for i in range(3000)})
    door = Asked(domain, {}, Fraction(1), np.random.default_rng(0))
    problem = SimpleNamespace(domain=domain)
    split = allocation.Split(np.full(3000, 1e-5), np.zeros(0), 1.0)
    grown = auto._Grown(np.zeros(0, dtype=np.intp), split, 0.0, 0.0)
    auto._measured(door, problem, SimpleNamespace(cliques=()), grown, door.remaining)
    assert door.asked == [("marginal", tuple((c,) for c in domain.columns), Fraction(1))]


@pytest.mark.parametrize(("measure", "noise"), some(TERMS, 2))
def test_where_there_is_next_to_no_noise_everything_is_still_shared_out(measure, noise):
    domain, codes = planted(500, np.random.default_rng(1), columns=5)
    door = FakeDoor(domain, codes, Fraction(10**6), np.random.default_rng(2), measure, noise)
    problem = problem_of(door, one_way=Fraction(10), structure=door.budget / 10)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted and len(together(found)) >= 20


def test_the_outline_holds_where_a_config_allows_a_larger_model_than_the_default():
    domain = Domain(dict.fromkeys("abcde", 16))
    rng = np.random.default_rng(5)
    base = rng.integers(0, 16, 40_000)
    codes = {c: np.where(rng.random(40_000) < 0.5, base, rng.integers(0, 16, 40_000)) for c in "abcde"}
    door = FakeDoor(domain, codes, Fraction(1000), rng)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, max_cells=10**7)
    cells = Triangulation.of(domain, AUTO.select(door, problem).inside).cells
    assert AUTO.max_cells < cells <= AUTO.outline(domain.sizes, (), ZCDP, "gaussian").cells


@pytest.mark.parametrize(("measure", "noise"), TERMS)
def test_shares_are_positive_and_sum_to_one_and_many_columns_of_many_places_get_more(measure, noise):
    shares = {}
    for columns in (1, 2, 3, 16, 150, 500):
        for size in (1, 2, 30):
            said = AUTO.outline({f"c{i}": size for i in range(columns)}, (), measure, noise).shares
            assert min(said.one_way, said.structure, said.marginals) > 0
            assert said.one_way + said.structure + said.marginals == 1
            shares[columns, size] = said.one_way
    assert shares[16, 30] > shares[16, 2]


def planted(rows, rng, columns=12, copies=3):
    """Independent columns of two places; then some that copy the first ones, now and then wrongly."""
    codes = {f"c{i:02}": rng.integers(0, 2, rows) for i in range(columns)}
    for i in range(copies):
        wrong = rng.random(rows) < 0.1
        codes[f"copy{i}"] = np.where(wrong, 1 - codes[f"c{i:02}"], codes[f"c{i:02}"])
    return Domain(dict.fromkeys(codes, 2)), codes


def together(found):
    return {frozenset(p) for clique in found.cliques for p in pairs_of(clique)}


@pytest.mark.parametrize(("measure", "noise"), some(TERMS, 1))
def test_at_a_high_budget_planted_pairs_are_found_among_those_that_say_nothing(measure, noise):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        domain, codes = planted(5000, rng)
        door = FakeDoor(domain, codes, 20 * BUDGET[measure], rng, measure, noise)
        problem = problem_of(door, one_way=door.budget / 10, structure=door.budget / 10)
        found = together(AUTO.select(door, problem))
        due = {frozenset((f"c{i:02}", f"copy{i}")) for i in range(3)}
        assert due <= found


def part_of(door, before, holds):
    """Part of what measuring cost that went to cliques of which something holds."""
    paid = [(c, price) for kind, (c, *_), price in door.asked[before:] if kind == "marginal"]
    return float(sum(price for c, price in paid if holds(c)) / sum(price for _, price in paid))


def alike(rows, rng, columns=8, size=3):
    """Columns any two of which depend on each other alike."""
    base = rng.integers(0, size, rows)
    codes = {
        f"c{i}": np.where(rng.random(rows) < 0.6, base, rng.integers(0, size, rows)) for i in range(columns)
    }
    return Domain(dict.fromkeys(codes, size)), codes


@pytest.mark.parametrize(("measure", "noise"), some(TERMS, 1))
def test_at_a_low_budget_most_goes_to_columns_of_many_places_and_at_a_high_one_to_cliques(measure, noise):
    parts = []
    for times in (Fraction(1, 5000), Fraction(100)):
        rng = np.random.default_rng(2)
        domain, codes = alike(3000, rng, size=20)
        door = FakeDoor(domain, codes, times * BUDGET[measure], rng, measure, noise)
        problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 16)
        before = len(door.asked)
        AUTO.select(door, problem)
        parts.append(part_of(door, before, lambda c: len(c) == 1))
    assert parts[0] > 0.5
    assert parts[1] < 0.1


@pytest.mark.parametrize(("measure", "noise"), TERMS)
def test_a_column_measured_well_before_is_not_measured_again(measure, noise):
    rng = np.random.default_rng(1)
    domain, codes = alike(3000, rng, size=20)
    door = FakeDoor(domain, codes, BUDGET[measure] / 5000, rng, measure, noise)
    problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 20)
    well = Measurement(("c3",), door.counts(("c3",)), noise, 1.0)
    found = AUTO.select(door, replace(problem, singles=(*problem.singles, well)))
    assert {m.clique for m in found.singles} == {(c,) for c in domain.columns} - {("c3",)}


NAMES = tuple(f"c{i}" for i in range(8))


@pytest.mark.parametrize(
    "workload",
    some(
        [
            Workload(NAMES, weights=(("c5", 20),)),
            Workload(NAMES, targets=("c5",), target_weight=20),
            Workload(NAMES, ways=3, marginals=((("c1", "c5", "c7"), 300), (("c0", "c5"), 300))),
        ],
        1,
    ),
    ids=["weights", "targets", "marginals"],
)
@pytest.mark.parametrize(("measure", "noise"), some(TERMS, 2))
def test_what_a_workload_names_gets_more_of_the_budget(workload, measure, noise):
    parts = {}
    for asked in (Workload(NAMES), workload):
        rng = np.random.default_rng(3)
        domain, codes = alike(3000, rng)
        door = FakeDoor(domain, codes, 4 * BUDGET[measure], rng, measure, noise)
        problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 20, workload=asked)
        before = len(door.asked)
        AUTO.select(door, problem)
        parts[asked] = part_of(door, before, lambda c: "c5" in c)
    assert parts[workload] > 1.2 * parts[Workload(NAMES)]


def test_of_listed_marginals_alone_only_their_pairs_are_looked_at_and_measured():
    listed = (("c0", "c3", "c6"), ("c1", "c3"))
    rng = np.random.default_rng(4)
    domain, codes = alike(3000, rng)
    door = FakeDoor(domain, codes, Fraction(1), rng)
    workload = Workload(NAMES, marginals=tuple((m, 1) for m in listed))
    problem = problem_of(
        door, one_way=door.budget / 5, structure=door.budget / 10, workload=workload, wanted=(("c2", "c7"),)
    )
    before = len(door.asked)
    found = AUTO.select(door, problem)
    named = {frozenset(p) for m in listed for p in pairs_of(m)} | {frozenset(("c2", "c7"))}
    assert together(found) == named
    about = {frozenset(c) for kind, asked, _ in door.asked[before:] if kind != "marginal" for c in asked}
    assert about == named | {frozenset(listed[0])}


def test_a_sum_of_two_columns_modulo_five_is_found_among_seven(monkeypatch):
    """Planted: without a question about triples of more than sixteen cells it is lost."""
    three = frozenset(("c0", "c1", "c6"))
    for planted in (False, True):
        if planted:
            monkeypatch.setattr("dpsynth.strategy.second_round.MOST_TRIPLES", 0)
        rng = np.random.default_rng(3)
        codes = {f"c{i}": rng.integers(0, 5, 20_000) for i in range(6)}
        codes["c6"] = (codes["c0"] + codes["c1"]) % 5
        door = FakeDoor(Domain(dict.fromkeys(codes, 5)), codes, Fraction(1, 20), rng)
        problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
        found = AUTO.select(door, problem)
        assert (three in map(frozenset, found.cliques)) is not planted
        assert door.exhausted


def test_few_columns_are_chosen_from_without_the_exponential_mechanism_and_many_with_it():
    for columns, expected in ((5, {"errors", "marginal"}), (40, {"choose", "errors", "marginal"})):
        domain = Domain({f"c{i:02}": 2 for i in range(columns)})
        door = ready(domain, 300, 1)
        problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
        AUTO.select(door, problem)
        assert {kind for kind, _, _ in door.asked} == expected
        said = AUTO.outline(domain.sizes, (), ZCDP, "gaussian")
        assert (said.choices > 0) == ("choose" in expected)


@pytest.mark.parametrize(("columns", "chosen"), [(25, False), (26, True)])
def test_small_pairs_are_all_asked_about_unless_they_are_more_than_twelve_a_column(columns, chosen):
    said = AUTO.outline({f"c{i:02}": 2 for i in range(columns)}, (), ZCDP, "gaussian")
    assert (said.choices > 0) == chosen


@pytest.mark.parametrize(("budget", "rounds"), some([(Fraction(1, 20), 2), (Fraction(1, 2000), 1)], 1))
def test_pairs_not_asked_about_are_looked_for_beside_the_tree_if_noise_lets_them_show(budget, rounds):
    domain = Domain({f"c{i:02}": 2 for i in range(30)})
    door = ready(domain, 20_000, 8, budget=budget)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 5)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted
    asked = [len(about) for kind, about, _ in door.asked[before:] if kind == "errors"]
    assert len(asked) == rounds
    assert asked[1:] == [435] * (rounds - 1)
    assert bool(found.distances) == (rounds == 2)


@pytest.mark.parametrize(("budget", "looked_for"), [(Fraction(1, 20), True), (Fraction(1, 2000), False)])
def test_pairs_that_the_tree_has_no_room_for_are_looked_for_if_noise_lets_them_show(
    monkeypatch, budget, looked_for
):
    monkeypatch.setattr("dpsynth.strategy.auto._bound", lambda trade, problem: 60)
    rng = np.random.default_rng(2)
    whole = rng.integers(0, 3, 20_000)
    codes = {f"c{i}": np.where(rng.random(20_000) < 0.8, whole, rng.integers(0, 3, 20_000)) for i in range(8)}
    door = FakeDoor(Domain(dict.fromkeys(codes, 3)), codes, budget, rng)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 100)
    found = AUTO.select(door, problem)
    assert len(found.inside) < len(list(combinations(codes, 2))) and door.exhausted
    assert bool(found.distances) == looked_for


def test_where_a_cells_error_is_0_in_floating_point_distances_would_tell():
    door = ready(Domain({"a": 2, "b": 2}), 20_000, 1, budget=Fraction(100))
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 5)
    exact = SimpleNamespace(cell_error=lambda price: 0.0)
    assert would_tell(exact, problem, 2000)


def test_pairs_are_picked_once_each_and_wanted_ones_are_not_chosen():
    domain = Domain({f"c{i:02}": 5 for i in range(30)})
    door = ready(domain, 300, 6, wild=True)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, wanted=(("c00", "c01"),))
    AUTO.select(door, problem)
    (distances,) = (asked for kind, asked, _ in door.asked if kind == "errors")
    assert distances[0] == ("c00", "c01") and len(set(distances)) == len(distances)
    assert len(distances) == 1 + AUTO.outline(domain.sizes, (), ZCDP, "gaussian").choices


def hidden_triple(rng, rows=20_000):
    """Pairs that depend on each other, more than a small tree holds; and c, which a and b tell together."""
    base = rng.integers(0, 6, rows)
    codes = {
        x: np.where(rng.random(rows) < 0.5, base, rng.integers(0, 6, rows)) for x in ("a", "b", "d", "e")
    }
    codes["c"] = (codes["a"] + codes["b"]) % 6
    return Domain(dict.fromkeys("abcde", 6)), codes


def selected(workload=None, *, measure=GDP, wild=False, seed=1):
    """The selection of auto where the tree has room for two pairs or three."""
    rng = np.random.default_rng(seed)
    domain, codes = hidden_triple(rng)
    door = FakeDoor(domain, codes, Fraction(5), rng, measure, wild=wild)
    problem = problem_of(
        door, one_way=door.budget / 20, structure=door.budget / 10, max_cells=160, workload=workload
    )
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted
    return found


@pytest.mark.parametrize("measure", [GDP, ZCDP])
def test_a_triple_that_its_pairs_dont_tell_is_measured_beside_the_tree(measure):
    found = selected(measure=measure)
    assert ("a", "b", "c") in found.beside
    assert {len(c) for c in found.beside} == {2, 3}


def triples_in(found):
    """The triples that are measured beside the tree."""
    return [c for c in found.beside if len(c) == 3]


def exclusive(budget, columns=8, rows=20_000):
    """The selection where columns are fair coins, but the last is the exclusive or of the first two."""
    rng = np.random.default_rng(5)
    codes = {f"c{i:02}": rng.integers(0, 2, rows) for i in range(columns)}
    codes[f"c{columns - 1:02}"] = codes["c00"] ^ codes["c01"]
    door = FakeDoor(Domain(dict.fromkeys(codes, 2)), codes, budget, rng)
    problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 10)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted
    return found, [about for kind, about, _ in door.asked[before:] if kind == "errors"]


@pytest.fixture
def unscanned(monkeypatch):
    """Parities that are never asked for."""
    monkeypatch.setattr(auto, "scan_of", lambda *_: None)


def test_an_exclusive_or_of_small_columns_is_found_though_no_pair_shows_it(unscanned):
    found, (_, _, triples) = exclusive(Fraction(1, 50))
    assert set(triples) == set(combinations((f"c{i:02}" for i in range(8)), 3))
    assert triples_in(found) == [("c00", "c01", "c07")]


def test_small_triples_are_asked_about_only_if_noise_lets_them_show(unscanned):
    found, asked = exclusive(Fraction(1, 2000))
    assert found.beside == () and len(asked) == 1


@pytest.mark.parametrize(("columns", "triples"), some([(25, 2300), (26, 0)], 1))
def test_small_triples_are_all_asked_about_in_tables_of_up_to_25_columns(unscanned, columns, triples):
    _, asked = exclusive(Fraction(1, 2), columns, 5000)
    assert sum(len(c) == 3 for about in asked for c in about) == triples
    said = AUTO.outline({f"c{i:02}": 2 for i in range(columns)}, (), ZCDP, "gaussian")
    assert sum(map(len, asked)) <= said.errors


@pytest.mark.parametrize(("columns", "triples"), [(180, 500), (181, 0)])
def test_triples_are_looked_for_in_tables_of_up_to_180_columns(columns, triples):
    sizes = {f"c{i:03}": 3 for i in range(columns)}
    assert later_distances(sizes, ZCDP) == 3000 + triples
    if not triples:
        door = ready(Domain(sizes), 100, 1)
        problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 10)
        for most, cells in (
            (second_round.SMALL_OF, second_round.SMALL_CELLS),
            (second_round.LARGER_OF, second_round.LARGER_CELLS),
        ):
            assert second_round._triples(problem, most, cells) == []


def test_small_triples_that_tell_nothing_are_not_measured():
    """Of 364 noisy distances from what is known, a hundred lie above a third of their noise by chance."""
    domain = Domain({f"c{i:02}": 2 for i in range(14)})
    door = ready(domain, 20_000, 9, budget=Fraction(1, 10))
    problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 10)
    assert len(triples_in(AUTO.select(door, problem))) <= 5
    assert [len(about) for kind, about, _ in door.asked if kind == "errors"] == [91, 91, 364]


def test_triples_are_measured_only_if_a_marginal_of_the_workload_holds_them():
    pairs_alone = selected(Workload(tuple("abcde"), ways=2))
    assert pairs_alone.beside and all(len(c) == 2 for c in pairs_alone.beside)
    listed = Workload(tuple("abcde"), ways=2, marginals=((("a", "d", "e"), 1),))
    assert {c for c in selected(listed, wild=True).beside if len(c) > 2} <= {("a", "d", "e")}


def test_whatever_the_noise_says_rounds_of_pairs_and_triples_spend_the_budget_and_no_more():
    for seed in range(cases(8, least=3)):
        selected(wild=True, seed=seed)
