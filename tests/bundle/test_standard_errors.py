"""Tables straight from the answers: by hand, and against noise drawn over and over."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest

from dpsynth.bundle import StatisticTable, compute_statistics
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.statistic_kinds import Asked
from dpsynth.model import LeastSquares
from dpsynth.statistics.sources import Sources
from tests.bundle.requests import crosstab, mean_of

AGE = Column("age", NumericCodec((0.0, 10.0, 20.0), 0, integer=True), missing=True)
SEX = Column("sex", CategoryCodec(("F", "M")), missing=False)
CITY = Column("city", CategoryCodec(("A", "B", "C")), missing=False)


class Untouched:
    """A model that must not be asked."""

    total = 1.0

    def marginal(self, clique: tuple[str, ...]) -> np.ndarray:
        raise AssertionError(f"{clique} was measured")


def measured(
    columns: Sequence[Column], measurements: Sequence[Measurement], *requests: Asked
) -> dict[str, StatisticTable]:
    direct = LeastSquares(domain_of(columns), measurements)
    tables = compute_statistics(requests, Sources(columns, direct, Untouched()))
    assert all(table.measured for table in tables)
    return {table.title: table for table in tables}


def by_hand(values: list[list[int]], *requests: Asked) -> dict[str, StatisticTable]:
    """Statistics of one measurement of age by sex: every cell has variance 4, and on its own."""
    pair = Measurement(("age", "sex"), np.array(values), "gaussian", 2.0)
    return measured((AGE, SEX), [pair], *requests)


VALUES = [[10, -3], [30, -8], [60, 5]]


def test_a_measured_count_is_the_answer_itself_with_the_noise_that_it_got():
    table = by_hand(VALUES, crosstab(("age", "sex")))["age and sex"].table
    assert table["estimate"].to_pylist() == pytest.approx([10.0, -3.0, 30.0, -8.0, 60.0, 5.0])
    assert table["standard_error"].to_pylist() == pytest.approx([2.0] * 6)
    single = by_hand(VALUES)["age"].table
    assert single["estimate"].to_pylist() == pytest.approx([7.0, 22.0, 65.0])
    assert single["standard_error"].to_pylist() == pytest.approx([sqrt(8)] * 3)


def test_only_the_ends_of_an_interval_are_cut_at_zero():
    table = by_hand(VALUES, crosstab(("age", "sex")))["age and sex"].table
    low, high = table["low"].to_pylist(), table["high"].to_pylist()
    assert (low[0], high[0]) == pytest.approx((10 - 3.92, 10 + 3.92))
    # A count below 0 has the limits of none: its interval never is that of a proven 0.
    assert (low[1], high[1]) == pytest.approx((0.0, 3.92))
    assert (low[3], high[3]) == pytest.approx((0.0, 3.92))


def test_cells_add_up_to_the_one_way_tables_and_those_to_one_number_of_rows():
    tables = by_hand(VALUES, crosstab(("sex", "age")))
    cells = np.array(tables["sex and age"].table["estimate"]).reshape(2, 3)
    assert tables["age"].table["estimate"].to_pylist() == pytest.approx(list(cells.sum(axis=0)))
    assert tables["sex"].table["estimate"].to_pylist() == pytest.approx(list(cells.sum(axis=1)))


def test_error_of_a_share_counts_that_its_rows_are_among_all_rows():
    table = by_hand(VALUES)["age"].table
    share = 7 / 94
    assert table["share"][0].as_py() == pytest.approx(share)
    # (7 - share n) has weight 1 - share on two cells and -share on four, each of variance 4.
    moved = 4 * (2 * (1 - share) ** 2 + 4 * share**2)
    assert table["share_standard_error"][0].as_py() == pytest.approx(sqrt(moved) / 94)


def test_shares_of_nobody_are_null():
    table = by_hand([[1, 0], [0, -1], [0, 0]])["age"].table
    assert table["share"].null_count == table["share_standard_error"].null_count == 3
    assert table["estimate"].null_count == 0


def test_where_the_number_of_rows_is_public_it_adds_no_error_to_a_share():
    ages = Measurement(("age",), np.array([20, 30, 40]), "laplace", 3.0)
    public = Measurement((), np.array(100), "none", 0.0)
    table = measured((AGE,), [public, ages])["age"].table
    assert sum(table["estimate"].to_pylist()) == pytest.approx(100.0)
    # The rows that the answers lack are spread evenly, which leaves 2/3 of the variance.
    error = sqrt(ages.variance * 2 / 3)
    assert table["standard_error"].to_pylist() == pytest.approx([error] * 3)
    assert table["share_standard_error"].to_pylist() == pytest.approx([error / 100] * 3)


def test_a_measured_mean_is_a_ratio_with_its_error_to_first_order():
    table = by_hand(VALUES, mean_of("age", "sex"))["age by sex"].table
    mean = (10 * 4.5 + 30 * 15.0) / 40
    assert table["sex"].to_pylist() == ["F", "M"]
    assert table["rows"].to_pylist() == pytest.approx([40.0, -11.0])
    assert table["estimate"][0].as_py() == pytest.approx(mean)
    error = 2 * sqrt((4.5 - mean) ** 2 + (15.0 - mean) ** 2) / 40
    assert table["standard_error"][0].as_py() == pytest.approx(error)
    assert table["grouping_error"][0].as_py() == pytest.approx((10 * 4.5 + 30 * 5.0) / 40)


@pytest.mark.parametrize("by", ["sex", "city"])
def test_error_of_a_mean_is_that_of_its_weights_where_answers_overlap(by):
    rng = np.random.default_rng(3)
    columns = (AGE, SEX, CITY)
    domain = domain_of(columns)
    answers = [
        Measurement(clique, rng.integers(200, 400, domain.shape(clique)), "gaussian", 3.0 + len(clique))
        for clique in [(), ("age",), ("sex",), ("sex", "age"), ("age", "city")]
    ]
    direct = LeastSquares(domain, answers)
    found = measured(columns, answers, mean_of("age", by))[f"age by {by}"].table
    for group, error in enumerate(found["standard_error"].to_pylist()):
        weights = np.zeros(domain.shape((by, "age")))
        mean, rows = found["estimate"][group].as_py(), found["rows"][group].as_py()
        weights[group, :2] = (np.array([4.5, 15.0]) - mean) / rows
        assert error == pytest.approx(sqrt(direct.variance((by, "age"), weights)))


@pytest.mark.parametrize(("rows", "given"), [(8, False), (9, True)])
def test_a_group_within_three_standard_errors_of_nobody_has_no_mean(rows, given):
    # Rows with a known age are two cells of variance 4: three standard errors are 8.49.
    table = by_hand([[rows, 50], [0, 50], [70, 50]], mean_of("age", "sex"))["age by sex"].table
    for name in ("estimate", "standard_error", "low", "high", "grouping_error"):
        assert (table[name][0].as_py() is not None) == given and table[name][1].as_py() is not None
    assert table["rows"][0].as_py() == pytest.approx(rows)


def test_a_column_of_one_known_value_has_a_mean_without_error():
    one = Column("age", NumericCodec((3.0, 4.0), 0, integer=True), missing=True)
    pair = Measurement(("age", "sex"), np.array([[70, 90], [5, 8]]), "gaussian", 2.0)
    table = measured((one, SEX), [pair], mean_of("age", "sex"))["age by sex"].table
    assert table["estimate"].to_pylist() == pytest.approx([one.centres[0]] * 2)
    assert table["standard_error"].to_pylist() == pytest.approx([0.0, 0.0])


DRAWS = 400
COLUMNS = (AGE, SEX, CITY)
TRUTH = np.random.default_rng(11).integers(60, 600, size=(3, 2, 3))
REQUESTS = (
    crosstab(("city", "age")),
    crosstab(("age", "sex")),
    mean_of("age", "sex"),
    mean_of("age", "city"),
    mean_of("age"),
)
ASKED = {(): 9.0, ("age",): 6.0, ("sex",): 7.0, ("city",): 5.0, ("age", "sex"): 8.0, ("age", "city"): 10.0}


def true_marginal(clique: tuple[str, ...]) -> np.ndarray:
    axes = tuple(place for place, column in enumerate(COLUMNS) if column.name not in clique)
    return TRUTH.sum(axis=axes)


def figures(truth_plus: dict[tuple[str, ...], np.ndarray], stated: float) -> tuple[np.ndarray, np.ndarray]:
    """All counts, shares and means of some answers, and their standard errors."""
    answers = [Measurement(c, v, "gaussian", stated * ASKED[c]) for c, v in truth_plus.items()]
    estimates, errors = [], []
    for statistic in measured(COLUMNS, answers, *REQUESTS).values():
        names = [("estimate", "standard_error")]
        names += [("share", "share_standard_error")] if statistic.kind == "one_way" else []
        for estimate, error in names:
            estimates.append(statistic.table[estimate].to_numpy())
            errors.append(statistic.table[error].to_numpy())
    return np.concatenate(estimates), np.concatenate(errors)


def errors_against_deviations(stated: float, draws: int = DRAWS) -> np.ndarray:
    """Each statistic's distance from the truth over many draws, in its own standard errors."""
    rng = np.random.default_rng(5)
    truth, _ = figures({c: true_marginal(c) for c in ASKED}, 1.0)
    scores = []
    for _ in range(draws):
        noisy = {
            c: np.rint(true_marginal(c) + rng.normal(0, s, true_marginal(c).shape)) for c, s in ASKED.items()
        }
        estimates, errors = figures({c: v.astype(np.int64) for c, v in noisy.items()}, stated)
        scores.append((estimates - truth) / errors)
    return np.sqrt(np.mean(np.square(scores), axis=0))


def honest(deviations: np.ndarray) -> bool:
    """Whether every statistic strays as far as its standard error says, within 12 %."""
    return bool((np.abs(deviations - 1.0) < 0.12).all())


def test_standard_errors_are_how_far_estimates_stray_from_the_truth():
    deviations = errors_against_deviations(stated=1.0)
    assert len(deviations) == 2 * (3 + 2 + 3) + 9 + 6 + 2 + 3 + 1
    assert honest(deviations)


@pytest.mark.slow
def test_noise_stated_too_small_is_caught_by_the_same_check():
    deviations = errors_against_deviations(stated=0.7, draws=DRAWS // 2)
    assert not honest(deviations) and (deviations > 1.2).all()
