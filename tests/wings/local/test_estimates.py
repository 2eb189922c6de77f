"""Estimates from reports: unbiased, with the variance that is stated, for every protocol and way to ask."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from dpsynth.wings.local import estimates
from dpsynth.wings.local.contract import Contract
from tests.thinned import some
from tests.wings.local.collections import (
    Codes,
    cliques_of,
    collected,
    contract_for,
    respondents,
    tally_of,
    truth_of,
)

PEOPLE = 600
PAIRS = {"method": "fixed", "cliques": [["sex", "plan"], ["plan", "age"]]}
WAYS = [(protocol, ask) for protocol in ("k_ary", "unary", "hashing") for ask in ("one", "all")]


def errors_of(contract: Contract, codes: Codes, runs: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Errors of all cells of all cliques, float64[runs, cells], and the variances that are stated."""
    found, stated = [], []
    for _ in range(runs):
        answers = collected(contract, codes, folder)
        cliques = cliques_of(contract)
        found.append(
            np.concatenate([(answers.marginal(c) - truth_of(contract, codes, c)).ravel() for c in cliques])
        )
        stated.append(np.concatenate([answers.cell_variances(c).ravel() for c in cliques]))
    return np.array(found), np.array(stated)


def deviation(errors: np.ndarray) -> float:
    """The largest mean error of a cell, in standard errors of that mean."""
    return float(np.abs(errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / sqrt(len(errors)))).max())


def check(contract: Contract, runs: int, folder: Path, *, most: float, ratio: float) -> None:
    """Unbiased within so many standard errors, and variances as stated within a ratio, over all cells."""
    errors, stated = errors_of(contract, respondents(PEOPLE), runs, folder)
    assert deviation(errors) < most
    found = float((errors**2).mean() / stated.mean())
    assert 1 / ratio < found < ratio


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "ask"), WAYS)
def test_five_hundred_collections_are_unbiased_with_the_stated_variance(
    protocol: str, ask: str, tmp_path: Path
) -> None:
    contract = contract_for(2, local={"protocol": protocol, "ask": ask}, structure=PAIRS)
    errors, stated = errors_of(contract, respondents(PEOPLE), 500, tmp_path)
    # About 40 cells: the largest of their deviations is above 4 standard errors in one of 400 runs.
    assert deviation(errors) < 4.5
    ratios = (errors**2).mean(axis=0) / stated.mean(axis=0)
    assert 0.75 < ratios.min() <= ratios.max() < 1.33
    covered = np.abs(errors) <= 1.96 * np.sqrt(stated)
    assert 0.92 < covered.mean() < 0.98


@pytest.mark.parametrize(("protocol", "ask"), some([("k_ary", "one"), ("unary", "all")], 1))
def test_a_few_collections_are_unbiased_with_the_stated_variance(
    protocol: str, ask: str, tmp_path: Path
) -> None:
    contract = contract_for(2, local={"protocol": protocol, "ask": ask}, structure=PAIRS)
    check(contract, 40, tmp_path, most=9.0, ratio=2.0)


@pytest.mark.slow
def test_a_wrong_factor_of_debiasing_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = contract_for(2, local={"protocol": "k_ary", "ask": "one"}, structure=PAIRS)
    sound = estimates._debiased

    def stretched(*args: object) -> estimates.LocalAnswer:
        answer = sound(*args)  # type: ignore[arg-type]
        mean = answer.values.mean()
        return estimates.LocalAnswer(
            answer.clique,
            mean + 3.0 * (answer.values - mean),
            answer.reports,
            answer.randomiser,
            answer.variance,
        )

    monkeypatch.setattr(estimates, "_debiased", stretched)
    with pytest.raises(AssertionError):
        check(contract, 40, tmp_path, most=9.0, ratio=2.0)


@pytest.mark.slow
def test_a_variance_without_its_sampling_part_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a large epsilon nearly all error is from who was asked what."""
    contract = contract_for(12, local={"protocol": "k_ary", "ask": "one"}, structure=PAIRS)
    check(contract, 40, tmp_path, most=9.0, ratio=2.0)
    monkeypatch.setattr(estimates, "_variance", lambda linear, shares: np.zeros(len(linear)))
    with pytest.raises(AssertionError):
        check(contract, 40, tmp_path, most=9.0, ratio=2.0)


def test_marginals_agree_and_add_up(tmp_path: Path) -> None:
    contract = contract_for(1, local={"ask": "one"}, structure=PAIRS)
    answers = collected(contract, respondents(PEOPLE), tmp_path)
    assert answers.marginal(()) == PEOPLE
    assert answers.variance((), np.array(1.0)) == 0
    pair, other = answers.marginal(("sex", "plan")), answers.marginal(("plan", "age"))
    np.testing.assert_allclose(pair.sum(axis=0), other.sum(axis=1))
    np.testing.assert_allclose(pair.sum(axis=0), answers.marginal(("plan",)))
    np.testing.assert_allclose(pair, answers.marginal(("plan", "sex")).T)
    assert not answers.covers(("sex", "age"))


def test_the_variance_of_a_sum_counts_covariances(tmp_path: Path) -> None:
    """That of a complement is that of the cell, as the total is exact; that of the whole is 0."""
    contract = contract_for(1, local={"ask": "one"}, structure=PAIRS)
    answers = collected(contract, respondents(PEOPLE), tmp_path)
    cell = np.array([1.0, 0.0, 0.0])
    assert answers.variance(("plan",), cell) == pytest.approx(answers.variance(("plan",), 1 - cell))
    assert answers.variance(("plan",), np.ones(3)) == pytest.approx(0.0, abs=1e-6)
    turned = answers.cell_variances(("age", "plan")).T
    np.testing.assert_allclose(answers.cell_variances(("plan", "age")), turned)


def test_warners_estimate_and_variance_are_the_textbooks(tmp_path: Path) -> None:
    """The mean of (Y - 1/2 + gamma)/(2 gamma), of variance 1/(16 gamma^2 n) - 1/(4 n) given the class."""
    columns = {"cheated": {"type": "category", "values": ["no", "yes"], "missing": False}}
    contract = contract_for(1.1, columns, local={"protocol": "two_coin"})
    yes = np.array([1] * 150 + [0] * 250)
    answers = collected(contract, {"cheated": yes}, tmp_path)
    (answer,) = answers.answers
    assert answers.cell_variances(("cheated",))[1] / 400**2 == pytest.approx(1 / (16 / 16 * 400) - 1 / 1600)
    reported = tally_of(contract, [])
    reported.answers[0].extend([1] * 180 + [0] * 220)
    reported.reports = 400
    exact = estimates.local_answers(contract, reported)
    assert exact.marginal(("cheated",))[1] == pytest.approx(400 * (2 * 180 / 400 - 0.5))
    assert answer.reports == 400
