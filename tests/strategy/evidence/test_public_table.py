"""A public table is counted as it is, and what is said of it is what was taken from it."""

import hashlib
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.bundle.explanation import Words
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.errors import ConfigError
from dpsynth.strategy.public_table import PublicTable, PublicUse

SEX, CITY, TYPE = (
    Column("sex", CategoryCodec(("F", "M"))),
    Column("city", CategoryCodec(("Aa", "Bb", "Cc")), missing=False),
    Column("type", CategoryCodec(("x", "y"))),
)
COLUMNS = (SEX, CITY, TYPE)


def batches(*columns, rows=500, parts=3, seed=0):
    """Random texts, unusable and missing ones among them."""
    rng = np.random.default_rng(seed)
    texts = {"sex": ["F", "M", "?", None], "city": ["Aa", "Bb", "Cc", ""], "type": ["x", "y", "z", " y "]}
    whole = {c.name: rng.choice(np.array(texts[c.name], dtype=object), rows).tolist() for c in columns}
    cuts = np.linspace(0, rows, parts + 1).astype(int)
    return whole, [
        {name: pa.array(cells[a:b], pa.string()) for name, cells in whole.items()} for a, b in pairwise(cuts)
    ]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "public.csv"
    path.write_bytes(b"anything")
    return path


@pytest.mark.parametrize("columns", [COLUMNS, (CITY, SEX), (TYPE,)])
def test_its_counts_are_those_of_its_rows_batch_by_batch(file, columns):
    whole, parts = batches(*columns)
    told = PublicTable.of(file, parts, COLUMNS).answered(COLUMNS)
    codes = {c.name: c.encode(pa.array(whole[c.name], pa.string())) for c in columns}
    names = [c.name for c in COLUMNS if c in columns]
    assert [m.clique for m in told.singles] == [(), *((name,) for name in names)]
    assert sorted(m.clique for m in told.answers) == sorted(combinations(names, 2))
    assert int(told.singles[0].values) == 500 and told.singles[0].noise == "none"
    for m in (*told.singles[1:], *told.answers):
        expected = np.zeros(m.values.shape, dtype=int)
        np.add.at(expected, tuple(codes[c] for c in m.clique), 1)
        assert np.array_equal(m.values, expected)


def test_the_checksum_is_that_of_the_file(file):
    table = PublicTable.of(file, batches(*COLUMNS)[1], COLUMNS)
    assert table.sha256 == hashlib.sha256(b"anything").hexdigest() and table.rows == 500


def test_a_table_without_rows_is_refused(file):
    with pytest.raises(ConfigError, match="has no rows"):
        PublicTable.of(file, [{"sex": pa.array([], pa.string())}], COLUMNS)


def test_a_column_spelt_in_another_way_throughout_is_refused_by_name(file):
    """Planted by hand: taken as missing, it would say that nobody has a sex."""
    with pytest.raises(ConfigError, match="no cell of column 'sex'"):
        PublicTable.of(file, [{"sex": pa.array(["Male", "Female", None], pa.string())}], COLUMNS)


@pytest.mark.parametrize("cliques", [(), (("sex", "city"),)])
def test_words_tell_whether_its_relations_were_used(publication, cliques):
    use = PublicUse("ab" * 32, 500, ("sex", "city"), 421.3, cliques)
    (words,) = Words.of(replace(publication, public_table=use)).public_table
    assert "500" in words and "421" in words
    assert ("a relation" in words) == bool(cliques)
    assert use.to_json()["in_the_model_together"] == [list(c) for c in cliques]
    assert Words.of(publication).public_table == ()
