"""Means and quantiles that are asked for: public facts decide how they are measured, within the budget."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration, noise_named
from dpsynth.columns.numeric import NumericCodec
from dpsynth.config import compiled
from dpsynth.plan.plan import Plan, make_plan
from dpsynth.plan.questions import (
    BinnedNumbers,
    GroupNoise,
    best_centring,
    best_pieces,
    by_bins_alone,
    by_counts_alone,
    own_noise,
    without_noise,
)
from dpsynth.strategy import strategy_of
from tests.specs import spec_of

COLUMNS = {
    "cost": {"type": "number", "bins": [0, 10, 50, 100, 500, 5000], "decimals": 2},
    "pair": {"type": "integer", "min": 0, "max": 1},
    "sex": {"type": "category", "values": ["F", "M"]},
    "site": {"type": "category", "values": ["A", "B", "C"]},
    "seen": {"type": "boolean"},
}
PRIVACY = {
    "pure": {"epsilon": 1},
    "gdp": {"epsilon": 1, "delta": 1e-9},
    "zcdp": {"epsilon": 1, "delta": 1e-9, "accountant": "zcdp"},
}


def plan_of(*statistics, privacy=None, method="mst") -> Plan:
    sections = {"structure": {"method": method}, "publish": {"statistics": list(statistics)}}
    spec = spec_of(COLUMNS, privacy=privacy or PRIVACY["pure"], **sections)
    return make_plan(compiled(spec), strategy_of(method, ()))


def ways(plan: Plan) -> dict[str, bool]:
    return {mean.column: bool(mean.price) for mean in plan.own.statistics}


@pytest.mark.parametrize("privacy", PRIVACY.values(), ids=list(PRIVACY))
@pytest.mark.parametrize("method", ["mst", "independent", "aim"])
def test_prices_of_all_steps_add_up_to_the_budget(privacy, method):
    plan = plan_of({"mean": "cost"}, {"mean": "cost", "by": "sex"}, privacy=privacy, method=method)
    assert sum(Fraction(step.cost) for step in plan.steps) == pytest.approx(float(plan.budget), rel=1e-12)
    (sums,) = (step for step in plan.steps if step.step == "sums")
    assert sums.questions == plan.own.sums == (1 if method == "independent" else 2)
    assert plan.own.price == plan.budget * plan.shares.statistics
    shares = plan.shares
    assert shares.one_way + shares.structure + shares.marginals + shares.statistics + shares.exam == 1


def test_wide_bins_are_summed_and_few_single_values_counted():
    plan = plan_of({"mean": "cost", "by": "sex"}, {"mean": "pair", "by": "site"})
    assert ways(plan) == {"cost": True, "pair": False}
    cost, pair = plan.own.statistics
    assert cost.by_own < cost.by_counts and pair.by_counts <= pair.by_own
    assert plan.shares.statistics == Fraction(1, 20)


def test_a_mean_of_truths_and_one_whose_pair_is_not_measured_are_not_summed():
    plan = plan_of(
        {"mean": "seen", "by": "sex"}, {"crosstab": ["sex", "site"]}, {"crosstab": ["cost", "sex"]},
        {"mean": "cost", "by": "site"},
    )  # fmt: skip
    assert plan.own.statistics == () and plan.shares.statistics == 0
    assert all(step.step != "sums" for step in plan.steps)


def test_a_split_without_sums_measures_none_and_one_with_sums_pays_as_said():
    split = {"one_way": 0.3, "structure": 0.1, "marginals": 0.5}
    mean = {"mean": "cost", "by": "sex"}
    assert plan_of(mean, privacy={"epsilon": 1, "split": split}).own.asked == ()
    plan = plan_of(mean, privacy={"epsilon": 1, "split": {**split, "statistics": 0.1}})
    assert plan.own.price == plan.budget / 10
    assert plan_of(privacy={"epsilon": 1, "split": {**split, "statistics": 0.1}}).shares.statistics == 0


def test_a_spec_with_other_means_has_another_fingerprint_and_one_without_the_one_that_it_had():
    def fingerprint(*statistics):
        return compiled(spec_of(COLUMNS, publish={"statistics": list(statistics)})).fingerprint

    assert fingerprint() == fingerprint({"mean": "seen"})
    assert fingerprint() != fingerprint({"mean": "cost"})


STEPS = NumericCodec((0.0, 10.0, 50.0, 100.0, 500.0, 5000.0), 2, integer=False).steps
BINS = BinnedNumbers(STEPS, STEPS.middles, np.array([5000.0, 3000.0, 1000.0, 900.0, 100.0]))


def noise_of(cell=3.0, step=3.0, groups=2) -> GroupNoise:
    return GroupNoise(cell, step, groups)


def test_without_noise_nothing_is_cut_off_and_with_much_the_widest_bins_are():
    quiet, _ = best_centring(BINS, noise_of(1e-6, 1e-6))
    assert not quiet.beyond(STEPS).any()
    loud, _ = best_centring(BINS, noise_of(30.0, 300.0))
    assert loud.limit < quiet.limit and loud.beyond(STEPS)[-1] > 0 and not loud.beyond(STEPS)[:3].any()


def test_a_sum_is_expected_to_do_better_than_wide_bins_alone():
    assert best_centring(BINS, noise_of())[1] < by_counts_alone(BINS, noise_of())


def test_counts_that_noise_alone_could_make_are_none():
    assert without_noise(np.array([100, -30, 15, 21]), 10.0).tolist() == [100, 0, 0, 21]
    assert without_noise(np.array([1, -3]), 10.0).tolist() == [1, 1]


def test_the_forecast_is_in_the_noise_that_is_drawn():
    plan = plan_of({"mean": "cost", "by": "sex"})
    bought = Calibration(plan.neighbours, plan.measure, noise_named(plan.noise))
    assert own_noise(bought, plan.own.statistics[0].price, ()) * 777 == pytest.approx(
        bought.sums(plan.own.statistics[0].price, 777).stddev, rel=1e-6
    )


# Quantiles.

QUANTILES = {"quantiles": "cost", "by": "sex"}


def test_quantiles_in_wide_bins_get_finer_counts_and_those_of_single_values_none():
    plan = plan_of(QUANTILES, {"quantiles": "pair", "by": "site"})
    wide, single = plan.own.statistics
    assert wide.price == plan.budget * plan.shares.statistics == plan.budget / 20 and not single.price
    assert wide.by_own < 0.8 * wide.by_counts and single.by_own >= 0.8 * single.by_counts
    assert wide.levels == (0.25, 0.5, 0.75)
    assert [step.questions for step in plan.steps if step.step == "quantiles"] == [1]


@pytest.mark.parametrize("privacy", PRIVACY.values(), ids=list(PRIVACY))
def test_sums_and_finer_counts_share_what_statistics_have(privacy):
    plan = plan_of({"mean": "cost"}, QUANTILES, {"quantiles": "cost"}, privacy=privacy)
    assert sum(Fraction(step.cost) for step in plan.steps) == pytest.approx(float(plan.budget), rel=1e-12)
    assert len(plan.own.asked) == 3 and plan.own.price == plan.budget * plan.shares.statistics
    assert plan.shares.statistics == Fraction(3, 20) and plan.own.columns == {"cost"}


def test_other_levels_are_other_questions_and_the_same_in_two_tables_are_asked_once():
    one, two = {**QUANTILES, "at": [0.5]}, {**QUANTILES, "at": [0.1, 0.9]}
    (both,) = plan_of(one, two).own.statistics
    assert both.levels == (0.1, 0.5, 0.9)


def pieces(piece=3.0, cell=3.0, rows=1.0) -> np.ndarray:
    """The number of pieces of each bin."""
    bins = BinnedNumbers(STEPS, STEPS.middles, rows * BINS.counts)
    found, _ = best_pieces(bins, GroupNoise(cell, piece, 2), (0.5,))
    return np.bincount(found.bin_of(STEPS), minlength=STEPS.bins)


def test_little_noise_makes_many_pieces_and_much_noise_none():
    few, some, many = pieces(piece=3000.0), pieces(piece=3.0), pieces(piece=0.3)
    assert few.tolist() == [1] * 5 and (some <= many).all() and some[0] > 1
    assert pieces(rows=100.0)[0] > some[0]


def test_finer_counts_are_expected_to_do_better_than_wide_bins_alone():
    noise = GroupNoise(3.0, 3.0, 2)
    assert best_pieces(BINS, noise, (0.5,))[1] < by_bins_alone(BINS, noise, (0.5,))
