"""Fits of single columns have the zeros of rules: what these say of columns together is no news to a
strategy, and pairs are denoised about columns that agree with each other."""

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.workload import Workload
from dpsynth.model import Expansion, estimate
from dpsynth.model.reused_answers import ReusedAnswers
from dpsynth.pipeline.measuring import Answers, Measured
from dpsynth.strategy import strategy
from dpsynth.strategy.strategy import Problem, Selection

# A number of rows, and two columns of a row that is there where the number is 1.
DOMAIN = Domain({"number": 2, "a": 3, "b": 4})
COUNTS = {"number": [700, 300], "a": [700, 100, 200], "b": [700, 60, 90, 150]}
THERE = np.array([[False], [True]])
ZEROS = {("number", c): (np.arange(DOMAIN.sizes[c]) > 0)[None] != THERE for c in "ab"}
TOGETHER = np.zeros((3, 4))
TOGETHER[0, 0], TOGETHER[1:, 1:] = 700, np.outer([100, 200], [60, 90, 150]) / 300


def problem(zeros):
    singles = [Measurement((c,), np.array(n), "gaussian", 1.0) for c, n in COUNTS.items()]
    start = estimate(DOMAIN, singles)
    return Problem(
        DOMAIN, DOMAIN, tuple(singles), start, Workload(DOMAIN.columns), (), 0, 10_000, zeros=zeros
    )


def test_columns_that_are_missing_together_are_known_to_be():
    asked = problem(ZEROS)
    known = asked.refit((), asked.start).model.marginal(("a", "b"))
    np.testing.assert_allclose(known, TOGETHER, atol=1)
    blind = problem({})
    assert np.abs(blind.refit((), blind.start).model.marginal(("a", "b")) - TOGETHER).sum() > 500


def test_zeros_that_would_make_the_tree_too_large_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(strategy, "RULED_CELLS", 5)
    asked = problem(ZEROS)
    assert not asked.refit((), asked.start).zeros


@pytest.mark.parametrize(("zeros", "none"), [(ZEROS, True), ({}, False)])
def test_a_pair_that_noise_hides_is_denoised_about_columns_as_rules_leave_them(zeros, none):
    # 700 of 1,000 rows have no row below. The number's own counts say 300, and are the least precise.
    domain = Domain({**DOMAIN.sizes, "city": 40})
    singles = [Measurement((c,), np.array(n), "gaussian", 10.0) for c, n in COUNTS.items()][1:]
    singles += [Measurement(("number",), np.array([300, 700]), "gaussian", 300.0)]
    singles += [Measurement(("city",), np.full(40, 25), "gaussian", 5.0)]
    values = np.random.default_rng(0).normal(12.5, 100.0, (2, 40))
    pair = Measurement(("number", "city"), np.rint(values).astype(np.int64), "gaussian", 100.0)
    answers = Answers((), (), (), ReusedAnswers(domain), None)
    held = Selection((pair.clique,), (pair,))
    measured = Measured(answers, Expansion(domain, Compression({}), tuple(singles)), held, zeros=zeros)
    rows = measured.posteriors[pair.clique].mean.sum(axis=1)
    assert (rows[0] > 2 * rows[1]) == none


@pytest.mark.parametrize("seed", range(4))
def test_by_weights_a_value_whose_own_count_is_lost_in_noise_keeps_the_rows_that_pairs_tell(seed):
    """Planted: estimates by the counts of single columns alone, by which pairs lost the value's rows."""
    rng = np.random.default_rng(seed)
    domain = Domain({"year": 20, "plan": 4, "town": 6})

    def asked(clique, sigma):
        shape = domain.shape(clique)
        noisy = np.rint(5000 / np.prod(shape) + rng.normal(0, sigma, shape)).astype(np.int64)
        return Measurement(clique, noisy, "gaussian", sigma)

    lost = np.where(np.arange(20) == 7, -600, 250)
    singles = (
        Measurement(("year",), lost, "gaussian", 300.0),
        asked(("plan",), 50.0),
        asked(("town",), 50.0),
    )
    pairs = (asked(("year", "plan"), 30.0), asked(("year", "town"), 25.0))
    held = Selection(tuple(m.clique for m in pairs), pairs)
    map_of_weights = Expansion(domain, Compression({}), singles)
    answers = Answers((), (), (), ReusedAnswers(domain), None)
    measured = Measured(answers, map_of_weights, held, weights=map_of_weights)
    assert all(known.mean[7].sum() > 80 for known in measured.posteriors.values())
