"""Limits of noisy shares hold the truth as often as they say, for either noise, and with a public total."""

from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.accounting.calibration import noise_named
from dpsynth.columns.measurement import ExactTotal, Measurement
from dpsynth.statistics import single_columns as noisy_rows
from dpsynth.statistics.single_columns import CHANCE, Limits, NoisyRows
from tests.thinned import some

COUNTS = {"a": (400, 600), "b": (100, 200, 300, 400), "c": (10, 990)}


def answers(rng: np.random.Generator, noise: str, scale: float) -> list[Measurement]:
    """Noisy marginals of three columns of 1 000 rows, those of the last one three times as noisy."""
    found = []
    for name, counts in COUNTS.items():
        wide = 3 * scale if name == "c" else scale
        drawn = (
            rng.normal(scale=wide, size=len(counts))
            if noise == "gaussian"
            else rng.laplace(scale=wide, size=len(counts))
        )
        found.append(Measurement((name,), np.array(counts) + np.rint(drawn).astype(int), noise, wide))
    return found


def held(limits: list[Limits], truth: float) -> float:
    return sum(one.low <= truth <= one.high for one in limits) / len(limits)


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("column", some([0, 1, 2], 1))
def test_limits_of_two_deviations_hold_the_truth_19_times_in_20(
    rng: np.random.Generator, public: bool, column: int
) -> None:
    limits = []
    for _ in range(2000):
        singles = answers(rng, "gaussian", 30.0)
        rows = NoisyRows.of([ExactTotal.of(1000), *singles] if public else singles)
        two = replace(rows, deviations=1.96)
        limits.append(two.share(singles[column], [1]))
    truth = list(COUNTS.values())[column][1] / 1000
    # Limits are cut at 1, which the last column's share lies close to.
    least, most = (0.935, 0.965) if column < 2 else (0.935, 1.0)
    assert least < held(limits, truth) < most


def test_limits_without_the_columns_own_part_in_the_number_of_rows_would_be_noticed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column's own counts are in the number of rows too: the planted fault takes them for independent."""
    monkeypatch.setattr(noisy_rows, "_variance_of_sum", lambda answer: 1e12 * answer.variance_of_sum)
    limits = []
    for _ in range(2000):
        (first, *_) = answers(rng, "gaussian", 30.0)
        sound = NoisyRows(float(first.values.sum()), first.variance_of_sum, 0.0, 1.96)
        limits.append(sound.share(first, [1]))
    assert held(limits, 0.6) > 0.985


def test_the_number_of_rows_is_the_average_by_precision(rng: np.random.Generator) -> None:
    found = [NoisyRows.of(answers(rng, "gaussian", 10.0)) for _ in range(2000)]
    errors = np.array([one.rows for one in found]) - 1000
    assert np.std(errors) == pytest.approx(sqrt(found[0].variance), rel=0.07)
    assert abs(np.mean(errors)) < 4 * sqrt(found[0].variance / 2000)
    assert found[0].variance < 200  # better than the best column alone


@pytest.mark.parametrize("cells", [4, 200, 5000])
def test_all_limits_of_a_release_hold_together_but_for_the_chance(cells: int) -> None:
    """A union bound over every cell's two limits, and the number of rows."""
    tests = 2 * cells
    for noise in ("gaussian", "laplace"):
        m = Measurement(("a",), np.zeros(cells, dtype=np.int64), noise, 5.0)
        deviations = NoisyRows.of([m]).deviations
        reach = deviations * sqrt(noise_named(noise).variance(5.0))
        tail = norm.sf(deviations) if noise == "gaussian" else exp(-reach / 5.0) / 2
        assert tests * tail <= CHANCE * 1.05


def test_a_public_number_of_rows_is_taken_as_it_is() -> None:
    m = Measurement(("a",), np.array([700, 320]), "gaussian", 1.0)
    rows = NoisyRows.of([ExactTotal.of(1000), m])
    assert (rows.rows, rows.variance) == (1000, 0)
    found = rows.share(m, [0])
    assert found.estimate == 0.7 and found.high - 0.7 == pytest.approx(0.7 - found.low)


def test_noise_so_small_that_its_variance_rounds_to_nothing_divides_by_no_zero() -> None:
    m = Measurement(("a",), np.array([7, 3]), "laplace", 1e-4)
    found = NoisyRows.of([m]).share(m, [0])
    assert found.low == pytest.approx(0.7, abs=1e-3) == found.high
