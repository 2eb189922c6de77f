"""Contracts: what is asked follows from public facts, and keeps to epsilon."""

from fractions import Fraction

import pytest

from dpsynth.errors import ConfigError
from dpsynth.wings.local.contract import Contract, expected_loss
from dpsynth.wings.local.randomisers import log_above
from tests.wings.local.collections import COLUMNS, contract_for

BINARY = {name: {"type": "boolean", "missing": False} for name in "abcd"}
WIDE = {**BINARY, "town": {"type": "integer", "min": 0, "max": 199, "bins": 200, "missing": False}}


def asked(contract: Contract) -> set[tuple[str, ...]]:
    return {question.columns for question in contract.questions}


def test_every_column_is_asked_about() -> None:
    for method in ("auto", "independent"):
        for columns in (COLUMNS, BINARY, WIDE):
            contract = contract_for(1, columns, structure=method)
            assert {c for clique in asked(contract) for c in clique} == set(columns)


def test_pairs_are_asked_where_their_noise_leaves_something_to_see() -> None:
    many = contract_for(2, WIDE, local={"respondents": 100_000})
    assert ("a", "b") in asked(many)
    few = contract_for(0.5, WIDE, local={"respondents": 2_000})
    assert ("town",) in asked(few)
    assert len(asked(few)) < len(asked(many))


def test_pairs_of_requested_statistics_are_asked() -> None:
    contract = contract_for(0.5, WIDE, publish={"statistics": [{"crosstab": ["a", "town"]}]})
    assert ("a", "town") in asked(contract)


def test_listed_cliques_are_asked_and_other_columns_alone() -> None:
    structure = {"method": "fixed", "cliques": [["c", "a", "b"]]}
    contract = contract_for(1, BINARY, structure=structure)
    assert asked(contract) == {("a", "b", "c"), ("d",)}


def test_the_better_way_to_ask_is_chosen() -> None:
    """One question of several needs no division of epsilon; a single question is the same both ways."""
    contract = contract_for(1, BINARY)
    assert contract.one
    assert not contract_for(1, {"a": BINARY["a"]}).one
    losses = {ask: expected_loss_of(contract_for(1, BINARY, local={"ask": ask})) for ask in ("one", "all")}
    assert losses["one"] < losses["all"]


def expected_loss_of(contract: Contract) -> float:
    from dpsynth.wings.local.contract import _layout

    layout = _layout(contract.domain, contract.section, contract.asked_for, one=contract.one)
    return expected_loss(contract.compiled, layout, [q.columns for q in contract.questions])


@pytest.mark.parametrize("ask", ["one", "all"])
def test_no_report_costs_more_than_epsilon(ask: str) -> None:
    for epsilon in (0.001, 1, 5, 30):
        contract = contract_for(epsilon, BINARY, local={"ask": ask})
        losses = [log_above(q.randomiser.odds) for q in contract.questions]
        total = max(losses) if ask == "one" else sum(losses)
        # The logarithm is rounded up by less than 1e-11 for each answer.
        assert total <= contract.epsilon + Fraction(len(losses), 10**11)
        assert contract.epsilon <= Fraction(str(epsilon))


def test_protocols_of_two_values_ask_single_columns_and_keep_to_epsilon() -> None:
    contract = contract_for(1.1, BINARY, local={"protocol": "two_coin"})
    assert asked(contract) == {("a",), ("b",), ("c",), ("d",)}
    assert contract.one
    assert float(contract.epsilon) == pytest.approx(1.0986, abs=1e-4)
    whole = contract_for(4.5, BINARY, local={"protocol": "two_coin", "ask": "all"})
    assert float(whole.epsilon) == pytest.approx(4 * 1.0986, abs=1e-3)
    with pytest.raises(ConfigError, match=r"privacy\.epsilon 1 is not enough.* 1\.0986"):
        contract_for(1, BINARY, local={"protocol": "two_coin"})
    with pytest.raises(ConfigError, match=r"privacy\.epsilon 1 is not enough"):
        contract_for(1, BINARY, local={"protocol": "warner", "gamma": 0.4})
    with pytest.raises(ConfigError, match="for questions of two values"):
        contract_for(2, COLUMNS, local={"protocol": "warner"})


def test_a_question_of_too_many_cells_is_refused() -> None:
    wide = {n: {"type": "integer", "min": 0, "max": 999, "bins": 1000, "missing": False} for n in "ab"}
    with pytest.raises(ConfigError, match=r"1,000,000 cells, and 100,000 are allowed"):
        contract_for(1, wide, structure={"method": "fixed", "cliques": [["a", "b"]]})
