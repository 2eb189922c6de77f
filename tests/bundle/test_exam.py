"""The published exam: its limits, its table, what figures rest on it, and how the columns were related."""

from dataclasses import astuple
from functools import partial
from io import StringIO
from itertools import combinations
from math import isnan
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpsynth.accounting.calibration import reach
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Examined, NoisyDistances
from dpsynth.plan.plan import exam_of
from dpsynth.statistics.exam import Basis, Distance, Exam, ExaminedCells, distances_in
from dpsynth.statistics.group_figures import Contents, Estimate, Group, mean
from dpsynth.statistics.sources import Sources

DOMAIN = Domain({"a": 2, "b": 3, "c": 4, "d": 5, "e": 2})
ROWS = 1000
SIGMA = 20.0


def exam_with(values: np.ndarray, noise: str = "gaussian") -> Exam:
    pairs = [Examined("pair", clique) for clique in combinations(DOMAIN.columns, 2)][: len(values)]
    distances = NoisyDistances(tuple(e.clique for e in pairs), values, noise, SIGMA)
    return Exam(pairs, distances, ROWS, DOMAIN, Basis([]))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_limits_lie_as_far_from_the_error_as_95_of_100_draws_of_noise_reach(noise: str) -> None:
    table = exam_with(np.array([400, 0, -300, 2500]), noise).table.to_pandas()
    wide = reach(noise, SIGMA) / (2 * ROWS)
    assert table.error.tolist() == [0.2, 0.0, 0.0, 1.0]
    assert table.low.tolist() == pytest.approx([0.2 - wide, 0, 0, 1])
    assert table.high.tolist() == pytest.approx([0.2 + wide, wide, wide, 1])


def test_limits_of_errors_and_of_their_mean_hold_of_what_noise_was_added_to() -> None:
    rng = np.random.default_rng(3)
    true = np.linspace(0, 800, 10)
    single, mean = [], []
    for _ in range(1000):
        exam = exam_with((true + rng.normal(0, SIGMA, 10)).round().astype(np.int64))
        table = exam.table.to_pandas()
        single.append((table.low <= true / (2 * ROWS)) & (true / (2 * ROWS) <= table.high))
        mean.append(exam.pairs.low <= true.mean() / (2 * ROWS) <= exam.pairs.high)
    # Five standard errors of 10 000 and of 1 000 draws.
    assert 0.938 < np.mean(single) < 0.979
    assert 0.915 < np.mean(mean) < 0.986


def test_limits_by_half_of_the_noise_would_be_caught() -> None:
    rng = np.random.default_rng(4)
    exams = [exam_with(rng.normal(400, 2 * SIGMA, 10).round().astype(np.int64)).table for _ in range(200)]
    held = [(t["low"].to_numpy() <= 0.2) & (t["high"].to_numpy() >= 0.2) for t in exams]
    assert np.mean(held) < 0.75


@pytest.mark.parametrize(
    ("clique", "basis"),
    [
        (("a", "b"), "measured"),
        (("b", "c"), "public"),
        (("c", "d"), "earlier"),
        (("a", "c"), "through others"),
        (("a", "d"), "through others"),
        (("a", "b", "c"), "through others"),
        (("a", "e"), "independent"),
        (("a", "b", "e"), "independent"),
    ],
)
def test_the_basis_is_the_marginal_that_holds_the_columns_or_the_path_between_them(clique, basis) -> None:
    assert Basis([("a", "b")], [("b", "c"), ("e",)], [("c", "d")]).of(clique) == basis


def test_a_lost_exam_has_no_table_and_says_so() -> None:
    exam = Exam([Examined("pair", ("a", "b"))], None, ROWS, DOMAIN, Basis([]))
    assert exam.table.num_rows == 0 and exam.by_columns == {} and exam.pairs is None
    assert exam.to_json() == {"answered": False, "marginals": 1, "rows": ROWS}


def test_the_file_tells_the_distances_that_intervals_rest_on() -> None:
    examined = exam_of(DOMAIN, [("a", "b", "c", "d")])
    cliques = tuple(e.clique for e in examined)
    values = np.arange(len(cliques)) * 37 - 60
    exam = Exam(examined, NoisyDistances(cliques, values, "gaussian", SIGMA), ROWS, DOMAIN, Basis([]))
    read = pd.read_csv(StringIO(exam.table.to_pandas().to_csv(index=False)))
    stated = {key: exam.to_json()[key] for key in ("rows", "standard_error", "noise", "scale")}
    again = distances_in(read, **stated)
    assert again.keys() == exam.by_columns.keys()
    for columns, distance in exam.by_columns.items():
        assert astuple(again[columns]) == pytest.approx(astuple(distance))
    assert astuple(exam.by_columns[frozenset("ab")]) == pytest.approx((SIGMA, reach("gaussian", SIGMA)))


# Figures of the model.


def cells_of(counts: np.ndarray, distance: float, highest: float = 1e9) -> ExaminedCells:
    return ExaminedCells(counts, Distance(distance, highest), 0.0)


def test_errors_of_the_stated_sizes_add_up_to_the_distance() -> None:
    counts = np.array([[400.0, 90.0, 0.0], [5.0, 5.0, 500.0]])
    found = cells_of(counts, 120.0).figures
    assert 1.96 / np.log(20) * found.error.sum() == pytest.approx(120.0)
    assert (found.error > 0).all() and found.rows.tolist() == counts.ravel().tolist()
    assert found.share_error == pytest.approx(found.error / 1000)


def means_of(cells: ExaminedCells) -> list[Estimate]:
    """The mean of the second column by the first: numbers 0.5, 1.5 and so on."""
    groups, size = cells.cells.shape
    centres, nothing = np.arange(size) + 0.5, np.zeros(size)
    held, ones = Contents(centres, nothing, centres, centres), np.ones(size)
    return [
        mean(Group(row, ones, ones, ones, partial(cells.reach, place=(number, groups))), held)
        for number, row in enumerate(cells.cells)
    ]


def held(counts: np.ndarray, off: np.ndarray, distance: float) -> tuple[float, float]:
    """The parts of counts, and of means by group, whose limits hold where the truth is off by so much."""
    cells, true = cells_of(counts, distance), counts + off
    of_counts = np.abs(off.ravel()) <= 1.96 * cells.figures.error
    means = true @ (np.arange(counts.shape[1]) + 0.5) / true.sum(axis=1)
    of_means = [m.low <= right <= m.high for m, right in zip(means_of(cells), means, strict=True)]
    return float(of_counts.mean()), float(np.mean(of_means))


def missing_relation(random: np.ndarray) -> np.ndarray:
    """Errors where a relation is missing, beside random ones; the groups at both ends are furthest off."""
    groups, size = random.shape
    return np.outer(np.linspace(-1, 1, groups), np.linspace(-1, 1, size)) * 20 + random


def test_errors_that_are_taken_to_shift_nothing_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5).normal(0, 10, (60, 12))
    off = missing_relation(random)
    monkeypatch.setattr(ExaminedCells, "shifting", 0.0)
    assert held(np.full(off.shape, 100.0), off, float(np.abs(off).sum()))[1] < 0.75


def test_a_distance_by_chance_alone_shifts_nothing() -> None:
    counts = np.full((6, 5), 100.0)
    by_chance = float(np.sqrt(counts / np.pi).sum())
    assert cells_of(counts, 0.99 * by_chance).shifting == 0 < cells_of(counts, 2 * by_chance).shifting < 1


def test_chance_puts_no_more_rows_into_small_cells_than_there_are() -> None:
    """400 rows in 8,000 cells, of which some move from one half of the groups to the other."""
    counts, rng = np.full((4, 2000), 0.05), np.random.default_rng(8)
    true = rng.poisson(counts * np.array([[1.4], [1.4], [0.6], [0.6]]))
    drawn = rng.poisson(counts)
    cells, off = cells_of(counts, float(np.abs(true - drawn).sum())), np.abs(true.sum(1) - counts.sum(1))
    assert off.max() > 40
    assert all(cells.reach(np.ones(2000), (group, 4)) > off[group] for group in range(4))


def test_no_table_is_nearer_in_some_columns_than_in_fewer_of_them() -> None:
    direct = SimpleNamespace(covers=lambda clique: False, cell_variance=lambda clique: 0.0)
    model = SimpleNamespace(marginal=lambda clique: np.ones((2, 3, 4)))
    near = {
        "ab": Distance(300, 500),
        "bc": Distance(90, 700),
        "abc": Distance(20, 900),
        "de": Distance(999, 999),
    }
    sources = Sources((), direct, model, distances={frozenset(c): d for c, d in near.items()})
    assert sources.known(("a", "b", "c")).distance == Distance(300, 900)
    assert sources.known(("b", "c")).distance == near["bc"]


def test_limits_hold_for_random_errors_and_for_many_means_where_a_relation_is_missing() -> None:
    rng = np.random.default_rng(5)
    counts = np.full((60, 12), 100.0)
    random = rng.normal(0, 10, counts.shape)
    assert min(held(counts, random, float(np.abs(random).sum()))) > 0.93
    off = missing_relation(random)
    assert min(held(counts, off, float(np.abs(off).sum()))) > 0.9
    # Half of the distance, and errors of a mean taken to be random alone, would not do.
    assert held(counts, random, float(np.abs(random).sum()) / 2)[0] < 0.85


def test_a_group_that_can_not_be_told_from_nothing_has_no_mean() -> None:
    found = means_of(cells_of(np.array([[0.5, 0.5], [500.0, 499.0]]), 50.0))
    assert [isnan(m.value) for m in found] == [True, False]


@pytest.mark.parametrize(
    "weights", [np.eye(6)[2], np.array([1, 1, 1, 0, 0, 0]), np.array([2, -1, 0, 0, 3, 0])]
)
def test_no_table_at_the_distance_moves_a_sum_further_than_the_bound(weights: np.ndarray) -> None:
    """All tables of as many rows whose errors add up to D: the worst moves D/2 from one cell to another."""
    rng, distance = np.random.default_rng(6), 60.0
    cells = ExaminedCells(np.full((2, 3), 100.0), Distance(1e9, distance), 0.0)
    reach = cells.reach(weights.astype(float))
    off = rng.normal(size=(4000, 6)) * rng.random((4000, 6)) ** 8
    off -= off.mean(axis=1, keepdims=True)
    off *= distance / np.abs(off).sum(axis=1, keepdims=True)
    assert np.abs(off @ weights).max() <= reach * (1 + 1e-9)
    worst = (np.eye(6)[weights.argmax()] - np.eye(6)[weights.argmin()]) * distance / 2
    assert abs(worst @ weights) == pytest.approx(reach)


def test_the_bound_counts_rows_by_which_the_tables_differ() -> None:
    cells = ExaminedCells(np.full((2, 3), 100.0), Distance(1e9, 60.0), 10.0)
    # All rows: nothing but the difference. One cell: half of the distance, and half of the difference.
    assert cells.reach(np.ones(6)) == pytest.approx(10.0)
    assert cells.reach(np.eye(6)[0]) == pytest.approx(35.0)
    assert cells.reach(np.ones(3), (0, 2)) == pytest.approx(35.0)
