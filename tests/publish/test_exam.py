"""The published exam: its limits, its table, what figures rest on it, and how the columns were related."""

from __future__ import annotations

from io import StringIO
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dpsynth.domain.domain import Domain
from dpsynth.domain.examined import Examined, reach
from dpsynth.domain.measurement import NoisyDistances
from dpsynth.plan.exam import exam_of
from dpsynth.publish.exam import Basis, Exam, distances_in
from dpsynth.publish.examined_estimates import ExaminedFigures

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
    assert distances_in(read, exam.to_json()) == pytest.approx(exam.by_columns)
    assert exam.by_columns[frozenset("ab")] == SIGMA
    assert distances_in(pd.DataFrame(), None) == {}


# Figures of the model.


class Joint:
    """A model that is a table of counts."""

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts
        self.total = float(counts.sum())

    def marginal(self, clique):
        return self.counts if len(clique) == 2 else self.counts.sum()


def figures(counts: np.ndarray, distance: float) -> ExaminedFigures:
    return ExaminedFigures(Joint(counts), {frozenset(("x", "y")): distance})


def test_errors_of_the_stated_sizes_add_up_to_the_distance() -> None:
    counts = np.array([[400.0, 90.0, 0.0], [5.0, 5.0, 500.0]])
    found = figures(counts, 120.0).counts(("x", "y"))
    assert np.sqrt(2 / np.pi) * found.error.sum() == pytest.approx(120.0)
    assert (found.error > 0).all() and found.rows.tolist() == counts.ravel().tolist()
    assert found.share_error == pytest.approx(found.error / 1000)


def held(counts: np.ndarray, off: np.ndarray, distance: float) -> tuple[float, float]:
    """The parts of counts, and of means by group, whose limits hold where the truth is off by so much."""
    found, centres = figures(counts, distance), np.arange(counts.shape[1]) + 0.5
    rows, means = found.counts(("x", "y")), found.means(("x", "y"), centres, np.zeros(counts.shape[1]))
    true = counts + off
    of_counts = np.abs(off.ravel()) <= 1.96 * rows.error
    of_means = np.abs(true @ centres / true.sum(axis=1) - means.mean) <= 1.96 * means.error
    return float(of_counts.mean()), float(of_means.mean())


def test_limits_hold_for_random_errors_and_for_many_means_where_a_relation_is_missing() -> None:
    rng = np.random.default_rng(5)
    counts = np.full((60, 12), 100.0)
    random = rng.normal(0, 10, counts.shape)
    assert min(held(counts, random, float(np.abs(random).sum()))) > 0.93
    slope = np.outer(np.linspace(-1, 1, 60), np.linspace(-1, 1, 12)) * 30
    # Means of the groups at both ends are off by more than the average group's.
    assert held(counts, slope, float(np.abs(slope).sum()))[1] > 0.45
    # Half of the distance, and errors of a mean taken to be random alone, would not do.
    assert held(counts, random, float(np.abs(random).sum()) / 2)[0] < 0.75


def test_a_group_that_can_not_be_told_from_nothing_has_no_mean() -> None:
    counts = np.array([[0.5, 0.5], [500.0, 499.0]])
    means = figures(counts, 50.0).means(("x", "y"), np.array([1.0, 2.0]), np.zeros(2))
    assert np.isnan(means.mean).tolist() == [True, False]
