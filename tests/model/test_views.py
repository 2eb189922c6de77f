"""Views are numpy's sums, minima and maxima, and expanding is the adjoint of summing."""

from itertools import product

import numpy as np
import pytest

from dpsynth.model import belief_propagation as views
from dpsynth.model import factor as axis_sums
from dpsynth.model.belief_propagation import Views
from tests.examples import cases
from tests.thinned import some


@pytest.fixture(
    autouse=True,
    params=[0, 1 << 16, 1 << 10],
    ids=["summed by axes", "one matrix", "matrices of intermediate sums"],
)
def entries_of_one_matrix(request, monkeypatch):
    """Each claim holds for both ways in which views are computed."""
    monkeypatch.setattr(views, "_SMALL", request.param)


def shapes(seed):
    """A random shape, some axes of size 1 and some long, and random sets of axes to keep."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 1, 2, 3, 4, 7, 20, 40, 700], size=rng.integers(0, 6))
    while sizes.prod(dtype=int) > 60_000:
        sizes = sizes[:-1]
    count = len(sizes)
    asked = [tuple(i for i in range(count) if rng.random() < 0.5) for _ in range(rng.integers(1, 9))]
    asked += [(), tuple(range(count)), asked[0]]
    return rng, tuple(int(s) for s in sizes), [asked[i] for i in rng.permutation(len(asked))]


def gone(shape, kept):
    return tuple(i for i in range(len(shape)) if i not in kept)


CASES = range(250)
SOME = range(cases(250, part=4))


@pytest.mark.parametrize(("dtype", "rtol"), some([("float64", 1e-11), ("float32", 1e-4)], 2))
def test_every_view_is_numpys_sum(dtype, rtol):
    for seed in SOME:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, dtype)
        values = rng.random(shape).astype(dtype)
        found = plan.reduce(values.reshape(-1), plan.only(range(len(asked))))
        for kept, size, view in zip(asked, plan.sizes, found, strict=True):
            assert view.dtype == dtype and view.shape == (size,)
            expected = values.sum(axis=gone(shape, kept), dtype=np.float64).reshape(-1)
            np.testing.assert_allclose(view, expected, rtol=rtol, err_msg=f"{seed} {shape} {kept}")


def test_the_views_asked_for_are_made_whichever_others_are_left_out():
    for seed in SOME:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        values = rng.random(shape)
        some = [i for i in range(len(asked)) if rng.random() < 0.4]
        found = plan.reduce(values.reshape(-1), plan.only(some))
        for i in some:
            expected = values.sum(axis=gone(shape, asked[i])).reshape(-1)
            np.testing.assert_allclose(found[i], expected, rtol=1e-11, err_msg=f"{seed} {shape} {asked[i]}")
        for i, kept in enumerate(asked):
            assert found[i].size in (0, plan.sizes[i]), (seed, kept)


def test_expanding_repeats_each_part_and_adds_them():
    for seed in SOME:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        parts = [rng.normal(size=s) if rng.random() < 0.7 else None for s in plan.sizes]
        before = [None if p is None else p.copy() for p in parts]
        expected = np.zeros(shape)
        for kept, part in zip(asked, parts, strict=True):
            if part is not None:
                expected = expected + part.reshape([s if i in kept else 1 for i, s in enumerate(shape)])
        out = np.full(plan.size, np.nan)
        plan.expand(parts, out)
        np.testing.assert_allclose(
            out.reshape(shape), expected, atol=1e-12, err_msg=f"{seed} {shape} {asked}"
        )
        for part, same in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part, same)


def test_expanding_nothing_writes_zeros():
    for seed in SOME:
        _, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        out = np.full(plan.size, np.nan)
        plan.expand([None] * len(asked), out)
        assert not out.any(), seed


def test_expanding_is_the_adjoint_of_summing():
    for seed in SOME:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        values, parts = rng.normal(size=plan.size), [rng.normal(size=s) for s in plan.sizes]
        out = np.empty(plan.size)
        plan.expand(parts, out)
        sums = plan.reduce(values, plan.only(range(len(asked))))
        inner = sum(float(p @ s) for p, s in zip(parts, sums, strict=True))
        room = 1e-12 * (1 + np.abs(out) @ np.abs(values))
        assert out @ values == pytest.approx(inner, rel=0, abs=room), (seed, shape, asked)


def test_extremes_are_numpys_infinite_cells_included():
    for seed in SOME:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        values = np.where(rng.random(shape) < 0.2, rng.choice([-np.inf, np.inf]), rng.normal(size=shape))
        for i, kept in enumerate(asked):
            greatest = plan.greatest(values.reshape(-1), i)
            np.testing.assert_array_equal(greatest, values.max(axis=gone(shape, kept)).reshape(-1))


def test_every_way_to_sum_is_met(monkeypatch):
    """The random shapes reach each branch of a step, and intermediate sums that views share."""
    monkeypatch.setattr(views, "_SMALL", 0)
    met = set()
    reduce = axis_sums.AxisSum.reduce

    def watched(self, values):
        short = self.inner < axis_sums._SHORT
        met.add((self.by_product, self.inner == 1, self.outer == 1, short))
        return reduce(self, values)

    monkeypatch.setattr(axis_sums.AxisSum, "reduce", watched)
    shared = 0
    for seed in CASES:
        rng, shape, asked = shapes(seed)
        plan = Views(shape, asked, "float64")
        shared += len(plan._nodes) > len({*asked, tuple(range(len(shape)))})
        plan.reduce(rng.random(plan.size), plan.only(range(len(asked))))
    assert shared > 5
    assert any(by_product for by_product, *_ in met)
    by_loops = {(one, first, short) for by_product, one, first, short in met if not by_product}
    assert {(False, *rest) for rest in product((False, True), repeat=2)} <= by_loops
    assert {(True, False, True), (True, True, True)} <= by_loops


def test_views_of_a_small_sum_are_one_product(monkeypatch):
    monkeypatch.setattr(views, "_SMALL", 1 << 16)
    rng = np.random.default_rng(3)
    asked = [tuple(sorted(rng.choice(14, 4, replace=False).tolist())) for _ in range(30)]
    plan = Views((2,) * 14, asked, "float64")
    assert any(node.inside is not None for node in plan._nodes)
    values, parts = rng.random(plan.size), [rng.random(16) for _ in asked]
    only = plan.reduce(values, plan.only([7]))[7]
    every = plan.reduce(values, plan.only(range(30)))
    for kept, view in zip(asked, every, strict=True):
        expected = values.reshape(plan.shape).sum(axis=gone(plan.shape, kept)).reshape(-1)
        np.testing.assert_allclose(view, expected, rtol=1e-11)
    np.testing.assert_allclose(only, every[7], rtol=1e-11)
    wide = np.empty(plan.size)
    plan.expand([p if i % 3 else None for i, p in enumerate(parts)], wide)
    given = sum(float(p @ view) for i, (p, view) in enumerate(zip(parts, every, strict=True)) if i % 3)
    np.testing.assert_allclose(wide @ values, given, rtol=1e-11)
