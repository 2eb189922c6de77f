"""The private table counts as numpy does, bounds each person, and shows nothing of itself."""

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import Centring
from dpsynth.curator import load_rows
from dpsynth.curator import table as counting
from dpsynth.curator.table import PrivateTable, Texts, steps_in
from dpsynth.testing import load_table

KEY = b"k" * 32
COLUMNS = (
    Column("age", NumericCodec((0.0, 10.0, 20.0, 30.5), 0, True)),
    Column("sex", CategoryCodec(("F", "M"))),
    Column("in", BooleanCodec(), missing=False),
)
ROWS = Neighbours("add_remove")


def batch(**cells):
    return {name: pa.array(texts, pa.string()) for name, texts in cells.items()}


def random_table(seed, rows):
    rng = np.random.default_rng(seed)
    sizes = {c: int(s) for c, s in zip("abcd", rng.integers(1, 6, 4), strict=True)}
    sizes["wide"] = 300
    codes = {
        c: rng.integers(0, s, rows).astype(np.uint16 if c == "wide" else np.uint8) for c, s in sizes.items()
    }
    return PrivateTable(Domain(sizes), codes, rows)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 18])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 200])
def test_counts_of_any_clique_equal_numpys_at_every_chunk_border(monkeypatch, chunk, rows):
    monkeypatch.setattr(counting, "LEAST_BLOCK", chunk)
    monkeypatch.setattr(counting, "MOST_BLOCK", chunk)
    table = random_table(rows + chunk, rows)
    cliques = [(), ("a",), ("wide",), ("wide", "a"), *permutations("abc"), ("d", "wide", "b")]
    for clique in cliques:
        shape = table.domain.shape(clique)
        expected = np.zeros(shape, dtype=np.int64)
        np.add.at(expected, tuple(table.codes[c].astype(int) for c in clique), 1 if clique else rows)
        found = table.counts(clique)
        assert found.dtype == np.int64 and found.shape == shape
        np.testing.assert_array_equal(found, expected, err_msg=str(clique))


def test_batches_of_text_become_the_counts_of_their_codes():
    batches = [
        batch(age=["3", "12", "many"], sex=["F", "m", "M"], **{"in": ["yes", "no", ""]}),
        batch(age=["99", None], sex=["F", "F"], **{"in": ["1", "?"]}),
    ]
    table = load_table(batches, COLUMNS, ROWS, KEY)
    assert table.rows == 5
    assert table.counts(("age",)).tolist() == [1, 1, 1, 2]
    assert table.counts(("in", "sex")).tolist() == [[1, 1, 1], [2, 0, 0]]


def test_a_table_without_rows_or_batches_counts_zero_everywhere():
    empty = batch(age=[], sex=[], **{"in": []})
    for batches in ([], [empty], [empty, empty]):
        for near in (ROWS, Neighbours("add_remove", "id", 2)):
            given = [{**b, "id": pa.array([], pa.string())} for b in batches]
            table = load_table(given, COLUMNS, near, KEY)
            assert table.rows == 0 and table.counts(("sex", "age")).tolist() == [[0] * 4] * 3


def test_each_person_enters_with_at_most_k_rows_across_batches_and_spellings():
    near = Neighbours("add_remove", "id", 2)
    batches = [
        batch(age=["5"] * 4, sex=["F"] * 4, **{"in": ["no"] * 4}, id=["Ann", "ann ", "7", "8"]),
        batch(
            age=["15"] * 4,
            sex=["F"] * 4,
            **{"in": ["no"] * 4},
            id=["ANN", "\uff41\uff4e\uff4e", "7.0", "007"],
        ),
    ]
    table = load_table(batches, COLUMNS, near, KEY)
    assert table.rows == 5 and table.counts(()).item() == 5


def test_the_order_of_rows_is_kept():
    texts = [str(n % 30) for n in range(100)]
    near = Neighbours("add_remove", "id", 1)
    ids = [str(n // 2) for n in range(100)]
    table = load_table(
        [batch(age=texts, sex=["F"] * 100, **{"in": ["no"] * 100}, id=ids)], COLUMNS, near, KEY
    )
    every = COLUMNS[0].encode(pa.array(texts))
    pairs = every.reshape(-1, 2)
    assert table.rows == 50
    assert all(code in pair for code, pair in zip(table.codes["age"].tolist(), pairs.tolist(), strict=True))


def test_an_id_column_that_is_also_a_table_column_serves_as_both():
    near = Neighbours("replace_one", "sex", 1)
    table = load_table([batch(age=["1"] * 3, sex=["F", "F", "M"], **{"in": ["no"] * 3})], COLUMNS, near, KEY)
    assert table.counts(("sex",)).tolist() == [1, 1, 0]


def test_the_table_shows_nothing_of_itself_when_printed():
    table = load_table([batch(age=["5"], sex=["F"], **{"in": ["no"]})], COLUMNS, ROWS, KEY)
    assert "array" not in repr(table) and "rows" not in repr(table) and "codes" not in repr(table)


def test_codes_of_wide_domains_are_not_cut_to_a_byte():
    wide = Column("n", NumericCodec((*map(float, range(256)), 255.5), 0, True))
    table = load_table([batch(n=[str(n) for n in range(256)] + [""])], [wide], ROWS, KEY)
    assert wide.size == 257 and table.counts(("n",)).tolist() == [1] * 257


def test_recoded_rows_count_the_sums_of_the_places_that_were_merged():
    table = random_table(7, 400)
    groups = {"wide": np.arange(300) % 7, "c": np.arange(table.domain.sizes["c"]) // 2}
    coarse = table.recoded(Compression(groups))
    assert coarse.rows == table.rows and list(coarse.domain.sizes) == list(table.domain.sizes)
    assert coarse.codes["wide"] is table.codes["wide"] and coarse.groups["wide"].dtype == np.uint8
    for clique in (("wide",), ("a", "wide"), ("c", "b", "wide"), ("a", "b"), ()):
        merged = table.counts(clique)
        for axis, column in enumerate(clique):
            if column in groups:
                spread = np.zeros((groups[column].max() + 1, *np.delete(merged.shape, axis)), dtype=np.int64)
                np.add.at(spread, groups[column], np.moveaxis(merged, axis, 0))
                merged = np.moveaxis(spread, 0, axis)
        np.testing.assert_array_equal(coarse.counts(clique), merged)


def test_more_groups_than_a_byte_has_are_told_apart():
    groups = np.r_[np.arange(257), np.zeros(43, dtype=int)]
    table = PrivateTable(Domain({"wide": 300}), {"wide": np.arange(300).astype(np.uint16)}, 300)
    assert table.recoded(Compression({"wide": groups})).counts(("wide",)).tolist() == [44] + [1] * 256


def test_groups_are_not_grouped_again():
    coarse = random_table(8, 5).recoded(Compression({"wide": np.zeros(300, dtype=int)}))
    with pytest.raises(ValueError, match="can't be grouped again"):
        coarse.recoded(Compression({"wide": np.zeros(1, dtype=int)}))


DEPTH = Column("depth", NumericCodec((-5.0, 0.0, 5.0), 0, True))


def test_a_text_without_a_bin_is_at_step_0_and_adds_nothing_to_a_sum():
    texts = pa.array(["", "many", None, "-9", "-3", "3", "9"], pa.string())
    assert steps_in(DEPTH, texts).tolist() == [0, 0, 0, 0, 2, 8, 10]
    table = load_rows([{"depth": texts}], [DEPTH], ROWS, KEY, None, frozenset(("depth",))).bounded(1, KEY)
    assert table.sums("depth", (), Centring((1, 7), 2)).item() == (-1 + 1) + (1 + 2)
    with pytest.raises(ValueError, match="column sex has no numbers to be summed"):
        steps_in(COLUMNS[1], texts)


def test_numbers_whose_bins_were_found_are_summed_as_others():
    distinct, index = pa.array(["3", "-3", ""], pa.large_string()), np.array([0, 1, 1, 2, 0], np.int32)
    found = PrivateTable(
        Domain({}), {}, 5, texts={"depth": Texts(distinct, index)}, summed=frozenset(("depth",))
    )
    table = found.coded([DEPTH])
    assert table.numbers_kept == {"depth"} and table.steps["depth"].tolist() == [8, 2, 2, 0, 8]
    assert PrivateTable(Domain({}), {}, 5, texts=found.texts).coded([DEPTH]).numbers_kept == frozenset()


def test_a_grouping_of_another_table_is_refused():
    with pytest.raises(ValueError, match="other cells"):
        random_table(8, 5).recoded(Compression({"wide": np.zeros(299, dtype=int)}))
