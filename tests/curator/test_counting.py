"""Counts of many cliques are exact however passes are shared, and no row is looked at again for them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.curator import marginals
from dpsynth.curator.marginals import ExactCounts, Store
from dpsynth.curator.table import PrivateTable
from dpsynth.domain.compression import Compression
from dpsynth.domain.domain import Domain
from tests.examples import examples

NAMES = "abcdef"


def random_table(seed, rows, largest=5, columns=NAMES):
    rng = np.random.default_rng(seed)
    sizes = {c: int(s) for c, s in zip(columns, rng.integers(1, largest + 1, len(columns)), strict=True)}
    codes = {c: rng.integers(0, s, rows).astype(np.uint8) for c, s in sizes.items()}
    return PrivateTable(Domain(sizes), codes, rows)


def expected(table, clique):
    counts = np.zeros(table.domain.shape(clique), dtype=np.int64)
    np.add.at(counts, tuple(table.codes[c].astype(int) for c in clique), 1 if clique else table.rows)
    return counts


def watched(monkeypatch):
    """Every clique for which the rows are gone through."""
    passes, sound = [], PrivateTable.counts

    def counts(self, clique):
        passes.append(clique)
        return sound(self, clique)

    monkeypatch.setattr(PrivateTable, "counts", counts)
    return passes


CLIQUES = st.lists(st.permutations(NAMES).flatmap(lambda p: st.integers(0, 4).map(lambda n: tuple(p[:n]))))


@given(st.integers(0, 2**20), st.integers(0, 700), CLIQUES, st.sampled_from([0, 40, 1 << 20]))
@examples(150)
def test_counts_are_numpys_whatever_was_counted_together_and_whatever_room_there_is(
    seed, rows, cliques, room
):
    table = random_table(seed, rows)
    exact = ExactCounts(table, Store(room))
    exact.prepare(cliques[::2])
    for clique in cliques:
        found = exact.of(clique)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected(table, clique), err_msg=str(clique))
    assert exact.store.capacity == room - sum(c.nbytes for c in exact.store.kept.values()) >= 0


@pytest.mark.parametrize("rows", [255, 256, 65535, 65536])
def test_the_type_that_is_kept_holds_a_count_of_all_rows(rows):
    codes = {"a": np.zeros(rows, np.uint8), "b": np.zeros(rows, np.uint8)}
    exact = ExactCounts(PrivateTable(Domain({"a": 2, "b": 1}), codes, rows), Store())
    exact.prepare([("a",), ("a", "b")])
    assert exact.of(("a",)).tolist() == [rows, 0] and exact.of(("b", "a")).tolist() == [[rows, 0]]


def test_cliques_of_few_cells_share_passes_over_the_rows(monkeypatch):
    table = random_table(1, 20_000, largest=2, columns=[f"c{i}" for i in range(16)])
    passes = watched(monkeypatch)
    exact = ExactCounts(table, Store())
    triples = list(combinations(table.domain.columns, 3))
    exact.prepare(triples)
    assert len(passes) < len(triples) / 10
    assert all(table.domain.cells(clique) <= table.rows / 8 for clique in passes)


def test_what_was_counted_is_not_counted_again(monkeypatch):
    table = random_table(2, 500)
    exact, pairs = ExactCounts(table, Store()), list(combinations(NAMES, 2))
    exact.prepare(pairs)
    passes = watched(monkeypatch)
    exact.prepare(pairs + [p[::-1] for p in pairs])
    for a, b in pairs:
        np.testing.assert_array_equal(exact.of((a, b)), exact.of((b, a)).T)
    assert passes == []


def test_what_finds_no_room_is_not_counted_ahead_for_nothing(monkeypatch):
    table = random_table(3, 500)
    passes = watched(monkeypatch)
    ExactCounts(table, Store(0)).prepare(combinations(NAMES, 2))
    assert passes == []


def test_which_passes_are_made_does_not_depend_on_what_rows_hold(monkeypatch):
    one = random_table(4, 900)
    two = PrivateTable(one.domain, {c: np.zeros(900, np.uint8) for c in NAMES}, 900)
    passes, found = watched(monkeypatch), []
    for table in (one, two):
        exact = ExactCounts(table, Store(700))
        exact.prepare(combinations(NAMES, 2))
        exact.prepare(combinations(NAMES, 3))
        found.append((list(passes), list(exact.store.kept), exact.store.capacity))
        passes.clear()
    assert found[0] == found[1]


def test_two_codings_of_the_same_rows_share_what_both_can_use_and_nothing_else(monkeypatch):
    table, store = random_table(5, 300), Store()
    size = table.domain.sizes["b"]
    compression = Compression({"b": np.minimum(np.arange(size), 1)})
    fine = ExactCounts(table, store)
    coarse = ExactCounts(table.recoded(compression), store, frozenset("b"), compression.digest)
    for clique in (("a", "c"), ("a", "b"), ("b",), ()):
        fine.of(clique)
    passes = watched(monkeypatch)
    for clique in (("a", "c"), ("a", "b"), ("b",), ()):
        np.testing.assert_array_equal(coarse.of(clique), expected(coarse.table, clique))
        np.testing.assert_array_equal(fine.of(clique), expected(table, clique))
    assert passes == [("a", "b"), ("b",)]


def test_counts_print_no_cell():
    exact = ExactCounts(random_table(6, 9), Store())
    exact.of(("a",))
    assert "array" not in repr(exact) and "array" not in repr(exact.store)


def test_blocks_of_columns_are_within_their_cells_or_hold_one_column():
    domain = Domain({"a": 2, "b": 3, "c": 50, "d": 2, "e": 7, "f": 1})
    block = marginals._blocks(domain, domain.columns, 12)
    for number in set(block.values()):
        members = [c for c in block if block[c] == number]
        assert len(members) == 1 or domain.cells(members) <= 12
    assert len(set(block.values())) == 3
