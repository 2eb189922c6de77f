"""Chunks are one rounded sample as a whole, each follows the model, and any can be drawn by itself."""

from hashlib import sha256
from itertools import islice

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model import sampling as chunks
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.sampling import chunk_draws, sample
from tests.examples import cases
from tests.model.rounded_rows import counts, worst_rounding
from tests.thinned import some


@pytest.fixture(scope="module")
def fields(fields_of):
    """Each problem with its field of one row, made from the explicit joint, and that joint."""
    return fields_of(1.0)


def chain():
    """A field a - b - c of whole numbers, with a and c depending strongly on b."""
    table = np.array([[[9, 1, 0], [1, 2, 12]], [[3, 6, 1], [0, 1, 2]], [[1, 1, 1], [20, 4, 1]]])
    tree = JunctionTree(Domain({"a": 3, "b": 2, "c": 3}), (("a", "b"), ("b", "c")), (Edge(1, 0, ("b",)),))
    beliefs = (table.sum(axis=2).astype(float), table.sum(axis=0).astype(float))
    return MarkovRandomField(tree, beliefs, float(table.sum()))


def drawn(model, rows, seed, *, chunk):
    return (draw() for draw in chunk_draws(model, rows, seed, chunk=chunk))


def joined(parts, columns):
    held = list(parts)
    return {c: np.concatenate([part[c] for part in held]) for c in columns}


def test_all_chunks_together_are_within_one_row_of_the_expectation_given_the_separator(fields):
    for p, model, _ in fields[:100]:
        for rows, chunk in ((1000, 97), (64, 1), (300, 300), (5, 100)):
            parts = list(drawn(model, rows, 3, chunk=chunk))
            sizes = [len(part[p.domain.columns[0]]) for part in parts]
            assert sum(sizes) == rows and all(s == chunk for s in sizes[:-1]), p.name
            table = joined(parts, p.domain.columns)
            assert worst_rounding(table, model) < 1 + 1e-9 * rows, (p.name, rows, chunk)


def test_chunks_of_the_stream_err_far_less_together_than_chunks_drawn_apart(fields):
    together = apart = 0.0
    for p, model, _ in fields[: cases(40)]:
        carried = joined(drawn(model, 4000, 1, chunk=40), p.domain.columns)
        fresh = joined(
            (sample(model, 40, np.random.default_rng([1, i])) for i in range(100)), p.domain.columns
        )
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            expected = 4000 * belief / belief.sum()
            together += np.abs(counts(carried, p.domain, clique) - expected).sum()
            apart += np.abs(counts(fresh, p.domain, clique) - expected).sum()
    assert together < 0.2 * apart


def test_each_chunk_by_itself_is_rounded_too(fields):
    for p, model, _ in fields:
        for part in drawn(model, 2000, 5, chunk=500):
            assert worst_rounding(part, model) < 3, p.name


@pytest.mark.parametrize("number", some([0, 2], 1))
def test_counts_of_the_whole_joint_are_unbiased_in_each_chunk(number):
    model, runs = chain(), cases(2000, part=4)
    expected = 7 * model.marginal(("a", "b", "c")) / model.total
    seen = np.array(
        [
            counts(next(islice(drawn(model, 20, s, chunk=7), number, None)), model.tree.domain, "abc")
            for s in range(runs)
        ]
    )
    expected = expected * (6 / 7 if number == 2 else 1)
    error = np.maximum(seen.std(axis=0), 0.02) / np.sqrt(runs)
    assert (np.abs(seen.mean(axis=0) - expected) / error).max() < 4.5


def test_no_row_falls_in_a_cell_of_probability_zero(fields):
    for p, model, _ in fields:
        table = joined(drawn(model, 600, 0, chunk=250), p.domain.columns)
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            assert not counts(table, p.domain, clique)[belief == 0].any(), p.name
        assert all(t.dtype == np.int64 for t in table.values())


def test_chunks_of_a_stream_may_be_drawn_in_any_order(fields):
    for p, model, _ in fields[: cases(40)]:
        whole = list(drawn(model, 500, 9, chunk=60))
        draws = list(chunk_draws(model, 500, 9, chunk=60))
        for left, draw in reversed(list(zip(whole, draws, strict=True))):
            right = draw()
            assert all(np.array_equal(left[c], right[c]) for c in p.domain.columns), p.name


def test_the_seed_decides_the_stream():
    def digest(seed):
        table = joined(drawn(chain(), 1000, seed, chunk=300), "abc")
        return sha256(b"".join(table[c].astype("<i8").tobytes() for c in "abc")).hexdigest()

    assert digest(11) == "f02d95abde265635bde9d5deb33b876dafa6549ecbd09014d1323bf7d0bb33d4"
    assert digest(12) != digest(11)


def test_a_billion_rows_are_begun_without_holding_them():
    model = chain()
    parts = list(islice(drawn(model, 10**9, 4, chunk=1000), 3))
    assert [len(part["a"]) for part in parts] == [1000] * 3
    expected = 3000 * model.beliefs[0] / model.total
    assert np.abs(counts(joined(parts, "ab"), model.tree.domain, "ab") - expected).max() < 4


def test_counts_alone_of_a_billion_rows_are_within_one_row():
    model = chain()
    reserves = chunks._allotted(model, 10**9, np.random.default_rng(0))
    expected = 1e9 * model.beliefs[0][model.beliefs[0] > 0] / model.total
    assert reserves[0].left.sum() == reserves[1].left.sum() == 10**9
    assert np.abs(reserves[0].left - expected).max() < 1.001


def test_rows_of_a_chunk_come_in_random_order():
    part = next(drawn(chain(), 6000, 2, chunk=2000))
    half = np.bincount(part["b"][:1000], minlength=2)
    np.testing.assert_allclose(half, np.bincount(part["b"][1000:], minlength=2), atol=90)


@pytest.mark.parametrize(("rows", "chunk"), [(10, 0), (10, 1 << 26), (-1, 5), (1 << 37, 5)])
def test_numbers_out_of_range_are_refused(rows, chunk):
    with pytest.raises(ValueError, match=r"rows must be in 0 to .*, chunk in 1 to"):
        next(chunk_draws(chain(), rows, 0, chunk=chunk))


def test_no_rows_are_no_chunks():
    assert list(drawn(chain(), 0, 0, chunk=9)) == []
