"""What `dpsynth.testing` offers works as its page says, and fails what it is there to fail."""

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.ledger.ledger import Ledger
from dpsynth.testing import FakeDoor, coded_table, same_figures, temporary_ledger

PAGE = Path(__file__).parents[1] / "docs" / "structure.md"
DOMAIN = Domain({"age": 5, "sex": 2})
CODES = {"age": np.array([0, 4, 4, 2], np.uint8), "sex": np.array([0, 1, 0, 1], np.uint8)}


def example() -> str:
    section = PAGE.read_text(encoding="utf-8").partition("## A strategy of your own")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_page_runs() -> None:
    exec(compile(example(), str(PAGE), "exec"), {})


def test_a_strategy_that_overspends_is_caught() -> None:
    door = FakeDoor(DOMAIN, CODES, Fraction(1, 10), np.random.default_rng(0))
    door.marginals([("age",)], Fraction(1, 10))
    with pytest.raises(AssertionError):
        door.marginals([("sex",)], Fraction(1, 10))


def test_an_engine_that_counts_a_row_twice_is_caught() -> None:
    table = coded_table(DOMAIN, CODES, {"age": np.array([3, 40, 44, 21], np.int32)})
    same_figures(table, table)
    for other in (
        replace(table, codes={**CODES, "sex": np.array([0, 1, 1, 1], np.uint8)}),
        replace(table, steps={"age": np.array([3, 40, 44, 22], np.int32)}),
    ):
        with pytest.raises(AssertionError):
            same_figures(other, table)


def test_a_ledger_for_a_test_is_gone_after_it() -> None:
    with temporary_ledger() as url:
        file = Path(url.removeprefix("sqlite:///"))
        Ledger(url)
        assert file.parent.is_dir()
    assert not file.parent.exists()
