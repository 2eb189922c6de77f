"""Counts of many cliques are exact however passes are shared, and no row is looked at again for them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns import workload as clique_unions
from dpsynth.columns.domain import Compression, Domain
from dpsynth.curator import table as counting
from dpsynth.curator.marginals import ExactCounts, Store
from dpsynth.curator.table import PrivateTable
from tests.examples import examples
from tests.thinned import some

NAMES = "abcdef"


def random_table(seed, rows, largest=5, columns=NAMES):
    rng = np.random.default_rng(seed)
    sizes = {c: int(s) for c, s in zip(columns, rng.integers(1, largest + 1, len(columns)), strict=True)}
    codes = {c: rng.integers(0, s, rows).astype(np.uint8) for c, s in sizes.items()}
    return PrivateTable(Domain(sizes), codes, rows)


def expected(table, clique):
    counts = np.zeros(table.domain.shape(clique), dtype=np.int64)
    cells = tuple(table._codes_in(c, slice(None)).astype(int) for c in clique)
    np.add.at(counts, cells, 1 if clique else table.rows)
    return counts


def watched(monkeypatch):
    """Every clique for which the rows are gone through."""
    passes, sound = [], PrivateTable.counts_of

    def counts_of(self, cliques):
        passes.extend(cliques)
        return sound(self, cliques)

    monkeypatch.setattr(PrivateTable, "counts_of", counts_of)
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


def test_pairs_of_columns_of_twenty_values_are_counted_three_and_more_columns_at_once():
    domain = Domain({f"c{i}": 20 for i in range(15)})
    found = list(clique_unions.unions(domain, list(combinations(domain.columns, 2)), 1 << 16))
    assert len(found) < 50 and all(domain.cells(union) <= 1 << 16 for union, _ in found)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9), st.integers(1, 4000), st.integers(0, 2**20))
@examples(60)
def test_every_clique_is_within_the_one_union_it_is_counted_by(sizes, most, seed):
    domain = Domain({f"c{i}": size for i, size in enumerate(sizes)})
    every = [c for n in range(4) for c in combinations(domain.columns, n)]
    cliques = [every[i] for i in np.flatnonzero(np.random.default_rng(seed).random(len(every)) < 0.6)]
    counted = []
    for union, members in clique_unions.unions(domain, cliques, most):
        assert all(set(clique) <= set(union) for clique in members)
        assert domain.cells(union) <= most or members == [union]
        counted += members
    assert sorted(counted) == sorted(cliques)


@pytest.mark.parametrize("threads", some([1, 2, 3], 1))
def test_counts_are_the_same_whatever_the_blocks_and_the_threads(monkeypatch, threads):
    table = random_table(11, 5_000)
    cliques = [(), *combinations(NAMES, 2), tuple(NAMES[:4])]
    monkeypatch.setattr(counting, "cores", lambda: threads)
    monkeypatch.setattr(counting, "_PAYS", 0)
    for least, most in ((7, 64), (1 << 16, 1 << 21)):
        monkeypatch.setattr(counting, "LEAST_BLOCK", least)
        monkeypatch.setattr(counting, "MOST_BLOCK", most)
        for cells in (1, 1 << 22):
            monkeypatch.setattr(counting, "CELLS_A_PASS", cells)
            for clique, found in zip(cliques, table.counts_of(cliques), strict=True):
                np.testing.assert_array_equal(found, expected(table, clique))


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
    block = clique_unions._blocks(domain, domain.columns, 12)
    for number in set(block.values()):
        members = [c for c in block if block[c] == number]
        assert len(members) == 1 or domain.cells(members) <= 12
    assert len(set(block.values())) == 3


def test_only_what_is_counted_within_takes_fewer_processors() -> None:
    before = counting.cores()
    with counting.at_most(1):
        assert counting.cores() == 1
    assert counting.cores() == before


def test_the_share_of_the_work_that_is_done_is_told_by_rows_and_cliques(monkeypatch) -> None:
    told: list[object] = []

    def telling(what: str, whole: int):
        told.append((what, whole))
        return told.append

    monkeypatch.setattr(counting, "telling", telling)
    monkeypatch.setattr(counting, "LEAST_BLOCK", 4)
    codes = np.zeros(10, np.uint8)
    cliques = [("a",), ("b",), ("a", "b"), ("a",)]
    counting.counted(lambda _, block: codes[block], Domain({"a": 2, "b": 2}), 10, cliques)
    assert told[0] == ("counting", 30) and sum(told[1:]) == 30  # type: ignore[arg-type]
