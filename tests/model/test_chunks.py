"""Chunks are one rounded sample as a whole, each follows the model, and any can be drawn by itself."""

from hashlib import sha256
from itertools import islice

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model import sampling as chunks
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import ImpossibleEvidence
from dpsynth.model.sampling import sample, sample_chunks
from tests.examples import cases
from tests.model.rounded_rows import counts, worst_rounding
from tests.thinned import some

METHODS = ("rounding", "independent")


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


def joined(parts, columns):
    held = list(parts)
    return {c: np.concatenate([part[c] for part in held]) for c in columns}


def test_all_chunks_together_are_within_one_row_of_the_expectation_given_the_separator(fields):
    for p, model, _ in fields[:100]:
        for rows, chunk in ((1000, 97), (64, 1), (300, 300), (5, 100)):
            parts = list(sample_chunks(model, rows, 3, chunk=chunk))
            sizes = [len(part[p.domain.columns[0]]) for part in parts]
            assert sum(sizes) == rows and all(s == chunk for s in sizes[:-1]), p.name
            table = joined(parts, p.domain.columns)
            assert worst_rounding(table, model) < 1 + 1e-9 * rows, (p.name, rows, chunk)


def test_chunks_of_the_stream_err_far_less_together_than_chunks_drawn_apart(fields):
    together = apart = 0.0
    for p, model, _ in fields[: cases(40)]:
        carried = joined(sample_chunks(model, 4000, 1, chunk=40), p.domain.columns)
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
        for part in sample_chunks(model, 2000, 5, chunk=500):
            assert worst_rounding(part, model) < 3, p.name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", some([0, 2], 1))
def test_counts_of_the_whole_joint_are_unbiased_in_each_chunk(method, number):
    model, runs = chain(), cases(2000, part=4)
    expected = 7 * model.marginal(("a", "b", "c")) / model.total
    seen = np.array(
        [
            counts(
                next(islice(sample_chunks(model, 20, s, chunk=7, method=method), number, None)),
                model.tree.domain,
                "abc",
            )
            for s in range(runs)
        ]
    )
    expected = expected * (6 / 7 if number == 2 else 1)
    error = np.maximum(seen.std(axis=0), 0.02) / np.sqrt(runs)
    assert (np.abs(seen.mean(axis=0) - expected) / error).max() < 4.5


@pytest.mark.parametrize("method", METHODS)
def test_no_row_falls_in_a_cell_of_probability_zero(fields, method):
    for p, model, _ in fields:
        table = joined(sample_chunks(model, 600, 0, chunk=250, method=method), p.domain.columns)
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            assert not counts(table, p.domain, clique)[belief == 0].any(), p.name
        assert all(t.dtype == np.int64 for t in table.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_stream_may_begin_at_any_chunk(fields, method):
    for p, model, _ in fields[: cases(40)]:
        whole = list(sample_chunks(model, 500, 9, chunk=60, method=method))
        later = list(sample_chunks(model, 500, 9, chunk=60, method=method, start=6))
        assert len(later) == 3
        for left, right in zip(whole[6:], later, strict=True):
            assert all(np.array_equal(left[c], right[c]) for c in p.domain.columns), p.name


def test_the_seed_decides_the_stream():
    def digest(seed):
        table = joined(sample_chunks(chain(), 1000, seed, chunk=300), "abc")
        return sha256(b"".join(table[c].astype("<i8").tobytes() for c in "abc")).hexdigest()

    assert digest(11) == "f02d95abde265635bde9d5deb33b876dafa6549ecbd09014d1323bf7d0bb33d4"
    assert digest(12) != digest(11)


def test_a_billion_rows_are_begun_without_holding_them():
    model = chain()
    parts = list(islice(sample_chunks(model, 10**9, 4, chunk=1000), 3))
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
    part = next(sample_chunks(chain(), 6000, 2, chunk=2000))
    half = np.bincount(part["b"][:1000], minlength=2)
    np.testing.assert_allclose(half, np.bincount(part["b"][1000:], minlength=2), atol=90)


@pytest.mark.parametrize("method", METHODS)
def test_a_value_given_for_all_rows_holds_in_every_chunk(method):
    model = chain()
    table = joined(sample_chunks(model, 30_000, 2, chunk=7000, method=method, given={"c": 2}), "abc")
    assert set(table["c"]) == {2}
    expected = 30_000 * model.given({"c": 2}).marginal(("a",)) / model.total
    assert (np.abs(counts(table, model.tree.domain, "a") - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "neither"}, "rounding, independent"),
        ({"chunk": 0}, "chunk in 1 to"),
        ({"chunk": 1 << 26}, "chunk in 1 to"),
        ({"start": -1}, "start not below 0"),
        ({"given": {"z": 0}}, "no column 'z'"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        sample_chunks(chain(), 10, 0, **options)
    with pytest.raises(ValueError, match="rows must be in 0 to"):
        sample_chunks(chain(), -1, 0)


def test_impossible_evidence_is_refused_at_the_call():
    model = chain()
    with pytest.raises(ImpossibleEvidence):
        sample_chunks(model, 10, 0, given={"a": 1, "b": 1, "c": []})


def test_no_rows_are_no_chunks():
    assert list(sample_chunks(chain(), 0, 0)) == []
