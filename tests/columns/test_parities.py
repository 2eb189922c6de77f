"""Parities of sets of columns: by their definition, in the order of the sets, and over parts of the rows."""

from itertools import combinations
from math import prod

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.parities import number_of_sets, parities, parity_sets
from dpsynth.curator.table import PrivateTable


def by_definition(codes, most):
    signs = [1 - 2 * c.astype(np.int64) for c in codes]
    return [
        int(prod(signs[i] for i in s).sum())
        for k in range(3, most + 1)
        for s in combinations(range(len(codes)), k)
    ]


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize(("columns", "most"), [(3, 3), (4, 3), (4, 4), (7, 5), (7, 7)])
def test_a_parity_is_the_sum_over_rows_of_minus_one_to_the_sum_of_codes(rows, columns, most):
    rng = np.random.default_rng(rows)
    codes = [rng.integers(0, 2, rows).astype(np.uint8) for _ in range(columns)]
    found = parities(codes, most)
    assert found.dtype == np.int64 and found.tolist() == by_definition(codes, most)
    assert len(found) == number_of_sets(columns, most)


def test_sets_stand_smaller_ones_first_and_then_in_the_order_of_the_columns():
    assert list(parity_sets("abcd", 4)) == [*combinations("abcd", 3), tuple("abcd")]


def test_a_table_of_several_blocks_has_the_parities_of_all_its_rows_and_an_empty_one_none(monkeypatch):
    monkeypatch.setattr("dpsynth.curator.table.LEAST_BLOCK", 100)
    rng = np.random.default_rng(1)
    codes = {c: rng.integers(0, 2, 999).astype(np.uint8) for c in "abcde"}
    table = PrivateTable(Domain(dict.fromkeys("abcde", 2)), codes, 999)
    assert table.parities(tuple("abcde"), 4).tolist() == by_definition([*codes.values()], 4)
    none = PrivateTable(table.domain, {c: v[:0] for c, v in codes.items()}, 0)
    assert none.parities(tuple("abcde"), 4).tolist() == [0] * 15


def test_parities_are_of_groups_where_values_are_merged():
    codes = {c: np.array([0, 1, 2, 2], np.uint8) for c in "abc"}
    table = PrivateTable(Domain(dict.fromkeys("abc", 3)), codes, 4)
    merged = table.recoded(Compression({c: np.array([0, 0, 1]) for c in "abc"}))
    assert merged.parities(tuple("abc"), 3).tolist() == [0]
