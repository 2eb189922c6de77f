"""Two columns inside their bins: as dependent as their cells say, with the same values in every bin."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.calendar import CalendarCodec
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.joint_density import JointDensity, _first_logs, _logs, _positions, arranged, strongest
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_formats import MomentFormat
from dpsynth.columns.numeric import NumericCodec
from tests.examples import examples

ROWS = 20_000
WIDE = NumericCodec(tuple(float(e) for e in range(0, 101, 20)), 0, integer=True)


def counts_of(first, second, shape=(5, 5)):
    return np.bincount(np.ravel_multi_index((first, second), shape), minlength=np.prod(shape)).reshape(shape)


def banded(rng, noise=6.0, rows=ROWS):
    """Two numbers from 0 to 99 that differ by a small normal amount."""
    x = rng.integers(0, 100, rows)
    return x, np.clip(np.rint(x + rng.normal(0, noise, rows)), 0, 99).astype(int)


def drawn(codes, layout, rng):
    table = layout.decode(codes, rng)
    return {name: table.column(name).combine_chunks() for name in codes}


def within(codec, x, y, codes):
    """The mean correlation of two columns inside the cells of at least 2000 rows."""
    cells = codes["x"] * len(codec.labels) + codes["y"]
    found = [np.corrcoef(x[cells == c], y[cells == c])[0, 1] for c, n in Counter(cells).items() if n >= 2000]
    return float(np.mean(found))


@pytest.mark.parametrize("turned", [False, True])
def test_columns_of_a_narrow_band_stay_nearer_to_each_other_than_independent_draws(turned):
    """Planted: the slopes of another table, whose band runs the other way, drive them apart."""
    rng = np.random.default_rng(1)
    x, y = banded(rng)
    y = 99 - y if turned else y
    codes = {"x": x // 20, "y": y // 20}
    plain = Layout((Column("x", WIDE, missing=False), Column("y", WIDE, missing=False)))
    counts = counts_of(codes["x"], codes["y"]).astype(float)
    off = {}
    for name, layout in (
        ("independent", plain),
        ("together", plain.with_joint_density({("x", "y"): counts})),
        ("swapped", plain.with_joint_density({("y", "x"): counts.T})),
        ("against", plain.with_joint_density({("x", "y"): counts[:, ::-1]})),
    ):
        found = {c: v.to_numpy() for c, v in drawn(codes, layout, np.random.default_rng(2)).items()}
        far = found["x"] + found["y"] - 99 if turned else found["x"] - found["y"]
        off[name] = np.abs(far).mean()
        if name == "together":
            # Real rows have .86, independent draws none.
            assert abs(within(WIDE, found["x"], found["y"], codes)) > 0.4
    assert off["together"] < 0.75 * off["independent"] and off["swapped"] < 0.75 * off["independent"]
    assert off["against"] > off["independent"]


@given(st.integers(0, 10**6), st.integers(0, 400))
@examples(60)
def test_every_bin_keeps_its_values_and_missing_cells_stay_missing(seed, rows):
    rng = np.random.default_rng(seed)
    columns = tuple(Column(c, WIDE) for c in "xyz")
    codes = {c: rng.integers(0, 6, rows) for c in "xyz"}
    densities = [
        JointDensity(a, b, rng.integers(0, 3, (5, 5)) * 10.0 ** rng.integers(0, 4, (5, 5)))
        for a, b in (("x", "y"), ("z", "y"), ("x", "z"))
    ]
    before = {c.name: c.decode(codes[c.name], rng) for c in columns}
    after = arranged(densities, codes, before, rng)
    for c in "xyz":
        assert after[c].type == before[c].type
        for cell in range(6):
            mask = pa.array(codes[c] == cell)
            some = [Counter(v[c].filter(mask).to_pylist()) for v in (before, after)]
            assert some[0] == some[1]


def test_a_third_column_follows_the_one_that_was_placed_before():
    rng = np.random.default_rng(3)
    x, y = banded(rng)
    z = np.clip(np.rint(y + rng.normal(0, 6, ROWS)), 0, 99).astype(int)
    codes = {"x": x // 20, "y": y // 20, "z": z // 20}
    plain = Layout(tuple(Column(c, WIDE, missing=False) for c in "xyz"))
    pairs = {(a, b): counts_of(codes[a], codes[b]).astype(float) for a, b in (("x", "y"), ("z", "y"))}
    alone, together = (
        {c: v.to_numpy() for c, v in drawn(codes, layout, np.random.default_rng(4)).items()}
        for layout in (plain, plain.with_joint_density(pairs))
    )
    for a, b in (("x", "y"), ("y", "z")):
        assert np.abs(together[a] - together[b]).mean() < 0.8 * np.abs(alone[a] - alone[b]).mean()


def test_dates_and_columns_with_missing_cells_are_drawn_together_too():
    rng = np.random.default_rng(5)
    days = CalendarCodec(MomentFormat("date", "%Y-%m-%d"), "month", 0, 364)
    start = rng.integers(0, 365, ROWS)
    stop = np.clip(start + rng.geometric(0.2, ROWS), 0, 364)
    columns = Column("start", days), Column("stop", days)
    codes = {
        c.name: c.encode(pa.array(np.datetime_as_string(v.astype("M8[D]"))))
        for c, v in zip(columns, (start, stop), strict=True)
    }
    counts = counts_of(codes["start"], codes["stop"], (13, 13)).astype(float)
    codes["stop"] = np.where(rng.random(ROWS) < 0.1, 12, codes["stop"])
    plain = Layout(columns)
    off = []
    for layout in (plain, plain.with_joint_density({("start", "stop"): counts})):
        found = drawn(codes, layout, np.random.default_rng(6))
        there = np.asarray(found["stop"].is_valid())
        assert (there == (codes["stop"] < 12)).all()
        first, last = (found[c].cast(pa.int32()).fill_null(0).to_numpy()[there] for c in ("start", "stop"))
        off.append((last < first).mean())
    assert off[1] < 0.6 * off[0]


def test_columns_that_hardly_depend_or_have_no_values_inside_are_left_as_they_were():
    rng = np.random.default_rng(7)
    codes = {c: rng.integers(0, 5, 500) for c in "xyks"}
    single = NumericCodec(tuple(float(e) for e in range(6)), 0, integer=True)
    columns = (
        Column("x", WIDE, missing=False),
        Column("y", WIDE, missing=False),
        Column("k", CategoryCodec(tuple("abcde")), missing=False),
        Column("s", NumericCodec((*single.edges[:-1], 4.5), 0, integer=True), missing=False),
    )
    diagonal, flat = np.eye(5) * 100, np.ones((5, 5))
    plain = Layout(columns)
    same = plain.with_joint_density(
        {("x", "y"): flat, ("x", "k"): diagonal, ("s", "x"): diagonal, ("y", "x"): flat * 0.0}
    )
    assert same.joint == ()
    assert same.decode(codes, np.random.default_rng(1)).equals(plain.decode(codes, np.random.default_rng(1)))
    other = plain.with_joint_density({("x", "y"): diagonal})
    first, second = (other.decode(codes, np.random.default_rng(1)) for _ in range(2))
    assert first.equals(second) and not first.equals(plain.decode(codes, np.random.default_rng(1)))


def test_the_strongest_pair_comes_first_and_its_sign_does_not_matter():
    weak, strong = np.eye(4) * 8 + 1, np.eye(4)[::-1] * 30 + 1
    densities = [
        JointDensity("a", "b", weak),
        JointDensity("a", "c", strong),
        JointDensity("b", "c", np.ones((4, 4))),
    ]
    assert [d.second for d in strongest(densities)] == ["c", "b"]
    assert densities[1].correlation < -0.8


@pytest.mark.parametrize("steep", [-25.0, -3.0, 0.0, 3.0, 25.0])
@pytest.mark.parametrize("flat", [0.0, 4.0, 100.0])
def test_positions_have_the_distribution_of_the_density(steep, flat):
    rows = 50_000
    logs = _logs(np.full((rows, 1), steep), np.full((rows, 1), flat))
    found = np.sort(_positions(lambda part: logs[part], rows, np.random.default_rng(8)))
    assert found[0] >= -0.5 and found[-1] <= 0.5
    grid = np.linspace(-0.5, 0.5, 20_001)
    whole = steep * grid - flat * grid**2 / 2
    density = np.exp(whole - whole.max())
    # Halves of a part of a bin, and some six standard deviations of a share.
    assert abs(found.mean() - grid @ density / density.sum()) < 0.01


def test_first_positions_follow_the_density_summed_over_the_second_bin():
    a, b, c = 2.0, -3.0, 5.0
    found = np.exp(_first_logs(*np.array([a, b, c]).reshape(3, 1, 1)))[0]
    u, v = (np.arange(16) + 0.5)[:, None] / 16 - 0.5, np.linspace(-0.5, 0.5, 4001)
    whole = np.exp(a * u + b * v + c * u * v - c * (u**2 + v**2) / 2).mean(axis=1)
    np.testing.assert_allclose(found / found.sum(), whole / whole.sum(), rtol=0.01)


@pytest.mark.parametrize("noise", [2.0, 6.0, 12.0])
def test_the_width_of_a_band_is_found_from_counts_of_wider_bins(noise):
    """Distances between the columns are those of the real rows, or between them and independent draws."""
    x, y = banded(np.random.default_rng(1), noise)
    codes = {"x": x // 20, "y": y // 20}
    plain = Layout((Column("x", WIDE, missing=False), Column("y", WIDE, missing=False)))
    counts = counts_of(codes["x"], codes["y"]).astype(float)
    off = []
    for layout in (plain.with_joint_density({("x", "y"): counts}), plain):
        found = drawn(codes, layout, np.random.default_rng(2))
        off.append(np.abs(found["x"].to_numpy() - found["y"].to_numpy()).mean())
    real = np.abs(x - y).mean()
    assert 0.97 * real < off[0] < real + 0.25 * (off[1] - real)
